/*
 * The cookie of somebody who is not known: a random id, when it ends, and a MAC over both.  It says nothing about
 * anybody; its one use is that two visitors behind one address have a bucket each.
 */
#ifndef SZ_PIPELINE_VISITOR_H
#define SZ_PIPELINE_VISITOR_H

#include "subzero/base.h"

#define SZ_VISITOR_ID   16
#define SZ_VISITOR_TEXT 75 /* base64url of id, end (unix seconds, 8 bytes) and HMAC-SHA-256 */

/* key signs; cookie: its name, which the MAC covers.  False: not ours, altered, or over. */
bool sz_visitor_read(struct sz_slice text, struct sz_slice key, struct sz_slice cookie, int64_t now,
                     uint8_t id[SZ_VISITOR_ID]);
void sz_visitor_write(const uint8_t id[SZ_VISITOR_ID], int64_t end, struct sz_slice key, struct sz_slice cookie,
                      char out[SZ_VISITOR_TEXT]);

#endif

/*
 * One access line a request: a plain record in, one JSON object out.  Whatever a client put
 * into a field, the line stays one line, valid UTF-8 and bounded.  No query string, no header
 * and no token belongs into any field.  Whether a request is logged at all (off, sampled) is
 * the caller's to decide.
 */
#ifndef SUBZERO_ACCESS_H
#define SUBZERO_ACCESS_H

#include "subzero/base.h"
#include "subzero/time.h"

#define SZ_ACCESS_FIELD_MAX 256  /* bytes of a field as written; longer ones are cut and marked "…" */
#define SZ_ACCESS_LINE_MAX  4000 /* bytes of a line; fits sz_log_line */

struct sz_access {
    struct sz_wall time; /* when the request's head was read */
    struct sz_slice request_id, trace_id;
    struct sz_slice method;
    struct sz_slice path; /* canonical, without its query */
    struct sz_slice route, decision, reason;
    uint16_t status;
    struct sz_span duration;
    uint64_t bytes; /* of the answer's body */
    struct sz_slice subject, client, issuer;
    struct sz_slice address, protocol, listener;
};

/* Appends one JSON object without a newline; fields that are absent (SZ_NONE) are left out.  Any thread. */
void sz_access_line(struct sz_buf *out, const struct sz_access *access);

#endif

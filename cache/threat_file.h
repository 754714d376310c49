/* Threat records as a file: JSON, one record a line, written whole and renamed; the last line is a checksum of all
 * others. */
#ifndef CACHE_THREAT_FILE_H
#define CACHE_THREAT_FILE_H

#include "subzero/threat_store.h"

/* The text: begin, records, end. */
void sz_threat_file_begin(struct sz_buf *out);
void sz_threat_file_add(struct sz_buf *out, const struct sz_threat_record *r);
void sz_threat_file_end(struct sz_buf *out);
/* Calls `see` with each record.  -EINVAL: *why names the line. */
int sz_threat_file_read(struct sz_slice text, void (*see)(void *arg, const struct sz_threat_record *r), void *arg,
                        struct sz_text *why) SZ_MUST_CHECK;
/* Blocking.  0, -errno: the old file, if any, is untouched. */
int sz_threat_file_replace(const char *path, struct sz_slice text) SZ_MUST_CHECK;
/* Blocking.  0 also where there is none (*text stays empty). */
int sz_threat_file_load(const char *path, struct sz_buf *text) SZ_MUST_CHECK;

#endif

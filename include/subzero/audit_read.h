/*
 * Reading a journal's directory, whether or not a gateway writes it: what `subzero audit` does.  Blocking; any thread,
 * but no loop.
 */
#ifndef SUBZERO_AUDIT_READ_H
#define SUBZERO_AUDIT_READ_H

#include "subzero/base.h"

struct sz_audit_verdict {
    bool good;
    struct sz_text what; /* the first fault: "FILE:LINE: ..." */
    uint64_t records, checkpoints, signed_checkpoints, first, last, segments;
};
/*
 * Every record, both chains, the checkpoints, and what an anchor knows.  key: 32 bytes that checkpoints must be signed
 * with, or NULL.  anchor: its file, or NULL. 0 with the verdict, or -errno and verdict->what.
 */
int sz_audit_verify(const char *path, const uint8_t *key, const char *anchor,
                    struct sz_audit_verdict *verdict) SZ_MUST_CHECK;

/* A parameter as in the query string of GET /audit. */
struct sz_audit_param {
    const char *name, *value;
};
/* Gets the bytes of the answer piece by piece; not 0: no more, and that is what the reading returns. */
typedef int sz_audit_put_fn(void *arg, struct sz_slice bytes);

/*
 * The records that match, all of them, as lines (or CSV with format=csv); with `limit` as many.  *cursor (24 characters
 * and a NUL; may be NULL): where a limited one goes on.  0; -EINVAL: a parameter is wrong; -EBADMSG: the journal is
 * damaged; -errno; and *why.
 */
int sz_audit_dir_export(const char *path, const struct sz_audit_param *params, size_t n, sz_audit_put_fn *put,
                        void *arg, char cursor[25], struct sz_text *why) SZ_MUST_CHECK;
/* The highest number there is, 0 when there is none; and a cursor of this question at any number (downwards: from it
 * on). */
int sz_audit_dir_last(const char *path, uint64_t *seq, struct sz_text *why) SZ_MUST_CHECK;
int sz_audit_cursor_at(const struct sz_audit_param *params, size_t n, uint64_t seq, char cursor[25],
                       struct sz_text *why) SZ_MUST_CHECK;
/* A page as GET /audit answers it. */
int sz_audit_dir_page(const char *path, const struct sz_audit_param *params, size_t n, struct sz_buf *out,
                      struct sz_text *why) SZ_MUST_CHECK;
/* {"segments":…,"records":…,"kinds":{…},…}: counts of everything. */
int sz_audit_dir_stats(const char *path, struct sz_buf *out, struct sz_text *why) SZ_MUST_CHECK;

#endif

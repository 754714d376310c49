/*
 * What a search may skip: per segment the range of its times, and a filter of the values that its exact-match members
 * hold.  Kept in memory while a segment grows and beside it (NAME.idx) once it has ended.
 *
 * The filter is made of 64-byte blocks: a value sets a few bits in one of them.  A bit that is not set proves that the
 * value is nowhere in the segment; all bits set prove nothing.  A side file that is missing, or does not fit its
 * segment, is made again from the segment: it can save work, and never change an answer.
 */
#ifndef SZ_OBS_AUDIT_INDEX_H
#define SZ_OBS_AUDIT_INDEX_H

#include "obs/audit/chain.h"
#include "obs/audit/io.h"
#include "subzero/base.h"

enum sz_audit_field {
    SZ_AUDIT_BY_KIND,
    SZ_AUDIT_BY_SUBJECT,
    SZ_AUDIT_BY_CLIENT,
    SZ_AUDIT_BY_ADDRESS,
    SZ_AUDIT_BY_ROUTE,
    SZ_AUDIT_BY_DECISION,
    SZ_AUDIT_BY_REASON,
    SZ_AUDIT_BY_REQUEST_ID,
    SZ_AUDIT_BY_TRACE_ID,
    SZ_AUDIT_FIELDS
};
struct sz_slice sz_audit_field_name(enum sz_audit_field field);

/* Where in a line the values stand, without their quotes; at 0: the line has no such member. */
struct sz_audit_places {
    uint16_t at[SZ_AUDIT_FIELDS], n[SZ_AUDIT_FIELDS];
};

struct sz_audit_index;
/* For a segment that will hold about so many bytes. */
struct sz_audit_index *sz_audit_index_new(uint64_t bytes);
void sz_audit_index_free(struct sz_audit_index **index);
/* One writer; readers may look meanwhile, and see what was added before the committed size that they read. */
void sz_audit_index_add(struct sz_audit_index *index, struct sz_slice line);
/* The same for whoever wrote the line and knows where its values are, and its time: nothing has to be looked for. */
void sz_audit_index_add_known(struct sz_audit_index *index, const char *line, const struct sz_audit_places *places,
                              int64_t us);
/* value: as it stands in a line, escapes included. */
bool sz_audit_index_may_have(const struct sz_audit_index *index, enum sz_audit_field field, struct sz_slice value);
/* Times of its records, us; false when it has none. */
bool sz_audit_index_times(const struct sz_audit_index *index, int64_t *oldest, int64_t *newest);

/* Writes NAME.idx for a segment of `size` bytes whose last line has that hash.  Blocking; -errno. */
int sz_audit_index_save(const struct sz_audit_index *index, const struct sz_audit_io *io, int dir, const char *segment,
                        uint64_t size, const struct sz_audit_hash *last) SZ_MUST_CHECK;
/* NULL: missing, or not this segment's. */
struct sz_audit_index *sz_audit_index_load(int dir, const char *segment, uint64_t size,
                                           const struct sz_audit_hash *last);

#endif

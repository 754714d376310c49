/* The name of a question: everything that can change its answer, as bytes of which no two questions share a run. */
#ifndef CACHE_DECISION_KEY_H
#define CACHE_DECISION_KEY_H

#include "subzero/fga.h"

struct sz_decision_fields {
    struct sz_buf b; /* the bytes; in `room` as long as they fit */
    char room[1024];
};
/*
 * epoch: the source's state.  Context as canonical JSON; contextual tuples in the order of their keys, since their own
 * order means nothing (but between two of the same key, which keep theirs).
 */
void sz_decision_fields_init(struct sz_decision_fields *f, uint64_t epoch, const struct sz_check *check);
void sz_decision_fields_fini(struct sz_decision_fields *f);

#endif

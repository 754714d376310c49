/*
 * The index of what is revoked, as requests ask it: name -> until when.  One writer, any number of readers that take no
 * lock and never wait.
 *
 *   epoch:  ... 4     5 ...        the table in use is tables[epoch % 2]
 *   tables: [0] ◀──┐  [1] ◀─ rebuilt without what has ended, then the epoch moves on
 *
 * Between two rebuilds names are only added, and times only grow: a reader may walk while the writer writes.  A rebuild
 * goes into the table that is not in use.  A reader that was overtaken by two of them, and hence may have walked
 * through a table being rebuilt, sees that the epoch has changed and walks again.
 */
#ifndef SZ_CACHE_REVOCATION_INDEX_H
#define SZ_CACHE_REVOCATION_INDEX_H

#include "subzero/revocation.h"

struct sz_revocation_slot {
    _Atomic uint64_t name; /* 0: free */
    _Atomic int64_t before;
};

struct sz_revocation_index {
    _Atomic uint64_t epoch;
    size_t capacity, mask, n; /* n: the writer's */
    unsigned shift;
    uint64_t odd; /* drawn: which names collide cannot be chosen */
    struct sz_revocation_slot *tables[2];
};

void sz_revocation_index_init(struct sz_revocation_index *index, size_t capacity);
void sz_revocation_index_fini(struct sz_revocation_index *index);

/* Any thread.  False: not there. */
bool sz_revocation_index_find(const struct sz_revocation_index *index, uint64_t name, int64_t *before);

/* The writer.  Adds, or moves the time on; at most `capacity` names. */
void sz_revocation_index_put(struct sz_revocation_index *index, uint64_t name, int64_t before);
/* Begins a rebuild, puts into it, and swaps it in. */
void sz_revocation_index_begin(struct sz_revocation_index *index);
void sz_revocation_index_keep(struct sz_revocation_index *index, uint64_t name, int64_t before);
void sz_revocation_index_swap(struct sz_revocation_index *index);

#endif

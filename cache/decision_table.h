/*
 * L1 for decisions: a yes or a no, its source and its end, under a 128-bit keyed hash.  25.6 bytes an entry.
 *
 *   a set, two cache lines:  | a b m | a b m | a b m | a b m | a b m | used locked hand |
 *
 *     m   what is known:  | end, ms: 40 | 0: 20 | live | allowed | source: 2 |
 *     a   first half of the key, xor m
 *     b   second half of the key, xor m turned by half
 *
 * There is no version: a reader takes the three words as they come, undoes the xor and compares both halves.  Words of
 * two records give a key that is nobody's; two records of one key mix only when their m are the same, and then they are
 * the same record.  So readers take no lock and write nothing but a mark, and an entry has no room for anything else.
 */
#ifndef CACHE_DECISION_TABLE_H
#define CACHE_DECISION_TABLE_H

#include <stdatomic.h>

#include "subzero/cache.h"
#include "subzero/fga.h"

struct sz_decision_table;

struct sz_decision {
    bool allowed;
    enum sz_authz_source source;
};

struct sz_decision_table *sz_decision_table_new(size_t capacity); /* NULL: errno */
void sz_decision_table_free(struct sz_decision_table **table);

/* Any thread, no lock; `thread` is sz_loop_index, for counting (SZ_NO_LOOP: another thread). */
bool sz_decision_table_get(struct sz_decision_table *table, unsigned thread, struct sz_hash128 key, struct sz_mono now,
                           struct sz_decision *out);
/* Any thread; false: not kept (`until` has come, or another writer is in this set). */
bool sz_decision_table_put(struct sz_decision_table *table, unsigned thread, struct sz_hash128 key, struct sz_mono now,
                           struct sz_mono until, struct sz_decision decision);
void sz_decision_table_flush(struct sz_decision_table *table);
void sz_decision_table_stats(struct sz_decision_table *table, struct sz_cache_stats *out);

#endif

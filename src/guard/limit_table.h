/* The inside of the table: a state under the lock of its set, for whoever keeps something else than a rule's state. */
#ifndef SZ_GUARD_LIMIT_TABLE_H
#define SZ_GUARD_LIMIT_TABLE_H

#include "subzero/crypto.h"
#include "subzero/limit.h"

struct sz_limit_set;

struct sz_limit_slot {
    struct sz_limit_state state;
    uint64_t over; /* us: from then on the slot is free */
};

struct sz_hash128 sz_limit_table_hash(const struct sz_limit_table *table, struct sz_slice key);
/*
 * The slot of a key, found or made (fresh then), and its set locked.  To be given back within a few instructions:
 * neither call out nor allocate in between.
 */
struct sz_limit_slot *sz_limit_slot_borrow(struct sz_limit_table *table, struct sz_hash128 key, uint64_t now,
                                           bool *fresh, struct sz_limit_set **set);
void sz_limit_slot_giveback(struct sz_limit_set *set);

#endif

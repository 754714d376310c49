/*
 * Open addressing, at most half full, so that a name which is not there, the usual case, is found out within a slot or
 * two.  Slots are written with release and read with acquire (plain moves on x86): whoever sees a slot of the next
 * rebuild also sees the epoch that makes it look again.
 */
#include "cache/revocation_index.h"

#include <stdlib.h>

#include "subzero/crypto.h"

void sz_revocation_index_init(struct sz_revocation_index *index, size_t capacity)
{
    size_t slots = 64;
    unsigned bits = 6;
    while (slots < capacity * 2) {
        slots *= 2;
        bits++;
    }
    *index = (struct sz_revocation_index){.capacity = capacity, .mask = slots - 1, .shift = 64 - bits};
    sz_random(&index->odd, sizeof(index->odd));
    index->odd |= 1;
    for (size_t i = 0; i < 2; i++)
        index->tables[i] = sz_xcalloc(slots, sizeof(struct sz_revocation_slot)); /* untouched until used */
}

void sz_revocation_index_fini(struct sz_revocation_index *index)
{
    free(index->tables[0]);
    free(index->tables[1]);
    index->tables[0] = index->tables[1] = NULL;
}

static size_t slot_of(const struct sz_revocation_index *index, uint64_t name)
{
    return (size_t)(name * index->odd >> index->shift);
}

static bool find_in(const struct sz_revocation_index *index, const struct sz_revocation_slot *table, uint64_t name,
                    int64_t *before)
{
    size_t at = slot_of(index, name);
    for (size_t i = 0; i <= index->mask; i++, at = (at + 1) & index->mask) {
        uint64_t there = atomic_load_explicit(&table[at].name, memory_order_acquire);
        if (there == 0)
            return false;
        if (there == name) {
            *before = atomic_load_explicit(&table[at].before, memory_order_acquire);
            return true;
        }
    }
    return false;
}

bool sz_revocation_index_find(const struct sz_revocation_index *index, uint64_t name, int64_t *before)
{
    for (;;) {
        uint64_t epoch = atomic_load_explicit(&index->epoch, memory_order_acquire);
        bool found = find_in(index, index->tables[epoch % 2], name, before);
        if (SZ_LIKELY(atomic_load_explicit(&index->epoch, memory_order_acquire) == epoch))
            return found;
    }
}

static void put_in(struct sz_revocation_index *index, struct sz_revocation_slot *table, uint64_t name, int64_t before)
{
    size_t at = slot_of(index, name);
    for (uint64_t there; (there = atomic_load_explicit(&table[at].name, memory_order_relaxed)) != 0;
         at = (at + 1) & index->mask) {
        if (there != name)
            continue;
        if (atomic_load_explicit(&table[at].before, memory_order_relaxed) < before)
            atomic_store_explicit(&table[at].before, before, memory_order_release);
        return;
    }
    SZ_ASSERT(index->n < index->capacity);
    index->n++;
    atomic_store_explicit(&table[at].before, before, memory_order_release);
    atomic_store_explicit(&table[at].name, name, memory_order_release);
}

void sz_revocation_index_put(struct sz_revocation_index *index, uint64_t name, int64_t before)
{
    put_in(index, index->tables[atomic_load(&index->epoch) % 2], name, before);
}

static struct sz_revocation_slot *unused(struct sz_revocation_index *index)
{
    return index->tables[(atomic_load(&index->epoch) + 1) % 2];
}

void sz_revocation_index_begin(struct sz_revocation_index *index)
{
    struct sz_revocation_slot *table = unused(index);
    for (size_t i = 0; i <= index->mask; i++) {
        if (atomic_load_explicit(&table[i].name, memory_order_relaxed) != 0)
            atomic_store_explicit(&table[i].name, 0, memory_order_release);
    }
    index->n = 0;
}

void sz_revocation_index_keep(struct sz_revocation_index *index, uint64_t name, int64_t before)
{
    put_in(index, unused(index), name, before);
}

void sz_revocation_index_swap(struct sz_revocation_index *index)
{
    atomic_fetch_add(&index->epoch, 1);
}

/*
 * Rejected tokens: a table of their own, so that spraying garbage evicts only other garbage.
 * A record is two words: the generation it was judged under, and the reason.
 */
#include "cache/table.h"

#define SLOT_WORDS 8 /* one cache line */
#define TRIES      4

enum { GENERATION, REASON, PAYLOAD }; /* words of the payload */

_Static_assert(SZ_SLOT_PAYLOAD + PAYLOAD <= SLOT_WORDS, "one slot a record");

struct sz_reject_cache { /* the table under a name of its own */
    struct sz_table table;
};

struct sz_reject_cache *sz_reject_cache_new(size_t capacity)
{
    return (struct sz_reject_cache *)sz_table_new(capacity, SLOT_WORDS);
}

void sz_reject_cache_free(struct sz_reject_cache **cache)
{
    sz_table_free((struct sz_table *)*cache);
    *cache = NULL;
}

bool sz_reject_cache_get(struct sz_reject_cache *cache, struct sz_fingerprint fp, uint64_t generation,
                         struct sz_mono now, enum sz_reason *reason)
{
    struct sz_table *table = &cache->table;
    struct sz_table_seat seat;

    for (unsigned tries = 0; tries < TRIES && sz_table_find(table, SLOT_WORDS, fp, &seat); tries++) {
        const _Atomic uint64_t *payload = seat.slot + SZ_SLOT_PAYLOAD;
        uint64_t made_under = sz_table_word(&payload[GENERATION]), why = sz_table_word(&payload[REASON]);

        if (sz_table_until(&seat).us <= now.us) {
            sz_table_end(table, &seat, SZ_TABLE_EXPIRED);
            continue;
        }
        if (!sz_table_same(&seat))
            continue;
        if (made_under != generation) /* left in place: a request that began before a reload may still ask for it */
            break;
        SZ_ASSERT(why < SZ_REASON_COUNT);
        sz_table_touch(&seat);
        sz_table_count(table, SZ_TABLE_HITS);
        *reason = (enum sz_reason)why;
        return true;
    }
    sz_table_count(table, SZ_TABLE_MISSES);
    return false;
}

void sz_reject_cache_put(struct sz_reject_cache *cache, struct sz_fingerprint fp, uint64_t generation,
                         enum sz_reason reason, struct sz_mono now, struct sz_mono until)
{
    const uint64_t payload[PAYLOAD] = {[GENERATION] = generation, [REASON] = (uint64_t)reason};

    sz_table_put(&cache->table, fp, now, until, payload, PAYLOAD, false);
}

void sz_reject_cache_flush(struct sz_reject_cache *cache)
{
    sz_table_flush(&cache->table);
}

void sz_reject_cache_stats(struct sz_reject_cache *cache, struct sz_cache_stats *out)
{
    sz_table_stats(&cache->table, out);
}

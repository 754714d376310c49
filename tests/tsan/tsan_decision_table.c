/*
 * L1 for decisions under four threads on two sets: what comes out under a key must be what somebody put in under that
 * key.  A yes is only ever put in with one source, a no with another, and which keys may be yes depends on the number
 * of the key, so that an answer mixed of two records shows.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "cache/decision_table.h"

#define THREADS 4
#define ROUNDS  100000
#define KEYS    24

static struct sz_decision_table *table;

static uint64_t next_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

static struct sz_hash128 key_of(uint64_t n)
{
    return (struct sz_hash128){{n << 63 | n, n * 3}};
}

/* Even keys are always yes, of every third one both is true by turns, all others are no. */
static void look(unsigned self, uint64_t key, int64_t now)
{
    struct sz_decision d;
    if (!sz_decision_table_get(table, self, key_of(key), (struct sz_mono){now}, &d))
        return;
    bool may_be = key % 3 == 0 || d.allowed == (key % 2 == 0);
    if (!may_be || d.source != (d.allowed ? SZ_AUTHZ_FROM_OPENFGA : SZ_AUTHZ_FROM_REPLICA)) {
        fprintf(stderr, "tsan_decision_table: key %llu has an answer that nobody gave\n", (unsigned long long)key);
        abort();
    }
}

static void put(unsigned self, uint64_t key, uint64_t r, int64_t now)
{
    bool allowed = key % 3 == 0 ? (r >> 50 & 1) != 0 : key % 2 == 0;
    (void)sz_decision_table_put(table, self, key_of(key), (struct sz_mono){now},
                                (struct sz_mono){now + (int64_t)(r >> 40 & 0xffff)},
                                (struct sz_decision){allowed, allowed ? SZ_AUTHZ_FROM_OPENFGA : SZ_AUTHZ_FROM_REPLICA});
}

static void *run(void *arg)
{
    unsigned self = (unsigned)(size_t)arg;
    uint64_t state = self + 1;
    for (int64_t i = 1; i <= ROUNDS; i++) {
        uint64_t r = next_random(&state), key = r % KEYS;
        if ((r >> 32 & 3) != 0 || self == 2)
            look(self, key, i * 10);
        else
            put(self == 3 ? UINT32_MAX : self, key, r, i * 10);
        if (self == 3 && r >> 52 == 0)
            sz_decision_table_flush(table);
    }
    return NULL;
}

int main(void)
{
    pthread_t threads[THREADS];
    struct sz_cache_stats stats;
    table = sz_decision_table_new(10);
    for (size_t i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, run, (void *)i);
    for (size_t i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    sz_decision_table_stats(table, &stats);
    printf("tsan_decision_table: %llu lookups, %llu hits, %llu puts\n", (unsigned long long)stats.lookups,
           (unsigned long long)stats.hits, (unsigned long long)stats.inserts);
    sz_decision_table_free(&table);
    return stats.hits == 0;
}

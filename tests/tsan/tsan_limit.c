/*
 * The table of rate limits under threads that race for a few keys, and for more keys than it has room for: what they
 * admit together is exact where nothing had to be given up.
 */
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

#include "subzero/crypto.h"
#include "subzero/limit.h"

#define THREADS  4
#define REQUESTS 50000
#define KEYS     3
#define CAPACITY 2000

static struct sz_limit_table *table, *small;
static struct sz_limit_rule exact, sliding;
static _Atomic uint64_t admitted;

static void *run(void *arg)
{
    uint64_t now = 5000000;
    unsigned me = (unsigned)(uintptr_t)arg;
    struct sz_limit_view view;
    for (unsigned i = 0; i < REQUESTS; i++) {
        unsigned key = i % KEYS, other = i * THREADS + me;
        atomic_fetch_add(&admitted, sz_limit_table_take(table, sz_slice(&key, sizeof(key)), &exact, now, 1, &view));
        (void)sz_limit_table_take(small, sz_slice(&other, sizeof(other)), &sliding, now + i, 1 + i % 3, NULL);
    }
    return NULL;
}

int main(void)
{
    pthread_t threads[THREADS];
    sz_crypto_init();
    table = sz_limit_table_new(1024);
    small = sz_limit_table_new(64);
    if (table == NULL || small == NULL || sz_limit_bucket(CAPACITY, 0, SZ_SEC(1), 1, &exact) != 0 ||
        sz_limit_window(10, SZ_MS(10), 1, &sliding) != 0)
        return 2;
    for (uintptr_t i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, run, (void *)i);
    for (size_t i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    sz_limit_table_free(&table);
    sz_limit_table_free(&small);
    printf("admitted %" PRIu64 "\n", atomic_load(&admitted));
    return atomic_load(&admitted) == KEYS * CAPACITY ? 0 : 1;
}

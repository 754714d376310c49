/*
 * The revocation index under one writer that adds and rebuilds all the time, and three readers.  ThreadSanitizer
 * watches the accesses; the program itself checks what requests rely on: a name that was put before a reader began to
 * look is found, whatever rebuild it falls into, and what the news announce can be found.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "cache/revocation_index.h"
#include "subzero/crypto.h"

#define READERS 3
#define ROUNDS  2000
#define KEPT    64 /* names that are always there */
#define PASSING 300

static struct sz_revocation_index ix;
static struct sz_revocation_news news;
static _Atomic bool over;
static _Atomic uint64_t looks;

static void *read_all(void *arg)
{
    uint64_t n = 0;
    int64_t before;
    (void)arg;
    while (!atomic_load(&over)) {
        uint64_t sequence = sz_revocation_sequence(&news);
        for (uint64_t name = 1; name <= KEPT; name++) {
            if (!sz_revocation_index_find(&ix, name, &before) || before < 1) {
                fprintf(stderr, "tsan_revocation: name %llu is missing\n", (unsigned long long)name);
                abort();
            }
        }
        /* What had been announced before is there until it is taken out on purpose: the writer keeps the last 100. */
        if (sequence > 0 && sz_revocation_sequence(&news) < sequence + 50 &&
            !sz_revocation_index_find(&ix, 1000000 + sequence, &before) &&
            sz_revocation_sequence(&news) < sequence + 50) {
            fprintf(stderr, "tsan_revocation: number %llu was announced and is missing\n",
                    (unsigned long long)sequence);
            abort();
        }
        n++;
    }
    atomic_fetch_add(&looks, n);
    return NULL;
}

static void rebuild(uint64_t last)
{
    sz_revocation_index_begin(&ix);
    for (uint64_t name = 1; name <= KEPT; name++)
        sz_revocation_index_keep(&ix, name, (int64_t)last + 1);
    for (uint64_t i = last > 100 ? last - 100 : 1; i <= last; i++)
        sz_revocation_index_keep(&ix, 1000000 + i, 1);
    sz_revocation_index_swap(&ix);
}

int main(void)
{
    pthread_t threads[READERS];
    uint64_t last = 0;
    sz_crypto_init();
    sz_revocation_index_init(&ix, KEPT + 100 + PASSING);
    for (uint64_t name = 1; name <= KEPT; name++)
        sz_revocation_index_put(&ix, name, 1);
    for (size_t i = 0; i < READERS; i++) {
        if (pthread_create(&threads[i], NULL, read_all, NULL) != 0)
            return 1;
    }
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < 20; i++) {
            sz_revocation_index_put(&ix, 1000000 + ++last, 1);
            atomic_store_explicit(&news.sequence, last, memory_order_release);
        }
        if (round % 8 == 7)
            rebuild(last);
    }
    atomic_store(&over, true);
    for (size_t i = 0; i < READERS; i++)
        pthread_join(threads[i], NULL);
    sz_revocation_index_fini(&ix);
    printf("tsan_revocation: %llu looks\n", (unsigned long long)atomic_load(&looks));
    return 0;
}

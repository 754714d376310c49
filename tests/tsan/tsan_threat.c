/* Threat tables under four threads that note, judge, look and lift the same few keys, and walk them all. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "subzero/threat.h"

#define ROUNDS 40000

static struct sz_threat *threat;
static const struct sz_threat_policy policy = {0.3f, 0.5f, 0.7f, SZ_SEC(1), SZ_SEC(2)};

static void nothing(void *arg, const struct sz_threat_key *key, const struct sz_threat_view *view)
{
    unsigned *n = arg;
    SZ_ASSERT(key->hash != 0 && view->score <= 1);
    (*n)++;
}

static void *run(void *arg)
{
    unsigned seed = (unsigned)(uintptr_t)arg;
    for (unsigned i = 0; i < ROUNDS; i++) {
        struct sz_mono now = {1000000000 + (int64_t)i * 1000};
        struct sz_addr addr = {{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 0, 0, (uint8_t)(rand_r(&seed) % 32)}};
        struct sz_threat_key key = sz_threat_address(threat, addr);
        struct sz_threat_view view;
        unsigned n = 0;
        sz_threat_note(threat, key, SZ_SIGNAL_bad_tokens, (uint64_t)rand_r(&seed), now);
        sz_threat_good(threat, key, (uint64_t)rand_r(&seed), now);
        (void)sz_threat_judge(threat, key, &policy, now, &view);
        (void)sz_threat_look(threat, key, &policy, now, &view);
        SZ_ASSERT(view.score >= 0 && view.score <= 1);
        if (i % 500 == 0)
            (void)sz_threat_lift(threat, key, now);
        if (i % 5000 == 0)
            sz_threat_each(threat, SZ_THREAT_ADDRESS, &policy, 0, now, nothing, &n);
    }
    return NULL;
}

int main(void)
{
    pthread_t threads[4];
    sz_crypto_init();
    threat = sz_threat_new(1024);
    for (uintptr_t i = 0; i < SZ_COUNT(threads); i++)
        SZ_ASSERT(pthread_create(&threads[i], NULL, run, (void *)(i + 1)) == 0);
    for (unsigned i = 0; i < SZ_COUNT(threads); i++)
        pthread_join(threads[i], NULL);
    struct sz_threat_stats stats;
    sz_threat_stats(threat, &stats);
    SZ_ASSERT(stats.notes == ROUNDS * SZ_COUNT(threads) && stats.entries <= 32);
    sz_threat_free(&threat);
    printf("ok\n");
    return 0;
}

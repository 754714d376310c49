/*
 * L1 under four threads on few slots: two that put, look up and drop, one that only looks up, one that
 * also flushes.  ThreadSanitizer watches the accesses; the program itself checks that each
 * identity that came out is one that was put in, whole: its words and its text are made from one number.
 * The reject table runs beside it.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "subzero/cache.h"

#define THREADS 4
#define ROUNDS  40000
#define KEYS    24
#define EXP     INT64_C(4000000000)

static struct sz_token_cache *cache;
static struct sz_reject_cache *rejects;

static uint64_t next_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

static struct sz_fingerprint key_fp(uint64_t key) /* two sets, few tags: as bad as it gets */
{
    return (struct sz_fingerprint){{{key << 63 | key, key * 3}}};
}

static void fill(struct sz_identity *id, uint64_t key, uint64_t n)
{
    size_t text = n % 8 == 0 ? 300 + n % 1200 : 1 + n % 140; /* some run on over several slots */

    memset(id, 0, offsetof(struct sz_identity, text));
    id->generation = n;
    id->jti = key;
    id->sid = ~n;
    id->exp = EXP;
    if (n % 5 == 0)
        memset(id->x5t, (int)(n & 0xff), sizeof(id->x5t)); /* the wide layout */
    id->text_n = (uint16_t)text;
    memset(id->text, (int)(n & 0xff), text);
}

static void check(const struct sz_identity *id, uint64_t key)
{
    struct sz_identity want;

    fill(&want, key, id->generation);
    if (id->jti != key || id->text_n != want.text_n || memcmp(id, &want, sz_identity_size(&want)) != 0) {
        fprintf(stderr, "tsan_token_cache: key %llu came out torn or wrong\n", (unsigned long long)key);
        abort();
    }
}

static void round_of(unsigned self, uint64_t r, int64_t now)
{
    uint64_t key = r % KEYS;
    struct sz_identity id;
    enum sz_reason reason;
    unsigned what = r >> 32 & 7;

    if (what < 4 || self == 2) {
        if (sz_token_cache_get(cache, key_fp(key), (struct sz_mono){now}, (struct sz_wall){1}, &id))
            check(&id, key);
        if (sz_reject_cache_get(rejects, key_fp(key), key, (struct sz_mono){now}, &reason) &&
            reason != (enum sz_reason)(key + 1))
            abort();
    } else if (what < 7) {
        fill(&id, key, r >> 8);
        sz_token_cache_put(cache, key_fp(key), &id, (struct sz_mono){now}, (struct sz_mono){now + 50});
        sz_reject_cache_put(rejects, key_fp(key), key, (enum sz_reason)(key + 1), (struct sz_mono){now},
                            (struct sz_mono){now + 50});
    } else if (self == 3 && (r >> 40) % 64 == 0) {
        sz_token_cache_flush(cache);
        sz_reject_cache_flush(rejects);
    } else {
        sz_token_cache_drop(cache, key_fp(key));
    }
}

static void *run(void *arg)
{
    unsigned self = (unsigned)(uintptr_t)arg;
    uint64_t state = 88172645463325252u + self;

    for (int64_t i = 0; i < ROUNDS; i++)
        round_of(self, next_random(&state), 1 + i);
    sz_fingerprint(SZ_CREDENTIAL_OPAQUE, self, SZ_S("token")); /* the process key is drawn by whoever comes first */
    return NULL;
}

int main(void)
{
    pthread_t threads[THREADS];
    struct sz_cache_stats stats;

    sz_crypto_init();
    cache = sz_token_cache_new(16);
    rejects = sz_reject_cache_new(16);
    if (cache == NULL || rejects == NULL)
        return 1;
    for (uintptr_t i = 0; i < THREADS; i++)
        if (pthread_create(&threads[i], NULL, run, (void *)i) != 0)
            return 1;
    for (size_t i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    sz_token_cache_flush(cache);
    sz_token_cache_stats(cache, &stats);
    printf("tsan_token_cache: %llu lookups, %llu hits, %llu inserts, %llu evictions, %llu busy\n",
           (unsigned long long)stats.lookups, (unsigned long long)stats.hits, (unsigned long long)stats.inserts,
           (unsigned long long)stats.evictions, (unsigned long long)stats.busy);
    if (stats.entries != 0 || stats.hits == 0) /* each record that came in was counted out exactly once */
        return 1;
    sz_token_cache_free(&cache);
    sz_reject_cache_free(&rejects);
    return 0;
}

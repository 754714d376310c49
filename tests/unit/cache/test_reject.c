/* Rejected tokens: the reason comes back under the generation it was given under, until its end, and never else. */
#include <criterion/criterion.h>

#include "facts.h"

#define T(us) ((struct sz_mono){us})

Test(reject, another_generation_is_a_miss)
{
    struct sz_reject_cache *cache = sz_reject_cache_new(100);
    enum sz_reason reason = SZ_REASON_allowed;

    sz_reject_cache_put(cache, fact_fp(1, 1, 1), 7, SZ_REASON_invalid_token, T(1), T(100));
    cr_assert_not(sz_reject_cache_get(cache, fact_fp(1, 1, 1), 8, T(1), &reason));
    cr_assert_not(sz_reject_cache_get(cache, fact_fp(1, 1, 2), 7, T(1), &reason));
    cr_assert_eq(reason, SZ_REASON_allowed); /* a miss writes nothing */
    cr_assert(sz_reject_cache_get(cache, fact_fp(1, 1, 1), 7, T(1), &reason));
    cr_assert_eq(reason, SZ_REASON_invalid_token);
    sz_reject_cache_free(&cache);
    cr_assert_null(cache);
    sz_reject_cache_free(&cache);
}

Test(reject, every_reason_comes_back)
{
    struct sz_reject_cache *cache = sz_reject_cache_new(100);

    for (unsigned r = 0; r < SZ_REASON_COUNT; r++) {
        enum sz_reason reason = SZ_REASON_COUNT;
        sz_reject_cache_put(cache, fact_fp(1, 1, 1), UINT64_MAX, (enum sz_reason)r, T(1), T(100));
        cr_assert(sz_reject_cache_get(cache, fact_fp(1, 1, 1), UINT64_MAX, T(99), &reason));
        cr_assert_eq((unsigned)reason, r);
    }
    sz_reject_cache_free(&cache);
}

Test(reject, ends_at_the_exact_instant)
{
    struct sz_reject_cache *cache = sz_reject_cache_new(100);
    struct sz_cache_stats stats;
    enum sz_reason reason;

    sz_reject_cache_put(cache, fact_fp(1, 1, 1), 7, SZ_REASON_wrong_issuer, T(1), T(100));
    cr_assert(sz_reject_cache_get(cache, fact_fp(1, 1, 1), 7, T(99), &reason));
    cr_assert_not(sz_reject_cache_get(cache, fact_fp(1, 1, 1), 7, T(100), &reason));
    cr_assert_not(sz_reject_cache_get(cache, fact_fp(1, 1, 1), 7, T(99), &reason)); /* gone for good */
    sz_reject_cache_stats(cache, &stats);
    cr_assert_eq(stats.expired, 1);
    cr_assert_eq(stats.hits, 1);
    cr_assert_eq(stats.lookups, 3);
    sz_reject_cache_free(&cache);
}

Test(reject, a_spray_of_garbage_stays_within_its_memory)
{
    struct sz_reject_cache *cache = sz_reject_cache_new(1000);
    struct sz_cache_stats stats;
    uint64_t seed = 5;

    for (size_t i = 0; i < 100000; i++) {
        struct sz_fingerprint fp = {{{fact_random(&seed), fact_random(&seed)}}};
        sz_reject_cache_put(cache, fp, 7, SZ_REASON_invalid_token, T(1), T(100));
    }
    sz_reject_cache_stats(cache, &stats);
    cr_assert_eq(stats.entries, 1000);
    cr_assert_eq(stats.capacity, 1000);
    cr_assert_eq(stats.evictions, 99000);
    cr_assert_leq(stats.bytes, 90000);
    sz_reject_cache_flush(cache);
    sz_reject_cache_stats(cache, &stats);
    cr_assert_eq(stats.entries, 0);
    sz_reject_cache_free(&cache);
}

/* L1 for decisions: what comes out is what was put in under the same key, until its end. */
#include <criterion/criterion.h>

#include "cache/decision_table.h"
#include "subzero/decision.h"

static const struct sz_mono NOW = {5000000};
static struct sz_decision_table *table;

static void set_up(void)
{
    table = sz_decision_table_new(20);
}

static void tear_down(void)
{
    sz_decision_table_free(&table);
    cr_assert_null(table);
}

TestSuite(decision_table, .init = set_up, .fini = tear_down);

static struct sz_hash128 key_of(uint64_t n) /* all in one set */
{
    return (struct sz_hash128){{n, n * UINT64_C(0x9e3779b97f4a7c15)}};
}

static bool put(uint64_t n, bool allowed, int64_t ttl_ms)
{
    return sz_decision_table_put(table, 0, key_of(n), NOW, sz_after(NOW, SZ_MS(ttl_ms)),
                                 (struct sz_decision){allowed, SZ_AUTHZ_FROM_OPENFGA});
}

/* 1 allowed, 0 denied, -1 not there. */
static int get(uint64_t n, int64_t later_ms)
{
    struct sz_decision d;
    if (!sz_decision_table_get(table, 0, key_of(n), sz_after(NOW, SZ_MS(later_ms)), &d))
        return -1;
    cr_assert_eq(d.source, SZ_AUTHZ_FROM_OPENFGA);
    return d.allowed ? 1 : 0;
}

Test(decision_table, capacity_has_bounds)
{
    cr_assert_null(sz_decision_table_new(0));
    cr_assert_null(sz_decision_table_new(SZ_DECISIONS_MAX + 1));
}

Test(decision_table, an_entry_takes_at_most_32_bytes)
{
    struct sz_decision_table *large = sz_decision_table_new(SZ_DECISIONS_MAX);
    struct sz_cache_stats s;
    sz_decision_table_stats(large, &s);
    cr_assert_geq(s.capacity, SZ_DECISIONS_MAX);
    cr_assert_leq(s.bytes, s.capacity * 32);
    sz_decision_table_free(&large);
}

Test(decision_table, an_empty_table_answers_nothing_not_even_the_key_of_zeros)
{
    struct sz_decision d;
    cr_assert_not(sz_decision_table_get(table, 0, (struct sz_hash128){{0, 0}}, NOW, &d));
    cr_assert_eq(get(1, 0), -1);
}

Test(decision_table, yes_and_no_until_their_end)
{
    cr_assert(put(1, true, 100));
    cr_assert(put(2, false, 50));
    cr_assert_eq(get(1, 0), 1);
    cr_assert_eq(get(2, 49), 0);
    cr_assert_eq(get(2, 50), -1);
    cr_assert_eq(get(1, 99), 1);
    cr_assert_eq(get(1, 100), -1);
    cr_assert_not(put(3, true, 0), "its end has come");
    cr_assert_eq(get(3, 0), -1);
}

Test(decision_table, half_a_key_finds_nothing)
{
    struct sz_hash128 key = key_of(7), first = {{key.w[0], key.w[1] ^ 1}}, second = {{key.w[0] ^ 1, key.w[1]}};
    struct sz_decision d;
    cr_assert(put(7, true, 100));
    cr_assert_not(sz_decision_table_get(table, 0, first, NOW, &d));
    cr_assert_not(sz_decision_table_get(table, 0, second, NOW, &d));
}

Test(decision_table, the_later_answer_replaces_the_earlier)
{
    cr_assert(put(1, true, 100));
    cr_assert(put(1, false, 200));
    cr_assert_eq(get(1, 0), 0);
    cr_assert_eq(get(1, 150), 0);
    struct sz_cache_stats s;
    sz_decision_table_stats(table, &s);
    cr_assert_eq(s.entries, 1);
}

Test(decision_table, what_is_used_outlives_what_is_not)
{
    for (uint64_t n = 1; n <= 5; n++)
        cr_assert(put(n, true, 1000));
    cr_assert_eq(get(3, 0), 1);
    for (uint64_t n = 100; n < 104; n++)
        cr_assert(put(n, true, 1000));
    cr_assert_eq(get(3, 0), 1);
    for (uint64_t n = 200; n < 300; n++) { /* used again and again while strangers pass through */
        cr_assert(put(n, true, 1000));
        cr_assert_eq(get(3, 0), 1);
    }
    struct sz_cache_stats s;
    sz_decision_table_stats(table, &s);
    cr_assert_eq(s.entries, 5);
    cr_assert_gt(s.evictions, 90);
}

Test(decision_table, what_is_over_goes_first)
{
    cr_assert(put(1, true, 10));
    for (uint64_t n = 2; n <= 5; n++)
        cr_assert(put(n, true, 1000));
    cr_assert(sz_decision_table_put(table, 0, key_of(6), sz_after(NOW, SZ_MS(20)), sz_after(NOW, SZ_MS(900)),
                                    (struct sz_decision){true, SZ_AUTHZ_FROM_OPENFGA}));
    for (uint64_t n = 2; n <= 6; n++)
        cr_assert_eq(get(n, 20), 1, "%lu", (unsigned long)n);
    struct sz_cache_stats s;
    sz_decision_table_stats(table, &s);
    cr_assert_eq(s.evictions, 0);
    cr_assert_eq(s.expired, 1);
}

Test(decision_table, flushed_is_gone)
{
    for (uint64_t n = 1; n <= 4; n++)
        cr_assert(put(n, true, 1000));
    sz_decision_table_flush(table);
    for (uint64_t n = 1; n <= 4; n++)
        cr_assert_eq(get(n, 0), -1);
    struct sz_cache_stats s;
    sz_decision_table_stats(table, &s);
    cr_assert_eq(s.entries, 0);
    cr_assert(put(1, false, 100));
    cr_assert_eq(get(1, 0), 0);
}

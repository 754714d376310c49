/* The table itself: bad hashes, torn reads, eviction, records that run on, ends.  Time is an argument. */
#include <criterion/criterion.h>
#include <errno.h>

#include "cache/table.h"
#include "facts.h"

#define WORDS   8 /* per slot: payload 4 in the first, 7 in each further one */
#define LONGEST (4 + 7 * 7)
#define T(us)   ((struct sz_mono){us})

static struct sz_table *new_table(size_t capacity)
{
    struct sz_table *table = sz_table_new(capacity, WORDS);

    cr_assert_not_null(table);
    return table;
}

static bool put(struct sz_table *table, struct sz_fingerprint fp, int64_t now, int64_t until, uint64_t value, size_t n)
{
    uint64_t payload[SZ_DESC_WORDS_MAX + 1];

    for (size_t i = 0; i < n; i++)
        payload[i] = value + i;
    return sz_table_put(table, fp, T(now), T(until), payload, n, false);
}

/* The first payload word, 0 when it is not there; checks the others. */
static uint64_t get(struct sz_table *table, struct sz_fingerprint fp, bool touch)
{
    uint64_t payload[SZ_DESC_WORDS_MAX];
    struct sz_table_seat seat;

    if (!sz_table_find(table, WORDS, fp, &seat))
        return 0;
    sz_table_payload(&seat, WORDS, payload);
    cr_assert(sz_table_same(&seat));
    for (size_t i = 1; i < sz_desc_words(seat.seen); i++)
        cr_assert_eq(payload[i], payload[0] + i);
    if (touch)
        sz_table_touch(&seat);
    return payload[0];
}

static struct sz_cache_stats stats_of(struct sz_table *table)
{
    struct sz_cache_stats stats;

    sz_table_stats(table, &stats);
    return stats;
}

Test(table, capacity_out_of_range_is_refused)
{
    const size_t bad[] = {0, SZ_TABLE_CAPACITY_MAX + 1, SIZE_MAX};

    for (size_t i = 0; i < SZ_COUNT(bad); i++) {
        errno = 0;
        cr_assert_null(sz_table_new(bad[i], WORDS));
        cr_assert_eq(errno, EINVAL);
    }
    sz_table_free(NULL);
}

Test(table, capacity_is_rounded_up_to_whole_sets)
{
    const struct {
        size_t asked, got;
    } rows[] = {{1, 8}, {8, 8}, {9, 16}, {50000, 50000}, {50001, 50008}, {500000, 500000}};

    for (size_t i = 0; i < SZ_COUNT(rows); i++) {
        struct sz_table *table = new_table(rows[i].asked);
        cr_assert_eq(stats_of(table).capacity, rows[i].got);
        sz_table_free(table);
    }
}

Test(table, one_set_one_tag_tells_fingerprints_apart)
{
    struct sz_table *table = new_table(1000);

    for (uint32_t n = 0; n < SZ_TABLE_WAYS; n++) /* the worst hash there is */
        cr_assert(put(table, fact_fp(7, 9, n), 1, 100, 1000 + 100 * n, 2));
    for (uint32_t n = 0; n < SZ_TABLE_WAYS; n++)
        cr_assert_eq(get(table, fact_fp(7, 9, n), false), 1000 + 100 * n);
    cr_assert_eq(get(table, fact_fp(7, 9, 77), false), 0);
    sz_table_free(table);
}

Test(table, all_but_one_bit_of_a_fingerprint_is_no_hit)
{
    struct sz_table *table = new_table(1);
    struct sz_fingerprint fp = {{{0x1234567890abcdef, 0xfedcba0987654321}}};

    cr_assert(put(table, fp, 1, 100, 5, 1));
    for (unsigned bit = 0; bit < 128; bit++) {
        struct sz_fingerprint other = fp;
        other.h.w[bit / 64] ^= UINT64_C(1) << bit % 64;
        cr_assert_eq(get(table, other, false), 0, "bit %u", bit);
    }
    cr_assert_eq(get(table, fp, false), 5);
    cr_assert_eq(get(table, (struct sz_fingerprint){{{0, 0}}}, false), 0);
    sz_table_free(table);
}

Test(table, fingerprint_of_zeros_and_of_ones)
{
    const struct sz_fingerprint fps[] = {{{{0, 0}}}, {{{UINT64_MAX, UINT64_MAX}}}};
    struct sz_table *table = new_table(50000);

    for (size_t i = 0; i < 2; i++) {
        cr_assert_eq(get(table, fps[i], false), 0);
        cr_assert(put(table, fps[i], 1, 100, 5 + i, 1));
        cr_assert_eq(get(table, fps[i], false), 5 + i);
    }
    sz_table_free(table);
}

Test(table, a_reader_notices_whatever_happens_to_its_slot)
{
    const struct sz_fingerprint fp = fact_fp(1, 1, 1);
    struct sz_table *table = new_table(8);
    struct sz_table_seat seat;

    cr_assert(put(table, fp, 1, 100, 10, 4));
    cr_assert(sz_table_find(table, WORDS, fp, &seat));
    cr_assert(sz_table_same(&seat));
    cr_assert(put(table, fp, 1, 100, 20, 4)); /* replaced by its own kind */
    cr_assert_not(sz_table_same(&seat));

    cr_assert(sz_table_find(table, WORDS, fp, &seat));
    sz_table_drop(table, fp);
    cr_assert_not(sz_table_same(&seat));

    cr_assert(put(table, fp, 1, 100, 30, 4));
    cr_assert(sz_table_find(table, WORDS, fp, &seat));
    sz_table_flush(table);
    cr_assert_not(sz_table_same(&seat));

    cr_assert(put(table, fp, 1, 100, 40, 4));
    cr_assert(sz_table_find(table, WORDS, fp, &seat));
    cr_assert(put(table, fact_fp(1, 2, 2), 1, 100, 50, LONGEST)); /* takes the whole set */
    cr_assert_not(sz_table_same(&seat));
    cr_assert_eq(get(table, fp, false), 0);
    cr_assert_eq(get(table, fact_fp(1, 2, 2), false), 50);
    sz_table_free(table);
}

Test(table, the_seat_of_another_record_ends_nothing)
{
    const struct sz_fingerprint fp = fact_fp(1, 1, 1);
    struct sz_table *table = new_table(8);
    struct sz_table_seat seat;

    cr_assert(put(table, fp, 1, 100, 10, 1));
    cr_assert(sz_table_find(table, WORDS, fp, &seat));
    cr_assert(put(table, fp, 1, 100, 20, 1));
    cr_assert_not(sz_table_end(table, &seat, SZ_TABLE_EXPIRED)); /* what was read as expired is no longer there */
    cr_assert_eq(get(table, fp, false), 20);
    cr_assert_eq(stats_of(table).expired, 0);
    sz_table_free(table);
}

Test(table, a_long_record_ends_when_one_of_its_slots_is_taken)
{
    struct sz_table *table = new_table(8);
    struct sz_table_seat seat;

    cr_assert(put(table, fact_fp(1, 1, 0), 1, 100, 1000, LONGEST));
    cr_assert(sz_table_find(table, WORDS, fact_fp(1, 1, 0), &seat));
    cr_assert(put(table, fact_fp(1, 1, 1), 1, 100, 2000, 1));
    cr_assert_not(sz_table_same(&seat));
    cr_assert_eq(get(table, fact_fp(1, 1, 0), false), 0);
    cr_assert_eq(get(table, fact_fp(1, 1, 1), false), 2000);
    cr_assert_eq(stats_of(table).evictions, 1);
    cr_assert_eq(stats_of(table).entries, 1);
    sz_table_free(table);
}

Test(table, words_of_a_long_record_are_never_taken_for_descriptors)
{
    struct sz_table *table = new_table(8);

    for (uint32_t n = 0; n < SZ_TABLE_WAYS; n++) /* all tags set, and left behind */
        cr_assert(put(table, fact_fp(1, 1, n), 1, 100, 100 * (n + 1), 1));
    cr_assert(put(table, fact_fp(1, 1, 99), 1, 100, UINT64_MAX / 2, LONGEST));
    for (uint32_t n = 0; n < SZ_TABLE_WAYS; n++)
        cr_assert_eq(get(table, fact_fp(1, 1, n), false), 0);
    cr_assert_eq(get(table, fact_fp(1, 1, 99), false), UINT64_MAX / 2);
    sz_table_free(table);
}

Test(table, every_length_up_to_the_whole_set_and_not_one_word_more)
{
    struct sz_table *table = new_table(8);

    for (size_t n = 1; n <= LONGEST; n++) {
        cr_assert(put(table, fact_fp(0, 3, (uint32_t)n), 1, 100, 5000, n), "%zu words", n);
        cr_assert_eq(get(table, fact_fp(0, 3, (uint32_t)n), false), 5000, "%zu words", n);
    }
    cr_assert_not(put(table, fact_fp(0, 3, 1000), 1, 100, 5000, LONGEST + 1));
    cr_assert_eq(get(table, fact_fp(0, 3, 1000), false), 0);
    cr_assert_eq(get(table, fact_fp(0, 3, LONGEST), false), 5000); /* and it pushed out nobody */
    cr_assert_eq(stats_of(table).too_large, 1);
    sz_table_free(table);
}

Test(table, a_busy_set_skips_the_put_and_serves_readers)
{
    const struct sz_fingerprint fp = fact_fp(1, 1, 1);
    struct sz_table *table = new_table(8);

    cr_assert(put(table, fp, 1, 100, 10, 1));
    atomic_store(&table->sets[0].locked, 1);
    cr_assert_not(put(table, fact_fp(1, 1, 2), 1, 100, 20, 1));
    cr_assert_eq(stats_of(table).busy, 1);
    cr_assert_eq(get(table, fp, false), 10);
    sz_table_drop(table, fp); /* must not depend on the lock: what was revoked has to go */
    cr_assert_eq(get(table, fp, false), 0);
    atomic_store(&table->sets[0].locked, 0);
    cr_assert(put(table, fact_fp(1, 1, 2), 1, 100, 20, 1));
    sz_table_free(table);
}

Test(table, a_put_that_is_already_over_keeps_nothing)
{
    struct sz_table *table = new_table(8);

    cr_assert_not(put(table, fact_fp(1, 1, 1), 100, 100, 10, 1));
    cr_assert_not(put(table, fact_fp(1, 1, 1), 100, 99, 10, 1));
    cr_assert_not(put(table, fact_fp(1, 1, 1), 100, INT64_MIN, 10, 1));
    cr_assert_eq(get(table, fact_fp(1, 1, 1), false), 0);
    cr_assert_eq(stats_of(table).inserts, 0);
    sz_table_free(table);
}

Test(table, expired_records_go_first)
{
    struct sz_table *table = new_table(8);

    for (uint32_t n = 0; n < SZ_TABLE_WAYS; n++)
        cr_assert(put(table, fact_fp(1, 1, n), 1, n == 5 ? 50 : 100, 100 + n, 1));
    for (uint32_t n = 0; n < SZ_TABLE_WAYS; n++)
        get(table, fact_fp(1, 1, n), true);
    cr_assert(put(table, fact_fp(1, 1, 99), 50, 100, 999, 1)); /* at the exact instant of its end */
    for (uint32_t n = 0; n < SZ_TABLE_WAYS; n++)
        cr_assert_eq(get(table, fact_fp(1, 1, n), false), n == 5 ? 0 : 100 + n);
    cr_assert_eq(stats_of(table).expired, 1);
    cr_assert_eq(stats_of(table).evictions, 0);
    sz_table_free(table);
}

Test(table, a_used_record_outlives_those_that_came_once)
{
    struct sz_table *table = new_table(8);

    cr_assert(put(table, fact_fp(1, 1, 0), 1, 100, 7777, 1));
    for (uint32_t n = 1; n < 1000; n++) { /* a scan through the set, 125 times its size */
        cr_assert_eq(get(table, fact_fp(1, 1, 0), true), 7777, "gone after %u", n);
        cr_assert(put(table, fact_fp(1, 1, n), 1, 100, n, 1));
    }
    sz_table_free(table);
}

Test(table, when_all_are_used_old_use_is_forgotten)
{
    struct sz_table *table = new_table(8);

    for (uint32_t n = 0; n < SZ_TABLE_WAYS; n++) {
        cr_assert(put(table, fact_fp(1, 1, n), 1, 100, 100 + n, 1));
        get(table, fact_fp(1, 1, n), true);
    }
    for (uint32_t n = 100; n < 100 + SZ_TABLE_WAYS; n++) /* nobody asks for the first eight again */
        cr_assert(put(table, fact_fp(1, 1, n), 1, 100, n, 1));
    for (uint32_t n = 0; n < SZ_TABLE_WAYS; n++)
        cr_assert_eq(get(table, fact_fp(1, 1, n), false), 0);
    sz_table_free(table);
}

Test(table, a_long_record_takes_the_cheapest_run)
{
    struct sz_table *table = new_table(8);

    for (uint32_t n = 0; n < SZ_TABLE_WAYS; n++) {
        cr_assert(put(table, fact_fp(1, 1, n), 1, 100, 100 + n, 1));
        if (n != 4 && n != 5)
            get(table, fact_fp(1, 1, n), true);
    }
    cr_assert(put(table, fact_fp(1, 1, 99), 1, 100, 999, 4 + 1)); /* two slots: those not used */
    for (uint32_t n = 0; n < SZ_TABLE_WAYS; n++)
        cr_assert_eq(get(table, fact_fp(1, 1, n), false), n == 4 || n == 5 ? 0 : 100 + n);
    sz_table_free(table);
}

Test(table, drop_takes_one_and_flush_all)
{
    struct sz_table *table = new_table(1000);

    for (uint32_t n = 0; n < 100; n++)
        cr_assert(put(table, fact_fp(n * 40000000, 1, n), 1, 100, 1 + n, 1));
    sz_table_drop(table, fact_fp(0, 1, 0));
    sz_table_drop(table, fact_fp(0, 1, 0)); /* twice is fine */
    sz_table_drop(table, fact_fp(0, 1, 12345));
    cr_assert_eq(stats_of(table).entries, 99);
    cr_assert_eq(get(table, fact_fp(0, 1, 0), false), 0);
    cr_assert_eq(get(table, fact_fp(40000000, 1, 1), false), 2);
    sz_table_flush(table);
    cr_assert_eq(stats_of(table).entries, 0);
    for (uint32_t n = 0; n < 100; n++)
        cr_assert_eq(get(table, fact_fp(n * 40000000, 1, n), false), 0);
    cr_assert(put(table, fact_fp(0, 1, 0), 1, 100, 3, 1)); /* and it goes on */
    cr_assert_eq(get(table, fact_fp(0, 1, 0), false), 3);
    sz_table_free(table);
}

Test(table, memory_is_what_the_capacity_says)
{
    struct sz_table *table = sz_table_new(50000, 32);

    cr_assert_not_null(table);
    cr_assert_leq(stats_of(table).bytes, 13600000);
    sz_table_free(table);
}

/* The index alone: nothing is ever missed, whatever was put before it, and rebuilds drop what they are not given. */
#include <criterion/criterion.h>

#include "cache/revocation_index.h"
#include "unit/cache/facts.h"

static struct sz_revocation_index ix;

static void setup(void)
{
    sz_crypto_init();
    sz_revocation_index_init(&ix, 1000);
}

static void teardown(void)
{
    sz_revocation_index_fini(&ix);
}

TestSuite(revocation_index, .init = setup, .fini = teardown);

Test(revocation_index, full_to_the_brim_it_finds_all_and_nothing_else)
{
    uint64_t state = 1;
    uint64_t names[1000];
    int64_t before;
    for (size_t i = 0; i < 1000; i++) {
        names[i] = i < 300 ? i + 1 : fact_random(&state) | 1; /* small numbers lie close together */
        cr_assert_not(sz_revocation_index_find(&ix, names[i], &before));
        sz_revocation_index_put(&ix, names[i], (int64_t)i);
    }
    for (size_t i = 0; i < 1000; i++) {
        cr_assert(sz_revocation_index_find(&ix, names[i], &before), "%zu", i);
        cr_assert_eq(before, (int64_t)i);
    }
    for (size_t i = 0; i < 100000; i++)
        cr_assert_not(sz_revocation_index_find(&ix, fact_random(&state) & ~UINT64_C(1), &before) && before > 300);
}

Test(revocation_index, times_only_grow)
{
    int64_t before;
    sz_revocation_index_put(&ix, 7, 100);
    sz_revocation_index_put(&ix, 7, 50);
    cr_assert(sz_revocation_index_find(&ix, 7, &before) && before == 100);
    sz_revocation_index_put(&ix, 7, INT64_MAX);
    cr_assert(sz_revocation_index_find(&ix, 7, &before) && before == INT64_MAX);
    cr_assert_eq(ix.n, 1);
}

Test(revocation_index, a_rebuild_keeps_what_it_is_given)
{
    int64_t before;
    for (uint64_t round = 0; round < 10; round++) {
        for (uint64_t i = 0; i < 500; i++)
            sz_revocation_index_put(&ix, 1 + round * 1000 + i, 1);
        sz_revocation_index_begin(&ix);
        for (uint64_t i = 0; i < 500; i += 2)
            sz_revocation_index_keep(&ix, 1 + round * 1000 + i, 2);
        cr_assert(sz_revocation_index_find(&ix, 2 + round * 1000, &before), "until the swap");
        sz_revocation_index_swap(&ix);
        cr_assert_not(sz_revocation_index_find(&ix, 2 + round * 1000, &before));
        cr_assert(sz_revocation_index_find(&ix, 1 + round * 1000, &before) && before == 2);
        cr_assert_eq(ix.n, 250);
        sz_revocation_index_begin(&ix);
        sz_revocation_index_swap(&ix);
        cr_assert_eq(ix.n, 0);
    }
}

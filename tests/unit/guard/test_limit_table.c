/* The table of states: exact when threads race, bounded, and what it gives up when it is full. */
#include <criterion/criterion.h>
#include <pthread.h>
#include <stdatomic.h>

#include "subzero/crypto.h"
#include "subzero/limit.h"

#define NOW UINT64_C(5000000)

static struct sz_limit_table *table;
static struct sz_limit_rule rule;

static void setup(void)
{
    sz_crypto_init();
}

static uint64_t take(unsigned key, uint64_t now)
{
    return sz_limit_table_take(table, sz_slice(&key, sizeof(key)), &rule, now, 1, NULL);
}

static atomic_uint admitted;

static void *racer(void *arg)
{
    (void)arg;
    for (unsigned i = 0; i < 50000; i++)
        atomic_fetch_add(&admitted, (unsigned)take(i % 5, NOW));
    return NULL;
}

Test(limit_table, racing_threads_admit_exactly_the_capacity, .init = setup)
{
    pthread_t threads[4];
    table = sz_limit_table_new(1024);
    cr_assert_eq(sz_limit_bucket(1000, 0, SZ_SEC(1), 1, &rule), 0);
    for (size_t i = 0; i < SZ_COUNT(threads); i++)
        cr_assert_eq(pthread_create(&threads[i], NULL, racer, NULL), 0);
    for (size_t i = 0; i < SZ_COUNT(threads); i++)
        pthread_join(threads[i], NULL);
    cr_expect_eq(atomic_load(&admitted), 5 * 1000);
    sz_limit_table_free(&table);
}

Test(limit_table, keys_do_not_share_a_bucket, .init = setup)
{
    table = sz_limit_table_new(65536);
    cr_assert_eq(sz_limit_bucket(1, 0, SZ_SEC(1), 1, &rule), 0);
    for (unsigned i = 0; i < 10000; i++)
        cr_expect_eq(take(i, NOW), 1);
    unsigned again = 0;
    for (unsigned i = 0; i < 10000; i++)
        again += (unsigned)take(i, NOW);
    cr_expect_lt(again, 10, "%u were given up in a table that is not full", again);
    sz_limit_table_free(&table);
}

Test(limit_table, a_flood_of_keys_does_not_give_up_the_heavy_ones, .init = setup)
{
    struct sz_limit_table_look look;
    table = sz_limit_table_new(1024);
    cr_assert_eq(sz_limit_bucket(100, 1, SZ_SEC(1), 1, &rule), 0);
    for (unsigned i = 0; i < 120; i++)
        take(0, NOW);
    cr_expect_eq(take(0, NOW), 0);
    for (unsigned i = 1; i < 1000000; i++)
        take(i, NOW);
    cr_expect_eq(take(0, NOW), 0, "the flood emptied the bucket's memory");
    sz_limit_table_look(table, &look);
    cr_expect_gt(look.given_up, 900000);
    cr_expect_leq(look.bytes, 64 * 1024);
    sz_limit_table_free(&table);
}

Test(limit_table, what_is_over_is_replaced_and_not_counted, .init = setup)
{
    struct sz_limit_table_look look;
    table = sz_limit_table_new(7);
    cr_assert_eq(sz_limit_bucket(1, 1, SZ_SEC(1), 1, &rule), 0);
    for (unsigned i = 0; i < 1000; i++)
        cr_expect_eq(take(i, NOW + i * UINT64_C(1000000)), 1);
    sz_limit_table_look(table, &look);
    cr_expect_eq(look.given_up, 0);
    sz_limit_table_free(&table);
}

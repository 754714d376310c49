/* Which url takes the next request.  Time is an argument. */
#include <criterion/criterion.h>

#include "edge/upstream_health.h"

static const struct sz_mono t0 = {1000000};

static struct sz_mono at_ms(int64_t ms)
{
    return sz_after(t0, SZ_MS(ms));
}

Test(upstream_health, three_in_a_row_eject_for_ten_seconds)
{
    struct sz_health h[2] = {0};

    cr_assert_not(sz_health_failed(h, 2, 0, t0));
    cr_assert_not(sz_health_failed(h, 2, 0, t0));
    cr_assert(sz_health_failed(h, 2, 0, t0));
    cr_assert_not(sz_health_usable(&h[0], t0));
    cr_assert_not(sz_health_usable(&h[0], at_ms(9999)));
    cr_assert(sz_health_usable(&h[0], at_ms(10000)));
    cr_assert(sz_health_failed(h, 2, 0, at_ms(10001)), "the row goes on: the fourth ejects again");
}

Test(upstream_health, a_success_ends_the_row)
{
    struct sz_health h[2] = {0};

    for (int i = 0; i < 10; i++) {
        cr_assert_not(sz_health_failed(h, 2, 1, t0));
        cr_assert_not(sz_health_failed(h, 2, 1, t0));
        sz_health_ok(&h[1]);
    }
    cr_assert(sz_health_usable(&h[1], t0));
}

Test(upstream_health, the_last_url_stays)
{
    struct sz_health one[1] = {0}, two[2] = {0};

    for (int i = 0; i < 10; i++)
        cr_assert_not(sz_health_failed(one, 1, 0, t0));
    cr_assert(sz_health_usable(&one[0], t0));
    for (int i = 0; i < 3; i++)
        (void)sz_health_failed(two, 2, 0, t0);
    for (int i = 0; i < 10; i++)
        cr_assert_not(sz_health_failed(two, 2, 1, t0));
    cr_assert(sz_health_usable(&two[1], t0));
}

Test(upstream_health, round_robin_skips_ejected_and_tried)
{
    struct sz_health h[3] = {0};
    unsigned turn = 0;

    for (size_t i = 0; i < 6; i++)
        cr_assert_eq(sz_health_pick(h, 3, &turn, 0, t0), i % 3);
    for (int i = 0; i < 3; i++)
        (void)sz_health_failed(h, 3, 1, t0);
    size_t counts[3] = {0};
    for (size_t i = 0; i < 6; i++)
        counts[sz_health_pick(h, 3, &turn, 0, t0)]++;
    cr_assert(counts[0] == 3 && counts[1] == 0 && counts[2] == 3, "the others share evenly");
    cr_assert_eq(sz_health_pick(h, 3, &turn, 1 << 0, t0), 2);
    cr_assert_eq(sz_health_pick(h, 3, &turn, 1 << 0 | 1 << 2, t0), 1, "an ejected one is better than none");
    cr_assert_eq(sz_health_pick(h, 3, &turn, 7, t0), 3, "all were tried");
    cr_assert_eq(sz_health_pick(h, 1, &turn, 0, t0), 0);
    cr_assert_eq(sz_health_pick(h, 1, &turn, 1, t0), 1);
}

Test(upstream_health, turns_wrap)
{
    struct sz_health h[3] = {0};
    unsigned turn = UINT32_MAX;
    cr_assert_lt(sz_health_pick(h, 3, &turn, 0, t0), 3);
    cr_assert_lt(sz_health_pick(h, 3, &turn, 0, t0), 3);
}

/*
 * Token bucket and sliding window against a second, slower description of the same thing, on generated traffic; what
 * has to hold exactly; and the edges.
 */
#include <criterion/criterion.h>
#include <errno.h>

#include "subzero/limit.h"

#define T0 UINT64_C(1700000000000000) /* some microsecond */

static uint64_t seed = 88172645463325252;

static uint64_t next(uint64_t below)
{
    seed ^= seed << 13, seed ^= seed >> 7, seed ^= seed << 17;
    return seed % below;
}

/* ---- the reference: 128 bits, no shortcuts ----------------------------------------------------------------------- */

struct reference {
    bool window;
    unsigned __int128 capacity, cost, tokens, per; /* micro-tokens that come back in `per` us; or requests, ms */
    unsigned __int128 level, at, number, current, previous;
};

static bool reference_bucket(struct reference *r, uint64_t now)
{
    unsigned __int128 level = r->level + (now > r->at ? now - r->at : 0) * r->tokens / r->per;
    if (level > r->capacity)
        level = r->capacity;
    if (level < r->cost)
        return false;
    r->level = level - r->cost;
    r->at = now > r->at ? now : r->at;
    return true;
}

static bool reference_window(struct reference *r, uint64_t now)
{
    unsigned __int128 ms = now / 1000, number = ms / r->per, elapsed = ms % r->per;
    if (number > r->number) {
        r->previous = number == r->number + 1 ? r->current : 0;
        r->current = 0;
        r->number = number;
    } else if (number < r->number) {
        elapsed = 0;
    }
    if ((r->current + r->cost - 1) * r->per + r->previous * (r->per - elapsed) >= r->capacity * r->per)
        return false;
    r->current += r->cost;
    return true;
}

static bool reference(struct reference *r, uint64_t now)
{
    return r->window ? reference_window(r, now) : reference_bucket(r, now);
}

/* ---- traffic ----------------------------------------------------------------------------------------------------- */

static void generate(struct sz_limit_rule *rule, struct reference *r)
{
    uint64_t capacity = 1 + next(50), cost = 1 + next(capacity < 3 ? capacity : 3);
    *r = (struct reference){.window = next(2) != 0, .cost = cost, .capacity = capacity, .at = T0};
    if (r->window) {
        uint64_t ms = 1 + next(3000);
        cr_assert_eq(sz_limit_window(capacity, SZ_MS(ms), cost, rule), 0);
        r->per = ms;
    } else {
        uint64_t tokens = next(20), us = 1000 * (1 + next(5000));
        cr_assert_eq(sz_limit_bucket(capacity, tokens, (struct sz_span){(int64_t)us}, cost, rule), 0);
        r->cost *= 1000000, r->capacity *= 1000000, r->tokens = (unsigned __int128)tokens * 1000000, r->per = us;
        r->level = r->capacity;
    }
}

/* What is told about the next request is true: at `retry` it fits, and not before. */
static void check_retry(const struct sz_limit_rule *rule, const struct sz_limit_state *state, uint64_t now)
{
    struct sz_limit_view view;
    struct sz_limit_state then = *state;
    uint64_t step = rule->kind == SZ_LIMIT_WINDOW ? 1000 : 1;
    sz_limit_look(rule, state, now, &view);
    cr_assert_eq(view.retry.us == 0, sz_limit_take(rule, &then, now, 1) == 1);
    if (view.retry.us == 0 || view.retry.us == INT64_MAX)
        return;
    uint64_t at = now + (uint64_t)view.retry.us;
    then = *state;
    cr_assert_eq(sz_limit_take(rule, &then, at - step, 1), 0, "fits before it was said to");
    cr_assert_eq(sz_limit_take(rule, &then, at, 1), 1, "does not fit when it was said to");
}

static void check_over(const struct sz_limit_rule *rule, const struct sz_limit_state *state)
{
    uint64_t over = sz_limit_over(rule, state);
    struct sz_limit_view kept, fresh;
    if (over == UINT64_MAX)
        return;
    struct sz_limit_state none = sz_limit_fresh(rule, over);
    sz_limit_look(rule, state, over, &kept);
    sz_limit_look(rule, &none, over, &fresh);
    cr_assert_eq(kept.left, fresh.left, "forgetting it is not lossless");
    cr_assert_eq(kept.reset.us, 0);
}

Test(limit, decides_as_the_reference_does_on_generated_traffic)
{
    for (unsigned round = 0; round < 2000; round++) {
        struct sz_limit_rule rule;
        struct reference r;
        generate(&rule, &r);
        uint64_t now = T0, span = 1 + next(200000);
        struct sz_limit_state state = sz_limit_fresh(&rule, now);
        for (unsigned i = 0; i < 200; i++) {
            now += next(50) == 0 ? next(5000000) : next(span);
            if (next(40) == 0)
                now -= next(20000); /* clocks are set back */
            check_retry(&rule, &state, now);
            bool yes = reference(&r, now);
            struct sz_limit_state before = state;
            cr_assert_eq(sz_limit_take(&rule, &state, now, 1) == 1, yes, "round %u, request %u", round, i);
            if (!yes)
                cr_assert(before.a == state.a && before.b == state.b, "a denial changed something");
            check_over(&rule, &state);
        }
    }
}

Test(limit, several_at_once_are_as_many_as_one_after_the_other)
{
    for (unsigned round = 0; round < 5000; round++) {
        struct sz_limit_rule rule;
        struct reference r;
        generate(&rule, &r);
        struct sz_limit_state one = sz_limit_fresh(&rule, T0), many = one;
        uint64_t now = T0;
        for (unsigned i = 0; i < 20; i++) {
            uint64_t want = 1 + next(30), singles = 0;
            now += next(400000);
            while (singles < want && sz_limit_take(&rule, &one, now, 1) == 1)
                singles++;
            cr_assert_eq(sz_limit_take(&rule, &many, now, want), singles);
            cr_assert_eq(one.b, many.b);
            cr_assert(one.a == many.a || singles == 0);
        }
    }
}

/* ---- what has to hold exactly --------------------------------------------------------------------------------------
 */

Test(limit, under_sustained_demand_a_bucket_admits_its_capacity_and_its_rate)
{
    static const uint64_t rates[] = {1, 2, 5};
    for (size_t k = 0; k < SZ_COUNT(rates); k++) {
        struct sz_limit_rule rule, emergency;
        cr_assert_eq(sz_limit_bucket(10, rates[k], SZ_SEC(1), 1, &rule), 0);
        cr_assert_eq(sz_limit_emergency(rates[k], SZ_SEC(1), 1, &emergency), 0);
        struct sz_limit_state a = sz_limit_fresh(&rule, T0), b = sz_limit_fresh(&emergency, T0);
        uint64_t admitted = 0, in_emergency = 0;
        for (uint64_t us = 0; us <= 60000000; us += 1000) {
            admitted += sz_limit_take(&rule, &a, T0 + us, 1);
            in_emergency += sz_limit_take(&emergency, &b, T0 + us, 1);
        }
        cr_expect_eq(admitted, 10 + 60 * rates[k]);
        cr_expect_eq(in_emergency, 61 * rates[k], "one second of its rate deep");
    }
}

Test(limit, a_window_never_admits_more_than_its_limit_in_any_aligned_window)
{
    struct sz_limit_rule rule;
    cr_assert_eq(sz_limit_window(100, SZ_SEC(1), 1, &rule), 0);
    struct sz_limit_state state = sz_limit_fresh(&rule, T0);
    uint64_t in_window = 0, number = 0;
    for (uint64_t us = 0; us < 30000000; us += 777) {
        uint64_t now = T0 + us;
        if (now / 1000000 != number)
            number = now / 1000000, in_window = 0;
        in_window += sz_limit_take(&rule, &state, now, 1);
        cr_assert_leq(in_window, 100);
    }
}

Test(limit, a_bucket_that_is_not_refilled_stays_empty)
{
    struct sz_limit_rule rule;
    struct sz_limit_view view;
    cr_assert_eq(sz_limit_bucket(3, 0, SZ_SEC(1), 1, &rule), 0);
    struct sz_limit_state state = sz_limit_fresh(&rule, T0);
    cr_expect_eq(sz_limit_take(&rule, &state, T0, 10), 3);
    cr_expect_eq(sz_limit_take(&rule, &state, T0 + UINT64_C(86400) * 365 * 1000000, 1), 0);
    cr_expect_eq(sz_limit_over(&rule, &state), UINT64_MAX);
    sz_limit_look(&rule, &state, T0, &view);
    cr_expect_eq(view.retry.us, INT64_MAX);
    cr_expect_eq(view.left, 0);
}

Test(limit, refill_is_a_reduced_fraction)
{
    struct sz_limit_rule rule;
    cr_assert_eq(sz_limit_bucket(100, 100, SZ_SEC(60), 1, &rule), 0);
    cr_expect_eq(rule.n, 5);
    cr_expect_eq(rule.d, 3);
    cr_expect_eq(rule.fill, 60000000);
    cr_expect_lt(rule.largest, SZ_LIMIT_PRODUCT_MAX);
}

Test(limit, what_would_not_be_exact_is_refused)
{
    struct sz_limit_rule rule;
    cr_expect_eq(sz_limit_bucket(1000000000, 1, SZ_SEC(86400), 1, &rule), -ERANGE);
    cr_expect_eq(sz_limit_bucket(1000000000, 999999937, (struct sz_span){86399999999}, 1, &rule), -ERANGE);
    cr_expect_eq(sz_limit_bucket(1, 1000000000, (struct sz_span){1}, 1, &rule), 0);
    cr_expect_eq(sz_limit_window(1000000000, SZ_SEC(86400), 1, &rule), -ERANGE);
    cr_expect_eq(sz_limit_window(100000, SZ_SEC(86400), 1, &rule), 0);
    cr_expect_lt(rule.largest, SZ_LIMIT_PRODUCT_MAX);
}

Test(limit, emergencies_below_one_a_second_hold_one)
{
    struct sz_limit_rule rule;
    cr_assert_eq(sz_limit_emergency(1, SZ_SEC(60), 1, &rule), 0);
    struct sz_limit_state state = sz_limit_fresh(&rule, T0);
    cr_expect_eq(sz_limit_take(&rule, &state, T0, 5), 1);
    cr_expect_eq(sz_limit_take(&rule, &state, T0 + 59999999, 5), 0);
    cr_expect_eq(sz_limit_take(&rule, &state, T0 + 600000000, 5), 1, "nothing is saved up");
}

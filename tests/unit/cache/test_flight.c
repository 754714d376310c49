/* Single flight on two fake loops: who calls, who is told, when, and what happens to those who leave. */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>

#include "fake/loop.h"
#include "subzero/flight.h"

#define NOT_YET INT32_MIN

struct waiter {
    struct sz_flight_wait wait;
    int status, calls, turn;
    char got[32];
    struct waiter *then; /* joins the same key when this one is told */
};

static struct sz_flights *flights;
static struct sz_loop *one, *two;
static int turns; /* of being told, counted */

static void set_up(void)
{
    const struct sz_flights_conf conf = {.flights = 4, .waiters = 100, .result = 16, .age = SZ_SEC(10)};

    flights = sz_flights_new(&conf);
    one = fake_loop_new(0);
    two = fake_loop_new(1);
}

static void tear_down(void)
{
    fake_loop_free(&one);
    fake_loop_free(&two);
    sz_flights_free(&flights);
    cr_assert_null(flights);
}

static struct sz_hash128 key_of(uint64_t n)
{
    return (struct sz_hash128){{n, n}};
}

static struct sz_flights_stats stats(void)
{
    struct sz_flights_stats s;

    sz_flights_stats(flights, &s);
    return s;
}

static int join(struct waiter *w, uint64_t key, struct sz_loop *loop, struct sz_span patience, struct sz_flight **lead);

static void on_done(struct sz_flight_wait *wait, int status, struct sz_slice result)
{
    struct waiter *w = SZ_CONTAINER(wait, struct waiter, wait);
    struct sz_flight *lead;

    w->status = status;
    w->calls++;
    w->turn = turns++;
    snprintf(w->got, sizeof(w->got), "%.*s", SZ_FMT(result));
    if (w->then == NULL)
        return;
    cr_assert_eq(join(w->then, 1, one, SZ_SEC(5), &lead), SZ_FLIGHT_LEAD);
    sz_flight_finish(&lead, 7, SZ_S("again"));
}

static int join(struct waiter *w, uint64_t key, struct sz_loop *loop, struct sz_span patience, struct sz_flight **lead)
{
    w->wait.on_done = on_done;
    w->status = NOT_YET;
    return sz_flight_join(flights, key_of(key), loop, sz_after(sz_loop_now(loop), patience), &w->wait, lead);
}

static void settle(void)
{
    fake_loop_settle(one);
    fake_loop_settle(two);
}

TestSuite(flight, .init = set_up, .fini = tear_down);

Test(flight, a_hundred_misses_are_one_call)
{
    struct waiter w[100] = {0};
    struct sz_flight *lead, *none;

    cr_assert_eq(join(&w[0], 1, one, SZ_SEC(5), &lead), SZ_FLIGHT_LEAD);
    for (int i = 1; i < 100; i++) {
        cr_assert_eq(join(&w[i], 1, i % 2 == 0 ? one : two, SZ_SEC(5), &none), 0);
        cr_assert_null(none);
    }
    sz_flight_finish(&lead, 3, SZ_S("identity"));
    cr_assert_null(lead);
    for (int i = 0; i < 100; i++)
        cr_assert_eq(w[i].calls, 0); /* not inside finish */
    settle();
    for (int i = 0; i < 100; i++) {
        cr_assert_eq(w[i].calls, 1);
        cr_assert_eq(w[i].status, 3);
        cr_assert_str_eq(w[i].got, "identity");
    }
    cr_assert_eq(stats().led, 1);
    cr_assert_eq(stats().joined, 99);
    cr_assert_eq(stats().flying, 0);
    cr_assert_eq(stats().waiting, 0);
    fake_loop_run_for(one, SZ_SEC(60)); /* no timer is left behind */
    cr_assert_eq(w[0].calls, 1);
}

Test(flight, the_leader_leaves_and_the_others_are_served)
{
    struct waiter w[2] = {0};
    struct sz_flight *lead, *none;

    cr_assert_eq(join(&w[0], 1, one, SZ_SEC(5), &lead), SZ_FLIGHT_LEAD);
    cr_assert_eq(join(&w[1], 1, two, SZ_SEC(5), &none), 0);
    sz_flight_leave(&w[0].wait);
    sz_flight_leave(&w[0].wait); /* twice is fine */
    sz_flight_finish(&lead, 0, SZ_S("x"));
    settle();
    cr_assert_eq(w[0].calls, 0);
    cr_assert_eq(w[1].calls, 1);
}

Test(flight, all_leave_and_the_flight_still_ends)
{
    struct waiter w[2] = {0};
    struct sz_flight *lead, *none;

    cr_assert_eq(join(&w[0], 1, one, SZ_SEC(5), &lead), SZ_FLIGHT_LEAD);
    sz_flight_leave(&w[0].wait);
    cr_assert_eq(stats().flying, 1);
    cr_assert_eq(stats().waiting, 0);
    cr_assert_eq(join(&w[1], 1, two, SZ_SEC(5), &none), 0); /* still one call, though nobody was waiting */
    sz_flight_leave(&w[1].wait);
    sz_flight_finish(&lead, 0, SZ_S("x"));
    settle();
    cr_assert_eq(w[0].calls + w[1].calls, 0);
    cr_assert_eq(stats().flying, 0);
}

Test(flight, who_leaves_with_the_message_on_its_way_is_not_told)
{
    struct waiter *w = sz_xcalloc(2, sizeof(*w));
    struct sz_flight *lead, *none;

    cr_assert_eq(join(&w[0], 1, one, SZ_SEC(5), &lead), SZ_FLIGHT_LEAD);
    cr_assert_eq(join(&w[1], 1, two, SZ_SEC(5), &none), 0);
    sz_flight_finish(&lead, 0, SZ_S("x"));
    sz_flight_leave(&w[0].wait);
    sz_flight_leave(&w[1].wait);
    free(w); /* as a request's memory goes: ASan sees a late touch */
    settle();
    cr_assert_eq(stats().waiting, 0);
}

Test(flight, each_has_its_own_deadline)
{
    struct waiter w[3] = {0};
    struct sz_flight *lead, *none;

    cr_assert_eq(join(&w[0], 1, one, SZ_MS(100), &lead), SZ_FLIGHT_LEAD); /* the leader's is the shortest */
    cr_assert_eq(join(&w[1], 1, one, SZ_MS(200), &none), 0);
    cr_assert_eq(join(&w[2], 1, two, SZ_MS(300), &none), 0);
    fake_loop_run_for(one, SZ_MS(99));
    cr_assert_eq(w[0].calls, 0);
    fake_loop_run_for(one, SZ_MS(1));
    cr_assert_eq(w[0].calls, 1);
    cr_assert_eq(w[0].status, -ETIMEDOUT);
    cr_assert_str_eq(w[0].got, "");
    cr_assert_eq(w[1].calls, 0);
    sz_flight_finish(&lead, 0, SZ_S("x"));
    settle();
    cr_assert_eq(w[0].calls, 1); /* once */
    cr_assert_eq(w[1].status, 0);
    cr_assert_eq(w[2].status, 0);
    cr_assert_eq(stats().late, 1);
}

Test(flight, a_deadline_that_has_passed_is_met_at_once)
{
    struct waiter w = {0};
    struct sz_flight *lead;

    cr_assert_eq(join(&w, 1, one, SZ_MS(-5), &lead), SZ_FLIGHT_LEAD);
    cr_assert_eq(w.calls, 0);
    fake_loop_run_for(one, SZ_MS(1));
    cr_assert_eq(w.status, -ETIMEDOUT);
    sz_flight_finish(&lead, 0, SZ_NONE);
    settle();
    cr_assert_eq(w.calls, 1);
}

Test(flight, without_a_deadline_it_waits)
{
    struct waiter w = {.wait.on_done = on_done};
    struct sz_flight *lead;

    cr_assert_eq(sz_flight_join(flights, key_of(1), one, SZ_NEVER, &w.wait, &lead), SZ_FLIGHT_LEAD);
    cr_assert_eq(fake_loop_next_timer(one).us, SZ_NEVER.us);
    sz_flight_finish(&lead, -EIO, SZ_NONE);
    settle();
    cr_assert_eq(w.status, -EIO);
}

Test(flight, keys_that_share_a_bucket_are_apart)
{
    struct waiter w[2] = {0};
    struct sz_flight *lead[2];

    w[0].wait.on_done = w[1].wait.on_done = on_done;
    for (int i = 0; i < 2; i++)
        cr_assert_eq(
            sz_flight_join(flights, (struct sz_hash128){{64, (uint64_t)i}}, one, SZ_NEVER, &w[i].wait, &lead[i]),
            SZ_FLIGHT_LEAD);
    sz_flight_finish(&lead[1], 1, SZ_S("b"));
    settle();
    cr_assert_eq(w[0].calls, 0);
    cr_assert_str_eq(w[1].got, "b");
    sz_flight_finish(&lead[0], 0, SZ_S("a"));
    settle();
    cr_assert_str_eq(w[0].got, "a");
}

Test(flight, no_more_flights_than_there_is_room_for)
{
    struct waiter w[6] = {0};
    struct sz_flight *lead[4], *none;

    for (unsigned i = 0; i < 4; i++)
        cr_assert_eq(join(&w[i], i, one, SZ_SEC(5), &lead[i]), SZ_FLIGHT_LEAD);
    cr_assert_eq(join(&w[4], 99, one, SZ_SEC(5), &none), SZ_FLIGHT_FULL);
    cr_assert_null(none);
    cr_assert_null(w[4].wait.seat);
    sz_flight_leave(&w[4].wait);                            /* no-op */
    cr_assert_eq(join(&w[5], 3, one, SZ_SEC(5), &none), 0); /* those that fly take passengers still */
    cr_assert_eq(stats().full, 1);
    sz_flight_finish(&lead[0], 0, SZ_NONE);
    cr_assert_eq(join(&w[4], 99, one, SZ_SEC(5), &lead[0]), SZ_FLIGHT_LEAD);
    for (unsigned i = 0; i < 4; i++)
        sz_flight_finish(&lead[i], 0, SZ_NONE);
    settle();
}

Test(flight, no_more_waiters_than_there_is_room_for_and_leaving_makes_room)
{
    static struct waiter w[101];
    struct sz_flight *lead, *none;

    cr_assert_eq(join(&w[0], 1, one, SZ_SEC(5), &lead), SZ_FLIGHT_LEAD);
    for (int i = 1; i < 100; i++)
        cr_assert_eq(join(&w[i], 1, two, SZ_SEC(5), &none), 0);
    cr_assert_eq(join(&w[100], 1, one, SZ_SEC(5), &none), SZ_FLIGHT_FULL);
    for (int i = 0; i < 1000; i++) { /* clients that come and go */
        sz_flight_leave(&w[50].wait);
        cr_assert_eq(join(&w[50], 1, two, SZ_SEC(5), &none), 0);
    }
    cr_assert_eq(stats().waiting, 100);
    sz_flight_finish(&lead, 0, SZ_NONE);
    settle();
    cr_assert_eq(stats().waiting, 0);
    cr_assert_eq(w[100].calls, 0);
}

Test(flight, a_flight_that_hangs_is_given_up_by_the_next_miss)
{
    struct waiter w[3] = {0};
    struct sz_flight *old, *new, *none;

    cr_assert_eq(join(&w[0], 1, one, SZ_SEC(60), &old), SZ_FLIGHT_LEAD);
    fake_loop_run_for(one, SZ_US(9999999));
    cr_assert_eq(join(&w[1], 1, one, SZ_SEC(60), &none), 0);
    fake_loop_run_for(one, SZ_US(1)); /* its age to the microsecond */
    cr_assert_eq(join(&w[2], 1, one, SZ_SEC(60), &new), SZ_FLIGHT_LEAD);
    cr_assert_eq(stats().given_up, 1);
    cr_assert_eq(stats().flying, 2); /* the lost one still counts: memory is bounded whatever the work does */
    sz_flight_finish(&new, 0, SZ_S("new"));
    settle();
    cr_assert_eq(w[0].calls, 0);
    cr_assert_str_eq(w[2].got, "new");
    sz_flight_finish(&old, 0, SZ_S("old"));
    settle();
    cr_assert_str_eq(w[0].got, "old");
    cr_assert_str_eq(w[1].got, "old");
}

Test(flight, on_done_may_join_again)
{
    struct waiter second = {0}, first = {.then = &second};
    struct sz_flight *lead;

    cr_assert_eq(join(&first, 1, one, SZ_SEC(5), &lead), SZ_FLIGHT_LEAD);
    sz_flight_finish(&lead, 0, SZ_S("x"));
    settle(); /* the second finish comes from the waiter's own loop, by a deferred call */
    cr_assert_eq(first.calls, 1);
    cr_assert_eq(second.status, 7);
    cr_assert_str_eq(second.got, "again");
}

Test(flight, told_in_the_order_of_coming)
{
    static struct waiter w[10];
    struct sz_flight *lead, *none;

    for (int i = 0; i < 10; i++)
        cr_assert_eq(join(&w[i], 1, one, SZ_SEC(5), i == 0 ? &lead : &none), i == 0 ? SZ_FLIGHT_LEAD : 0);
    sz_flight_finish(&lead, 0, SZ_S("0123456789abcdef")); /* as large as a result may be */
    settle();
    for (int i = 0; i < 10; i++) {
        cr_assert_str_eq(w[i].got, "0123456789abcdef");
        cr_assert_eq(w[i].turn, i);
    }
}

Test(flight, what_is_left_at_the_end_is_freed)
{
    static struct waiter w[3];
    struct sz_flight *lead[2], *none;

    cr_assert_eq(join(&w[0], 1, one, SZ_SEC(5), &lead[0]), SZ_FLIGHT_LEAD); /* never finished */
    cr_assert_eq(join(&w[1], 1, two, SZ_SEC(5), &none), 0);
    cr_assert_eq(join(&w[2], 2, two, SZ_SEC(5), &lead[1]), SZ_FLIGHT_LEAD);
    sz_flight_finish(&lead[1], 0, SZ_S("x")); /* finished, never delivered: the loops are gone first */
}

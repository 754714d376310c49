/*
 * loop.c: what callbacks may do to the things that called them.  On the fake, whose turns
 * and time are exact; test_loop_h2o.c holds the real one to the same.
 */
#include <criterion/criterion.h>
#include <stdlib.h>

#include "fake/loop.h"

static struct sz_loop *loop;

static void setup(void)
{
    loop = fake_loop_new(3);
}

static void teardown(void)
{
    fake_loop_free(&loop);
}

TestSuite(loop, .init = setup, .fini = teardown);

/* A thing with one of each, that counts its calls. */
struct thing {
    struct sz_timer timer;
    struct sz_defer defer;
    struct sz_msg msg;
    struct thing *other;
    int calls;
    uint64_t turn;
    struct sz_mono at;
};

static struct thing a, b, c;
static struct thing *order[64];
static int n_order;

static void record(struct thing *t)
{
    t->calls++;
    t->turn = sz_loop_turn(loop);
    t->at = sz_loop_now(loop);
    cr_assert_lt(n_order, 64);
    order[n_order++] = t;
}

static struct thing *of_timer(struct sz_timer *timer)
{
    return SZ_CONTAINER(timer, struct thing, timer);
}

static void fire(struct sz_timer *timer)
{
    cr_assert_not(sz_timer_armed(timer));
    record(of_timer(timer));
}

static void fire_and_rearm_for_the_past(struct sz_timer *timer)
{
    record(of_timer(timer));
    if (of_timer(timer)->calls < 5)
        sz_timer_start(loop, timer, (struct sz_mono){1});
}

static void fire_and_cancel_other(struct sz_timer *timer)
{
    record(of_timer(timer));
    sz_timer_cancel(loop, &of_timer(timer)->other->timer);
    sz_timer_cancel(loop, timer);
}

Test(loop, a_timer_rearmed_for_the_past_waits_for_the_next_turn)
{
    a.timer.on_fire = fire_and_rearm_for_the_past;
    sz_timer_start(loop, &a.timer, sz_after(sz_loop_now(loop), SZ_MS(5)));
    fake_loop_run_once(loop);
    cr_expect_eq(a.calls, 0);
    fake_loop_advance(loop, SZ_MS(5));
    fake_loop_run_once(loop);
    cr_expect_eq(a.calls, 1);
    fake_loop_run_once(loop); /* a microsecond ahead: not without time passing */
    cr_expect_eq(a.calls, 1);
    fake_loop_settle(loop);
    cr_expect_eq(a.calls, 5);
    cr_expect_not(sz_timer_armed(&a.timer));
}

Test(loop, a_timer_cancelled_by_another_of_the_same_moment_does_not_fire)
{
    a.timer.on_fire = b.timer.on_fire = fire_and_cancel_other;
    a.other = &b;
    b.other = &a;
    sz_timer_start(loop, &a.timer, sz_after(sz_loop_now(loop), SZ_MS(1)));
    sz_timer_start(loop, &b.timer, sz_after(sz_loop_now(loop), SZ_MS(1)));
    fake_loop_run_for(loop, SZ_SEC(1));
    cr_expect_eq(a.calls + b.calls, 1);
    cr_expect_not(sz_timer_armed(&a.timer));
    cr_expect_not(sz_timer_armed(&b.timer));
}

Test(loop, timers_are_never_early_and_in_order)
{
    static struct thing many[60];
    struct sz_mono start = sz_loop_now(loop);
    for (int i = 0; i < 60; i++) {
        many[i].timer.on_fire = fire;
        sz_timer_start(loop, &many[i].timer, sz_after(start, SZ_US((i * 37 % 60) * 1000 + 1)));
    }
    fake_loop_run_for(loop, SZ_SEC(1));
    cr_assert_eq(n_order, 60);
    for (int i = 0; i < 60; i++) {
        cr_expect_eq(order[i]->calls, 1);
        cr_expect_eq(order[i]->at.us, start.us + i * 1000 + 1);
    }
}

Test(loop, steps_of_the_system_clock_move_no_timer)
{
    a.timer.on_fire = fire;
    sz_timer_start(loop, &a.timer, sz_after(sz_loop_now(loop), SZ_SEC(10)));
    struct sz_wall wall = sz_loop_wall(loop);
    fake_loop_set_wall(loop, (struct sz_wall){wall.us + SZ_SEC(3600).us});
    fake_loop_run_for(loop, SZ_SEC(9));
    cr_expect_eq(a.calls, 0);
    fake_loop_set_wall(loop, (struct sz_wall){wall.us - SZ_SEC(3600).us});
    cr_expect_eq(sz_loop_wall(loop).us, wall.us - SZ_SEC(3600).us);
    fake_loop_run_for(loop, SZ_SEC(1));
    cr_expect_eq(a.calls, 1);
}

static void fire_and_rearm(struct sz_timer *timer)
{
    record(of_timer(timer));
    if (of_timer(timer)->calls < 3)
        sz_timer_start(loop, timer, sz_after(sz_loop_now(loop), SZ_SEC(10)));
}

Test(loop, rearming_in_the_callback_keeps_the_interval)
{
    struct sz_mono start = sz_loop_now(loop);
    a.timer.on_fire = fire_and_rearm;
    sz_timer_start(loop, &a.timer, sz_after(start, SZ_SEC(99)));
    sz_timer_start(loop, &a.timer, sz_after(start, SZ_SEC(10))); /* armed twice is armed once */
    fake_loop_run_for(loop, SZ_SEC(100));
    cr_expect_eq(a.calls, 3);
    cr_expect_eq(a.at.us, sz_after(start, SZ_SEC(30)).us);
}

static struct thing *of_defer(struct sz_defer *defer)
{
    return SZ_CONTAINER(defer, struct thing, defer);
}

static void run(struct sz_defer *defer)
{
    record(of_defer(defer));
}

static void run_and_defer_other(struct sz_defer *defer)
{
    record(of_defer(defer));
    sz_defer_start(loop, &of_defer(defer)->other->defer);
}

static void run_and_cancel_other(struct sz_defer *defer)
{
    record(of_defer(defer));
    sz_defer_cancel(&of_defer(defer)->other->defer);
    sz_defer_cancel(defer);
}

Test(loop, a_defer_from_a_defer_runs_in_the_next_turn)
{
    a.defer.on_run = run_and_defer_other;
    b.defer.on_run = run;
    a.other = &b;
    sz_defer_start(loop, &a.defer);
    sz_defer_start(loop, &a.defer); /* queued once */
    fake_loop_run_once(loop);
    cr_expect_eq(a.calls, 1);
    cr_expect_eq(b.calls, 0);
    fake_loop_run_once(loop);
    cr_expect_eq(b.calls, 1);
    cr_expect_eq(b.turn, a.turn + 1);
    fake_loop_run_once(loop);
    cr_expect_eq(a.calls + b.calls, 2);
}

Test(loop, a_defer_that_defers_itself_is_one_call_a_turn)
{
    a.defer.on_run = run_and_defer_other;
    a.other = &a;
    sz_defer_start(loop, &a.defer);
    for (int i = 1; i <= 10; i++) {
        fake_loop_run_once(loop);
        cr_expect_eq(a.calls, i);
    }
    sz_defer_cancel(&a.defer);
    fake_loop_run_once(loop);
    cr_expect_eq(a.calls, 10);
}

Test(loop, defers_run_in_order_and_cancel_each_other)
{
    a.defer.on_run = run_and_cancel_other;
    b.defer.on_run = run;
    c.defer.on_run = run;
    for (int last = 0; last < 2; last++) { /* the cancelled one in the middle, then at the end */
        a.calls = b.calls = c.calls = n_order = 0;
        a.other = last ? &c : &b;
        sz_defer_start(loop, &a.defer);
        sz_defer_start(loop, &b.defer);
        sz_defer_start(loop, &c.defer);
        fake_loop_run_once(loop);
        cr_expect_eq(a.calls, 1);
        cr_expect_eq(a.other->calls, 0);
        cr_expect_eq(n_order, 2);
        cr_expect_eq(order[0], &a);
        sz_defer_start(loop, &b.defer); /* the ring is whole */
        fake_loop_run_once(loop);
        cr_expect_eq(order[2], &b);
    }
    sz_defer_start(loop, &b.defer);
    sz_defer_cancel(&b.defer);
    sz_defer_cancel(&b.defer);
    b.calls = 0;
    fake_loop_run_once(loop);
    cr_expect_eq(b.calls, 0);
}

static void receive(struct sz_msg *msg, struct sz_loop *to)
{
    cr_expect_eq(to, loop);
    cr_expect_eq(sz_loop_current(), loop);
    record(SZ_CONTAINER(msg, struct thing, msg));
}

static void receive_and_answer(struct sz_msg *msg, struct sz_loop *to)
{
    struct thing *t = SZ_CONTAINER(msg, struct thing, msg);
    record(t);
    sz_loop_post(to, &t->other->msg);
    sz_loop_post(to, msg); /* the receiver's from delivery on */
    msg->on_msg = receive;
}

Test(loop, messages_come_in_order_and_may_be_posted_again)
{
    a.msg.on_msg = receive_and_answer;
    b.msg.on_msg = receive;
    c.msg.on_msg = receive;
    a.other = &c;
    sz_loop_post(loop, &a.msg);
    sz_loop_post(loop, &b.msg);
    fake_loop_run_once(loop);
    cr_assert_eq(n_order, 2);
    fake_loop_run_once(loop);
    struct thing *const want[] = {&a, &b, &c, &a};
    cr_assert_eq(n_order, 4);
    cr_expect_arr_eq(order, want, sizeof(want));
    cr_expect_eq(order[3]->turn, 2);
}

static void receive_and_free(struct sz_msg *msg, struct sz_loop *to)
{
    (void)to;
    a.calls++;
    free(msg);
}

Test(loop, a_message_may_be_freed_by_its_receiver)
{
    for (int i = 0; i < 100; i++) {
        struct sz_msg *msg = sz_xcalloc(1, sizeof(*msg));
        msg->on_msg = receive_and_free;
        sz_loop_post(loop, msg);
    }
    fake_loop_run_once(loop);
    cr_expect_eq(a.calls, 100);
}

Test(loop, one_time_for_a_whole_turn)
{
    cr_expect_eq(sz_loop_index(loop), 3);
    cr_expect_null(sz_loop_current());
    a.timer.on_fire = fire;
    b.defer.on_run = run;
    c.msg.on_msg = receive;
    sz_timer_start(loop, &a.timer, sz_after(sz_loop_now(loop), SZ_MS(1)));
    sz_defer_start(loop, &b.defer);
    sz_loop_post(loop, &c.msg);
    fake_loop_advance(loop, SZ_MS(1));
    fake_loop_run_once(loop);
    struct thing *const want[] = {&c, &a, &b};
    cr_assert_eq(n_order, 3);
    cr_expect_arr_eq(order, want, sizeof(want));
    for (int i = 0; i < 3; i++) {
        cr_expect_eq(order[i]->at.us, sz_loop_now(loop).us);
        cr_expect_eq(order[i]->turn, 1);
    }
    cr_expect_null(sz_loop_current());
}

/*
 * loop_h2o.c: the real loop.  Time passes here for real, so these bound from below only
 * (never early) and end by themselves; what can be exact is in test_loop.c.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "subzero/loop.h"

static struct sz_loop *loop;

static void setup(void)
{
    loop = sz_loop_new(7);
    cr_assert_not_null(loop);
}

static void teardown(void)
{
    sz_loop_free(&loop);
    cr_expect_null(loop);
}

TestSuite(loop_h2o, .init = setup, .fini = teardown, .timeout = 60);

static void stop(struct sz_timer *timer)
{
    (void)timer;
    sz_loop_stop(sz_loop_current());
}

static void stop_after(struct sz_timer *timer, struct sz_span span)
{
    timer->on_fire = stop;
    sz_timer_start(loop, timer, sz_after(sz_mono_read(), span));
}

static struct sz_mono last;
static int fired;

static void fire_in_order(struct sz_timer *timer)
{
    cr_assert_leq(last.us, timer->at.us);
    cr_assert_geq(sz_mono_read().us, timer->at.us);
    last = timer->at;
    fired++;
}

Test(loop_h2o, ten_thousand_timers_in_order_and_never_early)
{
    enum { N = 10000 };
    static struct sz_timer timers[N], end = {0};
    struct sz_mono start = sz_mono_read();
    for (int i = 0; i < N; i++) {
        timers[i].on_fire = fire_in_order;
        sz_timer_start(loop, &timers[i], sz_after(start, SZ_US((i * 7919 % N) * 10)));
    }
    for (int i = 0; i < N; i += 10)
        sz_timer_cancel(loop, &timers[i]);
    stop_after(&end, SZ_MS(110));
    sz_loop_run(loop);
    cr_expect_eq(fired, N - N / 10);
}

static void check_current(struct sz_defer *defer)
{
    (void)defer;
    cr_expect_eq(sz_loop_current(), loop);
    cr_expect_eq(sz_loop_index(loop), 7);
    cr_expect_not_null(sz_loop_native(loop));
    fired++;
}

static void defer_again(struct sz_defer *defer)
{
    fired++;
    sz_defer_start(sz_loop_current(), defer);
}

Test(loop_h2o, does_not_sleep_while_a_defer_is_queued)
{
    struct sz_defer defer = {.on_run = defer_again};
    struct sz_timer end = {0};
    sz_defer_start(loop, &defer);
    stop_after(&end, SZ_MS(20));
    uint64_t turns = sz_loop_turn(loop);
    sz_loop_run(loop);
    sz_defer_cancel(&defer);
    cr_expect_gt(fired, 20);
    cr_expect_geq(sz_loop_turn(loop) - turns, (uint64_t)fired - 1);
    cr_expect_null(sz_loop_current());
}

Test(loop_h2o, a_stop_before_the_run_ends_it_and_delivers_what_waits)
{
    struct sz_defer defer = {.on_run = check_current};
    sz_defer_start(loop, &defer);
    sz_loop_stop(loop);
    sz_loop_run(loop);
    cr_expect_eq(fired, 1);
    struct sz_timer end = {0};
    stop_after(&end, SZ_MS(1));
    sz_loop_run(loop); /* and it can run again */
}

/* Four threads post a numbered row each; every row arrives in order, nothing is lost. */
enum { SENDERS = 4, EACH = 20000 };

struct numbered {
    struct sz_msg msg;
    int sender, number;
};

static int seen[SENDERS], total;

static void on_numbered(struct sz_msg *msg, struct sz_loop *to)
{
    struct numbered *m = SZ_CONTAINER(msg, struct numbered, msg);
    cr_assert_eq(m->number, seen[m->sender]++);
    free(m);
    if (++total == SENDERS * EACH)
        sz_loop_stop(to);
}

static void *send_row(void *arg)
{
    for (int i = 0; i < EACH; i++) {
        struct numbered *m = sz_xcalloc(1, sizeof(*m));
        *m = (struct numbered){{.on_msg = on_numbered}, (int)(intptr_t)arg, i};
        sz_loop_post(loop, &m->msg);
    }
    return NULL;
}

Test(loop_h2o, messages_of_four_threads)
{
    pthread_t threads[SENDERS];
    for (intptr_t i = 0; i < SENDERS; i++)
        cr_assert_eq(pthread_create(&threads[i], NULL, send_row, (void *)i), 0);
    sz_loop_run(loop);
    for (int i = 0; i < SENDERS; i++) {
        pthread_join(threads[i], NULL);
        cr_expect_eq(seen[i], EACH);
    }
}

static void *stop_from_outside(void *arg)
{
    (void)arg;
    sz_loop_stop(loop);
    return NULL;
}

Test(loop_h2o, a_stop_from_another_thread_wakes_the_sleeper)
{
    pthread_t thread;
    cr_assert_eq(pthread_create(&thread, NULL, stop_from_outside, NULL), 0);
    sz_loop_run(loop); /* no timer: would sleep forever */
    pthread_join(thread, NULL);
}

static __thread bool dawdles;
static atomic_bool dawdling;
static int refused; /* errno of a wake-up that came too late */

/* In place of libc's: whoever dawdles is held up between its message and the wake-up. */
ssize_t write(int fd, const void *bytes, size_t n)
{
    if (dawdles) {
        dawdling = true;
        usleep(50000);
    }
    ssize_t written = syscall(SYS_write, fd, bytes, n);
    if (dawdles && written < 0)
        refused = errno;
    return written;
}

static void on_late(struct sz_msg *msg, struct sz_loop *to)
{
    (void)msg;
    (void)to;
    fired++;
}

static void stop_when_it_dawdles(struct sz_defer *defer)
{
    if (dawdling)
        sz_loop_stop(sz_loop_current());
    else
        sz_defer_start(sz_loop_current(), defer);
}

static struct sz_loop *short_lived;

static void *post_late(void *msg)
{
    dawdles = true;
    sz_loop_post(short_lived, msg);
    return NULL;
}

/* A loop that ends takes a message whose sender has not woken it yet; it is there until the sender has. */
Test(loop_h2o, whoever_is_about_to_wake_it_finds_it_there)
{
    pthread_t thread;
    struct sz_msg msg = {.on_msg = on_late};
    struct sz_defer busy = {.on_run = stop_when_it_dawdles};
    short_lived = sz_loop_new(1);
    cr_assert_not_null(short_lived);
    sz_defer_start(short_lived, &busy);
    cr_assert_eq(pthread_create(&thread, NULL, post_late, &msg), 0);
    sz_loop_run(short_lived);
    cr_expect_eq(fired, 1);
    sz_loop_free(&short_lived);
    pthread_join(thread, NULL);
    cr_expect_eq(refused, 0, "it woke a descriptor that was closed: errno %d", refused);
}

static void on_signal(int number)
{
    (void)number;
}

static void fire_and_signal(struct sz_timer *timer)
{
    raise(SIGUSR1);
    if (++fired == 20) {
        sz_loop_stop(sz_loop_current());
        return;
    }
    sz_timer_start(sz_loop_current(), timer, sz_after(sz_mono_read(), SZ_MS(1)));
}

static void *bombard(void *arg)
{
    for (int i = 0; i < 50; i++) {
        pthread_kill(*(pthread_t *)arg, SIGUSR1);
        usleep(200);
    }
    return NULL;
}

Test(loop_h2o, signals_end_no_loop)
{
    struct sigaction action = {.sa_handler = on_signal};
    sigaction(SIGUSR1, &action, NULL);
    struct sz_timer timer = {.on_fire = fire_and_signal};
    sz_timer_start(loop, &timer, sz_after(sz_mono_read(), SZ_MS(1)));
    pthread_t self = pthread_self(), thread;
    cr_assert_eq(pthread_create(&thread, NULL, bombard, &self), 0);
    sz_loop_run(loop);
    pthread_join(thread, NULL);
    cr_expect_eq(fired, 20);
}

static int pair[2];
static struct sz_watch *watch;

static void echo(void *arg, int fd, unsigned events)
{
    char byte;
    cr_expect_eq(events, SZ_READ);
    cr_expect_eq(arg, pair);
    cr_expect_eq(read(fd, &byte, 1), 1);
    if (++fired == 1000) {
        sz_watch_free(&watch);
        sz_loop_stop(sz_loop_current());
        return;
    }
    cr_expect_eq(write(pair[1], &byte, 1), 1);
}

Test(loop_h2o, watches_through_the_nested_epoll)
{
    cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair), 0);
    watch = sz_watch_new(loop, pair[0], echo, pair);
    sz_watch_set(watch, SZ_READ);
    cr_assert_eq(write(pair[1], "x", 1), 1);
    sz_loop_run(loop);
    cr_expect_eq(fired, 1000);
    close(pair[0]);
    close(pair[1]);
}

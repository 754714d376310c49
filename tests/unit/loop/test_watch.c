/* watch.c: freed in its own callback, freed by a neighbour, changed in the same batch, closed too early, no room. */
#include <criterion/criterion.h>
#include <errno.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "fake/loop.h"

/* Stands in for libc's: an errno here, and the kernel is as one that has no room. */
static int refusal;

int epoll_ctl(int epoll, int op, int fd, struct epoll_event *event)
{
    if (refusal == 0 || op == EPOLL_CTL_DEL)
        return (int)syscall(SYS_epoll_ctl, epoll, op, fd, event);
    errno = refusal;
    return -1;
}

static struct sz_loop *loop;
static int pair[2], second[2];

static void setup(void)
{
    loop = fake_loop_new(0);
    cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair), 0);
    cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, second), 0);
}

static void teardown(void)
{
    fake_loop_free(&loop);
    for (int i = 0; i < 2; i++) {
        close(pair[i]);
        close(second[i]);
    }
}

TestSuite(watch, .init = setup, .fini = teardown);

struct seen {
    struct sz_watch *watch, *victim;
    int calls;
    unsigned events;
};

static void on_ready(void *arg, int fd, unsigned events)
{
    struct seen *s = arg;
    cr_expect_geq(fd, 0);
    s->calls++;
    s->events = events;
}

static void on_ready_free_self(void *arg, int fd, unsigned events)
{
    struct seen *s = arg;
    on_ready(arg, fd, events);
    sz_watch_free(&s->watch);
    cr_expect_null(s->watch);
}

static void on_ready_free_victim(void *arg, int fd, unsigned events)
{
    struct seen *s = arg;
    on_ready(arg, fd, events);
    sz_watch_free(&s->victim);
}

static void on_ready_silence_victim(void *arg, int fd, unsigned events)
{
    struct seen *s = arg;
    on_ready(arg, fd, events);
    sz_watch_set(s->victim, 0);
}

static void write_byte(int fd)
{
    cr_assert_eq(write(fd, "x", 1), 1);
}

Test(watch, freed_in_its_own_callback)
{
    struct seen s = {0};
    s.watch = sz_watch_new(loop, pair[0], on_ready_free_self, &s);
    sz_watch_set(s.watch, SZ_READ | SZ_WRITE);
    write_byte(pair[1]);
    fake_loop_run_once(loop);
    fake_loop_run_once(loop);
    cr_expect_eq(s.calls, 1);
    cr_expect_eq(s.events, SZ_READ | SZ_WRITE);
}

Test(watch, freed_or_silenced_by_a_neighbour_of_the_same_batch)
{
    for (int silence = 0; silence < 2; silence++) {
        struct seen s = {0}, t = {0};
        void (*cb)(void *, int, unsigned) = silence ? on_ready_silence_victim : on_ready_free_victim;
        struct sz_watch *one = sz_watch_new(loop, pair[0], cb, &s);
        struct sz_watch *two = sz_watch_new(loop, second[0], cb, &t);
        s.victim = two;
        t.victim = one;
        sz_watch_set(one, SZ_WRITE);
        sz_watch_set(two, SZ_WRITE);
        fake_loop_run_once(loop);
        cr_expect_eq(s.calls + t.calls, 1); /* whoever came first */
        if (silence || t.calls == 0)
            sz_watch_free(&one);
        if (silence || s.calls == 0)
            sz_watch_free(&two);
    }
}

Test(watch, level_triggered_and_nothing_when_nothing_is_wanted)
{
    struct seen s = {0};
    s.watch = sz_watch_new(loop, pair[0], on_ready, &s);
    fake_loop_run_once(loop);
    cr_expect_eq(s.calls, 0);
    sz_watch_set(s.watch, SZ_READ);
    fake_loop_run_once(loop);
    cr_expect_eq(s.calls, 0);
    write_byte(pair[1]);
    fake_loop_run_once(loop);
    fake_loop_run_once(loop); /* still unread */
    cr_expect_eq(s.calls, 2);
    cr_expect_eq(s.events, SZ_READ);
    sz_watch_set(s.watch, SZ_WRITE);
    fake_loop_run_once(loop);
    cr_expect_eq(s.events, SZ_WRITE);
    sz_watch_set(s.watch, 0);
    fake_loop_run_once(loop);
    cr_expect_eq(s.calls, 3);
    sz_watch_free(&s.watch);
    sz_watch_free(&s.watch); /* NULL: nothing */
}

Test(watch, a_hang_up_shows_as_what_is_waited_for_and_only_then)
{
    struct seen s = {0};
    s.watch = sz_watch_new(loop, pair[0], on_ready, &s);
    sz_watch_set(s.watch, SZ_READ);
    shutdown(pair[1], SHUT_RDWR);
    fake_loop_run_once(loop);
    cr_expect_eq(s.events, SZ_READ);
    sz_watch_set(s.watch, 0);
    s.calls = 0;
    fake_loop_run_once(loop);
    cr_expect_eq(s.calls, 0);
    sz_watch_set(s.watch, SZ_WRITE);
    fake_loop_run_once(loop);
    cr_expect_eq(s.events, SZ_WRITE);
    sz_watch_free(&s.watch);
}

Test(watch, more_than_one_batch)
{
    static struct seen many[200];
    static int fds[200][2];
    for (int i = 0; i < 200; i++) {
        cr_assert_eq(pipe(fds[i]), 0);
        many[i].watch = sz_watch_new(loop, fds[i][1], on_ready_free_self, &many[i]);
        sz_watch_set(many[i].watch, SZ_WRITE);
    }
    for (int turn = 0; turn < 8; turn++)
        fake_loop_run_once(loop);
    for (int i = 0; i < 200; i++) {
        cr_expect_eq(many[i].calls, 1);
        close(fds[i][0]);
        close(fds[i][1]);
    }
}

Test(watch, a_descriptor_closed_first_is_forgiven)
{
    struct seen s = {0};
    int fd = dup(pair[0]);
    s.watch = sz_watch_new(loop, fd, on_ready, &s);
    sz_watch_set(s.watch, SZ_READ);
    sz_watch_set(s.watch, 0);
    close(fd);
    sz_watch_free(&s.watch);
    fake_loop_run_once(loop);
    cr_expect_eq(s.calls, 0);
}

/* ---- a kernel that has no room ----------------------------------------------------------------------------------- */

Test(watch, asked_for_again_when_there_was_no_room)
{
    struct seen s = {0};
    s.watch = sz_watch_new(loop, pair[0], on_ready, &s);
    write_byte(pair[1]);
    refusal = ENOSPC;
    sz_watch_set(s.watch, SZ_READ);
    fake_loop_run_for(loop, SZ_MS(200));
    cr_expect_eq(s.calls, 0);
    refusal = 0;
    fake_loop_run_for(loop, SZ_MS(21));
    fake_loop_run_once(loop);
    cr_expect_geq(s.calls, 1);
    cr_expect_eq(s.events, SZ_READ);
    sz_watch_free(&s.watch);
}

/* The old events stand until the new ones are taken; what was silenced meanwhile stays silent. */
Test(watch, changed_while_there_is_no_room)
{
    struct seen s = {0};
    s.watch = sz_watch_new(loop, pair[0], on_ready, &s);
    sz_watch_set(s.watch, SZ_READ);
    refusal = ENOMEM;
    sz_watch_set(s.watch, SZ_READ | SZ_WRITE);
    fake_loop_run_once(loop);
    cr_expect_eq(s.calls, 0);
    sz_watch_set(s.watch, 0);
    refusal = 0;
    fake_loop_run_for(loop, SZ_MS(100));
    write_byte(pair[1]);
    fake_loop_run_once(loop);
    cr_expect_eq(s.calls, 0);
    sz_watch_set(s.watch, SZ_WRITE);
    fake_loop_run_once(loop);
    cr_expect_eq(s.events, SZ_WRITE);
    sz_watch_free(&s.watch);
}

Test(watch, freed_while_there_is_no_room)
{
    struct seen s = {0};
    s.watch = sz_watch_new(loop, pair[0], on_ready, &s);
    refusal = ENOSPC;
    sz_watch_set(s.watch, SZ_READ);
    sz_watch_free(&s.watch);
    refusal = 0;
    fake_loop_run_for(loop, SZ_MS(100));
    cr_expect_eq(s.calls, 0);
}

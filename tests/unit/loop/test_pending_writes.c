/* A write from a deferred call or a timer is reported at once, not when something else wakes the loop. */
#include <criterion/criterion.h>
#include <h2o.h>
#include <sys/socket.h>
#include <unistd.h>

#include "subzero/loop.h"

static struct sz_loop *loop;
static h2o_socket_t *sock;
static struct sz_timer guard, early;
static struct sz_defer defer;
static bool written, late;
static int pair[2];

static void on_written(h2o_socket_t *s, const char *err)
{
    (void)s;
    cr_assert_null(err);
    written = true;
    sz_loop_stop(loop);
}

static void write_now(void)
{
    h2o_iovec_t bytes = h2o_iovec_init(H2O_STRLIT("x"));
    h2o_socket_write(sock, &bytes, 1, on_written);
}

static void on_defer(struct sz_defer *d)
{
    (void)d;
    write_now();
}

static void on_early(struct sz_timer *timer)
{
    (void)timer;
    write_now();
}

static void on_guard(struct sz_timer *timer)
{
    (void)timer;
    late = true;
    sz_loop_stop(loop);
}

/* h2o's sockets belong to the thread that runs the loop: made in a first deferred call. */
static void on_begin(struct sz_defer *d)
{
    (void)d;
    sock = h2o_evloop_socket_create(sz_loop_native(loop), pair[0], H2O_SOCKET_FLAG_DONT_READ);
    sz_defer_start(loop, &defer);
}

static void on_begin_timer(struct sz_defer *d)
{
    (void)d;
    sock = h2o_evloop_socket_create(sz_loop_native(loop), pair[0], H2O_SOCKET_FLAG_DONT_READ);
    sz_timer_start(loop, &early, sz_after(sz_loop_now(loop), SZ_MS(5)));
}

static void run(void (*begin)(struct sz_defer *d))
{
    struct sz_defer first = {.on_run = begin};
    written = late = false;
    cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair), 0);
    loop = sz_loop_new(0);
    cr_assert_not_null(loop);
    guard = (struct sz_timer){.on_fire = on_guard};
    early = (struct sz_timer){.on_fire = on_early};
    defer = (struct sz_defer){.on_run = on_defer};
    sz_timer_start(loop, &guard, sz_after(sz_mono_read(), SZ_SEC(20)));
    sz_defer_start(loop, &first);
    sz_loop_run(loop);
    cr_expect(written && !late, "the write was reported only when the guard woke the loop");
}

Test(pending_writes, from_a_deferred_call, .timeout = 60)
{
    run(on_begin);
}

Test(pending_writes, from_a_timer, .timeout = 60)
{
    run(on_begin_timer);
}

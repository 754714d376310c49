/* A loop whose time is a variable: drives the machine of src/loop turn by turn.  See loop.h. */
#include "fake/loop.h"

#include <poll.h>
#include <stdlib.h>

#include "loop/loop.h"

enum { SETTLE_TURNS = 10000 };

struct fake_loop {
    struct sz_loop loop;
    struct sz_mono now;
    struct sz_wall wall;
};

static struct fake_loop *fake(const struct sz_loop *loop)
{
    return SZ_CONTAINER(loop, struct fake_loop, loop);
}

static void read_clock(struct sz_loop *loop)
{
    loop->now = fake(loop)->now;
    loop->wall = fake(loop)->wall;
}

struct sz_loop *fake_loop_new(unsigned index)
{
    struct fake_loop *f = aligned_alloc(SZ_CACHE_LINE, sizeof(*f));
    SZ_ASSERT(f != NULL && sz_loop_init(&f->loop, index, read_clock) == 0);
    f->now = (struct sz_mono){INT64_C(1000) * 1000000};
    f->wall = (struct sz_wall){INT64_C(1767225600) * 1000000};
    return &f->loop;
}

void fake_loop_free(struct sz_loop **loop)
{
    struct sz_loop *self = *loop;
    *loop = NULL;
    sz_loop_fini(self);
    free(fake(self));
}

void fake_loop_advance(struct sz_loop *loop, struct sz_span by)
{
    fake(loop)->now.us += by.us;
    fake(loop)->wall.us += by.us;
    loop->fresh = false;
}

void fake_loop_set_wall(struct sz_loop *loop, struct sz_wall wall)
{
    fake(loop)->wall = wall;
    loop->fresh = false;
}

static void turn(struct sz_loop *loop, int wait_ms)
{
    struct pollfd p = {.fd = loop->epoll, .events = POLLIN};
    sz_loop_turn_begin(loop);
    (void)!poll(&p, 1, wait_ms);
    sz_loop_enter(loop);
    sz_loop_dispatch(loop);
    sz_loop_turn_end(loop);
    sz_loop_enter(NULL);
}

void fake_loop_run_once(struct sz_loop *loop)
{
    turn(loop, 0);
}

void fake_loop_settle(struct sz_loop *loop)
{
    /* A timer for "at once" is armed a microsecond ahead; that much counts as due. */
    int turns = 0;
    do {
        turn(loop, 0);
        if (sz_heap_next(&loop->timers).us == fake(loop)->now.us + 1)
            fake_loop_advance(loop, SZ_US(1));
        SZ_ASSERT(++turns < SETTLE_TURNS);
    } while (sz_loop_wait_ms(loop, fake(loop)->now) == 0);
}

void fake_loop_run_for(struct sz_loop *loop, struct sz_span by)
{
    struct sz_mono end = sz_after(fake(loop)->now, by);
    fake_loop_settle(loop);
    while (sz_heap_next(&loop->timers).us <= end.us) {
        fake_loop_advance(loop, sz_between(fake(loop)->now, sz_heap_next(&loop->timers)));
        fake_loop_settle(loop);
    }
    if (fake(loop)->now.us < end.us)
        fake_loop_advance(loop, sz_between(fake(loop)->now, end));
    fake_loop_settle(loop);
}

bool fake_loop_run_until(struct sz_loop *loop, bool (*done)(void *arg), void *arg, int real_ms)
{
    struct sz_mono end = sz_after(sz_mono_read(), SZ_MS(real_ms));
    while (!done(arg)) {
        int64_t left = sz_between(sz_mono_read(), end).us / 1000;
        if (left <= 0)
            return false;
        turn(loop, sz_loop_wait_ms(loop, fake(loop)->now) == 0 ? 0 : (int)left);
    }
    return true;
}

struct sz_mono fake_loop_next_timer(const struct sz_loop *loop)
{
    return sz_heap_next(&loop->timers);
}

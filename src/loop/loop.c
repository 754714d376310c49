/*
 * The machine of a loop: its time, timers, deferred calls and messages.  Nothing here
 * waits; see loop.h for who drives it and in which order.
 *
 * The clock is read at the first question in a turn, not at its start: h2o goes from
 * waiting into callbacks without asking us, and a turn that needs no time reads none.
 */
#include "loop/loop.h"

#include <errno.h>
#include <sched.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

static __thread struct sz_loop *current;

static void ring_init(struct sz_defer *anchor)
{
    anchor->next = anchor;
    anchor->prev = &anchor->next;
}

/* With an anchor at the end, `next` is never NULL: an entry leaves a ring without knowing which. */
static void ring_leave(struct sz_defer *defer)
{
    *defer->prev = defer->next;
    defer->next->prev = defer->prev;
    defer->prev = NULL;
}

static void ring_append(struct sz_defer *anchor, struct sz_defer *defer)
{
    defer->next = anchor;
    defer->prev = anchor->prev;
    *anchor->prev = defer;
    anchor->prev = &defer->next;
}

int sz_loop_init(struct sz_loop *loop, unsigned index, void (*read_clock)(struct sz_loop *loop))
{
    memset(loop, 0, sizeof(*loop));
    atomic_init(&loop->inbox, NULL);
    atomic_init(&loop->pokes, 0);
    atomic_init(&loop->stop, false);
    loop->index = index;
    loop->read_clock = read_clock;
    ring_init(&loop->deferred);
    loop->epoll = epoll_create1(EPOLL_CLOEXEC);
    if (loop->epoll < 0)
        return -errno;
    loop->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    struct epoll_event wanted = {.events = EPOLLIN, .data.ptr = NULL};
    if (loop->wake < 0 || epoll_ctl(loop->epoll, EPOLL_CTL_ADD, loop->wake, &wanted) != 0) {
        int rc = -errno;
        if (loop->wake >= 0)
            close(loop->wake);
        close(loop->epoll);
        return rc;
    }
    return 0;
}

void sz_loop_fini(struct sz_loop *loop)
{
    while (atomic_load_explicit(&loop->pokes, memory_order_acquire) != 0)
        sched_yield();
    while (loop->deferred.next != &loop->deferred)
        ring_leave(loop->deferred.next);
    sz_heap_fini(&loop->timers);
    close(loop->wake);
    close(loop->epoll);
}

void sz_loop_enter(struct sz_loop *loop)
{
    current = loop;
}

struct sz_loop *sz_loop_current(void)
{
    return current;
}

/* Reading the clock late is invisible from outside, so the loop counts as const. */
static const struct sz_loop *with_time(const struct sz_loop *loop)
{
    if (SZ_UNLIKELY(!loop->fresh)) {
        struct sz_loop *self = (struct sz_loop *)(uintptr_t)loop;
        self->read_clock(self);
        self->fresh = true;
    }
    return loop;
}

struct sz_mono sz_loop_now(const struct sz_loop *loop)
{
    return with_time(loop)->now;
}

struct sz_wall sz_loop_wall(const struct sz_loop *loop)
{
    return with_time(loop)->wall;
}

struct sz_mono sz_loop_tick(struct sz_loop *loop)
{
    loop->fresh = false;
    return sz_loop_now(loop);
}

uint64_t sz_loop_turn(const struct sz_loop *loop)
{
    return loop->turn;
}

unsigned sz_loop_index(const struct sz_loop *loop)
{
    return loop->index;
}

void *sz_loop_native(struct sz_loop *loop)
{
    return loop->native;
}

/* A moment that has passed becomes the next one: a timer re-armed in its callback cannot fire in the same turn. */
void sz_timer_start(struct sz_loop *loop, struct sz_timer *timer, struct sz_mono at)
{
    struct sz_mono next = sz_after(sz_loop_now(loop), SZ_US(1));
    sz_heap_put(&loop->timers, timer, at.us < next.us ? next : at);
}

void sz_timer_cancel(struct sz_loop *loop, struct sz_timer *timer)
{
    sz_heap_remove(&loop->timers, timer);
}

void sz_defer_start(struct sz_loop *loop, struct sz_defer *defer)
{
    if (defer->prev == NULL)
        ring_append(&loop->deferred, defer);
}

void sz_defer_cancel(struct sz_defer *defer)
{
    if (defer->prev != NULL)
        ring_leave(defer);
}

/*
 * A loop that is awake, or ends, takes a message before its sender has woken it, and may be gone by then: sz_loop_fini
 * waits for whoever is between the two.
 */
static void begin_poke(struct sz_loop *loop)
{
    atomic_fetch_add_explicit(&loop->pokes, 1, memory_order_relaxed);
}

static void end_poke(struct sz_loop *loop)
{
    atomic_fetch_sub_explicit(&loop->pokes, 1, memory_order_release);
}

static void wake_up(struct sz_loop *loop)
{
    /* EAGAIN means that the counter is full, so the loop is awake anyway. */
    const uint64_t one = 1;
    ssize_t n;
    do {
        n = write(loop->wake, &one, sizeof(one));
    } while (n < 0 && errno == EINTR);
}

void sz_loop_post(struct sz_loop *loop, struct sz_msg *msg)
{
    begin_poke(loop);
    struct sz_msg *first = atomic_load_explicit(&loop->inbox, memory_order_relaxed);
    do {
        msg->next = first;
    } while (
        !atomic_compare_exchange_weak_explicit(&loop->inbox, &first, msg, memory_order_release, memory_order_relaxed));
    /* Whoever posts into an empty inbox wakes; the loop empties it only after it has cleared the wake-up. */
    if (first == NULL)
        wake_up(loop);
    end_poke(loop);
}

void sz_loop_stop(struct sz_loop *loop)
{
    begin_poke(loop);
    atomic_store_explicit(&loop->stop, true, memory_order_release);
    wake_up(loop);
    end_poke(loop);
}

void sz_loop_turn_begin(struct sz_loop *loop)
{
    loop->turn++;
    loop->fresh = false;
}

int32_t sz_loop_wait_ms(const struct sz_loop *loop, struct sz_mono now)
{
    if (sz_loop_is_busy(loop))
        return 0;
    int64_t at = sz_heap_next(&loop->timers).us;
    if (at <= now.us)
        return 0;
    int64_t ms = (at - now.us - 1) / 1000 + 1;
    return ms < INT32_MAX ? (int32_t)ms : INT32_MAX;
}

bool sz_loop_is_busy(const struct sz_loop *loop)
{
    return loop->deferred.next != &loop->deferred || atomic_load_explicit(&loop->inbox, memory_order_relaxed) != NULL;
}

/* The inbox holds the newest first: turned round, it is in the order of each sender. */
static struct sz_msg *take_messages(struct sz_loop *loop)
{
    struct sz_msg *newest = atomic_exchange_explicit(&loop->inbox, NULL, memory_order_acquire);
    struct sz_msg *oldest = NULL;
    while (newest != NULL) {
        struct sz_msg *next = newest->next;
        newest->next = oldest;
        oldest = newest;
        newest = next;
    }
    return oldest;
}

void sz_loop_dispatch(struct sz_loop *loop)
{
    if (sz_watch_dispatch(loop)) {
        uint64_t count;
        (void)!read(loop->wake, &count, sizeof(count)); /* EAGAIN: somebody was faster, the inbox tells */
    }
    struct sz_msg *msg = take_messages(loop);
    while (msg != NULL) {
        struct sz_msg *next = msg->next; /* msg is its receiver's from here on */
        msg->on_msg(msg, loop);
        msg = next;
    }
}

static void run_deferred(struct sz_loop *loop)
{
    if (loop->deferred.next == &loop->deferred)
        return;
    /* Taken over as a whole: what is deferred from now on waits for the next turn, behind new events. */
    struct sz_defer batch = {.next = loop->deferred.next, .prev = loop->deferred.prev};
    batch.next->prev = &batch.next;
    *batch.prev = &batch;
    ring_init(&loop->deferred);
    while (batch.next != &batch) {
        struct sz_defer *defer = batch.next;
        ring_leave(defer);
        defer->on_run(defer);
    }
}

void sz_loop_turn_end(struct sz_loop *loop)
{
    struct sz_timer *timer;
    while (loop->timers.n != 0 && (timer = sz_heap_due(&loop->timers, sz_loop_now(loop))) != NULL)
        timer->on_fire(timer);
    run_deferred(loop);
}

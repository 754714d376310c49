/*
 * Descriptors that others own (hiredis, libcurl, a signalfd), watched through one epoll
 * descriptor per loop that itself sits in the loop as a single readable descriptor.  h2o's
 * own sockets would close the descriptor with themselves, and take one writer only.
 *
 * epoll answers with pointers to watches, up to a batch at a time.  A watch freed from a
 * callback may have an answer further down the same batch, so it only dies after it.
 *
 * A kernel without memory, or a user with too many watches, is the world's fault and not ours: the watch is asked for
 * again and again, and until then it is a descriptor on which nothing happens, which every owner has a time limit for.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>

#include "loop/loop.h"

enum { BATCH = 64 };
#define RETRY SZ_MS(20)

struct sz_watch {
    struct sz_loop *loop;
    int fd;
    unsigned wanted;       /* SZ_READ | SZ_WRITE; 0 = nothing, or freed */
    unsigned held;         /* what epoll has of that; 0 = not in it */
    struct sz_timer retry; /* epoll had no room for it */
    void (*on_ready)(void *arg, int fd, unsigned events);
    void *arg;
    struct sz_watch *next_dead;
};

static void apply(struct sz_watch *watch)
{
    struct epoll_event wanted = {.data.ptr = watch};
    wanted.events = ((watch->wanted & SZ_READ) != 0 ? EPOLLIN : 0u) | ((watch->wanted & SZ_WRITE) != 0 ? EPOLLOUT : 0u);
    /* Taken out rather than set to nothing: epoll would go on reporting a hang-up. */
    int op = watch->wanted == 0 ? EPOLL_CTL_DEL : watch->held == 0 ? EPOLL_CTL_ADD : EPOLL_CTL_MOD;
    int rc = epoll_ctl(watch->loop->epoll, op, watch->fd, &wanted);
    /* Leaving is allowed to fail: a descriptor that was closed first has left by itself. */
    if (rc == 0 || op == EPOLL_CTL_DEL) {
        watch->held = watch->wanted;
        return;
    }
    SZ_ASSERT(errno == ENOMEM || errno == ENOSPC);
    sz_timer_start(watch->loop, &watch->retry, sz_after(sz_loop_now(watch->loop), RETRY));
}

static void on_retry(struct sz_timer *timer)
{
    apply(SZ_CONTAINER(timer, struct sz_watch, retry));
}

struct sz_watch *sz_watch_new(struct sz_loop *loop, int fd, void (*on_ready)(void *arg, int fd, unsigned events),
                              void *arg)
{
    struct sz_watch *watch = sz_xcalloc(1, sizeof(*watch));
    watch->loop = loop;
    watch->fd = fd;
    watch->on_ready = on_ready;
    watch->arg = arg;
    watch->retry.on_fire = on_retry;
    return watch;
}

void sz_watch_set(struct sz_watch *watch, unsigned events)
{
    if (events == watch->wanted)
        return;
    watch->wanted = events;
    sz_timer_cancel(watch->loop, &watch->retry);
    if (watch->held != watch->wanted)
        apply(watch);
}

void sz_watch_free(struct sz_watch **watch)
{
    struct sz_watch *w = *watch;
    if (w == NULL)
        return;
    *watch = NULL;
    sz_watch_set(w, 0);
    if (w->loop->dispatching) {
        w->next_dead = w->loop->dead;
        w->loop->dead = w;
    } else {
        free(w);
    }
}

static void bury(struct sz_loop *loop)
{
    while (loop->dead != NULL) {
        struct sz_watch *w = loop->dead;
        loop->dead = w->next_dead;
        free(w);
    }
}

static void deliver(struct sz_watch *watch, uint32_t happened)
{
    unsigned events = 0;
    if ((happened & (EPOLLIN | EPOLLHUP | EPOLLERR)) != 0)
        events |= SZ_READ;
    if ((happened & (EPOLLOUT | EPOLLHUP | EPOLLERR)) != 0)
        events |= SZ_WRITE;
    events &= watch->wanted; /* may have changed, or been freed, since epoll answered */
    if (events != 0)
        watch->on_ready(watch->arg, watch->fd, events);
}

bool sz_watch_dispatch(struct sz_loop *loop)
{
    struct epoll_event ready[BATCH];
    int n = epoll_wait(loop->epoll, ready, BATCH, 0);
    bool woken = false;
    loop->dispatching = true;
    for (int i = 0; i < n; i++) {
        struct sz_watch *watch = ready[i].data.ptr;
        if (watch == NULL)
            woken = true; /* the loop's own eventfd */
        else
            deliver(watch, ready[i].events);
    }
    loop->dispatching = false;
    bury(loop);
    return woken;
}

/*
 * The loop on h2o's evloop: h2o waits and serves its own sockets; everything of ours hangs
 * on one epoll descriptor among them.
 *
 * h2o's timeouts are not used for our timers: they run on wall time (a step of the system
 * clock moves them), have one duration per list, and can fire at once or forever when armed
 * from their own callback.  Ours only bound how long h2o may wait.
 *
 * h2o_evloop_run fails when a signal arrives, which is no failure, and when epoll_ctl runs
 * out of memory for one socket; it must then be called again before anything else, since it
 * has left its list of changed sockets half done.
 */
#include <errno.h>
#include <fcntl.h>
#include <h2o.h>
#include <stdlib.h>

#include "loop/loop.h"

/* libh2o-evloop was built without libuv; headers that think otherwise give every struct another size. */
_Static_assert(H2O_USE_LIBUV == 0, "compile with -DH2O_USE_LIBUV=0");
_Static_assert(sizeof(h2o_context_t) == 864, "h2o's headers do not match the library");

enum { STOP_TURNS = 64 };

static void read_clock(struct sz_loop *loop)
{
    loop->now = sz_mono_read();
    loop->wall = sz_wall_read();
}

struct sz_loop *sz_loop_new(unsigned index)
{
    struct sz_loop *loop = aligned_alloc(SZ_CACHE_LINE, sizeof(*loop));
    int rc = loop == NULL ? -ENOMEM : sz_loop_init(loop, index, read_clock);
    if (rc != 0) {
        free(loop);
        errno = -rc;
        return NULL;
    }
    loop->native = h2o_evloop_create();
    return loop;
}

void sz_loop_free(struct sz_loop **loop)
{
    struct sz_loop *self = *loop;
    if (self == NULL)
        return;
    *loop = NULL;
    h2o_evloop_destroy(self->native);
    sz_loop_fini(self);
    free(self);
}

static void on_epoll(h2o_socket_t *sock, const char *err)
{
    (void)err;
    sz_loop_dispatch(sock->data);
}

/*
 * A write that was done at once is reported when h2o next runs its pending callbacks, which it does after it has
 * waited. What our timers and deferred calls wrote, between two runs, would be reported only when something else
 * happens: a client's next request would lie unread until then.
 */
static bool has_pending(const h2o_evloop_t *native)
{
    return native->_pending_as_client != NULL || native->_pending_as_server != NULL;
}

static void wait_and_serve(struct sz_loop *loop)
{
    int32_t wait = has_pending(loop->native) ? 0 : sz_loop_wait_ms(loop, sz_mono_read());
    while (h2o_evloop_run(loop->native, wait) != 0) {
        if (errno == EINTR)
            return;
        SZ_ASSERT(errno == ENOMEM || errno == ENOSPC); /* the rest are descriptors that we mishandled */
        wait = 0;
    }
}

/*
 * What was posted or deferred before the stop is still delivered, so that its memory finds
 * its owner; bounded, because two parties may answer each other forever.
 */
static void finish(struct sz_loop *loop)
{
    for (int i = 0; i < STOP_TURNS && sz_loop_is_busy(loop); i++) {
        sz_loop_turn_begin(loop);
        sz_loop_dispatch(loop);
        sz_loop_turn_end(loop);
    }
}

void sz_loop_run(struct sz_loop *loop)
{
    sz_loop_enter(loop);
    /* The socket owns its descriptor.  Made here, not in sz_loop_new: h2o's sockets point into their thread's memory.
     */
    int fd = fcntl(loop->epoll, F_DUPFD_CLOEXEC, 0);
    SZ_ASSERT(fd >= 0);
    h2o_socket_t *sock = h2o_evloop_socket_create(loop->native, fd, H2O_SOCKET_FLAG_DONT_READ);
    sock->data = loop;
    h2o_socket_read_start(sock, on_epoll);
    while (!atomic_load_explicit(&loop->stop, memory_order_acquire)) {
        sz_loop_turn_begin(loop);
        wait_and_serve(loop);
        sz_loop_turn_end(loop);
    }
    finish(loop);
    h2o_socket_close(sock);
    atomic_store_explicit(&loop->stop, false, memory_order_relaxed);
    sz_loop_enter(NULL);
}

/*
 * A thread's way down.  Every request whose first byte was read gets its whole answer, and every connection that the
 * kernel has already accepted for us is served; only then the listeners close.  HTTP/2 is told by GOAWAY.  HTTP/1 is
 * told by "Connection: close" on its next answer; connections that stay idle are closed after a grace, when nothing
 * lies unread in the socket.
 */
#include <errno.h>
#include <sys/socket.h>

#include "edge/bodies.h"
#include "edge/server.h"
#include "edge/thread.h"
#include "subzero/log.h"

#define IDLE_GRACE SZ_SEC(1)
#define LOOK_AGAIN SZ_MS(100)

/* Nothing begun and nothing unread.  (What is still in its handshake, TLS or PROXY, has its own timeout.) */
static bool is_idle(const struct sz_conn *conn)
{
    char byte;
    if (conn->open != 0 || conn->sock->input->size != 0 || conn->buffered != 0)
        return false;
    if (conn->requests == 0 && conn->sock->ssl != NULL && sz_bodies_protocol(conn) == SZ_CONN_OTHER)
        return false;
    ssize_t n = recv(h2o_socket_get_fd(conn->sock), &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    return n < 0 && errno == EAGAIN;
}

static void on_look(struct sz_timer *timer)
{
    struct sz_edge_thread *thread = SZ_CONTAINER(timer, struct sz_edge_thread, drained);
    for (struct sz_conn *conn = thread->conns; conn != NULL; conn = conn->next) {
        if (is_idle(conn))
            sz_conn_cut(conn);
    }
    if (thread->connections != 0)
        sz_timer_start(thread->loop, timer, sz_after(sz_loop_now(thread->loop), LOOK_AGAIN));
}

void sz_thread_conn_gone(struct sz_edge_thread *thread)
{
    if (thread->draining && thread->connections == 0 && thread->owed == 0)
        sz_loop_stop(thread->loop);
}

static void stop_accepting(struct sz_edge_thread *thread)
{
    struct sz_server *server = thread->server;
    for (size_t i = 0; i < thread->acceptors_n; i++)
        sz_acceptor_stop(&thread->acceptors[i]);
    /* Only when nobody else accepts is an empty backlog the end of it. */
    if (atomic_fetch_add(&server->threads_closed, 1) + 1 < server->threads_n)
        return;
    for (size_t i = 0; i < thread->acceptors_n; i++)
        sz_acceptor_close(&thread->acceptors[i]);
}

void sz_thread_drain(struct sz_edge_thread *thread)
{
    stop_accepting(thread);
    h2o_context_request_shutdown(&thread->ctx);
    sz_proxy_pools_drain(thread->pools);
    thread->draining = true;
    thread->drained.on_fire = on_look;
    sz_timer_start(thread->loop, &thread->drained, sz_after(sz_loop_now(thread->loop), IDLE_GRACE));
    sz_thread_conn_gone(thread);
}

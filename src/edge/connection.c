/*
 * Life of a client connection's record: made at accept, hung on the socket's close hook, gone with the socket.  Reads
 * pass through on_read below so that the bytes which h2o buffers before any handler runs are counted as they come.
 */
#include "edge/connection.h"

#include <sys/socket.h>

#include "edge/bodies.h"
#include "edge/h2_guard.h"
#include "edge/head_parse.h"
#include "edge/listener.h"
#include "edge/server.h"
#include "edge/thread.h"
#include "subzero/metrics.h"

/*
 * A browser that leaves a page resets dozens of streams, an attacker thousands: cut when more than this many, and more
 * than half of all requests, left before an answer.
 */
#define RESETS_MAX 100

static void on_close(void *arg)
{
    struct sz_conn *conn = arg;
    struct sz_edge_thread *thread = conn->thread;

    sz_bodies_forget(conn);
    *conn->prev = conn->next;
    if (conn->next != NULL)
        conn->next->prev = conn->prev;
    thread->connections--;
    sz_gauge_add(thread->worker.index, conn->listener->gauge, -1);
    if (sz_listener_is_public(conn->listener->kind))
        sz_server_conn_closed(thread->server, conn->counted ? &conn->peer : NULL);
    free(conn);
    sz_listeners_resume(thread);
    sz_thread_conn_gone(thread);
}

struct sz_conn *sz_conn_new(struct sz_edge_thread *thread, const struct sz_listener *listener, h2o_socket_t *sock,
                            struct sz_addr peer, bool counted)
{
    struct sz_conn *conn = sz_xcalloc(1, sizeof(*conn));
    conn->thread = thread;
    conn->listener = listener;
    conn->sock = sock;
    conn->peer = peer;
    conn->counted = counted;
    conn->since = sz_loop_now(thread->loop);
    conn->prev = &thread->conns;
    conn->next = thread->conns;
    if (conn->next != NULL)
        conn->next->prev = &conn->next;
    thread->conns = conn;
    thread->connections++;
    sock->on_close.cb = on_close;
    sock->on_close.data = conn;
    sz_gauge_add(thread->worker.index, listener->gauge, 1);
    return conn;
}

struct sz_conn *sz_conn_of(h2o_socket_t *sock)
{
    return sock != NULL && sock->on_close.cb == on_close ? sock->on_close.data : NULL;
}

struct sz_conn *sz_conn_of_req(h2o_req_t *req)
{
    return sz_conn_of(req->conn->callbacks->get_socket(req->conn));
}

void sz_conn_cut(struct sz_conn *conn)
{
    shutdown(h2o_socket_get_fd(conn->sock), SHUT_RDWR);
}

void sz_conn_closing(struct sz_conn *conn, struct sz_mono now)
{
    conn->closing = true;
    conn->since = now;
}

void sz_conn_count_reset(struct sz_conn *conn)
{
    conn->resets++;
    if (conn->resets <= RESETS_MAX || conn->resets * 2 <= conn->requests)
        return;
    if (conn->resets == RESETS_MAX + 1)
        sz_count(conn->thread->worker.index, conn->thread->server->series.resets, 1);
    sz_conn_cut(conn);
}

static void on_read(h2o_socket_t *sock, const char *err)
{
    struct sz_conn *conn = sock->on_close.data;
    if (!conn->reading && conn->open == 0) {
        conn->reading = true;
        conn->since = sz_loop_now(conn->thread->loop);
    }
    if (err == NULL && !sz_bodies_account(conn))
        err = sz_bodies_at_limit;
    sz_h2_guard_reading(sz_bodies_protocol(conn) == SZ_CONN_HTTP2 ? sock->data : NULL);
    sz_head_parse_ours(conn->listener->kind == SZ_LISTEN_DATA);
    conn->read(sock, err);
    sz_head_parse_ours(false);
    sz_h2_guard_reading(NULL);
}

void sz_conn_drop(struct sz_conn *conn, const char *why)
{
    h2o_socket_t *sock = conn->sock;
    sz_conn_cut(conn);
    if (sock->_cb.read == on_read)
        conn->read(sock, why);
}

h2o_socket_cb sz_conn_wrap_read(h2o_socket_t *sock, h2o_socket_cb cb)
{
    struct sz_conn *conn = sz_conn_of(sock);
    if (conn == NULL || cb == NULL || cb == on_read)
        return cb;
    conn->read = cb;
    conn->closing = false;
    sz_bodies_begin(conn);
    return on_read;
}

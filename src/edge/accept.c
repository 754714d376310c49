/*
 * A connection's first steps.  The limit per address counts the client: the peer itself, or behind a load balancer what
 * the PROXY header says.  A trusted proxy's own address is never limited, since it stands for everybody behind it.
 */
#include "edge/accept.h"

#include <errno.h>
#include <h2o.h>
#include <h2o/http2.h>
#include <netinet/in.h>
#include <unistd.h>

#include "edge/listener.h"
#include "edge/proxy_header.h"
#include "edge/server.h"
#include "edge/thread.h"
#include "subzero/log.h"

#define PROXY_HEADER_TIMEOUT SZ_SEC(5)

struct greeting { /* a connection whose PROXY header is awaited; sock->data */
    struct sz_acceptor *acceptor;
    h2o_socket_t *sock;
    struct sz_timer timeout;
};

static bool is_trusted(const struct sz_acceptor *acceptor, struct sz_addr peer)
{
    struct sz_edge_thread *thread = acceptor->thread;
    if (!thread->is_worker)
        return true; /* admin and demo: loopback or guarded by a token, never limited */
    return sz_cidrs_contain(&sz_worker_snapshot(&thread->worker)->conf->trusted_proxies, peer);
}

static void start_protocol(struct sz_acceptor *acceptor, h2o_socket_t *sock)
{
    const struct sz_conf_listener *conf = acceptor->listener->conf;
    if (conf != NULL && conf->h2c)
        h2o_http2_accept(&acceptor->ctx, sock, *h2o_get_timestamp(&acceptor->thread->ctx, NULL, NULL));
    else
        h2o_accept(&acceptor->ctx, sock);
}

static bool count_address(struct sz_edge_thread *thread, struct sz_addr peer)
{
    struct sz_server *server = thread->server;
    uint32_t most = sz_worker_snapshot(&thread->worker)->conf->limits.connections_per_address;
    if (sz_addr_count_enter(server->addresses, peer, most))
        return true;
    sz_count(thread->worker.index, server->series.refused_address, 1);
    return false;
}

static void give_up(struct greeting *greeting)
{
    h2o_socket_t *sock = greeting->sock;
    sz_timer_cancel(greeting->acceptor->thread->loop, &greeting->timeout);
    free(greeting);
    h2o_socket_close(sock);
}

static void on_greeting_timeout(struct sz_timer *timer)
{
    give_up(SZ_CONTAINER(timer, struct greeting, timeout));
}

static void set_peer(h2o_socket_t *sock, const struct sz_proxy_header *header)
{
    struct sockaddr_in6 in6 = {.sin6_family = AF_INET6, .sin6_port = htons(header->port)};
    memcpy(&in6.sin6_addr, header->client.b, 16);
    h2o_socket_setpeername(sock, (struct sockaddr *)(void *)&in6, sizeof(in6));
}

static void on_greeting(h2o_socket_t *sock, const char *err)
{
    struct greeting *greeting = sock->data;
    struct sz_acceptor *acceptor = greeting->acceptor;
    struct sz_edge_thread *thread = acceptor->thread;
    struct sz_conn *conn = sz_conn_of(sock);
    struct sz_proxy_header header;

    int rc = err != NULL ? -EIO : sz_proxy_header_parse(sz_slice(sock->input->bytes, sock->input->size), &header);
    if (rc == SZ_PROXY_HEADER_MORE)
        return;
    if (rc != 0) {
        if (err == NULL)
            sz_count(thread->worker.index, thread->server->series.refused_proxy, 1);
        give_up(greeting);
        return;
    }
    h2o_socket_read_stop(sock);
    h2o_buffer_consume(&sock->input, header.length);
    if (header.has_client) {
        conn->peer = header.client;
        set_peer(sock, &header);
        if (!is_trusted(acceptor, conn->peer)) {
            if (!count_address(thread, conn->peer)) {
                give_up(greeting);
                return;
            }
            conn->counted = true;
        }
    }
    sz_timer_cancel(thread->loop, &greeting->timeout);
    free(greeting);
    sock->data = NULL;
    start_protocol(acceptor, sock);
}

static void await_greeting(struct sz_acceptor *acceptor, h2o_socket_t *sock)
{
    struct greeting *greeting = sz_xcalloc(1, sizeof(*greeting));
    struct sz_loop *loop = acceptor->thread->loop;
    greeting->acceptor = acceptor;
    greeting->sock = sock;
    greeting->timeout.on_fire = on_greeting_timeout;
    sz_timer_start(loop, &greeting->timeout, sz_after(sz_loop_now(loop), PROXY_HEADER_TIMEOUT));
    sock->data = greeting;
    h2o_socket_read_start(sock, on_greeting);
}

void sz_accept(struct sz_acceptor *acceptor, int fd, const struct sockaddr *sa, socklen_t len)
{
    struct sz_edge_thread *thread = acceptor->thread;
    bool data = sz_listener_is_public(acceptor->listener->kind);
    bool proxied = data && acceptor->listener->conf->proxy_protocol;
    struct sz_addr peer;

    if (sz_addr_from_sockaddr(sa, len, &peer) != 0)
        goto refuse;
    bool trusted = is_trusted(acceptor, peer);
    if (proxied && !trusted) {
        sz_count(thread->worker.index, thread->server->series.refused_untrusted, 1);
        goto refuse;
    }
    if (!trusted && !count_address(thread, peer))
        goto refuse;
    h2o_socket_t *sock = h2o_evloop_socket_create(thread->ctx.loop, fd, H2O_SOCKET_FLAG_IS_ACCEPTED_CONNECTION);
    h2o_socket_setpeername(sock, (struct sockaddr *)(uintptr_t)sa, len);
    sz_conn_new(thread, acceptor->listener, sock, peer, !trusted);
    if (proxied)
        await_greeting(acceptor, sock);
    else
        start_protocol(acceptor, sock);
    return;
refuse:
    close(fd);
    if (data)
        sz_server_conn_closed(thread->server, NULL);
}

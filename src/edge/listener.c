/*
 * Accepting.  At most a handful of connections a wakeup, so that accepting cannot starve the connections there are.  At
 * the limit the listener is no longer watched (the rest waits in the kernel's backlog); returning without accepting
 * while watching would spin.  An address beyond its share is closed at once: its connections must not fill the backlog.
 */
#include "edge/listener.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include "edge/accept.h"
#include "edge/server.h"
#include "edge/thread.h"
#include "subzero/log.h"

#define ACCEPTS_PER_WAKEUP 16
#define BACKLOG            4096
#define ADMIN_CONNECTIONS  256
#define RETRY              SZ_MS(50)

static socklen_t to_sockaddr(struct sz_addr ip, uint16_t port, struct sockaddr_storage *ss)
{
    memset(ss, 0, sizeof(*ss));
    if (sz_addr_is_v4(ip)) {
        struct sockaddr_in *in = (struct sockaddr_in *)(void *)ss;
        in->sin_family = AF_INET;
        in->sin_port = htons(port);
        memcpy(&in->sin_addr, ip.b + 12, 4);
        return sizeof(*in);
    }
    struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)(void *)ss;
    in6->sin6_family = AF_INET6;
    in6->sin6_port = htons(port);
    memcpy(&in6->sin6_addr, ip.b, 16);
    return sizeof(*in6);
}

/* The port stands at the same place in both families' addresses. */
static uint16_t bound_port(int fd)
{
    struct sockaddr_in6 any = {.sin6_port = 0};
    socklen_t len = sizeof(any);
    return getsockname(fd, (struct sockaddr *)(void *)&any, &len) == 0 ? ntohs(any.sin6_port) : 0;
}

int sz_listener_bind(struct sz_listener *listener, struct sz_addr ip, uint16_t port, struct sz_text *why)
{
    struct sockaddr_storage ss;
    socklen_t len = to_sockaddr(ip, port, &ss);
    char text[SZ_ADDR_TEXT];
    int on = 1, fd = socket(ss.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

    sz_addr_format(ip, text);
    if (fd < 0)
        goto fail;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    /* "::" is the IPv6 wildcard alone: 0.0.0.0 is a listener of its own. */
    if (ss.ss_family == AF_INET6)
        setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof(on));
    if (bind(fd, (struct sockaddr *)&ss, len) != 0 || listen(fd, BACKLOG) != 0)
        goto fail;
    listener->fd = fd;
    listener->port = bound_port(fd);
    return 0;
fail:;
    int err = errno;
    sz_text_set(why, "cannot listen on %s port %u: %s%s", text, port, strerror(err),
                err == EADDRINUSE ? "; stop the process that holds it or choose another port"
                : err == EACCES   ? "; ports below 1024 need root or CAP_NET_BIND_SERVICE"
                                  : "");
    if (fd >= 0)
        close(fd);
    return -err;
}

static void pause_accepting(struct sz_acceptor *acceptor)
{
    if (acceptor->watch == NULL)
        return; /* the last round of a drain */
    acceptor->paused = true;
    sz_watch_set(acceptor->watch, 0);
    sz_timer_start(acceptor->thread->loop, &acceptor->retry, sz_after(sz_loop_now(acceptor->thread->loop), RETRY));
}

static void resume_accepting(struct sz_acceptor *acceptor)
{
    acceptor->paused = false;
    sz_timer_cancel(acceptor->thread->loop, &acceptor->retry);
    sz_watch_set(acceptor->watch, SZ_READ);
}

static void on_retry(struct sz_timer *timer)
{
    resume_accepting(SZ_CONTAINER(timer, struct sz_acceptor, retry));
}

void sz_listeners_resume(struct sz_edge_thread *thread)
{
    for (size_t i = 0; i < thread->acceptors_n; i++) {
        if (thread->acceptors[i].paused)
            resume_accepting(&thread->acceptors[i]);
    }
}

/* Admin connections have a bound of their own, so that whoever reaches that port cannot use up the descriptors. */
static bool has_room(struct sz_acceptor *acceptor)
{
    struct sz_edge_thread *thread = acceptor->thread;
    switch (acceptor->listener->kind) {
    case SZ_LISTEN_DATA:
    case SZ_LISTEN_FGA:
        return sz_server_conn_open(thread->server);
    case SZ_LISTEN_ADMIN:
        return thread->connections < ADMIN_CONNECTIONS;
    case SZ_LISTEN_DEMO:
        break;
    }
    return true;
}

/* One connection; false when there is none to be had now. */
static bool accept_one(struct sz_acceptor *acceptor)
{
    struct sz_edge_thread *thread = acceptor->thread;
    struct sockaddr_storage ss;
    socklen_t len = sizeof(ss);
    bool data = sz_listener_is_public(acceptor->listener->kind);

    if (!has_room(acceptor)) {
        pause_accepting(acceptor);
        return false;
    }
    int fd = accept4(acceptor->listener->fd, (struct sockaddr *)&ss, &len, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd >= 0) {
        int on = 1;
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
        sz_accept(acceptor, fd, (struct sockaddr *)&ss, len);
        return true;
    }
    int err = errno;
    if (data)
        sz_server_conn_closed(thread->server, NULL);
    if (err == EMFILE || err == ENFILE || err == ENOBUFS || err == ENOMEM) {
        sz_server_accept_failed(thread->server, err);
        pause_accepting(acceptor);
    }
    return err == ECONNABORTED || err == EINTR || err == EPROTO;
}

static void on_acceptable(void *arg, int fd, unsigned events)
{
    struct sz_acceptor *acceptor = arg;
    (void)fd;
    (void)events;
    for (int i = 0; i < ACCEPTS_PER_WAKEUP && accept_one(acceptor); i++)
        continue;
}

int sz_acceptor_init(struct sz_acceptor *acceptor, struct sz_edge_thread *thread, struct sz_listener *listener)
{
    acceptor->thread = thread;
    acceptor->listener = listener;
    acceptor->retry.on_fire = on_retry;
    acceptor->ctx.ctx = &thread->ctx;
    acceptor->ctx.hosts = thread->server->hosts[listener->kind];
    acceptor->watch = sz_watch_new(thread->loop, listener->fd, on_acceptable, acceptor);
    if (acceptor->watch == NULL)
        return -errno;
    sz_watch_set(acceptor->watch, SZ_READ);
    return 0;
}

void sz_acceptor_stop(struct sz_acceptor *acceptor)
{
    if (acceptor->watch == NULL)
        return;
    acceptor->paused = false;
    sz_timer_cancel(acceptor->thread->loop, &acceptor->retry);
    sz_watch_free(&acceptor->watch);
}

void sz_acceptor_close(struct sz_acceptor *acceptor)
{
    for (int i = 0; i < BACKLOG && accept_one(acceptor); i++)
        continue; /* those who come meanwhile could keep us here */
    close(acceptor->listener->fd);
    acceptor->listener->fd = -1;
}

/*
 * One connection from its first address to its close.  The descriptor is ours; h2o's socket (in its "do not read" mode)
 * only tells when it is ready, and stays registered for reading, so that a request on a kept connection costs one
 * writev and one read.  The deadline is lazy: moving it later is a store, and the timer looks again when it fires.
 *
 *   RESOLVING ─▶ CONNECTING ─▶ HANDSHAKING ─▶ OPEN ◀─▶ IDLE
 *        next address ◀┘ on a failure, within the upstream's connect timeout
 */
#include <errno.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <stdlib.h>
#include <unistd.h>

#include "edge/upstream.h"
#include "subzero/log.h"

static void connect_next(struct sz_upconn *conn);
static void handshake(struct sz_upconn *conn);

static struct sz_loop *loop_of(const struct sz_upconn *conn)
{
    return conn->url->upstream->pools->loop;
}

/* ---- lists ------------------------------------------------------------------------------------------------ */

static void link_to(struct sz_upconn *conn, struct sz_upconn **list)
{
    conn->next = *list;
    conn->prev = list;
    if (conn->next != NULL)
        conn->next->prev = &conn->next;
    *list = conn;
}

static void unlink_from(struct sz_upconn *conn)
{
    if (conn->prev == NULL)
        return;
    *conn->prev = conn->next;
    if (conn->next != NULL)
        conn->next->prev = conn->prev;
    conn->prev = NULL;
}

/* ---- closing ---------------------------------------------------------------------------------------------- */

/* The socket alone: the next address gets a new one. */
static void close_socket(struct sz_upconn *conn)
{
    if (conn->ssl != NULL) {
        SSL_set_app_data(conn->ssl, NULL);
        SSL_free(conn->ssl);
        conn->ssl = NULL;
    }
    if (conn->sock != NULL)
        h2o_socket_close(conn->sock); /* closes fd */
    conn->sock = NULL;
    conn->fd = -1;
}

void sz_upconn_close(struct sz_upconn *conn)
{
    struct sz_upstream *upstream = conn->url->upstream;

    if (conn->phase == SZ_UPCONN_IDLE)
        conn->url->idle_n--;
    unlink_from(conn);
    if (conn->user != NULL)
        conn->user->conn = NULL;
    sz_timer_cancel(upstream->pools->loop, &conn->timer);
    sz_defer_cancel(&conn->failed);
    if (conn->ssl != NULL && conn->phase >= SZ_UPCONN_OPEN)
        SSL_shutdown(conn->ssl); /* close_notify, if the socket takes it; we do not wait for theirs */
    ERR_clear_error();
    close_socket(conn);
    free(conn);
    sz_upstream_unref(upstream);
}

static void fail(struct sz_upconn *conn, int err)
{
    struct sz_upconn_user *user = conn->user;
    sz_upconn_close(conn);
    user->ops->on_failed(user, err);
}

static void on_failed_later(struct sz_defer *defer)
{
    struct sz_upconn *conn = SZ_CONTAINER(defer, struct sz_upconn, failed);
    fail(conn, conn->err);
}

/* ---- the deadline ----------------------------------------------------------------------------------------- */

void sz_upconn_deadline(struct sz_upconn *conn, struct sz_mono at)
{
    conn->deadline = at;
    if (at.us != SZ_NEVER.us && (!sz_timer_armed(&conn->timer) || conn->timer.at.us > at.us))
        sz_timer_start(loop_of(conn), &conn->timer, at);
}

static void on_timer(struct sz_timer *timer)
{
    struct sz_upconn *conn = SZ_CONTAINER(timer, struct sz_upconn, timer);

    if (conn->deadline.us > sz_loop_now(loop_of(conn)).us) {
        if (conn->deadline.us != SZ_NEVER.us)
            sz_timer_start(loop_of(conn), timer, conn->deadline);
    } else if (conn->phase == SZ_UPCONN_IDLE) {
        sz_upconn_close(conn);
    } else if (conn->phase != SZ_UPCONN_OPEN) {
        fail(conn, ETIMEDOUT);
    } else {
        conn->user->ops->on_timeout(conn->user);
    }
}

/* ---- readiness -------------------------------------------------------------------------------------------- */

/* TLS 1.3 tickets and key updates are no surplus: they are taken in.  Anything else ends an idle connection. */
static void on_idle_readable(struct sz_upconn *conn)
{
    char byte;
    if (conn->ssl == NULL || sz_upconn_read(conn, &byte, 1) != -EAGAIN)
        sz_upconn_close(conn);
}

static void on_sock_readable(h2o_socket_t *sock, const char *err)
{
    struct sz_upconn *conn = sock->data;

    (void)err; /* nothing was read: whatever happened shows at our own read */
    if (conn->phase == SZ_UPCONN_HANDSHAKING)
        handshake(conn);
    else if (conn->phase == SZ_UPCONN_IDLE)
        on_idle_readable(conn);
    else
        conn->user->ops->on_readable(conn->user);
}

void sz_upconn_read_start(struct sz_upconn *conn)
{
    if (!conn->reading)
        h2o_socket_read_start(conn->sock, on_sock_readable);
    conn->reading = true;
}

void sz_upconn_read_stop(struct sz_upconn *conn)
{
    if (conn->reading)
        h2o_socket_read_stop(conn->sock);
    conn->reading = false;
}

static void opened(struct sz_upconn *conn)
{
    conn->phase = SZ_UPCONN_OPEN;
    sz_upconn_read_start(conn);
    conn->user->ops->on_open(conn->user);
}

static int socket_error(int fd)
{
    int err = 0;
    socklen_t n = sizeof(err);
    return getsockopt(fd, SOL_SOCKET, SO_ERROR, &err, &n) != 0 ? errno : err;
}

static void on_sock_writable(h2o_socket_t *sock, const char *err)
{
    struct sz_upconn *conn = sock->data;

    (void)err;
    if (conn->phase == SZ_UPCONN_CONNECTING) {
        if ((conn->err = socket_error(conn->fd)) != 0) {
            conn->tried++;
            connect_next(conn);
            return;
        }
        conn->url->address_at = (conn->url->address_at + conn->tried) % conn->url->addresses_n;
        if (conn->url->tls) {
            conn->phase = SZ_UPCONN_HANDSHAKING;
            handshake(conn);
        } else {
            opened(conn);
        }
    } else if (conn->phase == SZ_UPCONN_HANDSHAKING) {
        handshake(conn);
    } else if (conn->phase == SZ_UPCONN_IDLE) {
        on_idle_readable(conn);
    } else if (conn->read_wants_write) {
        conn->read_wants_write = false;
        conn->user->ops->on_readable(conn->user);
    } else {
        conn->user->ops->on_writable(conn->user);
    }
}

void sz_upconn_want_write(struct sz_upconn *conn)
{
    if (!h2o_socket_is_writing(conn->sock))
        h2o_socket_notify_write(conn->sock, on_sock_writable);
}

/* ---- opening ---------------------------------------------------------------------------------------------- */

static socklen_t address_size(const union sz_upstream_address *address)
{
    return address->any.sa_family == AF_INET ? sizeof(address->v4) : sizeof(address->v6);
}

static int start_connect(struct sz_upconn *conn, const union sz_upstream_address *address)
{
    int on = 1, fd = socket(address->any.sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

    if (fd < 0)
        return errno;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    if (connect(fd, &address->any, address_size(address)) != 0 && errno != EINPROGRESS) {
        int err = errno;
        close(fd);
        return err;
    }
    conn->fd = fd;
    conn->reading = false;
    conn->sock = h2o_evloop_socket_create(conn->url->upstream->pools->ctx->loop, fd, H2O_SOCKET_FLAG_DONT_READ);
    conn->sock->data = conn;
    h2o_socket_notify_write(conn->sock, on_sock_writable);
    return 0;
}

/* Goes through the addresses, beginning with the one that worked last; the failure is told from the loop. */
static void connect_next(struct sz_upconn *conn)
{
    struct sz_upstream_url *url = conn->url;

    close_socket(conn);
    conn->phase = SZ_UPCONN_CONNECTING;
    for (; conn->tried < url->addresses_n; conn->tried++) {
        size_t at = (url->address_at + conn->tried) % url->addresses_n;
        conn->err = start_connect(conn, &url->addresses[at]);
        if (conn->err == 0)
            return;
    }
    if (conn->err == 0)
        conn->err = EHOSTUNREACH;
    sz_defer_start(loop_of(conn), &conn->failed);
}

void sz_upconn_resolved(struct sz_upconn *conn, int err)
{
    unlink_from(conn);
    if (err == 0) {
        connect_next(conn);
        return;
    }
    conn->err = err;
    sz_defer_start(loop_of(conn), &conn->failed);
}

void sz_upconn_open(struct sz_upstream_url *url, struct sz_upconn_user *user)
{
    struct sz_upstream *upstream = url->upstream;
    struct sz_upconn *conn = sz_xcalloc(1, sizeof(*conn));

    conn->fd = -1;
    conn->url = url;
    conn->user = user;
    conn->timer.on_fire = on_timer;
    conn->failed.on_run = on_failed_later;
    upstream->refs++;
    user->conn = conn;
    sz_upconn_deadline(conn, sz_after(sz_loop_now(upstream->pools->loop), upstream->connect));
    int status = sz_resolve(url);
    if (status == SZ_RESOLVE_WAIT)
        link_to(conn, &url->waiting);
    else
        sz_upconn_resolved(conn, -status);
}

/* ---- TLS -------------------------------------------------------------------------------------------------- */

static const char *server_name(const struct sz_upconn *conn)
{
    const char *name = conn->url->upstream->server_name;
    return name != NULL ? name : conn->url->host;
}

/* Once a second and url: each request may fail on it. */
static void log_handshake(const struct sz_upconn *conn)
{
    struct sz_mono now = sz_loop_now(loop_of(conn));
    long verify = SSL_get_verify_result(conn->ssl);
    unsigned long code = ERR_peek_last_error();
    const char *reason = verify != X509_V_OK ? X509_verify_cert_error_string(verify)
                         : code != 0         ? ERR_reason_error_string(code)
                                             : "closed";

    if (conn->url->said.us != 0 && sz_between(conn->url->said, now).us < SZ_SEC(1).us)
        return;
    conn->url->said = now;
    sz_log(SZ_LOG_WARN, "proxy", "TLS to %s fails: %s", conn->url->authority, reason != NULL ? reason : "unknown");
}

static void handshake(struct sz_upconn *conn)
{
    if (conn->ssl == NULL) {
        conn->ssl = sz_upstream_ssl_new(conn->url->upstream->shared, server_name(conn), conn->fd);
        if (conn->ssl == NULL) {
            fail(conn, ENOMEM);
            return;
        }
        SSL_set_app_data(conn->ssl, conn);
        if (conn->url->session != NULL)
            SSL_set_session(conn->ssl, conn->url->session);
        sz_upconn_read_start(conn);
    }
    ERR_clear_error();
    int result = SSL_do_handshake(conn->ssl);
    int error = result == 1 ? SSL_ERROR_NONE : SSL_get_error(conn->ssl, result);
    if (error == SSL_ERROR_WANT_READ)
        return;
    if (error == SSL_ERROR_WANT_WRITE) {
        sz_upconn_want_write(conn);
        return;
    }
    /* A failed verification fails the handshake; asking again costs nothing and outlives a change of the mode. */
    if (error != SSL_ERROR_NONE || SSL_get_verify_result(conn->ssl) != X509_V_OK) {
        log_handshake(conn);
        ERR_clear_error();
        SSL_SESSION_free(conn->url->session);
        conn->url->session = NULL;
        fail(conn, EPROTO);
        return;
    }
    opened(conn);
}

/* ---- reading and writing ---------------------------------------------------------------------------------- */

static ssize_t ssl_error(struct sz_upconn *conn, int result, bool reading)
{
    int err = errno;
    switch (SSL_get_error(conn->ssl, result)) {
    case SSL_ERROR_WANT_READ:
        return reading ? -EAGAIN : -EPROTO; /* a write waits for input only while renegotiating, which is off */
    case SSL_ERROR_WANT_WRITE:
        if (reading) {
            conn->read_wants_write = true;
            sz_upconn_want_write(conn);
        }
        return -EAGAIN;
    case SSL_ERROR_ZERO_RETURN:
        return 0;
    case SSL_ERROR_SYSCALL:
        return err != 0 ? -err : -ECONNRESET;
    default:
        return -EPROTO; /* a close without close_notify too: the end may have been cut off */
    }
}

/* Several records per call: each SSL_read gives one. */
static ssize_t ssl_read(struct sz_upconn *conn, char *buf, size_t n)
{
    size_t got = 0, chunk;
    while (got < n) {
        ERR_clear_error();
        errno = 0;
        int result = SSL_read_ex(conn->ssl, buf + got, n - got, &chunk);
        if (result != 1) {
            ssize_t status = ssl_error(conn, result, true);
            return got > 0 ? (ssize_t)got : status;
        }
        got += chunk;
    }
    return (ssize_t)got;
}

ssize_t sz_upconn_read(struct sz_upconn *conn, void *buf, size_t n)
{
    if (conn->ssl != NULL)
        return ssl_read(conn, buf, n);
    ssize_t got;
    do {
        got = recv(conn->fd, buf, n, 0); /* read() does the same by a longer way */
    } while (got < 0 && errno == EINTR);
    return got >= 0 ? got : -errno;
}

/* Small pieces go out as one record. */
static ssize_t ssl_write(struct sz_upconn *conn, const struct iovec *iov, size_t n)
{
    char joined[4096];
    size_t total = 0, written;
    const char *bytes = iov[0].iov_base;

    for (size_t i = 0; i < n; i++)
        total += iov[i].iov_len;
    if (n > 1 && total <= sizeof(joined)) {
        size_t at = 0;
        for (size_t i = 0; i < n; at += iov[i++].iov_len)
            memcpy(joined + at, iov[i].iov_base, iov[i].iov_len);
        bytes = joined;
    } else {
        total = iov[0].iov_len;
    }
    ERR_clear_error();
    errno = 0;
    int result = SSL_write_ex(conn->ssl, bytes, total, &written);
    return result == 1 ? (ssize_t)written : ssl_error(conn, result, false);
}

ssize_t sz_upconn_write(struct sz_upconn *conn, const struct iovec *iov, size_t n)
{
    if (conn->ssl != NULL)
        return ssl_write(conn, iov, n);
    ssize_t sent;
    do {
        struct msghdr msg = {.msg_iov = (struct iovec *)(uintptr_t)iov, .msg_iovlen = n};
        sent = sendmsg(conn->fd, &msg, MSG_NOSIGNAL);
    } while (sent < 0 && errno == EINTR);
    return sent >= 0 ? sent : -errno;
}

bool sz_upconn_has_pending(const struct sz_upconn *conn)
{
    return conn->ssl != NULL && SSL_has_pending(conn->ssl);
}

bool sz_upconn_is_stale(struct sz_upconn *conn)
{
    char byte;
    ssize_t n = recv(conn->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    return n >= 0 ? conn->ssl == NULL || n == 0 : errno != EAGAIN;
}

/* ---- idle ------------------------------------------------------------------------------------------------- */

bool sz_upconn_take(struct sz_upstream_url *url, struct sz_upconn_user *user)
{
    struct sz_upconn *conn = url->idle;

    if (conn == NULL)
        return false;
    unlink_from(conn);
    url->idle_n--;
    conn->phase = SZ_UPCONN_OPEN;
    conn->used = true;
    conn->user = user;
    user->conn = conn;
    return true;
}

void sz_upconn_release(struct sz_upconn *conn)
{
    struct sz_upstream_url *url = conn->url;
    struct sz_upstream *upstream = url->upstream;

    if (upstream->retired || upstream->pools->draining || url->idle_n >= upstream->max_idle ||
        upstream->keepalive.us <= 0 || sz_upconn_has_pending(conn)) {
        sz_upconn_close(conn);
        return;
    }
    conn->user->conn = NULL;
    conn->user = NULL;
    conn->phase = SZ_UPCONN_IDLE;
    sz_upconn_read_start(conn);
    link_to(conn, &url->idle);
    url->idle_n++;
    sz_upconn_deadline(conn, sz_after(sz_loop_now(upstream->pools->loop), upstream->keepalive));
}

void sz_upconn_hand_over(struct sz_upconn *conn, struct sz_upconn_user *user)
{
    conn->user->conn = NULL;
    conn->user = user;
    user->conn = conn;
}

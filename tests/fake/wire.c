/* See wire.h.  The descriptor never blocks: poll() does the waiting, so TLS and plain bytes keep the same deadlines. */
#include "fake/wire.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

bool wire_open(struct wire *w, const char *from, uint16_t port)
{
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(port)}, source = {.sin_family = AF_INET};

    *w = (struct wire){.fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
    SZ_ASSERT(w->fd >= 0);
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (from != NULL) {
        SZ_ASSERT(inet_pton(AF_INET, from, &source.sin_addr) == 1);
        SZ_ASSERT(bind(w->fd, (struct sockaddr *)&source, sizeof(source)) == 0);
    }
    if (connect(w->fd, (struct sockaddr *)&to, sizeof(to)) != 0) {
        wire_close(w);
        return false;
    }
    SZ_ASSERT(fcntl(w->fd, F_SETFL, O_NONBLOCK) == 0);
    return true;
}

void wire_close(struct wire *w)
{
    if (w->ssl != NULL)
        SSL_free(w->ssl);
    if (w->fd >= 0)
        close(w->fd);
    *w = (struct wire){.fd = -1};
}

void wire_reset(struct wire *w)
{
    struct linger hard = {.l_onoff = 1};

    setsockopt(w->fd, SOL_SOCKET, SO_LINGER, &hard, sizeof(hard));
    wire_close(w);
}

/* False: the deadline came first. */
static bool wait_for(struct wire *w, short events, struct sz_mono end)
{
    struct pollfd p = {.fd = w->fd, .events = events};
    int64_t left = (sz_between(sz_mono_read(), end).us + 999) / 1000;

    return left > 0 && poll(&p, 1, end.us == SZ_NEVER.us ? -1 : (int)left) == 1;
}

/* Whether an SSL call that returned rc is worth repeating; waits for what it wants. */
static bool wants_more(struct wire *w, int rc, struct sz_mono end, bool *late)
{
    switch (SSL_get_error(w->ssl, rc)) {
    case SSL_ERROR_WANT_READ:
        *late = !wait_for(w, POLLIN, end);
        return !*late;
    case SSL_ERROR_WANT_WRITE:
        *late = !wait_for(w, POLLOUT, end);
        return !*late;
    default:
        return false;
    }
}

/* OpenSSL writes without MSG_NOSIGNAL: a peer that is gone must not end the test. */
static bool handshake(struct wire *w, int (*step)(SSL *ssl))
{
    signal(SIGPIPE, SIG_IGN);
    struct sz_mono end = in_time(SZ_SEC(10));
    bool late = false;
    int rc;

    while ((rc = step(w->ssl)) != 1 && wants_more(w, rc, end, &late))
        ;
    if (rc != 1)
        wire_close(w);
    return rc == 1;
}

static void set_alpn(SSL *ssl, const char *protocol)
{
    unsigned char list[64];
    size_t n = strlen(protocol);

    SZ_ASSERT(n < sizeof(list));
    list[0] = (unsigned char)n;
    memcpy(list + 1, protocol, n);
    SZ_ASSERT(SSL_set_alpn_protos(ssl, list, (unsigned)n + 1) == 0);
}

bool wire_start_tls(struct wire *w, const struct wire_tls *tls)
{
    SSL_CTX *ctx = SSL_CTX_new(TLS_client_method());

    SZ_ASSERT(ctx != NULL);
    if (tls->ca != NULL) {
        SZ_ASSERT(SSL_CTX_load_verify_locations(ctx, tls->ca, NULL) == 1);
        SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER, NULL);
    }
    if (tls->certificate != NULL) {
        SZ_ASSERT(SSL_CTX_use_certificate_chain_file(ctx, tls->certificate) == 1);
        SZ_ASSERT(SSL_CTX_use_PrivateKey_file(ctx, tls->key, SSL_FILETYPE_PEM) == 1);
    }
    w->ssl = SSL_new(ctx);
    SZ_ASSERT(w->ssl != NULL && SSL_set_fd(w->ssl, w->fd) == 1);
    SSL_CTX_free(ctx);
    if (tls->max_version != 0)
        SZ_ASSERT(SSL_set_max_proto_version(w->ssl, tls->max_version) == 1);
    if (tls->name != NULL)
        SZ_ASSERT(SSL_set_tlsext_host_name(w->ssl, tls->name) == 1);
    if (tls->name != NULL && tls->ca != NULL)
        SZ_ASSERT(SSL_set1_host(w->ssl, tls->name) == 1);
    if (tls->alpn != NULL)
        set_alpn(w->ssl, tls->alpn);
    return handshake(w, SSL_connect);
}

bool wire_accept_tls(struct wire *w, SSL_CTX *ctx)
{
    w->ssl = SSL_new(ctx);
    SZ_ASSERT(w->ssl != NULL && SSL_set_fd(w->ssl, w->fd) == 1);
    return handshake(w, SSL_accept);
}

static ssize_t send_some(struct wire *w, struct sz_slice bytes, struct sz_mono end)
{
    bool late = false;
    int rc;

    if (w->ssl == NULL) {
        ssize_t n;
        while ((n = send(w->fd, bytes.p, bytes.n, MSG_NOSIGNAL)) < 0 && errno == EAGAIN) {
            if (!wait_for(w, POLLOUT, end))
                return -1;
        }
        return n;
    }
    while ((rc = SSL_write(w->ssl, bytes.p, (int)(bytes.n < 16384 ? bytes.n : 16384))) <= 0) {
        if (!wants_more(w, rc, end, &late))
            return -1;
    }
    return rc;
}

bool wire_send_by(struct wire *w, struct sz_slice bytes, struct sz_mono end)
{
    while (bytes.n > 0) {
        ssize_t n = w->fd < 0 ? -1 : send_some(w, bytes, end);
        if (n <= 0)
            return false;
        bytes = sz_from(bytes, (size_t)n);
    }
    return true;
}

bool wire_send(struct wire *w, struct sz_slice bytes)
{
    return wire_send_by(w, bytes, in_time(SZ_SEC(10)));
}

ssize_t wire_read(struct wire *w, void *out, size_t size, struct sz_mono end)
{
    bool late = false;
    ssize_t n;

    if (w->fd < 0)
        return 0;
    if (w->ssl != NULL) {
        int rc;
        while ((rc = SSL_read(w->ssl, out, (int)size)) <= 0) {
            if (!wants_more(w, rc, end, &late))
                return late ? -ETIMEDOUT : 0;
        }
        return rc;
    }
    while ((n = recv(w->fd, out, size, 0)) < 0 && errno == EAGAIN) {
        if (!wait_for(w, POLLIN, end))
            return -ETIMEDOUT;
    }
    return n < 0 ? 0 : n;
}

bool wire_read_all(struct wire *w, struct sz_buf *out, struct sz_span quiet)
{
    char chunk[16384];
    ssize_t n;

    while ((n = wire_read(w, chunk, sizeof(chunk), in_time(quiet))) > 0)
        sz_buf_add(out, chunk, (size_t)n);
    return n == 0;
}

bool wire_closed_within(struct wire *w, struct sz_span limit)
{
    struct sz_mono end = in_time(limit);
    char chunk[16384];
    ssize_t n;

    while ((n = wire_read(w, chunk, sizeof(chunk), end)) > 0)
        ;
    return n == 0;
}

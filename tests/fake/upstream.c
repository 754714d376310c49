/*
 * See upstream.h.  One thread accepts, one thread serves each connection; upstream_stop ends them all.  `lock` guards
 * the list of requests, the script and the list of connections.
 */
#include "fake/upstream.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include "fake/upstream_read.h"

struct conn {
    struct upstream *upstream;
    struct upstream_conn in;
    unsigned number;
    struct conn *next;
};

struct upstream {
    struct in_addr address;
    uint16_t port;
    int listener, stop[2]; /* stop: a pipe that is closed to end everything */
    SSL_CTX *tls;
    pthread_t acceptor;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct upstream_script script;
    struct upstream_request **requests; /* all since the start; those before `first` are cleared, kept for who reads */
    size_t first, n, room, ended;
    struct conn *conns;
    unsigned open;
    atomic_uint connections;
    _Atomic uint64_t sent;
};

/* ---- answering --------------------------------------------------------------------------------------------------- */

/* Until the other side leaves or the upstream stops; nothing is read, so what it sends stays in the kernel. */
static void hang(struct conn *c)
{
    struct pollfd p[] = {{.fd = c->in.wire.fd, .events = POLLRDHUP}, {.fd = c->upstream->stop[0], .events = POLLIN}};

    while (poll(p, 2, -1) < 0 && errno == EINTR)
        ;
}

static bool fault(struct conn *c, const struct upstream_script *s)
{
    if (s->fault == UPSTREAM_HANG)
        hang(c);
    else if (s->fault == UPSTREAM_RESET)
        wire_reset(&c->in.wire);
    return false;
}

/* A pause that upstream_stop ends. */
static bool pause_for(struct conn *c, struct sz_span span)
{
    struct pollfd p = {.fd = c->upstream->stop[0], .events = POLLIN};

    return poll(&p, 1, (int)(span.us / 1000)) == 0;
}

/* Sends on until `budget` runs out: then it is time for the fault, or for nothing more. */
static bool send_part(struct conn *c, const struct upstream_script *s, struct sz_slice bytes, uint64_t *budget)
{
    while (bytes.n > 0 && *budget > 0) {
        size_t n = s->drip != 0 && s->drip < bytes.n ? s->drip : bytes.n;
        if (n > *budget)
            n = (size_t)*budget;
        if (!wire_send_by(&c->in.wire, sz_sub(bytes, 0, n), SZ_NEVER))
            return false;
        atomic_fetch_add(&c->upstream->sent, n);
        *budget -= n;
        bytes = sz_from(bytes, n);
        if (s->drip != 0 && bytes.n > 0 && !pause_for(c, s->pause))
            return false;
    }
    return true;
}

static bool send_stream(struct conn *c, const struct upstream_script *s, uint64_t *budget)
{
    static const char block[65536];
    uint64_t left = s->stream;

    while (left > 0 && *budget > 0) {
        size_t n = left < sizeof(block) ? (size_t)left : sizeof(block);
        if (!send_part(c, s, sz_slice(block, n), budget))
            return false;
        left -= n;
    }
    return true;
}

/* As every server does, whatever else it gets wrong. */
static bool asks_to_close(const struct upstream_request *request)
{
    char value[32];

    return upstream_field(request, "connection", value, sizeof(value)) && strcasecmp(value, "close") == 0;
}

static bool answer(struct conn *c, const struct upstream_script *s, const struct upstream_request *request)
{
    uint64_t budget = s->fault_at == UPSTREAM_AT_ANSWER ? s->after : UINT64_MAX;
    bool head = sz_eq(request->method, SZ_S("HEAD"));
    struct sz_buf made = {0};

    if (s->wait.us > 0 && !pause_for(c, s->wait))
        return false;
    if (s->speak != NULL)
        return s->speak(&c->in.wire, request, s->arg);
    if (s->answer.p != NULL)
        sz_buf_adds(&made, s->answer);
    else
        sz_buf_printf(&made, "HTTP/1.1 200 OK\r\nContent-Length: %llu\r\n%s\r\n%s",
                      (unsigned long long)(s->stream != 0 ? s->stream : 2), s->close ? "Connection: close\r\n" : "",
                      s->stream != 0 || head ? "" : "ok");
    bool sent = send_part(c, s, sz_buf_slice(&made), &budget) && (head || send_stream(c, s, &budget));
    sz_buf_fini(&made);
    if (s->fault_at == UPSTREAM_AT_ANSWER)
        return fault(c, s);
    return sent && !s->close && !asks_to_close(request);
}

/* ---- requests ---------------------------------------------------------------------------------------------------- */

static struct upstream_script current_script(struct upstream *u)
{
    pthread_mutex_lock(&u->lock);
    struct upstream_script script = u->script;
    pthread_mutex_unlock(&u->lock);
    return script;
}

static struct upstream_request *record(struct conn *c, bool listed)
{
    struct upstream_request *request = sz_xcalloc(1, sizeof(*request));
    struct upstream *u = c->upstream;

    request->connection = c->number;
    request->unread = &c->in.in;
    upstream_read_line(&c->in, request);
    if (!listed)
        return request;
    pthread_mutex_lock(&u->lock);
    if (u->n == u->room) {
        u->room = u->room * 2 + 1024;
        u->requests = sz_xrealloc(u->requests, u->room * sizeof(struct upstream_request *));
    }
    request->number = u->n;
    u->requests[u->n++] = request;
    pthread_cond_broadcast(&u->changed);
    pthread_mutex_unlock(&u->lock);
    return request;
}

static void end_request(struct conn *c, struct upstream_request *request, bool whole, bool listed)
{
    struct upstream *u = c->upstream;

    pthread_mutex_lock(&u->lock);
    upstream_read_keep(&c->in, request);
    request->broken = !whole;
    request->ended = true;
    u->ended += listed && request->number >= u->first;
    pthread_cond_broadcast(&u->changed);
    pthread_mutex_unlock(&u->lock);
}

static void free_request(struct upstream_request *request)
{
    free((void *)request->head.p);
    free((void *)request->raw.p);
    free((void *)request->body.p);
    free(request);
}

/* True when the connection goes on. */
static bool serve_one(struct conn *c)
{
    int rc = upstream_read_head(&c->in);

    if (rc == -EPIPE)
        return false;
    struct upstream_script script = current_script(c->upstream);
    struct upstream_request *request = record(c, !script.forgets);
    bool stops = script.fault_at == UPSTREAM_AT_HEAD;
    if (rc == 0 && !stops && !script.ignores_body)
        rc = upstream_read_body(&c->in, request);
    end_request(c, request, rc == 0 && !stops, !script.forgets);
    bool goes_on = rc == 0 && (stops ? fault(c, &script) : answer(c, &script, request));
    if (script.forgets)
        free_request(request);
    return goes_on;
}

static void *conn_main(void *arg)
{
    struct conn *c = arg;
    struct upstream *u = c->upstream;
    struct upstream_script script = current_script(u);

    if (script.fault_at == UPSTREAM_AT_ACCEPT)
        (void)fault(c, &script);
    else if (u->tls == NULL || wire_accept_tls(&c->in.wire, u->tls))
        while (serve_one(c))
            ;
    pthread_mutex_lock(&u->lock);
    struct conn **at = &u->conns;
    while (*at != c)
        at = &(*at)->next;
    *at = c->next;
    upstream_read_fini(&c->in);
    free(c);
    u->open--;
    pthread_cond_broadcast(&u->changed);
    pthread_mutex_unlock(&u->lock);
    return NULL;
}

/* ---- connections ------------------------------------------------------------------------------------------------- */

static void start_conn(struct upstream *u, int fd)
{
    struct conn *c = sz_xcalloc(1, sizeof(*c));
    pthread_attr_t attr;
    pthread_t id;

    SZ_ASSERT(fcntl(fd, F_SETFL, O_NONBLOCK) == 0);
    *c = (struct conn){.upstream = u, .number = atomic_fetch_add(&u->connections, 1) + 1};
    upstream_read_init(&c->in, fd);
    pthread_mutex_lock(&u->lock);
    c->next = u->conns;
    u->conns = c;
    u->open++;
    pthread_mutex_unlock(&u->lock);
    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, 256 * 1024);
    pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    SZ_ASSERT(pthread_create(&id, &attr, conn_main, c) == 0);
    pthread_attr_destroy(&attr);
}

static void *accept_main(void *arg)
{
    struct upstream *u = arg;

    for (;;) {
        struct pollfd p[] = {{.fd = u->listener, .events = POLLIN}, {.fd = u->stop[0], .events = POLLIN}};
        if (poll(p, 2, -1) < 0)
            continue;
        if (p[1].revents != 0)
            return NULL;
        int fd = accept4(u->listener, NULL, NULL, SOCK_CLOEXEC);
        if (fd >= 0)
            start_conn(u, fd);
    }
}

static void listen_on(struct upstream *u)
{
    struct sockaddr_in addr = {.sin_family = AF_INET, .sin_port = htons(u->port)};
    socklen_t n = sizeof(addr);
    int on = 1;

    addr.sin_addr = u->address;
    u->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    SZ_ASSERT(u->listener >= 0 && setsockopt(u->listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) == 0);
    SZ_ASSERT(bind(u->listener, (struct sockaddr *)&addr, sizeof(addr)) == 0 && listen(u->listener, 1024) == 0);
    SZ_ASSERT(getsockname(u->listener, (struct sockaddr *)&addr, &n) == 0);
    u->port = ntohs(addr.sin_port);
    SZ_ASSERT(pipe2(u->stop, O_CLOEXEC) == 0); /* a child that kept it would keep the acceptor alive */
    SZ_ASSERT(pthread_create(&u->acceptor, NULL, accept_main, u) == 0);
}

/* Ends the acceptor and every connection. */
static void hang_up(struct upstream *u)
{
    close(u->stop[1]);
    pthread_join(u->acceptor, NULL);
    close(u->listener);
    pthread_mutex_lock(&u->lock);
    for (struct conn *c = u->conns; c != NULL; c = c->next) {
        if (c->in.wire.fd >= 0)
            shutdown(c->in.wire.fd, SHUT_RDWR);
    }
    while (u->open > 0)
        pthread_cond_wait(&u->changed, &u->lock);
    pthread_mutex_unlock(&u->lock);
    close(u->stop[0]);
    u->listener = -1;
}

static int choose_h2(SSL *ssl, const unsigned char **out, unsigned char *out_n, const unsigned char *offered,
                     unsigned offered_n, void *arg)
{
    static const unsigned char ours[] = "\x02h2\x08http/1.1";
    unsigned char *chosen;

    (void)ssl, (void)arg;
    int rc = SSL_select_next_proto(&chosen, out_n, ours, sizeof(ours) - 1, offered, offered_n);
    *out = chosen;
    return rc == OPENSSL_NPN_NEGOTIATED ? SSL_TLSEXT_ERR_OK : SSL_TLSEXT_ERR_NOACK;
}

static SSL_CTX *server_context(const struct upstream_tls *tls)
{
    SSL_CTX *ctx = SSL_CTX_new(TLS_server_method());

    SZ_ASSERT(ctx != NULL && SSL_CTX_use_certificate_chain_file(ctx, tls->certificate) == 1);
    SZ_ASSERT(SSL_CTX_use_PrivateKey_file(ctx, tls->key, SSL_FILETYPE_PEM) == 1);
    SZ_ASSERT(tls->max_version == 0 || SSL_CTX_set_max_proto_version(ctx, tls->max_version) == 1);
    if (tls->h2)
        SSL_CTX_set_alpn_select_cb(ctx, choose_h2, NULL);
    if (tls->client_ca != NULL) {
        SZ_ASSERT(SSL_CTX_load_verify_locations(ctx, tls->client_ca, NULL) == 1);
        SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, NULL);
    }
    return ctx;
}

struct upstream *upstream_start(const struct upstream_tls *tls)
{
    return upstream_start_at(tls, 0);
}

struct upstream *upstream_start_at(const struct upstream_tls *tls, uint16_t port)
{
    return upstream_start_on(tls, "127.0.0.1", port);
}

struct upstream *upstream_start_on(const struct upstream_tls *tls, const char *address, uint16_t port)
{
    struct upstream *u = sz_xcalloc(1, sizeof(*u));

    SZ_ASSERT(inet_pton(AF_INET, address, &u->address) == 1);
    pthread_mutex_init(&u->lock, NULL);
    pthread_cond_init(&u->changed, NULL);
    u->tls = tls != NULL ? server_context(tls) : NULL;
    u->port = port;
    listen_on(u);
    return u;
}

void upstream_stop(struct upstream **u)
{
    if (*u == NULL)
        return;
    if ((*u)->listener >= 0)
        hang_up(*u);
    for (size_t i = 0; i < (*u)->n; i++)
        free_request((*u)->requests[i]);
    SSL_CTX_free((*u)->tls);
    pthread_cond_destroy(&(*u)->changed);
    pthread_mutex_destroy(&(*u)->lock);
    free((*u)->requests);
    free(*u);
    *u = NULL;
}

void upstream_refuse(struct upstream *u)
{
    hang_up(u);
}

void upstream_accept(struct upstream *u)
{
    listen_on(u);
}

uint16_t upstream_port(const struct upstream *u)
{
    return u->port;
}

/* ---- what was recorded ---------------------------------------------------------------------------------------------
 */

void upstream_play(struct upstream *u, const struct upstream_script *script)
{
    pthread_mutex_lock(&u->lock);
    u->script = script != NULL ? *script : (struct upstream_script){0};
    pthread_mutex_unlock(&u->lock);
}

size_t upstream_count(struct upstream *u)
{
    pthread_mutex_lock(&u->lock);
    size_t n = u->n - u->first;
    pthread_mutex_unlock(&u->lock);
    return n;
}

bool upstream_wait(struct upstream *u, size_t n, struct sz_span limit)
{
    struct timespec end;
    int rc = 0;

    clock_gettime(CLOCK_REALTIME, &end);
    end.tv_sec += limit.us / 1000000;
    end.tv_nsec += limit.us % 1000000 * 1000;
    if (end.tv_nsec >= 1000000000) {
        end.tv_sec++;
        end.tv_nsec -= 1000000000;
    }
    pthread_mutex_lock(&u->lock);
    while (u->ended < n && rc == 0)
        rc = pthread_cond_timedwait(&u->changed, &u->lock, &end);
    bool there = u->ended >= n;
    pthread_mutex_unlock(&u->lock);
    return there;
}

const struct upstream_request *upstream_at(struct upstream *u, size_t i)
{
    pthread_mutex_lock(&u->lock);
    const struct upstream_request *request = i < u->n - u->first ? u->requests[u->first + i] : NULL;
    pthread_mutex_unlock(&u->lock);
    return request;
}

void upstream_clear(struct upstream *u)
{
    pthread_mutex_lock(&u->lock);
    u->first = u->n;
    u->ended = 0;
    pthread_mutex_unlock(&u->lock);
}

unsigned upstream_connections(struct upstream *u)
{
    return atomic_load(&u->connections);
}

unsigned upstream_open(struct upstream *u)
{
    pthread_mutex_lock(&u->lock);
    unsigned n = u->open;
    pthread_mutex_unlock(&u->lock);
    return n;
}

uint64_t upstream_sent(struct upstream *u)
{
    return atomic_load(&u->sent);
}

/*
 * One connection to one server.
 *
 *   DOWN ─▶ NAME ─▶ DIAL ─▶ TLS ─▶ LOGIN ─▶ UP
 *     ▲      (a name)      (rediss)          │
 *     └──────── drop: any failure, at any step, any deadline ◀─┘
 *
 * One timer serves all of it: until UP it is the deadline of the whole way, while DOWN the time of the next try, and
 * then the watch over a server that accepts commands and answers none.  A drop never dials: the timer does, later,
 * so that nothing that is told of the loss can make a connection inside it.
 *
 * What is said in one turn of the loop goes out in one write, which is where pipelining comes from.
 */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "cache/redis_client.h"
#include "subzero/crypto.h"
#include "subzero/log.h"

enum {
    READS = 16,      /* of SZ_REDIS_READ bytes before other connections have their turn */
    OUT_KEPT = 65536 /* bytes of a written buffer that are kept for the next turn */
};

#define RETRY_AT_ONCE SZ_MS(4) /* a good connection was lost: commands wait for the next one meanwhile */
#define RETRY_FIRST   SZ_MS(20)
#define RETRY_MOST    SZ_SEC(2)
#define SETTLED       SZ_SEC(1) /* a connection that stood for so long was a good one */

static struct sz_mono now_of(const struct sz_redis_conn *conn)
{
    return sz_loop_now(conn->redis->loop);
}

static void arm(struct sz_redis_conn *conn, struct sz_span in)
{
    sz_timer_start(conn->redis->loop, &conn->timer, sz_after(now_of(conn), in));
}

/* ---- the way down ------------------------------------------------------------------------------------------------ */

/* Between half and the whole of a span. */
static struct sz_span jitter(struct sz_span span)
{
    uint32_t random;
    sz_random(&random, sizeof(random));
    return (struct sz_span){span.us / 2 + (int64_t)(random % (uint64_t)(span.us / 2))};
}

/* It doubles with each failure. */
static struct sz_span backoff(unsigned attempts)
{
    int64_t us = RETRY_FIRST.us << (attempts < 10 ? attempts : 10);
    return jitter((struct sz_span){us < RETRY_MOST.us ? us : RETRY_MOST.us});
}

/* Everything of the socket, and nothing else. */
static void hang_up(struct sz_redis_conn *conn)
{
    struct sz_redis_shared *shared = conn->redis->shared;
    sz_timer_cancel(conn->redis->loop, &conn->timer);
    sz_defer_cancel(&conn->flush);
    sz_defer_cancel(&conn->reread);
    if (conn->state == SZ_REDIS_NAME)
        sz_resolver_forget(&conn->redis->mailbox, &conn->ask);
    sz_redis_ssl_free(&conn->ssl);
    sz_watch_free(&conn->watch);
    if (conn->fd >= 0) {
        close(conn->fd);
        atomic_fetch_sub(&shared->connections, 1);
        sz_gauge_add(sz_loop_index(conn->redis->loop), shared->open, -1);
    }
    conn->fd = -1;
    if (conn->state == SZ_REDIS_UP)
        atomic_fetch_sub(&shared->up, 1);
    conn->state = SZ_REDIS_DOWN;
    if (conn->out.p != NULL)
        sz_wipe(conn->out.p, conn->out.n);
    sz_buf_fini(&conn->out);
    conn->out_at = 0;
    sz_redis_reader_free(&conn->reader);
}

static void say_lost(struct sz_redis_conn *conn, bool was_up)
{
    struct sz_redis_shared *shared = conn->redis->shared;
    sz_redis_shared_why(shared, &conn->why);
    if (atomic_load(&shared->up) == 0 && !atomic_exchange(&shared->loss_said, true))
        sz_log(SZ_LOG_WARN, "redis", "%s %.*s: %s", was_up ? "lost" : "cannot reach", SZ_FMT(shared->conf->shown),
               conn->why.s);
}

void sz_redis_conn_drop(struct sz_redis_conn *conn, const char *fmt, ...)
{
    bool was_up = conn->state == SZ_REDIS_UP;
    va_list args;
    va_start(args, fmt);
    vsnprintf(conn->why.s, sizeof(conn->why.s), fmt, args);
    va_end(args);
    bool settled = was_up && sz_between(conn->up_since, now_of(conn)).us >= SETTLED.us;
    hang_up(conn);
    say_lost(conn, was_up);
    conn->attempts = settled ? 0 : conn->attempts + 1;
    if (!conn->extra)
        arm(conn, settled ? jitter(RETRY_AT_ONCE) : backoff(conn->attempts));
    if (conn->subscription != NULL)
        sz_redis_listen_down(conn);
    else
        sz_redis_map_conn_lost(conn);
    sz_redis_fail_all(&conn->sent);
    if (conn->subscription == NULL)
        sz_redis_node_down(conn->node);
}

/* ---- writing ----------------------------------------------------------------------------------------------------- */

static ptrdiff_t put(struct sz_redis_conn *conn, const char *bytes, size_t n)
{
    if (conn->ssl != NULL)
        return sz_redis_ssl_write(conn->ssl, bytes, n);
    ssize_t sent = send(conn->fd, bytes, n, MSG_NOSIGNAL);
    return sent < 0 ? -errno : sent;
}

static void watch(struct sz_redis_conn *conn, bool write)
{
    sz_watch_set(conn->watch, SZ_READ | (write ? SZ_WRITE : 0u));
}

static void flush(struct sz_redis_conn *conn)
{
    while (conn->out_at < conn->out.n) {
        ptrdiff_t n = put(conn, conn->out.p + conn->out_at, conn->out.n - conn->out_at);
        if (n == -EAGAIN || n == -EINTR)
            break;
        if (n < 0) {
            sz_redis_conn_drop(conn, "%s", strerror((int)-n));
            return;
        }
        conn->out_at += (size_t)n;
    }
    bool all = conn->out_at == conn->out.n;
    if (all) {
        if (conn->state == SZ_REDIS_LOGIN && conn->out.p != NULL)
            sz_wipe(conn->out.p, conn->out.n); /* a password was in it */
        conn->out.n = conn->out_at = 0;
        if (conn->out.cap > OUT_KEPT)
            sz_buf_fini(&conn->out);
    }
    watch(conn, !all);
}

static void on_flush(struct sz_defer *defer)
{
    flush(SZ_CONTAINER(defer, struct sz_redis_conn, flush));
}

static void enqueue(struct sz_redis_conn *conn, struct sz_redis_pending *p)
{
    p->was_sent = true;
    p->sent = now_of(conn);
    p->node = conn->node;
    sz_redis_queue_add(&conn->sent, p);
    if (conn->state == SZ_REDIS_UP && !sz_timer_armed(&conn->timer))
        arm(conn, SZ_REDIS_STALL);
    sz_defer_start(conn->redis->loop, &conn->flush);
}

/* Refused, the command after it is answered by a redirection. */
static bool on_asking(struct sz_redis_conn *conn, struct sz_redis_pending *p, const struct sz_redis_answer *answer)
{
    (void)conn;
    (void)p;
    (void)answer;
    return true;
}

void sz_redis_conn_send(struct sz_redis_conn *conn, struct sz_redis_pending *p)
{
    if (p->asking)
        sz_redis_conn_say(conn, &(struct sz_slice){"ASKING", 6}, 1, on_asking);
    p->asking = false;
    sz_buf_adds(&conn->out, sz_buf_slice(&p->bytes));
    enqueue(conn, p);
}

struct sz_redis_pending *sz_redis_conn_say(struct sz_redis_conn *conn, const struct sz_slice *args, size_t args_n,
                                           bool (*own)(struct sz_redis_conn *conn, struct sz_redis_pending *pending,
                                                       const struct sz_redis_answer *answer))
{
    struct sz_redis_pending *p = sz_redis_pending_get(conn->redis);
    p->own = own;
    sz_redis_encode(&conn->out, args, args_n);
    enqueue(conn, p);
    return p;
}

void sz_redis_conn_mention(struct sz_redis_conn *conn, const struct sz_slice *args, size_t args_n)
{
    sz_redis_encode(&conn->out, args, args_n);
    sz_defer_start(conn->redis->loop, &conn->flush);
}

/* ---- reading ----------------------------------------------------------------------------------------------------- */

/* One reply to whoever waits for it; false: the connection is to be given up (*why). */
static bool deliver(struct sz_redis_conn *conn, const struct sz_redis_reply *reply, struct sz_slice error,
                    const char **why)
{
    struct sz_redis_answer answer = {.result = SZ_REDIS_ANSWERED, .reply = reply};
    if (reply == NULL) {
        answer.result = sz_redis_classify(error);
        answer.error = error;
    }
    *why = NULL; /* who says false has set conn->why */
    if (conn->subscription != NULL && conn->state == SZ_REDIS_UP)
        return sz_redis_heard(conn, &answer);
    struct sz_redis_pending *p = sz_redis_queue_take(&conn->sent);
    if (p == NULL) {
        *why = "an answer that nobody waits for";
        return false;
    }
    if (sz_between(p->sent, now_of(conn)).us <= conn->redis->shared->conf->timeout.us)
        conn->node->good = now_of(conn);
    if (p->own == NULL) {
        *why = "it no longer serves us as before";
        return sz_redis_answered(conn, p, &answer);
    }
    bool ok = p->own(conn, p, &answer);
    sz_redis_pending_put(p);
    return ok;
}

static size_t limit_of(const struct sz_redis_conn *conn)
{
    if (conn->subscription != NULL && conn->state == SZ_REDIS_UP)
        return SZ_REDIS_REPLY_DEFAULT;
    return conn->sent.first != NULL ? conn->sent.first->limit : 0;
}

/* False: dropped. */
static bool take_replies(struct sz_redis_conn *conn)
{
    for (;;) {
        const struct sz_redis_reply *reply;
        struct sz_slice error;
        const char *why;
        switch (sz_redis_reader_next(conn->reader, limit_of(conn), &reply, &error)) {
        case SZ_REDIS_READ_MORE:
            return true;
        case SZ_REDIS_READ_BAD:
            sz_redis_conn_drop(conn, "what it answered is not Redis's protocol, or larger than was asked for");
            return false;
        case SZ_REDIS_READ_REPLY:
            break;
        }
        if (!deliver(conn, reply, error, &why)) {
            struct sz_text text = conn->why;
            sz_redis_conn_drop(conn, "%s", why != NULL ? why : text.s);
            return false;
        }
    }
}

static ptrdiff_t get(struct sz_redis_conn *conn, char *bytes, size_t n)
{
    if (conn->ssl != NULL)
        return sz_redis_ssl_read(conn->ssl, bytes, n);
    ssize_t got = recv(conn->fd, bytes, n, 0);
    return got < 0 ? -errno : got;
}

static void read_some(struct sz_redis_conn *conn)
{
    struct sz_redis *redis = conn->redis;
    for (int i = 0; i < READS; i++) {
        ptrdiff_t n = get(conn, redis->read, sizeof(redis->read));
        if (n == -EAGAIN || n == -EINTR)
            return;
        if (n <= 0) {
            sz_redis_conn_drop(conn, "%s", n == 0 ? "it closed the connection" : strerror((int)-n));
            return;
        }
        if (!sz_redis_reader_feed(conn->reader, redis->read, (size_t)n)) {
            sz_redis_conn_drop(conn, "out of memory");
            return;
        }
        if (!take_replies(conn))
            return;
        if ((size_t)n < sizeof(redis->read) && conn->ssl == NULL)
            return;
    }
    if (conn->ssl != NULL && sz_redis_ssl_has_more(conn->ssl))
        sz_defer_start(redis->loop, &conn->reread);
}

static void on_reread(struct sz_defer *defer)
{
    read_some(SZ_CONTAINER(defer, struct sz_redis_conn, reread));
}

/* ---- the way up -------------------------------------------------------------------------------------------------- */

void sz_redis_conn_up(struct sz_redis_conn *conn)
{
    struct sz_redis_shared *shared = conn->redis->shared;
    sz_timer_cancel(conn->redis->loop, &conn->timer);
    conn->state = SZ_REDIS_UP;
    conn->up_since = now_of(conn);
    atomic_fetch_add(&shared->up, 1);
    if (atomic_exchange(&shared->loss_said, false))
        sz_log(SZ_LOG_INFO, "redis", "connected to %.*s again", SZ_FMT(shared->conf->shown));
    if (conn->redialled) {
        atomic_fetch_add(&shared->reconnects, 1);
        sz_count(sz_loop_index(conn->redis->loop), shared->reconnected, 1);
    }
    conn->redialled = true;
    if (conn->subscription != NULL) {
        sz_redis_listen_up(conn);
        return;
    }
    sz_redis_node_up(conn);
    sz_redis_map_conn_up(conn);
}

static void log_in(struct sz_redis_conn *conn)
{
    conn->state = SZ_REDIS_LOGIN;
    watch(conn, false);
    sz_redis_login(conn);
}

static void shake_hands(struct sz_redis_conn *conn)
{
    unsigned wants = 0;
    struct sz_text why;
    int rc = sz_redis_ssl_handshake(conn->ssl, &wants, &why);
    if (rc == 0)
        log_in(conn);
    else if (rc == -EAGAIN)
        sz_watch_set(conn->watch, wants);
    else
        sz_redis_conn_drop(conn, "%s", why.s);
}

static void connected(struct sz_redis_conn *conn)
{
    struct sz_redis_shared *shared = conn->redis->shared;
    if (shared->tls == NULL) {
        log_in(conn);
        return;
    }
    conn->ssl = sz_redis_ssl_new(shared->tls, conn->node->host, conn->fd);
    if (conn->ssl == NULL) {
        sz_redis_conn_drop(conn, "cannot set TLS up");
        return;
    }
    conn->state = SZ_REDIS_TLS;
    shake_hands(conn);
}

static void on_dialled(struct sz_redis_conn *conn)
{
    int error = 0;
    socklen_t n = sizeof(error);
    if (getsockopt(conn->fd, SOL_SOCKET, SO_ERROR, &error, &n) != 0)
        error = errno;
    if (error != 0)
        sz_redis_conn_drop(conn, "%s", strerror(error));
    else
        connected(conn);
}

static void on_ready(void *arg, int fd, unsigned events)
{
    struct sz_redis_conn *conn = arg;
    (void)fd;
    switch (conn->state) {
    case SZ_REDIS_DIAL:
        on_dialled(conn);
        break;
    case SZ_REDIS_TLS:
        shake_hands(conn);
        break;
    case SZ_REDIS_LOGIN:
    case SZ_REDIS_UP:
        if ((events & SZ_WRITE) != 0)
            flush(conn);
        if ((events & SZ_READ) != 0 && conn->fd >= 0)
            read_some(conn);
        break;
    case SZ_REDIS_DOWN:
    case SZ_REDIS_NAME:
        break;
    }
}

static socklen_t ip_address(struct sz_addr addr, uint16_t port, struct sockaddr_storage *out)
{
    memset(out, 0, sizeof(*out));
    if (sz_addr_is_v4(addr)) {
        struct sockaddr_in *in = (struct sockaddr_in *)(void *)out;
        in->sin_family = AF_INET;
        in->sin_port = htons(port);
        memcpy(&in->sin_addr, addr.b + 12, 4);
        return sizeof(*in);
    }
    struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)(void *)out;
    in6->sin6_family = AF_INET6;
    in6->sin6_port = htons(port);
    memcpy(&in6->sin6_addr, addr.b, 16);
    return sizeof(*in6);
}

static socklen_t unix_address(struct sz_slice path, struct sockaddr_storage *out)
{
    struct sockaddr_un *un = (struct sockaddr_un *)(void *)out;
    memset(out, 0, sizeof(*out));
    un->sun_family = AF_UNIX;
    SZ_ASSERT(path.n < sizeof(un->sun_path));
    memcpy(un->sun_path, path.p, path.n);
    return sizeof(*un);
}

static void set_options(int fd)
{
    int one = 1, idle = 15, every = 5, tries = 3;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &one, sizeof(one));
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof(idle));
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &every, sizeof(every));
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &tries, sizeof(tries));
}

static void open_socket(struct sz_redis_conn *conn)
{
    struct sockaddr_storage to;
    bool local = conn->node->unix_socket;
    socklen_t n = local ? unix_address(conn->node->host, &to)
                        : ip_address(conn->addresses.v[conn->attempts % conn->addresses.n], conn->node->port, &to);
    conn->state = SZ_REDIS_DIAL;
    conn->fd = socket(to.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (conn->fd < 0) {
        sz_redis_conn_drop(conn, "no socket: %s", strerror(errno));
        return;
    }
    atomic_fetch_add(&conn->redis->shared->connections, 1);
    sz_gauge_add(sz_loop_index(conn->redis->loop), conn->redis->shared->open, 1);
    if (!local)
        set_options(conn->fd);
    conn->watch = sz_watch_new(conn->redis->loop, conn->fd, on_ready, conn);
    if (connect(conn->fd, (struct sockaddr *)(void *)&to, n) == 0)
        connected(conn);
    else if (errno == EINPROGRESS)
        sz_watch_set(conn->watch, SZ_WRITE);
    else
        sz_redis_conn_drop(conn, "%s", strerror(errno));
}

/* From the mailbox: what the name means is known. */
void sz_redis_conn_named(struct sz_redis_conn *conn)
{
    conn->state = SZ_REDIS_DIAL; /* the question is answered: nothing to forget */
    if (conn->ask.status != 0) {
        sz_redis_conn_drop(conn, "the name %.*s has no address: %s", SZ_FMT(conn->node->host),
                           strerror(-conn->ask.status));
        return;
    }
    conn->addresses = conn->ask.found;
    open_socket(conn);
}

static void find_address(struct sz_redis_conn *conn)
{
    conn->addresses = (struct sz_addresses){.n = 1};
    if (conn->node->unix_socket || sz_addr_parse(conn->node->host, &conn->addresses.v[0]) == 0) {
        open_socket(conn);
        return;
    }
    conn->state = SZ_REDIS_NAME;
    switch (sz_resolver_ask(&conn->redis->mailbox, conn->node->host.p, now_of(conn), &conn->ask)) {
    case 0:
        sz_redis_conn_named(conn);
        break;
    case SZ_RESOLVER_WAIT:
        break;
    default:
        conn->state = SZ_REDIS_DIAL;
        sz_redis_conn_drop(conn, "too many names are being looked up");
        break;
    }
}

/* From a timer: never inside a call of somebody else's. */
static void begin(struct sz_redis_conn *conn)
{
    if (conn->subscription != NULL)
        conn->node = sz_redis_any_node(conn->redis);
    if (conn->node == NULL || !sz_redis_map_wants(conn->node)) {
        arm(conn, RETRY_MOST);
        return;
    }
    arm(conn, SZ_REDIS_CONNECT);
    conn->reader = sz_redis_reader_new();
    find_address(conn);
}

/* The server owes an answer for too long, or has been given one since. */
static void look_for_stall(struct sz_redis_conn *conn)
{
    const struct sz_redis_pending *oldest = conn->sent.first;
    if (oldest == NULL)
        return;
    struct sz_mono until = sz_after(oldest->sent, SZ_REDIS_STALL);
    if (until.us > now_of(conn).us)
        sz_timer_start(conn->redis->loop, &conn->timer, until);
    else
        sz_redis_conn_drop(conn, "no answer within %d ms", (int)(SZ_REDIS_STALL.us / 1000));
}

static void on_timer(struct sz_timer *timer)
{
    struct sz_redis_conn *conn = SZ_CONTAINER(timer, struct sz_redis_conn, timer);
    switch (conn->state) {
    case SZ_REDIS_DOWN:
        begin(conn);
        break;
    case SZ_REDIS_NAME:
    case SZ_REDIS_DIAL:
    case SZ_REDIS_TLS:
    case SZ_REDIS_LOGIN:
        sz_redis_conn_drop(conn, "no %s within %d ms",
                           conn->state == SZ_REDIS_NAME    ? "address"
                           : conn->state == SZ_REDIS_LOGIN ? "answer to the login"
                                                           : "connection",
                           (int)(SZ_REDIS_CONNECT.us / 1000));
        break;
    case SZ_REDIS_UP:
        look_for_stall(conn);
        break;
    }
}

void sz_redis_conn_dial(struct sz_redis_conn *conn)
{
    if (conn->state == SZ_REDIS_DOWN)
        sz_timer_start(conn->redis->loop, &conn->timer, now_of(conn));
}

struct sz_redis_conn *sz_redis_conn_new(struct sz_redis *redis, struct sz_redis_node *node)
{
    struct sz_redis_conn *conn = sz_xcalloc(1, sizeof(*conn));
    conn->redis = redis;
    conn->node = node;
    conn->fd = -1;
    conn->timer.on_fire = on_timer;
    conn->flush.on_run = on_flush;
    conn->reread.on_run = on_reread;
    sz_redis_queue_init(&conn->sent);
    if (node != NULL) {
        conn->next = node->conns;
        node->conns = conn;
        node->conns_n++;
    }
    return conn;
}

void sz_redis_conn_free(struct sz_redis_conn **connp)
{
    struct sz_redis_conn *conn = *connp;
    *connp = NULL;
    if (conn == NULL)
        return;
    hang_up(conn);
    sz_redis_fail_all(&conn->sent);
    free(conn);
}

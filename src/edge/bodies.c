/*
 * Counting happens after every read of a client connection, before h2o looks at the bytes.  A thread cuts only its own
 * connections; when another thread holds more, it is asked by a message, and until it has answered the reader that
 * pushes the total past a quarter over the bound is the one to go.
 */
#include "edge/bodies.h"

#include "edge/h2_streams.h"
#include "edge/server.h"
#include "edge/thread.h"
#include "subzero/cache.h"
#include "subzero/issuers.h"

const char sz_bodies_at_limit[] = "the buffered request bodies of the process are at their limit";
static h2o_socket_cb http1_read, http2_read; /* set before the threads start */

void sz_bodies_learn(h2o_socket_cb http1, h2o_socket_cb http2)
{
    http1_read = http1;
    http2_read = http2;
}

enum sz_conn_protocol sz_bodies_protocol(const struct sz_conn *conn)
{
    return conn->read == http1_read ? SZ_CONN_HTTP1 : conn->read == http2_read ? SZ_CONN_HTTP2 : SZ_CONN_OTHER;
}

/* Less than a small read does not count: the ordinary request then touches no shared counter. */
#define SMALL      4096
/* Nor does the head of an ordinary request. */
#define SMALL_HEAD 1024

/* h2o's buffers grow by doubling: what is taken from the system is what counts, not how far it is filled. */
static size_t held_by(const h2o_buffer_t *buffer)
{
    return buffer == NULL || buffer->size <= SMALL ? 0 : buffer->capacity;
}

/* What h2o and its pool take for a stream.  One that is being answered is bounded by limits.max_in_flight instead. */
#define STREAM 8192

static size_t http2_size(h2o_http2_conn_t *h2)
{
    size_t sum = 0, arriving = 0;
    uint32_t at = 0;
    for (h2o_http2_stream_t *stream; (stream = sz_h2_next_stream(h2, &at)) != NULL;) {
        sum += held_by(stream->_req_body);
        arriving += stream->state < H2O_HTTP2_STREAM_STATE_REQ_PENDING;
    }
    /* One at a time is what every upload over HTTP/2 is. */
    return sum + held_by(h2->_headers_unparsed) + (arriving > 1 ? arriving * STREAM : 0);
}

static size_t measure(const struct sz_conn *conn)
{
    size_t size = held_by(conn->sock->input);
    if (conn->read == http2_read)
        size += http2_size(conn->sock->data) + (conn->heads > SMALL ? conn->heads : 0);
    return size;
}

/* Sets what the connection holds; returns the process's total. */
static size_t set_buffered(struct sz_conn *conn, size_t size)
{
    struct sz_edge_thread *thread = conn->thread;
    size_t was = conn->buffered;
    conn->buffered = size;
    atomic_fetch_add_explicit(&thread->buffered, size - was, memory_order_relaxed);
    return atomic_fetch_add_explicit(&thread->server->buffered, size - was, memory_order_relaxed) + size - was;
}

/* The bearer token of the HTTP/1 head that is being read, when its verified identity is in L1. */
static bool head_has_known_token(const struct sz_conn *conn)
{
    static const char name[] = "\nauthorization: bearer ";
    struct sz_slice head = sz_slice(conn->sock->input->bytes, conn->sock->input->size);
    struct sz_edge_thread *thread = conn->thread;
    struct sz_identity identity;

    head = sz_sub(head, 0, 64 * 1024);
    for (size_t at = 0; at + sizeof(name) < head.n; at++) {
        if (head.p[at] == '\r' && at + 3 < head.n && sz_eq(sz_sub(head, at, 4), SZ_S("\r\n\r\n")))
            return false;
        if (head.p[at] != '\n' || !sz_ieq(sz_sub(head, at, sizeof(name) - 1), sz_slice(name, sizeof(name) - 1)))
            continue;
        struct sz_slice token = sz_from(head, at + sizeof(name) - 1);
        ptrdiff_t end = sz_find_byte(token, '\r');
        if (end < 0)
            return false;
        token = sz_sub(token, 0, (size_t)end);
        struct sz_fingerprint fp = sz_fingerprint(SZ_CREDENTIAL_JWT, 0, token);
        return sz_token_cache_get(thread->server->gate.tokens, fp, sz_loop_now(thread->loop),
                                  sz_loop_wall(thread->loop), &identity);
    }
    return false;
}

static struct sz_conn *largest(struct sz_edge_thread *thread, bool any)
{
    struct sz_conn *best = NULL;
    for (struct sz_conn *conn = thread->conns; conn != NULL; conn = conn->next) {
        if (conn->buffered == 0 || (best != NULL && conn->buffered <= best->buffered))
            continue;
        if (!any && (conn->authenticated || (conn->read == http1_read && head_has_known_token(conn))))
            continue;
        best = conn;
    }
    return best;
}

static struct sz_conn *choose(struct sz_edge_thread *thread)
{
    struct sz_conn *victim = largest(thread, false);
    return victim != NULL ? victim : largest(thread, true);
}

static size_t held(struct sz_edge_thread *thread)
{
    return atomic_load_explicit(&thread->buffered, memory_order_relaxed);
}

static bool past_bound(const struct sz_edge_thread *thread)
{
    return atomic_load_explicit(&thread->server->buffered, memory_order_relaxed) > thread->server->buffered_max;
}

static void count_cut(struct sz_conn *conn)
{
    sz_count(conn->thread->worker.index, conn->thread->server->series.refused_bodies, 1);
    set_buffered(conn, 0);
}

void sz_bodies_relieve(struct sz_edge_thread *thread)
{
    while (past_bound(thread)) {
        struct sz_conn *victim = choose(thread);
        if (victim == NULL)
            return;
        count_cut(victim);
        sz_conn_drop(victim, sz_bodies_at_limit);
    }
}

static void on_relieve(struct sz_msg *msg, struct sz_loop *loop)
{
    struct sz_edge_thread *thread = SZ_CONTAINER(msg, struct sz_edge_thread, relieve);
    (void)loop;
    atomic_store(&thread->relieve_posted, false);
    sz_bodies_relieve(thread);
}

/* The thread that holds the most, when that is not this one. */
static struct sz_edge_thread *heavier(struct sz_edge_thread *thread)
{
    struct sz_server *server = thread->server;
    struct sz_edge_thread *most = thread;
    for (unsigned i = 0; i < server->threads_n; i++) {
        if (held(server->threads[i]) > held(most))
            most = server->threads[i];
    }
    return most == thread ? NULL : most;
}

/* Past the bound: true when `conn` may stay.  Whoever else is chosen is dropped at once. */
static bool relieve(struct sz_conn *conn, size_t total)
{
    struct sz_edge_thread *thread = conn->thread, *other = heavier(thread);
    if (other != NULL) {
        if (!atomic_exchange(&other->relieve_posted, true)) {
            other->relieve.on_msg = on_relieve;
            sz_loop_post(other->loop, &other->relieve);
        }
        return conn->authenticated || total <= thread->server->buffered_max / 4 * 5;
    }
    while (past_bound(thread)) {
        struct sz_conn *victim = choose(thread);
        if (victim == NULL)
            return true;
        count_cut(victim);
        if (victim == conn)
            return false;
        sz_conn_drop(victim, sz_bodies_at_limit);
    }
    return true;
}

bool sz_bodies_account(struct sz_conn *conn)
{
    if (sz_bodies_protocol(conn) == SZ_CONN_OTHER)
        return true; /* nothing of a request */
    size_t was = conn->buffered, size = measure(conn);
    if (size == was)
        return true;
    size_t total = set_buffered(conn, size);
    if (size <= was || total <= conn->thread->server->buffered_max)
        return true;
    return relieve(conn, total);
}

struct heads { /* of one stream; in its request's pool, whose end is the end of them */
    struct sz_conn *conn;
    size_t size;
};

static void on_heads_gone(void *arg)
{
    struct heads *heads = arg;
    heads->conn->heads -= heads->size;
    sz_bodies_release(heads->conn);
}

bool sz_bodies_head(h2o_req_t *req, size_t size)
{
    struct sz_conn *conn = sz_conn_of_req(req);
    if (conn == NULL || size <= SMALL_HEAD)
        return true;
    struct heads *heads = h2o_mem_alloc_shared(&req->pool, sizeof(*heads), on_heads_gone);
    *heads = (struct heads){.conn = conn, .size = size};
    conn->heads += size;
    if (conn->heads <= SMALL)
        return true;
    size_t total = set_buffered(conn, conn->buffered + (conn->heads - size > SMALL ? size : conn->heads));
    if (total <= conn->thread->server->buffered_max || relieve(conn, total))
        return true;
    sz_conn_cut(conn); /* or what is held would wait for the client to take the goodbye */
    return false;
}

void sz_bodies_release(struct sz_conn *conn)
{
    if (conn->buffered != 0)
        set_buffered(conn, sz_bodies_protocol(conn) == SZ_CONN_HTTP2 ? measure(conn) : 0);
}

void sz_bodies_begin(struct sz_conn *conn)
{
    size_t size = sz_bodies_protocol(conn) == SZ_CONN_HTTP1 ? measure(conn) : 0;
    if (size != 0)
        set_buffered(conn, size);
}

void sz_bodies_forget(struct sz_conn *conn)
{
    if (conn->buffered != 0)
        set_buffered(conn, 0);
}

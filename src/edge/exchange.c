/*
 * Answering: from the transaction's answer to h2o's response, and the end of an exchange in the dispose hook of its
 * memory, which runs whatever happened.
 *
 * h2o stops reading an HTTP/1 socket before a handler runs and starts again after the answer: two epoll_ctl for each
 * request that waits for anything.  Kept registered, but in the mode that reads nothing (the request's slices point
 * into the input buffer), the usual one costs neither.
 */
#include "edge/exchange.h"

#include "edge/api_ask.h"
#include "edge/bodies.h"
#include "edge/connection.h"
#include "edge/respond.h"
#include "edge/server.h"
#include "edge/thread.h"

static void *pool_alloc(struct sz_pool *pool, size_t size)
{
    struct sz_exchange *x = SZ_CONTAINER(pool, struct sz_exchange, pool.super);
    /* h2o aligns to 8 bytes, the pool promises 16. */
    uintptr_t p = (uintptr_t)h2o_mem_alloc_pool(x->pool.h2o, size + 8);
    return (void *)((p + 15) & ~(uintptr_t)15);
}

/* ---- the socket of an HTTP/1 client that waits ------------------------------------------------------------- */

/* A pipelined request or the end of the connection; both can wait until the answer is out. */
static void on_client_ready(h2o_socket_t *sock, const char *err)
{
    (void)err;
    h2o_socket_read_stop(sock);
}

void sz_exchange_wait(struct sz_exchange *x)
{
    if (x->waits || x->req->version >= 0x200)
        return;
    x->waits = true;
    h2o_socket_dont_read(x->conn->sock, 1);
    h2o_socket_read_start(x->conn->sock, on_client_ready);
}

/* In the dispose hook, just before h2o reads the next request. */
static void stop_waiting(struct sz_exchange *x)
{
    h2o_socket_t *sock = x->waits ? x->req->conn->callbacks->get_socket(x->req->conn) : NULL;
    if (sock == NULL)
        return;
    h2o_socket_read_stop(sock);
    h2o_socket_dont_read(sock, 0);
    sz_conn_closing(x->conn, sz_loop_now(x->thread->loop)); /* unless h2o reads on */
}

/* ---- the end ----------------------------------------------------------------------------------------------- */

/* The request is over, for any reason and in any state. */
static void on_dispose(void *arg)
{
    struct sz_exchange *x = arg;
    struct sz_edge_thread *thread = x->thread;

    sz_defer_cancel(&x->hop);
    if (x->proxy != NULL)
        sz_proxy_detach(x);
    stop_waiting(x);
    if (x->generation != NULL)
        sz_pools_release(thread->pools, x->generation);
    if (x->asking != NULL)
        sz_api_ask_cancel(x->asking);
    if (x->txn.snapshot != NULL) { /* judged or at least refused */
        struct sz_completion completion = {
            .status = (unsigned)x->req->res.status,
            .bytes_out = x->req->bytes_sent,
        };
        sz_txn_account(&x->txn, &completion);
        sz_txn_end(&x->txn);
    }
    if (x->counted)
        atomic_fetch_sub_explicit(&thread->server->gate.in_flight, 1, memory_order_relaxed);
    sz_gauge_add(thread->index, thread->server->series.in_progress, -1);
    x->conn->open--;
    x->conn->since = sz_loop_now(thread->loop);
    x->conn->answered.us = 0;
    if (!x->complete && !x->cut && x->req->version >= 0x200)
        sz_conn_count_reset(x->conn);
    sz_bodies_release(x->conn);
}

struct sz_exchange *sz_exchange_new(h2o_req_t *req, struct sz_edge_thread *thread)
{
    struct sz_exchange *x = h2o_mem_alloc_shared(&req->pool, sizeof(*x), on_dispose);
    memset(x, 0, sizeof(*x));
    x->pool.super.alloc = pool_alloc;
    x->pool.h2o = &req->pool;
    x->req = req;
    x->thread = thread;
    x->conn = sz_conn_of_req(req);
    x->txn.worker = &thread->worker;
    x->txn.pool = &x->pool.super;
    sz_gauge_add(thread->index, thread->server->series.in_progress, 1);
    x->conn->requests++;
    x->conn->open++;
    x->conn->reading = false;
    return x;
}

/* ---- answering --------------------------------------------------------------------------------------------- */

void sz_exchange_add_respond(struct sz_exchange *x)
{
    sz_respond_headers(x->req, &x->txn.respond);
    if (sz_server_draining(x->thread->server))
        x->req->http1_is_persistent = 0;
}

void sz_exchange_answer(struct sz_exchange *x)
{
    struct sz_answer *answer = &x->txn.answer;

    SZ_ASSERT(!x->answered);
    x->answered = true;
    x->complete = true;
    if (x->req->version < 0x200)
        x->conn->answered = sz_loop_now(x->thread->loop);
    if (answer->close)
        x->req->http1_is_persistent = 0;
    sz_exchange_add_respond(x);
    sz_respond(x->req, answer->status, &answer->headers, answer->body);
}

void sz_exchange_problem_as(struct sz_exchange *x, enum sz_reason reason, unsigned status, const char *detail)
{
    sz_txn_problem_as(&x->txn, reason, status, detail);
    sz_exchange_answer(x);
}

void sz_exchange_problem(struct sz_exchange *x, enum sz_reason reason, const char *detail)
{
    sz_txn_problem(&x->txn, reason, detail);
    sz_exchange_answer(x);
}

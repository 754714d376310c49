/*
 * From h2o to the pipeline and back.
 *
 *   on_req ─▶ room for one more? ─▶ strict head ─▶ (decide: the caller's dialect) ─▶ sz_txn_start ─▶ proxy | answer
 *                                                          │            (api: sz_api_serve ─▶ answer)
 *                                                     HTTP/2: one hop of the loop first ─┘
 *
 * Over HTTP/2 no work starts inside this callback: a client that opens and resets streams as fast as it can then only
 * ever disposes of requests that have not begun (rapid reset).
 */
#include "edge/handler.h"

#include "edge/api.h"
#include "edge/connection.h"
#include "edge/dialect.h"
#include "edge/head_parse.h"
#include "edge/refuse.h"
#include "edge/request.h"
#include "edge/server.h"
#include "edge/thread.h"
#include "edge/tls_peer.h"

static void finish(struct sz_exchange *x)
{
    if (x->txn.decision.allow && x->txn.identity != NULL)
        x->conn->authenticated = true;
    if (x->txn.proxy)
        sz_proxy_start(x);
    else
        sz_exchange_answer(x);
}

static void on_finished(struct sz_txn *txn)
{
    finish(SZ_CONTAINER(txn, struct sz_exchange, txn));
}

static void start(struct sz_exchange *x)
{
    if (x->txn.req.listener->mode == SZ_MODE_API) {
        sz_api_serve(x);
        return;
    }
    x->txn.on_finished = on_finished;
    x->generation = sz_pools_hold(x->thread->pools);
    if (sz_txn_start(&x->txn) == SZ_STEP_FINISHED)
        finish(x);
    else
        sz_exchange_wait(x);
}

static void on_hop(struct sz_defer *defer)
{
    start(SZ_CONTAINER(defer, struct sz_exchange, hop));
}

/* Beyond max_in_flight nothing is verified and nothing is asked: the accepted ones keep their time. */
static bool enter(struct sz_exchange *x)
{
    struct sz_gate *gate = &x->thread->server->gate;
    uint32_t most = sz_worker_snapshot(&x->thread->worker)->conf->limits.max_in_flight;
    if (atomic_fetch_add_explicit(&gate->in_flight, 1, memory_order_relaxed) < most) {
        x->counted = true;
        return true;
    }
    atomic_fetch_sub_explicit(&gate->in_flight, 1, memory_order_relaxed);
    return false;
}

/* A malformed head leaves nobody sure where the next request begins: the connection ends with the answer. */
static void refuse_head(struct sz_exchange *x, const struct sz_refusal *refusal)
{
    if (x->req->version < 0x200)
        x->req->http1_is_persistent = 0;
    sz_exchange_problem(x, refusal->reason, refusal->why);
}

/* On a decide listener the Host may be the client's, which our certificate for the calling proxy need not cover. */
static bool misdirected(struct sz_exchange *x)
{
    return x->txn.req.https && x->txn.req.listener->mode != SZ_MODE_DECIDE &&
           !sz_tls_peer_covers(x->conn, x->txn.req.authority);
}

int sz_handler_on_req(h2o_handler_t *handler, h2o_req_t *req)
{
    struct sz_edge_thread *thread = sz_thread_of(req);
    struct sz_exchange *x = sz_exchange_new(req, thread);
    struct sz_refusal refusal = {.reason = SZ_REASON_bad_request};

    (void)handler;
    x->txn.req.listener = x->conn->listener->conf;
    x->txn.req.peer = x->conn->peer;
    if (sz_head_parse_failed()) {
        sz_refuse_unparsed(x);
        return 0;
    }
    if (!enter(x)) {
        sz_exchange_problem(x, SZ_REASON_overloaded, NULL);
        return 0;
    }
    if (!sz_request_read(x, &refusal)) {
        refuse_head(x, &refusal);
        return 0;
    }
    if (x->txn.req.body.n > x->txn.req.listener->request_body) {
        sz_exchange_problem(x, SZ_REASON_body_too_large, NULL);
        return 0;
    }
    if (misdirected(x)) {
        sz_exchange_problem(x, SZ_REASON_misdirected, NULL);
        return 0;
    }
    if (x->txn.req.listener->mode == SZ_MODE_DECIDE && !sz_dialect_read(x, &refusal)) {
        sz_exchange_problem(x, refusal.reason, refusal.why);
        return 0;
    }
    if (req->version >= 0x200) {
        x->hop.on_run = on_hop;
        sz_defer_start(thread->loop, &x->hop);
        return 0;
    }
    start(x);
    return 0;
}

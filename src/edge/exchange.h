/*
 * An exchange: one h2o request and its transaction.  Allocated with h2o_mem_alloc_shared on the
 * request's pool, so that its dispose hook runs whenever the request dies, for any reason
 * and in any state (HTTP/2 may dispose it in the middle of everything).  Nothing outside may keep a pointer
 * to the h2o_req_t; an operation that can outlive it keeps the exchange's own record and is detached in dispose.
 */
#ifndef SZ_EDGE_EXCHANGE_H
#define SZ_EDGE_EXCHANGE_H

#include <h2o.h>

#include "pipeline/txn.h"

struct sz_conn;        /* edge/connection.h: the client connection */
struct sz_edge_thread; /* edge/thread.h: one per worker: h2o context, listeners, proxy pools */
struct sz_proxy_call;  /* edge/proxy_call.h: one upstream call in flight */
struct sz_generation;  /* edge/proxy.h: the upstreams of its configuration */

struct sz_exchange {
    struct sz_txn txn;
    struct { /* request memory for the pipeline, on h2o's pool */
        struct sz_pool super;
        h2o_mem_pool_t *h2o;
    } pool;
    h2o_req_t *req;
    struct sz_edge_thread *thread;
    struct sz_conn *conn;
    struct sz_proxy_call *proxy;      /* NULL: none */
    struct sz_api_ask *asking;        /* what an api call waits for; NULL: nothing */
    struct sz_generation *generation; /* NULL: judging has not begun */
    struct sz_defer hop;              /* HTTP/2: the zero-timeout hop before work starts */
    bool counted;                     /* in gate.in_flight */
    bool waits;                       /* HTTP/1: its socket stays registered meanwhile */
    bool complete;                    /* the whole response was handed to h2o (the proxy sets it with its last piece) */
    bool cut;                         /* the rest of the response will not come, and that is not the client's doing */
    bool answered;                    /* a response was started; h2o asserts on a second one */
};

/* On the request's pool; txn.worker and txn.pool are set, the rest is zero. */
struct sz_exchange *sz_exchange_new(h2o_req_t *req, struct sz_edge_thread *thread);
/* The answer will not come in this turn of the loop.  May be said again. */
void sz_exchange_wait(struct sz_exchange *x);
/* Sends txn.answer (exactly once per exchange). */
void sz_exchange_answer(struct sz_exchange *x);
/* Answers with the problem document for this reason; only before a response was started. */
void sz_exchange_problem(struct sz_exchange *x, enum sz_reason reason, const char *detail);
/* The same with another status than the reason's own. */
void sz_exchange_problem_as(struct sz_exchange *x, enum sz_reason reason, unsigned status, const char *detail);
/* Adds txn.respond to req->res.headers: every response to the client, proxied or ours. */
void sz_exchange_add_respond(struct sz_exchange *x);

#endif

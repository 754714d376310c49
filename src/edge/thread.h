/*
 * One loop thread of the edge: its h2o context, its side of every listener, its worker of the pipeline, its upstream
 * pools.  The workers serve the data listeners; the service thread (the process's main thread) serves the admin
 * listener and the demo's upstream, so that neither waits behind traffic.
 */
#ifndef SZ_EDGE_THREAD_H
#define SZ_EDGE_THREAD_H

#include <h2o.h>
#include <pthread.h>
#include <stdatomic.h>

#include "edge/connection.h"
#include "edge/exchange.h"
#include "edge/proxy.h"
#include "pipeline/txn.h"
#include "subzero/loop.h"

struct sz_server;
struct sz_acceptor;
struct sz_tls_set;
struct sz_tls_retired;

struct sz_edge_thread {
    h2o_context_t ctx; /* first: (struct sz_edge_thread *)req->conn->ctx */
    struct sz_server *server;
    struct sz_loop *loop;
    unsigned index;
    bool is_worker; /* worker, pools and data listeners exist */
    struct sz_worker worker;
    struct sz_proxy_pools *pools;
    struct sz_http *http; /* calls to providers */
    struct sz_redis *redis,
        *redis_cache; /* NULL: no Redis; redis_cache: the same unless the cache has its own server */
    struct sz_acceptor *acceptors;
    size_t acceptors_n;
    struct sz_conn *conns;
    size_t connections;
    unsigned owed;           /* messages that the service thread will still send here: the loop stays for them */
    struct sz_timer drained; /* looks again whether the last connection has gone */
    bool draining;
    struct sz_timer sweep;   /* edge/sweep.c */
    struct sz_timer revoked; /* edge/stream_revoked.c */
    uint64_t revoked_seen;
    struct sz_tls_set *tls;
    struct sz_tls_retired *tls_retired; /* sets before it that a handshake may still need */

    /* Written by this thread, read by all. */
    _Atomic size_t buffered;

    /* Messages to this thread; one of a kind at a time. */
    struct sz_msg relieve;
    _Atomic bool relieve_posted;
    struct sz_msg drain;

    pthread_t id;
};

static inline struct sz_edge_thread *sz_thread_of(h2o_req_t *req)
{
    return (struct sz_edge_thread *)(void *)req->conn->ctx;
}

/* On the thread that will run it; the loop is made here. -errno. */
int sz_thread_init(struct sz_edge_thread *thread, struct sz_server *server, unsigned index,
                   bool is_worker) SZ_MUST_CHECK;
void sz_thread_fini(struct sz_edge_thread *thread);

/* A connection is gone, or nothing is owed any more: while draining, the last one stops the thread. */
void sz_thread_conn_gone(struct sz_edge_thread *thread);
/* Own thread: stop accepting, tell the clients, end when the last connection is gone. */
void sz_thread_drain(struct sz_edge_thread *thread);

#endif

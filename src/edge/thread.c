/*
 * Setting a thread up and taking it down.  Order matters: the loop, h2o's context on it, the worker, the pools, and
 * only then the listeners.
 */
#include "edge/thread.h"

#include <errno.h>
#include <stdlib.h>

#include "edge/server.h"
#include "edge/sweep.h"
#include "edge/tls.h"
#include "pipeline/decision_l2.h"
#include "subzero/log.h"

static bool serves(const struct sz_edge_thread *thread, const struct sz_listener *listener)
{
    return thread->is_worker == sz_listener_is_public(listener->kind);
}

static int init_acceptors(struct sz_edge_thread *thread)
{
    struct sz_server *server = thread->server;
    thread->acceptors = sz_xcalloc(server->listeners_n + 1, sizeof(*thread->acceptors));
    for (size_t i = 0; i < server->listeners_n; i++) {
        if (!serves(thread, &server->listeners[i]))
            continue;
        int rc = sz_acceptor_init(&thread->acceptors[thread->acceptors_n], thread, &server->listeners[i]);
        if (rc != 0)
            return rc;
        thread->acceptors_n++;
    }
    return 0;
}

static int connect_redis(struct sz_edge_thread *thread)
{
    struct sz_server *server = thread->server;
    if (server->redis == NULL)
        return 0;
    thread->redis = sz_redis_new(server->redis, thread->loop);
    thread->redis_cache = server->redis_cache != NULL ? sz_redis_new(server->redis_cache, thread->loop) : thread->redis;
    return thread->redis != NULL && thread->redis_cache != NULL ? 0 : -EMFILE;
}

int sz_thread_init(struct sz_edge_thread *thread, struct sz_server *server, unsigned index, bool is_worker)
{
    thread->server = server;
    thread->index = index;
    thread->is_worker = is_worker;
    thread->loop = sz_loop_new(index);
    if (thread->loop == NULL)
        return -errno;
    h2o_context_init(&thread->ctx, sz_loop_native(thread->loop), &server->globalconf);
    thread->worker.index = index;
    thread->http = sz_http_new(server->http, thread->loop);
    if (thread->http == NULL)
        return -ENOMEM;
    int rc = connect_redis(thread);
    if (rc != 0)
        return rc;
    if (is_worker) {
        sz_worker_init(&thread->worker, thread->loop, &server->gate, server->current);
        thread->worker.http = thread->http;
        thread->worker.redis = thread->redis;
        thread->worker.redis_cache = thread->redis_cache;
        sz_decisions_shared_loop(server->gate.l2_decisions, thread->loop, thread->redis_cache);
        thread->pools = sz_proxy_pools_new(&thread->ctx, thread->loop);
        sz_sweep_start(thread);
    }
    return init_acceptors(thread);
}

/* h2o links this one for the second GOAWAY of a drain and never unlinks it. */
static void unlink_goaway(h2o_context_t *ctx)
{
    if (h2o_timeout_is_linked(&ctx->http2._graceful_shutdown_timeout))
        h2o_timeout_unlink(&ctx->http2._graceful_shutdown_timeout);
}

void sz_thread_fini(struct sz_edge_thread *thread)
{
    if (thread->loop == NULL)
        return;
    for (size_t i = 0; i < thread->acceptors_n; i++)
        sz_acceptor_stop(&thread->acceptors[i]);
    free(thread->acceptors);
    sz_timer_cancel(thread->loop, &thread->drained);
    sz_timer_cancel(thread->loop, &thread->sweep);
    sz_timer_cancel(thread->loop, &thread->revoked);
    sz_tls_thread_fini(thread);
    sz_decisions_shared_loop(thread->server->gate.l2_decisions, thread->loop, NULL);
    thread->worker.redis_cache = thread->worker.redis = NULL; /* what ends with them starts nothing there any more */
    if (thread->redis_cache == thread->redis)
        thread->redis_cache = NULL;
    sz_redis_free(&thread->redis_cache);
    sz_redis_free(&thread->redis);
    sz_http_free(&thread->http); /* its calls end, and tell whoever waits, while the worker is still there */
    if (thread->is_worker) {
        sz_proxy_pools_free(&thread->pools);
        sz_worker_fini(&thread->worker);
    }
    unlink_goaway(&thread->ctx);
    h2o_context_dispose(&thread->ctx);
    sz_loop_free(&thread->loop);
}

/*
 * The way to an upstream and back: per-thread keep-alive pools, back-pressure both ways, separate connect, first-byte
 * and idle timeouts, one retry after a keep-alive race, TLS with name and address checks, passive health, WebSocket
 * tunnels, event streams with an end.
 */
#ifndef SZ_EDGE_PROXY_H
#define SZ_EDGE_PROXY_H

#include "edge/exchange.h"

struct sz_proxy_pools;  /* per thread */
struct sz_generation;   /* the upstreams of one configuration, on one thread */
struct sz_upstream_tls; /* shared by the threads: TLS contexts, health of the urls */

/* ctx: the thread's h2o context (its loop is `loop`).  Own thread. */
struct sz_proxy_pools *sz_proxy_pools_new(h2o_context_t *ctx, struct sz_loop *loop);
/*
 * A new snapshot's upstreams, before the worker is given that snapshot: pools of unchanged ones (same settings, same
 * certificate files) stay, others are retired.  The contexts come ready from the service thread; what is needed of
 * `tls` is referenced.
 */
void sz_proxy_pools_configure(struct sz_proxy_pools *pools, const struct sz_conf *conf, struct sz_upstream_tls *tls);
void sz_proxy_pools_free(struct sz_proxy_pools **pools);
/*
 * The upstreams of the configuration in force: taken together with its snapshot, given back with the request.  Those of
 * a configuration that is no longer in force go with their last request.
 */
struct sz_generation *sz_pools_hold(struct sz_proxy_pools *pools);
void sz_pools_release(struct sz_proxy_pools *pools, struct sz_generation *generation);
/* Graceful drain: closes idle connections, ends tunnels and event streams (WebSocket close 1001). */
void sz_proxy_pools_drain(struct sz_proxy_pools *pools);

/* Made off the loops (files are read).  NULL and mistakes in m.  Counted atomically. */
struct sz_upstream_tls *sz_upstream_tls_new(const struct sz_conf *conf, struct sz_mistakes *m);
void sz_upstream_tls_ref(struct sz_upstream_tls *tls);
void sz_upstream_tls_unref(struct sz_upstream_tls *tls);

/*
 * Sends x->txn.forward upstream and streams the answer to the client.  Ends in a started response or in
 * sz_exchange_problem (upstream_unavailable, upstream_timeout, upstream_error).  Never calls back inside.
 */
void sz_proxy_start(struct sz_exchange *x);
/* From the exchange's dispose hook: the request is gone. */
void sz_proxy_detach(struct sz_exchange *x);

#endif

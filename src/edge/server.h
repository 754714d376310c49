/*
 * The process: listeners bound once, N worker threads, and the service loop on the main thread (signals, admin,
 * reloads).  What the threads share lives here and is either constant after the start or atomic.
 *
 *   main thread:  sz_server_new ─▶ sz_server_bind ─▶ (drop privileges) ─▶ sz_server_run ─▶ sz_server_free
 */
#ifndef SZ_EDGE_SERVER_H
#define SZ_EDGE_SERVER_H

#include <h2o.h>
#include <stdatomic.h>

#include "edge/listener.h"
#include "pipeline/txn.h"
#include "subzero/addr_count.h"
#include "subzero/provider.h"
#include "subzero/redis.h"

struct sz_edge_thread;
struct sz_tls_set;
struct sz_reloader;
struct sz_revoking;
struct sz_idempotency;
struct sz_logouts;
struct sz_cert_watch;
struct sz_admin_write;
struct sz_threat_store;
struct sz_tracing;

struct sz_server_series { /* counters of the edge, registered at the start */
    struct sz_series resets, refused_limit, refused_address, refused_proxy, refused_untrusted, refused_bodies;
    struct sz_series admin_duration, fga_duration, reload_ok, in_progress;
};

/* Where a configuration comes from, at the start and at each reload.  Blocking.  NULL: mistakes in m. */
struct sz_conf_source {
    struct sz_conf *(*load)(void *arg, struct sz_mistakes *m);
    void *arg;
};

#define SZ_NOTES_MAX 8

struct sz_server {
    struct sz_conf_source source;
    struct sz_snapshot *boot;    /* what the process was started with: listeners, limits of h2o */
    struct sz_snapshot *current; /* the service thread's reference */
    struct sz_gate gate;
    struct sz_server_series series;

    h2o_globalconf_t globalconf;
    h2o_hostconf_t *hosts[SZ_LISTEN_DEMO + 1][2]; /* by kind of listener, NULL-terminated as h2o wants them */

    struct sz_listener *listeners;
    size_t listeners_n;
    struct sz_tls_set *tls; /* the service thread's reference */

    struct sz_edge_thread **threads;
    unsigned threads_n; /* workers */
    struct sz_edge_thread *service;
    atomic_uint threads_running;
    atomic_uint threads_closed; /* that accept no more */

    /* connections */
    atomic_uint connections;
    uint32_t connections_max;
    struct sz_addr_count *addresses;
    _Atomic int64_t accept_failed_at; /* when running out of descriptors was last said */

    /* buffered request bodies */
    _Atomic size_t buffered;
    size_t buffered_max;

    struct sz_fga_hub *fga; /* not ours: outlives the server */
    struct sz_reloader *reloader;
    struct sz_cert_watch *certs; /* NULL: nothing is watched */
    struct sz_http_shared *http;
    struct sz_tracing *tracing;                  /* NULL: no request is recorded */
    struct sz_redis_shared *redis, *redis_cache; /* NULL: no Redis; redis_cache NULL: the cache uses the same */
    struct sz_threat_store *threat_store;        /* the service thread's */
    struct sz_fleet *threat_fleet;               /* seals shared blocks; NULL: they are not shared */
    struct sz_providers *providers;              /* the service thread's */
    struct sz_logouts *logouts;                  /* edge/logout.c; the service thread's */
    struct sz_revoking *revoking;                /* edge/revoking.c */
    struct sz_idempotency *idempotency;          /* the service thread's */
    struct sz_followers *followers;              /* the service thread's: stores whose changes are followed */
    bool keys_seen;                              /* once ready, an outage of a provider does not make it unready */
    struct sz_admin_write *writes;               /* edge/admin_write.c: they wait for their record */
    struct sz_audit_port *audit_port;            /* the service thread's, for admin writes; NULL: no journal */
    struct sz_mono started;

    /* for /health: what is not as it should be, told once at the start */
    struct sz_text notes[SZ_NOTES_MAX];
    size_t notes_n;
};

/* Takes the snapshot (one reference).  NULL: *why. */
struct sz_server *sz_server_new(struct sz_snapshot *snapshot, struct sz_conf_source source, struct sz_text *why);
void sz_server_free(struct sz_server **server);
/* Binds every listener of the configuration; `demo`: the demo's upstream, bound already, or NULL.  -errno and *why. */
int sz_server_bind(struct sz_server *server, const struct sz_listener *demo, struct sz_text *why) SZ_MUST_CHECK;
/* Something that works but not as it should: to the log and to /health. */
void sz_server_note(struct sz_server *server, const char *fmt, ...) SZ_PRINTF(2, 3);
/* Runs until SIGTERM or SIGINT has been obeyed.  0, or -errno and *why when it could not start. */
int sz_server_run(struct sz_server *server, void (*on_ready)(struct sz_server *server),
                  struct sz_text *why) SZ_MUST_CHECK;

/* ---- any thread ----------------------------------------------------------------------------------------- */

/* Counts a connection about to be accepted; false: at the limit. */
bool sz_server_conn_open(struct sz_server *server) SZ_MUST_CHECK;
/* addr: NULL when it took no part in the limit per address. */
void sz_server_conn_closed(struct sz_server *server, const struct sz_addr *addr);
void sz_server_accept_failed(struct sz_server *server, int err);
bool sz_server_draining(const struct sz_server *server);

/* Service thread: begin the drain (SIGTERM). */
void sz_server_drain(struct sz_server *server);

#endif

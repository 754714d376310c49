/*
 * Connections to upstreams, one thread's share of them.  An upstream has urls, a url has idle connections; a user (a
 * proxied call, a tunnel) takes one that is idle or opens one, and gives it back or closes it.
 *
 *   sz_proxy_pools ─▶ generation (one per configuration) ─▶ sz_upstream ─▶ sz_upstream_url ─▶ sz_upconn, idle
 *                                                                                              │
 *                                                     sz_upconn_user (call or tunnel) ◀────────┘ in use
 *
 * Sockets stay registered with the loop for reading from the first byte to the last: an idle one that becomes readable
 * is dead or lies, and is closed.  We read and write the descriptor ourselves (h2o's socket only watches it), because
 * h2o reads without bound, reports writes by a callback, hides its SSL and moves sockets in and out of the loop per
 * request.
 */
#ifndef SZ_EDGE_UPSTREAM_H
#define SZ_EDGE_UPSTREAM_H

#include <h2o.h>
#include <netinet/in.h>
#include <openssl/ssl.h>
#include <sys/uio.h>

#include "edge/upstream_tls.h"
#include "subzero/conf.h"
#include "subzero/loop.h"
#include "subzero/metrics.h"

struct sz_upconn;
struct sz_upconn_user;
struct sz_upstream_url;
struct sz_proxy_pools;
struct sz_in_flight;
struct sz_stream;
struct sz_response;

/* What the holder of a connection is told; never inside a call of the holder's own. */
struct sz_upconn_ops {
    void (*on_open)(struct sz_upconn_user *user);            /* connected and, with TLS, verified: may write */
    void (*on_failed)(struct sz_upconn_user *user, int err); /* could not be opened; user->conn is NULL already */
    void (*on_readable)(struct sz_upconn_user *user);
    void (*on_writable)(struct sz_upconn_user *user); /* once per sz_upconn_want_write */
    void (*on_timeout)(struct sz_upconn_user *user);  /* the deadline passed; the connection is as it was */
};
struct sz_upconn_user {
    const struct sz_upconn_ops *ops;
    struct sz_upconn *conn;
};

union sz_upstream_address {
    struct sockaddr any;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
};
#define SZ_URL_ADDRESSES 8

struct sz_upstream_url {
    struct sz_upstream *upstream;
    size_t at;  /* its place in the upstream's list */
    char *host; /* NUL-terminated */
    char *authority;
    uint16_t port;
    bool tls, literal;
    struct sz_upconn *idle; /* last in, first out */
    uint32_t idle_n;
    struct sz_mono said;  /* when a failed handshake was last logged */
    SSL_SESSION *session; /* the newest ticket, for the next handshake */
    /* resolve */
    union sz_upstream_address addresses[SZ_URL_ADDRESSES];
    size_t addresses_n, address_at; /* address_at: the one that worked last */
    struct sz_mono resolved;
    h2o_hostinfo_getaddr_req_t *lookup;
    struct sz_upconn *waiting; /* connections that need the answer */
};

struct sz_upstream { /* one upstream on one thread */
    unsigned refs;   /* generations that name it, connections, calls */
    bool retired;    /* no generation in force names it: connections are not kept */
    struct sz_proxy_pools *pools;
    struct sz_upstream_shared *shared;
    char *name, *server_name; /* server_name NULL: the url's host is what a certificate must say */
    struct sz_buf settings;   /* all of its configuration, as bytes: equal settings, equal bytes */
    struct sz_span connect, first_byte, idle, keepalive;
    uint32_t max_idle;
    bool preserve_host;
    unsigned turn;
    struct sz_series latency;
    size_t urls_n;
    struct sz_upstream_url urls[];
};

/* ---- connections (upstream_conn.c) ----------------------------------------------------------------------- */

enum sz_upconn_phase {
    SZ_UPCONN_RESOLVING,
    SZ_UPCONN_CONNECTING,
    SZ_UPCONN_HANDSHAKING,
    SZ_UPCONN_OPEN,
    SZ_UPCONN_IDLE
};

struct sz_upconn {
    h2o_socket_t *sock; /* watches fd; NULL until there is one */
    int fd;
    enum sz_upconn_phase phase;
    struct sz_upconn_user *user; /* NULL when idle */
    struct sz_upstream_url *url;
    SSL *ssl;  /* NULL: plain */
    bool used; /* carried a response before: a reset may be the keep-alive race */
    bool reading, read_wants_write;
    size_t tried;            /* addresses that failed */
    int err;                 /* of the last one */
    struct sz_mono deadline; /* the timer is armed at this or earlier: moving it later costs nothing */
    struct sz_timer timer;
    struct sz_defer failed;
    struct sz_upconn *next, **prev; /* idle list or waiting list */
};

/* Resolves, connects, shakes hands; the answer comes by on_open or on_failed.  Sets user->conn. */
void sz_upconn_open(struct sz_upstream_url *url, struct sz_upconn_user *user);
/* An idle connection becomes the user's; false when there is none. */
bool sz_upconn_take(struct sz_upstream_url *url, struct sz_upconn_user *user);
/* Back to the idle ones, or closed (full, retired, draining).  The caller vouches that the exchange on it is complete.
 */
void sz_upconn_release(struct sz_upconn *conn);
/* In any phase; the user (if any) loses it and is told nothing. */
void sz_upconn_close(struct sz_upconn *conn);
/* The user's call becomes another's (a call hands its connection to a tunnel). */
void sz_upconn_hand_over(struct sz_upconn *conn, struct sz_upconn_user *user);

/* > 0 bytes, 0 end of stream, -EAGAIN, or another -errno (the connection is of no more use). */
ssize_t sz_upconn_read(struct sz_upconn *conn, void *buf, size_t n) SZ_MUST_CHECK;
/* Bytes taken (maybe fewer than offered), -EAGAIN, or -errno. */
ssize_t sz_upconn_write(struct sz_upconn *conn, const struct iovec *iov, size_t n) SZ_MUST_CHECK;
void sz_upconn_want_write(struct sz_upconn *conn);
/* Stop and resume on_readable.  Connections are reading when handed out. */
void sz_upconn_read_stop(struct sz_upconn *conn);
void sz_upconn_read_start(struct sz_upconn *conn);
/* Bytes that the TLS layer holds and that the descriptor will not announce. */
bool sz_upconn_has_pending(const struct sz_upconn *conn);
/* FIN, reset or surplus bytes wait in the socket buffer. */
bool sz_upconn_is_stale(struct sz_upconn *conn);
void sz_upconn_deadline(struct sz_upconn *conn, struct sz_mono at);

/* ---- names to addresses (upstream_resolve.c) ------------------------------------------------------------- */

enum { SZ_RESOLVE_WAIT = 1 };
/*
 * Makes url->addresses usable: 0, SZ_RESOLVE_WAIT (sz_upconn_resolved follows for all of url->waiting), or
 * -EHOSTUNREACH while a failure is fresh.  Names are looked up off the loop, again after 30 s in the background.
 */
int sz_resolve(struct sz_upstream_url *url) SZ_MUST_CHECK;
void sz_resolve_init(struct sz_upstream_url *url); /* address literals are taken here */
void sz_resolve_fini(struct sz_upstream_url *url);
void sz_upconn_resolved(struct sz_upconn *conn, int err); /* upstream_conn.c */

/* ---- pools (upstream_pool.c) ------------------------------------------------------------------------------ */

struct sz_generation {
    struct sz_generation *next; /* older */
    size_t users;               /* requests that hold it */
    size_t upstreams_n;         /* as in its configuration, and in that order */
    struct sz_upstream *upstreams[];
};

struct sz_block { /* what responses are read into; see SZ_BLOCK */
    struct sz_block *next;
    char bytes[];
};
#define SZ_BLOCK       ((size_t)64 * 1024)
#define SZ_BLOCKS_KEPT 64 /* per thread */

struct sz_proxy_pools {
    h2o_context_t *ctx;
    struct sz_loop *loop;
    unsigned thread;
    bool draining;
    struct sz_generation *generations; /* newest first */
    struct sz_block *blocks;           /* free ones */
    unsigned blocks_n;
    struct sz_in_flight *in_flight, **in_flight_end; /* longest without progress first */
    struct sz_timer stalled;                         /* looks at them once a second */
    struct sz_stream *streams;                       /* tunnels and event streams, which drain ends */
    char *scratch;                                   /* SZ_SCRATCH bytes: request heads are built here */
    struct sz_response *response;                    /* the head being read: parsed and passed on within one callback */
};
#define SZ_SCRATCH ((size_t)256 * 1024)

void sz_upstream_unref(struct sz_upstream *upstream);
struct sz_block *sz_block_get(struct sz_proxy_pools *pools);
void sz_block_put(struct sz_proxy_pools *pools, struct sz_block *block);

#endif

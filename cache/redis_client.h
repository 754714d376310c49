/*
 * The inside of the Redis client, shared by cache/redis*.c.
 *
 *   redis.c          what all loops share; a loop's client; a command from start to on_done
 *   redis_conn.c     one connection: to a socket, through TLS and login, bytes out, replies in, and the way down
 *   redis_login.c    what is said first on a connection
 *   redis_codec.c    commands to bytes, bytes to replies (hiredis)
 *   redis_error.c    what an error reply means
 *   redis_script.c   scripts by their hash
 *   redis_cluster.c  which node holds a key; redis_slot.c: which slot
 *   redis_health.c   which of a cluster's nodes answer
 *   redis_listen.c   announcements
 *   redis_tls.c      TLS on a connection's socket
 *   redis_look.c     what people see of it
 *
 *   command ─▶ pending ─▶ waits at its node until a connection is up ─▶ sent: in the connection's queue, in the order
 * of the replies ─▶ reply, or the end of the connection.  The asker is told at the latest at its deadline; the pending
 * then stays in the queue without an asker, since its reply is still to come.
 */
#ifndef SZ_CACHE_REDIS_CLIENT_H
#define SZ_CACHE_REDIS_CLIENT_H

#include <stdatomic.h>

#include "loop/resolver.h"
#include "subzero/metrics.h"
#include "subzero/redis.h"

#define SZ_REDIS_PENDING_MAX 4096         /* commands under way, per loop */
#define SZ_REDIS_OUT_MAX     (1u << 20)   /* bytes that wait to be written, per connection */
#define SZ_REDIS_READ        (16u * 1024) /* bytes read at once */
#define SZ_REDIS_NODES_MAX   64           /* nodes of a cluster that are known */
#define SZ_REDIS_SLOTS       16384
#define SZ_REDIS_BATCH       32 /* commands on a connection before another one is opened */

#define SZ_REDIS_CONNECT SZ_SEC(1) /* until a connection is up, name and login included */
#define SZ_REDIS_STALL   SZ_SEC(1) /* a connection that owes an answer for so long is given up */

struct sz_redis_conn;
struct sz_redis_node;

/* ---- codec ------------------------------------------------------------------------------------------------------- */

/* Appends a command. */
void sz_redis_encode(struct sz_buf *out, const struct sz_slice *args, size_t args_n);

struct sz_redis_reader; /* bytes in, replies out */
enum sz_redis_read { SZ_REDIS_READ_REPLY, SZ_REDIS_READ_MORE, SZ_REDIS_READ_BAD };
struct sz_redis_reader *sz_redis_reader_new(void);
void sz_redis_reader_free(struct sz_redis_reader **reader);
/* Bytes that arrived.  False: out of memory or broken before. */
bool sz_redis_reader_feed(struct sz_redis_reader *reader, const void *bytes, size_t n) SZ_MUST_CHECK;
/*
 * The next reply, which is valid until the next call; an error reply has its text in *error instead.  BAD: not Redis's
 * protocol, or a reply of more than `limit` bytes, or with more items than that many bytes can hold.
 */
enum sz_redis_read sz_redis_reader_next(struct sz_redis_reader *reader, size_t limit,
                                        const struct sz_redis_reply **reply, struct sz_slice *error);

/* ---- errors ------------------------------------------------------------------------------------------------------ */

enum sz_redis_result sz_redis_classify(struct sz_slice error);
/*
 * Its first word where that is one of Redis's own, else "an error": for logs and /health.  The rest of the text may
 * repeat what was sent, a password too ("ERR unknown command 'AUTH', with args beginning with ...").
 */
const char *sz_redis_error_word(struct sz_slice error);
/* "MOVED 3999 127.0.0.1:6381" or "ASK ...": true. */
bool sz_redis_redirect(struct sz_slice error, bool *ask, unsigned *slot, struct sz_slice *host, uint16_t *port);
unsigned sz_redis_slot(struct sz_slice key);

/* ---- commands ---------------------------------------------------------------------------------------------------- */

struct sz_redis_queue;

struct sz_redis_pending {
    struct sz_redis_pending *next, **prev; /* in `queue`: its node's (waiting) or its connection's (sent) */
    struct sz_redis_queue *queue;
    bool was_sent; /* the queue is a connection's */
    struct sz_redis *redis;
    struct sz_redis_node *node;
    struct sz_redis_op *op; /* NULL: nobody listens any more, or never did */
    /* For commands of the client's own, instead of op: the answer, on a connection that lives on unless this says no.
     */
    bool (*own)(struct sz_redis_conn *conn, struct sz_redis_pending *pending, const struct sz_redis_answer *answer);
    enum sz_redis_use use;
    struct sz_breaker_ticket ticket;
    struct sz_mono started, sent, deadline;
    struct sz_timer timer;
    size_t limit;
    const struct sz_redis_script *script; /* NULL: no script */
    uint16_t slot;
    bool keyed;  /* `slot` counts */
    bool asking; /* cluster: say ASKING first */
    bool reloaded;
    bool spared; /* what it fails of has been held against the breaker once already */
    uint8_t redirects;
    unsigned kind; /* redis_login.c's: which of its commands */
    struct sz_buf bytes;
};

struct sz_redis_queue {
    struct sz_redis_pending *first, **last;
    unsigned n;
};

void sz_redis_queue_init(struct sz_redis_queue *q);
void sz_redis_queue_add(struct sz_redis_queue *q, struct sz_redis_pending *p);
struct sz_redis_pending *sz_redis_queue_take(struct sz_redis_queue *q); /* the first; NULL: empty */
void sz_redis_queue_leave(struct sz_redis_pending *p);

/* sz_redis_start of a script, or (NULL) of no script. */
int sz_redis_start_script(struct sz_redis *redis, enum sz_redis_use use, const struct sz_redis_command *command,
                          const struct sz_redis_script *script, struct sz_redis_op *op) SZ_MUST_CHECK;

struct sz_redis_pending *sz_redis_pending_get(struct sz_redis *redis);
void sz_redis_pending_put(struct sz_redis_pending *p);
/* The asker hears, unless it has left; the breaker is told. The pending is still the caller's. */
void sz_redis_finish(struct sz_redis_pending *p, const struct sz_redis_answer *answer);
/* Finish with nothing but a result, and put. */
void sz_redis_fail(struct sz_redis_pending *p, enum sz_redis_result result);
/* All of a queue, for one reason: one failure in the breaker's eyes, however many waited. */
void sz_redis_fail_all(struct sz_redis_queue *q);
/* To one of the node's connections, or to wait for one: 0.  SZ_REDIS_CONNECTION: it will not have one soon; FULL. */
int sz_redis_dispatch(struct sz_redis_pending *p, struct sz_redis_node *node) SZ_MUST_CHECK;
/* A reply to somebody's command; p is taken over.  False: the connection is of no more use. */
bool sz_redis_answered(struct sz_redis_conn *conn, struct sz_redis_pending *p, const struct sz_redis_answer *answer);
/* The node got a connection, or lost hope of one. */
void sz_redis_node_up(struct sz_redis_conn *conn);
void sz_redis_node_down(struct sz_redis_node *node);

/* ---- connections ------------------------------------------------------------------------------------------------- */

enum sz_redis_state {
    SZ_REDIS_DOWN,  /* waits for `retry`, or is not wanted */
    SZ_REDIS_NAME,  /* being looked up */
    SZ_REDIS_DIAL,  /* connect() */
    SZ_REDIS_TLS,   /* handshake */
    SZ_REDIS_LOGIN, /* said hello, not answered yet */
    SZ_REDIS_UP
};

struct sz_redis_conn {
    struct sz_redis *redis;
    struct sz_redis_node *node;
    struct sz_redis_conn *next;                 /* of its node */
    struct sz_redis_subscription *subscription; /* it listens instead of asking */
    enum sz_redis_state state;
    int fd;
    struct sz_watch *watch;
    struct ssl_st *ssl;
    bool extra; /* opened for load: not opened again when it is lost */
    struct sz_ask ask;
    struct sz_addresses addresses;
    struct sz_timer timer;  /* NAME ... LOGIN: the deadline; DOWN: when to try again; UP: whether it stalls */
    struct sz_defer flush;  /* what was said in this turn goes out in one write */
    struct sz_defer reread; /* TLS has bytes that the socket does not announce */
    struct sz_buf out;
    size_t out_at;
    struct sz_redis_reader *reader;
    struct sz_redis_queue sent;
    unsigned attempts; /* failures in a row */
    bool redialled;    /* was up before */
    struct sz_mono up_since;
    struct sz_text why;
};

struct sz_redis_node {
    struct sz_redis *redis;
    uint8_t index;        /* among its client's nodes */
    struct sz_slice host; /* owned; of a unix socket the path */
    uint16_t port;
    bool unix_socket;
    bool in_map, seed; /* cluster */
    struct sz_redis_conn *conns;
    unsigned conns_n;
    struct sz_redis_queue waiting;
    struct sz_mono good; /* when it last answered in time */
};

/* For a node, or (NULL) for a subscription. */
struct sz_redis_conn *sz_redis_conn_new(struct sz_redis *redis, struct sz_redis_node *node);
void sz_redis_conn_free(struct sz_redis_conn **conn);
void sz_redis_conn_dial(struct sz_redis_conn *conn);  /* in the next turn, when it is down */
void sz_redis_conn_named(struct sz_redis_conn *conn); /* its name was looked up */
void sz_redis_conn_send(struct sz_redis_conn *conn, struct sz_redis_pending *p);
/* A command of the client's own; its place in the queue is returned for further wishes. */
struct sz_redis_pending *sz_redis_conn_say(struct sz_redis_conn *conn, const struct sz_slice *args, size_t args_n,
                                           bool (*own)(struct sz_redis_conn *conn, struct sz_redis_pending *pending,
                                                       const struct sz_redis_answer *answer));
/* What brings no reply of its own: while it listens. */
void sz_redis_conn_mention(struct sz_redis_conn *conn, const struct sz_slice *args, size_t args_n);
/* Gives it up: what is in its queue ends with CONNECTION; comes back by itself. */
void sz_redis_conn_drop(struct sz_redis_conn *conn, const char *fmt, ...) SZ_PRINTF(2, 3);
/* The login is through. */
void sz_redis_conn_up(struct sz_redis_conn *conn);
static inline size_t sz_redis_conn_backlog(const struct sz_redis_conn *conn)
{
    return conn->out.n - conn->out_at;
}

/* Up, on its way up, or about to be dialled for the first time. */
static inline bool sz_redis_conn_hopeful(const struct sz_redis_conn *conn)
{
    return conn->state != SZ_REDIS_DOWN || (conn->attempts == 0 && sz_timer_armed(&conn->timer));
}
bool sz_redis_node_hopeful(const struct sz_redis_node *node); /* one of its connections is */

void sz_redis_login(struct sz_redis_conn *conn);

/* redis_listen.c: a reply on a connection that listens; false: it makes no sense. */
bool sz_redis_heard(struct sz_redis_conn *conn, const struct sz_redis_answer *answer) SZ_MUST_CHECK;
void sz_redis_listen_up(struct sz_redis_conn *conn);
void sz_redis_listen_down(struct sz_redis_conn *conn);
bool sz_redis_listens_at(const struct sz_redis *redis, const struct sz_redis_node *node);
void sz_redis_listen_fini(struct sz_redis *redis);

/* redis_script.c: the script is missing; true: it was loaded and asked again. */
bool sz_redis_script_again(struct sz_redis_conn *conn, struct sz_redis_pending *p);

/* ---- TLS --------------------------------------------------------------------------------------------------------- */

struct ssl_ctx_st;
struct ssl_ctx_st *sz_redis_tls_new(struct sz_slice ca_file, struct sz_text *why);
void sz_redis_tls_free(struct ssl_ctx_st **ctx);
/* A client side over the descriptor that believes a certificate for `host` alone; NULL: out of memory. */
struct ssl_st *sz_redis_ssl_new(struct ssl_ctx_st *ctx, struct sz_slice host, int fd);
void sz_redis_ssl_free(struct ssl_st **ssl);
/* As read and write: bytes, 0 for the end, -EAGAIN, another negative errno (*why, where it is TLS's). */
enum { SZ_REDIS_TLS_READ = SZ_READ, SZ_REDIS_TLS_WRITE = SZ_WRITE };
int sz_redis_ssl_handshake(struct ssl_st *ssl, unsigned *wants, struct sz_text *why) SZ_MUST_CHECK;
ptrdiff_t sz_redis_ssl_read(struct ssl_st *ssl, void *out, size_t n) SZ_MUST_CHECK;
ptrdiff_t sz_redis_ssl_write(struct ssl_st *ssl, const void *bytes, size_t n) SZ_MUST_CHECK;
bool sz_redis_ssl_has_more(const struct ssl_st *ssl);

/* ---- clients ----------------------------------------------------------------------------------------------------- */

struct sz_redis_map; /* redis_cluster.c */

struct sz_redis {
    struct sz_redis_shared *shared;
    struct sz_loop *loop;
    struct sz_mailbox mailbox;
    struct sz_watch *mail;
    struct sz_redis_node *nodes[SZ_REDIS_NODES_MAX];
    struct sz_redis_map *map; /* NULL: one server */
    struct sz_timer beat;
    struct sz_redis_subscription *subscriptions;
    struct sz_redis_pending *spare; /* of those that are free */
    unsigned spare_n, pending_n;
    bool closing;
    struct sz_redis_cell *cell;
    char read[SZ_REDIS_READ];
};

struct sz_redis_cell { /* counted by one loop, read by any thread */
    _Alignas(SZ_CACHE_LINE) _Atomic uint64_t commands;
    _Atomic uint64_t timeouts;
};

struct sz_redis_shared {
    const struct sz_conf_redis *conf; /* outlives it */
    unsigned uses, clients, share;    /* connections of one client to a node */
    struct ssl_ctx_st *tls;
    struct sz_resolver *resolver;
    struct sz_breaker breakers[SZ_REDIS_USES];
    struct sz_series took, ended[SZ_REDIS_RESULTS], reconnected, open;
    _Atomic unsigned connections, up;
    struct sz_redis_cell *cells; /* one for each client */
    _Atomic unsigned joined;
    _Atomic uint64_t reconnects;
    _Atomic int64_t cache_paused_until;
    _Atomic bool evicts, eviction_said, cluster_said, loss_said;
    _Atomic int text; /* a spin lock around `why`, held for the time of a copy */
    struct sz_text why;
};
void sz_redis_shared_why(struct sz_redis_shared *shared, const struct sz_text *why);

/* ---- cluster ----------------------------------------------------------------------------------------------------- */

void sz_redis_map_init(struct sz_redis *redis);
void sz_redis_map_stop(struct sz_redis *redis); /* before the nodes go; fini after them */
void sz_redis_map_fini(struct sz_redis *redis);
/* The node that holds a slot; NULL: not known. */
struct sz_redis_node *sz_redis_map_node(struct sz_redis *redis, unsigned slot);
void sz_redis_map_stale(struct sz_redis *redis); /* to be read again soon */
void sz_redis_map_conn_up(struct sz_redis_conn *conn);
void sz_redis_map_conn_lost(struct sz_redis_conn *conn);
bool sz_redis_map_wants(const struct sz_redis_node *node);                     /* whether it is worth a connection */
bool sz_redis_map_redirect(struct sz_redis_pending *p, struct sz_slice error); /* true: on its way elsewhere */
struct sz_redis_node *sz_redis_node_get(struct sz_redis *redis, struct sz_slice host, uint16_t port);
struct sz_redis_node *sz_redis_node_new(struct sz_redis *redis, struct sz_slice host, uint16_t port, bool unix_socket);
void sz_redis_node_free(struct sz_redis_node **node);

/* ---- redis_health.c ---------------------------------------------------------------------------------------------- */

void sz_redis_health_start(struct sz_redis *redis); /* of a cluster */
void sz_redis_health_stop(struct sz_redis *redis);
/* One of its connections that is up, rather one that answers; NULL: none is. */
const struct sz_redis_conn *sz_redis_node_conn(const struct sz_redis_node *node);
/* The node that is most likely to answer; NULL: there is none. */
struct sz_redis_node *sz_redis_any_node(struct sz_redis *redis);
/* One node failed, or a master is being chosen: nothing to be held against the whole. */
bool sz_redis_health_excuses(const struct sz_redis_pending *p, enum sz_redis_result result);

#endif

/*
 * Redis, asynchronously.  One client per loop; its commands are pipelined over a few connections; every command has a
 * deadline of ours, and nothing of Redis ever holds a loop.  What comes back is data from outside the trust boundary
 * (Z6): a caller checks type, length and seal of whatever it reads.
 *
 * A command is one question.  The caller hears once, when it is over, and what it hears tells "Redis answered"
 * from "it could not be asked" and says which way it could not.  A command that may have reached the server is never
 * sent twice by the client.
 *
 * Threads: sz_redis_shared belongs to the process; a client and its commands to their loop's thread.
 */
#ifndef SUBZERO_REDIS_H
#define SUBZERO_REDIS_H

#include "subzero/breaker.h"
#include "subzero/conf.h"
#include "subzero/loop.h"

/* What the commands are for.  Each use has a breaker of its own: a GET that succeeds must not hide scripts that fail.
 */
enum sz_redis_use { SZ_REDIS_CACHE, SZ_REDIS_LIMITS, SZ_REDIS_REVOCATION, SZ_REDIS_THREAT, SZ_REDIS_USES };

struct sz_redis_shared; /* of one server or cluster: where it is, how to log in, breakers, counters */
struct sz_redis;        /* one loop's connections to it */

/*
 * `uses`: what it serves, as bits 1 << enum sz_redis_use; their breakers are listed, as "redis" (the cache),
 * "redis:limits", "redis:revocation" and "redis:threat".  `clients` loops will use it and share out
 * conf->max_connections, at least one each.  `conf` outlives it.  Before other threads run.  Connects nothing yet.
 * NULL: *why (an unreadable CA).
 */
struct sz_redis_shared *sz_redis_shared_new(const struct sz_conf_redis *conf, unsigned uses, unsigned clients,
                                            struct sz_text *why);
#define SZ_REDIS_ALL_USES ((1u << SZ_REDIS_USES) - 1)
void sz_redis_shared_free(struct sz_redis_shared **shared); /* after its last client */

/* On the loop's own thread.  Connects in the background and keeps on trying with jittered back-off. */
struct sz_redis *sz_redis_new(struct sz_redis_shared *shared, struct sz_loop *loop);
/* Whatever is under way ends with SZ_REDIS_CONNECTION, before this returns. */
void sz_redis_free(struct sz_redis **redis);

/* ---- answers ----------------------------------------------------------------------------------------------------- */

enum sz_redis_type { SZ_REDIS_NIL, SZ_REDIS_INTEGER, SZ_REDIS_STRING, SZ_REDIS_STATUS, SZ_REDIS_ARRAY };

struct sz_redis_reply { /* borrowed for the callback */
    enum sz_redis_type type;
    int64_t integer;
    struct sz_slice text; /* STRING, STATUS */
    const struct sz_redis_reply *items;
    size_t items_n;
};

enum sz_redis_result {
    SZ_REDIS_ANSWERED = 1, /* a reply that is no error */
    SZ_REDIS_ERROR,        /* an error reply other than those below: WRONGTYPE, ERR, NOPERM ...; its text in `error` */
    SZ_REDIS_NOSCRIPT,     /* the script was still missing after the one reload */
    SZ_REDIS_OOM,          /* maxmemory is reached: a write was refused */
    SZ_REDIS_NOT_READY,    /* LOADING, BUSY, MASTERDOWN, CLUSTERDOWN, READONLY, NOAUTH */
    SZ_REDIS_TIMEOUT,      /* sent, or waiting to be, and not answered by the deadline */
    SZ_REDIS_CONNECTION,   /* no connection, cut off, or what came was not Redis's protocol or too large */
    SZ_REDIS_OPEN,         /* the breaker of this use is open: not asked */
    SZ_REDIS_FULL,         /* our own bound on commands under way: not asked */
    SZ_REDIS_RESULTS
};
const char *sz_redis_result_name(enum sz_redis_result result); /* "answered", "timeout" ...: for logs and labels */

struct sz_redis_answer {
    enum sz_redis_result result;
    const struct sz_redis_reply *reply; /* with SZ_REDIS_ANSWERED */
    struct sz_slice error;              /* with SZ_REDIS_ERROR, NOSCRIPT, OOM, NOT_READY: Redis's text, borrowed */
};

/* ---- commands ---------------------------------------------------------------------------------------------------- */

/* Embedded in the asker's struct; zero-initialise, set on_done; alive until on_done ran or the command was cancelled.
 */
struct sz_redis_op {
    /*
     * Once, never inside the start.  Returns what the use's breaker is told: sz_redis_outcome(answer), or worse when
     * the reply is not what the command can give.  The op may be started again from inside.
     */
    enum sz_breaker_outcome (*on_done)(struct sz_redis_op *op, const struct sz_redis_answer *answer);
    struct sz_redis_pending *pending; /* NULL: not under way */
};

struct sz_redis_command {
    const struct sz_slice *args; /* at least the name; binary safe; copied */
    size_t args_n;               /* at most SZ_REDIS_ARGS_MAX */
    size_t key;                  /* index of the key among args, for a cluster's slots; 0: none, any node */
    size_t limit;                /* largest reply in bytes; 0: SZ_REDIS_REPLY_DEFAULT */
    struct sz_mono deadline;     /* the caller's; the client's own `timeout` bounds it further */
};
#define SZ_REDIS_ARGS_MAX      32
#define SZ_REDIS_REPLY_DEFAULT (64 * 1024)

/*
 * 0: on_done will run.  Positive: nothing will be called; why, as enum sz_redis_result (OPEN, FULL, CONNECTION),
 * already told to the breaker.  Never negative.
 */
int sz_redis_start(struct sz_redis *redis, enum sz_redis_use use, const struct sz_redis_command *command,
                   struct sz_redis_op *op) SZ_MUST_CHECK;
/* No-op when not under way.  After it on_done will not run; the command itself may still reach Redis. */
void sz_redis_cancel(struct sz_redis_op *op);
/* ANSWERED: success.  ERROR, OOM, NOSCRIPT, NOT_READY, TIMEOUT, CONNECTION: failure. */
enum sz_breaker_outcome sz_redis_outcome(const struct sz_redis_answer *answer);

/*
 * A cache write met maxmemory within the last seconds: the cache writes nothing meanwhile.  Scripts and revocations go
 * on. (For SZ_REDIS_CACHE an OOM is no failure that the breaker counts: reads still work.)
 */
bool sz_redis_cache_paused(const struct sz_redis *redis);

/* A Lua script that is compiled in; prepare once before its first use. */
struct sz_redis_script {
    const char *name;     /* for logs */
    struct sz_slice text; /* static */
    char sha[41];         /* hex SHA-1 */
};
void sz_redis_script_prepare(struct sz_redis_script *script);
/*
 * EVALSHA of one key.  A NOSCRIPT answer loads the script and asks once more, within the deadline; a script that timed
 * out is never repeated, since it may have run.  args: what comes after the key.
 */
int sz_redis_eval(struct sz_redis *redis, enum sz_redis_use use, const struct sz_redis_script *script,
                  struct sz_slice key, const struct sz_slice *args, size_t args_n, struct sz_mono deadline,
                  struct sz_redis_op *op) SZ_MUST_CHECK;

/* ---- listening --------------------------------------------------------------------------------------------------- */

/* One connection that does nothing but listen; comes back by itself.  Callbacks on the client's loop. */
struct sz_redis_listener {
    void (*on_message)(struct sz_redis_listener *listener, struct sz_slice channel, struct sz_slice message);
    /* up: subscribed from now on (a gap may lie before it: catch up).  Down: nothing can be heard. */
    void (*on_state)(struct sz_redis_listener *listener, bool up);
    struct sz_redis_subscription *subscription; /* NULL: not started */
};
void sz_redis_listen(struct sz_redis *redis, const struct sz_slice *channels, size_t channels_n,
                     struct sz_redis_listener *listener);
void sz_redis_unlisten(struct sz_redis_listener *listener);

/* ---- looking ----------------------------------------------------------------------------------------------------- */

struct sz_redis_look { /* for /health and metrics; any thread */
    unsigned connections, connections_max;
    bool reachable;     /* a connection is up and answered its login */
    struct sz_text why; /* why not, when it is not; no secret in it */
    bool noeviction;    /* what `maxmemory-policy` said when last connected; true when it could not be read */
    uint64_t commands, timeouts, reconnects;
};
void sz_redis_shared_look(struct sz_redis_shared *shared, struct sz_redis_look *out);
struct sz_breaker_look sz_redis_breaker_look(struct sz_redis_shared *shared, enum sz_redis_use use, struct sz_mono now);

#endif

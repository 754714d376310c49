/*
 * The transaction: one request on its way through the stages of subzero/tbl/stages.h.
 *
 *   edge fills txn->req ─▶ sz_txn_start ─▶ admit ▸ identify ▸ limit ▸ authorize ▸ decide ▸ commit ─▶ done
 *                              │                  │ parks here and there
 *                              │                  └─▶ sz_txn_resume (a callback recorded its answer)
 *                              ▼
 *        FINISHED now, or PARKED and later on_finished
 *
 * The decision starts as DENY; decide.c is the one file that writes ALLOW.  A stage reads its
 * inputs, asks one module, stores one answer, names the next stage.  Jumps go forward only.  Fields
 * appear in stage order; each group is written by the file named beside it.
 *
 * All calls on the worker's own thread.
 */
#ifndef SZ_PIPELINE_TXN_H
#define SZ_PIPELINE_TXN_H

#include "pipeline/client_addr.h"
#include "pipeline/request.h"
#include "pipeline/snapshot.h"
#include "pipeline/target.h"
#include "subzero/audit.h"
#include "subzero/cache.h"
#include "subzero/fga.h"
#include "subzero/flight.h"
#include "subzero/identity.h"
#include "subzero/l2.h"
#include "subzero/limiter.h"
#include "subzero/loop.h"
#include "subzero/reason.h"
#include "subzero/redis.h"
#include "subzero/revocation.h"
#include "subzero/router.h"
#include "subzero/threat.h"
#include "subzero/tracing.h"

enum sz_stage {
#define SZ_STAGE(name, help) SZ_STAGE_##name,
#include "subzero/tbl/stages.h"
    SZ_STAGE_COUNT
};

enum sz_step { SZ_STEP_GO_ON, SZ_STEP_PARKED, SZ_STEP_FINISHED };

/* Where identify goes on when it is resumed. */
enum sz_identify_at { SZ_IDENTIFY_BEGIN, SZ_IDENTIFY_L2, SZ_IDENTIFY_QUEUED, SZ_IDENTIFY_KEYS, SZ_IDENTIFY_ASKED };

struct sz_worker;
struct question;

/* What was decided and why: one record, filled in decide, read by answers, logs, metrics and audit. */
struct sz_decision {
    bool made; /* false: the client left before anything was decided */
    bool allow;
    /*
     * An allowed request that its upstream failed keeps allow and gets upstream_*; one that a rate limit let through
     * without its store keeps the class of that failure.
     */
    enum sz_reason reason;
    const struct sz_conf_route *route; /* NULL: unmatched */
    uint8_t token_layer;               /* 0 none, 1 L1, 2 L2, 3 verified now */
    bool checked;                      /* a relation was asked */
    enum sz_authz_source authz_source;
    const struct sz_conf_rate_limit *limit; /* whose limit refused, or went on without its store; NULL: none */
};

/* How to send an allowed request upstream; filled only then (pipeline/forward.c). */
struct sz_forward {
    const struct sz_conf_upstream *upstream;
    struct sz_slice method;
    struct sz_slice target;    /* canonical path plus query: the request line's target */
    struct sz_slice authority; /* Host to send when the upstream preserves it */
    struct sz_headers headers; /* complete but Host, Content-Length, Connection, Upgrade; lower-case names */
    struct sz_slice body;
    bool has_body;
    bool own_connection; /* a body on GET, HEAD, DELETE or OPTIONS, or reuse: never: Connection: close */
    bool retry_safe;     /* bodyless and idempotent: once more after a keep-alive race */
    bool websocket;
    struct sz_mono stream_until; /* WebSocket and event streams end here: token expiry, route max_lifetime; SZ_NEVER */
};

/* A response of our own (pipeline/answer.c). */
struct sz_answer {
    unsigned status;
    struct sz_headers headers; /* content-type included */
    struct sz_slice body;
    bool close; /* HTTP/1: end the connection after it */
};

struct sz_txn {
    uint32_t magic;
    enum sz_stage stage;
    bool resumed; /* it was parked somewhere: time has passed since it began */
    struct sz_worker *worker;
    struct sz_pool *pool;                    /* dies with the request */
    struct sz_request req;                   /* the edge */
    struct sz_slice caller;                  /* the edge: whose key opened an api listener; SZ_NONE: unnamed */
    void (*on_finished)(struct sz_txn *txn); /* the edge; once, only after sz_txn_start returned PARKED */
    struct sz_mono started, deadline;
    struct sz_local_snapshot *held; /* counted until sz_txn_end */
    struct sz_snapshot *snapshot;   /* what this request is judged by */

    /* trace.c */
    struct sz_trace *trace;   /* what this request leaves behind for a collector; NULL: nothing */
    struct sz_slice trace_id; /* hex, of a trace that is recorded or was begun here */

    /* admit.c */
    struct sz_target target;
    struct sz_authority authority;
    struct sz_client_addr from; /* the client's address, and whether the peer is a trusted proxy */
    struct sz_slice request_id;
    struct sz_threat_key threat_key;   /* threat.c: of the address; hash 0: not looked at */
    enum sz_threat_level threat_level; /* ... and how it stood at the start */
    bool judged, risky;                /* ... whether it is judged at all, and whether it stands on a list */
    struct sz_route_match match;
    bool preflight; /* CORS preflight, answered here */
    bool entered;   /* counted among its address's requests at once */

    /* identify.c */
    struct sz_slice token; /* borrowed from the request's headers */
    enum sz_credential_kind credential;
    struct sz_fingerprint fingerprint;
    struct sz_identity *identity; /* NULL: anonymous; validated facts otherwise */
    uint8_t token_layer;
    enum sz_identify_at identify_at; /* what it is parked for */
    struct sz_l2_look l2;            /* a JWT in L2 */
    struct sz_flight_wait flight;    /* what it waits for: a fetch of keys, the provider's word on the token */
    int flight_status;               /* what the flight ended with */
    bool keys_waited;                /* a fetch has been waited for: not for a second one */
    struct sz_span retry_after;      /* with 429 and 503: when to come again; 0: unknown */
    struct sz_mono identified;       /* when the identity was known; unset when it never was */
    uint32_t verify_at;              /* slot in the verification queue + 1; 0 = not queued */
    bool verify_known;               /* in which of its two */

    /* limit.c */
    struct sz_limit_run *limits; /* NULL: the route has none */

    /* authorize.c */
    struct sz_authz_op op;
    bool op_started;            /* op is in flight: to be cancelled when the client leaves */
    bool op_answered;           /* op.answer holds the answer of check_at */
    struct sz_mono answered;    /* when the last relation was answered */
    size_t check_at;            /* index of the check being asked */
    struct sz_ahead *ahead;     /* checks asked before their turn, by index; NULL: none */
    enum sz_reason check_fault; /* a check that could not be asked; `allowed` = none so far */
    bool checked;
    enum sz_authz_source authz_source;
    struct sz_slice relation; /* the one asked last, as the journal records it: object#relation@user */

    /* decide.c: the decision; everything after reads it */
    const char *detail; /* a literal that says more to the client; NULL: the title is enough */
    uint32_t passed;    /* a bit for each stage that had no objection */
    bool refused;
    enum sz_reason reason; /* of the refusal */
    struct sz_decision decision;
    struct sz_forward forward; /* allow on a proxy listener */
    struct sz_answer answer;   /* everything else */
    bool proxy;                /* forward is what to do; else answer */
    /* commit.c */
    struct sz_audit_wait audit_wait; /* parked until the record is committed */
    struct sz_timer audit_end;       /* ... or the request's deadline has come */
    bool audit_asked, audit_committed;

    struct sz_headers respond; /* fields to add to any response to the client: X-Request-Id, CORS, rate limits */
};

/*
 * Starts: the edge has zeroed the struct and set worker, pool, req, on_finished.  FINISHED: txn->proxy says which
 * of forward and answer counts; on_finished will not run.  PARKED: on_finished will.
 */
enum sz_step sz_txn_start(struct sz_txn *txn);
/* The one way back in: called by every callback of a parked stage, after it recorded its answer. */
void sz_txn_resume(struct sz_txn *txn);
/* The client left, or the response is over: cancels what is parked, gives the snapshot back; on_finished never runs. */
void sz_txn_end(struct sz_txn *txn);

/*
 * A refusal after the decision (upstream faults) or before the pipeline (head checks): fills txn->answer with
 * the problem document for `reason`, with CORS and request id as far as known.  Usable on a txn whose start never ran
 * (worker, pool and req set).
 */
void sz_txn_problem(struct sz_txn *txn, enum sz_reason reason, const char *detail);
/* The same with another status than the reason's own. */
void sz_txn_problem_as(struct sz_txn *txn, enum sz_reason reason, unsigned status, const char *detail);

/*
 * Api listeners ask no route: the edge opens a transaction, so that it has a snapshot, a request id, a canonical target
 * and a deadline, asks what it has to ask, and closes it with a reply.  A positive result refuses the target as
 * admit would: the reason, and *why.
 */
enum sz_reason sz_txn_open(struct sz_txn *txn, const char **why);
/* A relation was asked: for the record. */
void sz_txn_asked(struct sz_txn *txn, const struct sz_tuple_key *key, enum sz_authz_source source);
/* Records what was decided (allowed: yes was the answer to all) and makes 200 with this JSON the answer. */
void sz_txn_reply(struct sz_txn *txn, enum sz_reason reason, struct sz_slice json);

/* What the access log and metrics need when the exchange is over. */
struct sz_completion {
    unsigned status;
    uint64_t bytes_out;
};
void sz_txn_account(struct sz_txn *txn, const struct sz_completion *completion);

/* ---- the worker: one per loop thread -------------------------------------------------------------------- */

enum { SZ_THREAT_ACTION_DRY_RUN = SZ_THREAT_BLOCK + 1 }; /* beside the levels, in the metric */

/* Process-wide, outlives every worker. */
struct sz_gate {
    struct {
        struct sz_series token_requests, token_hits, negative_requests, negative_hits, shed;
        struct sz_series l2_requests, l2_hits;
        struct sz_series coalesced_tokens, coalesced_keys;
        struct sz_series auth, authz, proxy, decide; /* request_duration_seconds by handler */
        struct sz_series errors[SZ_REASON_COUNT];    /* by what the answer says; {0} for what is no fault */
    } series;
    struct sz_token_cache *tokens;
    struct sz_reject_cache *rejects;
    struct sz_decisions *decisions; /* NULL: none are kept */
    struct sz_limiter *limiter;
    struct sz_revocations *revocations; /* owned; never NULL */
    const struct sz_revocation_news *news;
    struct sz_flights *key_flights;   /* one per source of keys that is waited for */
    struct sz_flights *token_flights; /* one per opaque token that is asked about */
    struct sz_l2 *l2;                 /* NULL: no Redis, or off */
    struct sz_decisions_shared *l2_decisions;
    struct sz_threat *threat;
    struct sz_threat_store
        *threat_store; /* is told whom the engine blocks; NULL: nobody is; before there are workers */
    _Atomic uint32_t threat_series[SZ_SIGNALS][SZ_THREAT_ACTION_DRY_RUN + 1]; /* handles; 0 = not registered yet */
    struct sz_audit *audit;                                                   /* NULL: off */
    struct sz_tracer *tracer;                                                 /* NULL: off; the edge's */
    _Atomic uint32_t in_flight;
    _Atomic bool draining;
};

struct sz_local_snapshot; /* a snapshot and this thread's count of its users */

struct sz_worker {
    struct sz_loop *loop;
    unsigned index;
    struct sz_gate *gate;
    struct sz_local_snapshot *current;
    struct sz_verify_queue *verify;
    struct sz_http *http;             /* asks providers; NULL: nobody is asked */
    struct sz_redis *redis;           /* limits and revocations; NULL: no Redis */
    struct sz_redis *redis_cache;     /* the cache; the same unless cache.l2.redis names another server */
    struct question *polling;         /* identify_ask.c: wait for another instance's answer */
    uint64_t request_seq;             /* request ids */
    struct sz_tracer *tracer;         /* NULL: no request is recorded */
    uint64_t trace_ids;               /* state of sz_trace_random */
    struct sz_audit_port *audit_port; /* NULL: no journal */
    uint8_t id_seed[8];
    uint32_t told[4096]; /* threat.c: tokens and networks told of lately */
};
void sz_worker_init(struct sz_worker *worker, struct sz_loop *loop, struct sz_gate *gate, struct sz_snapshot *snapshot);
void sz_worker_fini(struct sz_worker *worker);
/* New requests use it from now on; the old one goes with its last request. Own thread. */
void sz_worker_swap(struct sz_worker *worker, struct sz_snapshot *snapshot);
/* The snapshot new requests get.  Borrowed, own thread, until the next swap. */
struct sz_snapshot *sz_worker_snapshot(struct sz_worker *worker);

/* What its caches hold, for a scrape: a collector of sz_metrics_on_scrape with the gate as its argument. */
void sz_gate_collect(void *gate, struct sz_buf *out);

/* With a small set of revocations that is kept nowhere. */
int sz_gate_init(struct sz_gate *gate, const struct sz_conf *conf) SZ_MUST_CHECK;
/* Instead of it; takes it over.  Before there are workers. */
void sz_gate_revocations(struct sz_gate *gate, struct sz_revocations *revocations);
void sz_gate_fini(struct sz_gate *gate);
/* A snapshot is about to be used, by nobody yet: its relation checks go through this gate's decision cache. */
void sz_gate_adopt(struct sz_gate *gate, struct sz_snapshot *snapshot);

#endif

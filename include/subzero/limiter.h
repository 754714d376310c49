/*
 * Rate limits as the pipeline asks for them: does this request still fit into this bucket?  Without a store the answer
 * is there at once, from the process's own table.
 *
 * "Could not ask" never becomes a quiet yes: the policy says what happens then (`closed`, or `open` under an emergency
 * bucket), and the reason says that it did:
 *
 *   | store                   | closed             | open, emergency has one   | open, emergency empty        |
 *   |-------------------------|--------------------|---------------------------|------------------------------|
 *   | answers, within quota   | allow allowed      | allow allowed             | allow allowed                |
 *   | answers, over quota     | deny rate_limited  | deny rate_limited         | deny rate_limited            |
 *   | call fails              | deny fail_closed   | allow, class of the error | deny emergency_local_limit   |
 *   | breaker open, no call   | deny circuit_open  | allow circuit_open        | deny emergency_local_limit   |
 *
 * Threads: a limiter belongs to the process; a question and its callback to their loop.
 */
#ifndef SUBZERO_LIMITER_H
#define SUBZERO_LIMITER_H

#include "subzero/conf.h"
#include "subzero/loop.h"
#include "subzero/reason.h"
#include "subzero/redis.h"

struct sz_limiter;

/* Maps its tables; nothing of them is touched before it is used.  NULL: errno. */
struct sz_limiter *sz_limiter_new(const struct sz_conf *conf);
void sz_limiter_free(struct sz_limiter **limiter);

/* ---- one bucket -------------------------------------------------------------------------------------------------- */

/* SZ_LIMIT_KEY_HEAD bytes (see sz_limit_key_head), then what names the identity, as fields of sz_key_field. */
#define SZ_LIMIT_KEY_HEAD 9
void sz_limit_key_head(const struct sz_conf_route_limit *limit, enum sz_limit_by kind, char out[SZ_LIMIT_KEY_HEAD]);

struct sz_limit_question {
    const struct sz_conf_route_limit *limit;
    struct sz_slice endpoint; /* the route's id */
    enum sz_limit_by kind;    /* of the identity; not always the policy's own: nobody is known on a public route */
    struct sz_slice key;      /* borrowed until the answer */
};

struct sz_limit_answer {
    bool allow;
    bool failed;               /* the store could not be asked: the policy decided */
    bool seen;                 /* view says how the bucket stands */
    enum sz_reason reason;     /* allowed, or why not; with failed and allow the class of the failure */
    enum sz_reason failure;    /* with failed: circuit_open, or the class of the failure */
    struct sz_limit_view view; /* retry: also with `failed` */
};

/* Embedded in the asker's struct; zero-initialise, set on_done. */
struct sz_limit_op {
    void (*on_done)(struct sz_limit_op *op); /* once, never inside the ask; not at all when that was answered */
    struct sz_limit_answer answer;
    /* private, until the answer */
    struct sz_redis_op redis;
    struct sz_limiter *limiter;
    struct sz_redis *client;
    struct sz_loop *loop;
    struct sz_limit_question question;
    struct sz_mono deadline;
    uint64_t want; /* requests' worth */
};

enum { SZ_LIMITER_ANSWERED = 1 };
/*
 * redis: the loop's client, NULL without one: then, as when the configuration had none at the start, the process's own
 * bucket is asked.  0: on_done will run, at the latest when redis.timeout is over.  SZ_LIMITER_ANSWERED: op->answer is
 * the answer.
 */
int sz_limiter_ask(struct sz_limiter *limiter, struct sz_redis *redis, struct sz_loop *loop,
                   const struct sz_limit_question *question, struct sz_mono deadline,
                   struct sz_limit_op *op) SZ_MUST_CHECK;
/* What the policy says when the store cannot be asked, or is not to be asked again in this request.  why: circuit_open,
 * or the class of the failed call; open: how long the breaker stays open. */
void sz_limiter_without_store(struct sz_limiter *limiter, const struct sz_limit_question *question, struct sz_mono now,
                              enum sz_reason why, struct sz_span open, struct sz_limit_answer *out);
/* After it on_done will not run; the token may be spent.  No-op when nothing is under way. */
void sz_limiter_cancel(struct sz_limit_op *op);

/* Brings what the tables have given up to the metrics: before they are looked at, by one thread. */
void sz_limiter_report(struct sz_limiter *limiter, unsigned thread);

/* ---- before authentication --------------------------------------------------------------------------------------- */

/* One request of an address more; false: it has had its share, and *retry says when it has some again. */
bool sz_limiter_address(struct sz_limiter *limiter, const struct sz_conf_limits *conf, struct sz_addr client,
                        struct sz_mono now, struct sz_span *retry);
/* Its credential was refused: the request counts as `failure_cost`. */
void sz_limiter_address_failed(struct sz_limiter *limiter, const struct sz_conf_limits *conf, struct sz_addr client,
                               struct sz_mono now);
/* A request begins and ends; false: too many at once, and nothing to leave. */
bool sz_limiter_enter(struct sz_limiter *limiter, struct sz_addr client, uint32_t most);
void sz_limiter_leave(struct sz_limiter *limiter, struct sz_addr client);

#endif

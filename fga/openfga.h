/*
 * The inside of the remote client: OpenFGA, or Auth0 FGA.
 *
 *   openfga.c        a check as the caller sees it: an item, with its own deadline, told once
 *   openfga_call.c   items of one turn of a loop become one call: /check, or /batch-check for two and more
 *   openfga_write.c  questions as JSON
 *   openfga_read.c   answers, and what each error means
 *   openfga_token.c  client credentials: one token for the process, refreshed ahead, one refresh at a time
 *   openfga_life.c   what all loops share, and what each has
 *
 * A client is shared by all loops and counted; a lane is one loop's part of it and is touched by that loop's thread
 * alone.
 */
#ifndef SZ_FGA_OPENFGA_H
#define SZ_FGA_OPENFGA_H

#include <pthread.h>
#include <stdatomic.h>

#include "subzero/dependency.h"
#include "subzero/fga.h"
#include "subzero/metrics.h"

#define SZ_FGA_BATCH_MAX   50           /* checks in one call: what a server takes by default */
#define SZ_FGA_BATCH_BYTES (256 * 1024) /* of one call's questions */
#define SZ_FGA_ANSWER_MAX  (256 * 1024)
#define SZ_FGA_LANES       258 /* workers and the service loop */

struct sz_fga_lane;
struct sz_fga_token;

struct sz_fga_client {
    _Atomic unsigned refs;
    struct sz_arena arena;
    struct sz_slice check_url, batch_url, store_url; /* store_url: ".../stores/ID" */
    struct sz_slice model_id, api_url;
    struct sz_slice shared_key; /* "Bearer ..."; SZ_NONE: client credentials, or nothing */
    struct sz_fga_token *token; /* NULL: no client credentials */
    struct sz_http_trust *trust;
    bool insecure_http;
    enum sz_consistency consistency;
    struct sz_span timeout;
    uint8_t retries;
    struct sz_conf_breaker breaker;
    uint64_t settings; /* hash of what makes answers differ; the same on every instance */
    struct sz_series errors, misconfigured;
    _Atomic int64_t said_at[2];              /* when a fault of either kind was last written to the log */
    struct sz_fga_lane *lanes[SZ_FGA_LANES]; /* by sz_loop_index; each its loop's */
};

/* Blocking.  NULL: *why. */
struct sz_fga_client *sz_fga_client_new(const struct sz_conf_fga_remote *conf, struct sz_text *why);
struct sz_fga_client *sz_fga_client_ref(struct sz_fga_client *client);
void sz_fga_client_unref(struct sz_fga_client **client);

struct sz_fga_items { /* a queue that any of them can leave */
    struct sz_fga_item *first, **last;
};

/* One question on its way. */
struct sz_fga_item {
    struct sz_authz_op *op;
    struct sz_fga_lane *lane;
    struct sz_timer deadline;
    enum sz_consistency consistency;
    bool alone;               /* not to be asked together with others again */
    struct sz_buf question;   /* "tuple_key":{...},... : see sz_fga_write_question */
    struct sz_fga_call *call; /* NULL: waits for the end of this turn */
    struct sz_fga_item *next, **prev;
    unsigned number; /* in its call */
};

struct sz_fga_lane {
    struct sz_fga_client *client; /* not counted: the client owns its lanes */
    struct sz_loop *loop;
    struct sz_http *http;
    struct sz_dependency *dependency;
    struct sz_defer send;
    bool queued;                 /* send is */
    struct sz_fga_items waiting; /* for the end of this turn */
    struct sz_mono no_batch;     /* the server does not know /batch-check: not tried before */
};
/* The lane of this loop; made when there is none. */
struct sz_fga_lane *sz_fga_lane_of(struct sz_fga_client *client, struct sz_loop *loop, struct sz_http *http);

/* ---- openfga_call.c ---------------------------------------------------------------------------------------------- */

void sz_fga_lane_add(struct sz_fga_lane *lane, struct sz_fga_item *item); /* asked at the end of this turn */
void sz_fga_item_remove(struct sz_fga_item *item); /* from wherever it waits; its call ends with its last item */
void sz_fga_lane_send(struct sz_defer *defer);

/* ---- openfga.c --------------------------------------------------------------------------------------------------- */

void sz_fga_item_tell(struct sz_fga_item *item, const struct sz_authz_answer *answer); /* and frees it */

/* ---- openfga_write.c --------------------------------------------------------------------------------------------- */

/*
 * The members of a check that are its own: tuple_key, contextual_tuples, context.  -EINVAL: a context that is no JSON
 * object; it would be able to say more than a context.
 */
int sz_fga_write_question(struct sz_buf *out, const struct sz_check *check) SZ_MUST_CHECK;
void sz_fga_write_check(struct sz_buf *out, const struct sz_fga_client *client, struct sz_slice question,
                        enum sz_consistency consistency);
/* Of all items from `first` on; correlation ids are their numbers, given here. */
void sz_fga_write_batch(struct sz_buf *out, const struct sz_fga_client *client, struct sz_fga_item *first,
                        enum sz_consistency consistency);

/* ---- openfga_read.c ---------------------------------------------------------------------------------------------- */

/* Sets answer's outcome, code and message.  FAILURE: nonsense, or what the breaker counts anyway. */
enum sz_breaker_outcome sz_fga_read_check(int status, struct sz_slice body, struct sz_authz_answer *answer);
/*
 * answers[0..n): each that the body has no clear answer for is UNAVAILABLE.  With another status than 200 all are
 * alike.
 */
enum sz_breaker_outcome sz_fga_read_batch(int status, struct sz_slice body, struct sz_authz_answer *answers, size_t n);
/* What an error's body says: its code, *number as OpenFGA numbers it (0: no body of OpenFGA's). */
void sz_fga_read_error(int status, struct sz_slice body, int *number, struct sz_text *message);
/* A JSON object, strict; NULL: none.  A json_t *. */
void *sz_fga_read_object(struct sz_slice body);

/* ---- openfga_token.c --------------------------------------------------------------------------------------------- */

struct sz_fga_token_wait { /* the waiter's memory is `owner`'s; this is on the heap and frees itself */
    void (*on_done)(void *owner);
    void *owner; /* NULL: has left */
    struct sz_loop *loop;
    struct sz_msg msg;
    struct sz_fga_token_wait *next;
};

struct sz_fga_token *sz_fga_token_new(const struct sz_conf_fga_remote *conf, struct sz_pool *pool);
void sz_fga_token_free(struct sz_fga_token **token);
enum { SZ_FGA_TOKEN_WAIT = 1 };
/*
 * 0: "Bearer ..." appended to out.  SZ_FGA_TOKEN_WAIT: on_done(owner) later, on this loop, once: ask again.  -EAGAIN:
 * there is none, *why; to be asked for again after *retry.
 */
int sz_fga_token_get(struct sz_fga_lane *lane, void (*on_done)(void *owner), void *owner, struct sz_buf *out,
                     uint64_t *generation, struct sz_fga_token_wait **wait, struct sz_span *retry,
                     struct sz_text *why) SZ_MUST_CHECK;
/* The server refused the token of this generation. */
void sz_fga_token_refused(struct sz_fga_client *client, uint64_t generation);

/* ---- openfga_life.c ---------------------------------------------------------------------------------------------- */

/*
 * Something is wrong that waiting will not heal (misconfigured) or might: counted, and said once in ten seconds.
 */
void sz_fga_fault(struct sz_fga_lane *lane, bool misconfigured, const char *what, const char *detail);

#endif

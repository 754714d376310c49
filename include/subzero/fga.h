/*
 * "May this user do this to that object?"  One interface, four outcomes, several
 * sources behind it: the embedded engine, OpenFGA / Auth0 FGA over the wire, a replica.
 * "No" and "could not ask" are never folded together (Z2).
 */
#ifndef SUBZERO_FGA_H
#define SUBZERO_FGA_H

#include "subzero/base.h"
#include "subzero/loop.h"

enum sz_authz_outcome {
    SZ_AUTHZ_ALLOWED,
    SZ_AUTHZ_DENIED,
    SZ_AUTHZ_ERROR,       /* the question is wrong or cannot be decided: `code` says which, by OpenFGA's numbers */
    SZ_AUTHZ_UNAVAILABLE, /* could not ask: timeout, connection, breaker */
};

enum sz_authz_source { SZ_AUTHZ_FROM_ENGINE, SZ_AUTHZ_FROM_OPENFGA, SZ_AUTHZ_FROM_REPLICA };

struct sz_tuple_key {
    struct sz_slice user, relation, object;       /* "user:anne", "viewer", "document:roadmap" */
    struct sz_slice condition, condition_context; /* SZ_NONE when absent; context is a JSON object */
};

enum sz_consistency {
    SZ_MINIMIZE_LATENCY,  /* caches and what was loaded before may answer */
    SZ_HIGHER_CONSISTENCY /* no cache is read and no flight joined that began before */
};

struct sz_check {
    struct sz_tuple_key key;
    enum sz_consistency consistency;
    struct sz_slice context; /* JSON object, SZ_NONE when absent */
    const struct sz_tuple_key *contextual;
    size_t contextual_n; /* at most 100 */
};

enum sz_authz_layer { SZ_AUTHZ_ASKED, SZ_AUTHZ_L1, SZ_AUTHZ_L2 }; /* where the answer was found: no cache, or which */

struct sz_authz_answer {
    enum sz_authz_outcome outcome;
    enum sz_authz_source source;
    enum sz_authz_layer layer;
    bool met_cycle;             /* the data loop back on themselves below this question: no cache keeps it */
    int code;                   /* OpenFGA's number with SZ_AUTHZ_ERROR, else 0 */
    struct sz_span retry_after; /* UNAVAILABLE: when to come again; 0: not known */
    struct sz_text message;
};

struct sz_http;
struct sz_followers;

/*
 * One question in flight.  Embedded in the asker's own memory, which must live until on_done ran
 * or sz_authz_cancel was called.  on_done runs on the loop given at the start, never inside the start.
 */
struct sz_authz_op {
    void (*on_done)(struct sz_authz_op *op);
    struct sz_http *http; /* that loop's client, for sources that ask over the network; NULL: UNAVAILABLE there */
    struct sz_authz_answer answer;
    void *impl; /* the source's, from its start to on_done or cancel */
};

/*
 * An authorization source.  start: 1 = answered already, op->answer is set and on_done will not run
 * (the engine, a cache hit); 0 = on_done will run; negative = broken, on_done will not run (treat as UNAVAILABLE).
 * What check points to need not outlive the start.
 */
struct sz_authz {
    int (*start)(struct sz_authz *authz, struct sz_loop *loop, const struct sz_check *check, struct sz_mono deadline,
                 struct sz_authz_op *op);
    void (*cancel)(struct sz_authz *authz, struct sz_authz_op *op); /* after it on_done never runs */
    void (*free)(struct sz_authz *authz);

    /* For the cache in front; all optional. */
    /* Answers what costs about as little as looking into a cache: 1 and op->answer; 0: that would take longer. */
    int (*quick)(struct sz_authz *authz, const struct sz_check *check, struct sz_authz_op *op);
    /* Names the state that answers are given from: one given under another name is not to be used any more. */
    uint64_t (*epoch)(struct sz_authz *authz);
    bool shared; /* the epoch means the same on every instance: answers may be kept outside the process */

    /* Service thread, before its first question, optional: what it has to follow.  See sz_followers_adopt. */
    void (*follow)(struct sz_authz *authz, struct sz_followers *followers);

    /* The rest is NULL where the model is not in this process.  Blocking: at the start and in commands. */
    /*
     * Would the model understand such a question, or take such a tuple?  An example with made-up ids.  False: *why
     * names the type or relation that it does not have, or what is wrong with the tuple.
     */
    bool (*vet)(struct sz_authz *authz, const struct sz_tuple_key *example, bool tuple, struct sz_text *why);
    /* Through which tuples, or what was looked at in vain: indented text for a person. */
    void (*explain)(struct sz_authz *authz, const struct sz_check *check, struct sz_buf *out);
};

static inline int sz_authz_start(struct sz_authz *authz, struct sz_loop *loop, const struct sz_check *check,
                                 struct sz_mono deadline, struct sz_authz_op *op)
{
    return authz->start(authz, loop, check, deadline, op);
}

struct sz_conf_fga;
struct sz_fga_hub; /* subzero/fga_api.h */
/*
 * The embedded source: model (.fga, .json or fga.mod) and tuple files, or the texts that the demo brings.
 * Long checks go on on the hub's pool, which outlives the source; without a hub they are unavailable.
 * Blocking.  NULL: *why says where and what.
 */
struct sz_authz *sz_authz_embedded_open(const struct sz_conf_fga *conf, struct sz_fga_hub *hub, struct sz_text *why);
/* A remote store: OpenFGA or Auth0 FGA.  Blocking; nothing is asked yet.  NULL: *why. */
struct sz_authz *sz_authz_remote_open(const struct sz_conf_fga *conf, struct sz_text *why);
/* The same, answered by a copy in the process that follows it (sz_followers), as long as that is fresh enough. */
struct sz_authz *sz_authz_replica_open(const struct sz_conf_fga *conf, struct sz_text *why);
struct sz_authz *sz_authz_embedded_new(struct sz_slice model_dsl, struct sz_slice tuples_yaml, struct sz_text *why);

/* ---- following remote stores: service thread ----------------------------------------------------------------------
 */

/* `loop` and `http` outlive it. */
struct sz_followers *sz_followers_new(struct sz_loop *loop, struct sz_http *http);
void sz_followers_free(struct sz_followers **followers); /* after the loop has ended; waits for a load under way */
/*
 * A configuration with this source (NULL: none) is about to be used, by nobody yet: the store it names is followed, one
 * that was followed before stays as it is, others end.
 */
void sz_followers_adopt(struct sz_followers *followers, struct sz_authz *source);
/* ,"fga":{...} for /health, nothing when nothing is followed.  False: it is not well. */
bool sz_followers_health(struct sz_followers *followers, struct sz_buf *out);

#endif

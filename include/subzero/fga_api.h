/*
 * The gateway as an OpenFGA: stores with their models and tuples, and the HTTP API about them (without HTTP: method,
 * path and body in, status and body out).  One hub a process: it owns the stores, a small pool for whatever takes
 * long, and the one thread that changes anything.
 *
 *   main thread: new ─▶ open ─▶ seed ─▶ (loops run: api_start, api_cancel) ─▶ free, when no loop asks any more
 */
#ifndef SUBZERO_FGA_API_H
#define SUBZERO_FGA_API_H

#include "subzero/addr.h"
#include "subzero/fga.h"

struct sz_audit;
struct sz_fga_hub;
struct sz_fga_keys;
struct sz_fga_seed;
struct sz_conf_fga;

struct sz_fga_clock { /* the pool's threads have no loop to tell them the time */
    struct sz_mono (*mono)(void);
    struct sz_wall (*wall)(void);
};

/* No I/O and no thread yet. */
struct sz_fga_hub *sz_fga_hub_new(const struct sz_fga_clock *clock);
void sz_fga_hub_free(struct sz_fga_hub **hub);

/*
 * Stores live in STATE_DIR/fga from now on, and what is there is there again; without it they live in memory.  Before
 * anything is asked.  Blocking.  -EINVAL: *why, with file and offset where the log is damaged.
 */
int sz_fga_hub_open(struct sz_fga_hub *hub, const char *state_dir, struct sz_text *why) SZ_MUST_CHECK;

/*
 * A loop has run for the last time: long checks that it began for nobody in particular (a decision that many wait for)
 * are broken off, as unavailable.  Then their messages are in its inbox: it runs once more.  True: after that, again.
 */
bool sz_fga_hub_settle(struct sz_fga_hub *hub, struct sz_loop *loop) SZ_MUST_CHECK;

struct sz_fga_health {
    size_t stores;
    bool durable, broken; /* broken: the log could not be written or synced, nothing is written until a restart */
    uint64_t log_bytes;
};
void sz_fga_hub_health(struct sz_fga_hub *hub, struct sz_fga_health *out); /* any thread */

/*
 * Where changes over the API are recorded: by key, address, what and the outcome; NULL: nowhere.  Ordered with what the
 * writer does: when it returns, the one before is used no more.  Not a loop thread.
 */
void sz_fga_hub_audit(struct sz_fga_hub *hub, struct sz_audit *audit);

/*
 * The store that routes ask where `fga.listen` is on: its id and name.  `fga.model` and `fga.tuples` are put into it,
 * and no call can delete it.
 */
#define SZ_FGA_OWN_STORE      "00000000000000000000000000"
#define SZ_FGA_OWN_STORE_NAME "default"

/* A configuration's model and tuples, read and parsed; without a model it is empty.  Blocking.  NULL: *why. */
struct sz_fga_seed *sz_fga_seed_read(const struct sz_conf_fga *conf, struct sz_text *why);
void sz_fga_seed_free(struct sz_fga_seed **seed);
/*
 * Puts them into the gateway's own store: a model that is the newest there already is not added again, tuples that are
 * there stay as they are, and nothing is removed.  Blocks until it is done; not a loop thread.  -EINVAL and *why.
 */
int sz_fga_seed_apply(const struct sz_fga_seed *seed, struct sz_fga_hub *hub, struct sz_text *why) SZ_MUST_CHECK;

/*
 * The gateway's own store as an authorization source, pinned to the seed's model, or asking the newest when it has
 * none; "could not ask" until there is one.  The hub must outlive it.  NULL: *why.
 */
struct sz_authz *sz_authz_hub_new(struct sz_fga_hub *hub, const struct sz_fga_seed *seed, struct sz_text *why);
/* A store of the source's own, which nothing changes.  hub: of the pool, or NULL.  NULL: *why. */
struct sz_authz *sz_authz_seed_new(struct sz_fga_hub *hub, const struct sz_fga_seed *seed, struct sz_text *why);

/* ---- keys ---- */

/*
 * The API's keys, one a line: "read KEY [NAME]" or "write KEY [NAME]" (which may read, too); '#' begins a comment.
 * NULL: *why with the line; the text is the caller's to wipe.
 */
struct sz_fga_keys *sz_fga_keys_parse(struct sz_slice text, struct sz_text *why);
void sz_fga_keys_free(struct sz_fga_keys **keys); /* wipes */

/* ---- one call ---- */

struct sz_fga_call {                /* all of it may go when the start has returned */
    struct sz_slice method, target; /* target: path and query */
    struct sz_slice authorization;  /* the header's value, SZ_NONE: none */
    struct sz_slice body;
    struct sz_addr peer;            /* for the audit */
    const struct sz_fga_keys *keys; /* NULL: none are needed (a loopback listener) */
};

/* Embedded in the asker's memory, zeroed at first, which lives until on_done ran or the call was cancelled. */
struct sz_fga_reply {
    void (*on_done)(struct sz_fga_reply *reply);
    /*
     * Of a streamed answer, which may have many: `body` has what is there (moved out of the reply by the asker, who
     * lets its client take it, and then calls sz_fga_api_next).  on_done brings the rest, and may come before the part
     * was taken.  NULL: all comes with on_done.
     */
    void (*on_part)(struct sz_fga_reply *reply);
    bool begun; /* a part was given: the status has been 200, whatever on_done says */
    unsigned status;
    bool challenge;     /* 401: WWW-Authenticate: Bearer belongs to it */
    struct sz_buf body; /* JSON, or a JSON object a line; the asker's: sz_buf_fini */
    void *errand;       /* what works on it; NULL: answered */
};

/*
 * Loop threads.  1: answered, on_done will not run; 0: on_done will run on this loop.  Never fails otherwise: what
 * cannot be done is a reply with its status.
 */
int sz_fga_api_start(struct sz_fga_hub *hub, struct sz_loop *loop, const struct sz_fga_call *call,
                     struct sz_mono deadline, struct sz_fga_reply *reply) SZ_MUST_CHECK;
/* After a part was taken, before on_done.  True: `body` has the next one; false: on_part or on_done will come. */
bool sz_fga_api_next(struct sz_fga_reply *reply);
/* The loop that started it, before on_done: it will not run, and the body stays empty. */
void sz_fga_api_cancel(struct sz_fga_reply *reply);

#endif

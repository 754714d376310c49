/*
 * Following a remote store: its changes, and a copy of its tuples in the embedded engine.
 *
 *   follow.c        who is followed: adopting configurations, health, life
 *   follow_steps.c  what is asked, one request after the other
 *   follow_page.c   what came: pages of tuples and changes, read and applied
 *   follow_load.c   from many tuples to an engine, on a thread of its own
 *   replica.c       the copy as an authorization source
 *
 *     MODEL ─▶ READ, page by page ─▶ LOADING on a thread ─▶ FOLLOW: changes from before the first page on
 *                                                             │ end of the changes reached: the copy answers
 *                                                             ▼
 *                                                           asked again every `poll`, for as long as it is named
 *
 * A page of Read is no snapshot: what is written meanwhile may be in it or not.  So the changes are followed from a
 * moment before the first page, and only when their end has been reached once is the copy the store: what was not
 * written since then was read once, what was has its last change applied.
 */
#ifndef SZ_FGA_FOLLOW_H
#define SZ_FGA_FOLLOW_H

#include "fga/engine/engine.h"
#include "fga/openfga_ask.h"

/* A loaded store; immutable but for its engine, which has one writer: the follower. */
struct sz_fga_copy {
    struct sz_engine *engine;
    const struct sz_program *program;
    uint64_t instance; /* random: see sz_authz.epoch */
    struct sz_fga_copy *retired;
};

/* What a follower and the sources that it serves share. */
struct sz_fga_news {
    _Atomic unsigned refs;
    _Atomic(struct sz_fga_copy *) copy; /* NULL: none yet */
    _Atomic int64_t heard;              /* the copy is the store as it was then, at the least; monotonic us, 0: never */
    _Atomic uint64_t changes;           /* grows with every page that had some */
    _Atomic(struct sz_fga_copy *) used[SZ_FGA_LANES]; /* by loop: the copy that it looks at now is not freed */
};
void sz_fga_news_unref(struct sz_fga_news **news);

enum sz_fga_step { SZ_FGA_MODEL, SZ_FGA_READ, SZ_FGA_LOADING, SZ_FGA_FOLLOW };

struct sz_fga_load; /* follow_load.c */

struct sz_follower {
    struct sz_followers *all;
    struct sz_follower *next;
    uint64_t settings;
    bool named;  /* by the configuration being adopted */
    bool copies; /* mode replica */
    struct sz_span poll;
    struct sz_fga_client *client; /* counted; the last configuration's */
    struct sz_fga_news *news;     /* counted */
    enum sz_fga_step step;
    struct sz_fga_ask ask;
    struct sz_timer timer;
    struct sz_mono asked; /* when the request under way was begun */
    unsigned failures;    /* in a row */
    struct sz_text why;   /* of the last */
    char start_time[40];  /* changes from then on, until there is a token; as the server's clock has it */
    struct sz_buf token;  /* of the changes, or of the pages read */
    struct sz_model *model;
    struct sz_fga_load *load;
    struct sz_fga_copy *fresh; /* loaded, and not the store yet */
    struct sz_fga_copy *retired;
    uint64_t applied, ignored; /* changes; tuples that the pinned model does not admit */
};

struct sz_followers {
    struct sz_loop *loop;
    struct sz_http *http;
    struct sz_follower *first;
    struct sz_fga_load *orphans; /* threads whose follower has gone */
};

/* What a source needs to be followed: see sz_authz.follow. */
struct sz_fga_news *sz_followers_take(struct sz_followers *all, struct sz_fga_client *client, struct sz_span poll,
                                      bool copies);

/* ---- follow_steps.c ---- */
void sz_follower_begin(struct sz_follower *f);
void sz_follower_stop(struct sz_follower *f);
void sz_follower_loaded(struct sz_follower *f, struct sz_fga_copy *copy, struct sz_text why); /* copy NULL: failed */

/* ---- follow_page.c ---- */

/* The page's tuples go to the load, *next is its token (empty: the last).  -EPROTO: nonsense; -E2BIG: too many. */
int sz_follower_read_page(struct sz_follower *f, struct sz_slice body, struct sz_buf *next) SZ_MUST_CHECK;
/* The page's changes are applied, in one step; *n of them, *next the token, empty when there is none. */
int sz_follower_changes_page(struct sz_follower *f, struct sz_slice body, size_t *n, struct sz_buf *next) SZ_MUST_CHECK;

/* ---- follow_load.c ---- */

struct sz_fga_load *sz_fga_load_new(struct sz_follower *f); /* takes f->model over */
/* -E2BIG: more than a copy may have. */
int sz_fga_load_add(struct sz_fga_load *load, const struct sz_tuple_key *key) SZ_MUST_CHECK;
void sz_fga_load_start(struct sz_fga_load *load); /* sz_follower_loaded later; -errno there */
void sz_fga_load_free(struct sz_fga_load **load); /* one whose thread runs is freed when that ends */
void sz_fga_loads_join(struct sz_followers *all); /* the loop has ended: waits for such threads */
void sz_fga_copy_free(struct sz_fga_copy **copy);

#endif

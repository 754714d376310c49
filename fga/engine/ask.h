/*
 * One question in work: what check, the lists and expand share.  A question brings its own little world along:
 * names that the store does not know get numbers from SZ_OWN_NODE up, contextual tuples lie beside the stored ones.
 */
#ifndef SZ_ENGINE_ASK_H
#define SZ_ENGINE_ASK_H

#include "fga/engine/program.h"

#define SZ_OWN_NODE       0xc0000000U
#define SZ_DEPTH_MAX      25
#define SZ_CONTEXTUAL_MAX 100

struct sz_cinst;

struct sz_ctuple { /* a contextual tuple */
    uint32_t object, subject;
    uint16_t relation, form;
    const struct sz_cinst *cond; /* NULL: none */
};

struct sz_own_node {
    struct sz_slice name;
    uint16_t type;
    bool wild;
};

struct sz_pathstep { /* a relation of an object that is being answered */
    uint32_t object;
    uint16_t rel;
};

struct sz_ask {
    struct sz_view view;
    const struct sz_program *p;

    /* the user */
    uint32_t user;
    uint16_t user_type, user_relation; /* relation: 0 plain, SZ_WILD, or a userset's */
    uint16_t user_form, wild_form;     /* wild_form: type:* of the user's type; 0 for a userset */
    const uint64_t *reach[2];          /* which relations the two forms can have */

    uint64_t steps; /* left */
    const struct sz_patience *patience;

    /* contextual tuples and names of our own */
    struct sz_ctuple *ctuples;
    size_t n_ctuples;
    struct sz_own_node *own;
    size_t n_own, cap_own;

    /* conditions */
    const void *context;   /* json_t *, NULL: none */
    struct sz_cv **vars;   /* per condition of the model: the request's values, cast when first needed */
    struct sz_arena arena; /* everything that the question allocates */
    bool arena_used;

    /* where we are */
    struct sz_pathstep *path, path_room[32];
    size_t n_path, cap_path;
    bool cycle;          /* one was met */
    int condition_fault; /* the code of a contextual tuple whose condition is wrong: a check's is another than a list's
                          */

    /* groups of the user that were looked up last (see check.c) */
    uint32_t groups_key;
    struct sz_rowref groups, everybodys;
    bool groups_usable;

    struct sz_fault *fault;
};

/* Begins: view, budget.  Ends: frees all of it. */
void sz_ask_begin(struct sz_ask *a, struct sz_engine *e, const struct sz_program *p, uint64_t steps,
                  struct sz_fault *fault);
void sz_ask_end(struct sz_ask *a);
struct sz_pool *sz_ask_pool(struct sz_ask *a);
/* n steps; false: they are used up, and there is no patience for more. */
bool sz_ask_more(struct sz_ask *a, uint64_t n);
static inline bool sz_ask_spend(struct sz_ask *a, uint64_t n)
{
    if (SZ_UNLIKELY(a->steps < n))
        return sz_ask_more(a, n);
    a->steps -= n;
    return true;
}

/* The request's context and contextual tuples, checked like writes.  -EINVAL: fault set (2027 or 2000). */
int sz_ask_context(struct sz_ask *a, struct sz_slice context, const struct sz_tuple_key *tuples,
                   size_t n) SZ_MUST_CHECK;
/* A check's key as numbers, the user taken over.  -EINVAL: fault set (2000). */
int sz_ask_key(struct sz_ask *a, const struct sz_tuple_key *k, uint32_t *object, uint16_t *rel) SZ_MUST_CHECK;
/* The number of "type:id", the store's or one of our own. */
uint32_t sz_ask_node(struct sz_ask *a, struct sz_slice name, uint16_t type, bool wild);
/* The user of the question: object, userset or type:*, already checked against the model. */
void sz_ask_user(struct sz_ask *a, struct sz_slice user);
void sz_ask_user_node(struct sz_ask *a, uint32_t node, uint16_t type, uint16_t relation);

static inline const struct sz_block *sz_ask_block(const struct sz_ask *a, uint32_t node)
{
    return node >= SZ_OWN_NODE ? NULL : sz_view_block(&a->view, &sz_node(a->view.store, node)->fwd);
}
static inline const struct sz_block *sz_ask_reverse(const struct sz_ask *a, uint32_t node)
{
    return node >= SZ_OWN_NODE ? NULL : sz_view_block(&a->view, &sz_node(a->view.store, node)->rev);
}
struct sz_slice sz_ask_name(const struct sz_ask *a, uint32_t node);
uint16_t sz_ask_type(const struct sz_ask *a, uint32_t node);

static inline bool sz_ask_reaches(const struct sz_ask *a, uint16_t rel)
{
    return ((a->reach[0][rel / 64] | a->reach[1][rel / 64]) >> rel % 64 & 1) != 0;
}

/* ---- answers ---- */

/* CYCLE is a NO that came about by meeting a question that is being answered already. */
enum sz_answer { SZ_NO, SZ_YES, SZ_CYCLE, SZ_ERROR, SZ_OUT_OF_STEPS };

enum sz_answer sz_ask_relation(struct sz_ask *a, uint32_t object, uint16_t rel, unsigned depth);
/* A part of the relation's rewrite; the relation itself must have been entered. */
enum sz_answer sz_ask_rewrite(struct sz_ask *a, uint32_t object, const struct sz_crel *r, const struct sz_cex *x,
                              unsigned depth);
void sz_ask_enter(struct sz_ask *a, uint32_t object, uint16_t rel);
void sz_ask_leave(struct sz_ask *a, uint16_t rel);

/* A tuple's condition under this question: SZ_YES, SZ_NO (also: not admitted by the model), SZ_ERROR. */
enum sz_answer sz_ask_condition(struct sz_ask *a, const struct sz_direct *d, const struct sz_cinst *c);
static inline enum sz_answer sz_ask_admits(struct sz_ask *a, const struct sz_direct *d, uint32_t cond)
{
    if (SZ_LIKELY(cond == 0))
        return d->bare ? SZ_YES : SZ_NO;
    return sz_ask_condition(a, d, sz_cinst(a->view.store, cond));
}

/* Walks stored and contextual tuples of (object, relation, form) together. */
struct sz_tupleiter {
    struct sz_rowiter stored;
    size_t contextual;
    uint32_t object;
    uint16_t relation, form;
    uint32_t subject;            /* the current one */
    uint32_t cond_id;            /* stored */
    const struct sz_cinst *cond; /* contextual */
};
static inline void sz_tuples_begin(struct sz_tupleiter *it, const struct sz_block *b, uint32_t object,
                                   uint16_t relation, uint16_t form)
{
    sz_block_row(b, sz_row_key(relation, form), &it->stored.row);
    sz_row_begin(&it->stored);
    it->contextual = 0;
    it->object = object;
    it->relation = relation;
    it->form = form;
}
bool sz_tuples_next(const struct sz_ask *a, struct sz_tupleiter *it);
static inline enum sz_answer sz_tuples_admits(struct sz_ask *a, const struct sz_direct *d,
                                              const struct sz_tupleiter *it)
{
    if (it->cond != NULL)
        return sz_ask_condition(a, d, it->cond);
    return sz_ask_admits(a, d, it->cond_id);
}

int sz_ask_fail(struct sz_ask *a, int code, const char *fmt, ...) SZ_PRINTF(3, 4); /* returns -EINVAL */

#endif

/*
 * The decision cache as a source in front of a source.  See subzero/decision.h.
 *
 * Three kinds of memory beside the table: `cached`, one per wrapped source, counted by its owner and by each question
 * under way; `pending`, one per caller that was not answered at once; `work`, one per flight, which lives on its own.
 */
#include "subzero/decision.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "cache/decision_key.h"
#include "cache/decision_table.h"
#include "subzero/flight.h"
#include "subzero/metrics.h"

struct sz_decisions {
    struct sz_decision_table *table;
    struct sz_flights *flights;
    struct sz_key128 key; /* of the hash: a client cannot choose a set, nor make two questions one (Z7) */
    struct sz_series requests, hits, l2_requests, l2_hits, coalesced;
};

struct cached {
    struct sz_authz authz;
    struct sz_authz *inner;
    struct sz_decisions *decisions;
    struct sz_decisions_conf conf;
    uint64_t instance;     /* stands for the epoch of a source that has none */
    _Atomic unsigned refs; /* the owner's, and one per pending and work */
};

struct pending { /* waits for a flight (wait.seat), or for a question of its own */
    struct cached *c;
    struct sz_authz_op *op;
    struct sz_loop *loop;
    struct sz_flight_wait wait;
    struct sz_authz_op own;
    struct sz_hash128 key;
    struct sz_mono asked;
};

struct work {
    struct cached *c;
    struct sz_loop *loop;
    struct sz_authz_op op;
    struct sz_flight *lead;
    struct sz_hash128 key;
    struct sz_mono asked;
    /* Where there is an L2: */
    struct sz_decision_l2_op l2;
    struct sz_arena arena; /* of the question, which may be asked later than its asker's memory lives */
    struct sz_check check;
    struct sz_slice fields;
};

struct question { /* its name, and what L1 and flights know it by */
    struct sz_slice fields;
    struct sz_hash128 key;
};

/* ---- life -------------------------------------------------------------------------------------------------------- */

struct sz_decisions *sz_decisions_new(size_t capacity)
{
    struct sz_decisions *d = sz_xcalloc(1, sizeof(*d));
    const char *l1[] = {"l1", "decision"}, *l2[] = {"l2", "decision"};
    d->table = sz_decision_table_new(capacity);
    if (d->table == NULL) {
        int error = errno;
        free(d);
        errno = error;
        return NULL;
    }
    d->flights = sz_flights_new(&(struct sz_flights_conf){
        .flights = 16384, .waiters = 1000000, .result = sizeof(struct sz_authz_answer), .age = SZ_SEC(60)});
    sz_random(&d->key, sizeof(d->key));
    d->requests = sz_series(SZ_METRIC_cache_requests, l1);
    d->hits = sz_series(SZ_METRIC_cache_hits, l1);
    d->l2_requests = sz_series(SZ_METRIC_cache_requests, l2);
    d->l2_hits = sz_series(SZ_METRIC_cache_hits, l2);
    d->coalesced = sz_series1(SZ_METRIC_coalesced, "decision");
    return d;
}

void sz_decisions_free(struct sz_decisions **decisions)
{
    if (*decisions == NULL)
        return;
    sz_flights_free(&(*decisions)->flights);
    sz_decision_table_free(&(*decisions)->table);
    free(*decisions);
    *decisions = NULL;
}

void sz_decisions_flush(struct sz_decisions *decisions)
{
    sz_decision_table_flush(decisions->table);
}

void sz_decisions_stats(struct sz_decisions *decisions, struct sz_cache_stats *out)
{
    sz_decision_table_stats(decisions->table, out);
}

static struct cached *ref(struct cached *c)
{
    atomic_fetch_add_explicit(&c->refs, 1, memory_order_relaxed);
    return c;
}

static void unref(struct cached *c)
{
    if (atomic_fetch_sub_explicit(&c->refs, 1, memory_order_acq_rel) > 1)
        return;
    c->inner->free(c->inner);
    free(c);
}

static void destroy(struct sz_authz *authz)
{
    unref(SZ_CONTAINER(authz, struct cached, authz));
}

/* ---- what is kept ------------------------------------------------------------------------------------------------ */

static bool find(struct cached *c, struct sz_loop *loop, struct sz_hash128 key, struct sz_authz_answer *out)
{
    struct sz_decision decision;
    if (!sz_decision_table_get(c->decisions->table, sz_loop_index(loop), key, sz_loop_now(loop), &decision))
        return false;
    memset(out, 0, sizeof(*out));
    out->outcome = decision.allowed ? SZ_AUTHZ_ALLOWED : SZ_AUTHZ_DENIED;
    out->source = decision.source;
    out->layer = SZ_AUTHZ_L1;
    return true;
}

/* Its time runs from the question, during which the truth may have changed. */
static void keep(struct cached *c, struct sz_loop *loop, struct sz_hash128 key, struct sz_mono asked,
                 const struct sz_authz_answer *answer)
{
    bool allowed = answer->outcome == SZ_AUTHZ_ALLOWED;
    if ((!allowed && answer->outcome != SZ_AUTHZ_DENIED) || answer->met_cycle)
        return;
    struct sz_mono until = sz_after(asked, allowed ? c->conf.ttl : c->conf.negative_ttl);
    (void)sz_decision_table_put(c->decisions->table, sz_loop_index(loop), key, sz_loop_now(loop), until,
                                (struct sz_decision){allowed, answer->source});
}

/* ---- a caller that waits ----------------------------------------------------------------------------------------- */

static void set_unavailable(struct sz_authz_answer *answer, const char *why)
{
    memset(answer, 0, sizeof(*answer));
    answer->outcome = SZ_AUTHZ_UNAVAILABLE;
    sz_text_set(&answer->message, "%s", why);
}

static struct pending *new_pending(struct cached *c, struct sz_loop *loop, struct sz_hash128 key,
                                   struct sz_authz_op *op)
{
    struct pending *p = sz_xcalloc(1, sizeof(*p));
    p->c = ref(c);
    p->op = op;
    p->loop = loop;
    p->key = key;
    p->asked = sz_loop_now(loop);
    op->impl = p;
    return p;
}

static void free_pending(struct pending *p)
{
    p->op->impl = NULL;
    unref(p->c);
    free(p);
}

static void tell(struct pending *p, const struct sz_authz_answer *answer)
{
    struct sz_authz_op *op = p->op;
    op->answer = *answer;
    free_pending(p);
    op->on_done(op);
}

static void on_flight(struct sz_flight_wait *wait, int status, struct sz_slice result)
{
    struct pending *p = SZ_CONTAINER(wait, struct pending, wait);
    struct sz_authz_answer answer;
    if (status == 0 && result.n == sizeof(answer))
        memcpy(&answer, result.p, sizeof(answer));
    else
        set_unavailable(&answer, "no answer in time");
    tell(p, &answer);
}

static void on_own(struct sz_authz_op *own)
{
    struct pending *p = SZ_CONTAINER(own, struct pending, own);
    keep(p->c, p->loop, p->key, p->asked, &own->answer);
    struct sz_authz_answer answer = own->answer;
    tell(p, &answer);
}

static void cancel(struct sz_authz *authz, struct sz_authz_op *op)
{
    struct pending *p = op->impl;
    (void)authz;
    if (p == NULL)
        return;
    if (p->wait.seat != NULL)
        sz_flight_leave(&p->wait);
    else
        p->c->inner->cancel(p->c->inner, &p->own);
    free_pending(p);
}

/* ---- asking ------------------------------------------------------------------------------------------------------ */

/* Past everything that was kept or is under way. */
static int ask_anew(struct cached *c, struct sz_loop *loop, const struct sz_check *check, struct sz_hash128 key,
                    struct sz_mono deadline, struct sz_authz_op *op)
{
    struct pending *p = new_pending(c, loop, key, op);
    p->own = (struct sz_authz_op){.on_done = on_own, .http = op->http};
    int rc = c->inner->start(c->inner, loop, check, deadline, &p->own);
    if (rc == 0)
        return 0;
    if (rc > 0) {
        keep(c, loop, key, p->asked, &p->own.answer);
        op->answer = p->own.answer;
    }
    free_pending(p);
    return rc;
}

static void finish(struct work *w, const struct sz_authz_answer *answer)
{
    sz_flight_finish(&w->lead, 0, sz_slice(answer, sizeof(*answer)));
    sz_arena_fini(&w->arena);
    unref(w->c);
    free(w);
}

/* The source has answered: L1, L2, and all who wait. */
static void learn(struct work *w, const struct sz_authz_answer *answer)
{
    const struct sz_decisions_conf *conf = &w->c->conf;
    bool clear = answer->outcome == SZ_AUTHZ_ALLOWED || answer->outcome == SZ_AUTHZ_DENIED;
    keep(w->c, w->loop, w->key, w->asked, answer);
    if (clear && !answer->met_cycle && w->fields.p != NULL) {
        bool allowed = answer->outcome == SZ_AUTHZ_ALLOWED;
        struct sz_span took = sz_between(w->asked, sz_loop_now(w->loop));
        struct sz_span left = {(allowed ? conf->ttl : conf->negative_ttl).us - took.us};
        if (left.us > 0)
            conf->l2->put(conf->l2, w->loop, w->fields, allowed, took, left);
    }
    finish(w, answer);
}

static void on_work(struct sz_authz_op *op)
{
    learn(SZ_CONTAINER(op, struct work, op), &op->answer);
}

/* True: w->op.answer is there. */
static bool ask_source(struct work *w, const struct sz_check *check)
{
    struct sz_authz *inner = w->c->inner;
    int rc = inner->start(inner, w->loop, check, sz_after(w->asked, w->c->conf.work), &w->op);
    if (rc < 0)
        set_unavailable(&w->op.answer, "it could not be asked");
    return rc != 0;
}

static void on_l2(struct sz_decision_l2_op *op, bool found, bool allowed, struct sz_span age)
{
    struct work *w = SZ_CONTAINER(op, struct work, l2);
    if (found && age.us >= 0 && age.us < (allowed ? w->c->conf.ttl : w->c->conf.negative_ttl).us) {
        struct sz_authz_answer answer = {.outcome = allowed ? SZ_AUTHZ_ALLOWED : SZ_AUTHZ_DENIED,
                                         .source = SZ_AUTHZ_FROM_OPENFGA,
                                         .layer = SZ_AUTHZ_L2};
        struct sz_mono then = {sz_loop_now(w->loop).us - age.us};
        sz_count(sz_loop_index(w->loop), w->c->decisions->l2_hits, 1);
        keep(w->c, w->loop, w->key, then, &answer); /* as old here as it is there */
        finish(w, &answer);
    } else if (ask_source(w, &w->check)) {
        struct sz_authz_answer answer = w->op.answer;
        learn(w, &answer);
    }
}

static struct sz_tuple_key copy_key(struct sz_pool *pool, const struct sz_tuple_key *key)
{
    return (struct sz_tuple_key){sz_pool_dup(pool, key->user), sz_pool_dup(pool, key->relation),
                                 sz_pool_dup(pool, key->object), sz_pool_dup(pool, key->condition),
                                 sz_pool_dup(pool, key->condition_context)};
}

static void copy_question(struct work *w, const struct sz_check *check, struct sz_slice fields)
{
    struct sz_pool *pool = &w->arena.pool;
    struct sz_tuple_key *contextual = sz_pool_alloc(pool, (check->contextual_n + 1) * sizeof(*contextual));
    for (size_t i = 0; i < check->contextual_n; i++)
        contextual[i] = copy_key(pool, &check->contextual[i]);
    w->check = *check;
    w->check.key = copy_key(pool, &check->key);
    w->check.context = sz_pool_dup(pool, check->context);
    w->check.contextual = contextual;
    w->fields = sz_pool_dup(pool, fields);
}

/* Starts the work of a flight.  True: it is over already, and *out is its answer. */
static bool work(struct cached *c, struct sz_loop *loop, const struct sz_check *check, const struct question *q,
                 struct sz_http *http, struct sz_flight *lead, struct sz_authz_answer *out)
{
    struct work *w = sz_xcalloc(1, sizeof(*w));
    struct sz_decision_l2 *l2 = c->inner->shared ? c->conf.l2 : NULL;
    w->c = ref(c);
    w->loop = loop;
    w->op = (struct sz_authz_op){.on_done = on_work, .http = http};
    w->lead = lead;
    w->key = q->key;
    w->asked = sz_loop_now(loop);
    sz_arena_init(&w->arena);
    if (find(c, loop, q->key, out)) { /* a flight may have ended since the miss */
        finish(w, out);
        return true;
    }
    if (l2 != NULL) {
        copy_question(w, check, q->fields);
        w->l2.on_done = on_l2;
        sz_count(sz_loop_index(loop), c->decisions->l2_requests, 1);
        if (l2->get(l2, loop, w->fields, &w->l2))
            return false;
    }
    if (!ask_source(w, check))
        return false;
    *out = w->op.answer;
    learn(w, out);
    return true;
}

static int ask_together(struct cached *c, struct sz_loop *loop, const struct sz_check *check, const struct question *q,
                        struct sz_mono deadline, struct sz_authz_op *op)
{
    struct pending *p = new_pending(c, loop, q->key, op);
    struct sz_flight *lead;
    p->wait.on_done = on_flight;
    int rc = sz_flight_join(c->decisions->flights, q->key, loop, deadline, &p->wait, &lead);
    if (rc == 0) {
        sz_count(sz_loop_index(loop), c->decisions->coalesced, 1);
        return 0;
    }
    if (rc == SZ_FLIGHT_FULL)
        set_unavailable(&op->answer, "too many questions are under way");
    else if (!work(c, loop, check, q, op->http, lead, &op->answer))
        return 0;
    sz_flight_leave(&p->wait);
    free_pending(p);
    return 1;
}

static int look_and_ask(struct cached *c, struct sz_loop *loop, const struct sz_check *check, const struct question *q,
                        struct sz_mono deadline, struct sz_authz_op *op)
{
    struct sz_decisions *d = c->decisions;
    if (check->consistency == SZ_HIGHER_CONSISTENCY)
        return ask_anew(c, loop, check, q->key, deadline, op);
    sz_count(sz_loop_index(loop), d->requests, 1);
    if (find(c, loop, q->key, &op->answer)) {
        sz_count(sz_loop_index(loop), d->hits, 1);
        return 1;
    }
    return ask_together(c, loop, check, q, deadline, op);
}

static int start(struct sz_authz *authz, struct sz_loop *loop, const struct sz_check *check, struct sz_mono deadline,
                 struct sz_authz_op *op)
{
    struct cached *c = SZ_CONTAINER(authz, struct cached, authz);
    struct sz_decision_fields fields;
    struct question q;
    if (c->inner->quick != NULL && c->inner->quick(c->inner, check, op) != 0)
        return 1;
    sz_decision_fields_init(&fields, c->inner->epoch != NULL ? c->inner->epoch(c->inner) : c->instance, check);
    q.fields = sz_buf_slice(&fields.b);
    q.key = sz_hash128(&c->decisions->key, q.fields);
    int rc = look_and_ask(c, loop, check, &q, deadline, op);
    sz_decision_fields_fini(&fields);
    return rc;
}

static int quick(struct sz_authz *authz, const struct sz_check *check, struct sz_authz_op *op)
{
    struct cached *c = SZ_CONTAINER(authz, struct cached, authz);
    return c->inner->quick != NULL ? c->inner->quick(c->inner, check, op) : 0;
}

struct sz_authz *sz_decisions_wrap(struct sz_decisions *decisions, struct sz_authz *inner,
                                   const struct sz_decisions_conf *conf)
{
    struct cached *c = sz_xcalloc(1, sizeof(*c));
    c->authz = (struct sz_authz){.start = start, .cancel = cancel, .free = destroy, .quick = quick};
    c->inner = inner;
    c->decisions = decisions;
    c->conf = *conf;
    c->refs = 1;
    sz_random(&c->instance, sizeof(c->instance));
    return &c->authz;
}

/*
 * A store as an authorization source.  A check within its steps is answered inside the start; one that needs more goes
 * on on the pool until its deadline, and what is not known then is "could not ask", never a no.
 */
#include <errno.h>
#include <stdlib.h>

#include "fga/api/hub.h"
#include "fga/api/seed.h"
#include "fga/engine/validate.h"
#include "subzero/crypto.h"

/* About a quarter of a millisecond of walking, which others wait for; about what a look into the cache costs. */
enum { STEPS = 5000, QUICK_STEPS = 32 };

struct source {
    struct sz_authz authz;
    struct sz_fga_hub *hub;                     /* NULL: no pool to go on on */
    struct sz_fga_store *store;                 /* NULL: the hub's own, looked for at each question */
    char *json;                                 /* the model that is meant; NULL: the newest */
    _Atomic(const struct sz_fga_model *) model; /* once it is found */
    const struct sz_program *program;           /* for vet; NULL: not known */
    struct sz_engine *vetting;                  /* its engine where the store is not ours */
    uint64_t instance; /* random: no other load of a model and its tuples has its answers confused with these */
};

struct long_check { /* on the pool */
    struct sz_errand errand;
    struct sz_authz_op *op;
    struct sz_fga_hub *hub;
    struct sz_fga_store *store;
    const struct sz_program *program;
    struct sz_check check;
    struct sz_mono deadline, quantum;
    struct sz_arena arena;
    struct sz_authz_answer answer;
};

/* ---- which store, which model ---- */

static struct sz_fga_store *hold_store(struct source *s)
{
    if (s->store == NULL)
        return sz_hub_store(s->hub, SZ_S(SZ_FGA_OWN_STORE));
    sz_hub_store_ref(s->store);
    return s->store;
}

static const struct sz_fga_model *model_of(struct source *s, struct sz_fga_store *store)
{
    if (s->json == NULL && s->store == NULL)
        return sz_hub_model(store, SZ_NONE);
    const struct sz_fga_model *model = atomic_load_explicit(&s->model, memory_order_acquire);
    if (model == NULL && (model = sz_hub_model_by_json(store, s->json)) != NULL)
        atomic_store_explicit(&s->model, model, memory_order_release);
    return model;
}

/* ---- one question ---- */

static void fill(struct sz_authz_answer *answer, int result, const struct sz_fault *fault)
{
    memset(answer, 0, sizeof(*answer));
    answer->source = SZ_AUTHZ_FROM_ENGINE;
    answer->met_cycle = fault->cycle;
    switch (result) {
    case SZ_ENGINE_YES:
        answer->outcome = SZ_AUTHZ_ALLOWED;
        break;
    case SZ_ENGINE_NO:
        answer->outcome = SZ_AUTHZ_DENIED;
        break;
    case SZ_ENGINE_BUDGET:
        answer->outcome = SZ_AUTHZ_UNAVAILABLE;
        sz_text_set(&answer->message, "the answer is too many steps away");
        break;
    default:
        answer->outcome = SZ_AUTHZ_ERROR;
        answer->code = fault->code;
        answer->message = fault->message;
    }
}

/* Nothing to ask is no denial either. */
static void unavailable(struct sz_authz_answer *answer, const char *why)
{
    memset(answer, 0, sizeof(*answer));
    answer->source = SZ_AUTHZ_FROM_ENGINE;
    answer->outcome = SZ_AUTHZ_UNAVAILABLE;
    sz_text_set(&answer->message, "%s", why);
}

/* ---- on the pool ---- */

static bool has_time(struct long_check *c)
{
    return sz_hub_in_time(c->hub, c->deadline) && sz_errand_wanted(&c->errand);
}

static bool may_go_on(void *arg)
{
    struct long_check *c = arg;
    return sz_hub_in_time(c->hub, c->quantum) && has_time(c);
}

static enum sz_errand_end run(struct sz_errand *e)
{
    struct long_check *c = SZ_CONTAINER(e, struct long_check, errand);
    struct sz_patience patience = {may_go_on, c};
    struct sz_fault fault = {0};
    uint64_t steps = SZ_PATIENCE_STEPS;
    c->quantum = sz_hub_quantum(c->hub, e);
    sz_engine_patience(&patience);
    int result =
        has_time(c) ? sz_engine_check(c->store->engine, c->program, &c->check, &steps, &fault) : SZ_ENGINE_BUDGET;
    sz_engine_patience(NULL);
    if (result == SZ_ENGINE_BUDGET && !e->is_long && has_time(c))
        return SZ_ERRAND_LONG;
    fill(&c->answer, result, &fault);
    return SZ_ERRAND_DONE;
}

static const char too_many[] = "too many long checks are waiting";

static void crowded(struct sz_errand *e)
{
    struct long_check *c = SZ_CONTAINER(e, struct long_check, errand);
    unavailable(&c->answer, too_many);
}

static void done(struct sz_errand *e)
{
    struct long_check *c = SZ_CONTAINER(e, struct long_check, errand);
    c->op->answer = c->answer;
    c->op->impl = NULL;
    c->op->on_done(c->op);
}

static void free_check(struct sz_errand *e)
{
    struct long_check *c = SZ_CONTAINER(e, struct long_check, errand);
    sz_hub_store_unref(c->store);
    sz_arena_fini(&c->arena);
    free(c);
}

static struct sz_tuple_key copy_key(struct sz_pool *pool, const struct sz_tuple_key *k)
{
    return (struct sz_tuple_key){.user = sz_pool_dup(pool, k->user),
                                 .relation = sz_pool_dup(pool, k->relation),
                                 .object = sz_pool_dup(pool, k->object),
                                 .condition = sz_pool_dup(pool, k->condition),
                                 .condition_context = sz_pool_dup(pool, k->condition_context)};
}

static void copy_check(struct sz_pool *pool, const struct sz_check *from, struct sz_check *out)
{
    struct sz_tuple_key *tuples = sz_pool_alloc(pool, (from->contextual_n + 1) * sizeof(*tuples));
    for (size_t i = 0; i < from->contextual_n; i++)
        tuples[i] = copy_key(pool, &from->contextual[i]);
    *out = *from;
    out->key = copy_key(pool, &from->key);
    out->context = sz_pool_dup(pool, from->context);
    out->contextual = tuples;
}

/* Takes over the reference to the store. */
static int go_on(struct source *s, struct sz_fga_store *store, const struct sz_program *p, struct sz_loop *loop,
                 const struct sz_check *check, struct sz_mono deadline, struct sz_authz_op *op)
{
    struct long_check *c = sz_xcalloc(1, sizeof(*c));
    c->errand = (struct sz_errand){.run = run, .crowded = crowded, .done = done, .free = free_check, .loop = loop};
    c->op = op;
    c->hub = s->hub;
    c->store = store;
    c->program = p;
    c->deadline = deadline;
    sz_arena_init(&c->arena);
    copy_check(&c->arena.pool, check, &c->check);
    op->impl = c;
    if (sz_errand_start(s->hub->pool, &c->errand))
        return 0;
    op->impl = NULL;
    free_check(&c->errand);
    unavailable(&op->answer, too_many);
    return 1;
}

/* ---- the source ---- */

static int start(struct sz_authz *authz, struct sz_loop *loop, const struct sz_check *check, struct sz_mono deadline,
                 struct sz_authz_op *op)
{
    struct source *s = SZ_CONTAINER(authz, struct source, authz);
    struct sz_fault fault = {0};
    uint64_t steps = STEPS;
    struct sz_fga_store *store = hold_store(s);
    const struct sz_fga_model *model = store != NULL ? model_of(s, store) : NULL;
    if (model == NULL) {
        sz_hub_store_unref(store);
        unavailable(&op->answer, "the store has no model yet");
        return 1;
    }
    int result = sz_engine_check(store->engine, model->program, check, &steps, &fault);
    if (result == SZ_ENGINE_BUDGET && s->hub != NULL)
        return go_on(s, store, model->program, loop, check, deadline, op);
    sz_hub_store_unref(store);
    fill(&op->answer, result, &fault);
    return 1;
}

static void cancel(struct sz_authz *authz, struct sz_authz_op *op)
{
    struct long_check *c = op->impl;
    (void)authz;
    op->impl = NULL;
    if (c != NULL)
        sz_errand_cancel(&c->errand);
}

static int quick(struct sz_authz *authz, const struct sz_check *check, struct sz_authz_op *op)
{
    struct source *s = SZ_CONTAINER(authz, struct source, authz);
    struct sz_fault fault = {0};
    uint64_t steps = QUICK_STEPS;
    struct sz_fga_store *store = hold_store(s);
    const struct sz_fga_model *model = store != NULL ? model_of(s, store) : NULL;
    int result =
        model == NULL ? SZ_ENGINE_BUDGET : sz_engine_check(store->engine, model->program, check, &steps, &fault);
    sz_hub_store_unref(store);
    if (result == SZ_ENGINE_BUDGET)
        return 0;
    fill(&op->answer, result, &fault);
    return 1;
}

/* Each write has a number of its own, and each model: all answers from before are over. */
static uint64_t epoch(struct sz_authz *authz)
{
    struct source *s = SZ_CONTAINER(authz, struct source, authz);
    struct sz_fga_store *store = hold_store(s);
    uint64_t number = store != NULL ? sz_engine_sequence(store->engine) : 0;
    if (store != NULL && s->store == NULL && s->json == NULL)
        number += (uint64_t)(uintptr_t)sz_hub_model(store, SZ_NONE) << 20;
    sz_hub_store_unref(store);
    return s->instance + number;
}

/* Where the newest model is meant whatever it is, nobody can tell beforehand. */
static bool vet(struct sz_authz *authz, const struct sz_tuple_key *example, bool tuple, struct sz_text *why)
{
    struct source *s = SZ_CONTAINER(authz, struct source, authz);
    struct sz_tuple_ids ids;
    void *context = NULL;
    if (s->program == NULL)
        return true;
    return tuple ? sz_tuple_check(s->program, example, &ids, &context, why) == SZ_TUPLE_OK
                 : sz_key_check(s->program, example, &ids, why) == SZ_TUPLE_OK;
}

static void explain(struct sz_authz *authz, const struct sz_check *check, struct sz_buf *out)
{
    struct source *s = SZ_CONTAINER(authz, struct source, authz);
    struct sz_fga_store *store = hold_store(s);
    const struct sz_fga_model *model = store != NULL ? model_of(s, store) : NULL;
    if (model != NULL)
        sz_engine_explain(store->engine, model->program, check, out);
    sz_hub_store_unref(store);
}

static void destroy(struct sz_authz *authz)
{
    struct source *s = SZ_CONTAINER(authz, struct source, authz);
    sz_engine_free(s->vetting);
    sz_hub_store_unref(s->store);
    free(s->json);
    free(s);
}

static struct source *make(struct sz_fga_hub *hub)
{
    struct source *s = sz_xcalloc(1, sizeof(*s));
    s->authz = (struct sz_authz){.start = start,
                                 .cancel = cancel,
                                 .free = destroy,
                                 .quick = quick,
                                 .epoch = epoch,
                                 .vet = vet,
                                 .explain = explain};
    s->hub = hub;
    sz_random(&s->instance, sizeof(s->instance));
    return s;
}

struct sz_authz *sz_authz_hub_new(struct sz_fga_hub *hub, const struct sz_fga_seed *seed, struct sz_text *why)
{
    struct source *s = make(hub);
    struct sz_fault fault;
    if (seed->model == NULL)
        return &s->authz;
    s->json = sz_xstrdup(seed->json);
    s->vetting = sz_engine_new();
    s->program = sz_engine_add_model(s->vetting, seed->model, &fault);
    if (s->program != NULL)
        return &s->authz;
    sz_text_set(why, "the model is not valid: %s", fault.message.s);
    destroy(&s->authz);
    return NULL;
}

struct sz_authz *sz_authz_seed_new(struct sz_fga_hub *hub, const struct sz_fga_seed *seed, struct sz_text *why)
{
    struct source *s = make(hub);
    struct sz_fault fault;
    s->store = sz_hub_store_new(hub, SZ_FGA_OWN_STORE, SZ_S(SZ_FGA_OWN_STORE_NAME), (struct sz_wall){0});
    struct sz_fga_model *model = sz_hub_model_new(s->store, SZ_FGA_OWN_STORE, seed->model, &fault);
    if (model == NULL)
        sz_text_set(why, "the model is not valid: %s", fault.message.s);
    else
        sz_hub_model_add(s->store, model);
    atomic_init(&s->model, model);
    s->program = model != NULL ? model->program : NULL;
    if (model != NULL && sz_seed_load(seed, s->store->engine, model->program, why) == 0)
        return &s->authz;
    destroy(&s->authz);
    return NULL;
}

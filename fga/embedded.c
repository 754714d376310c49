/*
 * The embedded engine as an authorization source.  A check within its step budget is answered inside the start; one
 * that needs more is told to be unavailable rather than to block the loop (Z8), and is never answered "no".
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "fga/engine/engine.h"
#include "fga/engine/model_file.h"
#include "fga/engine/validate.h"
#include "subzero/conf.h"
#include "subzero/crypto.h"
#include "subzero/fga.h"

/* About a millisecond of walking; about as much as a look into the decision cache costs. */
enum { STEPS = 20000, QUICK_STEPS = 32 };

struct embedded {
    struct sz_authz authz;
    struct sz_engine *engine;
    const struct sz_program *program;
    uint64_t instance; /* random: no other load of a model and its tuples has its answers confused with these */
};

/* False: not within these steps. */
static bool answer(const struct embedded *e, const struct sz_check *check, uint64_t steps, struct sz_authz_op *op)
{
    struct sz_fault fault = {0};
    memset(&op->answer, 0, sizeof(op->answer));
    op->answer.source = SZ_AUTHZ_FROM_ENGINE;
    int result = sz_engine_check(e->engine, e->program, check, &steps, &fault);
    op->answer.met_cycle = fault.cycle;
    switch (result) {
    case SZ_ENGINE_YES:
        op->answer.outcome = SZ_AUTHZ_ALLOWED;
        break;
    case SZ_ENGINE_NO:
        op->answer.outcome = SZ_AUTHZ_DENIED;
        break;
    case SZ_ENGINE_BUDGET:
        op->answer.outcome = SZ_AUTHZ_UNAVAILABLE;
        return false;
    default:
        op->answer.outcome = SZ_AUTHZ_ERROR;
        op->answer.code = fault.code;
        op->answer.message = fault.message;
    }
    return true;
}

static int start(struct sz_authz *authz, struct sz_loop *loop, const struct sz_check *check, struct sz_mono deadline,
                 struct sz_authz_op *op)
{
    (void)loop;
    (void)deadline; /* answered at once */
    if (!answer(SZ_CONTAINER(authz, struct embedded, authz), check, STEPS, op))
        sz_text_set(&op->answer.message, "the answer is more than %d steps away", STEPS);
    return 1;
}

static int quick(struct sz_authz *authz, const struct sz_check *check, struct sz_authz_op *op)
{
    return answer(SZ_CONTAINER(authz, struct embedded, authz), check, QUICK_STEPS, op) ? 1 : 0;
}

/* Each write has a number of its own: all answers from before it are over. */
static uint64_t epoch(struct sz_authz *authz)
{
    struct embedded *e = SZ_CONTAINER(authz, struct embedded, authz);
    return e->instance + sz_engine_sequence(e->engine);
}

static void cancel(struct sz_authz *authz, struct sz_authz_op *op)
{
    (void)authz; /* nothing is ever in flight */
    (void)op;
}

static void destroy(struct sz_authz *authz)
{
    struct embedded *e = SZ_CONTAINER(authz, struct embedded, authz);
    sz_engine_free(e->engine);
    free(e);
}

static bool vet(struct sz_authz *authz, const struct sz_tuple_key *example, bool tuple, struct sz_text *why)
{
    struct embedded *e = SZ_CONTAINER(authz, struct embedded, authz);
    struct sz_tuple_ids ids;
    void *context = NULL;
    return tuple ? sz_tuple_check(e->program, example, &ids, &context, why) == SZ_TUPLE_OK
                 : sz_key_check(e->program, example, &ids, why) == SZ_TUPLE_OK;
}

static void explain(struct sz_authz *authz, const struct sz_check *check, struct sz_buf *out)
{
    struct embedded *e = SZ_CONTAINER(authz, struct embedded, authz);
    sz_engine_explain(e->engine, e->program, check, out);
}

struct load {
    struct sz_loader *loader;
    struct sz_text *why;
    const char *file;
};

static int load_tuple(void *arg, const struct sz_tuple_key *key, size_t place)
{
    struct load *l = arg;
    struct sz_fault fault;
    if (sz_loader_add(l->loader, key, &fault) == 0)
        return 0;
    sz_text_set(l->why, "%s: tuple %zu: %s", l->file, place, fault.message.s);
    return -EINVAL;
}

/* Takes over the model. */
static struct sz_authz *open_with(struct sz_model *m, const char *tuples_name, struct sz_slice tuples,
                                  enum sz_tuple_format format, struct sz_text *why)
{
    struct embedded *e = sz_xcalloc(1, sizeof(*e));
    struct sz_fault fault;
    struct sz_text parse;
    e->authz = (struct sz_authz){.start = start,
                                 .cancel = cancel,
                                 .free = destroy,
                                 .quick = quick,
                                 .epoch = epoch,
                                 .vet = vet,
                                 .explain = explain};
    sz_random(&e->instance, sizeof(e->instance));
    e->engine = sz_engine_new();
    e->program = sz_engine_add_model(e->engine, m, &fault);
    sz_model_free(m);
    if (e->program == NULL) {
        sz_text_set(why, "the model is not valid: %s", fault.message.s);
        destroy(&e->authz);
        return NULL;
    }
    why->s[0] = '\0';
    struct load l = {sz_loader_begin(e->engine, e->program, (struct sz_wall){0} /* files do not say when */), why,
                     tuples_name};
    int err = tuples.p == NULL ? 0 : sz_tuples_parse(tuples, format, load_tuple, &l, &parse);
    sz_loader_end(l.loader);
    if (err == 0)
        return &e->authz;
    if (why->s[0] == '\0')
        sz_text_set(why, "%s: %s", tuples_name, parse.s);
    destroy(&e->authz);
    return NULL;
}

struct sz_authz *sz_authz_embedded_new(struct sz_slice model_dsl, struct sz_slice tuples_yaml, struct sz_text *why)
{
    struct sz_problems problems;
    struct sz_text first;
    sz_problems_init(&problems);
    struct sz_model *m = sz_dsl_parse(model_dsl, &problems);
    sz_problems_first(&problems, &first);
    sz_problems_fini(&problems);
    if (m == NULL) {
        sz_text_set(why, "the model is not valid: %s", first.s);
        return NULL;
    }
    return open_with(m, "tuples", tuples_yaml, SZ_TUPLES_YAML, why);
}

static struct sz_authz *open_files(const struct sz_conf_fga *conf, struct sz_text *why)
{
    struct sz_arena arena;
    enum sz_tuple_format format = SZ_TUPLES_YAML;
    struct sz_slice tuples = SZ_NONE;
    struct sz_authz *authz = NULL;
    sz_arena_init(&arena);
    char *name = sz_pool_strdup(&arena.pool, conf->tuples);
    struct sz_model *m = sz_model_load(sz_pool_strdup(&arena.pool, conf->model), why);
    if (m != NULL && conf->tuples.n > 0 && sz_tuple_format(conf->tuples, &format) != 0) {
        sz_text_set(why, "%s: tuples are read from .yaml, .json, .jsonl and .csv files", name);
    } else if (m != NULL && (conf->tuples.n == 0 || sz_input_read(name, &arena.pool, &tuples, why) == 0)) {
        authz = open_with(m, name, tuples, format, why);
        m = NULL;
    }
    sz_model_free(m);
    sz_arena_fini(&arena);
    return authz;
}

struct sz_authz *sz_authz_embedded_open(const struct sz_conf_fga *conf, struct sz_text *why)
{
    if (conf->model_text.p != NULL)
        return sz_authz_embedded_new(conf->model_text, conf->tuples_text, why);
    return open_files(conf, why);
}

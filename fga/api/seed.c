/* A configuration's model and tuples: from files, or from the blocks of text that stand in it. */
#include "fga/api/seed.h"

#include <errno.h>
#include <jansson.h>
#include <stdlib.h>

#include "fga/api/durable.h"
#include "fga/engine/model_file.h"
#include "subzero/conf.h"

static struct sz_model *model_of_text(struct sz_slice dsl, struct sz_text *why)
{
    struct sz_problems problems;
    struct sz_text first;
    sz_problems_init(&problems);
    struct sz_model *m = sz_dsl_parse(dsl, &problems);
    sz_problems_first(&problems, &first);
    sz_problems_fini(&problems);
    if (m == NULL)
        sz_text_set(why, "the model is not valid: %s", first.s);
    return m;
}

static int read_tuples(struct sz_fga_seed *seed, const struct sz_conf_fga *conf, struct sz_text *why)
{
    seed->tuples_name = "tuples";
    seed->tuples = sz_pool_dup(&seed->arena.pool, conf->tuples_text);
    if (conf->tuples_text.p == NULL)
        seed->tuples = SZ_NONE;
    seed->format = SZ_TUPLES_YAML;
    if (conf->tuples.n == 0)
        return 0;
    char *name = sz_pool_strdup(&seed->arena.pool, conf->tuples);
    seed->tuples_name = name;
    if (sz_tuple_format(conf->tuples, &seed->format) != 0) {
        sz_text_set(why, "%s: tuples are read from .yaml, .json, .jsonl and .csv files", name);
        return -EINVAL;
    }
    return sz_input_read(name, &seed->arena.pool, &seed->tuples, why);
}

struct sz_fga_seed *sz_fga_seed_read(const struct sz_conf_fga *conf, struct sz_text *why)
{
    struct sz_fga_seed *seed = sz_xcalloc(1, sizeof(*seed));
    sz_arena_init(&seed->arena);
    bool named = conf->model_text.p != NULL || conf->model.n > 0;
    if (named)
        seed->model = conf->model_text.p != NULL ? model_of_text(conf->model_text, why)
                                                 : sz_model_load(sz_pool_strdup(&seed->arena.pool, conf->model), why);
    if ((named && seed->model == NULL) || read_tuples(seed, conf, why) != 0) {
        sz_fga_seed_free(&seed);
        return NULL;
    }
    seed->json = named ? sz_hub_model_text(seed->model) : NULL;
    return seed;
}

void sz_fga_seed_free(struct sz_fga_seed **seedp)
{
    struct sz_fga_seed *seed = *seedp;
    *seedp = NULL;
    if (seed == NULL)
        return;
    sz_model_free(seed->model);
    free(seed->json);
    sz_arena_fini(&seed->arena);
    free(seed);
}

struct load {
    struct sz_loader *loader;
    const struct sz_fga_seed *seed;
    struct sz_text *why;
};

static int load_tuple(void *arg, const struct sz_tuple_key *key, size_t place)
{
    struct load *l = arg;
    struct sz_fault fault;
    if (sz_loader_add(l->loader, key, &fault) == 0)
        return 0;
    sz_text_set(l->why, "%s: tuple %zu: %s", l->seed->tuples_name, place, fault.message.s);
    return -EINVAL;
}

int sz_seed_load(const struct sz_fga_seed *seed, struct sz_engine *e, const struct sz_program *p, struct sz_text *why)
{
    struct sz_text parse = {""};
    if (seed->tuples.p == NULL)
        return 0;
    why->s[0] = '\0';
    struct load l = {sz_loader_begin(e, p, (struct sz_wall){0} /* files do not say when */), seed, why};
    int err = sz_tuples_parse(seed->tuples, seed->format, load_tuple, &l, &parse);
    sz_loader_end(l.loader);
    if (err != 0 && why->s[0] == '\0')
        sz_text_set(why, "%s: %s", seed->tuples_name, parse.s);
    return err;
}

/* ---- into the gateway's own store ---- */

static struct sz_fga_store *own_store(struct sz_fga_hub *hub)
{
    struct sz_fga_store *store = sz_hub_store(hub, SZ_S(SZ_FGA_OWN_STORE));
    if (store != NULL)
        return store;
    store = sz_hub_store_new(hub, SZ_FGA_OWN_STORE, SZ_S(SZ_FGA_OWN_STORE_NAME), hub->clock.wall());
    if (sz_durable_store(store) != 0) {
        sz_hub_store_unref(store);
        return NULL;
    }
    sz_hub_store_ref(store);
    sz_hub_store_add(store);
    return store;
}

/* The newest model when it is this one, else this one as the newest. */
static const struct sz_fga_model *own_model(struct sz_fga_store *store, const struct sz_fga_seed *seed,
                                            struct sz_text *why)
{
    const struct sz_fga_model *newest = sz_hub_model(store, SZ_NONE);
    struct sz_fault fault;
    char id[SZ_ULID + 1];
    if (newest != NULL && strcmp(newest->json, seed->json) == 0)
        return newest;
    sz_hub_new_id(store->hub, id);
    struct sz_fga_model *model = sz_hub_model_new(store, id, seed->model, &fault);
    if (model == NULL) {
        sz_text_set(why, "the model is not valid: %s", fault.message.s);
    } else if (sz_durable_model(store, model) != 0) {
        sz_text_set(why, "the model could not be stored: see the log");
        sz_hub_model_free(model);
        model = NULL;
    } else {
        sz_hub_model_add(store, model);
    }
    return model;
}

/* On disk tuples go the way of a write, one at a time: each is in the log before it is in the store. */
struct planting {
    struct sz_fga_store *store;
    const struct sz_program *p;
    const struct sz_fga_seed *seed;
    struct sz_text *why;
};

static int plant(void *arg, const struct sz_tuple_key *key, size_t place)
{
    struct planting *l = arg;
    struct sz_fault fault;
    struct sz_write w = {.writes = key,
                         .writes_n = 1,
                         .ignore_duplicates = true,
                         .hold = true,
                         .commit = sz_durable_write,
                         .commit_arg = l->store};
    if (sz_engine_write(l->store->engine, l->p, &w, l->store->hub->clock.wall(), &fault) == 0 ||
        fault.code == SZ_OFGA_ABORTED)
        return 0; /* one that is there with another condition stays as it is */
    sz_text_set(l->why, "%s: tuple %zu: %s", l->seed->tuples_name, place, fault.message.s);
    return -EINVAL;
}

static int plant_all(const struct sz_fga_seed *seed, struct sz_fga_store *store, const struct sz_program *p,
                     struct sz_text *why)
{
    struct planting l = {store, p, seed, why};
    struct sz_text parse = {""};
    if (store->hub->journal == NULL)
        return sz_seed_load(seed, store->engine, p, why);
    if (seed->tuples.p == NULL)
        return 0;
    why->s[0] = '\0';
    int err = sz_tuples_parse(seed->tuples, seed->format, plant, &l, &parse);
    if (err != 0 && why->s[0] == '\0')
        sz_text_set(why, "%s: %s", seed->tuples_name, parse.s);
    if (sz_durable_sync(store->hub) == 0) {
        sz_engine_publish(store->engine); /* those before the bad one, too: they are in the log */
        return err;
    }
    sz_text_set(why, "the tuples could not be made durable: see the log");
    return -EIO;
}

struct sow {
    const struct sz_fga_seed *seed;
    struct sz_fga_hub *hub;
    struct sz_slice store; /* absent: the gateway's own, made when it is not there */
    struct sz_text *why;
    int rc;
};

static int sow_into(struct sow *s, struct sz_fga_store *store)
{
    const struct sz_fga_model *model = sz_hub_model(store, SZ_NONE);
    if (s->seed->model != NULL && (model = own_model(store, s->seed, s->why)) == NULL)
        return -EINVAL;
    if (model != NULL)
        return plant_all(s->seed, store, model->program, s->why);
    if (s->seed->tuples.p == NULL)
        return 0;
    sz_text_set(s->why, "the store has no model that tuples could be checked against");
    return -EINVAL;
}

static void sow(void *arg)
{
    struct sow *s = arg;
    struct sz_fga_store *store = s->store.p != NULL ? sz_hub_store(s->hub, s->store) : own_store(s->hub);
    s->rc = store != NULL ? sow_into(s, store) : -EINVAL;
    if (store == NULL)
        sz_text_set(s->why, "%s",
                    s->store.p != NULL ? "there is no such store"
                                       : "the gateway's own store could not be made: see the log");
    sz_hub_store_unref(store);
}

int sz_seed_into(const struct sz_fga_seed *seed, struct sz_fga_hub *hub, struct sz_slice store, struct sz_text *why)
{
    struct sow s = {seed, hub, store, why, -EAGAIN};
    sz_text_set(why, "no thread to load it on");
    sz_hub_on_writer(hub, sow, &s);
    return s.rc;
}

int sz_fga_seed_apply(const struct sz_fga_seed *seed, struct sz_fga_hub *hub, struct sz_text *why)
{
    return sz_seed_into(seed, hub, SZ_NONE, why);
}

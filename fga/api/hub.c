/*
 * The hub's life, and its stores: found under a lock that is held for a few instructions, changed by the writer.
 */
#include "fga/api/durable.h"

#include <jansson.h>
#include <semaphore.h>
#include <stdlib.h>

#include "subzero/crypto.h"

/*
 * The pool's threads answer what takes about a millisecond, and find out what takes longer; that goes to the long ones,
 * of which four take turns on what the loops leave.  Streams have threads of their own: those wait for their clients.
 */
enum { POOL_THREADS = 2, POOL_MOST = 1024, LONG_THREADS = 4, LONG_MOST = 256, WRITER_MOST = 1024 };
enum { STREAM_THREADS = 4, STREAM_MOST = 64 };
/* Nice: about a third of what a loop gets that wants the same processor. */
enum { BEHIND = 5 };
#define QUANTUM SZ_MS(1)

void sz_hub_settle(struct sz_ofga *api, bool synced)
{
    if (synced)
        sz_engine_publish(api->store->engine);
    else
        sz_ofga_fail(api, 4000, "the write could not be made durable");
    sz_ofga_record(api);
}

/*
 * The writer has done what was waiting: one sync for all of it, then readers see it, then the askers are told.  What
 * cannot be synced is answered as a failure, and no reader ever sees it.
 */
static void settle(void *arg)
{
    struct sz_fga_hub *hub = arg;
    struct sz_ofga *api = hub->held;
    bool good = api == NULL || sz_durable_sync(hub) == 0;
    hub->held = NULL;
    hub->held_last = &hub->held;
    while (api != NULL) {
        struct sz_ofga *next = api->next_held;
        sz_hub_settle(api, good);
        sz_errand_finish(&api->errand);
        api = next;
    }
    sz_durable_tidy(hub);
}

struct sz_fga_hub *sz_fga_hub_new(const struct sz_fga_clock *clock)
{
    struct sz_fga_hub *hub = sz_xcalloc(1, sizeof(*hub));
    hub->clock = *clock;
    pthread_mutex_init(&hub->lock, NULL);
    sz_random(&hub->instance, sizeof(hub->instance));
    hub->pool = sz_errands_new(&(struct sz_errands_conf){.name = "fga",
                                                         .threads = POOL_THREADS,
                                                         .most = POOL_MOST,
                                                         .long_threads = LONG_THREADS,
                                                         .long_most = LONG_MOST});
    hub->streams = sz_errands_new(&(struct sz_errands_conf){
        .name = "fga-stream", .threads = STREAM_THREADS, .most = STREAM_MOST, .nice = BEHIND});
    hub->writer = sz_errands_new(&(struct sz_errands_conf){
        .name = "fga-writer", .threads = 1, .most = WRITER_MOST, .after = settle, .arg = hub});
    hub->held_last = &hub->held;
    hub->shorten_at = 2 * (uint64_t)SZ_CHANGES_KEPT;
    return hub;
}

static void destroy(struct sz_fga_store *store)
{
    for (size_t i = 0; i < store->n_models; i++)
        sz_hub_model_free(store->models[i]);
    free(store->models);
    sz_engine_free(store->engine);
    pthread_mutex_destroy(&store->lock);
    free(store->name);
    free(store);
}

bool sz_fga_hub_settle(struct sz_fga_hub *hub, struct sz_loop *loop)
{
    bool any = sz_errands_settle(hub->pool, loop);
    any = sz_errands_settle(hub->streams, loop) || any;
    return sz_errands_settle(hub->writer, loop) || any;
}

void sz_fga_hub_free(struct sz_fga_hub **hubp)
{
    struct sz_fga_hub *hub = *hubp;
    *hubp = NULL;
    if (hub == NULL)
        return;
    sz_errands_free(&hub->pool);
    sz_errands_free(&hub->streams);
    while (hub->n_stores > 0) {
        struct sz_fga_store *store = hub->stores[hub->n_stores - 1];
        sz_hub_store_remove(store);
        sz_hub_store_unref(store);
    }
    sz_errands_free(&hub->writer);
    sz_journal_free(&hub->journal);
    free(hub->stores);
    pthread_mutex_destroy(&hub->lock);
    free(hub);
}

/* ---- the writer, and time ---- */

struct turn {
    struct sz_errand errand;
    void (*fn)(void *arg);
    void *arg;
    sem_t over;
};

static enum sz_errand_end run_turn(struct sz_errand *e)
{
    struct turn *turn = SZ_CONTAINER(e, struct turn, errand);
    turn->fn(turn->arg);
    return SZ_ERRAND_DONE;
}

static void end_turn(struct sz_errand *e)
{
    sem_post(&SZ_CONTAINER(e, struct turn, errand)->over);
}

void sz_hub_on_writer(struct sz_fga_hub *hub, void (*fn)(void *arg), void *arg)
{
    struct turn turn = {.errand = {.run = run_turn, .free = end_turn}, .fn = fn, .arg = arg};
    sem_init(&turn.over, 0, 0);
    sz_errand_push(hub->writer, &turn.errand);
    while (sem_wait(&turn.over) != 0)
        continue; /* interrupted */
    sem_destroy(&turn.over);
}

bool sz_hub_in_time(const struct sz_fga_hub *hub, struct sz_mono deadline)
{
    return sz_between(hub->clock.mono(), deadline).us > 0;
}

struct sz_mono sz_hub_quantum(const struct sz_fga_hub *hub, const struct sz_errand *e)
{
    return e->is_long ? SZ_NEVER : sz_after(hub->clock.mono(), QUANTUM);
}

/* ---- ids ---- */

static const char digits[] = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";

bool sz_ulid_valid(struct sz_slice id)
{
    if (id.n != SZ_ULID)
        return false;
    for (size_t i = 0; i < id.n; i++)
        if (id.p[i] == '\0' || strchr(digits, id.p[i]) == NULL)
            return false;
    return true;
}

static void add_one(char id[SZ_ULID + 1])
{
    for (size_t i = SZ_ULID; i-- > 0;) {
        const char *at = strchr(digits, id[i]);
        if (at[1] != '\0') {
            id[i] = at[1];
            return;
        }
        id[i] = digits[0];
    }
}

/* 48 bits of milliseconds, 80 of chance; within a millisecond, or when the clock went back, the one after the last. */
void sz_hub_new_id(struct sz_fga_hub *hub, char out[SZ_ULID + 1])
{
    uint64_t ms = (uint64_t)(hub->clock.wall().us / 1000);
    uint8_t chance[SZ_ULID - 10];
    char id[SZ_ULID + 1] = "";
    sz_random(chance, sizeof(chance));
    for (size_t i = 0; i < 10; i++)
        id[i] = digits[ms >> (45 - 5 * i) & 31];
    for (size_t i = 10; i < SZ_ULID; i++)
        id[i] = digits[chance[i - 10] & 31];
    if (strncmp(id, hub->last_id, 10) <= 0) {
        memcpy(id, hub->last_id, sizeof(id));
        add_one(id);
    }
    memcpy(hub->last_id, id, sizeof(id));
    memcpy(out, id, sizeof(id));
}

/* ---- stores ---- */

/* Where the id is, or where it belongs.  Under the lock, or on the writer. */
static bool find(const struct sz_fga_hub *hub, struct sz_slice id, size_t *at)
{
    size_t from = 0, to = hub->n_stores;
    while (from < to) {
        size_t middle = (from + to) / 2;
        int order = sz_cmp(sz_slice(hub->stores[middle]->id, SZ_ULID), id);
        if (order == 0) {
            *at = middle;
            return true;
        }
        if (order < 0)
            from = middle + 1;
        else
            to = middle;
    }
    *at = from;
    return false;
}

struct sz_fga_store *sz_hub_store(struct sz_fga_hub *hub, struct sz_slice id)
{
    size_t at;
    pthread_mutex_lock(&hub->lock);
    struct sz_fga_store *store = find(hub, id, &at) ? hub->stores[at] : NULL;
    if (store != NULL)
        sz_hub_store_ref(store);
    pthread_mutex_unlock(&hub->lock);
    return store;
}

void sz_hub_store_ref(struct sz_fga_store *store)
{
    atomic_fetch_add_explicit(&store->refs, 1, memory_order_relaxed);
}

static enum sz_errand_end nothing(struct sz_errand *e)
{
    (void)e;
    return SZ_ERRAND_DONE;
}

static void bury(struct sz_errand *e)
{
    destroy(SZ_CONTAINER(e, struct sz_fga_store, burial));
}

/* Freeing ten million tuples is nothing for a loop. */
void sz_hub_store_unref(struct sz_fga_store *store)
{
    if (store == NULL || atomic_fetch_sub_explicit(&store->refs, 1, memory_order_acq_rel) != 1)
        return;
    if (store->hub == NULL) {
        destroy(store);
        return;
    }
    store->burial = (struct sz_errand){.run = nothing, .free = bury};
    sz_errand_push(store->hub->writer, &store->burial);
}

static char *copy_name(struct sz_slice name)
{
    char *copy = sz_xmalloc(name.n + 1);
    memcpy(copy, name.p != NULL ? name.p : "", name.n);
    copy[name.n] = '\0';
    return copy;
}

struct sz_fga_store *sz_hub_store_new(struct sz_fga_hub *hub, const char *id, struct sz_slice name, struct sz_wall now)
{
    struct sz_fga_store *store = sz_xcalloc(1, sizeof(*store));
    store->hub = hub;
    memcpy(store->id, id, SZ_ULID);
    store->name = copy_name(name);
    store->created = store->updated = now;
    store->engine = sz_engine_new();
    pthread_mutex_init(&store->lock, NULL);
    atomic_init(&store->refs, 1);
    return store;
}

void sz_hub_store_rename(struct sz_fga_store *store, struct sz_slice name, struct sz_wall now)
{
    char *copy = copy_name(name);
    pthread_mutex_lock(&store->hub->lock);
    char *old = store->name;
    store->name = copy;
    store->updated = now;
    pthread_mutex_unlock(&store->hub->lock);
    free(old);
}

/* The writer's copy-and-swap, so that the lock is not held while memory is had. */
void sz_hub_store_add(struct sz_fga_store *store)
{
    struct sz_fga_hub *hub = store->hub;
    struct sz_fga_store **old = NULL, **room = NULL;
    size_t at;
    if (hub->n_stores == hub->cap_stores) {
        size_t cap = hub->cap_stores == 0 ? 16 : hub->cap_stores * 2;
        room = sz_xcalloc(cap, sizeof(struct sz_fga_store *));
        if (hub->n_stores > 0)
            memcpy(room, hub->stores, hub->n_stores * sizeof(struct sz_fga_store *));
        hub->cap_stores = cap;
    }
    pthread_mutex_lock(&hub->lock);
    if (room != NULL) {
        old = hub->stores;
        hub->stores = room;
    }
    SZ_ASSERT(!find(hub, sz_slice(store->id, SZ_ULID), &at));
    memmove(hub->stores + at + 1, hub->stores + at, (hub->n_stores - at) * sizeof(struct sz_fga_store *));
    hub->stores[at] = store;
    hub->n_stores++;
    pthread_mutex_unlock(&hub->lock);
    free(old);
}

void sz_hub_store_remove(struct sz_fga_store *store)
{
    struct sz_fga_hub *hub = store->hub;
    size_t at;
    pthread_mutex_lock(&hub->lock);
    SZ_ASSERT(find(hub, sz_slice(store->id, SZ_ULID), &at));
    hub->n_stores--;
    memmove(hub->stores + at, hub->stores + at + 1, (hub->n_stores - at) * sizeof(struct sz_fga_store *));
    pthread_mutex_unlock(&hub->lock);
}

/* ---- models ---- */

const struct sz_fga_model *sz_hub_model(struct sz_fga_store *store, struct sz_slice id)
{
    const struct sz_fga_model *found = NULL;
    pthread_mutex_lock(&store->lock);
    for (size_t i = store->n_models; i-- > 0 && found == NULL;) /* the newest is asked for most */
        if (id.n == 0 || sz_eq(sz_slice(store->models[i]->id, SZ_ULID), id))
            found = store->models[i];
    pthread_mutex_unlock(&store->lock);
    return found;
}

struct sz_fga_model *sz_hub_model_new(struct sz_fga_store *store, const char *id, const struct sz_model *m,
                                      struct sz_fault *fault)
{
    const struct sz_program *program = sz_engine_add_model(store->engine, m, fault);
    if (program == NULL)
        return NULL;
    struct sz_fga_model *model = sz_xcalloc(1, sizeof(*model));
    memcpy(model->id, id, SZ_ULID);
    model->program = program;
    model->json = sz_hub_model_text(m);
    return model;
}

char *sz_hub_model_text(const struct sz_model *m)
{
    json_t *json = sz_model_json_write(m);
    char *text = json_dumps(json, JSON_COMPACT);
    json_decref(json);
    return text;
}

const struct sz_fga_model *sz_hub_model_by_json(struct sz_fga_store *store, const char *json)
{
    const struct sz_fga_model *found = NULL;
    pthread_mutex_lock(&store->lock);
    for (size_t i = store->n_models; i-- > 0 && found == NULL;)
        if (strcmp(store->models[i]->json, json) == 0)
            found = store->models[i];
    pthread_mutex_unlock(&store->lock);
    return found;
}

void sz_hub_model_free(struct sz_fga_model *model)
{
    if (model == NULL)
        return;
    free(model->json);
    free(model->assertions);
    free(model);
}

void sz_hub_model_add(struct sz_fga_store *store, struct sz_fga_model *model)
{
    struct sz_fga_model **old = NULL, **room = NULL;
    if (store->n_models == store->cap_models) {
        size_t cap = store->cap_models == 0 ? 4 : store->cap_models * 2;
        room = sz_xcalloc(cap, sizeof(struct sz_fga_model *));
        if (store->n_models > 0)
            memcpy(room, store->models, store->n_models * sizeof(struct sz_fga_model *));
        store->cap_models = cap;
    }
    pthread_mutex_lock(&store->lock);
    if (room != NULL) {
        old = store->models;
        store->models = room;
    }
    store->models[store->n_models++] = model;
    pthread_mutex_unlock(&store->lock);
    free(old);
}

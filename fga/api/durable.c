/*
 * Records.  Texts are a length (u32) and their bytes, numbers are u64; the first byte says what it is.
 *
 *   STORE       id, name, created, updated, first change kept    (a store's beginning, here or in a shortened log)
 *   DELETED     id
 *   RENAMED     id, name, updated
 *   MODEL       store, id, JSON
 *   ASSERTIONS  store, model, JSON
 *   WRITE       store, time, n, changes     as they were made: tuples and change log
 *   TUPLES      store, time, n, changes     of a shortened log: tuples, whose changes are history
 *   CHANGES     store, time, n, changes     of a shortened log: changes, whose tuples are there already
 *
 *   change      flags (1: deleted, 2: with a condition), object, relation, user [, condition, context]
 */
#include "fga/api/durable.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "subzero/log.h"
#include "subzero/state_dir.h"

enum { STORE = 1, DELETED, MODEL, ASSERTIONS, WRITE, TUPLES, CHANGES, RENAMED };
enum { CHANGE_DELETED = 1, CHANGE_CONDITION = 2 };
enum { GROUP = 100 };

/* ---- writing ---- */

static void put_number(struct sz_buf *b, uint64_t v)
{
    uint8_t bytes[8];
    for (int i = 0; i < 8; i++)
        bytes[i] = (uint8_t)(v >> 8 * i);
    sz_buf_add(b, bytes, sizeof(bytes));
}

static void put_text(struct sz_buf *b, struct sz_slice s)
{
    uint8_t n[4] = {(uint8_t)s.n, (uint8_t)(s.n >> 8), (uint8_t)(s.n >> 16), (uint8_t)(s.n >> 24)};
    sz_buf_add(b, n, sizeof(n));
    sz_buf_adds(b, s);
}

static void begin(struct sz_buf *b, uint8_t kind, const struct sz_fga_store *store)
{
    b->n = 0;
    sz_buf_add(b, &kind, 1);
    put_text(b, sz_slice(store->id, SZ_ULID));
}

static void put_change(struct sz_buf *b, const struct sz_tuple_change *c)
{
    uint8_t flags = (uint8_t)((c->deleted ? CHANGE_DELETED : 0) | (c->key.condition.n > 0 ? CHANGE_CONDITION : 0));
    sz_buf_add(b, &flags, 1);
    put_text(b, c->key.object);
    put_text(b, c->key.relation);
    put_text(b, c->key.user);
    if ((flags & CHANGE_CONDITION) != 0) {
        put_text(b, c->key.condition);
        put_text(b, c->key.condition_context);
    }
}

static void put_store(struct sz_buf *b, const struct sz_fga_store *store)
{
    begin(b, STORE, store);
    put_text(b, sz_cstr(store->name));
    put_number(b, (uint64_t)store->created.us);
    put_number(b, (uint64_t)store->updated.us);
    put_number(b, sz_engine_first_change(store->engine));
}

static void put_model(struct sz_buf *b, const struct sz_fga_store *store, const struct sz_fga_model *model)
{
    begin(b, MODEL, store);
    put_text(b, sz_slice(model->id, SZ_ULID));
    put_text(b, sz_cstr(model->json));
}

static void put_assertions(struct sz_buf *b, const struct sz_fga_store *store, const struct sz_fga_model *model,
                           struct sz_slice json)
{
    begin(b, ASSERTIONS, store);
    put_text(b, sz_slice(model->id, SZ_ULID));
    put_text(b, json);
}

/* For those who look from other threads. */
static void show(struct sz_fga_hub *hub)
{
    if (hub->journal == NULL)
        return;
    atomic_store(&hub->durable, true);
    atomic_store(&hub->broken, sz_journal_broken(hub->journal));
    atomic_store(&hub->log_bytes, sz_journal_size(hub->journal));
}

void sz_fga_hub_health(struct sz_fga_hub *hub, struct sz_fga_health *out)
{
    pthread_mutex_lock(&hub->lock);
    out->stores = hub->n_stores;
    pthread_mutex_unlock(&hub->lock);
    out->durable = atomic_load(&hub->durable);
    out->broken = atomic_load(&hub->broken);
    out->log_bytes = atomic_load(&hub->log_bytes);
}

static int log_now(struct sz_fga_hub *hub, struct sz_buf *b)
{
    int rc = sz_journal_append(hub->journal, sz_buf_slice(b));
    sz_buf_fini(b);
    if (rc == 0)
        rc = sz_journal_sync(hub->journal);
    show(hub);
    if (rc != 0)
        sz_log(SZ_LOG_ERROR, "fga", "the log of the stores cannot be written: %s%s", strerror(-rc),
               sz_journal_broken(hub->journal) ? "; nothing is written any more until a restart" : "");
    return rc;
}

int sz_durable_store(const struct sz_fga_store *store)
{
    struct sz_buf b = {0};
    if (store->hub->journal == NULL)
        return 0;
    put_store(&b, store);
    return log_now(store->hub, &b);
}

int sz_durable_rename(const struct sz_fga_store *store, struct sz_slice name, struct sz_wall now)
{
    struct sz_buf b = {0};
    if (store->hub->journal == NULL)
        return 0;
    begin(&b, RENAMED, store);
    put_text(&b, name);
    put_number(&b, (uint64_t)now.us);
    return log_now(store->hub, &b);
}

int sz_durable_delete(const struct sz_fga_store *store)
{
    struct sz_buf b = {0};
    if (store->hub->journal == NULL)
        return 0;
    begin(&b, DELETED, store);
    return log_now(store->hub, &b);
}

int sz_durable_model(const struct sz_fga_store *store, const struct sz_fga_model *model)
{
    struct sz_buf b = {0};
    if (store->hub->journal == NULL)
        return 0;
    put_model(&b, store, model);
    return log_now(store->hub, &b);
}

int sz_durable_assertions(const struct sz_fga_store *store, const struct sz_fga_model *model, struct sz_slice json)
{
    struct sz_buf b = {0};
    if (store->hub->journal == NULL)
        return 0;
    put_assertions(&b, store, model, json);
    return log_now(store->hub, &b);
}

int sz_durable_write(void *arg, const struct sz_tuple_change *v, size_t n, struct sz_wall now)
{
    struct sz_fga_store *store = arg;
    struct sz_fga_hub *hub = store->hub;
    struct sz_buf b = {0};
    if (hub->journal == NULL)
        return 0;
    begin(&b, WRITE, store);
    put_number(&b, (uint64_t)now.us);
    put_number(&b, n);
    for (size_t i = 0; i < n; i++)
        put_change(&b, &v[i]);
    int rc = sz_journal_append(hub->journal, sz_buf_slice(&b));
    sz_buf_fini(&b);
    hub->changes += n;
    if (rc != 0)
        sz_log(SZ_LOG_ERROR, "fga", "a write cannot be stored: %s", strerror(-rc));
    return rc;
}

int sz_durable_sync(struct sz_fga_hub *hub)
{
    int rc = hub->journal == NULL ? 0 : sz_journal_sync(hub->journal);
    show(hub);
    if (rc != 0)
        sz_log(SZ_LOG_ERROR, "fga",
               "the log of the stores cannot be synced: %s; nothing is written any more until a restart",
               strerror(-rc));
    return rc;
}

/* ---- reading ---- */

struct reader {
    struct sz_slice rest;
    bool bad;
};

static uint64_t get_number(struct reader *r)
{
    uint64_t v = 0;
    if (r->rest.n < 8) {
        r->bad = true;
        return 0;
    }
    for (int i = 0; i < 8; i++)
        v |= (uint64_t)(uint8_t)r->rest.p[i] << 8 * i;
    r->rest = sz_from(r->rest, 8);
    return v;
}

static uint8_t get_byte(struct reader *r)
{
    if (r->rest.n < 1) {
        r->bad = true;
        return 0;
    }
    uint8_t v = (uint8_t)r->rest.p[0];
    r->rest = sz_from(r->rest, 1);
    return v;
}

static struct sz_slice get_text(struct reader *r)
{
    const uint8_t *p = (const uint8_t *)r->rest.p;
    size_t n = r->rest.n < 4 ? SIZE_MAX : p[0] | (size_t)p[1] << 8 | (size_t)p[2] << 16 | (size_t)p[3] << 24;
    if (n == SIZE_MAX || n > r->rest.n - 4) {
        r->bad = true;
        return SZ_S("");
    }
    struct sz_slice s = sz_sub(r->rest, 4, n);
    r->rest = sz_from(r->rest, 4 + n);
    return s;
}

#define REFUSE(...) (sz_text_set(why, __VA_ARGS__), -EINVAL)

static void id_copy(char out[SZ_ULID + 1], struct sz_slice id)
{
    memcpy(out, id.p, SZ_ULID);
    out[SZ_ULID] = '\0';
}

/* Ids that are made from now on come after all that are there. */
static void saw_id(struct sz_fga_hub *hub, struct sz_slice id)
{
    if (sz_cmp(id, sz_cstr(hub->last_id)) > 0)
        id_copy(hub->last_id, id);
}

static int replay_store(struct sz_fga_hub *hub, struct reader *r, struct sz_slice id, struct sz_text *why)
{
    struct sz_slice name = get_text(r);
    uint64_t created = get_number(r), updated = get_number(r), first = get_number(r);
    char text[SZ_ULID + 1];
    struct sz_fga_store *there = sz_hub_store(hub, id);
    sz_hub_store_unref(there);
    if (r->bad || there != NULL || hub->n_stores >= SZ_STORES_MAX)
        return REFUSE("a store's beginning is damaged, or comes twice");
    id_copy(text, id);
    struct sz_fga_store *store = sz_hub_store_new(hub, text, name, (struct sz_wall){(int64_t)created});
    store->updated = (struct sz_wall){(int64_t)updated};
    sz_engine_restore_first(store->engine, first);
    sz_hub_store_add(store);
    saw_id(hub, id);
    return 0;
}

static int replay_rename(struct sz_fga_store *store, struct reader *r, struct sz_text *why)
{
    struct sz_slice name = get_text(r);
    struct sz_wall updated = {(int64_t)get_number(r)};
    if (r->bad)
        return REFUSE("a store's name is damaged");
    sz_hub_store_rename(store, name, updated);
    return 0;
}

static int replay_model(struct sz_fga_store *store, struct reader *r, struct sz_text *why)
{
    struct sz_slice id = get_text(r), json = get_text(r);
    struct sz_problems problems;
    struct sz_fga_model *model = NULL;
    struct sz_fault fault = {.message = {"its JSON is damaged"}};
    char text[SZ_ULID + 1];
    if (r->bad || !sz_ulid_valid(id) || store->n_models >= SZ_MODELS_MAX)
        return REFUSE("a model is damaged");
    id_copy(text, id);
    sz_problems_init(&problems);
    struct sz_model *m = sz_model_json_parse(json, &problems);
    if (m != NULL)
        model = sz_hub_model_new(store, text, m, &fault);
    sz_model_free(m);
    sz_problems_fini(&problems);
    if (model == NULL)
        return REFUSE("a model is not valid: %s", fault.message.s);
    sz_hub_model_add(store, model);
    saw_id(store->hub, id);
    return 0;
}

static int replay_assertions(struct sz_fga_store *store, struct reader *r, struct sz_text *why)
{
    struct sz_slice id = get_text(r), json = get_text(r);
    struct sz_fga_model *model = r->bad ? NULL : (struct sz_fga_model *)sz_hub_model(store, id);
    if (model == NULL)
        return REFUSE("assertions are of no model that is there");
    free(model->assertions);
    model->assertions = sz_xmalloc(json.n + 1);
    memcpy(model->assertions, json.p, json.n);
    model->assertions[json.n] = '\0';
    return 0;
}

static void get_change(struct reader *r, struct sz_tuple_change *c)
{
    uint8_t flags = get_byte(r);
    c->deleted = (flags & CHANGE_DELETED) != 0;
    c->key = (struct sz_tuple_key){.object = get_text(r)};
    c->key.relation = get_text(r);
    c->key.user = get_text(r);
    if ((flags & CHANGE_CONDITION) != 0) {
        c->key.condition = get_text(r);
        c->key.condition_context = get_text(r);
    }
}

static int replay_changes(struct sz_fga_store *store, struct reader *r, unsigned what, struct sz_text *why)
{
    struct sz_wall when = {(int64_t)get_number(r)};
    uint64_t n = get_number(r);
    struct sz_tuple_change c;
    struct sz_fault fault;
    for (uint64_t i = 0; i < n && !r->bad; i++) {
        get_change(r, &c);
        if (!r->bad && sz_engine_restore(store->engine, &c, 1, what, when, &fault) != 0)
            return REFUSE("%s", fault.message.s);
    }
    if (r->bad)
        return REFUSE("a write is damaged");
    sz_engine_publish(store->engine);
    store->hub->changes += n;
    return 0;
}

static int replay_of(struct sz_fga_store *store, uint8_t kind, struct reader *r, struct sz_text *why)
{
    switch (kind) {
    case DELETED:
        sz_hub_store_remove(store);
        sz_hub_store_unref(store);
        return 0;
    case MODEL:
        return replay_model(store, r, why);
    case ASSERTIONS:
        return replay_assertions(store, r, why);
    case WRITE:
        return replay_changes(store, r, SZ_RESTORE_TUPLES | SZ_RESTORE_CHANGES, why);
    case TUPLES:
        return replay_changes(store, r, SZ_RESTORE_TUPLES, why);
    case CHANGES:
        return replay_changes(store, r, SZ_RESTORE_CHANGES, why);
    case RENAMED:
        return replay_rename(store, r, why);
    default:
        return REFUSE("a record of kind %u, which this version does not know", kind);
    }
}

static int replay(void *arg, struct sz_slice payload, struct sz_text *why)
{
    struct sz_fga_hub *hub = arg;
    struct reader r = {.rest = payload};
    uint8_t kind = get_byte(&r);
    struct sz_slice id = get_text(&r);
    if (r.bad || !sz_ulid_valid(id))
        return REFUSE("a record is damaged");
    if (kind == STORE)
        return replay_store(hub, &r, id, why);
    struct sz_fga_store *store = sz_hub_store(hub, id);
    if (store == NULL)
        return REFUSE("a record is of no store that is there");
    int rc = replay_of(store, kind, &r, why);
    sz_hub_store_unref(store);
    return rc;
}

int sz_hub_open_on(struct sz_fga_hub *hub, const char *dir, const struct sz_disk *disk, struct sz_text *why)
{
    struct sz_text moved;
    hub->journal = sz_journal_open(dir, disk, replay, hub, &moved, why);
    if (moved.s[0] != '\0')
        sz_log(SZ_LOG_WARN, "fga", "%s", moved.s);
    show(hub);
    return hub->journal != NULL ? 0 : -EINVAL;
}

int sz_fga_hub_open(struct sz_fga_hub *hub, const char *state_dir, struct sz_text *why)
{
    struct sz_buf dir = {0};
    int fd = sz_state_dir_open(state_dir, why);
    if (fd < 0)
        return -EINVAL;
    close(fd);
    sz_buf_printf(&dir, "%s/fga", state_dir);
    sz_buf_add(&dir, "", 1);
    int rc = sz_hub_open_on(hub, dir.p, &sz_disk_real, why);
    sz_buf_fini(&dir);
    return rc;
}

/* ---- a shorter log ---- */

struct group { /* changes of one time, written together */
    struct sz_fga_hub *hub;
    const struct sz_fga_store *store;
    uint8_t kind;
    struct sz_wall when;
    uint64_t n, all;
    struct sz_buf changes;
    int rc;
};

static void end_group(struct group *g)
{
    struct sz_buf b = {0};
    if (g->n == 0 || g->rc != 0)
        return;
    begin(&b, g->kind, g->store);
    put_number(&b, (uint64_t)g->when.us);
    put_number(&b, g->n);
    sz_buf_adds(&b, sz_buf_slice(&g->changes));
    g->rc = sz_journal_rewrite_add(g->hub->journal, sz_buf_slice(&b));
    sz_buf_fini(&b);
    g->all += g->n;
    g->n = 0;
    g->changes.n = 0;
}

static int to_group(struct group *g, const struct sz_tuple_key *key, bool deleted, struct sz_wall when)
{
    struct sz_tuple_change c = {*key, deleted};
    if (g->n == GROUP || when.us != g->when.us)
        end_group(g);
    g->when = when;
    put_change(&g->changes, &c);
    g->n++;
    return g->rc;
}

static int copy_tuple(void *arg, const struct sz_tuple_key *key, struct sz_wall written)
{
    return to_group(arg, key, false, written);
}

static int copy_change(void *arg, const struct sz_tuple_key *key, bool deleted, struct sz_wall when)
{
    return to_group(arg, key, deleted, when);
}

/* Nothing changes meanwhile: the writer is here. */
static int copy_tuples(struct group *g)
{
    struct sz_read_filter all = {SZ_NONE, SZ_NONE, SZ_NONE};
    char room[SZ_TOKEN_ROOM];
    struct sz_slice next = SZ_NONE;
    struct sz_fault fault;
    int err = sz_engine_read(g->store->engine, &all, SZ_NONE, SIZE_MAX, copy_tuple, g, room, &next, &fault);
    end_group(g);
    return err != 0 ? err : g->rc;
}

static int copy_changes(struct group *g)
{
    char room[SZ_TOKEN_ROOM];
    struct sz_slice next = SZ_NONE;
    struct sz_fault fault;
    int err = sz_engine_changes(g->store->engine, SZ_NONE, SZ_NONE, SIZE_MAX, copy_change, g, room, &next, &fault);
    end_group(g);
    return err != 0 ? err : g->rc;
}

static int copy_store(struct sz_fga_hub *hub, const struct sz_fga_store *store, uint64_t *changes)
{
    struct sz_buf b = {0};
    struct group tuples = {.hub = hub, .store = store, .kind = TUPLES};
    struct group log = {.hub = hub, .store = store, .kind = CHANGES};
    put_store(&b, store);
    int rc = sz_journal_rewrite_add(hub->journal, sz_buf_slice(&b));
    for (size_t i = 0; i < store->n_models && rc == 0; i++) {
        put_model(&b, store, store->models[i]);
        rc = sz_journal_rewrite_add(hub->journal, sz_buf_slice(&b));
        if (rc == 0 && store->models[i]->assertions != NULL) {
            put_assertions(&b, store, store->models[i], sz_cstr(store->models[i]->assertions));
            rc = sz_journal_rewrite_add(hub->journal, sz_buf_slice(&b));
        }
    }
    if (rc == 0)
        rc = copy_tuples(&tuples);
    if (rc == 0)
        rc = copy_changes(&log);
    *changes += tuples.all + log.all;
    sz_buf_fini(&tuples.changes);
    sz_buf_fini(&log.changes);
    sz_buf_fini(&b);
    return rc;
}

int sz_hub_shorten(struct sz_fga_hub *hub)
{
    uint64_t changes = 0;
    int rc = sz_journal_rewrite_begin(hub->journal);
    for (size_t i = 0; i < hub->n_stores && rc == 0; i++)
        rc = copy_store(hub, hub->stores[i], &changes);
    if (rc == 0)
        rc = sz_journal_rewrite_end(hub->journal);
    if (rc == 0)
        hub->changes = changes;
    show(hub);
    return rc;
}

void sz_durable_tidy(struct sz_fga_hub *hub)
{
    uint64_t needed = 0, was = hub->journal == NULL ? 0 : sz_journal_size(hub->journal);
    if (hub->journal == NULL || hub->changes < hub->shorten_at || sz_journal_broken(hub->journal))
        return;
    for (size_t i = 0; i < hub->n_stores; i++) {
        struct sz_engine_stats stats;
        sz_engine_stats(hub->stores[i]->engine, &stats);
        needed += stats.tuples + stats.changes;
    }
    if (hub->changes < 2 * needed)
        return;
    int rc = sz_hub_shorten(hub);
    if (rc == 0) {
        sz_log(SZ_LOG_INFO, "fga", "the log of the stores was shortened from %llu to %llu bytes",
               (unsigned long long)was, (unsigned long long)sz_journal_size(hub->journal));
        return;
    }
    sz_log(SZ_LOG_WARN, "fga", "the log of the stores cannot be shortened, the long one goes on: %s", strerror(-rc));
    hub->shorten_at = hub->changes + SZ_CHANGES_KEPT / 4;
}

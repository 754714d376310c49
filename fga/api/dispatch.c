/*
 * A call's way: who asks, what is asked, and where it is answered.  Checks are answered on the loop while they are
 * short; everything else goes to the pool, and what changes something to the writer.
 */
#include <stdio.h>
#include <stdlib.h>

#include "fga/api/durable.h"
#include "fga/api/keys.h"
#include "subzero/audit.h"

/* On the loop: about a quarter of a millisecond of walking, and bodies that are read in less. */
enum { LOOP_STEPS = 5000, LOOP_BODY = 16 << 10 };

static const struct sz_ofga_endpoint endpoints[] = {
    {"POST", "/stores/{s}/check", SZ_OFGA_LOOP, false, sz_ofga_check, NULL},
    {"POST", "/stores/{s}/batch-check", SZ_OFGA_LOOP, false, sz_ofga_batch_check, NULL},
    {"POST", "/stores/{s}/list-objects", SZ_OFGA_POOL, false, sz_ofga_list_objects, NULL},
    {"POST", "/stores/{s}/streamed-list-objects", SZ_OFGA_STREAM, false, sz_ofga_stream_objects, NULL},
    {"POST", "/stores/{s}/list-users", SZ_OFGA_POOL, false, sz_ofga_list_users, NULL},
    {"POST", "/stores/{s}/expand", SZ_OFGA_POOL, false, sz_ofga_expand, NULL},
    {"POST", "/stores/{s}/read", SZ_OFGA_POOL, false, sz_ofga_read, NULL},
    {"POST", "/stores/{s}/write", SZ_OFGA_WRITER, true, sz_ofga_write, "write"},
    {"GET", "/stores/{s}/changes", SZ_OFGA_POOL, false, sz_ofga_changes, NULL},
    {"GET", "/healthz", SZ_OFGA_LOOP, false, sz_ofga_health, NULL},
    {"POST", "/stores", SZ_OFGA_WRITER, true, sz_ofga_create_store, "store.create"},
    {"GET", "/stores", SZ_OFGA_POOL, false, sz_ofga_list_stores, NULL},
    {"GET", "/stores/{s}", SZ_OFGA_POOL, false, sz_ofga_get_store, NULL},
    {"PATCH", "/stores/{s}", SZ_OFGA_WRITER, true, sz_ofga_rename_store, "store.rename"},
    {"DELETE", "/stores/{s}", SZ_OFGA_WRITER, true, sz_ofga_delete_store, "store.delete"},
    {"POST", "/stores/{s}/authorization-models", SZ_OFGA_WRITER, true, sz_ofga_write_model, "model.write"},
    {"GET", "/stores/{s}/authorization-models", SZ_OFGA_POOL, false, sz_ofga_read_models, NULL},
    {"GET", "/stores/{s}/authorization-models/{m}", SZ_OFGA_POOL, false, sz_ofga_read_model, NULL},
    {"GET", "/stores/{s}/assertions/{m}", SZ_OFGA_POOL, false, sz_ofga_read_assertions, NULL},
    {"PUT", "/stores/{s}/assertions/{m}", SZ_OFGA_WRITER, true, sz_ofga_write_assertions, "assertions.write"},
};

/* Segment by segment; a pattern's {s} and {m} take what is there. */
static bool path_fits(const char *pattern, struct sz_slice path, struct sz_slice *store, struct sz_slice *model)
{
    struct sz_slice rest = sz_cstr(pattern), want, have;
    *store = *model = SZ_NONE;
    while (sz_split(&rest, '/', &want)) {
        if (!sz_split(&path, '/', &have))
            return false;
        if (sz_eq(want, SZ_S("{s}")))
            *store = have;
        else if (sz_eq(want, SZ_S("{m}")))
            *model = have;
        else if (!sz_eq(want, have))
            return false;
    }
    return path.p == NULL;
}

static bool find_endpoint(struct sz_ofga *api, struct sz_slice method, struct sz_slice target)
{
    ptrdiff_t question = sz_find_byte(target, '?');
    struct sz_slice path = question < 0 ? target : sz_sub(target, 0, (size_t)question);
    bool known = false;
    api->query = question < 0 ? SZ_NONE : sz_from(target, (size_t)question + 1);
    for (size_t i = 0; i < SZ_COUNT(endpoints); i++) {
        if (!path_fits(endpoints[i].path, path, &api->store_id, &api->model_id))
            continue;
        known = true;
        if (!sz_eq(method, sz_cstr(endpoints[i].method)))
            continue;
        api->endpoint = &endpoints[i];
        return true;
    }
    sz_ofga_fail(api, known ? 5004 : 5000, "%s", known ? "Method Not Allowed" : "Not Found");
    return false;
}

static bool may(struct sz_ofga *api, const struct sz_fga_call *call, struct sz_fga_reply *reply)
{
    bool open = api->endpoint != NULL && api->endpoint->serve == sz_ofga_health;
    if (call->keys == NULL || open)
        return true;
    switch (sz_keys_right(call->keys, call->authorization, &api->key_name)) {
    case SZ_KEY_MISSING:
        reply->challenge = true;
        sz_ofga_fail(api, 1010, "missing bearer token");
        return false;
    case SZ_KEY_UNKNOWN:
        reply->challenge = true;
        sz_ofga_fail(api, 1500, "unauthenticated");
        return false;
    case SZ_KEY_READS:
        if (api->endpoint == NULL || !api->endpoint->writes)
            return true;
        sz_ofga_fail(api, 1600, "this key may only read");
        return false;
    case SZ_KEY_WRITES:
        break;
    }
    return true;
}

/* For whoever looks whether this is alive; tells nothing else. */
enum sz_ofga_step sz_ofga_health(struct sz_ofga *api)
{
    sz_buf_adds(&api->out, SZ_S("{\"status\":\"SERVING\"}"));
    api->status = 200;
    return SZ_OFGA_DONE;
}

/* ---- what calls begin with ---- */

bool sz_ofga_store(struct sz_ofga *api)
{
    if (api->store != NULL)
        return true;
    if (!sz_ulid_valid(api->store_id)) {
        sz_ofga_fail(api, 2000, "invalid StoreId: value must be an id of %d capital letters and digits", SZ_ULID);
        return false;
    }
    api->store = sz_hub_store(api->hub, api->store_id);
    if (api->store != NULL)
        return true;
    sz_ofga_fail(api, 5002, "Store ID not found");
    return false;
}

bool sz_ofga_asked_store(struct sz_ofga *api, const void *object)
{
    struct sz_slice id;
    if (sz_ofga_store(api))
        return true;
    if (!sz_ulid_valid(api->store_id) || !sz_ofga_text(api, object, "authorization_model_id", &id))
        return false;
    if (id.n > 0)
        sz_ofga_fail(api, 2001, "Authorization Model '%.*s' not found", SZ_FMT(sz_sub(id, 0, 64)));
    else
        sz_ofga_fail(api, 2020, "No authorization models found for store '%.*s'", SZ_FMT(api->store_id));
    return false;
}

const struct sz_fga_model *sz_ofga_model(struct sz_ofga *api, const void *object)
{
    struct sz_slice id;
    if (!sz_ofga_text(api, object, "authorization_model_id", &id))
        return NULL;
    if (id.n > 0 && !sz_ulid_valid(id)) {
        sz_ofga_fail(api, id.n > SZ_ULID ? 2036 : 2000,
                     "invalid AuthorizationModelId: value must be an id of %d capital letters and digits", SZ_ULID);
        return NULL;
    }
    const struct sz_fga_model *model = sz_hub_model(api->store, id);
    if (model == NULL && id.n > 0)
        sz_ofga_fail(api, 2001, "Authorization Model '%.*s' not found", SZ_FMT(id));
    else if (model == NULL)
        sz_ofga_fail(api, 2020, "No authorization models found for store '%s'", api->store->id);
    return model;
}

/* ---- the audit ---- */

/* "POST /stores/{s}/write" is the action, {s} the object; who: the key's name. */
void sz_ofga_record(struct sz_ofga *api)
{
    struct sz_audit_event e = {.kind = SZ_AUDIT_WRITE, .has_address = true, .address = api->peer};
    char action[64];
    if (api->hub->audit == NULL || !api->endpoint->writes)
        return;
    bool removes = sz_eq(sz_cstr(api->endpoint->method), SZ_S("DELETE"));
    e.status = (uint16_t)api->status;
    e.effect = api->status >= 300 ? SZ_EFFECT_REFUSED : removes ? SZ_EFFECT_DELETED : SZ_EFFECT_CREATED;
    snprintf(action, sizeof(action), "fga.%s", api->endpoint->action);
    e.text[SZ_AUDIT_METHOD] = sz_cstr(api->endpoint->method);
    e.text[SZ_AUDIT_ACTION] = sz_cstr(action);
    e.text[SZ_AUDIT_CLIENT] = api->key_name;
    e.text[SZ_AUDIT_OBJECT] = api->store_id;
    e.text[SZ_AUDIT_RESULT] = api->status >= 300 ? SZ_S("refused") : SZ_S("ok");
    if (api->detail.n > 0)
        e.text[SZ_AUDIT_DETAIL] = sz_buf_slice(&api->detail);
    (void)sz_audit_note(api->hub->audit, &e); /* a full queue counts its own losses */
}

struct audit_change {
    struct sz_fga_hub *hub;
    struct sz_audit *audit;
};

static void change_audit(void *arg)
{
    struct audit_change *c = arg;
    c->hub->audit = c->audit;
}

void sz_fga_hub_audit(struct sz_fga_hub *hub, struct sz_audit *audit)
{
    struct audit_change c = {hub, audit};
    sz_hub_on_writer(hub, change_audit, &c);
}

/* ---- on a thread ---- */

static void fini(struct sz_ofga *api)
{
    sz_hub_store_unref(api->store);
    sz_lines_free(&api->lines);
    sz_buf_fini(&api->out);
    sz_buf_fini(&api->detail);
    sz_arena_fini(&api->arena);
}

static bool has_time(struct sz_ofga *api)
{
    return sz_hub_in_time(api->hub, api->deadline) && sz_errand_wanted(&api->errand);
}

static bool may_go_on(void *arg)
{
    struct sz_ofga *api = arg;
    return (!api->yields || sz_hub_in_time(api->hub, api->quantum)) && has_time(api);
}

static enum sz_errand_end hold(struct sz_ofga *api)
{
    *api->hub->held_last = api;
    api->hub->held_last = &api->next_held;
    return SZ_ERRAND_HELD;
}

static enum sz_errand_end run(struct sz_errand *e)
{
    struct sz_ofga *api = SZ_CONTAINER(e, struct sz_ofga, errand);
    struct sz_patience patience = {may_go_on, api};
    enum sz_ofga_step step = SZ_OFGA_LATER;
    api->steps = SZ_PATIENCE_STEPS;
    api->yields = e->on == api->hub->pool && !e->is_long;
    api->quantum = sz_hub_quantum(api->hub, e);
    sz_engine_patience(&patience);
    if (has_time(api))
        step = api->endpoint->serve(api);
    sz_engine_patience(NULL);
    if (step == SZ_OFGA_LATER && api->yields && has_time(api)) {
        api->out.n = 0;
        return SZ_ERRAND_LONG;
    }
    if (step == SZ_OFGA_LATER)
        sz_ofga_fail(api, SZ_OFGA_TIMEOUT, "Request Deadline Exceeded");
    if (api->hold)
        return hold(api);
    sz_ofga_record(api);
    return SZ_ERRAND_DONE;
}

static const char too_many[] = "too many calls are waiting; try again later";

static void crowded(struct sz_errand *e)
{
    sz_ofga_fail(SZ_CONTAINER(e, struct sz_ofga, errand), SZ_OFGA_BUSY, too_many);
}

static void hand_over(struct sz_ofga *api, struct sz_fga_reply *reply)
{
    sz_buf_fini(&reply->body);
    reply->status = api->status;
    reply->body = api->out;
    reply->errand = NULL;
    api->out = (struct sz_buf){0};
}

/* The end of a stream: what nobody has taken yet, and why it is not all.  A fault before its first part is the answer.
 */
static void end_stream(struct sz_ofga *api)
{
    struct sz_buf rest = {0};
    if (api->status != 200 && !api->asker->begun)
        return;
    (void)sz_lines_take(api->lines, &rest);
    sz_buf_adds(&rest, sz_buf_slice(&api->out));
    sz_buf_fini(&api->out);
    api->out = rest;
}

static void done(struct sz_errand *e)
{
    struct sz_ofga *api = SZ_CONTAINER(e, struct sz_ofga, errand);
    if (api->lines != NULL)
        end_stream(api);
    hand_over(api, api->asker);
    api->asker->on_done(api->asker);
}

static void free_api(struct sz_errand *e)
{
    struct sz_ofga *api = SZ_CONTAINER(e, struct sz_ofga, errand);
    fini(api);
    free(api);
}

static void on_part(void *arg)
{
    struct sz_ofga *api = arg;
    if (sz_fga_api_next(api->asker))
        api->asker->on_part(api->asker);
}

bool sz_fga_api_next(struct sz_fga_reply *reply)
{
    struct sz_ofga *api = reply->errand;
    reply->body.n = 0;
    if (api == NULL || !sz_lines_take(api->lines, &reply->body))
        return false;
    reply->status = 200;
    reply->begun = true;
    return true;
}

/* The call as an errand: what it points to is copied, since it may go when the start has returned. */
static struct sz_ofga *to_heap(const struct sz_ofga *from)
{
    struct sz_ofga *api = sz_xcalloc(1, sizeof(*api));
    *api = *from;
    sz_arena_init(&api->arena);
    struct sz_pool *pool = &api->arena.pool;
    api->store = NULL;
    api->out = api->detail = (struct sz_buf){0};
    api->store_id = sz_pool_dup(pool, from->store_id);
    api->model_id = sz_pool_dup(pool, from->model_id);
    api->query = sz_pool_dup(pool, from->query);
    api->body = sz_pool_dup(pool, from->body);
    api->key_name = sz_pool_dup(pool, from->key_name);
    api->errand = (struct sz_errand){.run = run, .crowded = crowded, .done = done, .free = free_api};
    return api;
}

static struct sz_errands *threads_for(struct sz_fga_hub *hub, enum sz_ofga_where where)
{
    switch (where) {
    case SZ_OFGA_WRITER:
        return hub->writer;
    case SZ_OFGA_STREAM:
        return hub->streams;
    case SZ_OFGA_LOOP:
    case SZ_OFGA_POOL:
        break;
    }
    return hub->pool;
}

static int send_off(struct sz_ofga *local, struct sz_loop *loop)
{
    struct sz_ofga *api = to_heap(local);
    enum sz_ofga_where where = api->endpoint->where;
    api->errand.loop = loop;
    api->asker->errand = api;
    if (where == SZ_OFGA_STREAM && api->asker->on_part != NULL)
        api->lines = sz_lines_new(loop, on_part, api);
    if (sz_errand_start(threads_for(local->hub, where), &api->errand))
        return 0;
    local->asker->errand = NULL;
    sz_ofga_fail(local, SZ_OFGA_BUSY, too_many);
    free_api(&api->errand);
    return 1;
}

int sz_fga_api_start(struct sz_fga_hub *hub, struct sz_loop *loop, const struct sz_fga_call *call,
                     struct sz_mono deadline, struct sz_fga_reply *reply)
{
    struct sz_ofga api = {.hub = hub,
                          .asker = reply,
                          .store_id = SZ_NONE,
                          .model_id = SZ_NONE,
                          .key_name = SZ_NONE,
                          .body = call->body,
                          .deadline = deadline,
                          .steps = LOOP_STEPS,
                          .yields = true};
    int answered = 1;
    reply->errand = NULL;
    reply->challenge = reply->begun = false;
    sz_arena_init(&api.arena);
    bool found = find_endpoint(&api, call->method, call->target);
    /* Who may not ask does not learn either what there is. */
    if (may(&api, call, reply) && found) {
        bool here = api.endpoint->where == SZ_OFGA_LOOP && call->body.n <= LOOP_BODY;
        if (!here || api.endpoint->serve(&api) == SZ_OFGA_LATER)
            answered = send_off(&api, loop);
    } else if (found && api.status == 403) {
        sz_ofga_record(&api);
    }
    if (answered != 0)
        hand_over(&api, reply);
    fini(&api);
    return answered;
}

void sz_ofga_answer_here(struct sz_fga_hub *hub, const struct sz_fga_call *call, struct sz_fga_reply *reply)
{
    struct sz_ofga api = {.hub = hub,
                          .asker = reply,
                          .store_id = SZ_NONE,
                          .model_id = SZ_NONE,
                          .key_name = SZ_NONE,
                          .body = call->body,
                          .deadline = SZ_NEVER,
                          .steps = LOOP_STEPS,
                          .yields = true};
    sz_arena_init(&api.arena);
    if (find_endpoint(&api, call->method, call->target) && api.endpoint->serve(&api) == SZ_OFGA_LATER)
        sz_ofga_fail(&api, SZ_OFGA_TIMEOUT, "Request Deadline Exceeded");
    if (api.hold)
        sz_hub_settle(&api, sz_durable_sync(hub) == 0);
    hand_over(&api, reply);
    fini(&api);
}

void sz_fga_api_cancel(struct sz_fga_reply *reply)
{
    struct sz_ofga *api = reply->errand;
    reply->errand = NULL;
    if (api == NULL)
        return;
    if (api->lines != NULL)
        sz_lines_leave(api->lines);
    sz_errand_cancel(&api->errand); /* it is the thread's now */
}

/* Check, BatchCheck, the lists and Expand. */
#include <jansson.h>
#include <stdlib.h>

#include "fga/api/hub.h"

enum { TYPE_MAX = 254, RELATION_MAX = 50, USER_MAX = 512 };

static enum sz_ofga_step out_of_time(struct sz_ofga *api)
{
    return sz_ofga_fail(api, SZ_OFGA_TIMEOUT, "Request Deadline Exceeded");
}

/* {tuple_key, contextual_tuples, context} of a check or of a batch's item. */
static bool read_check(struct sz_ofga *api, const void *object, struct sz_check *out)
{
    const void *key;
    memset(out, 0, sizeof(*out));
    if (!sz_ofga_sub(api, object, "tuple_key", &key))
        return false;
    if (key == NULL) {
        sz_ofga_fail(api, 2037, "invalid TupleKey: value is required");
        return false;
    }
    return sz_ofga_key(api, key, &out->key) && sz_ofga_check_key(api, &out->key) &&
           sz_ofga_contextual(api, object, &out->contextual, &out->contextual_n) &&
           sz_ofga_json(api, object, "context", &out->context);
}

static enum sz_ofga_step check(struct sz_ofga *api, const void *object)
{
    struct sz_check c;
    struct sz_fault fault;
    if (!sz_ofga_asked_store(api, object))
        return SZ_OFGA_DONE;
    const struct sz_fga_model *model = sz_ofga_model(api, object);
    if (model == NULL || !read_check(api, object, &c))
        return SZ_OFGA_DONE;
    switch (sz_engine_check(api->store->engine, model->program, &c, &api->steps, &fault)) {
    case SZ_ENGINE_YES:
        sz_buf_adds(&api->out, SZ_S("{\"allowed\":true,\"resolution\":\"\"}"));
        break;
    case SZ_ENGINE_NO:
        sz_buf_adds(&api->out, SZ_S("{\"allowed\":false,\"resolution\":\"\"}"));
        break;
    case SZ_ENGINE_BUDGET:
        return api->yields ? SZ_OFGA_LATER : out_of_time(api);
    default:
        return sz_ofga_fault(api, &fault);
    }
    api->status = 200;
    return SZ_OFGA_DONE;
}

enum sz_ofga_step sz_ofga_check(struct sz_ofga *api)
{
    enum sz_ofga_step step = SZ_OFGA_DONE;
    json_t *object = sz_ofga_object(api);
    if (object != NULL)
        step = check(api, object);
    json_decref(object);
    return step;
}

/* ---- batch ---- */

static bool correlation_valid(struct sz_slice id)
{
    for (size_t i = 0; i < id.n; i++) {
        char c = id.p[i];
        bool word = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
        if (!word)
            return false;
    }
    return id.n >= 1 && id.n <= 36;
}

/* The ids of all items, before anything is asked: one bad id fails the call. */
static bool read_ids(struct sz_ofga *api, const void *list, size_t n, struct sz_slice *ids)
{
    for (size_t i = 0; i < n; i++) {
        const json_t *item = json_array_get(list, i);
        if (!json_is_object(item)) {
            sz_ofga_fail(api, 2000, "invalid value for field checks: expected objects");
            return false;
        }
        if (!sz_ofga_text(api, item, "correlation_id", &ids[i]))
            return false;
        if (ids[i].n == 0) {
            sz_ofga_fail(api, 2000, "received empty correlation id for check %zu", i);
            return false;
        }
        if (!correlation_valid(ids[i])) {
            sz_ofga_fail(api, 2000,
                         "invalid CorrelationId: value does not match regex pattern \"^[\\\\w\\\\d-]{1,36}$\"");
            return false;
        }
        for (size_t k = 0; k < i; k++)
            if (sz_eq(ids[k], ids[i])) {
                sz_ofga_fail(api, 2000, "received duplicate correlation id: %.*s", SZ_FMT(ids[i]));
                return false;
            }
    }
    return true;
}

/* An item that cannot be answered says so beside those that can. */
static void put_error(struct sz_buf *out, int code, struct sz_slice message)
{
    sz_buf_printf(out, "{\"error\":{\"%s\":\"%s\",\"message\":", code >= 4000 ? "internal_error" : "input_error",
                  sz_ofga_code_name(code));
    sz_buf_json(out, message);
    sz_buf_printf(out, "}}");
}

/* False: the steps are used up, and there are more elsewhere. */
static bool put_item(struct sz_ofga *api, const struct sz_program *p, const struct sz_check *c)
{
    struct sz_fault fault;
    switch (sz_engine_check(api->store->engine, p, c, &api->steps, &fault)) {
    case SZ_ENGINE_YES:
        sz_buf_adds(&api->out, SZ_S("{\"allowed\":true}"));
        break;
    case SZ_ENGINE_NO:
        sz_buf_adds(&api->out, SZ_S("{\"allowed\":false}"));
        break;
    case SZ_ENGINE_BUDGET:
        if (api->yields)
            return false;
        put_error(&api->out, SZ_OFGA_TIMEOUT, SZ_S("Request Deadline Exceeded"));
        break;
    default:
        put_error(&api->out, fault.code, sz_cstr(fault.message.s));
    }
    return true;
}

static enum sz_ofga_step batch(struct sz_ofga *api, const void *object)
{
    struct sz_slice ids[SZ_BATCH_MAX];
    struct sz_check checks[SZ_BATCH_MAX];
    const void *list;
    if (!sz_ofga_asked_store(api, object) || !sz_ofga_list(api, object, "checks", &list))
        return SZ_OFGA_DONE;
    size_t n = json_array_size(list);
    if (n == 0)
        return sz_ofga_fail(api, 2000, "batch check requires at least one check to evaluate, no checks were received");
    if (n > SZ_BATCH_MAX)
        return sz_ofga_fail(api, 2000, "batchCheck received %zu checks, the maximum allowed is %d", n, SZ_BATCH_MAX);
    if (!read_ids(api, list, n, ids))
        return SZ_OFGA_DONE;
    const struct sz_fga_model *model = sz_ofga_model(api, object);
    if (model == NULL)
        return SZ_OFGA_DONE;
    for (size_t i = 0; i < n; i++)
        if (!read_check(api, json_array_get(list, i), &checks[i]))
            return SZ_OFGA_DONE;
    sz_buf_adds(&api->out, SZ_S("{\"result\":{"));
    for (size_t i = 0; i < n; i++) {
        sz_buf_adds(&api->out, i > 0 ? SZ_S(",") : SZ_S(""));
        sz_buf_json(&api->out, ids[i]);
        sz_buf_adds(&api->out, SZ_S(":"));
        if (!put_item(api, model->program, &checks[i])) {
            api->out.n = 0;
            return SZ_OFGA_LATER;
        }
    }
    sz_buf_adds(&api->out, SZ_S("}}"));
    api->status = 200;
    return SZ_OFGA_DONE;
}

enum sz_ofga_step sz_ofga_batch_check(struct sz_ofga *api)
{
    enum sz_ofga_step step = SZ_OFGA_DONE;
    json_t *object = sz_ofga_object(api);
    if (object != NULL)
        step = batch(api, object);
    json_decref(object);
    return step;
}

/* ---- lists ---- */

struct list {
    struct sz_ofga *api;
    size_t n, most; /* results; most: 0: no bound */
    bool lines, untaken;
};

static void put_name(struct list *l, struct sz_slice name)
{
    struct sz_buf *out = &l->api->out;
    if (l->n > 0)
        sz_buf_adds(out, SZ_S(","));
    sz_buf_json(out, name);
}

static void put_line(struct list *l, struct sz_slice name)
{
    struct sz_ofga *api = l->api;
    sz_buf_adds(&api->out, SZ_S("{\"result\":{\"object\":"));
    sz_buf_json(&api->out, name);
    sz_buf_adds(&api->out, SZ_S("}}\n"));
    if (api->lines == NULL)
        return;
    l->untaken = !sz_lines_add(api->lines, sz_buf_slice(&api->out), api->deadline);
    api->out.n = 0;
}

static int put_object(void *arg, struct sz_slice name)
{
    struct list *l = arg;
    if (l->lines)
        put_line(l, name);
    else
        put_name(l, name);
    l->n++;
    return l->untaken;
}

/* The steps are used up: elsewhere there are more.  A list that nowhere has time is short, as OpenFGA's is. */
static bool is_later(const struct list *l, bool cut)
{
    return cut && l->api->yields && (l->most == 0 || l->n < l->most);
}

static bool list_options(struct sz_ofga *api, const void *object, size_t most, struct sz_list_options *o, bool *cut)
{
    *cut = false;
    *o = (struct sz_list_options){.max = most, .steps = &api->steps, .cut = cut};
    return sz_ofga_contextual(api, object, &o->contextual, &o->contextual_n) &&
           sz_ofga_json(api, object, "context", &o->context);
}

/* A stream can say that it is not all, and does. */
static enum sz_ofga_step end_lines(struct sz_ofga *api, const struct list *l, bool cut)
{
    bool bound = cut && l->most > 0 && l->n >= l->most;
    if (l->untaken)
        return sz_ofga_fail(api, SZ_OFGA_TIMEOUT, "Request Deadline Exceeded: the results were not taken in time");
    if (cut && !bound)
        return out_of_time(api);
    api->status = 200;
    return SZ_OFGA_DONE;
}

/* What is asked about: type, relation, user. */
static bool read_list(struct sz_ofga *api, const void *object, struct sz_slice *type, struct sz_slice *relation,
                      struct sz_slice *user)
{
    if (!sz_ofga_text(api, object, "type", type) || !sz_ofga_text(api, object, "relation", relation) ||
        !sz_ofga_text(api, object, "user", user) || !sz_ofga_word(api, *type, TYPE_MAX, "ListObjectsRequest.Type") ||
        !sz_ofga_word(api, *relation, RELATION_MAX, "ListObjectsRequest.Relation"))
        return false;
    if (user->n > 0 && user->n <= USER_MAX)
        return true;
    sz_ofga_fail(api, 2000, "invalid ListObjectsRequest.User: value length must be between 1 and %d bytes", USER_MAX);
    return false;
}

static enum sz_ofga_step list_objects(struct sz_ofga *api, const void *object, bool lines)
{
    struct list l = {.api = api, .lines = lines};
    struct sz_list_options o;
    struct sz_slice type, relation, user;
    struct sz_fault fault;
    bool cut;
    l.most = !lines ? SZ_LIST_MAX : api->lines == NULL ? SZ_STREAM_MAX : 0;
    if (!sz_ofga_asked_store(api, object))
        return SZ_OFGA_DONE;
    const struct sz_fga_model *model = sz_ofga_model(api, object);
    if (model == NULL || !read_list(api, object, &type, &relation, &user) ||
        !list_options(api, object, l.most, &o, &cut))
        return SZ_OFGA_DONE;
    if (!lines)
        sz_buf_adds(&api->out, SZ_S("{\"objects\":["));
    if (sz_engine_list_objects(api->store->engine, model->program, type, relation, user, &o, put_object, &l, &fault) !=
        0)
        return sz_ofga_fault(api, &fault);
    if (is_later(&l, cut))
        return SZ_OFGA_LATER;
    if (lines)
        return end_lines(api, &l, cut);
    sz_buf_adds(&api->out, SZ_S("]}"));
    api->status = 200;
    return SZ_OFGA_DONE;
}

enum sz_ofga_step sz_ofga_list_objects(struct sz_ofga *api)
{
    enum sz_ofga_step step = SZ_OFGA_DONE;
    json_t *object = sz_ofga_object(api);
    if (object != NULL)
        step = list_objects(api, object, false);
    json_decref(object);
    return step;
}

enum sz_ofga_step sz_ofga_stream_objects(struct sz_ofga *api)
{
    enum sz_ofga_step step = SZ_OFGA_DONE;
    json_t *object = sz_ofga_object(api);
    if (object != NULL)
        step = list_objects(api, object, true);
    json_decref(object);
    return step;
}

/* "user:a", "group:g#member", "user:*" as the API has them. */
static int put_user(void *arg, struct sz_slice name)
{
    struct list *l = arg;
    struct sz_buf *out = &l->api->out;
    ptrdiff_t colon = sz_find_byte(name, ':'), hash = sz_find_byte(name, '#');
    struct sz_slice type = sz_sub(name, 0, (size_t)colon);
    struct sz_slice id = sz_from(name, (size_t)colon + 1);
    if (hash > colon)
        id = sz_sub(name, (size_t)colon + 1, (size_t)(hash - colon - 1));
    bool wild = hash < 0 && sz_eq(id, SZ_S("*"));
    if (l->n++ > 0)
        sz_buf_adds(out, SZ_S(","));
    sz_buf_printf(out, "{\"%s\":{\"type\":", wild ? "wildcard" : hash >= 0 ? "userset" : "object");
    sz_buf_json(out, type);
    if (!wild) {
        sz_buf_adds(out, SZ_S(",\"id\":"));
        sz_buf_json(out, id);
    }
    if (hash >= 0) {
        sz_buf_adds(out, SZ_S(",\"relation\":"));
        sz_buf_json(out, sz_from(name, (size_t)hash + 1));
    }
    sz_buf_adds(out, SZ_S("}}"));
    return 0;
}

/* object: {type, id} as one name in the arena. */
static bool object_name(struct sz_ofga *api, const void *object, struct sz_slice *out)
{
    struct sz_slice type, id;
    const void *o;
    if (!sz_ofga_sub(api, object, "object", &o))
        return false;
    if (o == NULL) {
        sz_ofga_fail(api, 2000, "invalid ListUsersRequest.Object: value is required");
        return false;
    }
    if (!sz_ofga_text(api, o, "type", &type) || !sz_ofga_text(api, o, "id", &id) ||
        !sz_ofga_word(api, type, TYPE_MAX, "Object.Type"))
        return false;
    if (id.n == 0 || strchr("#: \t\n\f\r", id.p[id.n - 1]) != NULL) {
        sz_ofga_fail(api, 2000, "invalid Object.Id: value does not match regex pattern \"[^#:\\s]+$\"");
        return false;
    }
    *out = sz_pool_printf(&api->arena.pool, "%.*s:%.*s", SZ_FMT(type), SZ_FMT(id));
    return true;
}

static bool user_filter(struct sz_ofga *api, const void *object, struct sz_slice *type, struct sz_slice *relation)
{
    const void *filters;
    if (!sz_ofga_list(api, object, "user_filters", &filters))
        return false;
    const json_t *filter = json_array_get(filters, 0);
    if (json_array_size(filters) != 1 || !json_is_object(filter)) {
        sz_ofga_fail(api, 2000, "invalid ListUsersRequest.UserFilters: value must contain exactly 1 item(s)");
        return false;
    }
    if (!sz_ofga_text(api, filter, "type", type) || !sz_ofga_text(api, filter, "relation", relation) ||
        !sz_ofga_word(api, *type, TYPE_MAX, "UserTypeFilter.Type") ||
        (relation->n > 0 && !sz_ofga_word(api, *relation, RELATION_MAX, "UserTypeFilter.Relation")))
        return false;
    if (relation->n == 0)
        *relation = SZ_NONE;
    return true;
}

static enum sz_ofga_step list_users(struct sz_ofga *api, const void *object)
{
    struct list l = {.api = api, .most = SZ_LIST_MAX};
    struct sz_list_options o;
    struct sz_slice name, relation, type, of;
    struct sz_fault fault;
    bool cut;
    if (!sz_ofga_asked_store(api, object))
        return SZ_OFGA_DONE;
    const struct sz_fga_model *model = sz_ofga_model(api, object);
    if (model == NULL || !object_name(api, object, &name) || !sz_ofga_text(api, object, "relation", &relation) ||
        !sz_ofga_word(api, relation, RELATION_MAX, "ListUsersRequest.Relation") ||
        !user_filter(api, object, &type, &of) || !list_options(api, object, l.most, &o, &cut))
        return SZ_OFGA_DONE;
    sz_buf_adds(&api->out, SZ_S("{\"users\":["));
    if (sz_engine_list_users(api->store->engine, model->program, name, relation, type, of, &o, put_user, &l, &fault) !=
        0)
        return sz_ofga_fault(api, &fault);
    if (is_later(&l, cut))
        return SZ_OFGA_LATER;
    sz_buf_adds(&api->out, SZ_S("]}"));
    api->status = 200;
    return SZ_OFGA_DONE;
}

enum sz_ofga_step sz_ofga_list_users(struct sz_ofga *api)
{
    enum sz_ofga_step step = SZ_OFGA_DONE;
    json_t *object = sz_ofga_object(api);
    if (object != NULL)
        step = list_users(api, object);
    json_decref(object);
    return step;
}

/* ---- expand ---- */

static enum sz_ofga_step expand(struct sz_ofga *api, const void *object)
{
    struct sz_list_options o;
    struct sz_slice name = SZ_NONE, relation = SZ_NONE;
    struct sz_fault fault;
    const void *key;
    void *tree = NULL;
    bool cut;
    if (!sz_ofga_asked_store(api, object) || !sz_ofga_sub(api, object, "tuple_key", &key))
        return SZ_OFGA_DONE;
    if (key == NULL)
        return sz_ofga_fail(api, 2037, "invalid ExpandRequest.TupleKey: value is required");
    if (!sz_ofga_text(api, key, "object", &name) || !sz_ofga_text(api, key, "relation", &relation))
        return SZ_OFGA_DONE;
    if (name.n == 0 || relation.n == 0)
        return sz_ofga_fail(api, 2010, "Invalid input. Make sure you provide an object and a relation");
    const struct sz_fga_model *model = sz_ofga_model(api, object);
    if (model == NULL || !list_options(api, object, 0, &o, &cut))
        return SZ_OFGA_DONE;
    if (sz_engine_expand(api->store->engine, model->program, name, relation, &o, &tree, &fault) != 0) {
        fault.code = fault.code == 2021 || fault.code == 2022 ? 2000 : fault.code; /* here OpenFGA says it so */
        return sz_ofga_fault(api, &fault);
    }
    char *text = json_dumps(tree, JSON_COMPACT);
    sz_buf_adds(&api->out, sz_cstr(text));
    free(text);
    json_decref(tree);
    api->status = 200;
    return SZ_OFGA_DONE;
}

enum sz_ofga_step sz_ofga_expand(struct sz_ofga *api)
{
    json_t *object = sz_ofga_object(api);
    if (object != NULL)
        expand(api, object);
    json_decref(object);
    return SZ_OFGA_DONE;
}

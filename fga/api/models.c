/* Models: written once, never changed; and the assertions beside them. */
#include <jansson.h>
#include <stdlib.h>

#include "fga/api/durable.h"
#include "fga/engine/validate.h"

enum { TYPES_MAX = 100, CONDITIONS_MAX = 25, PARAMETERS_MAX = 25, EXPRESSION_MAX = 512, ASSERTED_TUPLES = 20 };

/* The server's bounds, which are narrower than the language's. */
static const char *beyond(const struct sz_model *m)
{
    if (m->n_conds > CONDITIONS_MAX)
        return "at most 25 conditions are allowed";
    for (size_t i = 0; i < m->n_conds; i++) {
        if (m->conds[i].n_params > PARAMETERS_MAX)
            return "a condition has at most 25 parameters";
        if (m->conds[i].expression.n > EXPRESSION_MAX)
            return "a condition's expression has at most 512 bytes";
    }
    return NULL;
}

static enum sz_ofga_step refuse_problems(struct sz_ofga *api, const struct sz_problems *problems)
{
    struct sz_text first;
    sz_problems_first(problems, &first);
    return sz_ofga_fail(api, 2056, "%s", first.s);
}

static enum sz_ofga_step keep(struct sz_ofga *api, const struct sz_model *m)
{
    struct sz_fga_store *store = api->store;
    struct sz_fault fault;
    char id[SZ_ULID + 1];
    const char *wrong = beyond(m);
    if (m->n_types > TYPES_MAX)
        return sz_ofga_fail(api, 2053,
                            "The number of type definitions in an authorization model exceeds the allowed limit of %d",
                            TYPES_MAX);
    if (m->n_types == 0)
        return sz_ofga_fail(api, 2045,
                            "invalid WriteAuthorizationModelRequest.TypeDefinitions: value must contain at least 1 "
                            "item(s)");
    if (m->schema.n == 0)
        wrong = "SchemaVersion: value must be 1.1 or 1.2";
    if (wrong != NULL)
        return sz_ofga_fail(api, 2000, "invalid WriteAuthorizationModelRequest: %s", wrong);
    if (store->n_models >= SZ_MODELS_MAX)
        return sz_ofga_fail(api, 2053, "The number of authorization models exceeds the allowed limit of %d",
                            SZ_MODELS_MAX);
    sz_hub_new_id(api->hub, id);
    struct sz_fga_model *model = sz_hub_model_new(store, id, m, &fault);
    if (model == NULL)
        return sz_ofga_fault(api, &fault);
    if (sz_durable_model(store, model) != 0) {
        sz_hub_model_free(model);
        return sz_ofga_fail(api, 4000, "the model could not be stored");
    }
    sz_hub_model_add(store, model);
    sz_buf_printf(&api->out, "{\"authorization_model_id\":\"%s\"}", model->id);
    api->status = 201;
    return SZ_OFGA_DONE;
}

static enum sz_ofga_step write_model(struct sz_ofga *api, const void *object)
{
    struct sz_problems problems;
    if (!sz_ofga_store(api))
        return SZ_OFGA_DONE;
    if (api->body.n > SZ_MODEL_BYTES)
        return sz_ofga_fail(api, 2053, "model exceeds size limit: %zu bytes vs %d bytes", api->body.n, SZ_MODEL_BYTES);
    sz_problems_init(&problems);
    struct sz_model *m = sz_model_json_read(object, &problems);
    if (m == NULL)
        refuse_problems(api, &problems);
    else
        keep(api, m);
    sz_model_free(m);
    sz_problems_fini(&problems);
    return SZ_OFGA_DONE;
}

enum sz_ofga_step sz_ofga_write_model(struct sz_ofga *api)
{
    json_t *object = sz_ofga_object(api);
    if (object != NULL)
        write_model(api, object);
    json_decref(object);
    return SZ_OFGA_DONE;
}

/* The JSON of the model with its id in front. */
static void put_model(struct sz_buf *out, const struct sz_fga_model *model)
{
    sz_buf_printf(out, "{\"id\":\"%s\",", model->id);
    sz_buf_adds(out, sz_cstr(model->json + 1));
}

/* The model of the path; NULL: answered. */
static const struct sz_fga_model *model_of_path(struct sz_ofga *api)
{
    if (!sz_ofga_store(api))
        return NULL;
    if (!sz_ulid_valid(api->model_id)) {
        sz_ofga_fail(api, 2000, "invalid Id: value must be an id of %d capital letters and digits", SZ_ULID);
        return NULL;
    }
    const struct sz_fga_model *model = sz_hub_model(api->store, api->model_id);
    if (model == NULL)
        sz_ofga_fail(api, 2001, "Authorization Model '%.*s' not found", SZ_FMT(sz_sub(api->model_id, 0, 64)));
    return model;
}

enum sz_ofga_step sz_ofga_read_model(struct sz_ofga *api)
{
    const struct sz_fga_model *model = model_of_path(api);
    if (model == NULL)
        return SZ_OFGA_DONE;
    sz_buf_printf(&api->out, "{\"authorization_model\":");
    put_model(&api->out, model);
    sz_buf_printf(&api->out, "}");
    api->status = 200;
    return SZ_OFGA_DONE;
}

/* Newest first, those older than `before`. */
static size_t take_page(struct sz_fga_store *store, struct sz_slice before, size_t most,
                        const struct sz_fga_model **page, bool *more)
{
    size_t n = 0;
    *more = false;
    pthread_mutex_lock(&store->lock);
    for (size_t i = store->n_models; i-- > 0 && !*more;) {
        if (before.n > 0 && sz_cmp(sz_slice(store->models[i]->id, SZ_ULID), before) >= 0)
            continue;
        if (n == most)
            *more = true;
        else
            page[n++] = store->models[i];
    }
    pthread_mutex_unlock(&store->lock);
    return n;
}

enum sz_ofga_step sz_ofga_read_models(struct sz_ofga *api)
{
    const struct sz_fga_model *page[100];
    struct sz_slice token = sz_ofga_param(api, "continuation_token"), before;
    size_t most;
    bool more;
    if (!sz_ofga_store(api) || !sz_ofga_page_size(api, NULL, &most) || !sz_ofga_token(api, token, &before))
        return SZ_OFGA_DONE;
    if (before.n > 0 && !sz_ulid_valid(before))
        return sz_ofga_fail(api, 2007, "Invalid continuation token");
    size_t n = take_page(api->store, before, most, page, &more);
    sz_buf_printf(&api->out, "{\"authorization_models\":[");
    for (size_t i = 0; i < n; i++) {
        sz_buf_adds(&api->out, i > 0 ? SZ_S(",") : SZ_S(""));
        put_model(&api->out, page[i]);
    }
    sz_buf_printf(&api->out, "],\"continuation_token\":");
    sz_ofga_put_token(&api->out, more ? sz_slice(page[n - 1]->id, SZ_ULID) : SZ_NONE);
    sz_buf_printf(&api->out, "}");
    api->status = 200;
    return SZ_OFGA_DONE;
}

/* ---- assertions ---- */

/* A key that a check would take, and contextual tuples that could be written. */
static bool assertion_valid(struct sz_ofga *api, const struct sz_program *p, const json_t *v)
{
    const struct sz_tuple_key *tuples;
    struct sz_tuple_key key;
    struct sz_tuple_ids ids;
    struct sz_text why;
    struct sz_slice context;
    const json_t *expectation = sz_ofga_member(v, "expectation");
    void *parsed;
    size_t n;
    const void *k;
    if (!sz_ofga_sub(api, v, "tuple_key", &k))
        return false;
    if (k == NULL) {
        sz_ofga_fail(api, 2037, "invalid Assertion.TupleKey: value is required");
        return false;
    }
    if (expectation != NULL && !json_is_boolean(expectation)) {
        sz_ofga_fail(api, 2000, "invalid value for field expectation: expected true or false");
        return false;
    }
    if (!sz_ofga_key(api, k, &key) || !sz_ofga_contextual(api, v, &tuples, &n) ||
        !sz_ofga_json(api, v, "context", &context))
        return false;
    if (n > ASSERTED_TUPLES) {
        sz_ofga_fail(api, 2053, "The number of contextual tuples exceeds the allowed limit of %d", ASSERTED_TUPLES);
        return false;
    }
    if (sz_key_check(p, &key, &ids, &why) != SZ_TUPLE_OK) {
        sz_ofga_fail(api, 2000, "%s", why.s);
        return false;
    }
    for (size_t i = 0; i < n; i++) {
        enum sz_tuple_fault fault = sz_tuple_check(p, &tuples[i], &ids, &parsed, &why);
        json_decref(parsed);
        if (fault != SZ_TUPLE_OK) {
            sz_ofga_fail(api, 2000, "Invalid tuple '%.*s#%.*s@%.*s'. Reason: %s", SZ_FMT(tuples[i].object),
                         SZ_FMT(tuples[i].relation), SZ_FMT(tuples[i].user), why.s);
            return false;
        }
    }
    return true;
}

static void put_assertion(struct sz_ofga *api, struct sz_buf *out, const json_t *v)
{
    const struct sz_tuple_key *tuples;
    struct sz_tuple_key key;
    struct sz_slice context;
    size_t n;
    if (!sz_ofga_key(api, sz_ofga_member(v, "tuple_key"), &key) || !sz_ofga_contextual(api, v, &tuples, &n) ||
        !sz_ofga_json(api, v, "context", &context))
        return; /* it was checked */
    sz_buf_printf(out, "{\"tuple_key\":{\"object\":");
    sz_buf_json(out, key.object);
    sz_buf_printf(out, ",\"relation\":");
    sz_buf_json(out, key.relation);
    sz_buf_printf(out, ",\"user\":");
    sz_buf_json(out, key.user);
    sz_buf_printf(out, "},\"expectation\":%s,\"contextual_tuples\":[",
                  json_is_true((const json_t *)sz_ofga_member(v, "expectation")) ? "true" : "false");
    for (size_t i = 0; i < n; i++) {
        sz_buf_adds(out, i > 0 ? SZ_S(",") : SZ_S(""));
        sz_ofga_put_key(out, &tuples[i]);
    }
    sz_buf_printf(out, "],\"context\":");
    sz_buf_adds(out, context.n > 0 ? context : SZ_S("null"));
    sz_buf_printf(out, "}");
}

static enum sz_ofga_step write_assertions(struct sz_ofga *api, const void *object)
{
    struct sz_buf text = {0};
    const void *list;
    struct sz_fga_model *model = (struct sz_fga_model *)model_of_path(api); /* the writer's to change */
    if (model == NULL || !sz_ofga_list(api, object, "assertions", &list))
        return SZ_OFGA_DONE;
    size_t n = json_array_size(list);
    if (n > SZ_ASSERTIONS_MAX)
        return sz_ofga_fail(api, 2033,
                            "invalid WriteAssertionsRequest.Assertions: value must contain no more than %d item(s)",
                            SZ_ASSERTIONS_MAX);
    for (size_t i = 0; i < n; i++)
        if (!assertion_valid(api, model->program, json_array_get(list, i)))
            return SZ_OFGA_DONE;
    sz_buf_printf(&text, "[");
    for (size_t i = 0; i < n; i++) {
        sz_buf_adds(&text, i > 0 ? SZ_S(",") : SZ_S(""));
        put_assertion(api, &text, json_array_get(list, i));
    }
    sz_buf_add(&text, "]", 2); /* with its NUL */
    if (sz_durable_assertions(api->store, model, sz_cstr(text.p)) != 0) {
        sz_buf_fini(&text);
        return sz_ofga_fail(api, 4000, "the assertions could not be stored");
    }
    pthread_mutex_lock(&api->store->lock);
    char *old = model->assertions;
    model->assertions = text.p;
    pthread_mutex_unlock(&api->store->lock);
    free(old);
    api->status = 204;
    return SZ_OFGA_DONE;
}

enum sz_ofga_step sz_ofga_write_assertions(struct sz_ofga *api)
{
    json_t *object = sz_ofga_object(api);
    if (object != NULL)
        write_assertions(api, object);
    json_decref(object);
    return SZ_OFGA_DONE;
}

enum sz_ofga_step sz_ofga_read_assertions(struct sz_ofga *api)
{
    const struct sz_fga_model *model = model_of_path(api);
    if (model == NULL)
        return SZ_OFGA_DONE;
    pthread_mutex_lock(&api->store->lock);
    char *copy = model->assertions != NULL ? sz_xstrdup(model->assertions) : NULL;
    pthread_mutex_unlock(&api->store->lock);
    sz_buf_printf(&api->out, "{\"authorization_model_id\":\"%s\",\"assertions\":", model->id);
    sz_buf_adds(&api->out, copy != NULL ? sz_cstr(copy) : SZ_S("[]"));
    sz_buf_printf(&api->out, "}");
    free(copy);
    api->status = 200;
    return SZ_OFGA_DONE;
}

/*
 * AuthZEN Authorization API 1.0, what is asked:
 *
 *   subject.type : subject.id       user          action.name      relation
 *   resource.type : resource.id     object        context          context
 *
 * Properties join the context under the names subject_NAME, action_NAME and resource_NAME, where conditions of the
 * model read them; one that the context has already is refused, since either could be meant.
 */
#include "edge/api_body.h"
#include "edge/api_json.h"

enum { USER_MAX = 512, OBJECT_MAX = 256 };

static const char *const members[] = {"subject", "action", "resource", "context", NULL};

/* What an evaluation has of itself, or of the request around it. */
struct parts {
    const json_t *subject, *action, *resource, *context;
};

static struct parts parts_of(const json_t *json, const struct parts *defaults)
{
    const json_t *v[4];
    for (size_t i = 0; i < 4; i++)
        v[i] = json_object_get(json, members[i]);
    return (struct parts){
        v[0] != NULL ? v[0] : defaults->subject,
        v[1] != NULL ? v[1] : defaults->action,
        v[2] != NULL ? v[2] : defaults->resource,
        v[3] != NULL ? v[3] : defaults->context,
    };
}

static bool read_entity(const json_t *json, const char *what, size_t max, struct sz_pool *pool, struct sz_slice *out,
                        const char **why)
{
    static const char *const names[] = {"type", "id", "properties", NULL};
    if (!sz_api_members(json, what, names, pool, why))
        return false;
    struct sz_slice type = sz_api_text(json, what, "type", pool, why);
    struct sz_slice id = type.p == NULL ? SZ_NONE : sz_api_text(json, what, "id", pool, why);
    return id.p != NULL && sz_api_entity(type, id, max, pool, out, why);
}

static bool read_action(const json_t *json, struct sz_pool *pool, struct sz_slice *relation, const char **why)
{
    static const char *const names[] = {"name", "properties", NULL};
    if (!sz_api_members(json, "action", names, pool, why))
        return false;
    *relation = sz_api_text(json, "action", "name", pool, why);
    return relation->p != NULL && sz_api_relation(*relation, why);
}

static bool add_properties(json_t *context, const json_t *entity, const char *what, struct sz_pool *pool,
                           const char **why)
{
    json_t *properties = json_object_get(entity, "properties"), *value;
    const char *name;
    *why = "'properties' must be an object";
    if (properties != NULL && !json_is_object(properties))
        return false;
    json_object_foreach(properties, name, value)
    {
        const char *key = sz_pool_printf(pool, "%s_%s", what, name).p;
        *why = "a property is in 'context' as well: keep one";
        if (json_object_get(context, key) != NULL || json_object_set(context, key, value) != 0)
            return false;
    }
    return true;
}

static bool read_context(const struct parts *parts, struct sz_pool *pool, struct sz_slice *out, const char **why)
{
    *why = "'context' must be an object";
    if (parts->context != NULL && !json_is_object(parts->context))
        return false;
    json_t *context = parts->context != NULL ? json_copy((json_t *)(uintptr_t)parts->context) : json_object();
    bool good = add_properties(context, parts->subject, "subject", pool, why) &&
                add_properties(context, parts->action, "action", pool, why) &&
                add_properties(context, parts->resource, "resource", pool, why);
    if (good && json_object_size(context) > 0)
        *out = sz_api_canonical(context, pool);
    json_decref(context);
    return good;
}

/* What is wrong is the item's own. */
static void read_item(const struct parts *parts, struct sz_pool *pool, struct sz_api_item *item)
{
    struct sz_check *check = &item->check;
    const char *why = NULL;
    *check = (struct sz_check){.key = {.condition = SZ_NONE, .condition_context = SZ_NONE}, .context = SZ_NONE};
    if (!read_entity(parts->subject, "subject", USER_MAX, pool, &check->key.user, &why) ||
        !read_action(parts->action, pool, &check->key.relation, &why) ||
        !read_entity(parts->resource, "resource", OBJECT_MAX, pool, &check->key.object, &why) ||
        !read_context(parts, pool, &check->context, &why))
        item->wrong = why;
}

static bool read_options(const json_t *json, struct sz_pool *pool, enum sz_api_until *until, const char **why)
{
    static const char *const names[] = {"evaluations_semantic", NULL};
    static const char *const semantics[] = {
        [SZ_API_ALL] = "execute_all",
        [SZ_API_FIRST_DENY] = "deny_on_first_deny",
        [SZ_API_FIRST_PERMIT] = "permit_on_first_permit",
    };
    const json_t *options = json_object_get(json, "options");
    if (options == NULL)
        return true;
    if (!sz_api_members(options, "options", names, pool, why))
        return false;
    const json_t *value = json_object_get(options, names[0]);
    for (size_t i = 0; i < SZ_COUNT(semantics) && json_is_string(value); i++) {
        *until = (enum sz_api_until)i;
        if (strcmp(json_string_value(value), semantics[i]) == 0)
            return true;
    }
    *why = "'evaluations_semantic' is execute_all, deny_on_first_deny or permit_on_first_permit";
    return value == NULL;
}

static bool read_several(const json_t *json, const struct parts *defaults, struct sz_pool *pool,
                         struct sz_api_evaluations *out, const char **why)
{
    const json_t *list = json_object_get(json, "evaluations");
    out->several = json_array_size(list) > 0; /* none: the request itself is the one */
    out->n = out->several ? json_array_size(list) : 1;
    *why = "'evaluations' is a list of at most 50 objects";
    if ((list != NULL && !json_is_array(list)) || out->n > SZ_API_EVALUATIONS_MAX)
        return false;
    out->items = sz_pool_zalloc(pool, out->n * sizeof(*out->items));
    if (!out->several)
        read_item(defaults, pool, &out->items[0]);
    for (size_t i = 0; out->several && i < out->n; i++) {
        const json_t *own = json_array_get(list, i);
        struct parts parts = parts_of(own, defaults);
        if (sz_api_members(own, "an evaluation", members, pool, &out->items[i].wrong))
            read_item(&parts, pool, &out->items[i]);
    }
    return true;
}

static bool read_json(const json_t *json, bool several, struct sz_pool *pool, struct sz_api_evaluations *out,
                      const char **why)
{
    static const char *const more[] = {"subject", "action", "resource", "context", "evaluations", "options", NULL};
    const struct parts none = {NULL, NULL, NULL, NULL}, parts = parts_of(json, &none);
    if (!sz_api_members(json, "the body", several ? more : members, pool, why))
        return false;
    if (several)
        return read_options(json, pool, &out->until, why) && read_several(json, &parts, pool, out, why);
    out->n = 1;
    out->items = sz_pool_zalloc(pool, sizeof(*out->items));
    read_item(&parts, pool, &out->items[0]);
    return true;
}

bool sz_api_read_evaluations(struct sz_slice body, bool several, struct sz_pool *pool, struct sz_api_evaluations *out,
                             const char **why)
{
    json_t *json = sz_api_json(body, why);
    *out = (struct sz_api_evaluations){.until = SZ_API_ALL};
    bool good = json != NULL && read_json(json, several, pool, out, why);
    json_decref(json);
    return good;
}

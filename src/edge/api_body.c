/*
 * POST /authz/check: flat names, so that a service needs to know nothing of how relations are written.
 */
#include "edge/api_body.h"

#include "edge/api_json.h"

enum { USER_MAX = 512, OBJECT_MAX = 256 };

static bool read_user(const json_t *json, struct sz_pool *pool, struct sz_slice *user, const char **why)
{
    struct sz_slice id = sz_api_text(json, "the body", "user_id", pool, why);
    if (id.p == NULL)
        return false;
    if (sz_find_byte(id, ':') < 0)
        return sz_api_entity(SZ_S("user"), id, USER_MAX, pool, user, why);
    *why = "'user_id' is longer than 512 bytes";
    *user = id; /* with its type, as tuples have it; the store judges its form */
    return id.n <= USER_MAX;
}

static bool read_consistency(const json_t *json, struct sz_check *check, const char **why)
{
    const json_t *value = json_object_get(json, "consistency");
    const char *text = json_is_string(value) ? json_string_value(value) : "";
    *why = "'consistency' is minimize_latency or higher_consistency";
    if (value == NULL)
        return true;
    if (strcmp(text, "higher_consistency") == 0)
        check->consistency = SZ_HIGHER_CONSISTENCY;
    return check->consistency == SZ_HIGHER_CONSISTENCY || strcmp(text, "minimize_latency") == 0;
}

static bool read_context(const json_t *json, struct sz_pool *pool, struct sz_slice *context, const char **why)
{
    const json_t *value = json_object_get(json, "context");
    *why = "'context' must be an object";
    if (value != NULL && !json_is_object(value))
        return false;
    *context = json_object_size(value) == 0 ? SZ_NONE : sz_api_canonical(value, pool);
    return true;
}

static bool read_json(const json_t *json, struct sz_pool *pool, struct sz_check *check, const char **why)
{
    static const char *const names[] = {"user_id", "resource_type", "resource_id", "relation",
                                        "context", "consistency",   NULL};
    if (!sz_api_members(json, "the body", names, pool, why) || !read_user(json, pool, &check->key.user, why))
        return false;
    struct sz_slice type = sz_api_text(json, "the body", "resource_type", pool, why);
    struct sz_slice id = type.p == NULL ? SZ_NONE : sz_api_text(json, "the body", "resource_id", pool, why);
    if (id.p == NULL || !sz_api_entity(type, id, OBJECT_MAX, pool, &check->key.object, why))
        return false;
    check->key.relation = sz_api_text(json, "the body", "relation", pool, why);
    return check->key.relation.p != NULL && sz_api_relation(check->key.relation, why) &&
           read_consistency(json, check, why) && read_context(json, pool, &check->context, why);
}

bool sz_api_read_check(struct sz_slice body, struct sz_pool *pool, struct sz_check *check, const char **why)
{
    json_t *json = sz_api_json(body, why);
    *check = (struct sz_check){.key = {.condition = SZ_NONE, .condition_context = SZ_NONE}, .context = SZ_NONE};
    bool good = json != NULL && read_json(json, pool, check, why);
    json_decref(json);
    return good;
}

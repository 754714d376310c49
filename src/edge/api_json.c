/* Objects, members and ids of api bodies. */
#include "edge/api_json.h"

#include <stdlib.h>

#include "pipeline/template.h"
#include "subzero/crypto.h"

enum { DEPTH_MAX = 32, TYPE_MAX = 254, RELATION_MAX = 50 };

json_t *sz_api_json(struct sz_slice body, const char **why)
{
    json_error_t error;
    size_t at;
    *why = "the body is no JSON object: UTF-8, at most 32 levels deep, no member twice, no NUL";
    if (sz_json_check(body, DEPTH_MAX, &at) != 0)
        return NULL;
    json_t *json = json_loadb(body.p, body.n, JSON_REJECT_DUPLICATES, &error);
    if (json_is_object(json))
        return json;
    json_decref(json);
    return NULL;
}

static bool is_one_of(const char *name, const char *const *names)
{
    while (*names != NULL && strcmp(*names, name) != 0)
        names++;
    return *names != NULL;
}

bool sz_api_members(const json_t *object, const char *what, const char *const *names, struct sz_pool *pool,
                    const char **why)
{
    const char *name;
    json_t *value;
    if (!json_is_object(object)) {
        *why = sz_pool_printf(pool, "'%s' must be an object", what).p;
        return false;
    }
    json_object_foreach((json_t *)(uintptr_t)object, name, value)
    {
        if (is_one_of(name, names))
            continue;
        *why = sz_pool_printf(pool, "'%s' has an unknown member", what).p;
        return false;
    }
    return true;
}

struct sz_slice sz_api_text(const json_t *object, const char *what, const char *name, struct sz_pool *pool,
                            const char **why)
{
    const json_t *value = json_object_get(object, name);
    if (json_is_string(value) && json_string_length(value) > 0)
        return sz_pool_dup(pool, sz_slice(json_string_value(value), json_string_length(value)));
    *why = sz_pool_printf(pool, "'%s' needs '%s', a string that is not empty", what, name).p;
    return SZ_NONE;
}

static bool is_word(struct sz_slice s, size_t max)
{
    for (size_t i = 0; i < s.n; i++) {
        unsigned char c = (unsigned char)s.p[i];
        if (c <= 0x20 || c == 0x7f || c == ':' || c == '#' || c == '@' || c == '*')
            return false;
    }
    return s.n > 0 && s.n <= max;
}

bool sz_api_relation(struct sz_slice relation, const char **why)
{
    *why = "a relation is one word of up to 50 bytes without ':', '#', '@' or '*'";
    return is_word(relation, RELATION_MAX);
}

bool sz_api_entity(struct sz_slice type, struct sz_slice id, size_t max, struct sz_pool *pool, struct sz_slice *out,
                   const char **why)
{
    struct sz_buf buf = {.limit = max};
    *why = "a type is one word of up to 254 bytes without ':', '#', '@' or '*'";
    if (!is_word(type, TYPE_MAX))
        return false;
    sz_buf_adds(&buf, type);
    sz_buf_adds(&buf, SZ_S(":"));
    sz_id_add(&buf, id);
    *why = "an id is longer than the relation store takes";
    bool fits = !buf.overflow;
    if (fits)
        *out = sz_pool_dup(pool, sz_buf_slice(&buf));
    sz_buf_fini(&buf);
    return fits;
}

struct sz_slice sz_api_canonical(const json_t *object, struct sz_pool *pool)
{
    char *text = json_dumps(object, JSON_COMPACT | JSON_SORT_KEYS);
    struct sz_slice copy = text == NULL ? SZ_S("{}") : sz_pool_dup(pool, sz_cstr(text));
    free(text);
    return copy;
}

/*
 * Reading requests and writing answers.  The protocol is protobuf's JSON: a field may be absent or null, names come in
 * two spellings, unknown ones are ignored, and a value of another type is an error.
 */
#include <jansson.h>
#include <stdlib.h>

#include "fga/api/hub.h"
#include "subzero/crypto.h"

enum { DEPTH = 64, NAME_MAX_ = 48, PAGE = 50, PAGE_MAX = 100 };
enum { USER_BYTES = 512, OBJECT_MAX = 256, RELATION_MAX = 50 };

void *sz_ofga_object(struct sz_ofga *api)
{
    json_error_t err;
    size_t at;
    struct sz_slice body = api->body.n > 0 ? api->body : SZ_S("{}");
    if (sz_json_check(body, DEPTH, &at) != 0) {
        sz_ofga_fail(api, 2000, "malformed JSON at byte %zu", at);
        return NULL;
    }
    json_t *v = json_loadb(body.p, body.n, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &err);
    if (json_is_object(v))
        return v;
    if (v == NULL)
        sz_ofga_fail(api, 2000, "malformed JSON: %s", err.text);
    else
        sz_ofga_fail(api, 2000, "the body must be a JSON object");
    json_decref(v);
    return NULL;
}

static void camel(const char *name, char out[NAME_MAX_])
{
    size_t n = 0;
    for (; *name != '\0' && n + 1 < NAME_MAX_; name++) {
        bool up = *name == '_' && name[1] >= 'a' && name[1] <= 'z';
        out[n++] = up ? (char)(*++name - 32) : *name;
    }
    out[n] = '\0';
}

const void *sz_ofga_member(const void *object, const char *name)
{
    const json_t *v = json_object_get(object, name);
    char other[NAME_MAX_];
    if (v == NULL && strchr(name, '_') != NULL) {
        camel(name, other);
        v = json_object_get(object, other);
    }
    return json_is_null(v) ? NULL : v;
}

static bool wrong_type(struct sz_ofga *api, const char *name, const char *wanted)
{
    sz_ofga_fail(api, 2000, "invalid value for field %s: expected %s", name, wanted);
    return false;
}

bool sz_ofga_text(struct sz_ofga *api, const void *object, const char *name, struct sz_slice *out)
{
    const json_t *v = sz_ofga_member(object, name);
    *out = SZ_NONE;
    if (v == NULL)
        return true;
    if (!json_is_string(v))
        return wrong_type(api, name, "a string");
    *out = sz_slice(json_string_value(v), json_string_length(v));
    return true;
}

bool sz_ofga_sub(struct sz_ofga *api, const void *object, const char *name, const void **out)
{
    *out = sz_ofga_member(object, name);
    return *out == NULL || json_is_object((const json_t *)*out) || wrong_type(api, name, "an object");
}

bool sz_ofga_list(struct sz_ofga *api, const void *object, const char *name, const void **out)
{
    *out = sz_ofga_member(object, name);
    return *out == NULL || json_is_array((const json_t *)*out) || wrong_type(api, name, "an array");
}

bool sz_ofga_json(struct sz_ofga *api, const void *object, const char *name, struct sz_slice *out)
{
    const void *v;
    *out = SZ_NONE;
    if (!sz_ofga_sub(api, object, name, &v))
        return false;
    if (v == NULL)
        return true;
    char *text = json_dumps(v, JSON_COMPACT);
    *out = sz_pool_dup(&api->arena.pool, sz_cstr(text));
    free(text);
    return true;
}

static size_t characters(struct sz_slice s)
{
    size_t n = 0;
    for (size_t i = 0; i < s.n; i++)
        n += ((unsigned char)s.p[i] & 0xc0) != 0x80;
    return n;
}

/* Blanks as the protocol's patterns mean them, and what else must not be in a word. */
static bool has_any(struct sz_slice s, const char *others)
{
    for (size_t i = 0; i < s.n; i++)
        if (s.p[i] != '\0' && (strchr(" \t\n\f\r", s.p[i]) != NULL || strchr(others, s.p[i]) != NULL))
            return true;
    return false;
}

bool sz_ofga_word(struct sz_ofga *api, struct sz_slice s, size_t most, const char *field)
{
    size_t n = strlen(field);
    bool type = n > 5 && strcmp(field + n - 5, ".Type") == 0; /* has a code of its own */
    if (s.n > 0 && characters(s) <= most && !has_any(s, ":#@"))
        return true;
    sz_ofga_fail(api, type ? 2047 : 2000, "invalid %s: value does not match regex pattern \"^[^:#@\\s]{1,%zu}$\"",
                 field, most);
    return false;
}

bool sz_ofga_name(struct sz_ofga *api, struct sz_slice s, size_t most, const char *field)
{
    size_t n = characters(s);
    if (n >= 2 && n <= most && !has_any(s, ""))
        return true;
    sz_ofga_fail(api, 2000, "invalid %s: value does not match regex pattern \"^[^\\s]{2,%zu}$\"", field, most);
    return false;
}

bool sz_ofga_check_key(struct sz_ofga *api, const struct sz_tuple_key *key)
{
    return sz_ofga_name(api, key->user, USER_BYTES, "CheckRequestTupleKey.User") &&
           sz_ofga_word(api, key->relation, RELATION_MAX, "CheckRequestTupleKey.Relation") &&
           sz_ofga_name(api, key->object, OBJECT_MAX, "CheckRequestTupleKey.Object");
}

static bool read_condition(struct sz_ofga *api, const void *condition, struct sz_tuple_key *out)
{
    return sz_ofga_text(api, condition, "name", &out->condition) &&
           sz_ofga_json(api, condition, "context", &out->condition_context) &&
           sz_ofga_name(api, out->condition, 256, "RelationshipCondition.Name");
}

bool sz_ofga_key(struct sz_ofga *api, const void *object, struct sz_tuple_key *out)
{
    const void *condition;
    memset(out, 0, sizeof(*out));
    if (!json_is_object((const json_t *)object))
        return wrong_type(api, "tuple_key", "an object");
    if (!sz_ofga_text(api, object, "user", &out->user) || !sz_ofga_text(api, object, "relation", &out->relation) ||
        !sz_ofga_text(api, object, "object", &out->object) || !sz_ofga_sub(api, object, "condition", &condition))
        return false;
    if (out->user.n > USER_BYTES) {
        sz_ofga_fail(api, 2000, "invalid TupleKey.User: value length must be at most %d bytes", USER_BYTES);
        return false;
    }
    return (out->relation.n == 0 || sz_ofga_word(api, out->relation, RELATION_MAX, "TupleKey.Relation")) &&
           (out->object.n == 0 || sz_ofga_name(api, out->object, OBJECT_MAX, "TupleKey.Object")) &&
           (condition == NULL || read_condition(api, condition, out));
}

bool sz_ofga_keys(struct sz_ofga *api, const void *list, size_t most, struct sz_tuple_key **out, size_t *n)
{
    size_t count = json_array_size(list);
    *n = 0;
    *out = NULL;
    if (count > most) {
        sz_ofga_fail(api, 2000, "invalid TupleKeys: value must contain no more than %zu item(s)", most);
        return false;
    }
    if (count == 0)
        return true;
    struct sz_tuple_key *keys = sz_pool_zalloc(&api->arena.pool, count * sizeof(*keys));
    for (size_t i = 0; i < count; i++)
        if (!sz_ofga_key(api, json_array_get(list, i), &keys[i]))
            return false;
    *out = keys;
    *n = count;
    return true;
}

bool sz_ofga_contextual(struct sz_ofga *api, const void *object, const struct sz_tuple_key **out, size_t *n)
{
    const json_t *v = sz_ofga_member(object, "contextual_tuples");
    const void *list = v;
    struct sz_tuple_key *keys;
    *out = NULL;
    *n = 0;
    if (json_is_object(v) && !sz_ofga_list(api, v, "tuple_keys", &list))
        return false;
    if (list == NULL)
        return true;
    if (!json_is_array((const json_t *)list))
        return wrong_type(api, "contextual_tuples", "tuples");
    if (!sz_ofga_keys(api, list, 100, &keys, n))
        return false;
    *out = keys;
    return true;
}

bool sz_ofga_page_size(struct sz_ofga *api, const void *object, size_t *out)
{
    const json_t *v = object != NULL ? sz_ofga_member(object, "page_size") : NULL;
    struct sz_slice text = object != NULL ? SZ_NONE : sz_ofga_param(api, "page_size");
    uint64_t n = PAGE;
    bool good = true;
    if (json_is_string(v))
        text = sz_slice(json_string_value(v), json_string_length(v));
    if (text.n > 0)
        good = sz_parse_u64(text, INT32_MAX, &n) == 0;
    else if (json_is_integer(v) && json_integer_value(v) >= 0)
        n = (uint64_t)json_integer_value(v);
    else if (v != NULL)
        good = false;
    if (!good) {
        sz_ofga_fail(api, 2000, "parsing field \"page_size\": it is no number");
        return false;
    }
    if (n < 1 || n > PAGE_MAX) {
        sz_ofga_fail(api, 2039, "invalid PageSize: value must be inside range [1, %d]", PAGE_MAX);
        return false;
    }
    *out = (size_t)n;
    return true;
}

/* ---- the query ---- */

static struct sz_slice decode(struct sz_ofga *api, struct sz_slice s)
{
    char *out = sz_pool_alloc(&api->arena.pool, s.n + 1);
    size_t n = 0;
    for (size_t i = 0; i < s.n; i++) {
        int high = i + 2 < s.n && s.p[i] == '%' ? sz_hex_digit(s.p[i + 1]) : -1;
        int low = high >= 0 ? sz_hex_digit(s.p[i + 2]) : -1;
        if (low >= 0) {
            out[n++] = (char)(high * 16 + low);
            i += 2;
        } else {
            out[n++] = s.p[i] == '+' ? ' ' : s.p[i];
        }
    }
    out[n] = '\0';
    return sz_slice(out, n);
}

struct sz_slice sz_ofga_param(struct sz_ofga *api, const char *name)
{
    struct sz_slice rest = api->query, field, key;
    char other[NAME_MAX_];
    if (rest.n == 0)
        return SZ_NONE;
    camel(name, other);
    while (sz_split(&rest, '&', &field)) {
        struct sz_slice value = field;
        sz_split(&value, '=', &key);
        if (sz_eq(key, sz_cstr(name)) || sz_eq(key, sz_cstr(other)))
            return decode(api, value.p != NULL ? value : SZ_S(""));
    }
    return SZ_NONE;
}

/* ---- answers ---- */

void sz_ofga_put_time(struct sz_buf *out, struct sz_wall t)
{
    char text[32];
    sz_wall_format(t, t.us % 1000000 != 0 ? 6 : 0, text);
    sz_buf_printf(out, "\"%s\"", text);
}

void sz_ofga_put_key(struct sz_buf *out, const struct sz_tuple_key *key)
{
    sz_buf_printf(out, "{\"user\":");
    sz_buf_json(out, key->user);
    sz_buf_printf(out, ",\"relation\":");
    sz_buf_json(out, key->relation);
    sz_buf_printf(out, ",\"object\":");
    sz_buf_json(out, key->object);
    sz_buf_printf(out, ",\"condition\":");
    if (key->condition.n == 0) {
        sz_buf_printf(out, "null}");
        return;
    }
    sz_buf_printf(out, "{\"name\":");
    sz_buf_json(out, key->condition);
    sz_buf_printf(out, ",\"context\":");
    sz_buf_adds(out, key->condition_context.n > 0 ? key->condition_context : SZ_S("{}"));
    sz_buf_printf(out, "}}");
}

void sz_ofga_put_token(struct sz_buf *out, struct sz_slice token)
{
    char text[SZ_B64_LEN(SZ_TOKEN_ROOM)];
    sz_buf_printf(out, "\"");
    sz_buf_add(out, text, sz_b64url_encode(token.p, token.n, text));
    sz_buf_printf(out, "\"");
}

bool sz_ofga_token(struct sz_ofga *api, struct sz_slice text, struct sz_slice *out)
{
    size_t n = 0;
    *out = SZ_NONE;
    if (text.n == 0)
        return true;
    for (size_t i = 0; i < text.n; i++) {
        unsigned char c = (unsigned char)text.p[i];
        bool word = (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '-' || c == '_';
        if (!word) {
            sz_ofga_fail(api, 2000, "invalid ContinuationToken: value does not match what tokens are made of");
            return false;
        }
    }
    char *room = sz_pool_alloc(&api->arena.pool, text.n);
    if (text.n > SZ_B64_LEN(SZ_TOKEN_ROOM) || sz_b64url_decode(text, room, &n) != 0) {
        sz_ofga_fail(api, 2007, "Invalid continuation token");
        return false;
    }
    *out = sz_slice(room, n);
    return true;
}

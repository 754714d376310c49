/*
 * path.jsonl and authz_header.jsonl against the functions that decide them; the same vectors go through the
 * running gateway in http1_vectors.c and its siblings.
 */
#include <criterion/criterion.h>

#include "conformance/vectors.h"
#include "pipeline/credential.h"
#include "pipeline/target.h"

/* absolute-form, as the edge takes it apart: scheme and authority go, an empty path is "/". */
static bool strip_absolute(struct sz_slice *target, struct sz_pool *pool)
{
    struct sz_authority authority;
    if (!sz_starts_with(*target, SZ_S("http://")))
        return true;
    struct sz_slice rest = sz_from(*target, 7);
    size_t end = 0;
    while (end < rest.n && rest.p[end] != '/' && rest.p[end] != '?')
        end++;
    if (end == 0 || sz_authority_parse(sz_sub(rest, 0, end), pool, &authority) != 0)
        return false;
    rest = sz_from(rest, end);
    *target = rest.n > 0 && rest.p[0] == '/' ? rest : sz_pool_printf(pool, "/%.*s", SZ_FMT(rest));
    return true;
}

static bool in_list(json_t *list, struct sz_slice s)
{
    size_t i;
    json_t *item;
    json_array_foreach(list, i, item)
    {
        if (sz_eq(s, sz_slice(json_string_value(item), json_string_length(item))))
            return true;
    }
    return false;
}

static bool path_passes(json_t *v, struct sz_pool *pool, struct sz_text *got)
{
    struct sz_slice target = vector_bytes(v, "target_b64", pool);
    struct sz_target out;
    const char *why = "absolute form";
    json_t *want = json_object_get(v, "policy_path");
    bool ok = strip_absolute(&target, pool) && sz_target_parse(target, pool, &out, &why) == 0;
    if (!ok) {
        sz_text_set(got, "refused (%s)", why);
        return json_is_null(want) || json_is_true(json_object_get(v, "reject_ok"));
    }
    sz_text_set(got, "'%.*s'", SZ_FMT(out.path));
    if (in_list(json_object_get(v, "never"), out.path))
        return false;
    return (json_is_string(want) && sz_eq(out.path, sz_cstr(json_string_value(want)))) ||
           in_list(json_object_get(v, "also_ok"), out.path);
}

Test(vectors, path)
{
    vectors_run("path", path_passes);
}

static bool authz_passes(json_t *v, struct sz_pool *pool, struct sz_text *got)
{
    struct sz_slice values[8], token = SZ_NONE;
    size_t i, n = 0;
    json_t *item;
    json_array_foreach(json_object_get(v, "authorization_b64"), i, item)
    {
        cr_assert(n < SZ_COUNT(values));
        values[n++] = vector_b64(item, pool);
    }
    enum sz_reason reason = sz_bearer_token(values, n, &token);
    sz_text_set(got, "%s", sz_reason_row(reason)->name);
    bool accept = strcmp(json_string_value(json_object_get(v, "expect")), "accept") == 0;
    if (!accept)
        return reason != SZ_REASON_allowed;
    return reason == SZ_REASON_allowed && sz_eq(token, sz_cstr(json_string_value(json_object_get(v, "token"))));
}

Test(vectors, authz_header)
{
    vectors_run("authz_header", authz_passes);
}

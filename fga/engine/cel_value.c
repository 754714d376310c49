/*
 * CEL values: equality, order, and how JSON becomes a value of a declared type.
 */
#include "fga/engine/cel.h"

#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>

static bool numeric(const struct sz_cv *v)
{
    return v->kind == CV_INT || v->kind == CV_UINT || v->kind == CV_DOUBLE;
}

static int order_i64(int64_t a, int64_t b)
{
    return (a > b) - (a < b);
}

/* Exact, whatever the magnitudes. */
static int compare_int_double(int64_t i, double d)
{
    if (isnan(d))
        return 2;
    if (d >= 9223372036854775808.0)
        return -1;
    if (d < -9223372036854775808.0)
        return 1;
    int64_t whole = (int64_t)d;
    if (i != whole)
        return order_i64(i, whole);
    double rest = d - (double)whole;
    return rest > 0 ? -1 : rest < 0 ? 1 : 0;
}

static int compare_uint_double(uint64_t u, double d)
{
    if (isnan(d))
        return 2;
    if (d < 0)
        return 1;
    if (d >= 18446744073709551616.0)
        return -1;
    uint64_t whole = (uint64_t)d;
    if (u != whole)
        return u > whole ? 1 : -1;
    return d > (double)whole ? -1 : 0;
}

static int flip(int c)
{
    return c == 2 ? 2 : -c;
}

static int compare_numbers(const struct sz_cv *a, const struct sz_cv *b)
{
    if (a->kind == CV_DOUBLE && b->kind == CV_DOUBLE)
        return isnan(a->d) || isnan(b->d) ? 2 : (a->d > b->d) - (a->d < b->d);
    if (b->kind == CV_DOUBLE)
        return a->kind == CV_INT ? compare_int_double(a->i, b->d) : compare_uint_double(a->u, b->d);
    if (a->kind == CV_DOUBLE)
        return flip(compare_numbers(b, a));
    if (a->kind == b->kind)
        return a->kind == CV_INT ? order_i64(a->i, b->i) : (a->u > b->u) - (a->u < b->u);
    if (a->kind == CV_UINT)
        return flip(compare_numbers(b, a));
    return a->i < 0 ? -1 : (uint64_t)a->i > b->u ? 1 : (uint64_t)a->i < b->u ? -1 : 0;
}

int sz_cv_compare(const struct sz_cv *a, const struct sz_cv *b)
{
    if (numeric(a) && numeric(b))
        return compare_numbers(a, b);
    if (a->kind != b->kind)
        return 2;
    int c;
    switch (a->kind) {
    case CV_BOOL:
        return (int)a->b - (int)b->b;
    case CV_STRING:
        c = sz_cmp(a->s, b->s);
        return (c > 0) - (c < 0);
    case CV_TIMESTAMP:
        c = order_i64(a->t.sec, b->t.sec);
        return c != 0 ? c : order_i64(a->t.nano, b->t.nano);
    case CV_DURATION:
        return order_i64(a->i, b->i);
    default:
        return 2;
    }
}

static bool maps_equal(const struct sz_cv_map *a, const struct sz_cv_map *b)
{
    if (a->n != b->n)
        return false;
    for (size_t i = 0; i < a->n; i++) {
        size_t k = 0;
        while (k < b->n && !sz_cv_equal(&a->keys[i], &b->keys[k]))
            k++;
        if (k == b->n || !sz_cv_equal(&a->values[i], &b->values[k]))
            return false;
    }
    return true;
}

bool sz_cv_equal(const struct sz_cv *a, const struct sz_cv *b)
{
    if (numeric(a) && numeric(b))
        return compare_numbers(a, b) == 0;
    if (a->kind != b->kind)
        return false;
    switch (a->kind) {
    case CV_NULL:
        return true;
    case CV_LIST:
        for (size_t i = 0; i < a->list->n && a->list->n == b->list->n; i++)
            if (!sz_cv_equal(&a->list->v[i], &b->list->v[i]))
                return false;
        return a->list->n == b->list->n;
    case CV_MAP:
        return maps_equal(a->map, b->map);
    case CV_IP:
        return a->ip->v6 == b->ip->v6 && sz_eq(sz_slice(a->ip->b, 16), sz_slice(b->ip->b, 16)) &&
               sz_eq(a->ip->zone, b->ip->zone);
    default:
        return sz_cv_compare(a, b) == 0;
    }
}

/* ---- from JSON ---- */

static int refuse(struct sz_text *why, const char *wanted)
{
    sz_text_set(why, "expected %s", wanted);
    return -EINVAL;
}

/* A decimal number as text: [+-] digits [. digits] [e digits]. */
static bool decimal(struct sz_slice s, long double *out)
{
    char text[128];
    size_t i = s.n > 0 && (s.p[0] == '-' || s.p[0] == '+'), digits = 0;
    for (; i < s.n && ((s.p[i] >= '0' && s.p[i] <= '9') || s.p[i] == '.'); i++)
        digits += s.p[i] != '.';
    if (digits > 0 && i < s.n && (s.p[i] == 'e' || s.p[i] == 'E')) {
        i++;
        i += i < s.n && (s.p[i] == '-' || s.p[i] == '+');
        size_t exponent = i;
        while (i < s.n && s.p[i] >= '0' && s.p[i] <= '9')
            i++;
        digits = i > exponent ? digits : 0;
    }
    if (digits == 0 || i != s.n || s.n >= sizeof(text))
        return false;
    memcpy(text, s.p, s.n);
    text[s.n] = '\0';
    char *end;
    *out = strtold(text, &end);
    return *end == '\0';
}

/* A number, from JSON's (a double, as on the wire) or from text. */
static bool number(const json_t *v, long double *out)
{
    if (json_is_number(v)) {
        *out = (long double)json_number_value(v);
        return true;
    }
    return json_is_string(v) && decimal(sz_slice(json_string_value(v), json_string_length(v)), out);
}

static int from_number(const json_t *v, enum sz_ptype type, struct sz_cv *out, struct sz_text *why)
{
    long double n;
    if (!number(v, &n))
        return refuse(why, "a number");
    if (type == SZ_P_DOUBLE) {
        out->kind = CV_DOUBLE;
        out->d = (double)n;
        if (isinf(out->d) || (json_is_string(v) && (long double)out->d != n))
            return refuse(why, "a number that a double can hold exactly");
        return 0;
    }
    bool huge = n >= 9223372036854775807.0L || n <= -9223372036854775808.0L; /* whole by magnitude */
    if (isinf((double)n) || (!huge && (long double)(int64_t)n != n))
        return refuse(why, "a whole number");
    if (type == SZ_P_UINT && n < 0)
        return refuse(why, "a number that is not negative");
    int64_t i = n >= 9223372036854775807.0L ? INT64_MAX : n <= -9223372036854775808.0L ? INT64_MIN : (int64_t)n;
    out->kind = type == SZ_P_UINT ? CV_UINT : CV_INT;
    out->i = i;
    return 0;
}

static int from_text(const json_t *v, enum sz_ptype type, struct sz_pool *pool, struct sz_cv *out, struct sz_text *why)
{
    struct sz_slice s = sz_slice(json_string_value(v), json_string_length(v));
    int64_t sec;
    int32_t nano;
    if (type == SZ_P_STRING) {
        *out = sz_cv_string(s);
        return 0;
    }
    if (type == SZ_P_DURATION) {
        out->kind = CV_DURATION;
        return sz_duration_parse(s, &out->i) == 0 ? 0 : refuse(why, "a duration such as 1h30m");
    }
    if (type == SZ_P_TIMESTAMP) {
        if (sz_timestamp_parse(s, &sec, &nano) != 0)
            return refuse(why, "an RFC 3339 timestamp");
        *out = (struct sz_cv){.kind = CV_TIMESTAMP, .t = {sec, nano}};
        return 0;
    }
    struct sz_ip *ip = sz_pool_alloc(pool, sizeof(*ip));
    if (sz_ip_parse(s, ip) != 0)
        return refuse(why, "an IP address");
    *out = (struct sz_cv){.kind = CV_IP, .ip = ip};
    return 0;
}

static int from_any(const json_t *v, struct sz_pool *pool, struct sz_cv *out, struct sz_text *why)
{
    switch (json_typeof(v)) {
    case JSON_OBJECT:
        return sz_cv_from_json(v, SZ_P_MAP, SZ_P_ANY, pool, out, why);
    case JSON_ARRAY:
        return sz_cv_from_json(v, SZ_P_LIST, SZ_P_ANY, pool, out, why);
    case JSON_STRING:
        return from_text(v, SZ_P_STRING, pool, out, why);
    case JSON_INTEGER:
    case JSON_REAL:
        *out = (struct sz_cv){.kind = CV_DOUBLE, .d = json_number_value(v)};
        return 0;
    case JSON_TRUE:
    case JSON_FALSE:
        *out = sz_cv_bool(json_is_true(v));
        return 0;
    case JSON_NULL:
        break;
    }
    *out = (struct sz_cv){.kind = CV_NULL};
    return 0;
}

static int from_list(const json_t *v, enum sz_ptype element, struct sz_pool *pool, struct sz_cv *out,
                     struct sz_text *why)
{
    if (!json_is_array(v))
        return refuse(why, "a list");
    size_t n = json_array_size(v);
    struct sz_cv_list *list = sz_pool_alloc(pool, sizeof(*list));
    struct sz_cv *items = sz_pool_alloc(pool, (n + 1) * sizeof(*items));
    *list = (struct sz_cv_list){n, items};
    for (size_t i = 0; i < n; i++) {
        int err = sz_cv_from_json(json_array_get(v, i), element, SZ_P_NONE, pool, &items[i], why);
        if (err != 0)
            return err;
    }
    *out = (struct sz_cv){.kind = CV_LIST, .list = list};
    return 0;
}

static int from_map(const json_t *v, enum sz_ptype element, struct sz_pool *pool, struct sz_cv *out,
                    struct sz_text *why)
{
    if (!json_is_object(v))
        return refuse(why, "a map");
    size_t n = json_object_size(v), i = 0;
    struct sz_cv_map *map = sz_pool_alloc(pool, sizeof(*map));
    struct sz_cv *keys = sz_pool_alloc(pool, (n + 1) * sizeof(*keys));
    struct sz_cv *values = sz_pool_alloc(pool, (n + 1) * sizeof(*values));
    *map = (struct sz_cv_map){n, keys, values};
    const char *key;
    json_t *item;
    json_object_foreach((json_t *)v, key, item)
    {
        keys[i] = sz_cv_string(sz_cstr(key));
        int err = sz_cv_from_json(item, element, SZ_P_NONE, pool, &values[i++], why);
        if (err != 0)
            return err;
    }
    *out = (struct sz_cv){.kind = CV_MAP, .map = map};
    return 0;
}

int sz_cv_from_json(const void *json, enum sz_ptype type, enum sz_ptype element, struct sz_pool *pool,
                    struct sz_cv *out, struct sz_text *why)
{
    const json_t *v = json;
    switch (type) {
    case SZ_P_ANY:
        return from_any(v, pool, out, why);
    case SZ_P_BOOL:
        *out = sz_cv_bool(json_is_true(v));
        return json_is_boolean(v) ? 0 : refuse(why, "true or false");
    case SZ_P_INT:
    case SZ_P_UINT:
    case SZ_P_DOUBLE:
        return from_number(v, type, out, why);
    case SZ_P_STRING:
    case SZ_P_DURATION:
    case SZ_P_TIMESTAMP:
    case SZ_P_IPADDRESS:
        return json_is_string(v) ? from_text(v, type, pool, out, why) : refuse(why, "text");
    case SZ_P_LIST:
        return from_list(v, element, pool, out, why);
    case SZ_P_MAP:
        return from_map(v, element, pool, out, why);
    case SZ_P_NONE:
        break;
    }
    return refuse(why, "a parameter of a known type");
}

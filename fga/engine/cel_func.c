/*
 * CEL's functions and operators on values.  Arguments were checked where types were known; where they were
 * not (dyn), a wrong kind is an error here.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "fga/engine/cel_tree.h"

#define NANOS        INT64_C(1000000000)
#define FIRST_SECOND INT64_C(-62135596800) /* 0001-01-01T00:00:00Z */
#define LAST_SECOND  INT64_C(253402300799) /* 9999-12-31T23:59:59Z */

static struct sz_cv no_overload(void)
{
    return sz_cv_error("no such overload");
}

static struct sz_cv overflow(void)
{
    return sz_cv_error("number is out of range");
}

static struct sz_cv make_time(int64_t sec, int64_t nano)
{
    sec += nano / NANOS;
    nano %= NANOS;
    if (nano < 0) {
        nano += NANOS;
        sec--;
    }
    if (sec < FIRST_SECOND || sec > LAST_SECOND)
        return sz_cv_error("timestamp is out of range");
    return (struct sz_cv){.kind = CV_TIMESTAMP, .t = {sec, (int32_t)nano}};
}

static struct sz_cv make_duration(int64_t nanos)
{
    return (struct sz_cv){.kind = CV_DURATION, .i = nanos};
}

static struct sz_cv make_uint(uint64_t u)
{
    return (struct sz_cv){.kind = CV_UINT, .u = u};
}

static struct sz_cv make_double(double d)
{
    return (struct sz_cv){.kind = CV_DOUBLE, .d = d};
}

/* ---- arithmetic ---- */

static struct sz_cv int_arith(enum sz_fn fn, int64_t a, int64_t b)
{
    int64_t r = 0;
    bool bad = false;
    if ((fn == FN_DIV || fn == FN_MOD) && b == 0)
        return sz_cv_error(fn == FN_DIV ? "division by zero" : "modulus by zero");
    if ((fn == FN_DIV || fn == FN_MOD) && a == INT64_MIN && b == -1)
        return overflow();
    switch (fn) {
    case FN_ADD:
        bad = __builtin_add_overflow(a, b, &r);
        break;
    case FN_SUB:
        bad = __builtin_sub_overflow(a, b, &r);
        break;
    case FN_MUL:
        bad = __builtin_mul_overflow(a, b, &r);
        break;
    case FN_DIV:
        r = a / b;
        break;
    default:
        r = a % b;
    }
    return bad ? overflow() : sz_cv_int(r);
}

static struct sz_cv uint_arith(enum sz_fn fn, uint64_t a, uint64_t b)
{
    uint64_t r = 0;
    bool bad = false;
    if ((fn == FN_DIV || fn == FN_MOD) && b == 0)
        return sz_cv_error(fn == FN_DIV ? "division by zero" : "modulus by zero");
    switch (fn) {
    case FN_ADD:
        bad = __builtin_add_overflow(a, b, &r);
        break;
    case FN_SUB:
        bad = __builtin_sub_overflow(a, b, &r);
        break;
    case FN_MUL:
        bad = __builtin_mul_overflow(a, b, &r);
        break;
    case FN_DIV:
        r = a / b;
        break;
    default:
        r = a % b;
    }
    return bad ? overflow() : make_uint(r);
}

static struct sz_cv double_arith(enum sz_fn fn, double a, double b)
{
    switch (fn) {
    case FN_ADD:
        return make_double(a + b);
    case FN_SUB:
        return make_double(a - b);
    case FN_MUL:
        return make_double(a * b);
    case FN_DIV:
        return make_double(a / b);
    default:
        return no_overload();
    }
}

static struct sz_cv concat(const struct sz_cv *a, const struct sz_cv *b, struct sz_pool *pool)
{
    if (a->kind == CV_STRING) {
        char *p = sz_pool_alloc(pool, a->s.n + b->s.n + 1);
        memcpy(p, a->s.p, a->s.n);
        memcpy(p + a->s.n, b->s.p, b->s.n);
        return sz_cv_string(sz_slice(p, a->s.n + b->s.n));
    }
    struct sz_cv_list *list = sz_pool_alloc(pool, sizeof(*list));
    struct sz_cv *v = sz_pool_alloc(pool, (a->list->n + b->list->n + 1) * sizeof(*v));
    memcpy(v, a->list->v, a->list->n * sizeof(*v));
    memcpy(v + a->list->n, b->list->v, b->list->n * sizeof(*v));
    *list = (struct sz_cv_list){a->list->n + b->list->n, v};
    return (struct sz_cv){.kind = CV_LIST, .list = list};
}

static struct sz_cv time_difference(const struct sz_cv *a, const struct sz_cv *b)
{
    int64_t nanos;
    if (__builtin_mul_overflow(a->t.sec - b->t.sec, NANOS, &nanos) ||
        __builtin_add_overflow(nanos, (int64_t)a->t.nano - b->t.nano, &nanos))
        return sz_cv_error("duration is out of range");
    return make_duration(nanos);
}

static struct sz_cv time_arith(enum sz_fn fn, const struct sz_cv *a, const struct sz_cv *b)
{
    int64_t r;
    if (a->kind == CV_DURATION && b->kind == CV_DURATION) {
        bool bad = fn == FN_ADD ? __builtin_add_overflow(a->i, b->i, &r) : __builtin_sub_overflow(a->i, b->i, &r);
        return bad ? sz_cv_error("duration is out of range") : make_duration(r);
    }
    if (a->kind == CV_TIMESTAMP && b->kind == CV_TIMESTAMP)
        return fn == FN_SUB ? time_difference(a, b) : no_overload();
    if (a->kind == CV_DURATION) {
        if (fn == FN_SUB)
            return no_overload();
        const struct sz_cv *swap = a;
        a = b;
        b = swap;
    }
    int64_t sec = b->i / NANOS, nano = b->i % NANOS;
    return fn == FN_ADD ? make_time(a->t.sec + sec, a->t.nano + nano) : make_time(a->t.sec - sec, a->t.nano - nano);
}

static bool is_time(const struct sz_cv *v)
{
    return v->kind == CV_TIMESTAMP || v->kind == CV_DURATION;
}

static struct sz_cv arith(enum sz_fn fn, const struct sz_cv *a, const struct sz_cv *b, struct sz_pool *pool)
{
    if ((fn == FN_ADD || fn == FN_SUB) && is_time(a) && is_time(b))
        return time_arith(fn, a, b);
    if (a->kind != b->kind)
        return no_overload();
    switch (a->kind) {
    case CV_INT:
        return int_arith(fn, a->i, b->i);
    case CV_UINT:
        return uint_arith(fn, a->u, b->u);
    case CV_DOUBLE:
        return double_arith(fn, a->d, b->d);
    case CV_STRING:
    case CV_LIST:
        return fn == FN_ADD ? concat(a, b, pool) : no_overload();
    default:
        return no_overload();
    }
}

static struct sz_cv negate(const struct sz_cv *a)
{
    if (a->kind == CV_DOUBLE)
        return make_double(-a->d);
    if (a->kind != CV_INT)
        return no_overload();
    return a->i == INT64_MIN ? overflow() : sz_cv_int(-a->i);
}

/* ---- comparison, containers ---- */

static struct sz_cv compare(enum sz_fn fn, const struct sz_cv *a, const struct sz_cv *b)
{
    int c = sz_cv_compare(a, b);
    bool numbers = a->kind >= CV_INT && a->kind <= CV_DOUBLE && b->kind >= CV_INT && b->kind <= CV_DOUBLE;
    if (c == 2)
        return numbers ? sz_cv_bool(false) : no_overload(); /* NaN */
    return sz_cv_bool(fn == FN_LT ? c < 0 : fn == FN_LE ? c <= 0 : fn == FN_GT ? c > 0 : c >= 0);
}

static struct sz_cv contains_item(const struct sz_cv *item, const struct sz_cv *in)
{
    const struct sz_cv *v = in->kind == CV_LIST ? in->list->v : in->kind == CV_MAP ? in->map->keys : NULL;
    size_t n = in->kind == CV_LIST ? in->list->n : in->kind == CV_MAP ? in->map->n : 0;
    if (in->kind != CV_LIST && in->kind != CV_MAP)
        return no_overload();
    for (size_t i = 0; i < n; i++)
        if (sz_cv_equal(item, &v[i]))
            return sz_cv_bool(true);
    return sz_cv_bool(false);
}

static struct sz_cv index_into(const struct sz_cv *on, const struct sz_cv *key)
{
    if (on->kind == CV_MAP) {
        for (size_t i = 0; i < on->map->n; i++)
            if (sz_cv_equal(&on->map->keys[i], key))
                return on->map->values[i];
        return sz_cv_error("no such key");
    }
    if (on->kind != CV_LIST)
        return no_overload();
    int64_t i = key->kind == CV_INT                           ? key->i
                : key->kind == CV_UINT && key->u <= INT64_MAX ? (int64_t)key->u
                : key->kind == CV_DOUBLE && key->d >= 0 && key->d < 1e15 && key->d == (double)(int64_t)key->d
                    ? (int64_t)key->d
                    : -1;
    if (i < 0 || (uint64_t)i >= on->list->n)
        return sz_cv_error("index is out of bounds");
    return on->list->v[i];
}

static size_t runes(struct sz_slice s)
{
    size_t n = 0;
    for (size_t i = 0; i < s.n; i++)
        n += ((unsigned char)s.p[i] & 0xc0) != 0x80;
    return n;
}

static struct sz_cv size_of(const struct sz_cv *v)
{
    if (v->kind == CV_STRING)
        return sz_cv_int((int64_t)runes(v->s));
    if (v->kind == CV_LIST)
        return sz_cv_int((int64_t)v->list->n);
    return v->kind == CV_MAP ? sz_cv_int((int64_t)v->map->n) : no_overload();
}

static bool find(struct sz_slice s, struct sz_slice needle)
{
    return memmem(s.p != NULL ? s.p : "", s.n, needle.p != NULL ? needle.p : "", needle.n) != NULL;
}

static struct sz_cv match_text(const struct sz_cv *text, const struct sz_cv *pattern)
{
    struct sz_text why;
    struct sz_regex *re = sz_regex_compile(pattern->s, &why);
    if (re == NULL)
        return sz_cv_error("malformed regular expression");
    bool found = sz_regex_search(re, text->s);
    sz_regex_free(re);
    return sz_cv_bool(found);
}

static struct sz_cv string_test(enum sz_fn fn, const struct sz_cv *a, const struct sz_cv *b)
{
    if (a->kind != CV_STRING || b->kind != CV_STRING)
        return no_overload();
    switch (fn) {
    case FN_STARTS_WITH:
        return sz_cv_bool(sz_starts_with(a->s, b->s));
    case FN_ENDS_WITH:
        return sz_cv_bool(a->s.n >= b->s.n && sz_eq(sz_from(a->s, a->s.n - b->s.n), b->s));
    case FN_CONTAINS:
        return sz_cv_bool(find(a->s, b->s));
    default:
        return match_text(a, b);
    }
}

static struct sz_cv in_cidr(const struct sz_cv *a, const struct sz_cv *b)
{
    if (a->kind != CV_IP || b->kind != CV_STRING)
        return no_overload();
    int in = sz_ip_in_cidr(a->ip, b->s);
    return in < 0 ? sz_cv_error("malformed CIDR") : sz_cv_bool(in == 1);
}

struct sz_cv sz_fn_convert(enum sz_fn fn, const struct sz_cv *v, struct sz_pool *pool);
struct sz_cv sz_fn_getter(enum sz_fn fn, const struct sz_cv *v, const struct sz_cv *zone);

struct sz_cv sz_fn_call(enum sz_fn fn, const struct sz_cv *args, size_t n, struct sz_pool *pool)
{
    switch (fn) {
    case FN_NOT:
        return args[0].kind == CV_BOOL ? sz_cv_bool(!args[0].b) : no_overload();
    case FN_NEGATE:
        return negate(&args[0]);
    case FN_ADD:
    case FN_SUB:
    case FN_MUL:
    case FN_DIV:
    case FN_MOD:
        return arith(fn, &args[0], &args[1], pool);
    case FN_EQ:
        return sz_cv_bool(sz_cv_equal(&args[0], &args[1]));
    case FN_NE:
        return sz_cv_bool(!sz_cv_equal(&args[0], &args[1]));
    case FN_LT:
    case FN_LE:
    case FN_GT:
    case FN_GE:
        return compare(fn, &args[0], &args[1]);
    case FN_IN:
        return contains_item(&args[0], &args[1]);
    case FN_INDEX:
        return index_into(&args[0], &args[1]);
    case FN_SIZE:
    case FN_SIZE_OF:
        return size_of(&args[0]);
    case FN_STARTS_WITH:
    case FN_ENDS_WITH:
    case FN_CONTAINS:
    case FN_MATCHES:
    case FN_MATCHES_FN:
        return string_test(fn, &args[0], &args[1]);
    case FN_IN_CIDR:
        return in_cidr(&args[0], &args[1]);
    case FN_TO_DYN:
        return args[0];
    default:
        return fn < FN_FULL_YEAR ? sz_fn_convert(fn, &args[0], pool)
                                 : sz_fn_getter(fn, &args[0], n > 1 ? &args[1] : NULL);
    }
}

/* ---- cost ---- */

static uint64_t actual_size(const struct sz_cv *v)
{
    if (v->kind == CV_STRING)
        return runes(v->s);
    return v->kind == CV_LIST ? v->list->n : v->kind == CV_MAP ? v->map->n : 1;
}

static uint64_t tenth(uint64_t n)
{
    return (n + 9) / 10;
}

uint64_t sz_fn_cost(enum sz_fn fn, const struct sz_cv *args, size_t n)
{
    uint64_t a = actual_size(&args[0]), b = n > 1 ? actual_size(&args[1]) : 0;
    switch (fn) {
    case FN_STARTS_WITH:
    case FN_ENDS_WITH:
        return tenth(b);
    case FN_IN:
        return args[1].kind == CV_LIST ? b : 1;
    case FN_EQ:
    case FN_NE:
        return tenth(a < b ? a : b);
    case FN_LT:
    case FN_LE:
    case FN_GT:
    case FN_GE:
        return args[0].kind == CV_STRING ? tenth(a < b ? a : b) : 1;
    case FN_ADD:
        return args[0].kind == CV_STRING ? tenth(a + b) : 1;
    case FN_MATCHES:
    case FN_MATCHES_FN:
        return tenth(a + 1) * ((b + 3) / 4);
    case FN_CONTAINS:
        return tenth(a) * tenth(b);
    default:
        return 1;
    }
}

/* CEL's conversions between types, and the parts of timestamps and durations. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "fga/engine/cel_tree.h"

#define NANOS INT64_C(1000000000)

struct sz_cv sz_fn_convert(enum sz_fn fn, const struct sz_cv *v, struct sz_pool *pool);
struct sz_cv sz_fn_getter(enum sz_fn fn, const struct sz_cv *v, const struct sz_cv *zone);

static struct sz_cv no_overload(void)
{
    return sz_cv_error("no such overload");
}

static struct sz_cv bad_conversion(void)
{
    return sz_cv_error("value cannot be converted");
}

/* The whole text as a number for strtod and its kind. */
static bool numeric_text(struct sz_slice s, char out[64])
{
    if (s.n == 0 || s.n >= 64)
        return false;
    for (size_t i = 0; i < s.n; i++)
        if (strchr("0123456789+-.eE", s.p[i]) == NULL)
            return false;
    memcpy(out, s.p, s.n);
    out[s.n] = '\0';
    return true;
}

static struct sz_cv to_int(const struct sz_cv *v)
{
    char text[64], *end;
    switch (v->kind) {
    case CV_INT:
        return *v;
    case CV_UINT:
        return v->u <= INT64_MAX ? sz_cv_int((int64_t)v->u) : bad_conversion();
    case CV_DOUBLE:
        return v->d > -9223372036854775808.0 && v->d < 9223372036854775808.0 ? sz_cv_int((int64_t)v->d)
                                                                             : bad_conversion();
    case CV_TIMESTAMP:
        return sz_cv_int(v->t.sec);
    case CV_DURATION:
        return sz_cv_int(v->i);
    case CV_STRING:
        if (!numeric_text(v->s, text))
            return bad_conversion();
        errno = 0;
        long long i = strtoll(text, &end, 10);
        return *end == '\0' && errno == 0 ? sz_cv_int(i) : bad_conversion();
    default:
        return no_overload();
    }
}

static struct sz_cv to_uint(const struct sz_cv *v)
{
    uint64_t u;
    switch (v->kind) {
    case CV_UINT:
        return *v;
    case CV_INT:
        return v->i >= 0 ? (struct sz_cv){.kind = CV_UINT, .u = (uint64_t)v->i} : bad_conversion();
    case CV_DOUBLE:
        return v->d >= 0 && v->d < 18446744073709551616.0 ? (struct sz_cv){.kind = CV_UINT, .u = (uint64_t)v->d}
                                                          : bad_conversion();
    case CV_STRING:
        return v->s.n > 0 && sz_parse_u64(v->s, UINT64_MAX, &u) == 0 ? (struct sz_cv){.kind = CV_UINT, .u = u}
                                                                     : bad_conversion();
    default:
        return no_overload();
    }
}

static struct sz_cv to_double(const struct sz_cv *v)
{
    char text[64], *end;
    switch (v->kind) {
    case CV_DOUBLE:
        return *v;
    case CV_INT:
        return (struct sz_cv){.kind = CV_DOUBLE, .d = (double)v->i};
    case CV_UINT:
        return (struct sz_cv){.kind = CV_DOUBLE, .d = (double)v->u};
    case CV_STRING:
        if (!numeric_text(v->s, text))
            return bad_conversion();
        double d = strtod(text, &end);
        return *end == '\0' && !isinf(d) ? (struct sz_cv){.kind = CV_DOUBLE, .d = d} : bad_conversion();
    default:
        return no_overload();
    }
}

/* The shortest text that reads back as the same double. */
static struct sz_slice double_text(double d, struct sz_pool *pool)
{
    char text[40];
    for (int precision = 1; precision <= 17; precision++) {
        snprintf(text, sizeof(text), "%.*g", precision, d);
        if (strtod(text, NULL) == d)
            break;
    }
    return sz_pool_dup(pool, sz_cstr(text));
}

static struct sz_cv to_string(const struct sz_cv *v, struct sz_pool *pool)
{
    switch (v->kind) {
    case CV_STRING:
        return *v;
    case CV_BOOL:
        return sz_cv_string(v->b ? SZ_S("true") : SZ_S("false"));
    case CV_INT:
        return sz_cv_string(sz_pool_printf(pool, "%lld", (long long)v->i));
    case CV_UINT:
        return sz_cv_string(sz_pool_printf(pool, "%llu", (unsigned long long)v->u));
    case CV_DOUBLE:
        return sz_cv_string(double_text(v->d, pool));
    case CV_TIMESTAMP:
        return sz_cv_string(sz_timestamp_text(v->t.sec, v->t.nano, pool));
    case CV_DURATION:
        return sz_cv_string(sz_duration_text(v->i, pool));
    default:
        return no_overload();
    }
}

static struct sz_cv to_timestamp(const struct sz_cv *v)
{
    int64_t sec;
    int32_t nano = 0;
    if (v->kind == CV_TIMESTAMP)
        return *v;
    if (v->kind == CV_INT)
        sec = v->i;
    else if (v->kind != CV_STRING)
        return no_overload();
    else if (sz_timestamp_parse(v->s, &sec, &nano) != 0)
        return sz_cv_error("not an RFC 3339 timestamp");
    if (sec < INT64_C(-62135596800) || sec > INT64_C(253402300799))
        return sz_cv_error("timestamp is out of range");
    return (struct sz_cv){.kind = CV_TIMESTAMP, .t = {sec, nano}};
}

static struct sz_cv to_duration(const struct sz_cv *v)
{
    struct sz_cv out = {.kind = CV_DURATION};
    if (v->kind == CV_DURATION)
        return *v;
    if (v->kind == CV_INT)
        out.i = v->i;
    else if (v->kind != CV_STRING)
        return no_overload();
    else if (sz_duration_parse(v->s, &out.i) != 0)
        return sz_cv_error("not a duration");
    return out;
}

static struct sz_cv to_ip(const struct sz_cv *v, struct sz_pool *pool)
{
    struct sz_ip *ip = sz_pool_alloc(pool, sizeof(*ip));
    if (v->kind != CV_STRING)
        return no_overload();
    return sz_ip_parse(v->s, ip) == 0 ? (struct sz_cv){.kind = CV_IP, .ip = ip} : sz_cv_error("not an IP address");
}

static struct sz_cv to_bool(const struct sz_cv *v)
{
    static const char *const yes[] = {"1", "t", "T", "true", "TRUE", "True"};
    static const char *const no[] = {"0", "f", "F", "false", "FALSE", "False"};
    if (v->kind == CV_BOOL)
        return *v;
    for (size_t i = 0; v->kind == CV_STRING && i < SZ_COUNT(yes); i++) {
        if (sz_eq(v->s, sz_cstr(yes[i])))
            return sz_cv_bool(true);
        if (sz_eq(v->s, sz_cstr(no[i])))
            return sz_cv_bool(false);
    }
    return v->kind == CV_STRING ? bad_conversion() : no_overload();
}

struct sz_cv sz_fn_convert(enum sz_fn fn, const struct sz_cv *v, struct sz_pool *pool)
{
    switch (fn) {
    case FN_TO_INT:
        return to_int(v);
    case FN_TO_UINT:
        return to_uint(v);
    case FN_TO_DOUBLE:
        return to_double(v);
    case FN_TO_STRING:
        return to_string(v, pool);
    case FN_TO_TIMESTAMP:
        return to_timestamp(v);
    case FN_TO_DURATION:
        return to_duration(v);
    case FN_TO_IP:
        return to_ip(v, pool);
    default:
        return to_bool(v);
    }
}

/* ---- parts ---- */

static struct sz_cv duration_part(enum sz_fn fn, int64_t nanos)
{
    switch (fn) {
    case FN_HOURS:
        return sz_cv_int(nanos / (3600 * NANOS));
    case FN_MINUTES:
        return sz_cv_int(nanos / (60 * NANOS));
    case FN_SECONDS:
        return sz_cv_int(nanos / NANOS);
    case FN_MILLISECONDS:
        return sz_cv_int(nanos / 1000000);
    default:
        return no_overload();
    }
}

/* "UTC", "+02:00", "-5:30", "02:00": seconds east of Greenwich.  Zone names would need a database that is not ours. */
static int zone_offset(struct sz_slice s, int64_t *seconds)
{
    *seconds = 0;
    if (s.n == 0 || sz_eq(s, SZ_S("UTC")) || sz_eq(s, SZ_S("Z")))
        return 0;
    bool west = s.p[0] == '-';
    struct sz_slice rest = s.p[0] == '-' || s.p[0] == '+' ? sz_from(s, 1) : s, hours, minutes;
    uint64_t h, m;
    if (!sz_split(&rest, ':', &hours) || !sz_split(&rest, ':', &minutes) || rest.p != NULL || hours.n > 2 ||
        minutes.n != 2 || sz_parse_u64(hours, 23, &h) != 0 || sz_parse_u64(minutes, 59, &m) != 0)
        return -EINVAL;
    *seconds = (int64_t)(h * 3600 + m * 60) * (west ? -1 : 1);
    return 0;
}

struct sz_cv sz_fn_getter(enum sz_fn fn, const struct sz_cv *v, const struct sz_cv *zone)
{
    int64_t offset = 0, year;
    unsigned month, day;
    if (v->kind == CV_DURATION && zone == NULL)
        return duration_part(fn, v->i);
    if (v->kind != CV_TIMESTAMP || (zone != NULL && zone->kind != CV_STRING))
        return no_overload();
    if (zone != NULL && zone_offset(zone->s, &offset) != 0)
        return sz_cv_error("only UTC and fixed offsets are known as time zones");
    int64_t sec = v->t.sec + offset;
    int64_t days = sec >= 0 ? sec / 86400 : -((-sec + 86399) / 86400), left = sec - days * 86400;
    sz_civil_from_days(days, &year, &month, &day);
    switch (fn) {
    case FN_FULL_YEAR:
        return sz_cv_int(year);
    case FN_MONTH:
        return sz_cv_int(month - 1);
    case FN_DATE:
        return sz_cv_int(day);
    case FN_DAY_OF_MONTH:
        return sz_cv_int(day - 1);
    case FN_DAY_OF_WEEK: /* 1970-01-01 was a Thursday */
        return sz_cv_int(((days + 4) % 7 + 7) % 7);
    case FN_DAY_OF_YEAR:
        return sz_cv_int(days - sz_days_from_civil(year, 1, 1));
    case FN_HOURS:
        return sz_cv_int(left / 3600);
    case FN_MINUTES:
        return sz_cv_int(left / 60 % 60);
    case FN_SECONDS:
        return sz_cv_int(left % 60);
    default:
        return sz_cv_int(v->t.nano / 1000000);
    }
}

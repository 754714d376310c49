/*
 * Durations and timestamps as Go reads them, since that is what the ecosystem's data was written for.
 */
#include <errno.h>
#include <stdio.h>

#include "fga/engine/cel.h"

#define NANOS INT64_C(1000000000)

static bool digit(char c)
{
    return c >= '0' && c <= '9';
}

int64_t sz_days_from_civil(int64_t y, unsigned m, unsigned d)
{
    y -= m <= 2; /* years begin in March, so that the leap day is the last one */
    int64_t era = (y >= 0 ? y : y - 399) / 400;
    unsigned yoe = (unsigned)(y - era * 400);
    unsigned doy = (153 * (m + (m > 2 ? -3U : 9U)) + 2) / 5 + d - 1;
    unsigned doe = yoe * 365 + yoe / 4 - yoe / 100 + doy;
    return era * 146097 + (int64_t)doe - 719468;
}

void sz_civil_from_days(int64_t z, int64_t *year, unsigned *month, unsigned *day)
{
    z += 719468;
    int64_t era = (z >= 0 ? z : z - 146096) / 146097;
    unsigned doe = (unsigned)(z - era * 146097);
    unsigned yoe = (doe - doe / 1460 + doe / 36524 - doe / 146096) / 365;
    unsigned doy = doe - (365 * yoe + yoe / 4 - yoe / 100);
    unsigned mp = (5 * doy + 2) / 153;
    *day = doy - (153 * mp + 2) / 5 + 1;
    *month = mp < 10 ? mp + 3 : mp - 9;
    *year = (int64_t)yoe + era * 400 + (*month <= 2);
}

static const struct {
    const char *name;
    int64_t nanos;
} units[] = {
    {"ns", 1},       {"us", 1000}, {"\xc2\xb5s", 1000}, {"\xce\xbcs", 1000},
    {"ms", 1000000}, {"s", NANOS}, {"m", 60 * NANOS},   {"h", 3600 * NANOS},
};

/* The unit at the front of s (letters up to a digit or '.'), 0 when unknown. */
static int64_t take_unit(struct sz_slice *s)
{
    size_t n = 0;
    while (n < s->n && !digit(s->p[n]) && s->p[n] != '.')
        n++;
    struct sz_slice name = sz_sub(*s, 0, n);
    *s = sz_from(*s, n);
    for (size_t i = 0; i < SZ_COUNT(units); i++)
        if (sz_eq(name, sz_cstr(units[i].name)))
            return units[i].nanos;
    return 0;
}

/* One "number unit"; adds to *total (nanoseconds, at most 2^63). */
static int take_part(struct sz_slice *s, uint64_t *total)
{
    uint64_t whole = 0, fraction = 0;
    double scale = 1;
    size_t digits = 0;
    for (; s->n > 0 && digit(s->p[0]); *s = sz_from(*s, 1), digits++)
        if (__builtin_mul_overflow(whole, 10, &whole) || (whole += (uint64_t)(s->p[0] - '0')) > (UINT64_C(1) << 63))
            return -ERANGE;
    if (s->n > 0 && s->p[0] == '.') {
        for (*s = sz_from(*s, 1); s->n > 0 && digit(s->p[0]); *s = sz_from(*s, 1), digits++)
            if (fraction <= (UINT64_C(1) << 59)) { /* further digits are below a nanosecond */
                fraction = fraction * 10 + (uint64_t)(s->p[0] - '0');
                scale *= 10;
            }
    }
    int64_t unit = digits == 0 || s->n == 0 ? 0 : take_unit(s);
    if (unit == 0)
        return -EINVAL;
    if (__builtin_mul_overflow(whole, (uint64_t)unit, &whole))
        return -ERANGE;
    whole += (uint64_t)((double)fraction * ((double)unit / scale));
    if (__builtin_add_overflow(*total, whole, total) || *total > (UINT64_C(1) << 63))
        return -ERANGE;
    return 0;
}

int sz_duration_parse(struct sz_slice s, int64_t *nanos)
{
    bool negative = s.n > 0 && s.p[0] == '-';
    uint64_t total = 0;
    if (s.n > 0 && (s.p[0] == '-' || s.p[0] == '+'))
        s = sz_from(s, 1);
    if (sz_eq(s, SZ_S("0"))) {
        *nanos = 0;
        return 0;
    }
    if (s.n == 0)
        return -EINVAL;
    while (s.n > 0) {
        int err = take_part(&s, &total);
        if (err != 0)
            return err;
    }
    if (!negative && total > INT64_MAX)
        return -ERANGE;
    *nanos = negative ? (int64_t)(0 - total) : (int64_t)total;
    return 0;
}

/* n digits at s[at] as a number, -1 when they are none. */
static int number(struct sz_slice s, size_t at, size_t n)
{
    int v = 0;
    if (at + n > s.n)
        return -1;
    for (size_t i = at; i < at + n; i++) {
        if (!digit(s.p[i]))
            return -1;
        v = v * 10 + (s.p[i] - '0');
    }
    return v;
}

static bool is(struct sz_slice s, size_t at, char c)
{
    return at < s.n && s.p[at] == c;
}

static int days_in(int year, int month)
{
    static const int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
    return month == 2 && leap ? 29 : days[month - 1];
}

/* "Z" or "+hh:mm", the whole rest. */
static int parse_zone(struct sz_slice s, int64_t *seconds)
{
    *seconds = 0;
    if (sz_eq(s, SZ_S("Z")))
        return 0;
    int h = number(s, 1, 2), m = number(s, 4, 2);
    if (s.n != 6 || (s.p[0] != '+' && s.p[0] != '-') || s.p[3] != ':' || h < 0 || h > 24 || m < 0 || m > 60)
        return -EINVAL;
    *seconds = (h * 60 + m) * 60 * (s.p[0] == '-' ? -1 : 1);
    return 0;
}

int sz_timestamp_parse(struct sz_slice s, int64_t *sec, int32_t *nano)
{
    int y = number(s, 0, 4), mo = number(s, 5, 2), d = number(s, 8, 2);
    int h = number(s, 11, 2), mi = number(s, 14, 2), se = number(s, 17, 2);
    if (y < 0 || !is(s, 4, '-') || !is(s, 7, '-') || !is(s, 10, 'T') || !is(s, 13, ':') || !is(s, 16, ':') || mo < 1 ||
        mo > 12 || d < 1 || d > days_in(y, mo) || h < 0 || h > 23 || mi < 0 || mi > 59 || se < 0 || se > 59)
        return -EINVAL;
    size_t at = 19;
    int64_t zone, scale = NANOS, fraction = 0;
    if ((is(s, at, '.') || is(s, at, ',')) && number(s, at + 1, 1) >= 0)
        for (at++; number(s, at, 1) >= 0; at++)
            if (scale > 1) {
                scale /= 10;
                fraction += number(s, at, 1) * scale;
            }
    if (parse_zone(sz_from(s, at), &zone) != 0)
        return -EINVAL;
    *sec = sz_days_from_civil(y, (unsigned)mo, (unsigned)d) * 86400 + h * 3600 + mi * 60 + se - zone;
    *nano = (int32_t)fraction;
    return 0;
}

/* ".5", ".123456789" or nothing. */
static void fraction_text(int64_t nano, char out[12])
{
    out[0] = '\0';
    if (nano == 0)
        return;
    snprintf(out, 12, ".%09d", (int)nano);
    for (size_t n = 10; n > 1 && out[n - 1] == '0'; n--)
        out[n - 1] = '\0';
}

struct sz_slice sz_timestamp_text(int64_t sec, int32_t nano, struct sz_pool *pool)
{
    int64_t days = sec >= 0 ? sec / 86400 : -((-sec + 86399) / 86400), left = sec - days * 86400, year;
    unsigned month, day;
    char fraction[12];
    sz_civil_from_days(days, &year, &month, &day);
    fraction_text(nano, fraction);
    return sz_pool_printf(pool, "%04d-%02u-%02uT%02d:%02d:%02d%sZ", (int)year, month, day, (int)(left / 3600),
                          (int)(left / 60 % 60), (int)(left % 60), fraction);
}

struct sz_slice sz_duration_text(int64_t nanos, struct sz_pool *pool)
{
    uint64_t n = nanos < 0 ? 0 - (uint64_t)nanos : (uint64_t)nanos;
    char fraction[12];
    fraction_text((int64_t)(n % (uint64_t)NANOS), fraction);
    return sz_pool_printf(pool, "%s%llu%ss", nanos < 0 ? "-" : "", (unsigned long long)(n / (uint64_t)NANOS), fraction);
}

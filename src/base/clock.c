/*
 * The only place, beside the loop, that asks the system for the time, and the writing of
 * wall time for people.  The calendar is worked out here because gmtime_r takes glibc's
 * time zone lock, which every loop thread would meet in its access lines.
 */
#include "subzero/time.h"

#include <time.h>

#include "subzero/base.h"

static int64_t read_us(clockid_t id)
{
    struct timespec ts;
    SZ_ASSERT(clock_gettime(id, &ts) == 0);
    return (int64_t)ts.tv_sec * 1000000 + ts.tv_nsec / 1000;
}

struct sz_mono sz_mono_read(void)
{
    int64_t us = read_us(CLOCK_MONOTONIC);
    return (struct sz_mono){us > 0 ? us : 1}; /* the first microsecond after boot must not look unset */
}

struct sz_wall sz_wall_read(void)
{
    return (struct sz_wall){read_us(CLOCK_REALTIME)};
}

struct date {
    int64_t year;
    unsigned month, day;
};

/*
 * Days since 1970-01-01 to a Gregorian date.  Years are counted from March, so that the
 * leap day is the last one of its year and every month before it has a fixed start.
 */
static struct date date_of(int64_t days)
{
    days += 719468; /* 0000-03-01 */
    int64_t era = (days >= 0 ? days : days - 146096) / 146097;
    unsigned in_era = (unsigned)(days - era * 146097);
    unsigned year = (in_era - in_era / 1460 + in_era / 36524 - in_era / 146096) / 365;
    unsigned in_year = in_era - (365 * year + year / 4 - year / 100);
    unsigned from_march = (5 * in_year + 2) / 153;
    struct date d;
    d.day = in_year - (153 * from_march + 2) / 5 + 1;
    d.month = from_march < 10 ? from_march + 3 : from_march - 9;
    d.year = (int64_t)year + era * 400 + (d.month <= 2);
    return d;
}

static char *put(char *out, unsigned value, int width)
{
    for (int i = width - 1; i >= 0; i--) {
        out[i] = (char)('0' + value % 10);
        value /= 10;
    }
    return out + width;
}

static char *put_fraction(char *out, unsigned micro, int digits)
{
    if (digits == 0)
        return out;
    *out++ = '.';
    if (digits <= 3)
        return put(out, micro / 1000, 3);
    out = put(out, micro, 6);
    return digits <= 6 ? out : put(out, 0, 3); /* nine digits: the clock gives no more than six */
}

int sz_wall_format(struct sz_wall t, int digits, char out[32])
{
    /* RFC 3339 has years 0000 to 9999 only. */
    const int64_t first = -62167219200, last = 253402300799;
    int64_t sec = sz_wall_seconds(t);
    unsigned micro = (unsigned)(t.us - sec * 1000000);
    if (sec < first || sec > last) {
        sec = sec < first ? first : last;
        micro = sec == first ? 0 : 999999;
    }
    int64_t days = (sec - first) / 86400 - 719528;
    unsigned in_day = (unsigned)(sec - days * 86400);
    struct date d = date_of(days);
    char *p = put(out, (unsigned)d.year, 4);
    *p++ = '-';
    p = put(p, d.month, 2);
    *p++ = '-';
    p = put(p, d.day, 2);
    *p++ = 'T';
    p = put(p, in_day / 3600, 2);
    *p++ = ':';
    p = put(p, in_day / 60 % 60, 2);
    *p++ = ':';
    p = put(p, in_day % 60, 2);
    p = put_fraction(p, micro, digits);
    *p++ = 'Z';
    *p = '\0';
    return (int)(p - out);
}

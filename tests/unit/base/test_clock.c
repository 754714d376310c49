/* clock.c: the calendar against libc's, the ends of time, the units. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <time.h>

#include "subzero/base.h"
#include "subzero/time.h"

Test(clock, ends_of_time_stay_four_digits)
{
    char out[32];
    static const struct {
        int64_t us;
        const char *text;
    } rows[] = {
        {INT64_MAX, "9999-12-31T23:59:59.999999Z"},
        {INT64_MIN, "0000-01-01T00:00:00.000000Z"},
        {-1, "1969-12-31T23:59:59.999999Z"},
        {0, "1970-01-01T00:00:00.000000Z"},
        {951782399999999, "2000-02-28T23:59:59.999999Z"},
        {951782400000000, "2000-02-29T00:00:00.000000Z"},
        {4107542400000000, "2100-03-01T00:00:00.000000Z"},
    };
    for (size_t i = 0; i < SZ_COUNT(rows); i++) {
        int n = sz_wall_format((struct sz_wall){rows[i].us}, 6, out);
        cr_expect_str_eq(out, rows[i].text);
        cr_expect_eq((size_t)n, strlen(out));
    }
}

Test(clock, fractions)
{
    static const struct {
        int digits;
        const char *text;
    } rows[] = {{0, "2026-11-30T19:55:01Z"},
                {3, "2026-11-30T19:55:01.987Z"},
                {6, "2026-11-30T19:55:01.987654Z"},
                {9, "2026-11-30T19:55:01.987654000Z"}};
    char out[32];
    for (size_t i = 0; i < SZ_COUNT(rows); i++) {
        sz_wall_format((struct sz_wall){1796068501987654}, rows[i].digits, out);
        cr_expect_str_eq(out, rows[i].text);
    }
}

Test(clock, agrees_with_libc_for_four_thousand_years)
{
    for (int64_t day = -719528; day < 800000; day += 17) {
        int64_t sec = day * 86400 + (day * 7919 % 86400 + 86400) % 86400;
        time_t t = (time_t)sec;
        struct tm tm;
        cr_assert_not_null(gmtime_r(&t, &tm));
        char want[64], got[32];
        snprintf(want, sizeof(want), "%04d-%02d-%02dT%02d:%02d:%02dZ", tm.tm_year + 1900, tm.tm_mon + 1, tm.tm_mday,
                 tm.tm_hour, tm.tm_min, tm.tm_sec);
        sz_wall_format((struct sz_wall){sec * 1000000 + 999999}, 0, got);
        cr_assert_str_eq(got, want);
    }
}

Test(clock, durations_saturate_and_seconds_floor)
{
    cr_expect_eq(sz_after((struct sz_mono){INT64_MAX - 5}, SZ_US(6)).us, INT64_MAX);
    cr_expect_eq(sz_after((struct sz_mono){10}, SZ_MS(-1)).us, -990);
    cr_expect_eq(sz_after(SZ_NEVER, SZ_SEC(1)).us, INT64_MAX);
    cr_expect_eq(sz_wall_seconds((struct sz_wall){-1}), -1);
    cr_expect_eq(sz_wall_seconds((struct sz_wall){-1000000}), -1);
    cr_expect_eq(sz_wall_seconds((struct sz_wall){-1000001}), -2);
    cr_expect_eq(sz_wall_seconds((struct sz_wall){1999999}), 1);
}

Test(clock, monotonic_never_reads_zero)
{
    struct sz_mono a = sz_mono_read(), b = sz_mono_read();
    cr_expect_gt(a.us, 0);
    cr_expect_geq(b.us, a.us);
    cr_expect_gt(sz_wall_read().us, INT64_C(1700000000000000));
}

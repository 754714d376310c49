/* http_retry.c: what is tried again, and when. */
#include <criterion/criterion.h>

#include "fga/http_client.h"

TestSuite(http_retry);

static struct sz_http_try a_try(enum sz_http_result result, int status)
{
    return (struct sz_http_try){.result = result,
                                .status = status,
                                .made = 1,
                                .allowed = 3,
                                .now = {1000000000},
                                .deadline = {1000000000 + SZ_SEC(60).us}};
}

Test(http_retry, what_may_pass)
{
    static const int yes[] = {429, 500, 502, 503, 504}, no[] = {200, 204, 304, 400, 401, 403, 404, 418, 501, 505};
    static const enum sz_http_result results[SZ_HTTP_RESULTS] = {
        [SZ_HTTP_REFUSED] = 1, [SZ_HTTP_RESOLVE] = 1, [SZ_HTTP_TIMEOUT] = 1, [SZ_HTTP_TRUNCATED] = 1};
    struct sz_mono at;
    struct sz_http_try t;
    for (size_t i = 0; i < SZ_COUNT(yes); i++) {
        t = a_try(SZ_HTTP_ANSWERED, yes[i]);
        cr_expect(sz_http_retry(&t, 0, &at), "%d", yes[i]);
    }
    for (size_t i = 0; i < SZ_COUNT(no); i++) {
        t = a_try(SZ_HTTP_ANSWERED, no[i]);
        cr_expect(!sz_http_retry(&t, 0, &at), "%d", no[i]);
    }
    for (int i = 1; i < SZ_HTTP_RESULTS; i++) {
        t = a_try((enum sz_http_result)i, 0);
        cr_expect_eq(sz_http_retry(&t, 0, &at), results[i] != 0, "%s", sz_http_result_name(t.result));
    }
}

Test(http_retry, tries_are_counted)
{
    struct sz_mono at;
    for (unsigned made = 1; made < 10; made++) {
        struct sz_http_try t = a_try(SZ_HTTP_REFUSED, 0);
        t.made = made;
        cr_expect_eq(sz_http_retry(&t, 0, &at), made <= t.allowed, "%u", made);
    }
    struct sz_http_try t = a_try(SZ_HTTP_REFUSED, 0);
    t.allowed = 0;
    cr_expect(!sz_http_retry(&t, 0, &at));
}

Test(http_retry, pauses_double_and_are_cut_at_random)
{
    static const int64_t most_ms[] = {50, 100, 200, 400, 800, 1600, 2000, 2000, 2000};
    for (unsigned i = 0; i < SZ_COUNT(most_ms); i++) {
        struct sz_http_try t = a_try(SZ_HTTP_REFUSED, 0);
        int64_t least = INT64_MAX, most = 0;
        t.made = i + 1;
        t.allowed = 255;
        for (uint64_t random = 0; random < 100000; random++) {
            struct sz_mono at;
            cr_assert(sz_http_retry(&t, random * 977, &at));
            int64_t pause = sz_between(t.now, at).us;
            least = pause < least ? pause : least;
            most = pause > most ? pause : most;
        }
        cr_expect_eq(most_ms[i] * 500, least, "%u: %ld", i, (long)least);
        cr_expect(most <= most_ms[i] * 1000 && most > most_ms[i] * 980, "%u: %ld", i, (long)most);
    }
}

Test(http_retry, nothing_beyond_the_deadline)
{
    struct sz_mono at;
    struct sz_http_try t = a_try(SZ_HTTP_ANSWERED, 503);
    t.retry_after = SZ_SEC(30);
    cr_expect(sz_http_retry(&t, 0, &at));
    cr_expect_eq(at.us, t.now.us + SZ_SEC(30).us);
    t.retry_after = SZ_SEC(60);
    cr_expect(!sz_http_retry(&t, 0, &at));
    t.retry_after = SZ_SEC(86400);
    cr_expect(!sz_http_retry(&t, 0, &at));
    t.retry_after = SZ_US(1); /* less than our own pause, which holds */
    cr_expect(sz_http_retry(&t, 0, &at));
    cr_expect_eq(at.us, t.now.us + SZ_MS(25).us);
    t.deadline = sz_after(t.now, SZ_MS(25));
    cr_expect(!sz_http_retry(&t, 0, &at));
    t.deadline = t.now;
    cr_expect(!sz_http_retry(&t, 0, &at));
    t.deadline = SZ_NEVER;
    cr_expect(sz_http_retry(&t, UINT64_MAX, &at));
}

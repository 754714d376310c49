/* http_fields.c: finding fields in an answer, and Retry-After. */
#include <criterion/criterion.h>

#include "fga/http_client.h"

TestSuite(http_fields);

Test(http_fields, found_by_name_in_any_case)
{
    struct sz_http_answer a = {.head = SZ_S("Content-Type: text/plain\r\nX-Empty:\r\nx-twice: one\r\nX-Twice: two\r\n"
                                            "X-Blank:\t  padded \t\r\nno colon here\r\n: nameless\r\nX-Last: end\r\n"
                                            "X-Colon: a:b\r\n\r\n")};
    static const char *const cases[][2] = {{"content-type", "text/plain"},
                                           {"CONTENT-TYPE", "text/plain"},
                                           {"X-Twice", "one"},
                                           {"x-blank", "padded"},
                                           {"X-Last", "end"},
                                           {"x-colon", "a:b"},
                                           {"x-empty", ""}};
    for (size_t i = 0; i < SZ_COUNT(cases); i++) {
        struct sz_slice v = sz_http_answer_field(&a, sz_cstr(cases[i][0]));
        cr_expect_not_null(v.p, "%s", cases[i][0]);
        cr_expect(sz_eq(v, sz_cstr(cases[i][1])), "%s: '%.*s'", cases[i][0], SZ_FMT(v));
    }
    static const char *const absent[] = {"", "content", "content-typ", "no colon here", "nameless", "X-Last: end"};
    for (size_t i = 0; i < SZ_COUNT(absent); i++)
        cr_expect_null(sz_http_answer_field(&a, sz_cstr(absent[i])).p, "%s", absent[i]);
    a.head = SZ_NONE;
    cr_expect_null(sz_http_answer_field(&a, SZ_S("x-last")).p);
}

Test(http_fields, retry_after_in_both_forms_and_in_none)
{
    struct sz_wall now = {INT64_C(784111777) * 1000000}; /* Sun, 06 Nov 1994 08:49:37 GMT */
    static const struct {
        const char *value;
        int64_t seconds;
    } cases[] = {
        {"0", 0},
        {"1", 1},
        {"120", 120},
        {"86400", 86400},
        {"86401", 86400},
        {"99999999999999999999999", 0},
        {"9223372036854775807", 86400},
        {"-1", 0},
        {"1.5", 0},
        {"1 ", 0},
        {"soon", 0},
        {"", 0},
        {"Sun, 06 Nov 1994 08:49:47 GMT", 10},
        {"Sunday, 06-Nov-94 08:49:47 GMT", 10},
        {"Sun Nov  6 08:49:47 1994", 10},
        {"Sun, 06 Nov 1994 08:49:37 GMT", 0},
        {"Sun, 06 Nov 1994 08:00:00 GMT", 0},
        {"Mon, 06 Nov 2023 08:00:00 GMT", 86400},
        {"Sun, 99 Nov 1994 08:49:47 GMT", 0},
        {"Sun, 06 Nov 1994 08:49:47 GMT and much more than fits into it, so it is none", 0},
    };
    for (size_t i = 0; i < SZ_COUNT(cases); i++)
        cr_expect_eq(sz_http_retry_after(sz_cstr(cases[i].value), now).us, cases[i].seconds * 1000000, "%s: %ld",
                     cases[i].value, (long)sz_http_retry_after(sz_cstr(cases[i].value), now).us);
    cr_expect_eq(sz_http_retry_after(SZ_NONE, now).us, 0);
}

Test(http_fields, rate_limit_reset_is_seconds_or_a_moment)
{
    const struct sz_wall now = {INT64_C(1800000000) * 1000000};
    static const struct {
        const char *value;
        int64_t seconds;
    } cases[] = {{"1", 1},          {"1800", 1800},    {"1801", 0},       {"0", 0},
                 {"1800000007", 7}, {"1800001801", 0}, {"1799999999", 0}, {"1800000000", 0},
                 {"x", 0},          {"-5", 0},         {"", 0},           {"99999999999999999999", 0}};
    for (size_t i = 0; i < SZ_COUNT(cases); i++)
        cr_expect_eq(sz_http_rate_reset(sz_cstr(cases[i].value), now).us, cases[i].seconds * 1000000, "%s",
                     cases[i].value);
}

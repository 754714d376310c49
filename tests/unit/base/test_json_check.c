/* json_check.c: what it refuses beyond the grammar, its bounds, and where it points. */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>

#include "subzero/crypto.h"

Test(json_check, refuses_and_points_at_the_place)
{
    static const struct {
        struct sz_slice text;
        size_t at;
    } rows[] = {
        {SZ_NONE, 0},
        {SZ_S(""), 0},
        {SZ_S("  "), 2},
        {SZ_S("\xEF\xBB\xBF{}"), 0},
        {SZ_S("{} {}"), 3},
        {SZ_S("{}\0"), 2},
        {SZ_S("1\f"), 1},
        {SZ_S("{\"a\":1,}"), 7},
        {SZ_S("[1,]"), 3},
        {SZ_S("[1 2]"), 3},
        {SZ_S("[1}"), 2},
        {SZ_S("{\"a\" 1}"), 5},
        {SZ_S("{a:1}"), 1},
        {SZ_S("01"), 1},
        {SZ_S("-"), 1},
        {SZ_S("1."), 2},
        {SZ_S("1e+"), 3},
        {SZ_S("+1"), 0},
        {SZ_S("truth"), 0},
        {SZ_S("NaN"), 0},
        {SZ_S("\"a\nb\""), 2},
        {SZ_S("\"\\x\""), 2},
        {SZ_S("\"\\u12g4\""), 5},
        {SZ_S("\"\\u12"), 5},
        {SZ_S("\"abc"), 4},
        {SZ_S("\"\\"), 2},
        {SZ_S("\"\xC0\xAF\""), 1},
        {SZ_S("\"\\ud800\""), 2},
        {SZ_S("\"\\udc00\""), 2},
        {SZ_S("\"\\ud800\\ud800\""), 2},
        {SZ_S("\"\\udbff\\u0041\""), 2},
        {SZ_S("\"\\ud800\\n\""), 2},
        {SZ_S("\"\\udc00\\ud800\""), 2},
        {SZ_S("{\"a\\u0000b\":1}"), 4},
        {SZ_S("{\"x\":{\"\\u0000\":1}}"), 8},
        {SZ_S("[\"\\u0000\",{\"\\u0000\":1}]"), 13},
    };
    for (size_t i = 0; i < SZ_COUNT(rows); i++) {
        size_t at = 999;
        cr_expect_eq(sz_json_check(rows[i].text, 8, &at), -EINVAL, "%.*s", SZ_FMT(rows[i].text));
        cr_expect_eq(at, rows[i].at, "%.*s: %zu, not %zu", SZ_FMT(rows[i].text), at, rows[i].at);
    }
}

Test(json_check, accepts)
{
    static const char *const good[] = {
        "{}",
        "[]",
        " [ ] ",
        "null",
        "-0",
        "-0.0e-00",
        "1E+9",
        "\"\"",
        "\"\\ud83d\\udd12\"",
        "\"\\u0000\"",
        "{\"a\":[{},[],{\"b\":[1,2,{\"c\":null}]}],\"d\":false}\r\n\t ",
        "[\"\\uD83D\\uDD12\",\"\x7F\",\"\\/\"]",
        "{\"\":0}",
        "[[[[[[[[]]]]]]]]",
        "[{\"a\":{\"b\":[]}},true]",
    };
    for (size_t i = 0; i < SZ_COUNT(good); i++) {
        size_t at;
        cr_expect_eq(sz_json_check(sz_cstr(good[i]), 8, &at), 0, "%s at %zu", good[i], at);
    }
}

Test(json_check, depth_is_bounded)
{
    enum { BIG = 100000 };
    char *text = sz_xmalloc(2 * BIG);
    memset(text, '[', BIG);
    memset(text + BIG, ']', BIG);
    size_t at;
    cr_expect_eq(sz_json_check(sz_slice(text, 2 * BIG), UINT32_MAX, &at), -EINVAL);
    cr_expect_eq(at, 2048);
    cr_expect_eq(sz_json_check(sz_slice(text + BIG - 2048, 4096), UINT32_MAX, &at), 0);
    cr_expect_eq(sz_json_check(sz_slice(text + BIG - 9, 18), 8, &at), -EINVAL);
    cr_expect_eq(sz_json_check(sz_slice(text + BIG - 8, 16), 8, &at), 0);
    cr_expect_eq(sz_json_check(SZ_S("[]"), 0, &at), -EINVAL);
    cr_expect_eq(sz_json_check(SZ_S("1"), 0, &at), 0);
    free(text);
}

/* Alternating containers across the words of the bit set: a bit kept from a closed level would show. */
Test(json_check, kinds_of_nesting_are_remembered)
{
    struct sz_buf b = {0};
    for (int i = 0; i < 300; i++)
        sz_buf_adds(&b, i % 3 == 0 ? SZ_S("[[{}],") : SZ_S("{\"k\":[],\"n\":"));
    sz_buf_adds(&b, SZ_S("0"));
    for (int i = 299; i >= 0; i--)
        sz_buf_adds(&b, i % 3 == 0 ? SZ_S("]") : SZ_S("}"));
    size_t at;
    cr_expect_eq(sz_json_check(sz_buf_slice(&b), 400, &at), 0);
    b.p[b.n - 1] = '}';
    cr_expect_eq(sz_json_check(sz_buf_slice(&b), 400, &at), -EINVAL);
    cr_expect_eq(at, b.n - 1);
    sz_buf_fini(&b);
}

/* Every prefix and every one-byte change of a text is read inside its bounds (the sanitizer watches). */
Test(json_check, stays_inside_truncated_and_damaged_text)
{
    static const char text[] = "{\"a\\u00e9\":[1.5e-3,true,\"\\ud83d\\udd12\",{\"b\":null}],\"c\":\"\xE2\x82\xAC\"}";
    for (size_t n = 0; n < sizeof(text) - 1; n++) {
        char *copy = sz_xmalloc(n);
        memcpy(copy, text, n);
        size_t at;
        cr_assert_eq(sz_json_check(sz_slice(copy, n), 8, &at), -EINVAL);
        cr_assert_leq(at, n);
        for (unsigned c = 0; n > 0 && c < 256; c++) {
            copy[n - 1] = (char)c;
            if (sz_json_check(sz_slice(copy, n), 8, &at) != 0)
                cr_assert_leq(at, n);
        }
        free(copy);
    }
}

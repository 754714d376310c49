/* buf.c: limits, and that nothing a client sends leaves a JSON string. */
#include <criterion/criterion.h>
#include <jansson.h>

#include "subzero/base.h"

Test(buf, what_does_not_fit_is_dropped_whole_and_ends_it)
{
    struct sz_buf b = {.limit = 10};
    sz_buf_adds(&b, SZ_S("12345678"));
    sz_buf_adds(&b, SZ_S("abc"));
    cr_expect(b.overflow);
    sz_buf_adds(&b, SZ_S("x")); /* would fit: still ignored, or the text would have a hole */
    sz_buf_printf(&b, "y");
    sz_buf_json(&b, SZ_S("z"));
    cr_expect(sz_eq(sz_buf_slice(&b), SZ_S("12345678")));
    sz_buf_fini(&b);
    cr_expect_null(b.p);
    cr_expect_eq(b.n, 0);
    cr_expect_not(b.overflow);
}

Test(buf, exactly_the_limit_fits)
{
    struct sz_buf b = {.limit = 8};
    sz_buf_printf(&b, "%s", "12345678");
    cr_expect_not(b.overflow);
    cr_expect_eq(b.n, 8);
    sz_buf_printf(&b, "%s", "");
    cr_expect_not(b.overflow);
    sz_buf_printf(&b, "!");
    cr_expect(b.overflow);
    cr_expect(sz_eq(sz_buf_slice(&b), SZ_S("12345678")));
    sz_buf_fini(&b);
}

Test(buf, absurd_sizes_overflow_rather_than_wrap)
{
    struct sz_buf b = {0};
    sz_buf_add(&b, "x", 1);
    sz_buf_add(&b, "x", SIZE_MAX - 1);
    cr_expect(b.overflow);
    cr_expect_eq(b.n, 1);
    sz_buf_fini(&b);
}

Test(buf, printf_grows)
{
    struct sz_buf b = {0};
    cr_expect_eq(sz_buf_slice(&b).n, 0);
    cr_expect_not_null(sz_buf_slice(&b).p);
    for (int i = 0; i < 1000; i++)
        sz_buf_printf(&b, "%03d", i);
    cr_assert_eq(b.n, 3000);
    for (int i = 0; i < 1000; i++) {
        char want[4];
        snprintf(want, sizeof(want), "%03d", i);
        cr_assert_eq(memcmp(b.p + 3 * i, want, 3), 0);
    }
    sz_buf_fini(&b);
}

Test(buf, json_escapes)
{
    static const struct {
        struct sz_slice in;
        const char *out;
    } rows[] = {
        {SZ_S("plain"), "\"plain\""},
        {SZ_S(""), "\"\""},
        {SZ_NONE, "\"\""},
        {SZ_S("a\"b\\c"), "\"a\\\"b\\\\c\""},
        {SZ_S("\r\n\t\b"), "\"\\r\\n\\t\\u0008\""},
        {SZ_S("a\0b"), "\"a\\u0000b\""},
        {SZ_S("\x1b[2J\x7f"), "\"\\u001b[2J\\u007f\""},
        {SZ_S("\xC2\x9B"), "\"\\u009b\""}, /* C1 CSI steers terminals */
        {SZ_S("\xC2\xA0\xC3\xA9"), "\"\xC2\xA0\xC3\xA9\""},
        {SZ_S("\xFFx\xC0\xAF"), "\"\\ufffdx\\ufffd\\ufffd\""},
        {SZ_S("\xED\xA0\x80"), "\"\\ufffd\\ufffd\\ufffd\""},
        {SZ_S("x\xF0\x9F\x94"), "\"x\\ufffd\\ufffd\\ufffd\""},
    };
    for (size_t i = 0; i < SZ_COUNT(rows); i++) {
        struct sz_buf b = {0};
        sz_buf_json(&b, rows[i].in);
        cr_expect(sz_eq(sz_buf_slice(&b), sz_cstr(rows[i].out)), "row %zu: %.*s", i, SZ_FMT(sz_buf_slice(&b)));
        sz_buf_fini(&b);
    }
}

Test(buf, json_of_any_two_bytes_is_one_string)
{
    for (unsigned a = 0; a < 256; a++) {
        for (unsigned c = 0; c < 256; c++) {
            char in[3] = {'"', (char)a, (char)c};
            struct sz_buf b = {0};
            sz_buf_json(&b, sz_slice(in, 3));
            json_t *v = json_loadb(b.p, b.n, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);
            cr_assert(json_is_string(v), "%u %u: %.*s", a, c, SZ_FMT(sz_buf_slice(&b)));
            cr_assert_null(memchr(b.p, '\n', b.n));
            json_decref(v);
            sz_buf_fini(&b);
        }
    }
}

Test(buf, json_is_cut_at_a_character_and_says_so)
{
    static const struct {
        struct sz_slice in;
        size_t max;
        const char *out;
    } rows[] = {
        {SZ_S("12345678"), 8, "\"12345678\""},
        {SZ_S("123456789"), 8, "\"12345\xE2\x80\xA6\""},
        {SZ_S("\0\0"), 12, "\"\\u0000\\u0000\""},
        {SZ_S("\0\0"), 11, "\"\\u0000\xE2\x80\xA6\""},
        {SZ_S("\0"), 5, "\"\xE2\x80\xA6\""},
        {SZ_S("abc\xE2\x82\xAC"), 6, "\"abc\xE2\x82\xAC\""},
        {SZ_S("abc\xE2\x82\xAC!"), 6, "\"abc\xE2\x80\xA6\""},
        {SZ_S("ab\xE2\x82\xAC!!"), 6, "\"ab\xE2\x80\xA6\""}, /* not a byte of the euro sign */
        {SZ_S("\xFF\xFF"), 11, "\"\\ufffd\xE2\x80\xA6\""},
        {SZ_S("abcd"), 3, "\"\xE2\x80\xA6\""},
        {SZ_S("abc"), 3, "\"abc\""},
        {SZ_NONE, 3, "\"\""},
    };
    for (size_t i = 0; i < SZ_COUNT(rows); i++) {
        struct sz_buf b = {0};
        sz_buf_json_cut(&b, rows[i].in, rows[i].max);
        cr_expect(sz_eq(sz_buf_slice(&b), sz_cstr(rows[i].out)), "row %zu: %.*s", i, SZ_FMT(sz_buf_slice(&b)));
        sz_buf_fini(&b);
    }
}

Test(buf, numbers)
{
    static const struct {
        uint64_t value;
        const char *text;
    } rows[] = {{0, "0"}, {9, "9"}, {10, "10"}, {UINT64_MAX, "18446744073709551615"}};
    for (size_t i = 0; i < SZ_COUNT(rows); i++) {
        struct sz_buf b = {0};
        sz_buf_u64(&b, rows[i].value);
        cr_expect(sz_eq(sz_buf_slice(&b), sz_cstr(rows[i].text)));
        sz_buf_fini(&b);
    }
}

/* On memory of its caller it grows to that and no further. */
Test(buf, stands_on_an_array)
{
    char room[16];
    struct sz_buf b = SZ_BUF_ON(room);
    sz_buf_add(&b, "0123456789", 10);
    sz_buf_add(&b, "abcde", 5);
    cr_expect(sz_eq(sz_buf_slice(&b), SZ_S("0123456789abcde")));
    cr_expect_eq(b.p, room);
    cr_expect_not(b.overflow);
    sz_buf_add(&b, "f", 1);
    cr_expect(b.overflow);
    cr_expect_eq(b.n, 15);
    cr_expect_eq(b.p, room);
}

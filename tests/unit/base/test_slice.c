/* slice.c: what a peer can do to a split, a number, a comparison. */
#include <criterion/criterion.h>
#include <errno.h>

#include "subzero/base.h"

Test(slice, numbers_refuse_everything_but_digits)
{
    static const char *const bad[] = {"", "-1", "+1", " 1", "1 ", "0x10", "1e3", "99999999999999999999x", "\xC2\xB2"};
    for (size_t i = 0; i < SZ_COUNT(bad); i++) {
        uint64_t out = 7;
        cr_expect_eq(sz_parse_u64(sz_cstr(bad[i]), UINT64_MAX, &out), -EINVAL, "%s", bad[i]);
        cr_expect_eq(out, 7);
    }
    uint64_t out = 7;
    cr_expect_eq(sz_parse_u64(SZ_NONE, 10, &out), -EINVAL);
    cr_expect_eq(sz_parse_u64(SZ_S("1\0002"), 1000, &out), -EINVAL);
}

Test(slice, numbers_keep_their_bound)
{
    static const struct {
        const char *text;
        uint64_t max;
        int rc;
        uint64_t value;
    } rows[] = {
        {"18446744073709551615", UINT64_MAX, 0, UINT64_MAX},
        {"18446744073709551616", UINT64_MAX, -ERANGE, 0},
        {"99999999999999999999999999", UINT64_MAX, -ERANGE, 0},
        {"18446744073709551619", UINT64_MAX, -ERANGE, 0},
        {"0", 0, 0, 0},
        {"1", 0, -ERANGE, 0},
        {"65535", 65535, 0, 65535},
        {"65536", 65535, -ERANGE, 0},
        {"0000000000000000000000000000000000042", 42, 0, 42},
    };
    for (size_t i = 0; i < SZ_COUNT(rows); i++) {
        uint64_t out = 0;
        cr_expect_eq(sz_parse_u64(sz_cstr(rows[i].text), rows[i].max, &out), rows[i].rc, "%s", rows[i].text);
        cr_expect_eq(out, rows[i].value, "%s", rows[i].text);
    }
}

static size_t split_all(struct sz_slice s, struct sz_slice *fields, size_t max)
{
    size_t n = 0;
    struct sz_slice field;
    while (sz_split(&s, ',', &field)) {
        cr_assert_lt(n, max);
        cr_assert_not_null(field.p);
        fields[n++] = field;
    }
    cr_assert_null(field.p);
    return n;
}

Test(slice, split_gives_every_field_once)
{
    static const struct {
        const char *text;
        size_t n;
        const char *fields[4];
    } rows[] = {
        {"", 1, {""}},
        {",", 2, {"", ""}},
        {"a", 1, {"a"}},
        {"a,,b", 3, {"a", "", "b"}},
        {",a,", 3, {"", "a", ""}},
        {"a,b,c,d", 4, {"a", "b", "c", "d"}},
    };
    struct sz_slice fields[4];
    for (size_t i = 0; i < SZ_COUNT(rows); i++) {
        cr_assert_eq(split_all(sz_cstr(rows[i].text), fields, 4), rows[i].n, "%s", rows[i].text);
        for (size_t k = 0; k < rows[i].n; k++)
            cr_expect(sz_eq(fields[k], sz_cstr(rows[i].fields[k])), "%s: %zu", rows[i].text, k);
    }
    cr_expect_eq(split_all(SZ_NONE, fields, 4), 0);
}

Test(slice, case_folds_in_ascii_alone)
{
    cr_expect(sz_ieq(SZ_S("Content-Length"), SZ_S("cONTENT-lENGTH")));
    cr_expect_not(sz_ieq(SZ_S("@[`{"), SZ_S("`{@[")));      /* neighbours of the letters */
    cr_expect_not(sz_ieq(SZ_S("\xC9"), SZ_S("\xE9")));      /* Latin-1 E with acute */
    cr_expect_not(sz_ieq(SZ_S("K"), SZ_S("\xE2\x84\xAA"))); /* KELVIN SIGN */
    cr_expect_not(sz_ieq(SZ_S("ab"), SZ_S("abc")));
    cr_expect(sz_ieq(SZ_NONE, SZ_S("")));
    cr_expect_not(sz_ieq(SZ_S("a\0b"), SZ_S("a\0c")));
}

Test(slice, order_is_memcmps_and_shorter_first)
{
    cr_expect_lt(sz_cmp(SZ_S("a"), SZ_S("ab")), 0);
    cr_expect_gt(sz_cmp(SZ_S("b"), SZ_S("ab")), 0);
    cr_expect_gt(sz_cmp(SZ_S("\xFF"), SZ_S("a")), 0);
    cr_expect_eq(sz_cmp(SZ_NONE, SZ_S("")), 0);
    cr_expect_lt(sz_cmp(SZ_NONE, SZ_S("x")), 0);
}

Test(slice, trim_takes_blanks_of_http_alone)
{
    cr_expect(sz_eq(sz_trim(SZ_S(" \t x y\t ")), SZ_S("x y")));
    cr_expect_eq(sz_trim(SZ_S(" \t ")).n, 0);
    cr_expect(sz_eq(sz_trim(SZ_S("\nx\v")), SZ_S("\nx\v")));
    cr_expect_eq(sz_trim(SZ_NONE).n, 0);
}

Test(slice, parts_never_leave_the_slice)
{
    struct sz_slice s = SZ_S("abc");
    cr_expect(sz_eq(sz_from(s, 1), SZ_S("bc")));
    cr_expect_eq(sz_from(s, 3).n, 0);
    cr_expect_eq(sz_from(s, SIZE_MAX).n, 0);
    cr_expect(sz_eq(sz_sub(s, 1, SIZE_MAX), SZ_S("bc")));
    cr_expect_eq(sz_sub(SZ_NONE, 5, 5).n, 0);
    cr_expect_eq(sz_find_byte(s, 'c'), 2);
    cr_expect_eq(sz_find_byte(s, '\0'), -1);
    cr_expect_eq(sz_find_byte(SZ_NONE, 'a'), -1);
    cr_expect(sz_starts_with(s, SZ_NONE));
    cr_expect_not(sz_starts_with(SZ_S("ab"), s));
}

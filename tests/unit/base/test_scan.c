/* Byte classes: every byte at every place of runs around the vector's width, against the grammar said byte by byte. */
#include <criterion/criterion.h>

#include "subzero/scan.h"

static bool is_alnum(unsigned c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bool is_tchar(unsigned c)
{
    return is_alnum(c) || (c != 0 && strchr("!#$%&'*+-.^_`|~", (int)c) != NULL);
}

static bool is_value(unsigned c)
{
    return c == '\t' || (c >= 0x20 && c != 0x7f);
}

static bool is_printable(unsigned c)
{
    return c >= 0x20 && c <= 0x7e;
}

static bool is_target(unsigned c)
{
    return c > 0x20 && c != 0x7f;
}

static bool is_b64(unsigned c)
{
    return is_alnum(c) || (c != 0 && strchr("-._~+/", (int)c) != NULL);
}

static bool is_json_plain(unsigned c)
{
    return is_printable(c) && c != '"' && c != '\\';
}

static void check(bool (*scan)(struct sz_slice s), bool (*is)(unsigned c))
{
    for (size_t n = 1; n <= 50; n++) {
        char *run = sz_xmalloc(n); /* exact, so that reading past the end shows */
        for (size_t at = 0; at < n; at++) {
            for (unsigned c = 0; c < 256; c++) {
                memset(run, 'x', n);
                run[at] = (char)c;
                cr_assert_eq(scan(sz_slice(run, n)), is(c), "byte 0x%02x at %zu of %zu", c, at, n);
            }
        }
        free(run);
    }
}

Test(scan, classes_hold_at_every_place)
{
    check(sz_scan_token, is_tchar);
    check(sz_scan_field_value, is_value);
    check(sz_scan_printable, is_printable);
    check(sz_scan_target, is_target);
    check(sz_scan_json_plain, is_json_plain);
}

Test(scan, b64token)
{
    for (unsigned c = 0; c < 256; c++) {
        char run[20];
        memset(run, 'x', sizeof(run));
        run[7] = (char)c;
        cr_assert_eq(sz_scan_b64token(sz_slice(run, sizeof(run))), is_b64(c), "0x%02x", c);
    }
    cr_assert(sz_scan_b64token(SZ_S("a==")));
    cr_assert_not(sz_scan_b64token(SZ_S("a=b")));
    cr_assert_not(sz_scan_b64token(SZ_S("==")));
}

Test(scan, empty_runs)
{
    cr_assert_not(sz_scan_token(SZ_S("")));
    cr_assert_not(sz_scan_target(SZ_S("")));
    cr_assert_not(sz_scan_b64token(SZ_S("")));
    cr_assert(sz_scan_field_value(SZ_S("")));
    cr_assert(sz_scan_json_plain(SZ_S("")));
}

#include "edge/chunked.h"

#include <criterion/criterion.h>
#include <string.h>

#include "subzero/base.h"

/* Feeds the body in pieces of `step` bytes; the result of the last call, the decoded bytes in out. */
static ssize_t decode(const char *body, size_t n, size_t step, char *out, size_t *out_n)
{
    struct phr_chunked_decoder decoder = {.consume_trailer = 1};
    ssize_t rc = -2;
    *out_n = 0;
    for (size_t at = 0; at < n && rc == -2; at += step) {
        char piece[512];
        size_t size = n - at < step ? n - at : step;
        memcpy(piece, body + at, size);
        rc = phr_decode_chunked(&decoder, piece, &size);
        memcpy(out + *out_n, piece, size);
        *out_n += size;
    }
    return rc;
}

Test(chunked, malformed_bodies_are_refused_however_they_arrive)
{
    static const struct sz_slice bad[] = {
        SZ_S("0x5\r\nhello\r\n0\r\n\r\n"),
        SZ_S("5 \r\nhello\r\n0\r\n\r\n"),
        SZ_S(" 5\r\nhello\r\n0\r\n\r\n"),
        SZ_S("+5\r\nhello\r\n0\r\n\r\n"),
        SZ_S("0_5\r\nhello\r\n0\r\n\r\n"),
        SZ_S("\r\nhello\r\n0\r\n\r\n"),
        SZ_S("5\nhello\r\n0\r\n\r\n"),
        SZ_S("5\rhello\r\n0\r\n\r\n"),
        SZ_S("5\r\nhelloX0\r\n\r\n"),
        SZ_S("5\r\nhello\n0\r\n\r\n"),
        SZ_S("5;\r\nhello\r\n0\r\n\r\n"),
        SZ_S("5;a\nb\r\nhello\r\n0\r\n\r\n"),
        SZ_S("5;a=\"\r\nhello\r\n0\r\n\r\n"),
        SZ_S("5;a=\r\nhello\r\n0\r\n\r\n"),
        SZ_S("5;a=\"b\"c\r\nhello\r\n0\r\n\r\n"),
        SZ_S("5;a=\"\\\x01\"\r\nhello\r\n0\r\n\r\n"),
        SZ_S("1000000000000000\r\nhello"),
        SZ_S("5\r\nhello\r\n0\r\nX y\r\n\r\n"),
        SZ_S("5\r\nhello\r\n0\r\n: y\r\n\r\n"),
        SZ_S("5\r\nhello\r\n0\r\n X: y\r\n\r\n"),
        SZ_S("5\r\nhello\r\n0\n\n"),
        SZ_S("5\r\nhello\r\n0\r\n\n"),
        SZ_S("\0005\r\nhello\r\n0\r\n\r\n"),
    };
    for (size_t i = 0; i < SZ_COUNT(bad); i++) {
        for (size_t step = 1; step <= bad[i].n; step++) {
            char out[512];
            size_t n;
            cr_expect_eq(decode(bad[i].p, bad[i].n, step, out, &n), -1, "row %zu, pieces of %zu", i, step);
        }
    }
}

Test(chunked, good_bodies_are_decoded_however_they_arrive)
{
    static const struct sz_slice good[] = {
        SZ_S("5\r\nhello\r\n6\r\n world\r\n0\r\n\r\n"),
        SZ_S("005\r\nhello\r\n6;a;b=c;d=\"e\\\"f\"\r\n world\r\n00\r\n\r\n"),
        SZ_S("b\r\nhello world\r\n0;last\r\nX-T: 1\r\nY:\r\n\r\n"),
        SZ_S("B; blahblah; blah\r\nhello world\r\n0\r\n\r\n"),
    };
    for (size_t i = 0; i < SZ_COUNT(good); i++) {
        for (size_t step = 1; step <= good[i].n; step++) {
            char out[512];
            size_t n;
            cr_expect_eq(decode(good[i].p, good[i].n, step, out, &n), 0, "row %zu, pieces of %zu", i, step);
            cr_expect(sz_eq(sz_slice(out, n), SZ_S("hello world")), "row %zu, pieces of %zu", i, step);
        }
    }
}

Test(chunked, what_follows_the_body_stays_behind_its_data)
{
    struct phr_chunked_decoder decoder = {.consume_trailer = 1};
    char buf[] = "1\r\nx\r\n0\r\n\r\nGET /next";
    size_t n = sizeof(buf) - 1;
    ssize_t rest = phr_decode_chunked(&decoder, buf, &n);
    cr_assert_eq(rest, (ssize_t)strlen("GET /next"));
    cr_expect_eq(n, 1);
    cr_expect(sz_eq(sz_slice(buf, n + (size_t)rest), SZ_S("xGET /next")));
}

Test(chunked, an_unfinished_body_asks_for_more)
{
    static const char body[] = "5\r\nhello\r\n0\r\nX: y\r\n\r\n";
    for (size_t n = 1; n < sizeof(body) - 1; n++) {
        char out[512];
        size_t out_n;
        cr_expect_eq(decode(body, n, n, out, &out_n), -2, "%zu bytes", n);
    }
}

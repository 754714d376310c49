#include "edge/head_check.h"

#include <criterion/criterion.h>

static int check(const char *raw, struct sz_head *head, const char **why)
{
    static const struct sz_head_limits limits = {.bytes = 1024, .fields = 8};
    return sz_head_check(sz_cstr(raw), &limits, head, why);
}

Test(head_check, what_can_be_read_in_two_ways_is_refused)
{
    static const char *const bad[] = {
        "GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nContent-Length: 5\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip, chunked\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: identity\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding:\r\n\r\n",
        "GET / HTTP/1.0\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\nContent-Length: +5\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\nContent-Length:\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 9223372036854775808\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 00000000000000000005\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n",
        "GET / HTTP/1.1\r\n\r\n",
        "GET / HTTP/1.1\r\nHost:\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a b\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: u@a\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a/b\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a:\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a:65536\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: [::1\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: [::1]x\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: []\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a%2\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\n X: folded\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\n\tX: folded\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\nX: y\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\nX: a\rb\r\n\r\n",
        "GET / HTTP/1.1\r\nHost : a\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\n: x\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\nX y: x\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\nX\x80: x\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\nX: a\x01\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\nX: a\x7f\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\nno colon\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer a\r\nauthorization: Basic b\r\n\r\n",
        "\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n",
        "G@T / HTTP/1.1\r\nHost: a\r\n\r\n",
        " GET / HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET  / HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET / x HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET /\tx HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET / HTTP/1.2\r\nHost: a\r\n\r\n",
        "GET / http/1.1\r\nHost: a\r\n\r\n",
        "GET / HTTP/2.0\r\nHost: a\r\n\r\n",
        "GET /\r\n\r\n",
        "GET * HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET a:443 HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET ftp://a/ HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET http:///x HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET http://u@a/x HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\n",
        "GET / HTTP/1.1",
        "",
    };
    struct sz_head head;
    const char *why;
    for (size_t i = 0; i < SZ_COUNT(bad); i++) {
        cr_expect_eq(check(bad[i], &head, &why), SZ_HEAD_BAD, "%s", bad[i]);
        cr_expect_neq(why, NULL);
    }
}

Test(head_check, a_nul_byte_is_refused_wherever_it_stands)
{
    static const char raw[] = "GET /x HTTP/1.1\r\nHost: a\r\nName: value\r\n\r\n";
    static const struct sz_head_limits limits = {.bytes = 1024, .fields = 8};
    for (size_t i = 0; i < sizeof(raw) - 5; i++) {
        char copy[sizeof(raw)];
        struct sz_head head;
        const char *why;
        memcpy(copy, raw, sizeof(raw));
        copy[i] = '\0';
        cr_expect_neq(sz_head_check(sz_slice(copy, sizeof(raw) - 1), &limits, &head, &why), 0, "at %zu", i);
    }
}

Test(head_check, a_plain_head_is_taken_apart)
{
    struct sz_head head;
    const char *why;
    cr_assert_eq(check("POST /a?b HTTP/1.1\r\nHost: Api.Example:8080\r\nContent-Length: 007\r\nX-A:\t v \t\r\n\r\nrest",
                       &head, &why),
                 0);
    cr_expect(sz_eq(head.method, SZ_S("POST")));
    cr_expect(sz_eq(head.target, SZ_S("/a?b")));
    cr_expect(sz_eq(head.authority, SZ_S("Api.Example:8080")));
    cr_expect_eq(head.content_length, 7);
    cr_expect(head.has_length && !head.chunked && !head.http_1_0 && !head.absolute);
    cr_expect_eq(head.fields_n, 3);
    cr_expect(sz_eq(head.fields[2].value, SZ_S("v")));
    cr_expect_eq(head.length,
                 strlen("POST /a?b HTTP/1.1\r\nHost: Api.Example:8080\r\nContent-Length: 007\r\nX-A:\t v \t\r\n\r\n"));
}

Test(head_check, the_authority_of_an_absolute_form_replaces_host)
{
    static const struct {
        const char *raw, *target, *authority;
    } rows[] = {
        {"GET http://b.example/x?y HTTP/1.1\r\nHost: a.example\r\n\r\n", "/x?y", "b.example"},
        {"GET HTTPS://[::1]:8443 HTTP/1.1\r\nHost: a.example\r\n\r\n", "/", "[::1]:8443"},
        {"OPTIONS http://b.example HTTP/1.1\r\nHost: a.example\r\n\r\n", "*", "b.example"},
        {"OPTIONS * HTTP/1.1\r\nHost: a.example\r\n\r\n", "*", "a.example"},
        {"GET http://b.example?y HTTP/1.1\r\nHost: a.example\r\n\r\n", "?y", "b.example"},
        {"GET / HTTP/1.0\r\n\r\n", "/", ""},
    };
    for (size_t i = 0; i < SZ_COUNT(rows); i++) {
        struct sz_head head;
        const char *why = "";
        cr_expect_eq(check(rows[i].raw, &head, &why), 0, "%s: %s", rows[i].raw, why);
        cr_expect(sz_eq(head.target, sz_cstr(rows[i].target)), "%s", rows[i].raw);
        cr_expect(sz_eq(head.authority, sz_cstr(rows[i].authority)), "%s", rows[i].raw);
    }
}

static int check_long(int lines, int value)
{
    static const struct sz_head_limits limits = {.bytes = 1024, .fields = 8};
    struct sz_buf raw = {0};
    struct sz_head head;
    const char *why;
    sz_buf_printf(&raw, "GET / HTTP/1.1\r\nHost: a\r\n");
    for (int i = 0; i < lines; i++)
        sz_buf_printf(&raw, "X: %0*d\r\n", value, 0);
    sz_buf_printf(&raw, "\r\n");
    int rc = sz_head_check(sz_buf_slice(&raw), &limits, &head, &why);
    sz_buf_fini(&raw);
    return rc;
}

Test(head_check, size_and_count_have_their_own_answer)
{
    cr_expect_eq(check_long(7, 1), 0);
    cr_expect_eq(check_long(8, 1), SZ_HEAD_TOO_LARGE);
    cr_expect_eq(check_long(1, 900), 0);
    cr_expect_eq(check_long(1, 1100), SZ_HEAD_TOO_LARGE);
}

Test(head_check, only_a_whole_websocket_handshake_is_one)
{
#define WS  "Host: a\r\nConnection: keep-alive, Upgrade\r\nUpgrade: WebSocket\r\n"
#define KEY "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
    static const struct {
        const char *raw;
        bool is;
    } rows[] = {
        {"GET / HTTP/1.1\r\n" WS KEY "Sec-WebSocket-Version: 13\r\n\r\n", true},
        {"GET / HTTP/1.1\r\n" WS KEY "Sec-WebSocket-Version: 8\r\n\r\n", false},
        {"GET / HTTP/1.1\r\n" WS KEY "\r\n", false},
        {"GET / HTTP/1.1\r\n" WS KEY KEY "Sec-WebSocket-Version: 13\r\n\r\n", false},
        {"GET / HTTP/1.1\r\n" WS "Sec-WebSocket-Key: dGhl\r\nSec-WebSocket-Version: 13\r\n\r\n", false},
        {"POST / HTTP/1.1\r\n" WS KEY "Sec-WebSocket-Version: 13\r\n\r\n", false},
        {"GET / HTTP/1.0\r\n" WS KEY "Sec-WebSocket-Version: 13\r\n\r\n", false},
        {"GET / HTTP/1.1\r\n" WS KEY "Sec-WebSocket-Version: 13\r\nContent-Length: 0\r\n\r\n", false},
        {"GET / HTTP/1.1\r\n" WS "Upgrade: h2c\r\n" KEY "Sec-WebSocket-Version: 13\r\n\r\n", false},
        {"GET / HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\n" KEY "Sec-WebSocket-Version: 13\r\n\r\n", false},
    };
    for (size_t i = 0; i < SZ_COUNT(rows); i++) {
        struct sz_head head;
        const char *why = "";
        cr_assert_eq(check(rows[i].raw, &head, &why), 0, "%s", why);
        cr_expect_eq(sz_head_is_websocket(&head), rows[i].is, "%s", rows[i].raw);
    }
}

Test(head_check, the_host_of_an_authority)
{
    static const struct {
        const char *authority, *host;
    } rows[] = {{"", ""}, {"a", "a"}, {"a:1", "a"}, {"[::1]", "::1"}, {"[::1]:1", "::1"}, {"[::1", ""}, {"[]", ""}};
    for (size_t i = 0; i < SZ_COUNT(rows); i++)
        cr_expect(sz_eq(sz_head_host(sz_cstr(rows[i].authority)), sz_cstr(rows[i].host)), "%s", rows[i].authority);
}

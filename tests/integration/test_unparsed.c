/*
 * Requests that never become one: the HTTP library gives up on their heads or bodies.  Each is refused as any other
 * request is: problem document, request id, access line, count; and its connection ends.
 */
#include "integration/harness.h"

#include <stdio.h>
#include <stdlib.h>

#include "fake/client.h"

static const char yaml[] = "listen: [{address: \"127.0.0.1:{port}\"}]\n"
                           "admin: {address: \"127.0.0.1:{admin}\"}\n"
                           "workers: 1\n"
                           "limits: {request_body: 1kB}\n"
                           "upstreams: {up: {urls: [\"http://127.0.0.1:{upstream}\"]}}\n"
                           "routes: [{id: all, match: {path: \"/*\"}, public: true, upstream: up}]\n";

static struct gateway g;
static struct upstream *up;

static void setup(void)
{
    up = upstream_start(NULL);
    cr_assert(gateway_start(&g, yaml, upstream_port(up)));
}

static void teardown(void)
{
    stop_gateway(&g);
    upstream_stop(&up);
    scratch_remove();
}

static unsigned lines_with(const char *text)
{
    size_t n;
    char *log = file_read(g.proc.log, &n);
    unsigned count = 0;
    for (const char *at = log; (at = strstr(at, text)) != NULL; at++)
        count++;
    free(log);
    return count;
}

/* A whole problem document, whose request id stands in the access log. */
static void expect_problem(struct sz_slice bytes, int status, const char *reason)
{
    struct http1 c;
    struct http1_response r = {0};
    char value[256], line[300], what[64];

    snprintf(what, sizeof(what), "%.*s", (int)(bytes.n < 60 ? bytes.n : 60), bytes.p);
    cr_assert(http1_open(&c, g.port));
    (void)http1_send(&c, bytes);
    int rc = http1_read(&c, "GET", SZ_SEC(10), &r);
    cr_expect_eq(rc, 0, "%s: %d", what, rc);
    expect_answer(&r, status, reason, what);
    cr_expect(http1_field(&r, "content-type", value, sizeof(value)) && strcmp(value, "application/problem+json") == 0);
    cr_expect(http1_field(&r, "cache-control", value, sizeof(value)) && strcmp(value, "no-store") == 0, "%s", what);
    snprintf(line, sizeof(line), "\"status\":%d", status);
    cr_expect_not_null(r.body.p == NULL ? NULL : strstr(r.body.p, line), "%s: %s", what, r.body.p);
    if (http1_field(&r, "x-request-id", value, sizeof(value))) {
        snprintf(line, sizeof(line), "\"%s\"", value);
        cr_expect(gateway_logged(&g, line), "%s: no access line", what);
    } else {
        cr_expect_fail("%s: no request id", what);
    }
    cr_expect(wire_closed_within(&c.wire, SZ_SEC(5)), "%s: stays open", what);
    http1_response_fini(&r);
    http1_close(&c);
}

static const struct sz_slice lines[] = {
    SZ_S("G@T\t/ HTTP/1.1\r\nHost: a\r\n\r\n"),
    SZ_S("GET  HTTP/1.1\r\nHost: a\r\n\r\n"),
    SZ_S("GET /\r\n\r\n"),
    SZ_S("GET / HTTP/2.0\r\nHost: a\r\n\r\n"),
    SZ_S("GET / HTTP/1.1 \r\nHost: a\r\n\r\n"),
    SZ_S("GET / HTTP/11.1\r\nHost: a\r\n\r\n"),
    SZ_S("GET / http/1.1\r\nHost: a\r\n\r\n"),
    SZ_S("GET\t/\tHTTP/1.1\r\nHost: a\r\n\r\n"),
    SZ_S("GET /\x01 HTTP/1.1\r\nHost: a\r\n\r\n"),
    SZ_S("GET /\0 HTTP/1.1\r\nHost: a\r\n\r\n"),
    SZ_S("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03 a TLS hello\r\n\r\n"),
    SZ_S("GET / HTTP/1.1\r\nHost : a\r\n\r\n"),
    SZ_S("GET / HTTP/1.1\r\n: a\r\n\r\n"),
    SZ_S("GET / HTTP/1.1\r\nHost: a\rb\r\n\r\n"),
    SZ_S("GET / HTTP/1.1\r\nHost: a\r\nx: \0\r\n\r\n"),
    SZ_S("GET / HTTP/1.1\r\nno colon\r\n\r\n"),
    SZ_S("PRI * HTTP/1.1\r\nHost: a\r\nx\r\n\r\n"),
    SZ_S("SSH-2.0-OpenSSH_9.2p1\r\n\r\n"),
};

Test(unparsed, heads_are_problems, .init = setup, .fini = teardown, .timeout = 60)
{
    for (size_t i = 0; i < SZ_COUNT(lines); i++)
        expect_problem(lines[i], 400, "bad_request");
    cr_expect_eq(gateway_metric(&g, "subzero_requests_total{route=\"none\",decision=\"deny\",reason=\"bad_request\"}"),
                 (double)SZ_COUNT(lines));
    cr_expect_eq(lines_with("\"reason\":\"bad_request\""), SZ_COUNT(lines));
    cr_expect_eq(upstream_count(up), 0);
}

Test(unparsed, heads_in_pieces_are_problems, .init = setup, .fini = teardown, .timeout = 60)
{
    struct http1 c;
    struct http1_response r = {0};
    cr_assert(http1_open(&c, g.port));
    for (const char *p = "GET / HTTP/1.1\r\nHost: a\r\nbad"; *p != '\0'; p++) {
        cr_assert(http1_send(&c, sz_slice(p, 1)));
        usleep(500);
    }
    cr_assert(http1_send(&c, SZ_S(" name: x\r\n\r\n")));
    cr_expect_eq(http1_read(&c, "GET", SZ_SEC(10), &r), 0);
    expect_answer(&r, 400, "bad_request", "in pieces");
    http1_response_fini(&r);
    http1_close(&c);
}

/* What was asked for before the offence is answered; what comes behind it is not looked at. */
Test(unparsed, head_behind_a_good_request, .init = setup, .fini = teardown, .timeout = 60)
{
    struct http1 c;
    struct http1_response r = {0};
    cr_assert(http1_open(&c, g.port));
    cr_assert(http1_send(&c, SZ_S("GET /a HTTP/1.1\r\nHost: a\r\n\r\nG@T\t/b HTTP/1.1\r\nHost: a\r\n\r\n"
                                  "GET /c HTTP/1.1\r\nHost: a\r\n\r\n")));
    cr_expect_eq(http1_read(&c, "GET", SZ_SEC(10), &r), 0);
    expect_answer(&r, 200, "", "the good one");
    cr_expect_eq(http1_read(&c, "GET", SZ_SEC(10), &r), 0);
    expect_answer(&r, 400, "bad_request", "the other");
    cr_expect(wire_closed_within(&c.wire, SZ_SEC(5)));
    cr_expect_eq(upstream_count(up), 1);
    http1_response_fini(&r);
    http1_close(&c);
}

Test(unparsed, heads_without_end_are_too_large, .init = setup, .fini = teardown, .timeout = 60)
{
    struct sz_buf many = {0}, endless = {0};

    sz_buf_printf(&many, "GET / HTTP/1.1\r\nHost: a\r\n");
    for (int i = 0; i < 150; i++)
        sz_buf_printf(&many, "x-%d: y\r\n", i);
    sz_buf_printf(&many, "\r\n");
    expect_problem(sz_buf_slice(&many), 431, "headers_too_large");
    sz_buf_printf(&endless, "GET / HTTP/1.1\r\nHost: a\r\n");
    while (endless.n < 500000)
        sz_buf_printf(&endless, "x: 0123456789012345678901234567890123456789\r\n");
    expect_problem(sz_buf_slice(&endless), 431, "headers_too_large");
    sz_buf_fini(&many);
    sz_buf_fini(&endless);
}

Test(unparsed, bodies_and_expectations_are_problems, .init = setup, .fini = teardown, .timeout = 60)
{
    expect_problem(SZ_S("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5000\r\n\r\n"), 413, "body_too_large");
    expect_problem(SZ_S("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5x\r\n\r\n"), 400, "bad_request");
    expect_problem(SZ_S("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0x1\r\n"), 400, "bad_request");
    expect_problem(SZ_S("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip\r\n\r\n"), 400, "bad_request");
    expect_problem(SZ_S("POST / HTTP/1.1\r\nHost: a\r\nExpect: tea\r\nContent-Length: 1\r\n\r\nx"), 417, "bad_request");
    cr_expect_eq(
        gateway_metric(&g, "subzero_requests_total{route=\"none\",decision=\"deny\",reason=\"body_too_large\"}"), 1);
    cr_expect_eq(gateway_metric(&g, "subzero_requests_in_progress"), 0);
}

/* A field of forbidden bytes over HTTP/2 ends its stream alone. */
Test(unparsed, fields_over_http2_are_problems, .init = setup, .fini = teardown, .timeout = 60)
{
    struct http2 c;
    static const struct h2_field bad[] = {H2_FIELD("x", "a\nb")};
    char id[256];

    cr_assert(h2_open(&c, g.port));
    const struct h2_response *r = h2_ask(&c, "GET", SZ_S("/"), NULL, bad, 1, SZ_NONE);
    expect_h2_answer(r, 400, "bad_request", "a line break in a value");
    cr_expect(h2_response_field(r, "x-request-id", id, sizeof(id)) && gateway_logged(&g, id), "no access line");
    expect_h2_answer(h2_ask(&c, "GET", SZ_S("/"), NULL, NULL, 0, SZ_NONE), 200, "", "the next one");
    h2_close(&c);
}

/* A line break, then silence, is what some old clients say at the end: no request, and nothing to record. */
Test(unparsed, a_parting_line_break_is_none, .init = setup, .fini = teardown, .timeout = 60)
{
    int fd = client_open(g.port);
    cr_assert(client_send(fd, SZ_S("\r\n\r\n")));
    cr_expect(client_closed_within(fd, 5000));
    close(fd);
    cr_expect_eq(lines_with("bad_request"), 0);
}

/* Whatever bytes: refused or left waiting, never passed on, and the gateway lives. */
Test(unparsed, random_heads_never_pass, .init = setup, .fini = teardown, .timeout = 120)
{
    static const char seed[] = "GET /x HTTP/1.1\r\nHost: gateway.test\r\nx: y\r\n\r\n";
    unsigned state = 1;

    for (int round = 0; round < 400; round++) {
        char bytes[sizeof(seed)];
        char answer[2048];
        bool closed;
        memcpy(bytes, seed, sizeof(seed));
        for (int i = 0; i < 3; i++) {
            state = state * 1103515245 + 12345;
            bytes[(state >> 16) % 20] = (char)(state >> 8 & 31); /* a control character in the request line */
        }
        int fd = client_open(g.port);
        cr_assert_geq(fd, 0);
        client_send(fd, sz_slice(bytes, sizeof(seed) - 1));
        size_t n = client_read(fd, answer, sizeof(answer), 300, &closed);
        cr_expect(n == 0 || strncmp(answer, "HTTP/1.1 400", 12) == 0, "%.12s", answer);
        close(fd);
    }
    cr_expect_eq(upstream_count(up), 0);
}

/* The way to an upstream and back, through the real binary: what goes wrong first, then what arrives and what comes
 * back. */
#include "integration/harness.h"

#include <errno.h>
#include <stdlib.h>

#define ANSWER(text)           \
    {                          \
        text, sizeof(text) - 1 \
    }
#define OK      "HTTP/1.1 200 OK\r\n"
#define CHUNKED OK "Transfer-Encoding: chunked\r\n\r\n"

static const char yaml[] = "listen: [{address: \"127.0.0.1:{port}\"}]\n"
                           "admin: {address: \"127.0.0.1:{admin}\"}\n"
                           "workers: 1\n"
                           "log: {access: off}\n"
                           "upstreams:\n"
                           "  up:\n"
                           "    urls: [\"http://127.0.0.1:{upstream}\"]\n"
                           "    timeouts: {connect: 500ms, first_byte: 400ms, idle: 400ms}\n"
                           "routes: [{id: all, match: {path: /*}, public: true, upstream: up}]\n";

static struct upstream *up;
static struct gateway gw;

static void setup(void)
{
    up = upstream_start(NULL);
    cr_assert(gateway_start(&gw, yaml, upstream_port(up)));
}

static void teardown(void)
{
    stop_gateway(&gw);
    upstream_stop(&up);
}

/* One request over a connection of its own; the rc of http1_read. */
static int ask(const char *method, struct http1_response *r)
{
    struct http1 c;

    cr_assert(http1_open(&c, gw.port));
    cr_assert(http1_printf(&c, "%s /x HTTP/1.1\r\nHost: h\r\n\r\n", method));
    int rc = http1_read(&c, method, SZ_SEC(5), r);
    http1_close(&c);
    return rc;
}

struct row {
    const char *name;
    struct upstream_script script;
    int rc; /* 0: a whole response; -EPIPE: cut off */
    int status;
    const char *reason; /* "": the upstream's own answer */
    size_t body_n;      /* with reason "" */
};

static const struct row faults[] = {
    {"closes at accept", {.fault_at = UPSTREAM_AT_ACCEPT, .fault = UPSTREAM_CLOSE}, 0, 502, "upstream_error", 0},
    /* The reset may come before or after the connection was seen to stand: unavailable or an error. */
    {"resets at accept", {.fault_at = UPSTREAM_AT_ACCEPT, .fault = UPSTREAM_RESET}, 0, 502, "", SIZE_MAX},
    {"hangs at accept", {.fault_at = UPSTREAM_AT_ACCEPT, .fault = UPSTREAM_HANG}, 0, 504, "upstream_timeout", 0},
    {"closes at the head", {.fault_at = UPSTREAM_AT_HEAD, .fault = UPSTREAM_CLOSE}, 0, 502, "upstream_error", 0},
    {"hangs at the head", {.fault_at = UPSTREAM_AT_HEAD, .fault = UPSTREAM_HANG}, 0, 504, "upstream_timeout", 0},
    {"cuts mid-head",
     {.stream = 100, .fault_at = UPSTREAM_AT_ANSWER, .after = 10, .fault = UPSTREAM_CLOSE},
     0,
     502,
     "upstream_error",
     0},
    {"hangs mid-head",
     {.stream = 100, .fault_at = UPSTREAM_AT_ANSWER, .after = 10, .fault = UPSTREAM_HANG},
     0,
     504,
     "upstream_timeout",
     0},
    {"drips its head for too long", {.drip = 1, .pause = {50000}}, 0, 504, "upstream_timeout", 0},
    {"cuts mid-body",
     {.stream = 1000000, .fault_at = UPSTREAM_AT_ANSWER, .after = 500000, .fault = UPSTREAM_CLOSE},
     -EPIPE,
     200,
     "",
     SIZE_MAX},
    {"hangs mid-body",
     {.stream = 1000000, .fault_at = UPSTREAM_AT_ANSWER, .after = 500000, .fault = UPSTREAM_HANG},
     -EPIPE,
     200,
     "",
     SIZE_MAX},
    {"promises too much", {.answer = ANSWER(OK "Content-Length: 9\r\n\r\nshort"), .close = true}, -EPIPE, 200, "", 5},
    {"garbage", {.answer = ANSWER("220 mail\r\n")}, 0, 502, "upstream_error", 0},
    {"HTTP/2", {.answer = ANSWER("HTTP/2 200\r\n\r\n")}, 0, 502, "upstream_error", 0},
    {"bare LF", {.answer = ANSWER("HTTP/1.1 200 OK\nContent-Length: 0\n\n")}, 0, 502, "upstream_error", 0},
    {"folded line", {.answer = ANSWER(OK "A: b\r\n c\r\nContent-Length: 0\r\n\r\n")}, 0, 502, "upstream_error", 0},
    {"CL and TE",
     {.answer = ANSWER(OK "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n")},
     0,
     502,
     "upstream_error",
     0},
    {"two CLs",
     {.answer = ANSWER(OK "Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello!")},
     0,
     502,
     "upstream_error",
     0},
    {"malformed CL", {.answer = ANSWER(OK "Content-Length: 0x5\r\n\r\nhello")}, 0, 502, "upstream_error", 0},
    {"unknown coding",
     {.answer = ANSWER(OK "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n")},
     0,
     502,
     "upstream_error",
     0},
    {"a 101 that nobody asked for",
     {.answer = ANSWER("HTTP/1.1 101 x\r\nUpgrade: h2c\r\nConnection: upgrade\r\n\r\n")},
     0,
     502,
     "upstream_error",
     0},
    {"bad chunk with the head", {.answer = ANSWER(CHUNKED "0x5\r\nhello\r\n0\r\n\r\n")}, 0, 502, "upstream_error", 0},
    {"bad chunk later",
     {.answer = ANSWER(CHUNKED "5\r\nhello\r\nzz\r\n"), .drip = sizeof(CHUNKED "5\r\nhello\r\n") - 1, .pause = {50000}},
     -EPIPE,
     200,
     "",
     5},
    {"chunks without an end", {.answer = ANSWER(CHUNKED "5\r\nhello\r\n"), .close = true}, -EPIPE, 200, "", 5},
};

static const struct row good[] = {
    {"plain", {.close = false}, 0, 200, "", 2},
    {"empty", {.answer = ANSWER("HTTP/1.1 404 Gone\r\nContent-Length: 0\r\n\r\n")}, 0, 404, "", 0},
    {"dripped", {.stream = 50, .drip = 8, .pause = {2000}}, 0, 200, "", 50},
    {"long", {.stream = 5000000}, 0, 200, "", 5000000},
    {"informational first",
     {.answer = ANSWER("HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 100 Continue\r\n\r\n" OK
                       "Content-Length: 2\r\n\r\nok")},
     0,
     200,
     "",
     2},
    {"chunked with extensions and trailers",
     {.answer = ANSWER(CHUNKED "2;a=b\r\nab\r\n00a\r\n0123456789\r\n0\r\nX-T: 1\r\n\r\n")},
     0,
     200,
     "",
     12},
    {"chunked and not 200",
     {.answer = ANSWER("HTTP/1.1 500 x\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n0\r\n\r\n")},
     0,
     500,
     "",
     2},
    {"until close", {.answer = ANSWER(OK "\r\nto the end"), .close = true}, 0, 200, "", 10},
    {"HTTP/1.0", {.answer = ANSWER("HTTP/1.0 200 OK\r\n\r\nto the end"), .close = true}, 0, 200, "", 10},
    {"surplus", {.answer = ANSWER(OK "Content-Length: 5\r\n\r\nhelloHTTP/1.1 200 OK\r\n\r\nevil")}, 0, 200, "", 5},
    {"204", {.answer = ANSWER("HTTP/1.1 204 No Content\r\n\r\n")}, 0, 204, "", 0},
    {"304", {.answer = ANSWER("HTTP/1.1 304 Not Modified\r\nContent-Length: 70\r\n\r\n")}, 0, 304, "", 0},
};

static void play_all(const struct row *rows, size_t n)
{
    static const struct upstream_script last = {.close = true};
    struct http1_response r = {0};

    for (size_t i = 0; i < n; i++) {
        upstream_play(up, &rows[i].script);
        int rc = ask("GET", &r);
        cr_expect_eq(rc, rows[i].rc, "%s: rc %d", rows[i].name, rc);
        expect_answer(&r, rows[i].status, rows[i].reason, rows[i].name);
        if (rows[i].reason[0] == '\0' && rows[i].body_n != SIZE_MAX)
            cr_expect_eq(r.body.n, rows[i].body_n, "%s: %zu bytes", rows[i].name, r.body.n);
        /* Whatever came before: the next request gets its own answer (and leaves no connection to the next row). */
        upstream_play(up, &last);
        cr_expect_eq(ask("GET", &r), 0, "after %s", rows[i].name);
        expect_answer(&r, 200, "", rows[i].name);
        cr_expect(sz_eq(sz_buf_slice(&r.body), SZ_S("ok")), "after %s: %.*s", rows[i].name, (int)r.body.n, r.body.p);
    }
    http1_response_fini(&r);
}

Test(proxy, faults_have_their_answers_and_stay_alone, .init = setup, .fini = teardown, .timeout = 120)
{
    play_all(faults, SZ_COUNT(faults));
}

Test(proxy, good_answers_come_through, .init = setup, .fini = teardown, .timeout = 60)
{
    play_all(good, SZ_COUNT(good));
}

Test(proxy, a_refused_connection_is_unavailable, .init = setup, .fini = teardown, .timeout = 60)
{
    struct http1_response r = {0};

    upstream_refuse(up);
    for (int i = 0; i < 5; i++) { /* the only url is never put aside */
        cr_expect_eq(ask("GET", &r), 0);
        expect_answer(&r, 502, "upstream_unavailable", "refused");
    }
    upstream_accept(up);
    cr_expect_eq(ask("GET", &r), 0);
    expect_answer(&r, 200, "", "accepted again");
    http1_response_fini(&r);
}

Test(proxy, fields_that_belong_to_a_connection_stay_there, .init = setup, .fini = teardown, .timeout = 60)
{
    static const struct upstream_script script = {
        .answer = ANSWER(OK "Connection: X-Hop, keep-alive\r\nX-Hop: 1\r\nKeep-Alive: timeout=9\r\n"
                            "Proxy-Authenticate: Basic\r\nTrailer: x\r\nUpgrade: h2c\r\nX-Request-Id: theirs\r\n"
                            "X-Subzero-Reason: allowed\r\nDate: yesterday\r\nX-Kept: 1\r\nx-kept: 2\r\n"
                            "Content-Length: 2\r\n\r\nok")};
    static const char *const gone[] = {"x-hop",   "keep-alive", "proxy-authenticate",
                                       "trailer", "upgrade",    "x-subzero-reason"};
    struct http1_response r = {0};
    char value[100];

    upstream_play(up, &script);
    cr_assert_eq(ask("GET", &r), 0);
    for (size_t i = 0; i < SZ_COUNT(gone); i++)
        cr_expect_eq(http1_field_count(&r, gone[i]), 0, "%s", gone[i]);
    cr_expect_eq(http1_field_count(&r, "x-kept"), 2);
    cr_expect_eq(http1_field_count(&r, "date"), 1);
    cr_expect_eq(http1_field_count(&r, "x-request-id"), 1);
    cr_expect(http1_field(&r, "x-request-id", value, sizeof(value)) && strcmp(value, "theirs") != 0);
    http1_response_fini(&r);
}

Test(proxy, a_head_request_gets_the_length_and_no_body, .init = setup, .fini = teardown, .timeout = 60)
{
    static const struct upstream_script script = {.answer = ANSWER(OK "Content-Length: 5\r\n\r\n")};
    struct http1_response r = {0};
    char value[20];

    upstream_play(up, &script);
    for (int i = 0; i < 2; i++) {
        cr_assert_eq(ask("HEAD", &r), 0);
        cr_expect(http1_field(&r, "content-length", value, sizeof(value)) && strcmp(value, "5") == 0);
        cr_expect_eq(r.body.n, 0);
    }
    cr_expect_eq(upstream_connections(up), 1, "the connection was kept");
    http1_response_fini(&r);
}

Test(proxy, bodies_arrive_whole_with_a_length, .init = setup, .fini = teardown, .timeout = 60)
{
    char *body = malloc(900001);
    struct http1_response r = {0};
    char value[20];

    memset(body, 'b', 900000);
    body[900000] = '\0';
    cr_expect_eq(http1_ask(gw.port, "POST", "/x", NULL, NULL, body, &r), 200);
    const struct upstream_request *request = upstream_at(up, 0);
    cr_assert(request != NULL && !request->broken);
    cr_expect_eq(request->body_n, 900000);
    upstream_clear(up);
    cr_expect_eq(
        http1_exchange(gw.port,
                       SZ_S("POST /x HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n"
                            "3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n"),
                       &r),
        200);
    request = upstream_at(up, 0);
    cr_assert_not_null(request);
    cr_expect(sz_eq(request->body, SZ_S("abcde")));
    cr_expect(upstream_field(request, "content-length", value, sizeof(value)) && strcmp(value, "5") == 0);
    cr_expect_eq(upstream_field_count(request, "transfer-encoding"), 0);
    upstream_clear(up);
    cr_expect_eq(http1_ask(gw.port, "POST", "/x", NULL, NULL, NULL, &r), 200);
    request = upstream_at(up, 0);
    cr_assert_not_null(request);
    cr_expect(upstream_field(request, "content-length", value, sizeof(value)) && strcmp(value, "0") == 0);
    http1_response_fini(&r);
    free(body);
}

/* A 413 before the end of the body is the answer, although the request could not be written to its end. */
Test(proxy, an_early_answer_counts, .init = setup, .fini = teardown, .timeout = 60)
{
    static const struct upstream_script script = {
        .answer = ANSWER("HTTP/1.1 413 Too much\r\nContent-Length: 3\r\nConnection: close\r\n\r\nbig"),
        .ignores_body = true,
        .close = true};
    char *body = malloc(900001);
    struct http1_response r = {0};

    memset(body, 'b', 900000);
    body[900000] = '\0';
    upstream_play(up, &script);
    int status = http1_ask(gw.port, "PUT", "/x", NULL, NULL, body, &r);
    cr_expect(status == 413 || status == 502, "%d", status); /* the upstream's close may destroy its own answer */
    http1_response_fini(&r);
    free(body);
}

Test(proxy, the_same_over_http2, .init = setup, .fini = teardown, .timeout = 120)
{
    static const struct h2_field get[] = {H2_FIELD(":method", "GET"), H2_FIELD(":scheme", "http"),
                                          H2_FIELD(":path", "/x"), H2_FIELD(":authority", "h")};
    struct http2 c;

    cr_assert(h2_open(&c, gw.port));
    for (size_t i = 0; i < SZ_COUNT(faults) + SZ_COUNT(good); i++) {
        const struct row *row = i < SZ_COUNT(faults) ? &faults[i] : &good[i - SZ_COUNT(faults)];
        upstream_play(up, &row->script);
        uint32_t stream = h2_headers(&c, get, SZ_COUNT(get), H2_END_STREAM);
        const struct h2_response *r = h2_wait(&c, stream, SZ_SEC(5));
        expect_h2_answer(r, row->status, row->reason, row->name);
        cr_expect(r->reset == (row->rc != 0) && r->ended == (row->rc == 0), "%s", row->name);
        if (row->reason[0] == '\0' && row->body_n != SIZE_MAX)
            cr_expect_eq(r->body.n, row->body_n, "%s: %zu bytes", row->name, r->body.n);
    }
    h2_close(&c);
}

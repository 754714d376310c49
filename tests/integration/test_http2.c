/* HTTP/2 requests are held to the rules of HTTP/1, and a client that only resets is not served for it. */
#include "integration/harness.h"

#define YAML                                                                                              \
    "listen:\n  - {address: \"127.0.0.1:{port}\", protocol: h2c}\n  - {address: \"127.0.0.1:{port2}\"}\n" \
    "admin: {address: \"127.0.0.1:{admin}\"}\n"                                                           \
    "workers: 1\n"                                                                                        \
    "limits: {request_head: 16KiB, headers: 50, request_body: 64kB, request_timeout: 1s}\n"               \
    "log: {access: off}\n"                                                                                \
    "upstreams:\n  up: {urls: [\"http://127.0.0.1:{upstream}\"]}\n"                                       \
    "routes:\n  - {id: all, match: {path: \"/*\"}, public: true, upstream: up}\n"

static struct gateway g;
static struct upstream *up;

static void setup(void)
{
    up = upstream_start(NULL);
    cr_assert(gateway_start(&g, YAML, upstream_port(up)));
}

static void teardown(void)
{
    stop_gateway(&g);
    upstream_stop(&up);
    scratch_remove();
}

#define METHOD    H2_FIELD(":method", "GET")
#define SCHEME    H2_FIELD(":scheme", "http")
#define AUTHORITY H2_FIELD(":authority", "gateway.test")
#define PATH      H2_FIELD(":path", "/x")

struct row {
    struct h2_field fields[8];
    int status; /* 0: a stream error or the end of the connection */
};

/* 400, a reset, or a closed connection: all are refusals; what counts is that nothing goes upstream. */
static void refused(const struct row *row, size_t at)
{
    struct http2 c;
    size_t n = 0;
    while (n < SZ_COUNT(row->fields) && row->fields[n].name.p != NULL)
        n++;
    cr_assert(h2_open(&c, g.port));
    uint32_t stream = h2_headers(&c, row->fields, n, H2_END_STREAM);
    const struct h2_response *r = h2_wait(&c, stream, SZ_SEC(5));
    bool ok = r == NULL || r->reset || c.closed || c.goaway || r->status == 400;
    cr_expect(ok, "row %zu: status %d", at, r == NULL ? 0 : r->status);
    h2_close(&c);
}

Test(http2, what_http1_could_not_say_is_refused, .init = setup, .fini = teardown, .timeout = 60)
{
    static const struct row rows[] = {
        {{METHOD, SCHEME, AUTHORITY, H2_FIELD(":path", "/p q")}, 400},
        {{METHOD, SCHEME, AUTHORITY, H2_FIELD(":path", "")}, 0},
        {{METHOD, SCHEME, AUTHORITY, H2_FIELD(":path", "http://evil/")}, 400},
        {{METHOD, SCHEME, AUTHORITY, H2_FIELD(":path", "x")}, 400},
        {{METHOD, SCHEME, AUTHORITY, H2_FIELD(":path", "*")}, 400},
        {{METHOD, SCHEME, AUTHORITY, H2_FIELD(":path", "/\r\nX: y")}, 400},
        {{H2_FIELD(":method", "G T"), SCHEME, AUTHORITY, PATH}, 400},
        {{METHOD, SCHEME, H2_FIELD(":authority", "u@gateway.test"), PATH}, 400},
        {{METHOD, SCHEME, H2_FIELD(":authority", "a b"), PATH}, 400},
        {{METHOD, SCHEME, PATH}, 400},
        {{METHOD, SCHEME, AUTHORITY, PATH, H2_FIELD("", "x")}, 400},
        {{METHOD, SCHEME, AUTHORITY, PATH, H2_FIELD("a b", "x")}, 400},
        {{METHOD, SCHEME, AUTHORITY, PATH, H2_FIELD("A", "x")}, 0},
        {{METHOD, SCHEME, AUTHORITY, PATH, H2_FIELD("a", "x\r\ny: z")}, 400},
        {{METHOD, SCHEME, AUTHORITY, PATH, H2_FIELD("connection", "close")}, 0},
        {{METHOD, SCHEME, AUTHORITY, PATH, H2_FIELD("transfer-encoding", "chunked")}, 0},
        {{METHOD, SCHEME, AUTHORITY, PATH, H2_FIELD("upgrade", "websocket")}, 400},
        {{METHOD, SCHEME, AUTHORITY, PATH, H2_FIELD("content-length", "3")}, 400},
        {{METHOD, SCHEME, AUTHORITY, PATH, H2_FIELD("authorization", "Bearer a"),
          H2_FIELD("authorization", "Bearer b")},
         400},
    };
    for (size_t i = 0; i < SZ_COUNT(rows); i++)
        refused(&rows[i], i);
    cr_expect_eq(upstream_count(up), 0);
}

Test(http2, cookie_crumbs_become_one_field, .init = setup, .fini = teardown, .timeout = 60)
{
    static const struct h2_field crumbs[] = {H2_FIELD("cookie", "a=1"), H2_FIELD("x-y", "z"),
                                             H2_FIELD("cookie", "b=2")};
    struct http2 c;
    char cookie[64];
    cr_assert(h2_open(&c, g.port));
    expect_h2_answer(h2_ask(&c, "GET", SZ_S("/x"), NULL, crumbs, SZ_COUNT(crumbs), SZ_NONE), 200, "", "crumbs");
    const struct upstream_request *request = upstream_at(up, 0);
    cr_assert_not_null(request);
    cr_expect_eq(upstream_field_count(request, "cookie"), 1);
    cr_expect(upstream_field(request, "cookie", cookie, sizeof(cookie)));
    cr_expect_str_eq(cookie, "a=1; b=2");
    h2_close(&c);
}

/* One long entry of the dynamic table, named thousands of times by one byte each (HPACK expansion). */
Test(http2, an_expanded_header_list_is_refused_before_it_is_copied, .init = setup, .fini = teardown, .timeout = 60)
{
    enum { TIMES = 20000 };
    static char value[3800];
    struct http2 c;
    struct sz_buf block = {0};
    memset(value, 'v', sizeof(value));
    const struct h2_field fields[] = {METHOD, SCHEME, AUTHORITY, PATH, {SZ_S("x-bomb"), {value, sizeof(value)}}};
    cr_assert(h2_open(&c, g.port));
    long before = gateway_status_kb(&g, "VmHWM");
    h2_encode(&c, fields, SZ_COUNT(fields), &block);
    for (int i = 0; i < TIMES; i++)
        sz_buf_add(&block, "\xbe", 1); /* index 62: the newest entry */
    cr_assert(h2_frame(&c, H2_HEADERS, H2_END_STREAM, 1, sz_sub(sz_buf_slice(&block), 0, 16000)));
    for (size_t at = 16000; at < block.n; at += 16000)
        h2_frame(&c, H2_CONTINUATION, at + 16000 >= block.n ? H2_END_HEADERS : 0, 1,
                 sz_sub(sz_buf_slice(&block), at, 16000));
    const struct h2_response *r = h2_wait(&c, 1, SZ_SEC(10));
    cr_expect(r == NULL || r->reset || c.closed || r->status == 431, "status %d", r == NULL ? 0 : r->status);
    cr_expect_eq(upstream_count(up), 0);
    cr_expect_lt(gateway_status_kb(&g, "VmHWM") - before, 64 * 1024);
    sz_buf_fini(&block);
    h2_close(&c);
}

Test(http2, a_client_that_only_resets_is_cut_and_nobody_waits_for_it, .init = setup, .fini = teardown, .timeout = 60)
{
    static const struct h2_field fields[] = {METHOD, SCHEME, AUTHORITY, PATH};
    struct http2 attacker, other;
    unsigned sent = 0;
    cr_assert(h2_open(&attacker, g.port));
    cr_assert(h2_open(&other, g.port));
    for (; sent < 5000; sent++) {
        uint32_t stream = h2_headers(&attacker, fields, SZ_COUNT(fields), H2_END_STREAM);
        if (stream == 0 || !h2_reset(&attacker, stream, 8))
            break;
    }
    cr_expect(h2_closed_within(&attacker, SZ_SEC(5)), "the connection is still served after %u resets", sent);
    expect_h2_answer(h2_ask(&other, "GET", SZ_S("/x"), NULL, NULL, 0, SZ_NONE), 200, "", "another client");
    cr_expect_eq(gateway_metric(&g, "subzero_http2_reset_connections_total"), 1);
    cr_expect_lt(upstream_connections(up), 200, "%u upstream connections", upstream_connections(up));
    h2_close(&attacker);
    h2_close(&other);
}

Test(http2, a_body_that_never_ends_does_not_hold_its_connection, .init = setup, .fini = teardown, .timeout = 60)
{
    static const struct h2_field fields[] = {H2_FIELD(":method", "POST"), SCHEME, AUTHORITY, PATH};
    struct http2 c;
    bool gone = false;
    cr_assert(h2_open(&c, g.port));
    uint32_t stream = h2_headers(&c, fields, SZ_COUNT(fields), 0);
    for (int i = 0; i < 40 && !gone; i++) { /* each frame pushes h2o's own timer on */
        gone = !h2_data(&c, stream, SZ_S("x"), 0);
        h2_read(&c, SZ_MS(100));
        gone = gone || c.closed;
    }
    cr_expect(gone, "still open after 4 s, request_timeout is 1 s");
    h2_close(&c);
}

Test(http2, bodies_beyond_the_limit_are_refused, .init = setup, .fini = teardown, .timeout = 60)
{
    static char body[70000];
    struct http2 c;
    cr_assert(h2_open(&c, g.port));
    const struct h2_response *r = h2_ask(&c, "POST", SZ_S("/x"), NULL, NULL, 0, sz_slice(body, sizeof(body)));
    cr_expect(r == NULL || r->reset || r->status == 413, "status %d", r == NULL ? 0 : r->status);
    cr_expect_eq(upstream_count(up), 0);
    h2_close(&c);
}

Test(http2, cleartext_is_mixed_by_prior_knowledge_but_never_upgraded, .init = setup, .fini = teardown, .timeout = 60)
{
    struct http2 c;
    struct http1_response r = {.status = 0};
    cr_assert(h2_open(&c, g.port2));
    expect_h2_answer(h2_ask(&c, "GET", SZ_S("/x"), NULL, NULL, 0, SZ_NONE), 200, "", "prior knowledge");
    h2_close(&c);
    cr_expect_eq(
        http1_ask(g.port2, "GET", "/x", NULL,
                  "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n", NULL,
                  &r),
        200);
    http1_response_fini(&r);
    cr_expect_eq(upstream_field_count(upstream_at(up, 1), "upgrade"), 0);
    cr_expect_eq(upstream_field_count(upstream_at(up, 1), "http2-settings"), 0);
}

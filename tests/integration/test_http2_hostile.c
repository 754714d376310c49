/* HTTP/2 clients that mean harm: frames that nobody sends by mistake. */
#include <sys/socket.h>

#include "integration/harness.h"

#define YAML                                                                                     \
    "listen:\n  - {address: \"127.0.0.1:{port}\"}\n"                                             \
    "admin: {address: \"127.0.0.1:{admin}\"}\n"                                                  \
    "workers: 1\n"                                                                               \
    "limits: {request_timeout: 2s, idle_timeout: 2s, max_in_flight: 60, buffered_bodies: 4MB}\n" \
    "log: {access: off}\n"                                                                       \
    "upstreams:\n  up: {urls: [\"http://127.0.0.1:{upstream}\"], timeouts: {idle: 2s}}\n"        \
    "routes:\n  - {id: all, match: {path: \"/up/*\"}, public: true, upstream: up}\n"

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

#define GET(path)                                                                                        \
    {                                                                                                    \
        H2_FIELD(":method", "GET"), H2_FIELD(":scheme", "http"), H2_FIELD(":authority", "gateway.test"), \
            H2_FIELD(":path", path)                                                                      \
    }
#define POST(path)                                                                                        \
    {                                                                                                     \
        H2_FIELD(":method", "POST"), H2_FIELD(":scheme", "http"), H2_FIELD(":authority", "gateway.test"), \
            H2_FIELD(":path", path)                                                                       \
    }

static struct sz_slice number(char out[6], uint16_t id, uint32_t value)
{
    const char bytes[] = {(char)(id >> 8),     (char)id,           (char)(value >> 24),
                          (char)(value >> 16), (char)(value >> 8), (char)value};
    memcpy(out, bytes, 6);
    return sz_slice(out, 6);
}

/* SETTINGS_INITIAL_WINDOW_SIZE: how much of each answer the client takes unasked. */
static bool take_only(struct http2 *c, uint32_t bytes)
{
    char payload[6];
    return h2_frame(c, H2_SETTINGS, 0, 0, number(payload, 4, bytes));
}

static bool widen(struct http2 *c, uint32_t stream, uint32_t bytes)
{
    char payload[6];
    return h2_frame(c, H2_WINDOW_UPDATE, 0, stream, sz_from(number(payload, 0, bytes), 2));
}

static void serves(const char *what)
{
    struct http2 c;
    cr_assert(h2_open(&c, g.port), "%s: nobody accepts", what);
    expect_h2_answer(h2_ask(&c, "GET", SZ_S("/up/x"), NULL, NULL, 0, SZ_NONE), 200, "", what);
    h2_close(&c);
}

Test(http2_hostile, unknown_frames_are_ignored_in_silence, .init = setup, .fini = teardown, .timeout = 60)
{
    struct http2 c;
    size_t n;
    cr_assert(h2_open(&c, g.port));
    for (int i = 0; i < 500; i++)
        cr_assert(h2_frame(&c, (uint8_t)(10 + i % 240), 0xff, (uint32_t)i, SZ_S("what is this")));
    expect_h2_answer(h2_ask(&c, "GET", SZ_S("/up/x"), NULL, NULL, 0, SZ_NONE), 200, "", "behind unknown frames");
    char *log = file_read(g.proc.log, &n);
    cr_expect_null(strstr(log, "frame"), "a client writes the log: %s", log);
    free(log);
    h2_close(&c);
}

/* The last bytes of an answer wait for the socket, and its stream's window, just used up, is opened. */
Test(http2_hostile, a_window_opened_behind_an_answer_harms_nobody, .init = setup, .fini = teardown, .timeout = 60)
{
    static const struct h2_field fields[] = GET("/nowhere");
    struct http2 c;
    int small = 4096;
    uint32_t last = 0;
    cr_assert(h2_open(&c, g.port));
    const struct h2_response *r = h2_ask(&c, "GET", SZ_S("/nowhere"), NULL, NULL, 0, SZ_NONE);
    cr_assert(r != NULL && r->status == 404);
    setsockopt(c.wire.fd, SOL_SOCKET, SO_RCVBUF, &small, sizeof(small));
    cr_assert(take_only(&c, (uint32_t)r->body.n));
    for (int i = 0; i < 20000; i++)
        last = h2_headers(&c, fields, SZ_COUNT(fields), H2_END_STREAM);
    for (uint32_t stream = last - 8000; stream <= last; stream += 2)
        (void)widen(&c, stream, 1);
    serves("another client");
    h2_close(&c);
}

Test(http2_hostile, trailers_join_no_header, .init = setup, .fini = teardown, .timeout = 60)
{
    static const struct h2_field fields[] = POST("/up/x");
    static const struct h2_field trailers[] = {H2_FIELD("x-late", "1"), H2_FIELD("cookie", "admin=1"),
                                               H2_FIELD("authorization", "Bearer late")};
    struct http2 c;
    struct sz_buf block = {0};
    cr_assert(h2_open(&c, g.port));
    uint32_t stream = h2_headers(&c, fields, SZ_COUNT(fields), 0);
    cr_assert(h2_data(&c, stream, SZ_S("body"), 0));
    h2_encode(&c, trailers, SZ_COUNT(trailers), &block);
    cr_assert(h2_frame(&c, H2_HEADERS, H2_END_STREAM | H2_END_HEADERS, stream, sz_buf_slice(&block)));
    expect_h2_answer(h2_wait(&c, stream, SZ_SEC(5)), 200, "", "with trailers");
    const struct upstream_request *request = upstream_at(up, 0);
    cr_assert_not_null(request);
    cr_expect(sz_eq(request->body, SZ_S("body")));
    cr_expect_eq(upstream_field_count(request, "x-late"), 0, "%s", request->head.p);
    cr_expect_eq(upstream_field_count(request, "cookie"), 0);
    cr_expect_eq(upstream_field_count(request, "authorization"), 0);
    sz_buf_fini(&block);
    h2_close(&c);
}

/* HTTP/2 clients that mean harm: frames that nobody sends by mistake. */
#include <netinet/in.h>
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

static void add_frame(struct sz_buf *out, uint8_t type, uint8_t flags, uint32_t stream, struct sz_slice payload)
{
    const char head[] = {0,       (char)(payload.n >> 8), (char)payload.n,     (char)type,  (char)flags,
                         (char)0, (char)(stream >> 16),   (char)(stream >> 8), (char)stream};
    sz_buf_add(out, head, sizeof(head));
    sz_buf_adds(out, payload);
}

/* A client that is told little at a time: its receive buffer was small before it connected. */
static int open_narrow(void)
{
    struct sockaddr_in to = {
        .sin_family = AF_INET, .sin_port = htons(g.port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    const struct timeval patience = {.tv_sec = 1};
    int fd = socket(AF_INET, SOCK_STREAM, 0), small = 4096;
    cr_assert_eq(setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &small, sizeof(small)), 0);
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
    cr_assert_eq(connect(fd, (struct sockaddr *)&to, sizeof(to)), 0);
    return fd;
}

static bool flush(int fd, struct sz_buf *out)
{
    bool ok = send(fd, out->p, out->n, MSG_NOSIGNAL) == (ssize_t)out->n;
    out->n = 0;
    return ok;
}

/* The last bytes of an answer wait for the socket, and its stream's window, just used up, is opened. */
Test(http2_hostile, a_window_opened_behind_an_answer_harms_nobody, .init = setup, .fini = teardown, .timeout = 60)
{
    struct http2 c;
    struct sz_buf out = {0};
    char payload[6];
    uint32_t stream = 1;
    cr_assert(h2_open(&c, g.port));
    const struct h2_response *r = h2_ask(&c, "GET", SZ_S("/nowhere"), NULL, NULL, 0, SZ_NONE);
    cr_assert(r != NULL && r->status == 404);
    int fd = open_narrow();
    sz_buf_printf(&out, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
    add_frame(&out, H2_SETTINGS, 0, 0, number(payload, 4, (uint32_t)r->body.n));
    add_frame(&out, H2_WINDOW_UPDATE, 0, 0, sz_from(number(payload, 0, 0x7fff0000), 2));
    for (bool ok = true; ok && stream < 40000; stream += 2) {
        add_frame(&out, H2_HEADERS, H2_END_STREAM | H2_END_HEADERS, stream, SZ_S("\x82\x86\4\2/x\1\1a"));
        if (stream % 100 != 99)
            continue;
        ok = flush(fd, &out);
        usleep(2000); /* no more than it answers at once */
    }
    uint32_t last = stream;
    for (stream = 1; stream < last; stream += 2)
        add_frame(&out, H2_WINDOW_UPDATE, 0, stream, sz_from(number(payload, 0, 1), 2));
    (void)flush(fd, &out);
    cr_expect(h2_ping(&c, SZ_SEC(10)), "the process is gone");
    sz_buf_fini(&out);
    close(fd);
    h2_close(&c);
}

/* Answers that nobody takes hold their places among the requests in flight no longer than idle_timeout. */
Test(http2_hostile, answers_that_are_not_taken_end, .init = setup, .fini = teardown, .timeout = 60)
{
    static const struct h2_field fields[] = GET("/nowhere");
    struct http2 c, other;
    char payload[6];
    cr_assert(h2_open(&c, g.port));
    cr_assert(h2_frame(&c, H2_SETTINGS, 0, 0, number(payload, 4, 0)));
    for (int i = 0; i < 90; i++)
        cr_assert_neq(h2_headers(&c, fields, SZ_COUNT(fields), H2_END_STREAM), 0);
    cr_assert(h2_ping(&c, SZ_SEC(5)));
    cr_assert(h2_open(&other, g.port));
    expect_h2_answer(h2_ask(&other, "GET", SZ_S("/up/x"), NULL, NULL, 0, SZ_NONE), 503, "overloaded", "at first");
    h2_close(&other);
    cr_expect(h2_closed_within(&c, SZ_SEC(8)), "held for more than 8 s, idle_timeout is 2 s");
    serves("once they are gone");
    h2_close(&c);
}

Test(http2_hostile, http1_answers_that_are_not_taken_end_too, .init = setup, .fini = teardown, .timeout = 60)
{
    static const char request[] = "GET /nowhere HTTP/1.1\r\nHost: a\r\n\r\n";
    struct sz_buf out = {0};
    int fd = open_narrow();
    for (int i = 0; i < 100; i++)
        sz_buf_add(&out, request, sizeof(request) - 1);
    while (send(fd, out.p, out.n, MSG_NOSIGNAL) > 0)
        continue; /* until a second passed without progress */
    cr_expect_eq(gateway_metric(&g, "subzero_requests_in_progress"), 1);
    usleep(5000000);
    cr_expect_eq(gateway_metric(&g, "subzero_requests_in_progress"), 0);
    sz_buf_fini(&out);
    close(fd);
}

/* The socket takes no more: the upstream is let go, whatever protocol the client speaks. */
Test(http2_hostile, a_client_that_reads_nothing_is_cut, .init = setup, .fini = teardown, .timeout = 60)
{
    static const struct upstream_script huge = {.stream = 64 * 1024 * 1024};
    struct sz_buf out = {0};
    char payload[6];
    int fd = open_narrow();
    upstream_play(up, &huge);
    sz_buf_printf(&out, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
    add_frame(&out, H2_SETTINGS, 0, 0, number(payload, 4, 0x7fffffff));
    add_frame(&out, H2_WINDOW_UPDATE, 0, 0, sz_from(number(payload, 0, 0x7fff0000), 2));
    add_frame(&out, H2_HEADERS, H2_END_STREAM | H2_END_HEADERS, 1, SZ_S("\x82\x86\4\5/up/x\1\1a"));
    cr_assert(flush(fd, &out));
    cr_assert(upstream_wait(up, 1, SZ_SEC(5)));
    usleep(500000);
    cr_expect_eq(gateway_metric(&g, "subzero_requests_in_progress"), 1);
    usleep(7500000);
    cr_expect_eq(gateway_metric(&g, "subzero_requests_in_progress"), 0);
    cr_expect_eq(upstream_open(up), 0);
    sz_buf_fini(&out);
    close(fd);
}

/* One small request's end does not make the halves of large ones beside it forgotten. */
Test(http2_hostile, bodies_are_counted_whatever_ends_beside_them, .init = setup, .fini = teardown, .timeout = 60)
{
    static const struct h2_field fields[] = POST("/up/x"), small[] = GET("/up/x");
    static char half[500000];
    struct http2 c;
    cr_assert(h2_open(&c, g.port));
    for (int i = 0; i < 3; i++)
        cr_assert(h2_data(&c, h2_headers(&c, fields, SZ_COUNT(fields), 0), sz_slice(half, sizeof(half)), 0));
    cr_assert_neq(h2_headers(&c, small, SZ_COUNT(small), H2_END_STREAM), 0);
    cr_assert(upstream_wait(up, 1, SZ_SEC(5)));
    usleep(300000); /* it is answered, and nothing more is read from this client */
    char *health = gateway_admin(&g, "/health"), *held = strstr(health, "\"buffered_bodies\":");
    cr_assert_not_null(held);
    cr_expect_gt(strtol(held + 18, NULL, 10), 1500000, "%s", held);
    free(health);
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

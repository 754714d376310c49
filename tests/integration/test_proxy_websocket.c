/* WebSocket tunnels: what is refused, what passes, and how they end. */
#include "integration/harness.h"

#include <errno.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "fake/certs.h"

#define KEY    "dGhlIHNhbXBsZSBub25jZQ=="
#define ACCEPT "s3pPLMBiTxaQ9kYGzzhZRbK+xOo="
#define SWITCH "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
#define FIELDS                                                                                                     \
    "Host: h\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: " KEY \
    "\r\n"

static const char yaml[] =
    "listen:\n"
    "  - {address: \"127.0.0.1:{port}\"}\n"
    "  - address: \"127.0.0.1:{port2}\"\n"
    "    tls: {certificate: \"{dir}/server.pem\", key: \"{dir}/server.key\"}\n"
    "admin: {address: \"127.0.0.1:{admin}\"}\n"
    "workers: 1\n"
    "log: {access: off}\n" ISSUER_YAML "upstreams:\n"
    "  up: {urls: [\"http://127.0.0.1:{upstream}\"], timeouts: {idle: 1s}}\n"
    "routes:\n"
    "  - {id: ws, match: {path: /ws/*}, public: true, websocket: true, upstream: up}\n"
    "  - {id: short, match: {path: /short}, public: true, websocket: true, upstream: up, max_lifetime: 700ms}\n"
    "  - {id: token, match: {path: /token}, auth: {issuers: [test]}, websocket: true, upstream: up}\n"
    "  - {id: plain, match: {path: /plain}, public: true, upstream: up}\n";

static struct upstream *up;
static struct gateway gw;
static struct issuer issuer;

static void setup(void)
{
    struct cert ca, server;

    up = upstream_start(NULL);
    issuer_init(&issuer);
    cert_ca(&ca, "ca");
    cert_leaf(&server, "server", &ca, "DNS:h", 30);
    cr_assert(gateway_start(&gw, yaml, upstream_port(up)));
}

static void teardown(void)
{
    stop_gateway(&gw);
    upstream_stop(&up);
    scratch_remove();
}

/* ---- the upstream: everything after its 101 comes back as it went --------------------------------------------- */

struct echo {
    struct sz_buf got; /* what came after the handshake */
    _Atomic size_t n;
    atomic_bool ended;
    const char *first; /* sent right behind the 101 */
    size_t first_n;
};

static bool echo(struct wire *w, const struct upstream_request *request, void *arg)
{
    struct echo *e = arg;
    static char buf[65536];
    ssize_t n;

    (void)request;
    if (!wire_send(w, SZ_S(SWITCH "Sec-WebSocket-Accept: " ACCEPT "\r\n\r\n")))
        return false;
    if (e->first_n > 0 && !wire_send(w, sz_slice(e->first, e->first_n)))
        return false;
    while ((n = wire_read(w, buf, sizeof(buf), in_time(SZ_SEC(8)))) > 0) {
        sz_buf_add(&e->got, buf, (size_t)n);
        atomic_store(&e->n, e->got.n);
        if (!wire_send(w, sz_slice(buf, (size_t)n)))
            break;
    }
    atomic_store(&e->ended, n == 0);
    return false;
}

/* ---- the client ------------------------------------------------------------------------------------------------ */

static void ask_upgrade(struct http1 *c, const char *target, const char *token, struct http1_response *r)
{
    cr_assert(http1_printf(c, "GET %s HTTP/1.1\r\n" FIELDS "%s%s%s\r\n", target, token ? "Authorization: Bearer " : "",
                           token ? token : "", token ? "\r\n" : ""));
    (void)http1_read(c, "GET", SZ_SEC(5), r);
}

static void handshake(struct http1 *c, const char *target, const char *token, struct http1_response *r)
{
    cr_assert(http1_open(c, gw.port));
    ask_upgrade(c, target, token, r);
}

/* Everything that follows until the gateway closes, at most 5 s; false: it did not. */
static bool read_rest(struct http1 *c, struct sz_buf *out)
{
    out->n = 0;
    sz_buf_adds(out, sz_buf_slice(&c->in));
    return wire_read_all(&c->wire, out, SZ_SEC(5));
}

/* Reads until so many bytes are there. */
static void read_bytes(struct http1 *c, struct sz_buf *out, size_t n)
{
    static char buf[65536];
    sz_buf_adds(out, sz_buf_slice(&c->in));
    c->in.n = 0;
    while (out->n < n) {
        ssize_t got = wire_read(&c->wire, buf, sizeof(buf), in_time(SZ_SEC(5)));
        cr_assert_gt(got, 0, "%zu of %zu bytes", out->n, n);
        sz_buf_add(out, buf, (size_t)got);
    }
}

static bool ends_with(const struct sz_buf *b, const void *bytes, size_t n)
{
    return b->n >= n && memcmp(b->p + b->n - n, bytes, n) == 0;
}

/* The close frame that the upstream got last: masked, with this code. */
static bool upstream_got_close(struct echo *e, unsigned code)
{
    const unsigned char *p = (const unsigned char *)e->got.p + e->got.n - 8;
    return e->got.n >= 8 && p[0] == 0x88 && p[1] == 0x82 &&
           (((unsigned)p[6] ^ p[2]) << 8 | ((unsigned)p[7] ^ p[3])) == code;
}

static void wait_ended(struct echo *e)
{
    for (int i = 0; i < 250 && !atomic_load(&e->ended); i++)
        poll(NULL, 0, 20);
    cr_assert(atomic_load(&e->ended), "the upstream's side was closed");
}

/* A masked text frame of n bytes. */
static void put_frame(struct sz_buf *b, size_t n)
{
    unsigned char head[14] = {0x82, n < 126 ? 0x80 | (unsigned char)n : n < 65536 ? 0xfe : 0xff};
    size_t bytes = n < 126 ? 0 : n < 65536 ? 2 : 8, at = 2;
    for (size_t i = bytes; i > 0; i--)
        head[at++] = (unsigned char)(n >> 8 * (i - 1));
    sz_buf_add(b, head, at + 4);
    for (size_t i = 0; i < n; i++)
        sz_buf_add(b, "x", 1);
}

/* ---- refusals -------------------------------------------------------------------------------------------------- */

Test(proxy_websocket, handshakes_that_are_none_stay_plain_or_are_refused, .init = setup, .fini = teardown,
     .timeout = 60)
{
    static const struct {
        const char *what, *request;
        int status; /* what the client gets; the upstream must not see an Upgrade */
    } rows[] = {
        {"route without websocket", "GET /plain HTTP/1.1\r\n" FIELDS "\r\n", 200},
        {"another protocol", "GET /ws/a HTTP/1.1\r\nHost: h\r\nUpgrade: h2c\r\nConnection: Upgrade\r\n\r\n", 200},
        {"no Connection", "GET /ws/a HTTP/1.1\r\nHost: h\r\nUpgrade: websocket\r\n\r\n", 200},
        {"HTTP/1.0", "GET /ws/a HTTP/1.0\r\n" FIELDS "\r\n", 200},
    };
    struct http1_response r = {0};

    for (size_t i = 0; i < SZ_COUNT(rows); i++) {
        upstream_clear(up);
        int status = http1_exchange(gw.port, sz_cstr(rows[i].request), &r);
        cr_expect(status == rows[i].status || status == 400, "%s: %d", rows[i].what, status);
        for (size_t k = 0; k < upstream_count(up); k++)
            cr_expect_eq(upstream_field_count(upstream_at(up, k), "upgrade"), 0, "%s", rows[i].what);
    }
    http1_response_fini(&r);
}

/* Frames that the client sends ahead must not reach an upstream that did not agree: there they would be a request. */
Test(proxy_websocket, nothing_goes_upstream_before_the_right_101, .init = setup, .fini = teardown, .timeout = 60)
{
#define ANSWERED(text)                       \
    {                                        \
        .answer = { text, sizeof(text) - 1 } \
    }
    static const struct {
        struct upstream_script script;
        int status;
    } rows[] = {
        {ANSWERED("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"), 200},
        {ANSWERED("HTTP/1.1 403 No\r\nContent-Length: 2\r\n\r\nno"), 403},
        {ANSWERED("HTTP/1.1 426 x\r\nUpgrade: websocket\r\nContent-Length: 0\r\n\r\n"), 426},
        {ANSWERED(SWITCH "\r\n"), 502},
        {ANSWERED(SWITCH "Sec-WebSocket-Accept: x3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n"), 502},
        {ANSWERED(SWITCH "Sec-WebSocket-Accept: " ACCEPT "\r\nSec-WebSocket-Accept: " ACCEPT "\r\n\r\n"), 502},
        {ANSWERED("HTTP/1.1 101 x\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: " ACCEPT "\r\n\r\n"), 502},
        {ANSWERED("HTTP/1.1 101 x\r\nUpgrade: h2c\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: " ACCEPT "\r\n\r\n"),
         502},
    };
    struct http1_response r = {0};
    struct http1 c;

    for (size_t i = 0; i < SZ_COUNT(rows); i++) {
        upstream_clear(up);
        upstream_play(up, &rows[i].script);
        cr_assert(http1_open(&c, gw.port));
        cr_assert(
            http1_send(&c, SZ_S("GET /ws/a HTTP/1.1\r\n" FIELDS "\r\nGET /smuggled HTTP/1.1\r\nHost: h\r\n\r\n")));
        cr_expect_eq(http1_read(&c, "GET", SZ_SEC(5), &r), 0, "row %zu", i);
        cr_expect_eq(r.status, rows[i].status, "row %zu: %d", i, r.status);
        cr_expect(wire_closed_within(&c.wire, SZ_SEC(2)), "row %zu: the client's connection ends", i);
        cr_expect_eq(upstream_count(up), 1, "row %zu", i);
        http1_close(&c);
        for (int k = 0; k < 100 && upstream_open(up) > 0; k++)
            poll(NULL, 0, 20);
        cr_expect_eq(upstream_open(up), 0, "row %zu: and the upstream's", i);
    }
    http1_response_fini(&r);
}

/* ---- the tunnel ------------------------------------------------------------------------------------------------ */

static void pass_frames(bool tls)
{
    static struct echo e = {.first = "\x81\x05"
                                     "early",
                            .first_n = 7};
    static const struct upstream_script script = {.speak = echo, .arg = &e};
    static const struct wire_tls client = {.name = "h"};
    struct http1_response r = {0};
    struct sz_buf sent = {0}, got = {0};
    struct http1 c;
    char value[100];

    upstream_play(up, &script);
    cr_assert(tls ? http1_open_tls(&c, gw.port2, &client) : http1_open(&c, gw.port));
    ask_upgrade(&c, "/ws/a?b", NULL, &r);
    cr_assert_eq(r.status, 101);
    cr_expect(http1_field(&r, "sec-websocket-accept", value, sizeof(value)) && strcmp(value, ACCEPT) == 0);
    cr_expect(http1_field(&r, "upgrade", value, sizeof(value)) && strcmp(value, "websocket") == 0);
    const struct upstream_request *request = upstream_at(up, 0);
    cr_expect(sz_eq(request->target, SZ_S("/ws/a?b")));
    cr_expect(upstream_field(request, "sec-websocket-key", value, sizeof(value)) && strcmp(value, KEY) == 0);
    put_frame(&sent, 5);
    put_frame(&sent, 1000);
    put_frame(&sent, 3000000);
    read_bytes(&c, &got, 7);
    cr_expect_arr_eq(got.p, e.first, 7);
    /* In pieces, reading in between: both sides' buffers are smaller than what is under way. */
    for (size_t at = 0; at < sent.n;) {
        size_t n = sent.n - at < 100000 ? sent.n - at : 100000;
        cr_assert(http1_send(&c, sz_slice(sent.p + at, n)));
        at += n;
        read_bytes(&c, &got, 7 + at);
    }
    cr_expect_eq(memcmp(got.p + 7, sent.p, sent.n), 0);
    http1_close(&c);
    wait_ended(&e);
    sz_buf_fini(&sent);
    sz_buf_fini(&got);
    sz_buf_fini(&e.got);
    http1_response_fini(&r);
}

Test(proxy_websocket, frames_pass_both_ways, .init = setup, .fini = teardown, .timeout = 60)
{
    pass_frames(false);
}

Test(proxy_websocket, frames_pass_over_tls, .init = setup, .fini = teardown, .timeout = 60)
{
    pass_frames(true);
}

/*
 * An upstream that does not read stops the client, and the gateway holds little meanwhile: a client could otherwise
 * make it store whatever it sends.
 */
static bool switch_and_stall(struct wire *w, const struct upstream_request *request, void *arg)
{
    (void)request;
    (void)arg;
    (void)wire_send(w, SZ_S(SWITCH "Sec-WebSocket-Accept: " ACCEPT "\r\n\r\n"));
    poll(NULL, 0, 800);
    return false;
}

Test(proxy_websocket, a_stalled_upstream_stops_the_client, .init = setup, .fini = teardown, .timeout = 60)
{
    static const struct upstream_script script = {.speak = switch_and_stall};
    struct http1_response r = {0};
    struct sz_buf frame = {0};
    struct http1 c;
    uint64_t sent = 0;

    upstream_play(up, &script);
    handshake(&c, "/ws/a", NULL, &r);
    cr_assert_eq(r.status, 101);
    put_frame(&frame, 1000000);
    long before = gateway_status_kb(&gw, "VmRSS");
    while (wire_send_by(&c.wire, sz_buf_slice(&frame), in_time(SZ_MS(400))) && sent < 1000000000)
        sent += frame.n;
    cr_expect_lt(sent, 64000000, "%llu", (unsigned long long)sent);
    cr_expect_lt(gateway_status_kb(&gw, "VmRSS") - before, 32 * 1024);
    http1_close(&c);
    http1_response_fini(&r);
    sz_buf_fini(&frame);
}

/* Opens a tunnel, lets it end by itself; the close code on both sides, and when. */
static void expect_close(const char *target, const char *token, unsigned code, int64_t least_ms, int64_t most_ms)
{
    static struct echo e;
    static const struct upstream_script script = {.speak = echo, .arg = &e};
    const char frame[] = {(char)0x88, 2, (char)(code >> 8), (char)code};
    struct http1_response r = {0};
    struct sz_buf got = {0};
    struct http1 c;

    memset(&e, 0, sizeof(e));
    upstream_play(up, &script);
    handshake(&c, target, token, &r);
    cr_assert_eq(r.status, 101, "%s: %d", target, r.status);
    struct sz_mono start = sz_mono_read();
    cr_expect(read_rest(&c, &got), "%s: closed", target);
    int64_t took = sz_between(start, sz_mono_read()).us / 1000;
    cr_expect(took >= least_ms && took <= most_ms, "%s: %lld ms", target, (long long)took);
    cr_expect(ends_with(&got, frame, sizeof(frame)) || (got.n >= 4 && memcmp(got.p, frame, 4) == 0), "%s: close frame",
              target);
    wait_ended(&e);
    cr_expect(upstream_got_close(&e, code), "%s: close frame upstream", target);
    http1_close(&c);
    http1_response_fini(&r);
    sz_buf_fini(&got);
    sz_buf_fini(&e.got);
}

Test(proxy_websocket, ends_with_the_route_the_token_or_silence, .init = setup, .fini = teardown, .timeout = 60)
{
    char *token = issuer_token(&issuer, "alice", 1, NULL);

    expect_close("/short", NULL, 1008, 500, 1700);
    free(token);
    token = issuer_token(&issuer, "alice", 1, NULL);
    expect_close("/token", token, 1008, 0, 2500);
    expect_close("/ws/idle", NULL, 1001, 800, 2500);
    free(token);
}

/* A close frame of ours never lands inside a frame of theirs: the frame under way is let through to its end. */
Test(proxy_websocket, a_frame_under_way_is_finished_first, .init = setup, .fini = teardown, .timeout = 60)
{
    static struct echo e;
    static const struct upstream_script script = {.speak = echo, .arg = &e};
    struct http1_response r = {0};
    struct sz_buf frame = {0}, got = {0};
    struct http1 c;

    upstream_play(up, &script);
    handshake(&c, "/short", NULL, &r);
    cr_assert_eq(r.status, 101);
    put_frame(&frame, 1000);
    cr_assert(http1_send(&c, sz_slice(frame.p, 500)));
    poll(NULL, 0, 850); /* past max_lifetime, within the time that closing takes */
    cr_assert(http1_send(&c, sz_slice(frame.p + 500, frame.n - 500)));
    cr_assert(http1_send(&c, sz_buf_slice(&frame))); /* and one more, which is too late */
    cr_expect(read_rest(&c, &got));
    wait_ended(&e);
    cr_expect_eq(e.got.n, frame.n + 8, "one whole frame and the close frame: %zu", e.got.n);
    cr_expect(e.got.n > frame.n && memcmp(e.got.p, frame.p, frame.n) == 0);
    cr_expect(upstream_got_close(&e, 1008));
    http1_close(&c);
    http1_response_fini(&r);
    sz_buf_fini(&frame);
    sz_buf_fini(&got);
    sz_buf_fini(&e.got);
}

Test(proxy_websocket, a_drain_closes_tunnels, .init = setup, .timeout = 60)
{
    static struct echo e;
    static const struct upstream_script script = {.speak = echo, .arg = &e};
    static const char frame[] = {(char)0x88, 2, 0x03, (char)0xe9};
    struct http1_response r = {0};
    struct sz_buf got = {0};
    struct http1 c;

    upstream_play(up, &script);
    handshake(&c, "/ws/a", NULL, &r);
    cr_assert_eq(r.status, 101);
    struct sz_mono start = sz_mono_read();
    stop_gateway(&gw);
    cr_expect_lt(sz_between(start, sz_mono_read()).us, 5000000);
    cr_expect(read_rest(&c, &got));
    cr_expect(got.n >= 4 && memcmp(got.p, frame, 4) == 0);
    wait_ended(&e);
    cr_expect(upstream_got_close(&e, 1001));
    http1_close(&c);
    http1_response_fini(&r);
    sz_buf_fini(&got);
    sz_buf_fini(&e.got);
    upstream_stop(&up);
    scratch_remove();
}

/* The upstream ends: so does the client's side, after what was under way. */
static bool say_and_leave(struct wire *w, const struct upstream_request *request, void *arg)
{
    (void)request;
    (void)arg;
    (void)wire_send(w, SZ_S(SWITCH "Sec-WebSocket-Accept: " ACCEPT "\r\n\r\n\x81\x03"
                                   "bye"));
    return false;
}

Test(proxy_websocket, ends_with_either_side, .init = setup, .fini = teardown, .timeout = 60)
{
    static const struct upstream_script script = {.speak = say_and_leave};
    struct http1_response r = {0};
    struct sz_buf got = {0};
    struct http1 c;

    upstream_play(up, &script);
    handshake(&c, "/ws/a", NULL, &r);
    cr_assert_eq(r.status, 101);
    cr_expect(read_rest(&c, &got));
    cr_expect(got.n >= 5 && memcmp(got.p,
                                   "\x81\x03"
                                   "bye",
                                   5) == 0);
    http1_close(&c);
    http1_response_fini(&r);
    sz_buf_fini(&got);
}

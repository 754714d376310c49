/* Bodies that are large, slow or endless: memory stays bounded, events arrive at once, and nothing outlives its time.
 */
#include "integration/harness.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>

#define MIB ((uint64_t)1024 * 1024)

static const char yaml[] = "listen: [{address: \"127.0.0.1:{port}\"}]\n"
                           "admin: {address: \"127.0.0.1:{admin}\"}\n"
                           "workers: 1\n"
                           "log: {access: off}\n" ISSUER_YAML "upstreams:\n"
                           "  up: {urls: [\"http://127.0.0.1:{upstream}\"], timeouts: {idle: 1s}}\n"
                           "routes:\n"
                           "  - {id: all, match: {path: /*}, public: true, covers_guarded: true, upstream: up}\n"
                           "  - {id: two, match: {path: /short/*}, public: true, upstream: up, max_lifetime: 600ms}\n"
                           "  - {id: token, match: {path: /token/*}, auth: {issuers: [test]}, upstream: up}\n";

static struct upstream *up;
static struct gateway gw;
static struct issuer issuer;

static void setup(void)
{
    up = upstream_start(NULL);
    issuer_init(&issuer);
    cr_assert(gateway_start(&gw, yaml, upstream_port(up)));
}

static void teardown(void)
{
    stop_gateway(&gw);
    upstream_stop(&up);
    scratch_remove();
}

static const struct h2_field get[] = {H2_FIELD(":method", "GET"), H2_FIELD(":scheme", "http"), H2_FIELD(":path", "/"),
                                      H2_FIELD(":authority", "h")};

static int64_t ms_since(struct sz_mono start)
{
    return sz_between(start, sz_mono_read()).us / 1000;
}

/* Reads n bytes and the head, `step` at a time with a pause in between. */
static uint64_t take(struct wire *w, uint64_t n, size_t step, int pause_ms)
{
    static char buf[4 * 1024 * 1024];
    uint64_t got = 0;
    ssize_t r;

    while (got < n && (r = wire_read(w, buf, step < sizeof(buf) ? step : sizeof(buf), in_time(SZ_SEC(10)))) > 0) {
        got += (uint64_t)r;
        if (pause_ms > 0)
            poll(NULL, 0, pause_ms);
    }
    return got;
}

/*
 * The upstream could send 1 GiB at once; a client that pauses makes it wait.  (A sanitizer's own memory is not
 * the gateway's: what counts is how little it grows.)
 */
Test(proxy_stream, one_gigabyte_to_a_slow_reader_is_not_held, .init = setup, .fini = teardown, .timeout = 120)
{
    static const struct upstream_script script = {.stream = 1024 * MIB};
    struct wire w;
    long before = gateway_status_kb(&gw, "VmHWM");

    upstream_play(up, &script);
    cr_assert(wire_open(&w, NULL, gw.port));
    cr_assert(wire_send(&w, SZ_S("GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n")));
    cr_assert_eq(take(&w, 1, 1, 500), 1);
    cr_expect_lt(upstream_sent(up), 64 * MIB, "the upstream was slowed down");
    cr_expect_eq(take(&w, 16 * MIB, 65536, 2) >= 16 * MIB, true);
    cr_expect_geq(take(&w, UINT64_MAX, SIZE_MAX, 0), 1000 * MIB);
    wire_close(&w);
    cr_expect_lt(gateway_status_kb(&gw, "VmHWM") - before, 32 * 1024);
}

Test(proxy_stream, a_client_that_takes_nothing_is_cut, .init = setup, .fini = teardown, .timeout = 60)
{
    static const struct upstream_script script = {.stream = 1024 * MIB};
    struct wire w;

    upstream_play(up, &script);
    cr_assert(wire_open(&w, NULL, gw.port));
    struct sz_mono start = sz_mono_read();
    cr_assert(wire_send(&w, SZ_S("GET / HTTP/1.1\r\nHost: h\r\n\r\n")));
    struct pollfd p = {.fd = w.fd, .events = POLLRDHUP};
    cr_expect_eq(poll(&p, 1, 8000), 1, "reset while nothing is read");
    cr_expect_geq(ms_since(start), 1000);
    for (int i = 0; i < 100 && upstream_open(up) > 0; i++)
        poll(NULL, 0, 20);
    cr_expect_eq(upstream_open(up), 0, "and its upstream connection with it");
    wire_close(&w);
}

/* Over HTTP/2 the stream goes; its connection is of use again as soon as the client reads. */
Test(proxy_stream, a_stalled_http2_stream_is_cut, .init = setup, .fini = teardown, .timeout = 60)
{
    static const struct upstream_script endless = {.stream = 1024 * MIB};
    struct http2 c;

    upstream_play(up, &endless);
    cr_assert(h2_open(&c, gw.port));
    uint32_t stream = h2_headers(&c, get, SZ_COUNT(get), H2_END_STREAM);
    cr_assert(upstream_wait(up, 1, SZ_SEC(5)));
    for (int i = 0; i < 400 && upstream_open(up) > 0; i++)
        poll(NULL, 0, 20);
    cr_expect_eq(upstream_open(up), 0);
    upstream_play(up, NULL);
    uint32_t next = h2_headers(&c, get, SZ_COUNT(get), H2_END_STREAM);
    expect_h2_answer(h2_wait(&c, next, SZ_SEC(10)), 200, "", "the next stream");
    cr_expect(h2_wait(&c, stream, SZ_SEC(1))->reset);
    h2_close(&c);
}

/* Slow is not stalled: at 16 KiB every 50 ms a client makes progress all the time. */
Test(proxy_stream, a_slow_client_is_not_cut, .init = setup, .fini = teardown, .timeout = 60)
{
    static const struct upstream_script script = {.stream = 64 * MIB};
    struct wire w;

    upstream_play(up, &script);
    cr_assert(wire_open(&w, NULL, gw.port));
    cr_assert(wire_send(&w, SZ_S("GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n")));
    struct sz_mono start = sz_mono_read();
    uint64_t got = 0;
    while (ms_since(start) < 4000)
        got += take(&w, 16384, 16384, 50);
    cr_expect_geq(got + take(&w, UINT64_MAX, SIZE_MAX, 0), 64 * MIB);
    wire_close(&w);
}

/* An upstream that breaks off again and again says nothing about the client: its connection lives. */
Test(proxy_stream, streams_that_the_upstream_cuts_are_no_resets, .init = setup, .fini = teardown, .timeout = 60)
{
    static const struct upstream_script cuts = {
        .stream = MIB, .fault_at = UPSTREAM_AT_ANSWER, .fault = UPSTREAM_CLOSE, .after = 5000, .forgets = true};
    struct http2 c;

    upstream_play(up, &cuts);
    cr_assert(h2_open(&c, gw.port));
    for (int i = 0; i < 250; i++) {
        uint32_t stream = h2_headers(&c, get, SZ_COUNT(get), H2_END_STREAM);
        const struct h2_response *r = h2_wait(&c, stream, SZ_SEC(10));
        cr_assert(r != NULL && r->status == 200 && r->reset, "stream %d: %d", i, r != NULL ? r->status : -1);
    }
    cr_expect(h2_ping(&c, SZ_SEC(5)));
    cr_expect_eq(gateway_metric(&gw, "subzero_http2_reset_connections_total"), 0);
    h2_close(&c);
}

Test(proxy_stream, a_client_that_leaves_takes_its_upstream_along, .init = setup, .fini = teardown, .timeout = 60)
{
    static const struct upstream_script endless = {.stream = 1024 * MIB};
    static const struct upstream_script hangs = {.fault_at = UPSTREAM_AT_HEAD, .fault = UPSTREAM_HANG};
    struct wire w;
    struct http2 c;

    upstream_play(up, &endless);
    cr_assert(wire_open(&w, NULL, gw.port));
    cr_assert(wire_send(&w, SZ_S("GET / HTTP/1.1\r\nHost: h\r\n\r\n")));
    take(&w, 1000000, 65536, 0);
    wire_reset(&w);
    upstream_play(up, &hangs);
    cr_assert(h2_open(&c, gw.port));
    for (int i = 0; i < 10; i++)
        h2_reset(&c, h2_headers(&c, get, SZ_COUNT(get), H2_END_STREAM), 8);
    uint32_t last = h2_headers(&c, get, SZ_COUNT(get), H2_END_STREAM);
    cr_expect(upstream_wait(up, 2, SZ_SEC(5)));
    h2_reset(&c, last, 8);
    for (int i = 0; i < 100 && upstream_open(up) > 0; i++) {
        h2_read(&c, SZ_MS(20));
    }
    cr_expect_eq(upstream_open(up), 0);
    h2_close(&c);
}

/* ---- events ------------------------------------------------------------------------------------------------ */

/* An event every 100 ms with the time it was sent, until the gateway closes. */
static bool send_events(struct wire *w, const struct upstream_request *request, void *arg)
{
    char text[100];

    (void)arg;
    (void)request;
    if (!wire_send(w, SZ_S("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nCache-Control: no-cache\r\n\r\n")))
        return false;
    do {
        poll(NULL, 0, 100);
        int n = snprintf(text, sizeof(text), "data: %lld\n\n", (long long)sz_mono_read().us);
        if (!wire_send(w, sz_slice(text, (size_t)n)))
            break;
    } while (true);
    return false;
}

static bool send_head_and_wait(struct wire *w, const struct upstream_request *request, void *arg)
{
    char byte;
    (void)arg;
    (void)request;
    if (!wire_send(w, SZ_S("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n")))
        return false;
    return wire_read(w, &byte, 1, in_time(SZ_SEC(5))) > 0;
}

static void open_events(struct wire *w, const char *target, const char *token)
{
    char text[2000];
    int n = snprintf(text, sizeof(text), "GET %s HTTP/1.1\r\nHost: h\r\n%s%s%s\r\n", target,
                     token != NULL ? "Authorization: Bearer " : "", token != NULL ? token : "",
                     token != NULL ? "\r\n" : "");
    cr_assert(wire_open(w, NULL, gw.port));
    cr_assert(wire_send(w, sz_slice(text, (size_t)n)));
}

/* The stream's end as the client sees it: all of it, and how long it took. */
static int64_t read_events(struct wire *w, struct sz_buf *out)
{
    struct sz_mono start = sz_mono_read();
    char buf[4096];
    ssize_t n;
    while ((n = wire_read(w, buf, sizeof(buf), in_time(SZ_SEC(5)))) > 0) {
        sz_buf_add(out, buf, (size_t)n);
        if (out->n >= 5 && memcmp(out->p + out->n - 5, "0\r\n\r\n", 5) == 0)
            break;
    }
    cr_expect_neq(n, -ETIMEDOUT);
    return ms_since(start);
}

Test(proxy_stream, events_are_not_held_back, .init = setup, .fini = teardown, .timeout = 60)
{
    static const struct upstream_script script = {.speak = send_events}, silent = {.speak = send_head_and_wait};
    struct wire w;
    char buf[4096];
    int events = 0, prompt = 0;

    upstream_play(up, &script);
    open_events(&w, "/", NULL);
    while (events < 10) {
        ssize_t n = wire_read(&w, buf, sizeof(buf) - 1, in_time(SZ_SEC(2)));
        cr_assert_gt(n, 0);
        buf[n] = '\0';
        const char *data = strstr(buf, "data: ");
        if (data == NULL)
            continue;
        int64_t late = sz_mono_read().us - strtoll(data + 6, NULL, 10);
        prompt += late < 50000;
        events++;
    }
    cr_expect_geq(prompt, 3, "%d of 10: a busy machine delays some, a buffer delays all", prompt);
    wire_close(&w);
    upstream_play(up, &silent);
    open_events(&w, "/", NULL);
    struct sz_mono start = sz_mono_read();
    cr_expect_gt(wire_read(&w, buf, sizeof(buf), in_time(SZ_SEC(2))), 0, "the head comes before the first event");
    cr_expect_lt(ms_since(start), 800); /* the idle timeout would end it after 1 s */
    wire_close(&w);
}

Test(proxy_stream, events_end_with_the_route_or_the_token, .init = setup, .fini = teardown, .timeout = 60)
{
    static const struct upstream_script script = {.speak = send_events};
    struct sz_buf all = {0};
    struct wire w;

    upstream_play(up, &script);
    open_events(&w, "/short/x", NULL);
    int64_t took = read_events(&w, &all);
    cr_expect(took >= 500 && took < 1500, "%lld ms", (long long)took);
    cr_expect(all.n > 5 && memcmp(all.p + all.n - 5, "0\r\n\r\n", 5) == 0, "an orderly end");
    wire_close(&w);

    char *token = issuer_token(&issuer, "alice", 2, NULL);
    all.n = 0;
    open_events(&w, "/token/x", token);
    took = read_events(&w, &all);
    cr_expect(took < 3000, "%lld ms", (long long)took);
    cr_expect(all.n > 5 && memcmp(all.p + all.n - 5, "0\r\n\r\n", 5) == 0, "an orderly end");
    wire_close(&w);
    sz_buf_fini(&all);
    free(token);
}

Test(proxy_stream, silent_events_end_by_the_idle_timeout, .init = setup, .fini = teardown, .timeout = 60)
{
    static const struct upstream_script silent = {.speak = send_head_and_wait};
    struct wire w;

    upstream_play(up, &silent);
    open_events(&w, "/", NULL);
    cr_expect(wire_closed_within(&w, SZ_MS(2500)));
    wire_close(&w);
}

Test(proxy_stream, a_drain_ends_events, .init = setup, .timeout = 60)
{
    static const struct upstream_script script = {.speak = send_events};
    struct sz_buf all = {0};
    struct wire w;

    upstream_play(up, &script);
    open_events(&w, "/", NULL);
    poll(NULL, 0, 300);
    struct sz_mono start = sz_mono_read();
    stop_gateway(&gw);
    cr_expect_lt(ms_since(start), 5000);
    read_events(&w, &all);
    cr_expect(all.n > 5 && memcmp(all.p + all.n - 5, "0\r\n\r\n", 5) == 0, "an orderly end");
    wire_close(&w);
    sz_buf_fini(&all);
    upstream_stop(&up);
    scratch_remove();
}

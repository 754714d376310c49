/*
 * Clients that misuse HTTP/2's own means against the gateway.  Each attack runs on one connection while others are
 * being served: those lose nothing, the attacker gains nothing, and memory stays where it was.
 */
#include "integration/harness.h"

#include <stdio.h>
#include <stdlib.h>

#include "fake/load.h"

static const char yaml[] = "listen: [{address: \"127.0.0.1:{port}\"}]\n"
                           "admin: {address: \"127.0.0.1:{admin}\"}\n"
                           "workers: 1\n" /* attacker and victims on one loop */
                           "log: {access: off}\n"
                           "upstreams: {up: {urls: [\"http://127.0.0.1:{upstream}\"]}}\n"
                           "routes: [{id: all, match: {path: \"/*\"}, public: true, upstream: up}]\n";

static struct gateway gateway;
static struct upstream *up;
static struct load others;

/* What is freed is reused at once, so that a peak means what it means without the sanitizer. */
static void setup(void)
{
    const char *options = getenv("ASAN_OPTIONS");
    char with[1024];

    snprintf(with, sizeof(with), "%s:quarantine_size_mb=1", options != NULL ? options : "");
    setenv("ASAN_OPTIONS", with, 1);
    up = upstream_start(NULL);
    cr_assert(gateway_start(&gateway, yaml, upstream_port(up)));
}

static void teardown(void)
{
    stop_gateway(&gateway);
    upstream_stop(&up);
    scratch_remove();
}

static void wait_for_others(unsigned long n)
{
    struct sz_mono end = in_time(SZ_SEC(30));

    while (others.ok + others.refused + others.lost < n && sz_mono_read().us < end.us)
        poll(NULL, 0, 5);
    cr_expect_geq(others.ok, n, "only %lu others were served", (unsigned long)others.ok);
}

/* Others are served before, while and after `attack` runs. */
static void beside(void (*attack)(void))
{
    others = (struct load){
        .port = gateway.port, .request = "GET /others HTTP/1.1\r\nHost: gateway.test\r\n\r\n", .clients = 2};
    load_start(&others);
    wait_for_others(50);
    long before = gateway_status_kb(&gateway, "VmHWM");
    attack();
    long grown = gateway_status_kb(&gateway, "VmHWM") - before;
    wait_for_others(others.ok + 50);
    load_end(&others);
    cr_expect_eq(others.refused, 0);
    cr_expect_eq(others.lost, 0);
    cr_expect_lt(grown, 64 * 1024, "the peak grew by %ld kB", grown);
    fprintf(stderr, "    %lu others served, peak +%ld kB\n", (unsigned long)others.ok, grown);
}

/* ---- streams that are ended as soon as they are opened ----------------------------------------------------------- */

static const struct h2_field get[] = {H2_FIELD(":method", "GET"), H2_FIELD(":scheme", "http"),
                                      H2_FIELD(":authority", "gateway.test"), H2_FIELD(":path", "/attack")};
static const struct h2_field post[] = {H2_FIELD(":method", "POST"), H2_FIELD(":scheme", "http"),
                                       H2_FIELD(":authority", "gateway.test"), H2_FIELD(":path", "/attack")};

enum { STREAMS = 100000 };

static bool open_and_reset(struct http2 *c)
{
    uint32_t stream = h2_headers(c, get, SZ_COUNT(get), H2_END_STREAM);

    return stream != 0 && h2_reset(c, stream, 8);
}

/* The gateway is made to reset: a window update of nothing is an error of that stream. */
static bool open_and_provoke(struct http2 *c)
{
    uint32_t stream = h2_headers(c, get, SZ_COUNT(get), H2_END_STREAM);

    return stream != 0 && h2_frame(c, H2_WINDOW_UPDATE, 0, stream, SZ_S("\0\0\0\0"));
}

/* Data behind the end of the stream. */
static bool open_and_exceed(struct http2 *c)
{
    uint32_t stream = h2_headers(c, get, SZ_COUNT(get), H2_END_STREAM);

    return stream != 0 && h2_data(c, stream, SZ_S("x"), H2_END_STREAM);
}

/* Never a whole request, so no work ever begins: no more than frames to read, and the connection may live. */
static bool open_with_body_and_reset(struct http2 *c)
{
    uint32_t stream = h2_headers(c, post, SZ_COUNT(post), 0);

    return stream != 0 && h2_data(c, stream, SZ_S("body"), 0) && h2_reset(c, stream, 8);
}

static bool (*step)(struct http2 *c);
static bool closes; /* the attack ends the connection */

static void many_streams(void)
{
    struct http2 c;
    unsigned n = 0;
    size_t arrived = 0;

    cr_assert(h2_open(&c, gateway.port));
    while (n < STREAMS && step(&c)) {
        n++;
        if (n % 64 == 0)
            h2_read(&c, SZ_US(0)); /* takes what has come, so that neither side waits for the other */
        if (c.closed)
            break;
    }
    if (closes)
        cr_expect(h2_closed_within(&c, SZ_SEC(10)), "the attacker's connection stays open after %u streams", n);
    else
        cr_expect(h2_ping(&c, SZ_SEC(10)), "gone after %u streams", n);
    h2_close(&c);
    for (size_t i = 0; i < upstream_count(up); i++)
        arrived += sz_eq(upstream_at(up, i)->target, SZ_S("/attack"));
    fprintf(stderr, "    %u streams, of which %zu reached the upstream\n", n, arrived);
    cr_expect_lt(arrived, 200);
}

Test(flood_http2, opened_and_reset, .init = setup, .fini = teardown, .timeout = 90)
{
    closes = true;
    step = open_and_reset;
    beside(many_streams);
}

Test(flood_http2, opened_and_made_to_be_reset, .init = setup, .fini = teardown, .timeout = 90)
{
    closes = true;
    step = open_and_provoke;
    beside(many_streams);
}

Test(flood_http2, opened_and_exceeded, .init = setup, .fini = teardown, .timeout = 90)
{
    closes = true;
    step = open_and_exceed;
    beside(many_streams);
}

Test(flood_http2, opened_with_a_body_and_reset, .init = setup, .fini = teardown, .timeout = 90)
{
    closes = false;
    step = open_with_body_and_reset;
    beside(many_streams);
}

/* ---- frames that are cheap to send and dear to answer or to keep ------------------------------------------------- */

/* So many frames at once, nothing read; then the gateway has closed, or it still answers. */
static void flood_frames(struct http2 *c, uint8_t type, uint8_t flags, uint32_t stream, struct sz_slice payload)
{
    struct sz_mono end = in_time(SZ_SEC(10));

    for (unsigned i = 0; i < 200000 && h2_frame_by(c, type, flags, stream, payload, end); i++)
        ;
}

static void pings_never_read(void)
{
    struct http2 c;

    cr_assert(h2_open(&c, gateway.port));
    flood_frames(&c, H2_PING, 0, 0, SZ_S("12345678"));
    h2_close(&c);
}

static void settings_never_read(void)
{
    struct http2 c;

    cr_assert(h2_open(&c, gateway.port));
    flood_frames(&c, H2_SETTINGS, 0, 0, SZ_S(""));
    h2_close(&c);
}

static void empty_data(void)
{
    struct http2 c;

    cr_assert(h2_open(&c, gateway.port));
    uint32_t stream = h2_headers(&c, post, SZ_COUNT(post), 0);
    flood_frames(&c, H2_DATA, 0, stream, SZ_S(""));
    h2_close(&c);
}

static void endless_continuation(void)
{
    static const char zeros[16384];
    struct http2 c;

    cr_assert(h2_open(&c, gateway.port));
    h2_frame(&c, H2_HEADERS, 0, 1, SZ_S("\x82\x86\x84"));
    flood_frames(&c, H2_CONTINUATION, 0, 1, sz_slice(zeros, sizeof(zeros)));
    cr_expect(h2_closed_within(&c, SZ_SEC(10)));
    h2_close(&c);
}

Test(flood_http2, pings_that_are_never_read, .init = setup, .fini = teardown, .timeout = 60)
{
    beside(pings_never_read);
}

Test(flood_http2, settings_that_are_never_read, .init = setup, .fini = teardown, .timeout = 60)
{
    beside(settings_never_read);
}

Test(flood_http2, data_without_data, .init = setup, .fini = teardown, .timeout = 60)
{
    beside(empty_data);
}

Test(flood_http2, a_head_that_never_ends, .init = setup, .fini = teardown, .timeout = 60)
{
    beside(endless_continuation);
}

/* ---- a header list that is small on the wire --------------------------------------------------------------------- */

/* One field of 3,800 bytes goes into the table, then a byte for each time that it is meant: 100,000 times. */
static void bomb(void)
{
    static char value[3800];
    static char index[16384];
    struct sz_buf block = {0};
    struct http2 c;

    memset(value, 'v', sizeof(value));
    memset(index, 0xbe, sizeof(index)); /* the newest entry of the dynamic table */
    cr_assert(h2_open(&c, gateway.port));
    h2_encode(&c, get, SZ_COUNT(get), &block);
    sz_buf_add(&block, "\x40\x01x\x7f\xd9\x1c", 6); /* literal with indexing, name "x", length 3,800 */
    sz_buf_add(&block, value, sizeof(value));
    bool sent = h2_frame(&c, H2_HEADERS, H2_END_STREAM, 1, sz_buf_slice(&block));
    for (int i = 0; sent && i < 6; i++)
        sent = h2_frame(&c, H2_CONTINUATION, i == 5 ? H2_END_HEADERS : 0, 1, sz_slice(index, sizeof(index)));
    const struct h2_response *r = h2_wait(&c, 1, SZ_SEC(10));
    cr_expect(r->status == 431 || r->reset || c.closed || c.goaway, "answered with %d", r->status);
    fprintf(stderr, "    a header list of %zu kB: %d%s\n", 6 * sizeof(index) * sizeof(value) / 1000, r->status,
            c.closed ? ", closed" : "");
    sz_buf_fini(&block);
    h2_close(&c);
}

Test(flood_http2, a_header_list_that_unfolds, .init = setup, .fini = teardown, .timeout = 60)
{
    beside(bomb);
}

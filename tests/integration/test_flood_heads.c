/*
 * Clients that make the gateway hold request heads: a hundred streams a connection, each with a head near the limit,
 * kept open by an upstream that answers late or by a body that never ends.  They count as buffered request bytes.
 */
#include "integration/harness.h"

#include <stdio.h>
#include <stdlib.h>

enum { STREAMS = 40, CONNECTIONS = 12, HEAD = 30000 };

static const char yaml[] = "listen: [{address: \"127.0.0.1:{port}\"}]\n"
                           "admin: {address: \"127.0.0.1:{admin}\"}\n"
                           "workers: 1\n"
                           "log: {access: off}\n"
                           "limits: {buffered_bodies: 8MB, request_timeout: 60s}\n"
                           "upstreams: {up: {urls: [\"http://127.0.0.1:{upstream}\"]}}\n" ISSUER_YAML "routes:\n"
                           "  - {id: open, match: {path: \"/open/*\"}, public: true, upstream: up}\n"
                           "  - {id: guarded, match: {path: \"/guarded/*\"}, auth: {issuers: [test]}, upstream: up}\n";

static struct gateway gateway;
static struct upstream *up;
static struct issuer issuer;
static char *token;
static char filler[HEAD];
static struct http2 clients[CONNECTIONS];

static void setup(void)
{
    const char *options = getenv("ASAN_OPTIONS");
    char with[1024];

    snprintf(with, sizeof(with), "%s:quarantine_size_mb=1", options != NULL ? options : "");
    setenv("ASAN_OPTIONS", with, 1);
    memset(filler, 'f', sizeof(filler));
    issuer_init(&issuer);
    token = issuer_token(&issuer, "alice", 3600, NULL);
    up = upstream_start(NULL);
    upstream_play(up, &(struct upstream_script){.wait = SZ_SEC(20), .forgets = true});
    cr_assert(gateway_start(&gateway, yaml, upstream_port(up)));
}

static void teardown(void)
{
    for (int i = 0; i < CONNECTIONS; i++)
        h2_close(&clients[i]);
    upstream_play(up, &(struct upstream_script){.forgets = true});
    stop_gateway(&gateway);
    upstream_stop(&up);
    sz_signer_free(&issuer.signer);
    free(token);
    scratch_remove();
}

/* The last field holds a token; it goes along where `known`. */
static uint32_t send_head(struct http2 *c, const char *method, const char *path, bool known, uint8_t flags)
{
    char bearer[4096];
    snprintf(bearer, sizeof(bearer), "Bearer %s", token);
    struct h2_field fields[] = {{SZ_S(":method"), sz_cstr(method)},
                                H2_FIELD(":scheme", "http"),
                                H2_FIELD(":authority", "gateway.test"),
                                {SZ_S(":path"), sz_cstr(path)},
                                {SZ_S("x-filler"), sz_slice(filler, sizeof(filler))},
                                {SZ_S("authorization"), sz_cstr(bearer)}};
    return h2_headers(c, fields, SZ_COUNT(fields) - !known, flags);
}

static void open_streams(struct http2 *c, const char *method, const char *path, bool known, uint8_t flags)
{
    for (int i = 0; i < STREAMS && send_head(c, method, path, known, flags) != 0; i++)
        h2_read(c, SZ_US(0));
}

static double cuts(void)
{
    return gateway_metric(&gateway, "subzero_connections_refused_total{cause=\"buffered_bodies\"}");
}

/* Twice, since one that has answered may be cut for what the next one sent. */
static unsigned closed(int from)
{
    unsigned n = 0;
    for (int i = from; i < CONNECTIONS; i++)
        (void)h2_ping(&clients[i], SZ_SEC(10));
    for (int i = from; i < CONNECTIONS; i++) {
        n += !h2_ping(&clients[i], SZ_SEC(10)); /* or everything sent has been read */
    }
    return n;
}

static void flood(int from, const char *method, const char *path, uint8_t flags)
{
    long before = gateway_status_kb(&gateway, "VmHWM");
    for (int i = from; i < CONNECTIONS; i++) {
        cr_assert(h2_open(&clients[i], gateway.port));
        open_streams(&clients[i], method, path, false, flags);
    }
    long grown = gateway_status_kb(&gateway, "VmHWM") - before;
    unsigned gone = closed(from);
    fprintf(stderr, "    %d connections of %d heads of %d bytes: %u cut, peak +%ld kB\n", CONNECTIONS - from, STREAMS,
            HEAD, gone, grown);
    /* All of them would be 14 MB of heads, and what a stream costs besides. */
    cr_expect_geq(gone, 3);
    cr_expect_lt(gone, CONNECTIONS - from, "those that fit may stay");
    cr_expect_geq(cuts(), gone);
}

Test(flood_heads, held_by_a_slow_upstream_are_bounded, .init = setup, .fini = teardown, .timeout = 90)
{
    flood(0, "GET", "/open/x", H2_END_STREAM);
}

Test(flood_heads, held_by_a_body_that_never_ends_are_bounded, .init = setup, .fini = teardown, .timeout = 90)
{
    flood(0, "POST", "/open/x", 0);
}

/* The one with a token holds the most, and goes last. */
Test(flood_heads, of_clients_without_a_token_go_first, .init = setup, .fini = teardown, .timeout = 90)
{
    upstream_play(up, &(struct upstream_script){.forgets = true});
    cr_assert(h2_open(&clients[0], gateway.port));
    const struct h2_response *r = h2_ask(&clients[0], "GET", SZ_S("/guarded/x"), token, NULL, 0, SZ_NONE);
    expect_h2_answer(r, 200, "", "with a token");
    upstream_play(up, &(struct upstream_script){.wait = SZ_SEC(20), .forgets = true});
    for (int i = 0; i < STREAMS; i++)
        cr_assert_neq(send_head(&clients[0], "GET", "/guarded/x", true, H2_END_STREAM), 0);
    cr_assert(h2_ping(&clients[0], SZ_SEC(10)));
    for (int i = 1; i < CONNECTIONS; i++) {
        cr_assert(h2_open(&clients[i], gateway.port));
        for (int k = 0; k < STREAMS * 3 / 4 && send_head(&clients[i], "GET", "/open/x", false, H2_END_STREAM) != 0; k++)
            h2_read(&clients[i], SZ_US(0));
    }
    cr_expect_geq(closed(1), 1);
    cr_expect(h2_ping(&clients[0], SZ_SEC(10)), "the client with a token was cut");
}

/* What is held goes with the streams: the same connection may do it again and again. */
Test(flood_heads, are_given_back_with_their_streams, .init = setup, .fini = teardown, .timeout = 90)
{
    upstream_play(up, &(struct upstream_script){.forgets = true});
    cr_assert(h2_open(&clients[0], gateway.port));
    for (int round = 0; round < 15; round++) {
        uint32_t last = 0;
        for (int i = 0; i < STREAMS; i++)
            cr_assert_neq(last = send_head(&clients[0], "GET", "/open/x", false, H2_END_STREAM), 0);
        cr_assert_not_null(h2_wait(&clients[0], last, SZ_SEC(20)));
        for (uint32_t id = last - 2 * (STREAMS - 1); id <= last; id += 2)
            expect_h2_answer(h2_wait(&clients[0], id, SZ_SEC(20)), 200, "", "in turn");
    }
    cr_expect_eq(cuts(), 0);
}

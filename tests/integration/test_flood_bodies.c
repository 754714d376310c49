/*
 * Two thousand clients that each send 10 MB and have no token: the bodies are more than ten times what the process may
 * buffer, good requests are answered beside them, and memory stays bounded.  On the release build alone, since a
 * sanitizer's memory is its own; a smaller flood under the sanitizers is in test_limits.c.
 */
#include "integration/harness.h"

#include <stdio.h>
#include <stdlib.h>

#include "fake/crowd.h"
#include "fake/load.h"

enum { CLIENTS = 2000, BODY = 10000000, PEAK_KB = 256 * 1024 };

static const char yaml[] = "listen: [{address: \"127.0.0.1:{port}\"}]\n"
                           "admin: {address: \"127.0.0.1:{admin}\"}\n"
                           "workers: 2\n"
                           "log: {access: off}\n"
                           "limits: {request_body: 16MB, request_timeout: 60s}\n"
                           "upstreams: {up: {urls: [\"http://127.0.0.1:{upstream}\"]}}\n" ISSUER_YAML
                           "routes: [{id: all, match: {path: \"/*\"}, auth: {issuers: [test]}, upstream: up}]\n";

static struct gateway gateway;
static struct upstream *up;
static struct load good;
static struct issuer issuer;
static char *token;
static char request[4096];

static void setup(void)
{
    if (release_binary() == NULL)
        cr_skip_test("no build/release/subzero: this is measured on the release build");
    issuer_init(&issuer);
    token = issuer_token(&issuer, "alice", 3600, NULL);
    snprintf(request, sizeof(request), "GET /x HTTP/1.1\r\nHost: gateway.test\r\nAuthorization: Bearer %s\r\n\r\n",
             token);
    up = upstream_start(NULL);
    cr_assert(gateway_start_binary(&gateway, release_binary(), yaml, upstream_port(up)));
    good = (struct load){.port = gateway.port, .request = request, .clients = 2};
    load_start(&good);
}

static void judge(void)
{
    load_end(&good);
    long peak = gateway_status_kb(&gateway, "VmHWM");
    fprintf(stderr, "    %lu good requests; peak %ld MB\n", (unsigned long)good.ok, peak / 1024);
    cr_expect_lt(peak, PEAK_KB, "the peak is %ld kB", peak);
    cr_expect_gt(good.ok, 100);
    cr_expect_eq(good.refused, 0);
    cr_expect_eq(good.lost, 0);
    cr_expect_eq(upstream_count(up), good.ok, "a request without a token reached the upstream");
    stop_gateway(&gateway);
    upstream_stop(&up);
    sz_signer_free(&issuer.signer);
    free(token);
    scratch_remove();
}

static void post(struct crowd *crowd, struct sz_buf *out)
{
    (void)crowd;
    sz_buf_printf(out, "POST /x HTTP/1.1\r\nHost: gateway.test\r\nContent-Length: %d\r\n\r\n", BODY);
}

Test(flood, bodies_without_a_token_leave_the_peak_bounded, .timeout = 240)
{
    static struct crowd crowd;

    setup();
    crowd = (struct crowd){.port = gateway.port, .clients = CLIENTS, .body = BODY, .head = post};
    crowd_start(&crowd);
    cr_expect(crowd_wait(&crowd, CLIENTS, SZ_SEC(120)), "only %lu clients have come to an end",
              (unsigned long)(crowd.answered + crowd.cut));
    crowd_end(&crowd);
    fprintf(stderr, "%d clients sent %lu MB: %lu with 401, %lu others, %lu cut\n", CLIENTS,
            (unsigned long)crowd.bytes / 1000000, (unsigned long)crowd.by_status[401],
            (unsigned long)(crowd.answered - crowd.by_status[401]), (unsigned long)crowd.cut);
    cr_expect_eq(crowd.answered, crowd.by_status[401]);
    judge();
}

/* ---- the same as streams ----------------------------------------------------------------------------------------- */

enum { CONNECTIONS = 40, STREAMS = 50, PIECE = 16384 };

/* As many streams as one connection may have, their data interleaved so that all of them are held at once. */
static void send_streams(struct http2 *c, uint64_t *sent)
{
    static const struct h2_field fields[] = {H2_FIELD(":method", "POST"), H2_FIELD(":scheme", "http"),
                                             H2_FIELD(":authority", "gateway.test"), H2_FIELD(":path", "/x")};
    static const char zeros[PIECE];
    uint32_t streams[STREAMS];

    for (int i = 0; i < STREAMS; i++)
        streams[i] = h2_headers(c, fields, SZ_COUNT(fields), 0);
    for (int round = 0; round < BODY / PIECE; round++) {
        for (int i = 0; i < STREAMS; i++) {
            if (*sent + PIECE > 65535 + c->window) /* the connection's window is what the gateway would take */
                h2_read(c, SZ_MS(1));
            if (c->closed || *sent + PIECE > 65535 + c->window || !h2_data(c, streams[i], sz_slice(zeros, PIECE), 0))
                return;
            *sent += PIECE;
        }
    }
}

Test(flood, bodies_in_streams_without_a_token_leave_the_peak_bounded, .timeout = 240)
{
    static struct http2 clients[CONNECTIONS];
    uint64_t total = 0;
    unsigned closed = 0;

    setup();
    for (int i = 0; i < CONNECTIONS; i++) {
        uint64_t sent = 0;
        cr_assert(h2_open(&clients[i], gateway.port));
        cr_assert(h2_ping(&clients[i], SZ_SEC(10)));
        send_streams(&clients[i], &sent);
        total += sent;
    }
    for (int i = 0; i < CONNECTIONS; i++) {
        h2_read(&clients[i], SZ_US(0));
        closed += clients[i].closed;
        h2_close(&clients[i]);
    }
    fprintf(stderr, "%d streams on %d connections sent %lu MB; %u of these were cut\n", STREAMS * CONNECTIONS,
            CONNECTIONS, (unsigned long)total / 1000000, closed);
    judge();
}

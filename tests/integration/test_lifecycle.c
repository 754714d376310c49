/* Reload and drain while requests are under way: none is lost. */
#include <criterion/criterion.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fake/certs.h"
#include "fake/client.h"
#include "fake/gateway.h"
#include "fake/load.h"
#include "fake/upstream.h"
#include "subzero/time.h"

#define YAML(drain)                                                 \
    "listen:\n  - {address: \"127.0.0.1:{port}\"}\n"                \
    "admin: {address: \"127.0.0.1:{admin}\"}\n"                     \
    "workers: 2\n"                                                  \
    "limits: {drain: " drain "}\n"                                  \
    "log: {access: off}\n"                                          \
    "upstreams:\n  up: {urls: [\"http://127.0.0.1:{upstream}\"]}\n" \
    "routes:\n  - {id: all, match: {path: \"/*\"}, public: true, upstream: up}\n"
#define GET "GET /x HTTP/1.1\r\nHost: a\r\n\r\n"

static struct gateway g;
static struct upstream *upstream;
static struct load load;

static void setup(void)
{
    upstream = upstream_start(NULL);
}

static void teardown(void)
{
    upstream_stop(&upstream);
    scratch_remove();
}

static double seconds_since(struct sz_mono begun)
{
    return (double)sz_between(begun, sz_mono_read()).us / 1e6;
}

Test(lifecycle, a_reload_under_load_loses_no_request, .init = setup, .fini = teardown, .timeout = 60)
{
    cr_assert(gateway_start(&g, YAML("5s"), upstream_port(upstream)));
    load = (struct load){.port = g.port, .request = GET, .clients = 8, .requests_per_connection = 50};
    load_start(&load);
    for (int i = 0; i < 8; i++) {
        usleep(150000);
        cr_expect(gateway_reload(&g));
    }
    load_end(&load);
    cr_expect_gt(load.ok, 100);
    cr_expect_eq(load.lost, 0, "%lu lost", load.lost);
    cr_expect_eq(load.refused, 0, "%lu refused", load.refused);
    cr_expect_eq(load.unconnected, 0);
    cr_expect(gateway_stop(&g));
}

Test(lifecycle, a_stop_under_load_loses_no_request, .init = setup, .fini = teardown, .timeout = 60)
{
    upstream_play(upstream, &(struct upstream_script){.wait = SZ_MS(20)});
    cr_assert(gateway_start(&g, YAML("10s"), upstream_port(upstream)));
    load = (struct load){.port = g.port, .request = GET, .clients = 16};
    load_start(&load);
    usleep(500000);
    struct sz_mono begun = sz_mono_read();
    cr_expect(gateway_stop(&g));
    cr_expect_lt(seconds_since(begun), 5);
    load_end(&load);
    cr_expect_gt(load.ok, 50);
    cr_expect_eq(load.lost, 0, "%lu lost of %lu", load.lost, load.ok);
    cr_expect_eq(load.refused, 0);
}

Test(lifecycle, what_has_begun_gets_its_whole_answer, .init = setup, .fini = teardown, .timeout = 60)
{
    char buf[4096];
    upstream_play(upstream, &(struct upstream_script){.wait = SZ_MS(1500)});
    cr_assert(gateway_start(&g, YAML("20s"), upstream_port(upstream)));
    int waiting = client_open(g.port), begun = client_open(g.port), idle = client_open(g.port);
    client_send(waiting, SZ_S(GET));
    client_send(begun, SZ_S("GET /slow HT"));
    usleep(300000);
    kill(g.proc.pid, SIGTERM);
    usleep(300000);
    client_send(begun, SZ_S("TP/1.1\r\nHost: a\r\n\r\n"));
    cr_expect_eq(client_response(waiting, buf, sizeof(buf), 5000), 200);
    cr_expect_neq(strstr(buf, "onnection: close"), NULL);
    cr_expect_eq(client_response(begun, buf, sizeof(buf), 5000), 200);
    cr_expect(client_closed_within(idle, 3000), "an idle connection is closed after its grace");
    cr_expect(client_closed_within(begun, 1000));
    cr_expect(gateway_stop(&g));
    close(waiting);
    close(begun);
    close(idle);
}

/* Kept alive after a request, and open without one yet: neither holds the drain. */
Test(lifecycle, idle_tls_connections_do_not_hold_the_drain, .init = setup, .fini = teardown, .timeout = 60)
{
    static const char yaml[] =
        "listen: [{address: \"127.0.0.1:{port}\", tls: {certificate: \"{dir}/a.example.pem\", key: "
        "\"{dir}/a.example.key\"}}]\n"
        "admin: {address: \"127.0.0.1:{admin}\"}\nworkers: 2\nlimits: {drain: 30s}\n"
        "upstreams: {up: {urls: [\"http://127.0.0.1:{upstream}\"]}}\n"
        "routes: [{id: all, match: {path: \"/*\"}, public: true, upstream: up}]\n";
    static const char *const protocols[] = {NULL, "http/1.1", "h2"};
    static const char get[] = "GET /x HTTP/1.1\r\nHost: a.example\r\n\r\n";
    struct tls_client clients[3][2];
    struct cert ca, leaf;
    char buf[4096];

    cert_ca(&ca, "ca");
    cert_leaf(&leaf, "a.example", &ca, "DNS:a.example", 90);
    cr_assert(gateway_start(&g, yaml, upstream_port(upstream)));
    for (size_t i = 0; i < SZ_COUNT(protocols); i++) {
        for (int used = 0; used < 2; used++) {
            cr_assert(tls_open(&clients[i][used], g.port, &(struct tls_options){.alpn = protocols[i]}));
            if (used && i < 2)
                cr_expect_eq(tls_request(&clients[i][used], get, buf, sizeof(buf)), 200);
        }
    }
    usleep(200000);
    struct sz_mono begun = sz_mono_read();
    cr_expect(gateway_stop(&g));
    cr_expect_lt(seconds_since(begun), 8);
    for (size_t i = 0; i < SZ_COUNT(protocols); i++) {
        tls_close(&clients[i][0]);
        tls_close(&clients[i][1]);
    }
}

Test(lifecycle, the_drain_has_a_hard_end, .init = setup, .fini = teardown, .timeout = 60)
{
    upstream_play(upstream, &(struct upstream_script){.fault_at = UPSTREAM_AT_ANSWER, .fault = UPSTREAM_HANG});
    cr_assert(gateway_start(&g, YAML("1s"), upstream_port(upstream)));
    int fd = client_open(g.port);
    client_send(fd, SZ_S(GET));
    cr_assert(upstream_wait(upstream, 1, SZ_SEC(5)));
    struct sz_mono begun = sz_mono_read();
    cr_expect(gateway_stop(&g));
    cr_expect(seconds_since(begun) > 0.9 && seconds_since(begun) < 4, "%f s", seconds_since(begun));
    close(fd);
}

Test(lifecycle, without_requests_a_stop_is_instant, .init = setup, .fini = teardown, .timeout = 60)
{
    cr_assert(gateway_start(&g, YAML("30s"), upstream_port(upstream)));
    struct sz_mono begun = sz_mono_read();
    cr_expect(gateway_stop(&g));
    cr_expect_lt(seconds_since(begun), 2);
}

Test(lifecycle, requests_in_flight_finish_under_the_snapshot_they_began_with, .init = setup, .fini = teardown,
     .timeout = 60)
{
    char buf[4096];
    upstream_play(upstream, &(struct upstream_script){.wait = SZ_MS(1000)});
    cr_assert(gateway_start(&g, YAML("10s"), upstream_port(upstream)));
    int fd = client_open(g.port);
    client_send(fd, SZ_S(GET));
    cr_assert(upstream_wait(upstream, 1, SZ_SEC(5)));
    gateway_rewrite(&g, "listen:\n  - {address: \"127.0.0.1:{port}\"}\n"
                        "admin: {address: \"127.0.0.1:{admin}\"}\n"
                        "workers: 2\n"
                        "upstreams:\n  other: {urls: [\"http://127.0.0.1:9\"]}\n"
                        "routes:\n  - {id: other, match: {path: /none}, public: true, upstream: other}\n");
    cr_expect(gateway_reload(&g));
    cr_expect_eq(client_response(fd, buf, sizeof(buf), 5000), 200, "%s", buf);
    client_send(fd, SZ_S(GET));
    cr_expect_eq(client_response(fd, buf, sizeof(buf), 5000), 404);
    close(fd);
    cr_expect(gateway_stop(&g));
}

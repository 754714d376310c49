/*
 * The whole gateway under load while its Redis is killed, stopped, emptied, filled, written over and locked: every
 * request is answered, in its budget, and by its own rights alone; afterwards limits are counted in Redis again.
 */
#include "integration/harness.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fake/load.h"
#include "fake/redis.h"

enum { TIMEOUT_MS = 100, MARGIN_MS = 3000 /* of a machine that does other things, too */ };

static struct gateway gw;
static struct redis_server server;
static struct redis_cluster cluster;
static struct upstream *up;
static struct issuer issuer;
static struct load load;
static char request[4096];
static uint32_t latencies[400000];

#define YAML                                                                                            \
    "listen: [{address: \"127.0.0.1:{port}\"}]\n"                                                       \
    "admin: {address: \"127.0.0.1:{admin}\"}\n"                                                         \
    "workers: 2\n"                                                                                      \
    "log: {access: off}\n" ISSUER_YAML "upstreams: {up: {urls: [\"http://127.0.0.1:{upstream}\"]}}\n"   \
    "rate_limits:\n"                                                                                    \
    "  wide: {algorithm: token_bucket, capacity: 1000000, refill: 1000000/1s, on_store_failure: open, " \
    "emergency: 1000000/1s}\n"                                                                          \
    "routes:\n"                                                                                         \
    "  - {id: all, match: {path: '/*'}, auth: {issuers: [test]}, upstream: up, rate_limit: wide}\n"

static void start(const char *where)
{
    char yaml[4096];
    sz_crypto_init();
    issuer_init(&issuer);
    scratch_write("fleet.key", SZ_S("MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE=\n"));
    up = upstream_start(NULL);
    upstream_play(up, &(struct upstream_script){.forgets = true});
    snprintf(yaml, sizeof(yaml),
             YAML "redis: {%s, key_file: \"{dir}/fleet.key\", timeout: %dms, breaker: {open: 300ms}}\n", where,
             TIMEOUT_MS);
    cr_assert(gateway_start(&gw, yaml, upstream_port(up)));
    char *token = issuer_token(&issuer, "alice", 3600, NULL);
    snprintf(request, sizeof(request), "GET /x HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer %s\r\n\r\n", token);
    free(token);
    load = (struct load){.port = gw.port,
                         .request = request,
                         .clients = 6,
                         .latencies_us = latencies,
                         .latencies_max = SZ_COUNT(latencies)};
}

static void setup(void)
{
    if (!redis_available())
        cr_skip_test("no redis-server here");
}

static void teardown(void)
{
    stop_gateway(&gw);
    redis_kill(&server);
    redis_cluster_stop(&cluster);
    upstream_stop(&up);
    sz_signer_free(&issuer.signer);
    scratch_remove();
}

TestSuite(redis_load, .init = setup, .fini = teardown, .timeout = 180);

static double counted(void)
{
    double n =
        gateway_metric(&gw, "subzero_ratelimit_decisions_total{policy=\"wide\",reason=\"allowed\",decision=\"allow\"}");
    return n < 0 ? 0 : n;
}

/* Limits are counted in Redis (again) within 15 s. */
static void expect_counting(const char *when)
{
    double from = counted();
    bool more = false;
    for (int i = 0; i < 150 && !more; i++) {
        usleep(100000);
        more = counted() > from + 20;
    }
    cr_expect(more, "%s: limits are not counted in Redis", when);
}

/* Who has no token is refused, whatever state Redis is in. */
static void expect_refused_without_token(const char *when)
{
    char *answer = raw_exchange(gw.port, SZ_S("GET /x HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"), NULL);
    cr_expect_eq(raw_status(answer), 401, "%s: %s", when, answer);
    free(answer);
}

static void while_it_lasts(const char *when, unsigned ms)
{
    expect_refused_without_token(when);
    usleep(ms * 1000);
    expect_refused_without_token(when);
}

static void expect_all_answered(void)
{
    load_end(&load);
    cr_expect_gt(load.ok, 500);
    cr_expect(load.refused == 0 && load.lost == 0 && load.unconnected == 0, "%lu ok, %lu refused, %lu lost", load.ok,
              load.refused, load.lost);
    /* The longest of all is as long as the machine stood still for others; one in a thousand is not. */
    uint32_t most = load_percentile(&load, 99.9), longest = load_percentile(&load, 100);
    cr_expect_lt(most, (TIMEOUT_MS + 200) * 1000, "%u us", most);
    cr_expect_lt(longest, (TIMEOUT_MS + MARGIN_MS) * 1000, "%u us", longest);
}

Test(redis_load, one_server_and_all_that_can_befall_it)
{
    char where[512];
    cr_assert(redis_start(&server));
    snprintf(where, sizeof(where), "url: \"%s\"", server.url);
    start(where);
    load_start(&load);
    expect_counting("at the start");

    redis_kill(&server);
    while_it_lasts("killed", 1500);
    cr_assert(redis_start(&server));
    expect_counting("killed");

    redis_pause(&server);
    while_it_lasts("stopped", 2500);
    redis_continue(&server);
    expect_counting("stopped");

    free(redis_say(&server, "FLUSHALL"));
    free(redis_say(&server, "SCRIPT FLUSH"));
    expect_counting("flushed");

    free(redis_say(&server, "CONFIG SET maxmemory 1"));
    while_it_lasts("full", 1000);
    free(redis_say(&server, "CONFIG SET maxmemory 0"));
    expect_counting("full");

    struct sz_slice spoil[] = {SZ_S("EVAL"),
                               SZ_S("for _, k in ipairs(redis.call('KEYS', '*')) do redis.call('DEL', k) "
                                    "redis.call('LPUSH', k, 'x') end return 1"),
                               SZ_S("0")};
    free(redis_ask(&server, spoil, SZ_COUNT(spoil), NULL));
    while_it_lasts("written over", 1000);
    free(redis_say(&server, "FLUSHALL"));
    expect_counting("written over");

    free(redis_say(&server, "CLIENT PAUSE 2000 ALL"));
    while_it_lasts("slow", 2200);
    expect_counting("slow");

    free(redis_say(&server, "CONFIG SET requirepass other"));
    server.password = "other";
    free(redis_say(&server, "CLIENT KILL TYPE normal SKIPME yes"));
    while_it_lasts("locked", 1000);
    struct sz_slice open[] = {SZ_S("CONFIG"), SZ_S("SET"), SZ_S("requirepass"), SZ_S("")};
    free(redis_ask(&server, open, SZ_COUNT(open), NULL));
    server.password = NULL;
    expect_counting("locked");
    expect_all_answered();
}

Test(redis_load, a_cluster_that_loses_a_master)
{
    char where[512];
    cr_assert(redis_cluster_start(&cluster));
    snprintf(where, sizeof(where), "cluster: [\"%s\", \"%s\"]", cluster.nodes[0].url, cluster.nodes[1].url);
    start(where);
    load_start(&load);
    expect_counting("at the start");
    /* One of them holds the one key that this load counts. */
    for (int i = 0; i < 2; i++) {
        redis_kill(&cluster.nodes[i]);
        while_it_lasts("a master is gone", 500);
        expect_counting("a master is gone");
        cr_assert(redis_start(&cluster.nodes[i]));
        cr_assert(redis_cluster_ok(&cluster, 20000));
        usleep(1500000);
    }
    expect_counting("all are back");
    expect_all_answered();
}

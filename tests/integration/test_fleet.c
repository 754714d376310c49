/*
 * A fleet as several hosts: on each a gateway with its clients and its upstream, a master of the Redis Cluster and the
 * replica of another's.  Something is killed, paused or cut off while all of them work: every answer is the right one
 * and in time, revocations reach everybody in the end, and nothing is lost but what the killed instance had in hand.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include "fake/load.h"
#include "fake/netns.h"
#include "fake/redis.h"
#include "integration/revoke_kit.h"
#include "subzero/crypto.h"

enum {
    HOSTS = 3,
    NOBODY = HOSTS,
    CLIENTS = 2,      /* of a host, with each token */
    BUDGET_MS = 3000, /* a request asks Redis twice, 200 ms each; the rest is for a busy machine */
    WELL_MS = 20000
};

static struct netns net;
static struct redis_cluster cluster;
static struct gateway gateways[HOSTS];
static struct upstream *upstreams[HOSTS];
static struct issuer issuer;
static struct load good[HOSTS], bad[HOSTS]; /* of this phase */
static char *alice, *mallory, good_request[2048], bad_request[2048];

/* What a request needs of Redis: the identity, for L1 forgets at once, and its limit. */
#define YAML                                                                                                         \
    "listen: [{address: \"127.0.0.1:{port}\"}]\n"                                                                    \
    "admin: {address: \"127.0.0.1:{admin}\"}\n"                                                                      \
    "workers: 1\n"                                                                                                   \
    "state_dir: \"{dir}/state-{admin}\"\n" ISSUER_YAML "cache: {l1: {ttl: 50ms}, l2: {jwt: true}}\n"                 \
    "redis: {cluster: [\"%s\", \"%s\", \"%s\"], key_file: \"{dir}/fleet.key\", timeout: 200ms, breaker: {failures: " \
    "5, open: 1s}}\n"                                                                                                \
    "upstreams: {up: {urls: [\"http://127.0.0.1:{upstream}\"]}}\n"                                                   \
    "rate_limits:\n"                                                                                                 \
    "  wide: {algorithm: token_bucket, capacity: 1000000, refill: 10000/1s, key: address, on_store_failure: open}\n" \
    "routes:\n"                                                                                                      \
    "  - {id: all, match: {path: '/*'}, auth: {issuers: [test]}, upstream: up, rate_limit: wide}\n"

/* ---- the fleet --------------------------------------------------------------------------------------------------- */

static void start_cluster(void)
{
    for (unsigned i = 0; i < 2 * HOSTS; i++) { /* a replica is never with its master */
        unsigned host = i < HOSTS ? i : (i + 1) % HOSTS;
        cluster.nodes[i].address = net.addresses[host];
        cluster.nodes[i].ns = net.hosts[host];
    }
    cr_assert(redis_cluster_start(&cluster));
}

static void start_gateway(unsigned i)
{
    char yaml[4096], name[16];
    snprintf(name, sizeof(name), "gateway-%u", i);
    snprintf(yaml, sizeof(yaml), YAML, cluster.nodes[0].url, cluster.nodes[1].url, cluster.nodes[2].url);
    int before = netns_enter(net.hosts[i]);
    upstreams[i] = upstream_start(NULL);
    upstream_play(upstreams[i], &(struct upstream_script){.forgets = true});
    cr_assert(gateway_start_as(&gateways[i], name, yaml, upstream_port(upstreams[i])));
    netns_leave(before);
}

static bool again(unsigned i)
{
    int before = netns_enter(net.hosts[i]);
    bool ok = gateway_again(&gateways[i]);
    netns_leave(before);
    return ok;
}

static bool well(unsigned i)
{
    int before = netns_enter(net.hosts[i]);
    bool ok = false;
    for (int tries = 0; tries < 2 && !ok; tries++)
        ok = revoke_health(&gateways[i], "\"revocations\":{\"status\":\"ok\"");
    netns_leave(before);
    return ok;
}

/* ... within so long: the status, at this gateway. */
static bool becomes(unsigned i, const char *token, int status)
{
    int before = netns_enter(net.hosts[i]);
    bool ok = revoke_becomes(&gateways[i], token, status, WELL_MS) >= 0;
    netns_leave(before);
    return ok;
}

/* Repeated until Redis and the disk have it: meanwhile a master may be on its way to be replaced. */
static bool revoke_at(unsigned i, const char *jti)
{
    int status = 0, before = netns_enter(net.hosts[i]);
    struct sz_mono end = in_time(SZ_MS(WELL_MS));
    while (status != 200 && status != 201 && sz_mono_read().us < end.us) {
        status = revoke_by(&gateways[i], "{\"kind\":\"jti\",\"value\":\"%s\"}", jti);
        usleep(status >= 500 ? 200000 : 0);
    }
    netns_leave(before);
    return status == 200 || status == 201;
}

static char *token_of(const char *jti)
{
    char claims[64];
    snprintf(claims, sizeof(claims), "\"jti\":\"%s\"", jti);
    return issuer_token(&issuer, "alice", 600, claims);
}

static void setup(void)
{
    const char *why = redis_available() ? netns_open(&net, HOSTS) : "no redis-server here";
    if (why != NULL)
        cr_skip_test("%s", why);
    sz_crypto_init();
    scratch_write("fleet.key", SZ_S("MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE=\n"));
    issuer_init(&issuer);
    start_cluster();
    for (unsigned i = 0; i < HOSTS; i++)
        start_gateway(i);
    for (unsigned i = 0; i < HOSTS; i++)
        cr_assert(well(i));
    alice = token_of("alice");
    mallory = token_of("mallory");
    snprintf(good_request, sizeof(good_request), "GET /x HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer %s\r\n\r\n",
             alice);
    snprintf(bad_request, sizeof(bad_request), "GET /x HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer %s\r\n\r\n",
             mallory);
    cr_assert(revoke_at(0, "mallory"));
    for (unsigned i = 0; i < HOSTS; i++)
        cr_assert(becomes(i, mallory, 401));
}

static void teardown(void)
{
    for (unsigned i = 0; i < HOSTS; i++) {
        if (gateways[i].proc.pid > 0) {
            kill(gateways[i].proc.pid, SIGCONT);
            stop_gateway(&gateways[i]);
        }
        if (upstreams[i] != NULL)
            upstream_stop(&upstreams[i]);
    }
    redis_cluster_stop(&cluster);
    netns_close(&net);
    sz_signer_free(&issuer.signer);
    free(alice);
    free(mallory);
    scratch_remove();
}

TestSuite(fleet, .init = setup, .fini = teardown, .timeout = 170);

/* ---- a phase: load everywhere, and what came of it --------------------------------------------------------------- */

static void begin(void)
{
    for (unsigned i = 0; i < HOSTS; i++) {
        int before = netns_enter(net.hosts[i]);
        good[i] = (struct load){.port = gateways[i].port,
                                .request = good_request,
                                .clients = CLIENTS,
                                .pause_us = 2000,
                                .latencies_max = 100000};
        bad[i] = (struct load){.port = gateways[i].port, .request = bad_request, .clients = CLIENTS, .pause_us = 2000};
        load_start(&good[i]);
        load_start(&bad[i]);
        netns_leave(before);
    }
    usleep(300000);
}

/*
 * `killed` may have lost what it had in hand (of each client a request, and another where the kernel had taken a new
 * connection for it while it died), `held` may have answered late (it was stopped): no other.
 */
static void end(const char *what, unsigned killed, unsigned held)
{
    for (unsigned i = 0; i < HOSTS; i++) {
        load_end(&good[i]);
        load_end(&bad[i]);
    }
    for (unsigned i = 0; i < HOSTS; i++) {
        unsigned long lost = good[i].lost + bad[i].lost;
        uint32_t longest = load_percentile(&good[i], 100) / 1000;
        fprintf(stderr, "%s: gateway %u: %lu served, %lu refused, %lu lost, %lu not connected; longest %u ms\n", what,
                i, good[i].ok, bad[i].refused, lost, good[i].unconnected + bad[i].unconnected, longest);
        cr_expect_gt(good[i].ok, 20, "%s: there was load at %u", what, i);
        cr_expect_eq(good[i].refused, 0, "%s: %lu good ones refused at %u", what, good[i].refused, i);
        cr_expect_eq(bad[i].ok, 0, "%s: %lu revoked ones served at %u", what, bad[i].ok, i);
        cr_expect_eq(bad[i].status_503, 0, "%s: refused for the right reason at %u", what, i);
        cr_expect_leq(lost, i == killed ? 2 * 2 * CLIENTS : 0, "%s: %lu lost at %u", what, lost, i);
        if (i != killed)
            cr_expect_eq(good[i].unconnected + bad[i].unconnected, 0, "%s: at %u", what, i);
        if (i != held)
            cr_expect_lt(longest, BUDGET_MS, "%s: %u ms at %u", what, longest, i);
        free(good[i].latencies_us);
    }
}

/* Under load, while it lasts: one more is revoked at `where`, and by then everybody is well and has heard of it. */
static void revoke_and_catch_up(const char *jti, unsigned where)
{
    char *token = token_of(jti);
    struct sz_mono begun = sz_mono_read();
    cr_expect(revoke_at(where, jti), "%s", jti);
    for (unsigned i = 0; i < HOSTS; i++) {
        cr_expect(becomes(i, token, 401), "%s at %u", jti, i);
        cr_expect(well(i), "%u after %s", i, jti);
        cr_expect(becomes(i, alice, 200), "%s: at %u", jti, i);
    }
    fprintf(stderr, "%s: known to all and all well after %lld ms\n", jti,
            (long long)sz_between(begun, sz_mono_read()).us / 1000);
    free(token);
}

/* ---- the tests --------------------------------------------------------------------------------------------------- */

Test(fleet, a_gateway_is_killed_and_one_is_stopped)
{
    begin();
    gateway_kill(&gateways[1]);
    cr_expect(revoke_at(0, "while-dead"));
    usleep(300000);
    cr_assert(again(1));
    char *token = token_of("while-dead");
    cr_expect(becomes(1, token, 401));
    free(token);
    revoke_and_catch_up("after-kill", 1);
    end("a gateway killed", 1, NOBODY);

    begin();
    kill(gateways[2].proc.pid, SIGSTOP);
    cr_expect(revoke_at(0, "while-stopped"));
    usleep(1500000);
    kill(gateways[2].proc.pid, SIGCONT);
    token = token_of("while-stopped");
    cr_expect(becomes(2, token, 401));
    free(token);
    revoke_and_catch_up("after-stop", 2);
    end("a gateway stopped", NOBODY, 2);
}

/* Its replica takes over from a master that hangs as from one that is dead, and whoever listened there listens
 * elsewhere. */
Test(fleet, a_redis_node_is_killed_and_one_is_stopped)
{
    begin();
    redis_kill(&cluster.nodes[0]);
    cr_expect(redis_cluster_ok(&cluster, WELL_MS), "its replica took over");
    revoke_and_catch_up("node-killed", 0);
    cr_assert(redis_start(&cluster.nodes[0]));
    cr_expect(redis_cluster_ok(&cluster, WELL_MS));
    end("a Redis node killed", NOBODY, NOBODY);

    static const unsigned hang[] = {1, REDIS_CLUSTER_MASTERS}; /* and who took over from the dead one */
    for (size_t i = 0; i < SZ_COUNT(hang); i++) {
        char stopped[32], continued[32];
        snprintf(stopped, sizeof(stopped), "node-%u-stopped", hang[i]);
        snprintf(continued, sizeof(continued), "node-%u-continued", hang[i]);
        begin();
        redis_pause(&cluster.nodes[hang[i]]);
        usleep(1500000); /* who listened there has noticed */
        revoke_and_catch_up(stopped, 1);
        redis_continue(&cluster.nodes[hang[i]]);
        cr_expect(redis_cluster_ok(&cluster, WELL_MS));
        revoke_and_catch_up(continued, 2);
        end("a Redis node stopped", NOBODY, NOBODY);
    }
}

/* The lone side keeps answering its clients by what it knows; what it missed it hears when the cable is back. */
Test(fleet, a_side_of_the_network_is_cut_off)
{
    begin();
    netns_cut(&net, 2, true);
    char *token = token_of("during-the-cut");
    cr_expect(becomes(2, token, 200));
    int before = netns_enter(net.hosts[2]);
    cr_expect(revoke_health(&gateways[2], "\"revocations\":{\"status\":\"cut_off\""));
    netns_leave(before);
    cr_expect(revoke_at(0, "during-the-cut"));
    cr_expect(becomes(1, token, 401));
    cr_expect(becomes(2, token, 200), "it cannot have heard");
    netns_cut(&net, 2, false);
    cr_expect(becomes(2, token, 401));
    free(token);
    cr_expect(redis_cluster_ok(&cluster, WELL_MS));
    revoke_and_catch_up("after-the-cut", 2);
    end("a side cut off", NOBODY, NOBODY);
}

/* Each drains and comes back; its clients wait for it and lose nothing that was sent. */
Test(fleet, a_rolling_restart)
{
    char jti[32];
    for (unsigned i = 0; i < HOSTS; i++) {
        begin();
        cr_expect(gateway_stop(&gateways[i]));
        cr_assert(again(i));
        snprintf(jti, sizeof(jti), "restart-%u", i);
        revoke_and_catch_up(jti, (i + 1) % HOSTS);
        end("restarted", i, NOBODY);
        cr_expect_eq(good[i].lost + bad[i].lost, 0, "a restart loses nothing");
    }
}

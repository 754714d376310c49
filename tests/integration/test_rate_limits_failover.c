/*
 * Rate limits while their Redis is in trouble, under load: a cluster that loses the master of the bucket, a server that
 * is busy with somebody's script and is killed in the middle of it.  Each policy answers by its row of the table in
 * docs/rate-limits.md, nothing waits, and buckets go on afterwards.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "fake/client.h"
#include "fake/redis.h"
#include "harness.h"

enum { THREADS = 6, TIMEOUT_MS = 250, MARGIN_MS = 3000 };

static struct gateway g;
static struct redis_server server = {.name = "limits"};
static struct redis_cluster cluster;
static struct upstream *upstream;

/* Nothing comes back to `closed`, and no run asks for as much as it holds; `open` runs under one a second when it has
 * to. */
static const char yaml[] =
    "listen: [{address: \"127.0.0.1:{port}\"}]\n"
    "admin: {address: \"127.0.0.1:{admin}\"}\n"
    "workers: 2\n"
    "log: {access: off}\n"
    "redis: {%s, key_file: \"{dir}/fleet.key\", timeout: 250ms, breaker: {failures: 5, open: 400ms}}\n"
    "upstreams: {up: {urls: [\"http://127.0.0.1:{upstream}\"]}}\n"
    "routes:\n"
    "  - {id: closed, match: {path: /closed}, public: true, upstream: up, rate_limit: closed}\n"
    "  - {id: open, match: {path: /open}, public: true, upstream: up, rate_limit: open}\n"
    "  - {id: ten, match: {path: /ten}, public: true, upstream: up, rate_limit: ten}\n"
    "rate_limits:\n"
    "  closed: {algorithm: token_bucket, capacity: 1000000, refill: 0/1s, key: address, on_store_failure: closed}\n"
    "  open: {algorithm: sliding_window, limit: 1000000, window: 1d, key: address, on_store_failure: open, "
    "emergency: 1/s}\n"
    "  ten: {algorithm: token_bucket, capacity: 10, refill: 0/1s, key: address, on_store_failure: closed}\n";

static void start(const char *redis)
{
    char text[2048];
    scratch_write("fleet.key", SZ_S("MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE=\n"));
    snprintf(text, sizeof(text), yaml, redis);
    upstream = upstream_start(NULL);
    upstream_play(upstream, &(struct upstream_script){.forgets = true});
    cr_assert(gateway_start(&g, text, upstream_port(upstream)));
}

static void setup(void)
{
    if (!redis_available())
        cr_skip_test("no redis-server here");
}

static void teardown(void)
{
    stop_gateway(&g);
    upstream_stop(&upstream);
    redis_cluster_stop(&cluster);
    redis_kill(&server);
    scratch_remove();
}

TestSuite(rate_limits_failover, .init = setup, .fini = teardown, .timeout = 170);

/* ---- load -------------------------------------------------------------------------------------------------------- */

struct row {
    const char *path, *reason;
    int status;
};
/* What may be answered at all; "" is allowed, with nothing to say about it. */
static const struct row rows[] = {{"/closed", "", 200},
                                  {"/closed", "fail_closed", 503},
                                  {"/closed", "circuit_open", 503},
                                  {"/open", "", 200},
                                  {"/open", "redis_timeout", 200},
                                  {"/open", "redis_connection_error", 200},
                                  {"/open", "redis_noscript_retry", 200},
                                  {"/open", "circuit_open", 200},
                                  {"/open", "emergency_local_limit", 429}};
enum { ROWS = SZ_COUNT(rows) };
static atomic_uint seen[ROWS], beside, slow;
static atomic_bool ending;
static pthread_t threads[THREADS];

static const char *ask(const char *from, const char *path, int *status)
{
    static _Thread_local char buf[16384], reason[64];
    char head[128];
    int fd = client_open_from(from, g.port);
    snprintf(head, sizeof(head), "GET %s HTTP/1.1\r\nHost: a\r\n\r\n", path);
    client_send(fd, sz_cstr(head));
    *status = client_response(fd, buf, sizeof(buf), 10000);
    close(fd);
    const char *at = strcasestr(buf, "x-subzero-reason: ");
    snprintf(reason, sizeof(reason), "%.*s", at == NULL ? 0 : (int)strcspn(at + 18, "\r"), at == NULL ? "" : at + 18);
    return reason;
}

static void *loader(void *arg)
{
    unsigned number = (unsigned)(uintptr_t)arg;
    char from[32];
    for (unsigned i = 0; !ending; i++) {
        const char *path = (i + number) % 2 == 0 ? "/closed" : "/open";
        int status;
        snprintf(from, sizeof(from), "127.0.1.%u", i % 16); /* in all parts of a cluster */
        struct sz_mono before = sz_mono_read();
        const char *reason = ask(from, path, &status);
        atomic_fetch_add(&slow, sz_between(before, sz_mono_read()).us > (TIMEOUT_MS + MARGIN_MS) * 1000);
        unsigned row = 0;
        while (row < ROWS && (strcmp(rows[row].path, path) != 0 || strcmp(rows[row].reason, reason) != 0 ||
                              rows[row].status != status))
            row++;
        atomic_fetch_add(row < ROWS ? &seen[row] : &beside, 1);
        if (row == ROWS)
            fprintf(stderr, "%s was answered %d %s\n", path, status, reason);
    }
    return NULL;
}

static void load_begin(void)
{
    for (size_t i = 0; i < THREADS; i++)
        cr_assert_eq(pthread_create(&threads[i], NULL, loader, (void *)(uintptr_t)i), 0);
}

static void load_finish(void)
{
    ending = true;
    for (size_t i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    for (unsigned i = 0; i < ROWS; i++)
        fprintf(stderr, "%-8s %d %-24s %u\n", rows[i].path, rows[i].status, rows[i].reason, seen[i]);
    cr_expect_eq(beside, 0, "answers that no row of the table has");
    cr_expect_eq(slow, 0, "waited for longer than the budget");
}

static unsigned of(const char *path, const char *reason)
{
    for (unsigned i = 0; i < ROWS; i++) {
        if (strcmp(rows[i].path, path) == 0 && strcmp(rows[i].reason, reason) == 0)
            return seen[i];
    }
    return 0;
}

static bool grows(const char *path, const char *reason, unsigned by)
{
    unsigned before = of(path, reason);
    for (int i = 0; i < 2000 && of(path, reason) < before + by; i++)
        usleep(10000);
    return of(path, reason) >= before + by;
}

static void expect_counting(const char *when)
{
    cr_assert(grows("/closed", "", 50), "%s", when);
    cr_assert(grows("/open", "", 50), "%s", when);
}

/* ---- trouble ----------------------------------------------------------------------------------------------------- */

/* Else the one that was killed would come back as the empty master of its slots. */
static void wait_for_replica_of(int master)
{
    const struct redis_server *replica = &cluster.nodes[REDIS_CLUSTER_MASTERS + master];
    for (int i = 0; i < 2000; i++) {
        if (redis_says(replica, "ROLE", "*3\r\n$6\r\nmaster"))
            return;
        usleep(10000);
    }
    cr_assert_fail("no replica took over from master %d", master);
}

Test(rate_limits_failover, a_cluster_that_loses_its_masters_one_after_the_other)
{
    char where[512];
    int status;
    cr_assert(redis_cluster_start(&cluster));
    snprintf(where, sizeof(where), "cluster: [\"%s\", \"%s\", \"%s\"]", cluster.nodes[0].url, cluster.nodes[1].url,
             cluster.nodes[2].url);
    start(where);
    /* Every address has a bucket of its own somewhere, and each is exact. */
    for (int address = 1; address <= 12; address++) {
        char from[32];
        unsigned passed = 0;
        snprintf(from, sizeof(from), "127.0.2.%d", address);
        for (int i = 0; i < 12; i++) {
            (void)ask(from, "/ten", &status);
            passed += status == 200;
        }
        cr_expect_eq(passed, 10, "%s", from);
    }
    load_begin();
    expect_counting("at the start");
    for (int i = 0; i < REDIS_CLUSTER_MASTERS; i++) {
        redis_kill(&cluster.nodes[i]);
        cr_expect(grows("/closed", "fail_closed", 1) || of("/closed", "circuit_open") > 0, "node %d", i);
        wait_for_replica_of(i);
        expect_counting("its replica has taken over");
        cr_assert(redis_start(&cluster.nodes[i]));
        cr_assert(redis_cluster_ok(&cluster, 20000));
    }
    expect_counting("all are back");
    load_finish();
    cr_expect_gt(of("/closed", "fail_closed") + of("/closed", "circuit_open"), 0);
    cr_expect_gt(of("/open", "emergency_local_limit"), 0);
    /* What was spent stays spent where replicas took over; they lag by less than this load's pauses. */
    unsigned again = 0;
    for (int address = 1; address <= 12; address++) {
        char from[32];
        snprintf(from, sizeof(from), "127.0.2.%d", address);
        (void)ask(from, "/ten", &status);
        again += status == 200;
    }
    cr_expect_eq(again, 0);
}

static void *busy_script(void *arg)
{
    struct sz_slice words[] = {SZ_S("EVAL"), SZ_S("while true do end"), SZ_S("0")};
    free(redis_ask(arg, words, SZ_COUNT(words), NULL));
    return NULL;
}

Test(rate_limits_failover, a_server_that_is_killed_in_the_middle_of_a_script)
{
    char where[256];
    pthread_t busy;
    cr_assert(redis_start(&server));
    snprintf(where, sizeof(where), "url: \"%s\"", server.url);
    start(where);
    load_begin();
    expect_counting("at the start");
    for (int i = 0; i < 2; i++) {
        cr_assert_eq(pthread_create(&busy, NULL, busy_script, &server), 0);
        cr_expect(grows("/closed", "fail_closed", 3), "nothing is answered while a script runs");
        cr_expect(grows("/open", "emergency_local_limit", 1));
        redis_kill(&server);
        pthread_join(busy, NULL);
        cr_expect(grows("/closed", "circuit_open", 20));
        cr_expect(grows("/open", "emergency_local_limit", 20));
        cr_assert(redis_start(&server));
        expect_counting("it is back");
    }
    load_finish();
    cr_expect_gt(of("/open", "redis_timeout") + of("/open", "circuit_open") + of("/open", "redis_connection_error"), 0);
}

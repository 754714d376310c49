/* The gateway beside a real Redis: connected at the start or later, lost and found, and what people see of it. */
#include "integration/harness.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fake/redis.h"

static struct gateway gw;
static struct redis_server server;
static struct upstream *up;

#define HEAD                                                       \
    "listen: [{address: \"127.0.0.1:{port}\"}]\n"                  \
    "admin: {address: \"127.0.0.1:{admin}\"}\n"                    \
    "workers: 2\n"                                                 \
    "upstreams: {up: {urls: [\"http://127.0.0.1:{upstream}\"]}}\n" \
    "routes:\n"                                                    \
    "  - {id: open, match: {path: '/*'}, public: true, upstream: up}\n"

static void setup(void)
{
    if (!redis_available())
        cr_skip_test("no redis-server here");
    sz_crypto_init();
    scratch_write("fleet.key", SZ_S("MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE=\n"));
    up = upstream_start(NULL);
    server = (struct redis_server){.password = "hunter2"};
    cr_assert(redis_start(&server));
}

static void teardown(void)
{
    stop_gateway(&gw);
    redis_kill(&server);
    upstream_stop(&up);
    scratch_remove();
}

TestSuite(redis, .init = setup, .fini = teardown, .timeout = 90);

static void start(const char *login, const char *more)
{
    char yaml[2048];
    snprintf(yaml, sizeof(yaml), HEAD "redis: {url: \"redis://%s127.0.0.1:%u/1\", key_file: \"{dir}/fleet.key\"%s}\n",
             login, server.port, more);
    cr_assert(gateway_start(&gw, yaml, upstream_port(up)));
}

/* /health says so within 10 s. */
static bool health_says(const char *text)
{
    bool found = false;
    for (int i = 0; i < 200 && !found; i++) {
        char *health = gateway_admin(&gw, "/health");
        found = health != NULL && strstr(health, text) != NULL;
        free(health);
        usleep(found ? 0 : 50000);
    }
    return found;
}

Test(redis, lost_and_found_without_a_restart)
{
    start(":hunter2@", "");
    cr_expect(health_says("\"redis\":{\"status\":\"ok\""));
    redis_kill(&server);
    cr_expect(health_says("\"redis\":{\"status\":\"unreachable\""));
    cr_expect(gateway_logged(&gw, "lost redis://127.0.0.1:"));
    cr_assert(redis_start(&server));
    cr_expect(health_says("\"redis\":{\"status\":\"ok\""));
    cr_expect(gateway_logged(&gw, "again"));
    cr_expect_geq(gateway_metric(&gw, "subzero_redis_reconnects_total"), 1);
    cr_expect_eq(gateway_metric(&gw, "subzero_breaker_state{dependency=\"redis\"}"), 0);
}

Test(redis, a_start_needs_none)
{
    redis_kill(&server);
    start(":hunter2@", "");
    cr_expect(health_says("\"redis\":{\"status\":\"unreachable\""));
    cr_assert(redis_start(&server));
    cr_expect(health_says("\"redis\":{\"status\":\"ok\""));
}

Test(redis, connections_are_counted_and_bounded)
{
    start(":hunter2@", ", max_connections: 4");
    cr_expect(health_says("\"redis\":{\"status\":\"ok\""));
    usleep(300000);
    char *clients = redis_say(&server, "CLIENT LIST TYPE normal");
    unsigned n = 0;
    for (const char *at = clients; (at = strstr(at, "name=subzero")) != NULL; at++)
        n++;
    cr_expect(n == 3, "%u: one for each thread\n%s", n, clients);
    cr_expect_eq(gateway_metric(&gw, "subzero_redis_connections"), 4, "and one that listens");
    free(clients);
}

Test(redis, its_password_is_nowhere)
{
    start("default:hunter2@", "");
    cr_expect(health_says("\"redis\":{\"status\":\"ok\""));
    cr_assert(redis_says(&server, "CONFIG SET requirepass hunter3", "+OK"));
    server.password = "hunter3";
    free(redis_say(&server, "CLIENT KILL TYPE normal"));
    free(redis_say(&server, "CLIENT KILL TYPE pubsub"));
    cr_expect(health_says("WRONGPASS"));
    static const char *const pages[] = {"/health", "/config", "/metrics", "/readyz?verbose", "/breakers"};
    for (size_t i = 0; i < SZ_COUNT(pages); i++) {
        char *page = gateway_admin(&gw, pages[i]);
        cr_expect(page != NULL && strstr(page, "hunter") == NULL, "%s shows it: %s", pages[i], page);
        free(page);
    }
    char *log = file_read(gw.proc.log, NULL);
    cr_expect_null(strstr(log, "hunter"));
    free(log);
}

Test(redis, an_evicting_server_is_told_of)
{
    cr_assert(redis_says(&server, "CONFIG SET maxmemory-policy allkeys-lru", "+OK"));
    start(":hunter2@", "");
    cr_expect(health_says("\"redis\":{\"status\":\"may_evict\""));
    cr_expect(gateway_logged(&gw, "set it to noeviction"));
}

/* Facts that instances share through Redis: shared, sealed, never trusted, and never waited for beyond their budget. */
#include <signal.h>
#include <sys/wait.h>

#include "fake/redis.h"
#include "provider_kit.h"
#include "subzero/crypto.h"

static struct redis_server redis;
static struct gateway second;
static bool second_runs;

static void setup(void)
{
    provider_kit_init();
    (void)scratch_write("fleet.key", SZ_S("MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=\n"));
    cr_assert(redis_start(&redis));
    second_runs = false;
}

static void teardown(void)
{
    if (second_runs)
        stop_gateway(&second);
    redis_stop(&redis);
    provider_kit_fini();
}

TestSuite(l2, .init = setup, .fini = teardown, .timeout = 120);

static const char *top(const char *more)
{
    static char text[512];
    snprintf(text, sizeof(text), "redis: {url: \"%s\", key_file: \"%s/fleet.key\", timeout: 200ms}\n%s", redis.url,
             scratch_path(), more);
    return text;
}

static const char *asked(void)
{
    static char text[512];
    snprintf(text, sizeof(text),
             ", introspection: {endpoint: \"%s/introspect\", client_id: gateway, client_secret_file: \"%s\"}",
             provider_url(kit_provider), scratch_write("secret", sz_cstr(PROVIDER_SECRET)));
    return text;
}

static void start_second(const char *more)
{
    char *yaml = kit_yaml(top(more), asked());
    cr_assert(gateway_start(&second, yaml, upstream_port(kit_upstream)));
    second_runs = true;
    free(yaml);
}

static void start_both(const char *more)
{
    kit_start(top(more), asked());
    start_second(more);
    kit_sleep(300); /* connections to Redis */
}

static int ask_second(const char *token)
{
    return http1_ask(second.port, "GET", "/x", token, NULL, NULL, NULL);
}

static unsigned asks(void)
{
    return provider_calls(kit_provider, PROVIDER_INTROSPECT);
}

static double hits(struct gateway *g)
{
    return gateway_metric(g, "subzero_cache_hits_total{layer=\"l2\",kind=\"token\"}");
}

/* The one key that is there, once there is one. */
static char *only_key(void)
{
    for (int i = 0; i < 100 && redis_number(&redis, "DBSIZE") < 1; i++)
        kit_sleep(20);
    cr_assert_eq(redis_number(&redis, "DBSIZE"), 1);
    char *reply = redis_say(&redis, "RANDOMKEY"), *at = strstr(reply, "subzero:"), *key;
    cr_assert_not_null(at, "%s", reply);
    key = sz_xmalloc(strlen(at) + 1);
    memcpy(key, at, strcspn(at, "\r") + 1);
    key[strcspn(at, "\r")] = '\0';
    free(reply);
    return key;
}

Test(l2, what_one_asked_all_know)
{
    start_both("");
    char *token = provider_opaque(kit_provider, "alice", 600, NULL);
    kit_expect(token, 200, "", "asked");
    char *key = only_key();
    cr_expect_eq(ask_second(token), 200);
    cr_expect_eq(asks(), 1);
    cr_expect_eq(hits(&second), 1);
    size_t n;
    struct sz_slice get[] = {SZ_S("GET"), sz_cstr(key)};
    char *value = redis_ask(&redis, get, 2, &n);
    cr_expect_null(memmem(value, n, "alice", 5), "nothing in clear");
    cr_expect_null(strstr(key, token));
    int64_t ttl = redis_number(&redis, "DBSIZE");
    cr_expect_eq(ttl, 1);
    char *pttl = redis_say(&redis, "PTTL %s", key);
    long ms = strtol(pttl + 1, NULL, 10);
    cr_expect(ms > 0 && ms <= 300000, "%s", pttl);
    free(pttl);
    free(value);
    free(key);
    free(token);
}

Test(l2, rejections_never_enter)
{
    start_both("");
    kit_expect("never-issued", 401, "invalid_token", "unknown");
    kit_sleep(200);
    cr_expect_eq(redis_number(&redis, "DBSIZE"), 0);
}

/* Whoever can write to Redis can make a fact be forgotten, and nothing else. */
Test(l2, an_adversary_in_redis_makes_nobody_somebody_else)
{
    kit_start(top("cache: {l1: {ttl_opaque: 1ms}}\n"), asked());
    kit_sleep(300);
    char *alice = provider_opaque(kit_provider, "alice", 600, NULL),
         *bob = provider_opaque(kit_provider, "bob", 600, NULL);
    kit_expect(alice, 200, "", "alice");
    char *of_alice = only_key();
    free(redis_say(&redis, "RENAME %s kept", of_alice));
    kit_expect(bob, 200, "", "bob");
    for (int i = 0; i < 100 && redis_number(&redis, "DBSIZE") < 2; i++)
        kit_sleep(20);
    free(redis_say(&redis, "RENAME kept other"));
    char *reply = redis_say(&redis, "KEYS subzero:*"), *at = strstr(reply, "subzero:");
    at[strcspn(at, "\r")] = '\0';
    free(redis_say(&redis, "COPY other %s REPLACE", at));
    unsigned before = asks();
    kit_sleep(20);
    kit_expect(bob, 200, "", "alice's entry under bob's key");
    cr_expect_eq(asks(), before + 1, "it was not believed");
    cr_expect(kit_metric_reaches("subzero_l2_bad_values_total", 1, 1000));
    kit_sleep(100);
    static const struct {
        const char *before, *after;
    } damage[] = {{"SETRANGE", "60 x"}, {"SET", "garbage"}, {"DEL", ""}, {"APPEND", "x"}, {"SETRANGE", "0 z"}};
    for (size_t i = 0; i < SZ_COUNT(damage); i++) {
        free(redis_say(&redis, "%s %s %s", damage[i].before, at, damage[i].after));
        kit_sleep(20);
        before = asks();
        kit_expect(bob, 200, "", damage[i].before);
        cr_expect_eq(asks(), before + 1, "%s", damage[i].before);
        kit_sleep(100);
    }
    free(redis_say(&redis, "DEL %s", at));
    free(redis_say(&redis, "LPUSH %s x", at));
    kit_sleep(20);
    kit_expect(bob, 200, "", "a list where a string belongs");
    cr_expect_eq(gateway_metric(&kit_gateway, "subzero_breaker_state{dependency=\"redis\"}"), 0);
    free(reply);
    free(of_alice);
    free(alice);
    free(bob);
}

Test(l2, without_redis_the_provider_is_asked)
{
    kit_start(top("cache: {l1: {ttl_opaque: 1ms}}\n"), asked());
    char *token = provider_opaque(kit_provider, "alice", 600, NULL);
    kit_expect(token, 200, "", "with it");
    redis_pause(&redis);
    for (int i = 0; i < 12; i++) {
        double begun = kit_now();
        kit_sleep(5);
        kit_expect(token, 200, "", "stopped");
        cr_expect_lt(kit_now() - begun, 1.0, "%.3f s", kit_now() - begun);
    }
    redis_continue(&redis);
    redis_kill(&redis);
    kit_expect(token, 200, "", "dead");
    free(token);
}

static void *shoot_second(void *arg)
{
    struct kit_shot *shot = arg;
    shot->status = ask_second(shot->token);
    return NULL;
}

Test(l2, with_a_lease_the_fleet_asks_once)
{
    struct kit_shot here[10] = {{0}}, there[10] = {{0}};
    start_both("cache: {l2: {lease: 1s}}\n");
    char *token = provider_opaque(kit_provider, "alice", 600, NULL);
    provider_play(kit_provider, PROVIDER_INTROSPECT, &(struct provider_script){.latency_ms = 1700});
    for (size_t i = 0; i < SZ_COUNT(there); i++) {
        there[i].token = here[i].token = token;
        cr_assert_eq(pthread_create(&there[i].thread, NULL, shoot_second, &there[i]), 0);
    }
    kit_shoot(here, SZ_COUNT(here));
    for (size_t i = 0; i < SZ_COUNT(there); i++) {
        pthread_join(there[i].thread, NULL);
        cr_expect(here[i].status == 200 && there[i].status == 200, "%d %d", here[i].status, there[i].status);
    }
    cr_expect_eq(asks(), 1, "%u questions: the lease was renewed while it was being asked", asks());
    for (int i = 0; i < 50 && redis_number(&redis, "DBSIZE") > 1; i++)
        kit_sleep(20);
    cr_expect_eq(redis_number(&redis, "DBSIZE"), 1, "the lease was given back");
    free(token);
}

Test(l2, a_leader_that_dies_costs_one_lease)
{
    struct kit_shot lost = {0};
    start_both("cache: {l2: {lease: 1s}}\n");
    char *token = provider_opaque(kit_provider, "alice", 600, NULL);
    lost.token = token;
    provider_play(kit_provider, PROVIDER_INTROSPECT, &(struct provider_script){.latency_ms = 1900});
    cr_assert_eq(pthread_create(&lost.thread, NULL, shoot_second, &lost), 0);
    for (int i = 0; i < 100 && asks() == 0; i++)
        kit_sleep(20);
    cr_assert_eq(kill(second.proc.pid, SIGKILL), 0);
    cr_assert_eq(waitpid(second.proc.pid, NULL, 0), second.proc.pid);
    second_runs = false;
    pthread_join(lost.thread, NULL);
    provider_play(kit_provider, PROVIDER_INTROSPECT, &(struct provider_script){.latency_ms = 10});
    double begun = kit_now();
    kit_expect(token, 200, "", "the lease of the dead one ends");
    cr_expect_lt(kit_now() - begun, 2.5);
    cr_expect_eq(asks(), 2);
    free(token);
}

/* With Redis in hostile hands: a lease that nobody gives back. */
Test(l2, a_lease_that_never_ends_locks_nobody_out)
{
    kit_start(top("cache: {l1: {ttl_opaque: 1ms}, l2: {lease: 1s}}\nlimits: {request_timeout: 2s}\n"), asked());
    kit_sleep(300);
    char *token = provider_opaque(kit_provider, "alice", 600, NULL);
    kit_expect(token, 200, "", "first");
    char *key = only_key();
    for (int i = 0; i < 100 && redis_number(&redis, "DBSIZE") > 1; i++)
        kit_sleep(20);
    free(redis_say(&redis, "DEL %s", key));
    free(redis_say(&redis, "SET %s:lease x", key));
    kit_expect(token, 200, "", "the provider is asked all the same");
    free(key);
    free(token);
}

Test(l2, jwts_too_where_it_is_asked_for)
{
    start_both("cache: {l2: {jwt: true}}\n");
    char *token = provider_jwt(kit_provider, "alice", 600, NULL);
    kit_expect(token, 200, "", "verified");
    free(only_key());
    cr_expect_eq(ask_second(token), 200);
    cr_expect_eq(hits(&second), 1);
    free(token);
}

Test(l2, a_full_redis_pauses_writes_and_nothing_else)
{
    redis_stop(&redis);
    redis.options[0] = "--maxmemory";
    redis.options[1] = "1mb";
    redis.options[2] = "--maxmemory-policy";
    redis.options[3] = "noeviction";
    cr_assert(redis_start(&redis));
    kit_start(top(""), asked());
    kit_sleep(300);
    for (int i = 0; i < 5; i++) {
        char *token = provider_opaque(kit_provider, "alice", 600, NULL);
        kit_expect(token, 200, "", "full");
        free(token);
    }
    cr_expect(gateway_logged(&kit_gateway, "Redis is full"));
    cr_expect_eq(gateway_metric(&kit_gateway, "subzero_breaker_state{dependency=\"redis\"}"), 0);
}

Test(l2, the_cache_may_have_a_server_of_its_own)
{
    struct redis_server own = {0};
    char more[256];
    cr_assert(redis_start(&own));
    snprintf(more, sizeof(more), "cache: {l2: {redis: {url: \"%s\"}}}\n", own.url);
    start_both(more);
    char *token = provider_opaque(kit_provider, "alice", 600, NULL);
    kit_expect(token, 200, "", "asked");
    for (int i = 0; i < 100 && redis_number(&own, "DBSIZE") < 1; i++)
        kit_sleep(20);
    cr_expect_eq(redis_number(&own, "DBSIZE"), 1);
    cr_expect_eq(redis_number(&redis, "DBSIZE"), 0);
    cr_expect_eq(ask_second(token), 200);
    cr_expect_eq(hits(&second), 1);
    redis_kill(&own);
    char *other = provider_opaque(kit_provider, "bob", 600, NULL);
    kit_expect(other, 200, "", "without it");
    free(other);
    free(token);
}

static bool said_of(struct sz_slice said, struct sz_slice secret)
{
    uint8_t digest[32];
    char hex[65];
    sz_sha256(secret, digest);
    sz_hex_encode(digest, 32, hex);
    return memmem(said.p, said.n, secret.p, secret.n) != NULL || memmem(said.p, said.n, hex, 16) != NULL ||
           memmem(said.p, said.n, digest, 6) != NULL;
}

/* Nor a hash that whoever has a guess could compute: of tokens, and of whom they are for. */
Test(l2, monitor_shows_nothing_that_can_be_guessed)
{
    struct proc monitor = {0};
    char port[16], *cli = strdup(program_find("redis-cli"));
    start_both("cache: {l1: {ttl: 1ms, ttl_opaque: 1ms}, l2: {jwt: true}}\n");
    snprintf(port, sizeof(port), "%u", redis.port);
    const char *argv[] = {cli, "-p", port, "monitor", NULL};
    cr_assert(proc_start(&monitor, "monitor", 0, argv));
    kit_sleep(500);
    char *jwt = provider_jwt(kit_provider, "alice-the-great", 600, "\"scope\":\"read-the-books\""),
         *opaque = provider_opaque(kit_provider, "bob-the-builder", 600, NULL);
    for (int i = 0; i < 3; i++) {
        kit_expect(jwt, 200, "", "jwt");
        kit_expect(opaque, 200, "", "opaque");
        cr_expect_eq(ask_second(jwt), 200);
        cr_expect_eq(ask_second(opaque), 200);
        kit_sleep(100);
    }
    proc_stop(&monitor);
    size_t n;
    char *text = file_read(monitor.log, &n);
    cr_assert_not_null(strstr(text, "subzero:"), "it was listened to");
    const char *const secrets[] = {jwt, opaque, "alice-the-great", "bob-the-builder", "read-the-books"};
    for (size_t i = 0; i < SZ_COUNT(secrets); i++)
        cr_expect_not(said_of(sz_slice(text, n), sz_cstr(secrets[i])), "%zu", i);
    free(text);
    free(jwt);
    free(opaque);
    free(cli);
}

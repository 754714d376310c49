/*
 * Blocks of two instances that share a Redis: by hand and by score, set and lifted; what somebody with full access to
 * Redis can do with them; Redis gone.
 */
#include <stdio.h>
#include <stdlib.h>

#include "fake/redis.h"
#include "integration/revoke_kit.h"
#include "subzero/crypto.h"

#define SEALED 880

static struct gateway a, b;
static struct redis_server server;
static struct issuer issuer;
static struct upstream *up;
static char *alice, *bob;

#define YAML                                                                       \
    "listen: [{address: \"127.0.0.1:{port}\"}]\n"                                  \
    "admin: {address: \"127.0.0.1:{admin}\"}\n"                                    \
    "workers: 1\n"                                                                 \
    "log: {access: off}\n"                                                         \
    "trusted_proxies: [127.0.0.1/32]\n"                                            \
    "threat: {mode: enforce, share: true, allow: [198.51.100.7/32]}\n" ISSUER_YAML \
    "upstreams: {up: {urls: [\"http://127.0.0.1:{upstream}\"]}}\n"                 \
    "routes:\n"                                                                    \
    "  - {id: doc, match: {path: '/doc/*'}, auth: {issuers: [test]}, upstream: up}\n"

static char yaml[4096];

static void start(struct gateway *g, const char *name)
{
    cr_assert(gateway_start_as(g, name, yaml, upstream_port(up)));
}

static bool hears(struct gateway *g)
{
    return revoke_health(g, "\"blocks\":{\"status\":\"ok\"");
}

static void start_with(const char *more)
{
    snprintf(yaml, sizeof(yaml), YAML "redis: {url: \"%s\", key_file: \"{dir}/fleet.key\"}\n%s", server.url, more);
    start(&a, "a");
    start(&b, "b");
    cr_assert(hears(&a) && hears(&b));
}

static void setup(void)
{
    if (!redis_available())
        cr_skip_test("no redis-server here");
    sz_crypto_init();
    scratch_write("fleet.key", SZ_S("MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE=\n"));
    issuer_init(&issuer);
    alice = issuer_token(&issuer, "alice", 3600, NULL);
    bob = issuer_token(&issuer, "bob", 3600, NULL);
    up = upstream_start(NULL);
    server = (struct redis_server){0};
    cr_assert(redis_start(&server));
}

static void teardown(void)
{
    redis_continue(&server);
    stop_gateway(&a);
    stop_gateway(&b);
    redis_kill(&server);
    upstream_stop(&up);
    sz_signer_free(&issuer.signer);
    free(alice);
    free(bob);
    scratch_remove();
}

TestSuite(threat_fleet, .init = setup, .fini = teardown, .timeout = 120);

/* ---- asking ------------------------------------------------------------------------------------------------------ */

static int get(struct gateway *g, const char *from, const char *token)
{
    struct http1_response r = {0};
    char field[80];
    snprintf(field, sizeof(field), "X-Forwarded-For: %s\r\n", from);
    int status = http1_ask(g->port, "GET", "/doc/1", token, field, NULL, &r);
    http1_response_fini(&r);
    return status;
}

static bool becomes(struct gateway *g, const char *from, const char *token, int status)
{
    for (int i = 0; i < 500; i++) {
        if (get(g, from, token) == status)
            return true;
        poll(NULL, 0, 10);
    }
    return false;
}

static int admin(struct gateway *g, const char *method, const char *path, const char *body, char id[17])
{
    struct http1_response r = {0};
    struct sz_buf request = {0};
    sz_buf_printf(&request, "%s %s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: %zu\r\n\r\n%s",
                  method, path, strlen(body), body);
    int status = http1_exchange(g->admin, sz_buf_slice(&request), &r);
    const char *at = r.body.p == NULL ? NULL : strstr(r.body.p, "\"id\":\"");
    if (id != NULL)
        snprintf(id, 17, "%.16s", at != NULL ? at + 6 : "");
    sz_buf_fini(&request);
    http1_response_fini(&r);
    return status;
}

static void block(struct gateway *g, const char *body, char id[17])
{
    cr_assert_eq(admin(g, "POST", "/threat/blocks", body, id), 201, "%s", body);
}

static int lift(struct gateway *g, const char *id)
{
    char path[64];
    snprintf(path, sizeof(path), "/threat/blocks/%s", id);
    return admin(g, "DELETE", path, "", NULL);
}

static double events(struct gateway *g, const char *event)
{
    char name[96];
    snprintf(name, sizeof(name), "subzero_threat_shared_blocks_total{event=\"%s\"}", event);
    return (double)gateway_metric(g, name);
}

/* ---- set and lifted ---------------------------------------------------------------------------------------------- */

Test(threat_fleet, what_one_blocks_all_block_and_what_one_lifts_is_lifted)
{
    char first[17], second[17];
    start_with("");
    block(&a, "{\"address\":\"203.0.113.5\",\"ttl\":\"1h\",\"reason\":\"abuse\"}", first);
    block(&b, "{\"subject\":\"bob\",\"ttl\":\"1h\"}", second);
    cr_expect(becomes(&b, "203.0.113.5", alice, 403));
    cr_expect(becomes(&a, "203.0.113.6", bob, 403));
    cr_expect_eq(get(&b, "203.0.113.6", alice), 200, "nobody else");
    char *listed = gateway_admin(&b, "/threat/blocks");
    cr_expect(strstr(listed, first) != NULL && strstr(listed, "\"by\":\"hand\"") != NULL &&
                  strstr(listed, "\"reason\":\"abuse\"") != NULL && strstr(listed, "\"next_cursor\":null") != NULL,
              "%s", listed);
    free(listed);
    cr_expect_eq(admin(&b, "POST", "/threat/blocks", "{\"address\":\"203.0.113.5\",\"ttl\":\"2h\"}", second), 200);
    cr_expect_str_eq(first, second, "one block, wherever it is asked for");
    /* Lifted where it was not set. */
    cr_expect_eq(lift(&b, first), 200);
    cr_expect_eq(get(&b, "203.0.113.5", alice), 200);
    cr_expect(becomes(&a, "203.0.113.5", alice, 200));
    cr_expect_eq(lift(&a, first), 404);
    /* And again: the later word holds. */
    block(&a, "{\"address\":\"203.0.113.5\",\"ttl\":\"1m\"}", first);
    cr_expect(becomes(&b, "203.0.113.5", alice, 403));
    cr_expect_eq(get(&a, "203.0.113.5", alice), 403);
    /* Nobody tells us about those whom our configuration allows. */
    block(&a, "{\"address\":\"198.51.100.7\",\"ttl\":\"1h\"}", first);
    poll(NULL, 0, 300);
    cr_expect_eq(get(&b, "198.51.100.7", alice), 200);
}

Test(threat_fleet, whom_one_finds_all_block)
{
    char bad[64], id[17];
    start_with("");
    for (int i = 0; i < 40 && get(&a, "203.0.113.9", alice) != 403; i++) {
        snprintf(bad, sizeof(bad), "aaaa.bbbb.%d", i);
        (void)get(&a, "203.0.113.9", bad);
    }
    cr_expect_eq(get(&a, "203.0.113.9", alice), 403);
    cr_expect(becomes(&b, "203.0.113.9", alice, 403), "it did nothing there");
    cr_expect_eq(get(&b, "203.0.113.10", alice), 200);
    char *listed = gateway_admin(&b, "/threat/blocks");
    const char *at = strstr(listed, "\"id\":\"");
    cr_assert(at != NULL && strstr(listed, "\"by\":\"score\"") != NULL, "%s", listed);
    snprintf(id, sizeof(id), "%.16s", at + 6);
    free(listed);
    cr_expect_eq(lift(&b, id), 200);
    cr_expect_eq(get(&b, "203.0.113.9", alice), 200);
    cr_expect(becomes(&a, "203.0.113.9", alice, 200));
}

/* ---- somebody with full access to Redis -------------------------------------------------------------------------- */

static void key_of(char key[64])
{
    const char *at = NULL;
    for (int i = 0; i < 200 && at == NULL; i++) {
        char *keys = redis_say(&server, "KEYS *:blocks");
        at = strstr(keys, "subzero:{");
        if (at != NULL)
            snprintf(key, 64, "%.*s", (int)strcspn(at, "\r"), at);
        free(keys);
        poll(NULL, 0, 10);
    }
    cr_assert_not_null(at);
}

/* A bulk reply's bytes. */
static struct sz_slice bulk(const struct sz_slice *args, size_t n, struct sz_buf *out)
{
    size_t got;
    char *answer = redis_ask(&server, args, n, &got), *line = answer == NULL ? NULL : strstr(answer, "\r\n");
    cr_assert(line != NULL && answer[0] == '$');
    sz_buf_add(out, line + 2, got - (size_t)(line + 4 - answer));
    free(answer);
    return sz_buf_slice(out);
}

static void announce(const char *key, const char *number, struct sz_slice record)
{
    char channel[80];
    struct sz_buf message = {0};
    size_t n;
    snprintf(channel, sizeof(channel), "%.*sblocked", (int)(strlen(key) - strlen("blocks")), key);
    sz_buf_printf(&message, "%s %.*s", number, SZ_FMT(record));
    const struct sz_slice args[] = {SZ_S("PUBLISH"), sz_cstr(channel), sz_buf_slice(&message)};
    free(redis_ask(&server, args, 3, &n));
    sz_buf_fini(&message);
}

static void put_record(const char *key, const char *number, struct sz_slice record)
{
    const struct sz_slice args[] = {SZ_S("HSET"), sz_cstr(key), sz_cstr(number), record};
    size_t n;
    free(redis_ask(&server, args, 4, &n));
}

Test(threat_fleet, a_block_put_back_stays_lifted)
{
    char key[64], id[17], number[16];
    struct sz_buf old = {0}, dump = {0};
    size_t n;
    start_with("");
    block(&a, "{\"address\":\"203.0.113.5\",\"ttl\":\"1h\"}", id);
    cr_expect(becomes(&b, "203.0.113.5", alice, 403));
    key_of(key);
    struct sz_slice record = bulk((struct sz_slice[]){SZ_S("HGET"), sz_cstr(key), SZ_S("1")}, 3, &old);
    cr_assert_eq(record.n, SEALED);
    struct sz_slice whole = bulk((struct sz_slice[]){SZ_S("DUMP"), sz_cstr(key)}, 2, &dump);
    cr_expect_eq(lift(&a, id), 200);
    cr_expect(becomes(&b, "203.0.113.5", alice, 200));
    /* The old record, under its number, under others, announced; then all of the hash as it was. */
    for (int i = 1; i < 6; i++) {
        snprintf(number, sizeof(number), "%d", i);
        put_record(key, number, record);
        announce(key, number, record);
    }
    poll(NULL, 0, 500);
    cr_expect_eq(get(&a, "203.0.113.5", alice), 200);
    cr_expect_eq(get(&b, "203.0.113.5", alice), 200);
    const struct sz_slice restore[] = {SZ_S("RESTORE"), sz_cstr(key), SZ_S("0"), whole, SZ_S("REPLACE")};
    char *answer = redis_ask(&server, restore, 5, &n);
    cr_assert(answer != NULL && strncmp(answer, "+OK", 3) == 0, "%s", answer);
    free(answer);
    poll(NULL, 0, 500);
    cr_expect_eq(get(&a, "203.0.113.5", alice), 200);
    cr_expect_eq(get(&b, "203.0.113.5", alice), 200);
    /* One that knows nothing comes to a Redis that was set back: those who know have written the lift again. */
    cr_expect(gateway_stop(&b));
    answer = redis_ask(&server, restore, 5, &n);
    free(answer);
    start(&b, "b");
    cr_assert(hears(&b));
    cr_expect(becomes(&b, "203.0.113.5", alice, 200));
    cr_expect_eq(get(&a, "203.0.113.5", alice), 200);
    sz_buf_fini(&old);
    sz_buf_fini(&dump);
}

Test(threat_fleet, lifts_outlive_everybody_where_there_is_a_disk)
{
    char key[64], id[17];
    struct sz_buf dump = {0};
    size_t n;
    start_with("state_dir: \"{dir}/state-{admin}\"\n");
    block(&a, "{\"address\":\"203.0.113.5\",\"ttl\":\"1h\"}", id);
    cr_expect(becomes(&b, "203.0.113.5", alice, 403));
    key_of(key);
    struct sz_slice whole = bulk((struct sz_slice[]){SZ_S("DUMP"), sz_cstr(key)}, 2, &dump);
    cr_expect_eq(lift(&b, id), 200);
    cr_expect(becomes(&a, "203.0.113.5", alice, 200));
    poll(NULL, 0, 300); /* what was heard is written without anybody waiting for it */
    gateway_kill(&a);
    gateway_kill(&b);
    free(redis_ask(&server, (struct sz_slice[]){SZ_S("RESTORE"), sz_cstr(key), SZ_S("0"), whole, SZ_S("REPLACE")}, 5,
                   &n));
    cr_assert(gateway_again(&a));
    cr_assert(gateway_again(&b));
    cr_assert(hears(&a) && hears(&b));
    cr_expect_eq(get(&a, "203.0.113.5", alice), 200);
    cr_expect_eq(get(&b, "203.0.113.5", alice), 200);
    /* And a block that stands does, where Redis has lost it. */
    block(&a, "{\"address\":\"203.0.113.6\",\"ttl\":\"1h\"}", id);
    cr_expect(becomes(&b, "203.0.113.6", alice, 403));
    poll(NULL, 0, 300);
    gateway_kill(&a);
    gateway_kill(&b);
    free(redis_say(&server, "FLUSHALL"));
    cr_assert(gateway_again(&b));
    cr_expect_eq(get(&b, "203.0.113.6", alice), 403);
    cr_assert(gateway_again(&a));
    cr_expect(becomes(&a, "203.0.113.6", alice, 403));
    sz_buf_fini(&dump);
}

Test(threat_fleet, forgeries_block_nobody_and_redis_learns_nothing)
{
    char key[64], id[17];
    struct sz_buf one = {0};
    start_with("");
    block(&a, "{\"subject\":\"bob-the-great\",\"ttl\":\"1h\",\"reason\":\"a-reason\"}", id);
    block(&a, "{\"address\":\"203.0.113.5\",\"ttl\":\"1h\"}", id);
    cr_expect(becomes(&b, "203.0.113.5", alice, 403));
    key_of(key);
    struct sz_slice record = bulk((struct sz_slice[]){SZ_S("HGET"), sz_cstr(key), SZ_S("1")}, 3, &one);
    char *all = redis_say(&server, "HGETALL %s", key);
    cr_expect(strstr(all, "bob-the") == NULL && strstr(all, "203.0") == NULL && strstr(all, "a-reason") == NULL);
    free(all);
    double before = events(&b, "forged");
    for (size_t i = 0; i < SEALED; i += 97) {
        one.p[i] ^= 1;
        announce(key, "3", record);
        put_record(key, "3", record);
        one.p[i] ^= 1;
    }
    announce(key, "x", SZ_S("y"));
    announce(key, "-1", record);
    announce(key, "3", sz_sub(record, 0, SEALED - 1));
    cr_expect_geq(events(&b, "forged"), before + 12);
    static const char *const deeds[] = {"HSET %s s 99999999999", "HSET %s s rubbish", "HSET %s e x", "HDEL %s e",
                                        "HSET %s 1 rubbish",     "HDEL %s 1 2",       "DEL %s",      "FLUSHALL",
                                        "SET %s a-string"};
    for (size_t i = 0; i < SZ_COUNT(deeds); i++) {
        char text[128], address[32], body[96];
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
        snprintf(text, sizeof(text), deeds[i], key);
#pragma GCC diagnostic pop
        free(redis_say(&server, "%s", text));
        poll(NULL, 0, 300);
        snprintf(address, sizeof(address), "203.0.113.%zu", 50 + i);
        snprintf(body, sizeof(body), "{\"address\":\"%s\",\"ttl\":\"1h\"}", address);
        cr_expect_eq(get(&b, address, alice), 200);
        block(&a, body, id);
        cr_expect(becomes(&b, address, alice, 403), "after %s", text);
        cr_expect_eq(get(&b, "203.0.113.5", alice), 403);
        cr_expect_eq(get(&b, "203.0.113.200", bob), 200);
    }
    cr_assert(hears(&a) && hears(&b));
    sz_buf_fini(&one);
}

/* ---- Redis gone -------------------------------------------------------------------------------------------------- */

Test(threat_fleet, without_redis_blocks_go_on_and_are_caught_up)
{
    char shared[17], lone[17];
    start_with("");
    block(&a, "{\"address\":\"203.0.113.5\",\"ttl\":\"1h\"}", shared);
    cr_expect(becomes(&b, "203.0.113.5", alice, 403));
    redis_kill(&server);
    cr_assert(revoke_health(&a, "\"blocks\":{\"status\":\"cut_off\"") &&
              revoke_health(&b, "\"blocks\":{\"status\":\"cut_off\""));
    block(&a, "{\"address\":\"203.0.113.6\",\"ttl\":\"1h\"}", lone);
    cr_expect_eq(get(&a, "203.0.113.6", alice), 403);
    cr_expect_eq(get(&b, "203.0.113.6", alice), 200, "it cannot know");
    cr_expect_eq(get(&b, "203.0.113.5", alice), 403, "what it heard before goes on");
    cr_expect_eq(lift(&b, shared), 200);
    cr_expect_eq(get(&b, "203.0.113.5", alice), 200);
    cr_expect_eq(get(&a, "203.0.113.5", alice), 403);
    cr_assert(redis_start(&server)); /* empty */
    cr_expect(becomes(&b, "203.0.113.6", alice, 403));
    cr_expect(becomes(&a, "203.0.113.5", alice, 200));
    cr_expect_eq(get(&b, "203.0.113.5", alice), 200);
    cr_assert(hears(&a) && hears(&b));
}

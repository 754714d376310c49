/* Revocations at one instance: what is understood, what is refused from then on, and what outlives kill -9. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include "integration/revoke_kit.h"

static struct gateway gw;
static struct issuer issuer;
static struct upstream *up;

#define HEAD                                                                                  \
    "listen: [{address: \"127.0.0.1:{port}\"}]\n"                                             \
    "admin: {address: \"127.0.0.1:{admin}\"}\n"                                               \
    "workers: 2\n" ISSUER_YAML "upstreams: {up: {urls: [\"http://127.0.0.1:{upstream}\"]}}\n" \
    "routes:\n"                                                                               \
    "  - {id: all, match: {path: '/*'}, auth: {issuers: [test]}, upstream: up}\n"
#define DISK "state_dir: \"{dir}/state\"\n"

static void setup(void)
{
    issuer_init(&issuer);
    up = upstream_start(NULL);
}

static void teardown(void)
{
    stop_gateway(&gw);
    upstream_stop(&up);
    sz_signer_free(&issuer.signer);
    scratch_remove();
}

TestSuite(revocation, .init = setup, .fini = teardown, .timeout = 120);

static void start(const char *yaml)
{
    cr_assert(gateway_start(&gw, yaml, upstream_port(up)));
}

Test(revocation, what_is_understood_and_what_is_not)
{
    static const struct {
        const char *body;
        int status;
    } rows[] = {
        {"", 400},
        {"[]", 400},
        {"{\"kind\":\"jti\",\"kind\":\"sid\",\"value\":\"a\"}", 400},
        {"{}", 422},
        {"{\"kind\":\"jti\"}", 422},
        {"{\"kind\":\"jti\",\"value\":\"\"}", 422},
        {"{\"kind\":\"jti\",\"value\":7}", 422},
        {"{\"kind\":\"user\",\"value\":\"a\"}", 422},
        {"{\"kind\":\"jti\",\"value\":\"a\",\"until\":\"b\"}", 422},
        {"{\"kind\":\"jti\",\"value\":\"a\",\"issuer\":\"nobody\"}", 422},
        {"{\"kind\":\"jti\",\"value\":\"a\",\"issuer\":null}", 422},
        {"{\"kind\":\"jti\",\"value\":\"a\",\"before\":1}", 422},
        {"{\"kind\":\"subject\",\"value\":\"a\",\"before\":\"yesterday\"}", 422},
        {"{\"kind\":\"subject\",\"value\":\"a\",\"before\":\"2026-01-01\"}", 422},
        {"{\"kind\":\"subject\",\"value\":\"a\",\"before\":\"2026-01-01T00:00:00\"}", 422},
        {"{\"kind\":\"subject\",\"value\":\"a\",\"before\":\"2026-13-01T00:00:00Z\"}", 422},
        {"{\"kind\":\"subject\",\"value\":\"a\",\"before\":-1}", 422},
        {"{\"kind\":\"issuer\",\"value\":\"nobody\"}", 422},
        {"{\"kind\":\"jti\",\"value\":\"a\"}", 201},
        {"{\"kind\":\"jti\",\"value\":\"a\",\"issuer\":\"test\",\"reason\":\"stolen\"}", 200},
        {"{\"kind\":\"jti\",\"value\":\"a\",\"issuer\":\"" ISSUER_NAME "\"}", 200},
        {"{\"kind\":\"sid\",\"value\":\"a\"}", 201},
        {"{\"kind\":\"kid\",\"value\":\"a\"}", 201},
        {"{\"kind\":\"client\",\"value\":\"a\",\"before\":\"2026-01-01T00:00:00.5+01:00\"}", 201},
        {"{\"kind\":\"client\",\"value\":\"a\",\"before\":\"2025-12-31T23:00:00Z\"}", 200},
        {"{\"kind\":\"client\",\"value\":\"a\",\"before\":1767222001}", 201},
        {"{\"kind\":\"token\",\"value\":\"opaque-thing\"}", 201},
        {"{\"kind\":\"token\",\"value\":\"opaque-thing\"}", 200},
    };
    start(HEAD);
    for (size_t i = 0; i < SZ_COUNT(rows); i++) {
        int status = revoke_post(&gw, rows[i].body, NULL, NULL);
        cr_expect_eq(status, rows[i].status, "%s: %d", rows[i].body, status);
    }
    struct http1_response r = {0};
    cr_expect_eq(http1_exchange(gw.admin, SZ_S("GET /revocations HTTP/1.1\r\nHost: localhost\r\n\r\n"), &r), 405);
    cr_expect_eq(http1_ask(gw.port, "POST", "/revocations", NULL, NULL, "{}", &r), 401, "not of the data listener");
    http1_response_fini(&r);
}

Test(revocation, every_kind_ends_the_token_that_is_in_the_cache)
{
    static const char *const bodies[] = {
        "{\"kind\":\"jti\",\"value\":\"j%zu\"}",
        "{\"kind\":\"sid\",\"value\":\"s%zu\"}",
        "{\"kind\":\"subject\",\"value\":\"u%zu\"}",
        "{\"kind\":\"client\",\"value\":\"c%zu\",\"issuer\":\"test\"}",
    };
    start(HEAD);
    char *other = issuer_token(&issuer, "other", 300, "\"jti\":\"j\",\"sid\":\"s\",\"client_id\":\"c\"");
    for (size_t i = 0; i < SZ_COUNT(bodies); i++) {
        char claims[128], sub[16], body[128];
        snprintf(claims, sizeof(claims), "\"jti\":\"j%zu\",\"sid\":\"s%zu\",\"client_id\":\"c%zu\"", i, i, i);
        snprintf(sub, sizeof(sub), "u%zu", i);
        char *token = issuer_token(&issuer, sub, 300, claims);
        cr_expect_eq(revoke_get(&gw, token), 200);
        cr_expect_eq(revoke_get(&gw, token), 200);
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
        snprintf(body, sizeof(body), bodies[i], i);
#pragma GCC diagnostic pop
        cr_expect_eq(revoke_post(&gw, body, NULL, NULL), 201);
        cr_expect_eq(revoke_get(&gw, token), 401, "%s", body);
        cr_expect_eq(revoke_get(&gw, other), 200, "%s", body);
        free(token);
    }
    cr_expect_eq(revoke_by(&gw, "{\"kind\":\"issuer\",\"issuer\":\"test\"}"), 201);
    cr_expect_eq(revoke_get(&gw, other), 401);
    free(other);
}

/* What was acknowledged is in force after a kill, again and again, with the process dying in the middle of writes. */
Test(revocation, kill_9_after_an_answer_loses_nothing)
{
    enum { ROUNDS = 4, EACH = 20 };
    char *tokens[ROUNDS * EACH], id[32];
    int n = 0;
    start(DISK HEAD);
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < EACH; i++, n++) {
            snprintf(id, sizeof(id), "\"jti\":\"k%d\"", n);
            tokens[n] = issuer_token(&issuer, "alice", 300, id);
            cr_expect_eq(revoke_by(&gw, "{\"kind\":\"jti\",\"value\":\"k%d\"}", n), 201);
        }
        gateway_kill(&gw);
        cr_assert(gateway_again(&gw));
        for (int i = 0; i < n; i++)
            cr_expect_eq(revoke_get(&gw, tokens[i]), 401, "round %d: %d", round, i);
    }
    for (int i = 0; i < n; i++)
        free(tokens[i]);
}

Test(revocation, full_is_503_and_forgets_nobody)
{
    struct http1_response r = {0};
    start("revocation: {capacity: 3}\n" HEAD);
    char *token = issuer_token(&issuer, "u0", 300, NULL);
    for (int i = 0; i < 3; i++)
        cr_expect_eq(revoke_by(&gw, "{\"kind\":\"subject\",\"value\":\"u%d\"}", i), 201);
    cr_expect_eq(revoke_post(&gw, "{\"kind\":\"subject\",\"value\":\"u3\"}", NULL, &r), 503);
    expect_answer(&r, 503, "", "full");
    cr_expect_not_null(strstr(r.body.p, "revocation.capacity"));
    cr_expect_eq(revoke_get(&gw, token), 401);
    cr_expect(revoke_health(&gw, "\"revocations\":{\"status\":\"full\""));
    http1_response_fini(&r);
    free(token);
}

Test(revocation, an_idempotency_key_is_answered_once)
{
    static const char key[] = "Idempotency-Key: 7f0c\r\n", body[] = "{\"kind\":\"jti\",\"value\":\"once\"}";
    struct http1_response first = {0}, again = {0};
    start(HEAD);
    cr_expect_eq(revoke_post(&gw, body, key, &first), 201);
    cr_expect_eq(revoke_post(&gw, body, key, &again), 200, "the first answer, and that it stood");
    cr_expect_str_eq(first.body.p, again.body.p);
    cr_expect_eq(revoke_post(&gw, "{\"kind\":\"jti\",\"value\":\"other\"}", key, &again), 422);
    cr_expect_eq(revoke_post(&gw, body, "Idempotency-Key: other\r\n", &again), 200);
    cr_expect_eq(revoke_post(&gw, "{}", "Idempotency-Key: bad\r\n", &again), 422);
    cr_expect_eq(revoke_post(&gw, "{}", "Idempotency-Key: bad\r\n", &again), 422);
    cr_expect_eq(revoke_post(&gw, body, "Idempotency-Key: a b\r\n", &again), 400);
    cr_expect_eq(revoke_post(&gw, body, "Idempotency-Key: a\r\nIdempotency-Key: b\r\n", &again), 400);
    http1_response_fini(&first);
    http1_response_fini(&again);
}

static int run(const char *input, const char *const *argv)
{
    char command[2048], address[32];
    size_t n = 0;
    snprintf(address, sizeof(address), "127.0.0.1:%u", gw.admin);
    n += (size_t)snprintf(command + n, sizeof(command) - n, "%s '%s' revoke --admin %s", input, SZ_BINARY, address);
    for (; *argv != NULL; argv++)
        n += (size_t)snprintf(command + n, sizeof(command) - n, " '%s'", *argv);
    n += (size_t)snprintf(command + n, sizeof(command) - n, " >/dev/null 2>&1");
    int status = system(command);
    return WEXITSTATUS(status);
}
#define RUN(input, ...) run(input, (const char *const[]){__VA_ARGS__, NULL})

Test(revocation, the_command)
{
    char input[4096];
    start(HEAD);
    char *token = issuer_token(&issuer, "alice", 300, NULL), *other = issuer_token(&issuer, "bob", 300, NULL);
    cr_expect_eq(revoke_get(&gw, token), 200);
    snprintf(input, sizeof(input), "printf '%%s\\n' '%s' |", token);
    cr_expect_eq(RUN(input, "--token-stdin"), 0);
    cr_expect_eq(revoke_get(&gw, token), 401);
    cr_expect_eq(revoke_get(&gw, other), 200);
    cr_expect_eq(RUN("", "--subject", "bob", "--issuer", "test"), 0);
    cr_expect_eq(revoke_get(&gw, other), 401);
    cr_expect_eq(RUN("", "--subject", "bob", "--issuer", "nobody"), 1);
    cr_expect_eq(RUN("", "--subject", "bob", "--before", "2026-01-01T00:00:00Z"), 0);
    cr_expect_eq(RUN("", "--subject", "bob", "--before", "soon"), 1);
    cr_expect_eq(RUN("", "--subject", "bob", "--jti", "x"), 2);
    cr_expect_eq(RUN("", "--help"), 0);
    cr_expect_eq(RUN("", "bob"), 2);
    cr_expect_eq(RUN("", "--subject", "bob", "--admin", "127.0.0.1:1"), 3, "nobody there");
    free(token);
    free(other);
}

/* Nothing about whom is said in the log, and the file of what is revoked names nobody. */
Test(revocation, who_is_revoked_is_not_written_down)
{
    char path[256];
    start(DISK HEAD);
    char *token = issuer_token(&issuer, "mallory-the-great", 300, NULL);
    cr_expect_eq(revoke_by(&gw, "{\"kind\":\"token\",\"value\":\"%s\"}", token), 201);
    cr_expect_eq(revoke_by(&gw, "{\"kind\":\"subject\",\"value\":\"mallory-the-great\",\"reason\":\"hush\"}"), 201);
    snprintf(path, sizeof(path), "%s/state/revocations", scratch_path());
    size_t n;
    char *file = file_read(path, &n), *log = file_read(gw.proc.log, NULL);
    cr_expect_eq(n, 240);
    cr_expect_null(memmem(file, n, "mallory", 7));
    cr_expect_null(strstr(log, "mallory"));
    cr_expect_null(strstr(log, token));
    free(file);
    free(log);
    free(token);
}

/*
 * The gateway in front of an upstream, with relation checks in a remote store that behaves in every way a server can: a
 * yes is a 200 and a no a 403, and everything that is neither is a 503 with its reason, never one of the two.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "fake/openfga.h"
#include "harness.h"

#define ROUTES                                                                                         \
    "upstreams: {up: {urls: [\"http://127.0.0.1:{upstream}\"]}}\n"                                     \
    "routes:\n"                                                                                        \
    "  - id: one\n"                                                                                    \
    "    match: {path: \"/documents/{id}\"}\n"                                                         \
    "    auth: {issuers: [test]}\n"                                                                    \
    "    authorize: {user: \"user:{claims.sub}\", relation: viewer, object: \"document:{path.id}\"}\n" \
    "    upstream: up\n"                                                                               \
    "  - id: all\n"                                                                                    \
    "    match: {path: \"/all/{a}/{b}/{c}\"}\n"                                                        \
    "    auth: {issuers: [test]}\n"                                                                    \
    "    authorize:\n"                                                                                 \
    "      all:\n"                                                                                     \
    "        - {user: \"user:{claims.sub}\", relation: viewer, object: \"document:{path.a}\"}\n"       \
    "        - {user: \"user:{claims.sub}\", relation: editor, object: \"document:{path.b}\"}\n"       \
    "        - {user: \"user:{claims.sub}\", relation: owner, object: \"document:{path.c}\"}\n"        \
    "    upstream: up\n"                                                                               \
    "  - id: any\n"                                                                                    \
    "    match: {path: \"/any/{a}/{b}\"}\n"                                                            \
    "    auth: {issuers: [test]}\n"                                                                    \
    "    authorize:\n"                                                                                 \
    "      any:\n"                                                                                     \
    "        - {user: \"user:{claims.sub}\", relation: viewer, object: \"document:{path.a}\"}\n"       \
    "        - {user: \"user:{claims.sub}\", relation: editor, object: \"document:{path.b}\"}\n"       \
    "    upstream: up\n"

static struct openfga fga;
static struct upstream *upstream;
static struct issuer issuer;
static struct gateway g;
static char *alice, *bob;

static void set_up(void)
{
    openfga_init(&fga);
    upstream = upstream_start(NULL);
    upstream_play(upstream, &(struct upstream_script){.forgets = true});
    issuer_init(&issuer);
    alice = issuer_token(&issuer, "alice", 600, NULL);
    bob = issuer_token(&issuer, "bob", 600, NULL);
}

static void tear_down(void)
{
    if (g.config != NULL)
        stop_gateway(&g);
    openfga_fini(&fga);
    upstream_stop(&upstream);
    sz_signer_free(&issuer.signer);
    free(alice);
    free(bob);
    scratch_remove();
}

TestSuite(fga_remote, .init = set_up, .fini = tear_down, .timeout = 60);

/* top: further lines at the top; more: further lines of the fga section. */
static void start(const char *top, const char *more)
{
    char *yaml;
    cr_assert(asprintf(&yaml,
                       "listen: [{address: \"127.0.0.1:{port}\"}]\n"
                       "admin: {address: \"127.0.0.1:{admin}\"}\n"
                       "workers: 2\n"
                       "%s" ISSUER_YAML "%s%s" ROUTES,
                       top, openfga_yaml(&fga), more) > 0);
    cr_assert(gateway_start(&g, yaml, upstream_port(upstream)));
    free(yaml);
}

#define NO_CACHE "cache: {decisions: {capacity: 0}}\n"
#define QUICK    "  timeout: 300ms\n  retries: 0\n  breaker: {failures: 1000}\n"

static void expect(const char *token, const char *path, int status, const char *reason, const char *what)
{
    struct http1_response r = {0};
    http1_ask(g.port, "GET", path, token, NULL, NULL, &r);
    expect_answer(&r, status, reason, what);
    http1_response_fini(&r);
}

Test(fga_remote, yes_and_no_are_kept_and_errors_are_not)
{
    start("", "");
    for (int i = 0; i < 3; i++) {
        expect(alice, "/documents/1", 200, "", "a yes");
        expect(bob, "/documents/1", 403, "not_permitted", "a no");
        expect(alice, "/documents/unknown", 503, "authz_error", "an error about the question");
    }
    cr_expect_eq(fga.checks, 5, "%u", fga.checks);
    cr_expect_eq(gateway_metric(&g, "subzero_cache_hits_total{layer=\"l1\",kind=\"decision\"}"), 4);
    cr_expect_eq(gateway_metric(&g, "subzero_errors_total{component=\"fga_misconfigured\"}"), 3);
    cr_expect(gateway_logged(&g, "a matter of configuration, not of permission"));
    cr_expect(strstr(fga.last, "\"authorization_model_id\":\"" OPENFGA_MODEL "\"") != NULL, "%s", fga.last);
}

#define HEAD(status, more)    "HTTP/1.1 " status "\r\nConnection: close\r\n" more "\r\n"
#define BODY(status, n, body) HEAD(status, "Content-Type: application/json\r\nContent-Length: " n "\r\n") body

Test(fga_remote, whatever_is_no_answer_is_503)
{
    static const struct {
        const char *what, *bytes;
    } answers[] = {
        {"429", HEAD("429 Too Many Requests", "Retry-After: 7\r\nContent-Length: 0\r\n")},
        {"500", BODY("500 X", "42", "{\"code\":\"internal_error\",\"message\":\"oh!\"} ")},
        {"500 that says allowed", BODY("500 X", "16", "{\"allowed\":true}")},
        {"502 html", HEAD("502 Bad Gateway", "Content-Type: text/html\r\nContent-Length: 6\r\n") "<html>"},
        {"200 html", HEAD("200 OK", "Content-Type: text/html\r\nContent-Length: 6\r\n") "<html>"},
        {"200 nothing", HEAD("200 OK", "Content-Length: 0\r\n")},
        {"204", HEAD("204 No Content", "")},
        {"allowed missing", BODY("200 OK", "2", "{}")},
        {"allowed a string", BODY("200 OK", "18", "{\"allowed\":\"true\"}")},
        {"allowed a number", BODY("200 OK", "13", "{\"allowed\":1}")},
        {"allowed null", BODY("200 OK", "16", "{\"allowed\":null}")},
        {"allowed twice", BODY("200 OK", "32", "{\"allowed\":false,\"allowed\":true} ")},
        {"allowed inside", BODY("200 OK", "25", "{\"result\":{\"allowed\":true}}")},
        {"a list", BODY("200 OK", "18", "[{\"allowed\":true}]")},
        {"cut JSON", BODY("200 OK", "14", "{\"allowed\":tru")},
        {"more than JSON", BODY("200 OK", "18", "{\"allowed\":true}{}")},
        {"cut short", BODY("200 OK", "100", "{\"allowed\":true}")},
        {"a redirect", HEAD("302 Found", "Location: http://127.0.0.1:9/\r\nContent-Length: 0\r\n")},
        {"401", BODY("401 X", "25", "{\"code\":\"invalid_claims\"}")},
        {"403", BODY("403 X", "20", "{\"code\":\"forbidden\"}")},
        {"404 of a proxy", HEAD("404 Not Found", "Content-Length: 0\r\n")},
        {"400 of a proxy", HEAD("400 Bad Request", "Content-Length: 4\r\n") "what"},
        {"no HTTP", "hello\r\n\r\n"},
    };
    start(NO_CACHE, QUICK);
    for (size_t i = 0; i < SZ_COUNT(answers); i++) {
        upstream_play(fga.upstream, &(struct upstream_script){.answer = sz_cstr(answers[i].bytes), .close = true});
        expect(alice, "/documents/1", 503, "authz_unavailable", answers[i].what);
        expect(bob, "/documents/1", 503, "authz_unavailable", answers[i].what);
    }
    openfga_reset(&fga);
    expect(alice, "/documents/1", 200, "", "well again");
}

Test(fga_remote, a_server_that_fails_below_http_is_503)
{
    static const struct {
        const char *what;
        struct upstream_script script;
    } faults[] = {
        {"hangs at accept", {.fault_at = UPSTREAM_AT_ACCEPT, .fault = UPSTREAM_HANG}},
        {"hangs at the answer", {.fault_at = UPSTREAM_AT_ANSWER, .fault = UPSTREAM_HANG}},
        {"resets", {.fault_at = UPSTREAM_AT_ANSWER, .fault = UPSTREAM_RESET}},
        {"closes", {.fault_at = UPSTREAM_AT_HEAD, .fault = UPSTREAM_CLOSE}},
        {"huge", {.stream = 100 * 1000 * 1000}},
    };
    start(NO_CACHE, QUICK);
    for (size_t i = 0; i < SZ_COUNT(faults); i++) {
        upstream_play(fga.upstream, &faults[i].script);
        expect(alice, "/documents/1", 503, "authz_unavailable", faults[i].what);
        expect(bob, "/documents/1", 503, "authz_unavailable", faults[i].what);
    }
    upstream_refuse(fga.upstream);
    expect(alice, "/documents/1", 503, "authz_unavailable", "refuses");
    upstream_accept(fga.upstream);
    openfga_reset(&fga);
    expect(bob, "/documents/1", 403, "not_permitted", "well again");
}

Test(fga_remote, errors_about_the_question_keep_their_name)
{
    start(NO_CACHE, QUICK);
    expect(alice, "/documents/deep", 503, "authz_error", "too deep");
    expect(alice, "/documents/malformed", 503, "authz_error", "malformed");
    expect(alice, "/documents/internal", 503, "authz_unavailable", "internal error");
    expect(alice, "/documents/missing", 503, "authz_unavailable", "no allowed");
}

Test(fga_remote, it_is_told_when_to_come_again)
{
    struct http1_response r = {0};
    char after[32] = "";
    start(NO_CACHE, QUICK);
    upstream_play(fga.upstream,
                  &(struct upstream_script){.answer = SZ_S(HEAD("429 X", "Retry-After: 7\r\nContent-Length: 0\r\n")),
                                            .close = true});
    http1_ask(g.port, "GET", "/documents/1", alice, NULL, NULL, &r);
    http1_field(&r, "retry-after", after, sizeof(after));
    cr_expect_str_eq(after, "7");
    http1_response_fini(&r);
}

Test(fga_remote, a_failure_that_passes_is_tried_again)
{
    start(NO_CACHE, "  retries: 2\n");
    upstream_play(fga.upstream,
                  &(struct upstream_script){.answer = SZ_S(HEAD("503 X", "Content-Length: 0\r\n")), .close = true});
    expect(alice, "/documents/1", 503, "authz_unavailable", "never well");
    cr_expect_eq(upstream_count(fga.upstream), 3, "%zu", upstream_count(fga.upstream));
}

Test(fga_remote, the_breaker_opens_and_closes_again)
{
    start(NO_CACHE, "  timeout: 300ms\n  retries: 0\n  breaker: {failures: 3, open: 500ms}\n");
    upstream_play(fga.upstream,
                  &(struct upstream_script){.answer = SZ_S(HEAD("500 X", "Content-Length: 0\r\n")), .close = true});
    for (int i = 0; i < 6; i++)
        expect(alice, "/documents/1", 503, "authz_unavailable", "down");
    /* The client hears before the breaker does, and its next request may come to the other worker meanwhile. */
    cr_expect_leq(upstream_count(fga.upstream), 4, "%zu", upstream_count(fga.upstream));
    cr_expect_eq(gateway_metric(&g, "subzero_breaker_state{dependency=\"fga\"}"), 1);
    openfga_reset(&fga);
    usleep(600 * 1000);
    expect(alice, "/documents/1", 200, "", "the probe");
    expect(bob, "/documents/1", 403, "not_permitted", "closed");
    cr_expect_eq(gateway_metric(&g, "subzero_breaker_state{dependency=\"fga\"}"), 0);
}

/* ---- many at once ------------------------------------------------------------------------------------------------ */

struct shot {
    const char *token;
    char path[64];
    int status;
    char reason[64];
    pthread_t thread;
};

static void *shoot(void *arg)
{
    struct shot *shot = arg;
    struct http1_response r = {0};
    shot->status = http1_ask(g.port, "GET", shot->path, shot->token, NULL, NULL, &r);
    if (!http1_field(&r, "x-subzero-reason", shot->reason, sizeof(shot->reason)))
        shot->reason[0] = '\0';
    http1_response_fini(&r);
    return NULL;
}

static void shoot_all(struct shot *shots, size_t n)
{
    for (size_t i = 0; i < n; i++)
        cr_assert_eq(pthread_create(&shots[i].thread, NULL, shoot, &shots[i]), 0);
    for (size_t i = 0; i < n; i++)
        pthread_join(shots[i].thread, NULL);
}

Test(fga_remote, a_hundred_who_ask_the_same_make_one_call)
{
    static struct shot shots[100];
    start("", "");
    expect(bob, "/documents/other", 403, "", "its token is known");
    fga.wait_ms = 500;
    for (size_t i = 0; i < SZ_COUNT(shots); i++)
        shots[i] = (struct shot){.token = bob, .path = "/documents/1"};
    shoot_all(shots, SZ_COUNT(shots));
    for (size_t i = 0; i < SZ_COUNT(shots); i++)
        cr_expect_eq(shots[i].status, 403, "%zu: %d", i, shots[i].status);
    cr_expect_eq(fga.checks + fga.batched, 2, "%u + %u", fga.checks, fga.batched);
    cr_expect_geq(gateway_metric(&g, "subzero_coalesced_total{kind=\"decision\"}"), 50);
}

/* Who waits behind one connection of a turn shares a call; a bad question among them harms nobody else. */
static void mixed(const char *more, unsigned rounds)
{
    static struct shot shots[40];
    start("cache: {decisions: {capacity: 0}, l1: {ttl: 1h}}\n", more);
    for (unsigned round = 0; round < rounds; round++) {
        for (size_t i = 0; i < SZ_COUNT(shots); i++) {
            static const char *const odd[] = {"unknown", "deep", "malformed", "internal", "missing"};
            shots[i] = (struct shot){.token = i % 2 ? bob : alice};
            snprintf(shots[i].path, sizeof(shots[i].path), "/documents/%s", i % 8 == 7 ? odd[i / 8] : "plain");
        }
        shoot_all(shots, SZ_COUNT(shots));
        for (size_t i = 0; i < SZ_COUNT(shots); i++) {
            bool is_odd = i % 8 == 7, error = is_odd && i / 8 < 3;
            const char *reason = !is_odd ? (i % 2 ? "not_permitted" : "") : error ? "authz_error" : "authz_unavailable";
            cr_expect(shots[i].status == (is_odd  ? 503
                                          : i % 2 ? 403
                                                  : 200) &&
                          strcmp(shots[i].reason, reason) == 0,
                      "%s: %d %s", shots[i].path, shots[i].status, shots[i].reason);
        }
    }
}

Test(fga_remote, a_bad_question_in_a_batch_harms_nobody)
{
    mixed("  breaker: {failures: 1000}\n  retries: 0\n", 10);
    cr_expect_gt(fga.batches, 0);
    cr_expect_gt(fga.batched, fga.batches);
}

Test(fga_remote, a_server_without_batches_is_asked_one_by_one)
{
    fga.no_batch = true;
    mixed("  breaker: {failures: 1000}\n  retries: 0\n", 3);
    cr_expect_eq(fga.batched, 0);
    cr_expect_geq(fga.checks, 120);
}

/* ---- consistency, credentials ------------------------------------------------------------------------------------ */

Test(fga_remote, higher_consistency_is_asked_for_and_passes_by_the_cache)
{
    start("", "  consistency: higher_consistency\n");
    for (int i = 0; i < 3; i++)
        expect(alice, "/documents/1", 200, "", "a yes");
    cr_expect_eq(fga.checks, 3);
    cr_expect_eq(fga.high, 3);
}

Test(fga_remote, a_preshared_key_is_sent)
{
    fga.token_needed = 7;
    scratch_write("key", SZ_S("token-7\n"));
    start(NO_CACHE, "  token_file: \"{dir}/key\"\n");
    expect(alice, "/documents/1", 200, "", "the key is right");
    fga.token_needed = 8;
    expect(alice, "/documents/1", 503, "authz_unavailable", "the key is wrong");
    cr_expect_eq(fga.tokens, 0);
    cr_expect(gateway_logged(&g, "a matter of configuration"));
}

static void start_with_client(const char *more)
{
    char *text;
    scratch_write("secret", SZ_S("s3cret&=+\n"));
    cr_assert(asprintf(&text,
                       "  client_id: gateway\n  client_secret_file: \"{dir}/secret\"\n"
                       "  token_issuer: \"http://127.0.0.1:%u/\"\n  breaker: {failures: 1000}\n  retries: 0\n%s",
                       (unsigned)upstream_port(fga.upstream), more) > 0);
    start(NO_CACHE, text);
    free(text);
}

Test(fga_remote, one_token_for_all_and_a_new_one_after_a_401)
{
    static struct shot shots[40];
    fga.token_needed = 1;
    fga.wait_ms = 20;
    start_with_client("");
    for (size_t i = 0; i < SZ_COUNT(shots); i++)
        shots[i] = (struct shot){.token = alice, .path = "/documents/1"};
    shoot_all(shots, SZ_COUNT(shots));
    for (size_t i = 0; i < SZ_COUNT(shots); i++)
        cr_expect_eq(shots[i].status, 200);
    cr_expect_eq(fga.tokens, 1, "one request in flight: %u", fga.tokens);
    fga.token_needed = 2; /* the server forgot the first */
    expect(alice, "/documents/1", 200, "", "asked again with a new one");
    cr_expect_eq(fga.refused, 1);
    cr_expect_eq(fga.tokens, 2);
}

Test(fga_remote, the_token_request_says_who_asks_and_for_what)
{
    fga.token_needed = 1;
    start_with_client("");
    fga.wait_ms = 300;
    struct shot shot = {.token = alice, .path = "/documents/1"};
    cr_assert_eq(pthread_create(&shot.thread, NULL, shoot, &shot), 0);
    usleep(450 * 1000);
    cr_expect(strstr(fga.last, "grant_type=client_credentials&client_id=gateway&client_secret=s3cret%26%3D%2B") != NULL,
              "%s", fga.last);
    cr_expect(strstr(fga.last, "&audience=http%3A%2F%2F127.0.0.1%3A") != NULL);
    pthread_join(shot.thread, NULL);
    cr_expect_eq(shot.status, 200);
}

Test(fga_remote, no_token_is_503_and_not_asked_for_by_everybody)
{
    fga.token_needed = 1;
    fga.token_status = 401;
    start_with_client("");
    for (int i = 0; i < 10; i++)
        expect(alice, "/documents/1", 503, "authz_unavailable", "no token");
    cr_expect_leq(fga.tokens, 3, "%u", fga.tokens);
    cr_expect_eq(fga.checks, 0);
    cr_expect(gateway_logged(&g, "client_id and secret are refused"));
    fga.token_status = 0;
    usleep(1100 * 1000);
    expect(alice, "/documents/1", 200, "", "well again");
}

Test(fga_remote, a_token_that_always_is_refused_is_503)
{
    fga.token_needed = 1;
    start_with_client("");
    expect(alice, "/documents/1", 200, "", "well");
    upstream_play(
        fga.upstream,
        &(struct upstream_script){.answer = SZ_S(BODY("401 X", "25", "{\"code\":\"invalid_claims\"}")), .close = true});
    expect(alice, "/documents/1", 503, "authz_unavailable", "refused twice");
}

Test(fga_remote, a_token_is_refreshed_ahead_of_its_end)
{
    fga.token_needed = 1;
    fga.token_life = 4; /* refreshed in its last second */
    start_with_client("");
    expect(alice, "/documents/1", 200, "", "well");
    usleep(3200 * 1000);
    expect(alice, "/documents/1", 200, "", "with the old one");
    usleep(400 * 1000);
    cr_expect_eq(fga.tokens, 2, "%u", fga.tokens);
    fga.token_status = 500;
    usleep(1200 * 1000);
    expect(alice, "/documents/1", 200, "", "the new one is there");
    cr_expect_eq(fga.refused, 0);
}

Test(fga_remote, a_reload_keeps_what_is_known)
{
    start("", "");
    expect(alice, "/documents/1", 200, "", "a yes");
    cr_assert(gateway_reload(&g));
    expect(alice, "/documents/1", 200, "", "the same");
    cr_expect_eq(fga.checks, 1);
}

Test(fga_remote, the_checks_of_a_request_are_one_call)
{
    start("", "");
    expect(alice, "/all/1/2/3", 200, "", "three of three");
    cr_expect_eq(fga.batches, 1);
    cr_expect_eq(fga.batched, 3);
    cr_expect_eq(fga.checks, 0);
    expect(alice, "/all/1/2/3", 200, "", "all of them kept");
    cr_expect_eq(fga.batches, 1);
    expect(bob, "/all/1/2/3", 403, "not_permitted", "none");
    expect(alice, "/all/1/unknown/3", 503, "authz_error", "one cannot be answered");
    expect(bob, "/all/1/unknown/3", 403, "not_permitted", "the first no decides");
    expect(bob, "/all/unknown/2/3", 403, "not_permitted", "so does a later one");
    expect(alice, "/any/internal/2", 200, "", "one yes is enough");
    expect(bob, "/any/internal/2", 503, "authz_unavailable", "the other might have been one");
    expect(bob, "/any/1/2", 403, "not_permitted", "two no");
}

Test(fga_remote, who_leaves_while_checks_are_under_way_harms_nobody)
{
    start(NO_CACHE, "");
    fga.wait_ms = 200;
    for (int i = 0; i < 10; i++) {
        char request[2048];
        int n =
            snprintf(request, sizeof(request),
                     "GET /all/%d/2/3 HTTP/1.1\r\nHost: gateway.test\r\nAuthorization: Bearer %s\r\n\r\n", i, alice);
        struct wire w;
        cr_assert(wire_open(&w, NULL, g.port));
        cr_assert(wire_send(&w, sz_slice(request, (size_t)n)));
        usleep(20 * 1000);
        wire_reset(&w);
    }
    expect(alice, "/all/1/2/3", 200, "", "who stays");
}

/* ---- a replica that is told nonsense ----------------------------------------------------------------------------- */

static void start_replica(void)
{
    char *yaml;
    cr_assert(asprintf(&yaml,
                       "listen: [{address: \"127.0.0.1:{port}\"}]\n"
                       "admin: {address: \"127.0.0.1:{admin}\"}\n" NO_CACHE ISSUER_YAML
                       "fga:\n  mode: replica\n  api_url: \"http://127.0.0.1:%u\"\n  store_id: " OPENFGA_STORE
                       "\n  model_id: " OPENFGA_MODEL "\n  changes: {poll: 100ms, max_lag: 30s}\n" ROUTES,
                       (unsigned)upstream_port(fga.upstream)) > 0);
    cr_assert(gateway_start(&g, yaml, upstream_port(upstream)));
    free(yaml);
}

Test(fga_remote, a_replica_takes_no_page_that_is_not_whole)
{
    char *carol = issuer_token(&issuer, "carol", 600, NULL);
    fga.bad_pages = 2;
    start_replica();
    cr_assert(gateway_logged(&g, "the store is copied: 2 tuples"));
    unsigned asked = fga.checks;
    expect(alice, "/documents/1", 200, "", "of the page that was bad at first");
    expect(carol, "/documents/1", 200, "", "of the next one");
    expect(bob, "/documents/1", 403, "not_permitted", "in none");
    cr_expect_eq(fga.checks, asked, "by the copy");
    cr_expect_eq(fga.pages, 4, "%u", fga.pages);
    free(carol);
}

Test(fga_remote, a_replica_whose_token_is_refused_reads_anew)
{
    start_replica();
    cr_assert(gateway_logged(&g, "the store is copied: 2 tuples"));
    fga.token_refused = true;
    cr_assert(gateway_logged(&g, "the store is read anew"));
    for (int i = 0; i < 50 && fga.pages < 4; i++)
        usleep(100 * 1000);
    usleep(300 * 1000);
    cr_expect_eq(fga.pages, 4, "%u", fga.pages);
    unsigned asked = fga.checks;
    expect(alice, "/documents/1", 200, "", "the new copy");
    expect(bob, "/documents/1", 403, "not_permitted", "the new copy");
    cr_expect_eq(fga.checks, asked, "by the copy");
}

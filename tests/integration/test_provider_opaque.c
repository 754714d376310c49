/* Opaque tokens: asked about once, by whom they belong to alone, and never believed without an answer. */
#include <signal.h>

#include "fake/client.h"
#include "provider_kit.h"

TestSuite(provider_opaque, .init = provider_kit_init, .fini = provider_kit_fini, .timeout = 120);

#define ASK                                                                                            \
    ", introspection: {endpoint: \"%s/introspect\", client_id: gateway, client_secret_file: \"%s\"%s}" \
    "%s"
#define STATE "subzero_breaker_state{dependency=\"issuer:idp\"}"

static const char *secret_file(void)
{
    return scratch_write("secret", sz_cstr(PROVIDER_SECRET));
}

/* The members of an issuer asked by introspection; more: of `introspection`; issuer: of the issuer. Valid until the
 * next. */
static const char *asked(const char *more, const char *issuer)
{
    static char text[1024];
    snprintf(text, sizeof(text), ASK, provider_url(kit_provider), secret_file(), more, issuer);
    return text;
}

static unsigned asks(void)
{
    return provider_calls(kit_provider, PROVIDER_INTROSPECT);
}

static void *shoot_one(void *shot)
{
    kit_shoot(shot, 1);
    return NULL;
}

Test(provider_opaque, a_hundred_at_once_are_one_question)
{
    struct kit_shot shots[100] = {{0}};
    kit_start("workers: 3\n", asked("", ""));
    char *token = provider_opaque(kit_provider, "alice", 600, NULL);
    provider_play(kit_provider, PROVIDER_INTROSPECT, &(struct provider_script){.latency_ms = 1000});
    for (size_t i = 0; i < SZ_COUNT(shots); i++)
        shots[i].token = token;
    kit_shoot(shots, SZ_COUNT(shots));
    for (size_t i = 0; i < SZ_COUNT(shots); i++)
        cr_expect_eq(shots[i].status, 200, "%zu: %d %s", i, shots[i].status, shots[i].reason);
    cr_expect_eq(asks(), 1, "%u questions", asks());
    cr_expect_eq(gateway_metric(&kit_gateway, "subzero_coalesced_total{kind=\"token\"}"), 99);
    free(token);
}

static size_t count_of(const char *text, const char *what)
{
    size_t n = 0;
    for (const char *at = text; (at = strstr(at, what)) != NULL; at++)
        n++;
    return n;
}

/* What comes behind a request that waits is read when its answer is out, and answered in turn; so is the end. */
Test(provider_opaque, a_connection_goes_on_behind_a_request_that_waits)
{
    static const struct provider_script slow = {.latency_ms = 600};
    char request[400], answers[8192];
    kit_start("", asked("", ""));
    char *token = provider_opaque(kit_provider, "alice", 600, NULL);
    for (int turn = 0; turn < 2; turn++) { /* refused by the gateway; proxied */
        struct sz_slice whole =
            sz_slice(request, (size_t)snprintf(request, sizeof(request),
                                               "GET /x HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer %s\r\n\r\n",
                                               turn == 0 ? "nobody-knows-it" : token));
        int fd = client_open(kit_gateway.port);
        provider_play(kit_provider, PROVIDER_INTROSPECT, &slow);
        cr_assert(client_send(fd, whole));
        kit_sleep(100);
        cr_assert(client_send(fd, whole));
        cr_assert(client_send(fd, sz_sub(whole, 0, 20)));
        kit_sleep(100);
        cr_assert(client_send(fd, sz_from(whole, 20)));
        client_read(fd, answers, sizeof(answers), 3000, NULL);
        cr_expect_eq(count_of(answers, turn == 0 ? "HTTP/1.1 401" : "HTTP/1.1 200"), 3, "%s", answers);
        close(fd);
        /* Gone while it waits. */
        provider_play(kit_provider, PROVIDER_INTROSPECT, &slow);
        fd = client_open(kit_gateway.port);
        snprintf(request, sizeof(request), "GET /x HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer other%d\r\n\r\n", turn);
        cr_assert(client_send(fd, sz_cstr(request)));
        kit_sleep(100);
        if (turn == 0)
            client_reset(fd);
        else
            close(fd);
    }
    for (double end = kit_now() + 10;
         kit_now() < end && gateway_metric(&kit_gateway, "subzero_requests_in_progress") > 0;)
        kit_sleep(50);
    cr_expect_eq(gateway_metric(&kit_gateway, "subzero_requests_in_progress"), 0);
    kit_expect(token, 200, "", "afterwards");
    free(token);
}

/* However many configurations come meanwhile, a request goes to the upstream of the one that it began with. */
Test(provider_opaque, a_request_waits_through_many_reloads)
{
    struct kit_shot shot = {0};
    char top[64];
    kit_start("", asked("", ""));
    char *token = provider_opaque(kit_provider, "alice", 600, NULL);
    shot.token = token;
    provider_play(kit_provider, PROVIDER_INTROSPECT, &(struct provider_script){.latency_ms = 6000});
    pthread_t thread;
    cr_assert_eq(pthread_create(&thread, NULL, shoot_one, &shot), 0);
    kit_sleep(300);
    double begun = kit_now();
    int reloads = 0;
    while (reloads < 12 && kit_now() - begun < 5) {
        snprintf(top, sizeof(top), "limits: {max_in_flight: %d}\n", 1000 + reloads);
        char *yaml = kit_yaml(top, asked("", ""));
        gateway_rewrite(&kit_gateway, yaml);
        free(yaml);
        cr_expect(gateway_reload(&kit_gateway));
        reloads++;
    }
    pthread_join(thread, NULL);
    cr_expect_geq(reloads, 10);
    cr_expect_eq(shot.status, 200, "%d %s after %d reloads", shot.status, shot.reason, reloads);
    free(token);
}

Test(provider_opaque, a_hundred_different_ones_are_asked_side_by_side)
{
    struct kit_shot shots[100] = {{0}};
    char *tokens[100], *warm;
    kit_start("workers: 1\n", asked("", ""));
    warm = provider_opaque(kit_provider, "warm", 600, NULL);
    kit_expect(warm, 200, "", "warm");
    provider_play(kit_provider, PROVIDER_INTROSPECT, &(struct provider_script){.latency_ms = 50});
    for (size_t i = 0; i < SZ_COUNT(shots); i++)
        shots[i].token = tokens[i] = provider_opaque(kit_provider, "alice", 600, NULL);
    double start = kit_now();
    kit_shoot(shots, SZ_COUNT(shots));
    double took = kit_now() - start;
    for (size_t i = 0; i < SZ_COUNT(shots); i++) {
        cr_expect_eq(shots[i].status, 200, "%zu: %d %s", i, shots[i].status, shots[i].reason);
        free(tokens[i]);
    }
    cr_expect_lt(took, 2.5, "%.2f s; one after another it would be 5", took);
    cr_expect_eq(asks(), 101);
    free(warm);
}

Test(provider_opaque, an_answer_is_kept_for_ttl_opaque_and_a_refusal_for_its_own)
{
    kit_start("cache: {l1: {ttl_opaque: 1s}, negative: {ttl: 2s}}\n", asked("", ""));
    char *token = provider_opaque(kit_provider, "alice", 600, NULL);
    for (int i = 0; i < 5; i++)
        kit_expect(token, 200, "", "kept");
    cr_expect_eq(asks(), 1);
    provider_revoke(kit_provider, token);
    kit_sleep(1100);
    for (int i = 0; i < 5; i++)
        kit_expect(token, 401, "invalid_token", "revoked at the provider");
    cr_expect_eq(asks(), 2);
    for (int i = 0; i < 5; i++)
        kit_expect("never-issued", 401, "invalid_token", "unknown");
    cr_expect_eq(asks(), 3);
    free(token);
}

Test(provider_opaque, the_gateway_proves_itself_in_each_way)
{
    struct sz_buf key = {0}, jwks = {0};
    struct sz_text why;
    char more[256];
    cr_assert_eq(sz_key_generate(SZ_ALG_ES256, &key), 0);
    struct sz_signer *signer = sz_signer_new(sz_buf_slice(&key), &why);
    cr_assert(signer != NULL && sz_signer_jwks(signer, &jwks) == 0);
    provider_client_keys(kit_provider, sz_buf_slice(&jwks));
    const char *key_file = scratch_write("client.jwk", sz_buf_slice(&key));
    kit_start("cache: {l1: {ttl_opaque: 1ms}}\n", asked(", auth: post", ""));
    char *token = provider_opaque(kit_provider, "alice", 600, NULL);
    kit_expect(token, 200, "", "post");
    snprintf(
        more, sizeof(more),
        ", introspection: {endpoint: \"%s/introspect\", client_id: gateway, auth: private_key_jwt, key_file: \"%s\"}",
        provider_url(kit_provider), key_file);
    char *yaml = kit_yaml("cache: {l1: {ttl_opaque: 1ms}}\n", more);
    gateway_rewrite(&kit_gateway, yaml);
    cr_expect(gateway_reload(&kit_gateway));
    kit_sleep(50);
    for (int i = 0; i < 3; i++) {
        kit_expect(token, 200, "", "private_key_jwt");
        kit_sleep(10);
    }
    free(yaml);
    yaml = kit_yaml("cache: {l1: {ttl_opaque: 1ms}}\n", (scratch_write("wrong", SZ_S("wrong")),
                                                         snprintf(more, sizeof(more),
                                                                  ", introspection: {endpoint: \"%s/introspect\", "
                                                                  "client_id: gateway, client_secret_file: wrong}",
                                                                  provider_url(kit_provider)),
                                                         more));
    gateway_rewrite(&kit_gateway, yaml);
    cr_expect(gateway_reload(&kit_gateway));
    kit_sleep(50);
    for (int i = 0; i < 10; i++)
        kit_expect(token, 503, "identity_unavailable", "our own credentials are refused: not the token's fault");
    cr_expect_eq(gateway_metric(&kit_gateway, STATE), 0, "and no outage");
    sz_signer_free(&signer);
    sz_buf_fini(&key);
    sz_buf_fini(&jwks);
    free(yaml);
    free(token);
}

Test(provider_opaque, what_is_no_clear_answer_is_no_verdict_and_is_not_kept)
{
    static const enum provider_fault faults[] = {PROVIDER_STATUS, PROVIDER_TRUNCATE, PROVIDER_HTML,  PROVIDER_REDIRECT,
                                                 PROVIDER_HUGE,   PROVIDER_EMPTY,    PROVIDER_RESET, PROVIDER_GARBAGE};
    kit_start("cache: {l1: {ttl_opaque: 1ms}}\n", asked("", ", breaker: {failures: 1000}"));
    char *token = provider_opaque(kit_provider, "alice", 600, NULL);
    for (size_t i = 0; i < SZ_COUNT(faults); i++) {
        struct provider_script script = {.fault = faults[i], .status = faults[i] == PROVIDER_STATUS ? 500 : 0};
        snprintf(script.location, sizeof(script.location), "%s/userinfo", provider_url(kit_provider));
        provider_play(kit_provider, PROVIDER_INTROSPECT, &script);
        char reason[64];
        int status = kit_ask(token, reason, NULL);
        cr_expect(status == 503 && strcmp(reason, "identity_unavailable") == 0, "fault %d: %d %s", (int)faults[i],
                  status, reason);
        provider_fault(kit_provider, PROVIDER_INTROSPECT, PROVIDER_WELL);
        kit_expect(token, 200, "", "not kept");
        kit_sleep(5);
    }
    cr_expect_eq(provider_calls(kit_provider, PROVIDER_USERINFO), 0, "no redirect with a credential is followed");
    free(token);
}

Test(provider_opaque, the_breaker_opens_after_five_failures_and_one_probe_closes_it)
{
    char token[32], retry_after[32], reason[64];
    kit_start("workers: 1\n", asked("", ", breaker: {failures: 5, open: 2s}"));
    char *good = provider_opaque(kit_provider, "alice", 600, NULL);
    provider_play(kit_provider, PROVIDER_INTROSPECT,
                  &(struct provider_script){.fault = PROVIDER_STATUS, .status = 500});
    for (int i = 0; i < 5; i++) {
        snprintf(token, sizeof(token), "t%d", i);
        cr_expect_eq(kit_ask(token, NULL, NULL), 503);
    }
    cr_expect_eq(gateway_metric(&kit_gateway, STATE), 1);
    unsigned before = asks();
    double least = 1;
    for (int i = 0; i < 50; i++) {
        double start = kit_now();
        cr_expect_eq(kit_ask(good, reason, retry_after), 503);
        double took = kit_now() - start;
        least = took < least ? took : least;
        cr_expect_str_eq(reason, "identity_unavailable");
        cr_expect_geq(strtol(retry_after, NULL, 10), 1);
    }
    cr_expect_lt(least, 0.005, "%.4f s", least); /* a connection, a sanitizer's build: the call itself is none */
    cr_expect_eq(asks(), before, "nobody is asked");
    provider_fault(kit_provider, PROVIDER_INTROSPECT, PROVIDER_WELL);
    provider_play(kit_provider, PROVIDER_INTROSPECT, &(struct provider_script){.latency_ms = 300});
    kit_sleep(2100);
    struct kit_shot shots[20] = {{0}};
    char *tokens[20];
    for (size_t i = 0; i < SZ_COUNT(shots); i++)
        shots[i].token = tokens[i] = provider_opaque(kit_provider, "bob", 600, NULL);
    before = asks();
    kit_shoot(shots, SZ_COUNT(shots));
    unsigned ok = 0;
    for (size_t i = 0; i < SZ_COUNT(shots); i++) {
        ok += shots[i].status == 200;
        free(tokens[i]);
    }
    cr_expect(ok >= 1 && asks() - before == ok, "%u of 20 got through, %u questions", ok, asks() - before);
    cr_expect_eq(gateway_metric(&kit_gateway, STATE), 0);
    kit_expect(good, 200, "", "closed again");
    free(good);
}

/* ---- whose token ------------------------------------------------------------------------------------------------- */

static char *two_issuers(struct provider *a, struct provider *b, const char *prefix_a, const char *prefix_b)
{
    char *yaml;
    const char *secret = secret_file();
    cr_assert(
        asprintf(&yaml,
                 "listen: [{address: \"127.0.0.1:{port}\"}]\n"
                 "admin: {address: \"127.0.0.1:{admin}\"}\n"
                 "cache: {l1: {ttl_opaque: 60s}}\n"
                 "issuers:\n"
                 "  a: {issuer: \"%s\", audiences: [api]%s, introspection: {endpoint: \"%s/introspect\", "
                 "client_id: gateway, client_secret_file: \"%s\"}}\n"
                 "  b: {issuer: \"%s\", audiences: [api]%s, introspection: {endpoint: \"%s/introspect\", "
                 "client_id: gateway, client_secret_file: \"%s\"}}\n"
                 "upstreams: {up: {urls: [\"http://127.0.0.1:{upstream}\"]}}\n"
                 "routes:\n"
                 "  - {id: a, match: {path: /a}, auth: {issuers: [a]}, upstream: up}\n"
                 "  - {id: b, match: {path: /b}, auth: {issuers: [b]}, upstream: up}\n"
                 "%s",
                 provider_url(a), prefix_a, provider_url(a), secret, provider_url(b), prefix_b, provider_url(b), secret,
                 prefix_a[0] != '\0' ? "  - {id: both, match: {path: /both}, auth: {issuers: [a, b]}, upstream: up}\n"
                                     : "") > 0);
    return yaml;
}

static int ask_at(const char *target, const char *token)
{
    struct http1_response r = {0};
    int status = http1_ask(kit_gateway.port, "GET", target, token, NULL, NULL, &r);
    http1_response_fini(&r);
    return status;
}

Test(provider_opaque, a_token_is_shown_to_its_own_provider_alone)
{
    struct provider *other = provider_start(&(struct provider_options){0});
    char *yaml = two_issuers(kit_provider, other, "", "");
    cr_assert(gateway_start(&kit_gateway, yaml, upstream_port(kit_upstream)));
    char *token = provider_opaque(kit_provider, "alice", 600, NULL);
    cr_expect_eq(ask_at("/a", token), 200);
    cr_expect_eq(ask_at("/b", token), 401, "warmed at the other issuer");
    cr_expect_eq(ask_at("/a", token), 200, "and not spoilt there");
    cr_expect_eq(asks(), 1);
    cr_expect_eq(provider_calls(other, PROVIDER_INTROSPECT), 1);
    /* JWTs name their issuer: only that one is asked, and where the route does not accept it, nobody. */
    char *jwt = provider_jwt(kit_provider, "alice", 600, NULL);
    cr_expect_eq(ask_at("/b", jwt), 401);
    cr_expect_eq(asks() + provider_calls(other, PROVIDER_INTROSPECT), 2);
    cr_expect_eq(ask_at("/a", jwt), 200);
    cr_expect_eq(ask_at("/b", jwt), 401);
    struct provider *third = provider_start(&(struct provider_options){0});
    char *foreign = provider_jwt(third, "alice", 600, NULL);
    cr_expect_eq(ask_at("/a", foreign), 401);
    cr_expect_eq(asks(), 2);
    cr_expect_eq(provider_calls(other, PROVIDER_INTROSPECT), 1);
    provider_stop(&third);
    provider_stop(&other);
    free(foreign);
    free(jwt);
    free(token);
    free(yaml);
}

Test(provider_opaque, a_prefix_decides_where_a_route_has_two)
{
    struct provider *other = provider_start(&(struct provider_options){0});
    char *yaml = two_issuers(kit_provider, other, ", token_prefix: a_", ", token_prefix: b_");
    cr_assert(gateway_start(&kit_gateway, yaml, upstream_port(kit_upstream)));
    cr_expect_eq(ask_at("/both", "a_unknown"), 401);
    cr_expect(asks() == 1 && provider_calls(other, PROVIDER_INTROSPECT) == 0);
    cr_expect_eq(ask_at("/both", "b_unknown"), 401);
    cr_expect(asks() == 1 && provider_calls(other, PROVIDER_INTROSPECT) == 1);
    cr_expect_eq(ask_at("/both", "c_unknown"), 401);
    cr_expect(asks() == 1 && provider_calls(other, PROVIDER_INTROSPECT) == 1, "nobody's: asked nowhere");
    provider_stop(&other);
    free(yaml);
}

Test(provider_opaque, userinfo_says_who_and_no_more)
{
    kit_start("cache: {l1: {ttl_opaque: 1s}}\n", ", userinfo: {accept_any_audience: true}");
    char *token = provider_opaque(kit_provider, "alice", 600, NULL);
    for (int i = 0; i < 3; i++)
        kit_expect(token, 200, "", "userinfo");
    cr_expect_eq(provider_calls(kit_provider, PROVIDER_USERINFO), 1);
    kit_expect("unknown", 401, "invalid_token", "refused by the provider");
    provider_refuse(kit_provider);
    kit_expect("another", 503, "identity_unavailable", "could not ask");
    provider_accept(kit_provider);
    free(token);
}

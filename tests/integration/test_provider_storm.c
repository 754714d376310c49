/* Storms: tokens with unknown keys, opaque garbage, cold starts.  What is counted is counted at the provider. */
#include "fake/client.h"
#include "fake/load.h"
#include "provider_kit.h"
#include "subzero/crypto.h"

TestSuite(provider_storm, .init = provider_kit_init, .fini = provider_kit_fini, .timeout = 180);

enum { CLIENTS = 8 };

/* AddressSanitizer holds freed memory back, 256 MB by default. */
#ifdef __SANITIZE_ADDRESS__
#define MEMORY_KB (320 * 1024)
#else
#define MEMORY_KB (8 * 1024)
#endif

/* Clients that send made-up tokens, each once, and count the statuses. */
struct storm {
    unsigned each;
    bool opaque;
    unsigned long status_401, status_503, others;
    pthread_t thread;
};

static char *encode(const char *text)
{
    size_t n = strlen(text);
    char *out = malloc(SZ_B64_LEN(n) + 1);
    out[sz_b64url_encode(text, n, out)] = '\0';
    return out;
}

/* A JWT of the provider's with a kid that nobody has; malloc'ed. */
static char *made_up(const char *issuer, const char *kid)
{
    char header[128], claims[256], *token;
    snprintf(header, sizeof(header), "{\"alg\":\"ES256\",\"kid\":\"%s\"}", kid);
    snprintf(claims, sizeof(claims), "{\"iss\":\"%s\",\"aud\":\"api\",\"sub\":\"x\",\"exp\":4102444800}", issuer);
    char *h = encode(header), *c = encode(claims);
    char signature[87] = "";
    memset(signature, 'A', 86); /* well-formed, so that the key is looked for */
    cr_assert(asprintf(&token, "%s.%s.%s", h, c, signature) > 0);
    free(h);
    free(c);
    return token;
}

static void send_one(int fd, struct storm *storm, const char *name)
{
    char request[2048], answer[4096];
    char *token = storm->opaque ? strdup(name) : made_up(provider_url(kit_provider), name);
    snprintf(request, sizeof(request), "GET /x HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer %s\r\n\r\n", token);
    client_send(fd, sz_cstr(request));
    int status = client_response(fd, answer, sizeof(answer), 15000);
    if (status == 401)
        storm->status_401++;
    else if (status == 503)
        storm->status_503++;
    else
        storm->others++;
    free(token);
}

static void *storm_main(void *arg)
{
    struct storm *storm = arg;
    int fd = client_open(kit_gateway.port);
    for (unsigned i = 0; i < storm->each; i++) {
        char name[64];
        uint64_t r;
        if (i % 200 == 199) { /* no connection serves for ever */
            close(fd);
            fd = client_open(kit_gateway.port);
        }
        sz_random(&r, sizeof(r));
        snprintf(name, sizeof(name), "%016llx", (unsigned long long)r);
        send_one(fd, storm, name);
    }
    close(fd);
    return NULL;
}

static struct storm storm_start(struct storm storms[CLIENTS], unsigned total, bool opaque)
{
    struct storm sum = {0};
    for (size_t i = 0; i < CLIENTS; i++) {
        storms[i] = (struct storm){.each = total / CLIENTS, .opaque = opaque};
        cr_assert_eq(pthread_create(&storms[i].thread, NULL, storm_main, &storms[i]), 0);
    }
    return sum;
}

static struct storm storm_end(struct storm storms[CLIENTS])
{
    struct storm sum = {0};
    for (size_t i = 0; i < CLIENTS; i++) {
        pthread_join(storms[i].thread, NULL);
        sum.status_401 += storms[i].status_401;
        sum.status_503 += storms[i].status_503;
        sum.others += storms[i].others;
    }
    return sum;
}

/* Good tokens beside it. */
static char good_request[4096];

static void load_with(struct load *load, const char *token)
{
    snprintf(good_request, sizeof(good_request), "GET /x HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer %s\r\n\r\n",
             token);
    *load = (struct load){.port = kit_gateway.port,
                          .request = good_request,
                          .clients = 2,
                          .requests_per_connection = 100,
                          .latencies_max = 200000};
    load_start(load);
}

Test(provider_storm, ten_thousand_unknown_kids_are_one_fetch_a_cooldown)
{
    struct storm storms[CLIENTS];
    struct load load;
    kit_start("log: {access: off}\nworkers: 2\n", ", cooldown: 2s");
    char *good = provider_jwt(kit_provider, "alice", 600, NULL);
    kit_expect(good, 200, "", "at first");
    storm_start(storms, CLIENTS * 50, false); /* whatever grows once has grown */
    storm_end(storms);
    load_with(&load, good);
    kit_sleep(500);
    load_end(&load);
    uint32_t calm = load_percentile(&load, 99);
    free(load.latencies_us);
    long before = gateway_status_kb(&kit_gateway, "VmRSS");
    unsigned fetches = provider_calls(kit_provider, PROVIDER_JWKS);
    double start = kit_now();
    load_with(&load, good);
    storm_start(storms, 10000, false);
    struct storm sum = storm_end(storms);
    load_end(&load);
    double took = kit_now() - start;
    fetches = provider_calls(kit_provider, PROVIDER_JWKS) - fetches;
    cr_expect(sum.status_401 == 10000 && sum.status_503 == 0 && sum.others == 0, "%lu 401, %lu 503, %lu others",
              sum.status_401, sum.status_503, sum.others);
    cr_expect_leq(fetches, 1 + (unsigned)(took / 2), "%u fetches in %.1f s", fetches, took);
    cr_expect(load.refused == 0 && load.lost == 0 && load.ok > 0, "good tokens: %lu ok, %lu refused, %lu lost", load.ok,
              load.refused, load.lost);
    cr_log_info("%.0f unknown kids/s; p99 of good tokens %u us, without the storm %u us", 10000 / took,
                load_percentile(&load, 99), calm);
    long grown = gateway_status_kb(&kit_gateway, "VmRSS") - before;
    cr_expect_lt(grown, MEMORY_KB, "%ld KB more", grown);
    free(load.latencies_us);
    free(good);
}

Test(provider_storm, the_attacker_takes_the_fetches_and_a_rotation_gets_through)
{
    char issuer[512];
    struct provider *other = provider_start(&(struct provider_options){0});
    snprintf(issuer, sizeof(issuer), ", cooldown: 2s}\n  b: {issuer: \"%s\", audiences: [api], algorithms: [ES256]",
             provider_url(other));
    kit_start("workers: 2\ncache: {l1: {ttl: 1ms}}\n", issuer);
    char *good = provider_jwt(kit_provider, "alice", 600, NULL);
    kit_expect(good, 200, "", "at first");
    kit_sleep(2100); /* the cooldown after the first fetch */
    unsigned others = provider_calls(other, PROVIDER_JWKS) + provider_calls(other, PROVIDER_DISCOVERY);
    char *bad = made_up(provider_url(kit_provider), "attacker");
    cr_expect_eq(kit_ask(bad, NULL, NULL), 401);
    double taken = kit_now();
    provider_rotate(kit_provider, true);
    char *fresh = provider_jwt(kit_provider, "bob", 600, NULL);
    kit_expect(fresh, 401, "invalid_token", "in the cooldown");
    unsigned n = 0;
    double worst = 0;
    while (kit_ask(fresh, NULL, NULL) != 200 && kit_now() < taken + 10) {
        double start = kit_now();
        kit_expect(good, 200, "", "a known key");
        worst = kit_now() - start > worst ? kit_now() - start : worst;
        snprintf(issuer, sizeof(issuer), "attacker-%u", n++);
        free(bad);
        bad = made_up(provider_url(kit_provider), issuer);
        (void)kit_ask(bad, NULL, NULL);
        kit_sleep(20);
    }
    cr_expect_lt(kit_now() - taken, 2.8, "%.2f s", kit_now() - taken);
    cr_expect_lt(worst, 0.3, "a known key waited for %.3f s", worst);
    cr_expect_eq(provider_calls(other, PROVIDER_JWKS) + provider_calls(other, PROVIDER_DISCOVERY), others,
                 "no other issuer is touched");
    provider_stop(&other);
    free(bad);
    free(fresh);
    free(good);
}

Test(provider_storm, an_empty_key_set_and_a_storm_are_no_denial)
{
    struct storm storms[CLIENTS];
    provider_fault(kit_provider, PROVIDER_JWKS, PROVIDER_EMPTY);
    kit_start_cold("log: {access: off}\n", "");
    double start = kit_now();
    storm_start(storms, 2000, false);
    struct storm sum = storm_end(storms);
    double took = kit_now() - start;
    cr_expect_eq(sum.status_503, 2000, "%lu 401, %lu 503", sum.status_401, sum.status_503);
    cr_expect_leq(provider_calls(kit_provider, PROVIDER_JWKS), 2 + (unsigned)(took / 0.8));
    provider_fault(kit_provider, PROVIDER_JWKS, PROVIDER_WELL);
    char *good = provider_jwt(kit_provider, "alice", 600, NULL);
    for (start = kit_now(); kit_ask(good, NULL, NULL) != 200 && kit_now() < start + 10;)
        kit_sleep(50);
    cr_expect_lt(kit_now() - start, 6.0);
    free(good);
}

Test(provider_storm, a_slow_cold_start_is_one_fetch_503_and_then_200)
{
    static struct kit_shot shots[200];
    provider_play(kit_provider, PROVIDER_JWKS, &(struct provider_script){.latency_ms = 2500});
    kit_start_cold("limits: {request_timeout: 1s}\nworkers: 2\n", "");
    char *good = provider_jwt(kit_provider, "alice", 600, NULL);
    for (size_t i = 0; i < SZ_COUNT(shots); i++)
        shots[i].token = good;
    kit_shoot(shots, SZ_COUNT(shots));
    for (size_t i = 0; i < SZ_COUNT(shots); i++) {
        cr_expect(shots[i].status == 503 && strcmp(shots[i].reason, "identity_unavailable") == 0, "%zu: %d %s", i,
                  shots[i].status, shots[i].reason);
        cr_expect_geq(strtol(shots[i].retry_after, NULL, 10), 1);
        cr_expect_lt(shots[i].seconds, 2.0, "%.2f s", shots[i].seconds);
    }
    cr_expect_eq(provider_calls(kit_provider, PROVIDER_JWKS), 1);
    cr_expect(kit_ready(true, 5000));
    kit_shoot(shots, SZ_COUNT(shots));
    for (size_t i = 0; i < SZ_COUNT(shots); i++)
        cr_expect_eq(shots[i].status, 200, "%zu: %d %s", i, shots[i].status, shots[i].reason);
    cr_expect_eq(provider_calls(kit_provider, PROVIDER_JWKS), 1);
    free(good);
}

Test(provider_storm, opaque_garbage_leaves_the_breaker_closed_and_good_tokens_unharmed)
{
    char issuer[512];
    struct storm storms[CLIENTS];
    struct load load;
    snprintf(issuer, sizeof(issuer),
             ", introspection: {endpoint: \"%s/introspect\", client_id: gateway, client_secret_file: \"%s\"}",
             provider_url(kit_provider), scratch_write("secret", sz_cstr(PROVIDER_SECRET)));
    kit_start("log: {access: off}\nworkers: 2\ncache: {l1: {ttl_opaque: 60s}}\n", issuer);
    char *warm = provider_opaque(kit_provider, "alice", 600, NULL);
    kit_expect(warm, 200, "", "warm");
    load_with(&load, warm);
    storm_start(storms, 10000, true);
    kit_sleep(300);
    unsigned through = 0;
    for (unsigned i = 0; i < 10; i++) {
        char *fresh = provider_opaque(kit_provider, "bob", 600, NULL);
        through += kit_ask(fresh, NULL, NULL) == 200;
        free(fresh);
    }
    struct storm sum = storm_end(storms);
    load_end(&load);
    cr_expect_eq(through, 10, "%u of 10 fresh tokens", through);
    cr_expect(sum.status_401 + sum.status_503 == 10000 && sum.status_401 > 0, "%lu 401, %lu 503, %lu others",
              sum.status_401, sum.status_503, sum.others);
    cr_expect(load.refused == 0 && load.lost == 0 && load.ok > 0, "cached: %lu ok, %lu refused, %lu lost", load.ok,
              load.refused, load.lost);
    cr_expect_eq(gateway_metric(&kit_gateway, "subzero_breaker_state{dependency=\"issuer:idp\"}"), 0);
    free(load.latencies_us);
    free(warm);
}

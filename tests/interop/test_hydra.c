/*
 * Ory Hydra as the identity provider of the real gateway: found by discovery, its keys marked `no-store`, scopes as an
 * array in `scp`, opaque tokens by introspection at its admin port; keys that rotate, tokens revoked at the provider, a
 * provider that is killed and comes back having forgotten everything.  The fake provider answers as we read the RFCs;
 * this one as its own makers did.
 */
#include <jansson.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "fake/echo.h"
#include "integration/harness.h"
#include "subzero/crypto.h"

#define SECRET  "secret-of-the-clients"
#define TTL     "cache: {l1: {ttl: 1ms, ttl_opaque: 500ms}}\n" /* a key verifies each time anew */
#define KEPT    "cache: {l1: {ttl: 1ms, ttl_opaque: 60s}}\n"
#define FETCHED "subzero_jwks_refresh_total{issuer=\"hydra\",result=\"ok\"}"

static struct {
    struct proc proc;
    uint16_t port, admin;
    char program[512];
} hydra;
static struct gateway gateway;
static struct echo upstream;

static void end_all(void)
{
    proc_stop(&hydra.proc);
    if (gateway.config != NULL)
        stop_gateway(&gateway);
    scratch_remove();
}

TestSuite(hydra, .fini = end_all, .timeout = 120);

static double seconds(void)
{
    return (double)sz_mono_read().us / 1e6;
}

/* ---- the provider ------------------------------------------------------------------------------------------------ */

/* One request to Hydra that must be answered so; the answer's JSON, NULL when it has none. */
static json_t *tell(uint16_t port, const char *method, const char *target, const char *type, const char *body,
                    int status)
{
    struct http1_response r = {0};
    char fields[128];

    snprintf(fields, sizeof(fields), "Content-Type: %s\r\n", type);
    int got = http1_ask(port, method, target, NULL, fields, body, &r);
    cr_assert_eq(got, status, "%s %s: expected %d, got %d\n%s", method, target, status, got,
                 r.body.p != NULL ? r.body.p : "");
    json_t *answer = json_loadb(r.body.p != NULL ? r.body.p : "", r.body.n, 0, NULL);
    http1_response_fini(&r);
    return answer;
}

/* A client with a strategy of its own: "jwt" or "opaque", which is its name too. */
static void add_client(const char *strategy)
{
    char body[512];

    snprintf(body, sizeof(body),
             "{\"client_id\":\"%s\",\"client_secret\":\"" SECRET "\",\"grant_types\":[\"client_credentials\"],"
             "\"scope\":\"read:documents write:documents\",\"audience\":[\"api\"],"
             "\"token_endpoint_auth_method\":\"client_secret_post\",\"access_token_strategy\":\"%s\"}",
             strategy, strategy);
    json_decref(tell(hydra.admin, "POST", "/admin/clients", "application/json", body, 201));
}

static void run_hydra(void)
{
    const char *config = scratch_printf("hydra.yaml",
                                        "dsn: memory\n"
                                        "serve:\n"
                                        "  public: {host: 127.0.0.1, port: %u}\n"
                                        "  admin: {host: 127.0.0.1, port: %u}\n"
                                        "urls: {self: {issuer: \"http://127.0.0.1:%u\"}}\n"
                                        "strategies: {access_token: jwt}\n"
                                        "secrets: {system: [not-a-secret-but-long-enough-for-one]}\n",
                                        (unsigned)hydra.port, (unsigned)hydra.admin, (unsigned)hydra.port);
    const char *const argv[] = {hydra.program, "serve", "all", "--dev", "--sqa-opt-out", "-c", config, NULL};
    double end = seconds() + 20;
    int status;

    cr_assert(proc_start(&hydra.proc, "hydra", hydra.admin, argv));
    /* Whoever asks for its keys first waits until they are made. */
    do {
        status = http1_ask(hydra.port, "GET", "/.well-known/jwks.json", NULL, NULL, NULL, NULL);
        usleep(20 * 1000);
    } while (status != 200 && seconds() < end);
    cr_assert_eq(status, 200, "no keys: %d", status);
    add_client("jwt");
    add_client("opaque");
}

static char *form(const char *client, const char *rest)
{
    static char text[4096];

    snprintf(text, sizeof(text), "client_id=%s&client_secret=" SECRET "&%s", client, rest);
    return text;
}

/* A token by client credentials, malloc'ed. */
static char *token_of(const char *client, const char *scope)
{
    char rest[256];

    snprintf(rest, sizeof(rest), "grant_type=client_credentials&audience=api&scope=%s", scope);
    json_t *answer =
        tell(hydra.port, "POST", "/oauth2/token", "application/x-www-form-urlencoded", form(client, rest), 200);
    const char *token = json_string_value(json_object_get(answer, "access_token"));
    cr_assert_not_null(token);
    char *copy = strdup(token);
    json_decref(answer);
    return copy;
}

static void revoke_token(const char *client, const char *token)
{
    char rest[2048];

    snprintf(rest, sizeof(rest), "token=%s", token);
    json_decref(
        tell(hydra.port, "POST", "/oauth2/revoke", "application/x-www-form-urlencoded", form(client, rest), 200));
}

/* A part of a JWT: 0 its header, 1 its claims. */
static json_t *part(const char *jwt, int which)
{
    char text[4096];
    size_t n;

    for (; which > 0; which--)
        jwt = strchr(jwt, '.') + 1;
    struct sz_slice encoded = sz_slice(jwt, strcspn(jwt, "."));
    cr_assert(encoded.n < sizeof(text) && sz_b64url_decode(encoded, text, &n) == 0);
    json_t *object = json_loadb(text, n, 0, NULL);
    cr_assert(json_is_object(object));
    return object;
}

static bool same_key(const char *a, const char *b)
{
    json_t *x = part(a, 0), *y = part(b, 0);
    bool same = json_equal(json_object_get(x, "kid"), json_object_get(y, "kid"));

    json_decref(x);
    json_decref(y);
    return same;
}

/* ---- the gateway ------------------------------------------------------------------------------------------------- */

static void start(const char *cache)
{
    const char *found = program_find("hydra");
    char *yaml;

    if (found == NULL)
        cr_skip_test("no hydra here: script/peers builds it");
    snprintf(hydra.program, sizeof(hydra.program), "%s", found);
    hydra.port = free_port();
    hydra.admin = free_port();
    run_hydra();
    echo_start(&upstream, 0);
    const char *secret = scratch_write("secret", SZ_S("gateway-secret"));
    cr_assert(asprintf(&yaml,
                       "listen: [{address: \"127.0.0.1:{port}\"}]\n"
                       "admin: {address: \"127.0.0.1:{admin}\"}\n"
                       "%s"
                       "issuers:\n"
                       "  hydra:\n"
                       "    issuer: \"http://127.0.0.1:%u\"\n"
                       "    audiences: [api]\n"
                       "    discovery: auto\n"
                       "    cooldown: 4s\n"
                       "    breaker: {failures: 5, open: 1s}\n"
                       "    token_prefix: ory_at_\n"
                       "    introspection:\n"
                       "      endpoint: \"http://127.0.0.1:%u/admin/oauth2/introspect\"\n"
                       "      client_id: gateway\n"
                       "      client_secret_file: \"%s\"\n"
                       "upstreams: {up: {urls: [\"http://127.0.0.1:{upstream}\"]}}\n"
                       "routes:\n"
                       "  - id: documents\n"
                       "    match: {path: \"/documents/*\"}\n"
                       "    auth: {issuers: [hydra], scopes: [\"read:documents\"]}\n"
                       "    upstream: up\n"
                       "  - id: drafts\n"
                       "    match: {path: \"/drafts/*\"}\n"
                       "    auth: {issuers: [hydra], scopes: [\"read:documents\", \"write:documents\"]}\n"
                       "    upstream: up\n",
                       cache, (unsigned)hydra.port, (unsigned)hydra.admin, secret) > 0);
    cr_assert(gateway_start(&gateway, yaml, upstream.port));
    free(yaml);
}

static int ask(const char *token)
{
    return http1_ask(gateway.port, "GET", "/documents/1", token, NULL, NULL, NULL);
}

static void expect(const char *token, int status, const char *reason, const char *what)
{
    struct http1_response r = {0};

    http1_ask(gateway.port, "GET", "/documents/1", token, NULL, NULL, &r);
    expect_answer(&r, status, reason, what);
    http1_response_fini(&r);
}

/* Asks until the answer is that one; how long that took, at least `limit` when it never was. */
static double until(const char *token, int status, double limit)
{
    double begin = seconds(), now;

    do {
        if (ask(token) == status)
            return seconds() - begin;
        usleep(20 * 1000);
        now = seconds();
    } while (now < begin + limit);
    return now - begin;
}

/* Allowed, and who arrives upstream. */
static void expect_arrival(const char *token, const char *subject, const char *scopes)
{
    struct http1_response r = {0};
    char line[128];

    cr_assert_eq(http1_ask(gateway.port, "GET", "/documents/1", token, NULL, NULL, &r), 200, "%s: %d", subject,
                 r.status);
    snprintf(line, sizeof(line), "x-subzero-subject: %s\r\n", subject);
    cr_expect(strcasestr(r.body.p, line) != NULL, "%s did not arrive:\n%s", subject, r.body.p);
    snprintf(line, sizeof(line), "x-subzero-scopes: %s\r\n", scopes);
    cr_expect(strcasestr(r.body.p, line) != NULL, "%s did not arrive:\n%s", scopes, r.body.p);
    http1_response_fini(&r);
}

/* A token with its last characters changed. */
static char *spoilt(const char *token)
{
    char *copy = strdup(token);
    size_t n = strlen(copy);

    memcpy(copy + n - 12, "AAAAAAAAAAAA", 12);
    return copy;
}

/* What the scopes of the three tokens open, whichever way they came. */
static void expect_scopes(const char *client)
{
    char *reader = token_of(client, "read:documents"), *writer = token_of(client, "write:documents");
    char *both = token_of(client, "write:documents+read:documents"), *broken = spoilt(reader);

    expect_arrival(reader, client, "read:documents");
    expect_arrival(both, client, "read:documents write:documents");
    expect(writer, 403, "insufficient_scope", "another scope");
    expect(broken, 401, "invalid_token", "spoilt");
    cr_expect_eq(http1_ask(gateway.port, "GET", "/drafts/1", both, NULL, NULL, NULL), 200);
    cr_expect_eq(http1_ask(gateway.port, "GET", "/drafts/1", reader, NULL, NULL, NULL), 403);
    free(reader);
    free(writer);
    free(both);
    free(broken);
}

/* ---- tests ------------------------------------------------------------------------------------------------------- */

Test(hydra, jwt_by_client_credentials)
{
    struct http1_response r = {0};
    char value[128] = "";

    start(TTL);
    char *token = token_of("jwt", "read:documents");
    json_t *claims = part(token, 1);
    cr_expect(json_is_array(json_object_get(claims, "scp")) && json_object_get(claims, "scope") == NULL,
              "not what this test is for");
    http1_ask(hydra.port, "GET", "/.well-known/jwks.json", NULL, NULL, NULL, &r);
    http1_field(&r, "cache-control", value, sizeof(value));
    cr_expect(strstr(value, "no-store") != NULL, "not what this test is for: Cache-Control: %s", value);
    expect_scopes("jwt");
    cr_expect_eq(gateway_metric(&gateway, FETCHED), 1, "no-store does not mean a fetch for each request");
    http1_response_fini(&r);
    json_decref(claims);
    free(token);
}

Test(hydra, opaque_by_introspection_and_revoked)
{
    start(TTL);
    char *one = token_of("opaque", "read:documents"), *other = token_of("opaque", "read:documents");
    cr_expect(strncmp(one, "ory_at_", 7) == 0, "not what this test is for: %s", one);
    expect_scopes("opaque");
    expect(one, 200, "", "one");
    expect(other, 200, "", "the other one");
    revoke_token("opaque", one);
    double took = until(one, 401, 5);
    cr_expect_lt(took, 2.5, "revoked at the provider, %.1f s ago", took); /* ttl_opaque, and a slow machine */
    expect(one, 401, "invalid_token", "revoked");
    expect(other, 200, "", "not revoked");
    free(one);
    free(other);
}

/* A token of a key newer than that of `old`, malloc'ed.  Keys of the same second have no order: then another one. */
static char *rotate(const char *old)
{
    static unsigned made;
    char *token = NULL, body[128];
    int tries = 0;

    do {
        free(token);
        snprintf(body, sizeof(body), "{\"kid\":\"rotated-%u\",\"alg\":\"RS256\",\"use\":\"sig\"}", made++);
        json_decref(tell(hydra.admin, "POST", "/admin/keys/hydra.jwt.access-token", "application/json", body, 201));
        token = token_of("jwt", "read:documents");
    } while (same_key(token, old) && ++tries < 3);
    cr_assert(!same_key(token, old), "Hydra still signs with the old key");
    return token;
}

Test(hydra, keys_rotate)
{
    start(TTL);
    char *first = token_of("jwt", "read:documents");
    expect(first, 200, "", "at first");
    char *second = rotate(first);
    cr_expect_lt(until(second, 200, 15), 6, "a token of the new key works by the end of the cooldown");
    char *third = rotate(second);
    cr_expect_lt(until(third, 200, 15), 6, "and so when the last fetch has just begun one");
    expect(second, 200, "", "the key before");
    expect(first, 200, "", "the first key, which Hydra still publishes");
    free(first);
    free(second);
    free(third);
}

/* ---- load -------------------------------------------------------------------------------------------------------- */

struct load {
    const char *token;
    pthread_t thread;
    atomic_bool stop;
    atomic_uint asked, refused;
};

static void *ask_on(void *arg)
{
    struct load *load = arg;

    while (!atomic_load(&load->stop)) {
        if (ask(load->token) != 200)
            atomic_fetch_add(&load->refused, 1);
        atomic_fetch_add(&load->asked, 1);
        usleep(2000);
    }
    return NULL;
}

static void load_start(struct load *load, const char *token)
{
    load->token = token;
    cr_assert_eq(pthread_create(&load->thread, NULL, ask_on, load), 0);
}

static void load_stop(struct load *load, const char *what)
{
    atomic_store(&load->stop, true);
    pthread_join(load->thread, NULL);
    cr_expect_gt(atomic_load(&load->asked), 0);
    cr_expect_eq(atomic_load(&load->refused), 0, "%s: %u of %u refused", what, atomic_load(&load->refused),
                 atomic_load(&load->asked));
}

Test(hydra, killed_and_restarted_under_load)
{
    struct load jwts = {0}, opaques = {0};

    start(KEPT);
    char *jwt = token_of("jwt", "read:documents"), *unseen_jwt = token_of("jwt", "read:documents");
    char *opaque = token_of("opaque", "read:documents"), *unseen = token_of("opaque", "read:documents");
    expect(jwt, 200, "", "at first");
    expect(opaque, 200, "", "at first");
    load_start(&jwts, jwt);
    load_start(&opaques, opaque);
    kill(hydra.proc.pid, SIGKILL);
    proc_stop(&hydra.proc);
    expect(unseen_jwt, 200, "", "a known key needs nobody");
    for (int i = 0; i < 8; i++) /* beyond the five failures that open the breaker */
        expect(unseen, 503, "identity_unavailable", "nobody to ask");
    run_hydra();
    /* It lives in memory alone: other keys, and no token of before. */
    char *new_opaque = token_of("opaque", "read:documents");
    cr_expect_lt(until(new_opaque, 200, 15), 10, "an opaque token after the restart");
    cr_expect_lt(until(unseen, 401, 15), 10, "what it has forgotten is refused, not unavailable");
    load_stop(&jwts, "a verified key");
    load_stop(&opaques, "a kept answer");
    char *new_jwt = token_of("jwt", "read:documents");
    cr_expect_lt(until(new_jwt, 200, 15), 10, "a token of the new key after the restart");
    free(jwt);
    free(unseen_jwt);
    free(opaque);
    free(unseen);
    free(new_opaque);
    free(new_jwt);
}

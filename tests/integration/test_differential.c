/*
 * Cache on is cache off, of the whole gateway and through a real Redis: one instance that remembers next to nothing,
 * and two that have every layer and share a Redis, are given the same random questions while tokens expire, are revoked
 * by every kind, and configurations change.  Whatever one answers, identity headers and all, the others answer too.
 *
 * Time goes on between two questions, so the plain instance is asked before and after: an answer that equals either is
 * right.  After a revocation the instance that hears of it through Redis may be late, which is bounded and counted.
 *
 * $SUBZERO_SEED repeats a run.
 */
#include <stdio.h>
#include <stdlib.h>

#include "fake/openfga.h"
#include "fake/provider.h"
#include "fake/redis.h"
#include "integration/revoke_kit.h"
#include "subzero/crypto.h"

enum { STEPS = 2500, JWTS = 16, OPAQUES = 6, TOKENS = JWTS + OPAQUES, LATE_MS = 5000 };
enum { BARE, ONE, TWO, GATEWAYS };

static struct gateway gateways[GATEWAYS];
static const char *const names[GATEWAYS] = {"bare", "one", "two"};
static struct redis_server redis;
static struct provider *provider;
static struct openfga fga;
static struct issuer first, second;
static struct upstream *up;
static uint64_t state;

static struct token {
    char *text, sub[8];
    bool opaque;
    unsigned serial; /* of its jti and sid */
} tokens[TOKENS];

static struct {
    unsigned asked, allowed, refused, revoked, late, raced, reloads, refused_reloads;
} seen;
static struct sz_mono revoked_at;

static unsigned dice(unsigned n)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (unsigned)(state >> 11) % n;
}

#define PICK(list) (list)[dice(SZ_COUNT(list))]

/* ---- configurations ---------------------------------------------------------------------------------------------- */

enum { AUDIENCE, KEYS, SETTING, ORDER, TTL, CHOICES };
static unsigned choices[CHOICES];
#define CHOSEN(list, choice) (list)[choices[choice] % SZ_COUNT(list)]

static const char *const routes[] = {
    "scopes: [a, b]}",
    "scopes: [c]}",
    "any_scope: [b, d]}",
    "claims: {plan: [gold, 7]}}",
    "claims: {tenant: gold}}",
    "scopes: [a]}, authorize: {user: \"user:{claims.sub}\", relation: viewer, object: \"document:{path.d}\"}",
    "claims: {sub: alice}}, set_headers: {x-plan: \"{claims.plan}\", x-mail: \"{claims.email}\"}",
    "any_scope: [a, b, c, d]}, set_headers: {x-list: \"{claims.list}\"}",
};
enum { ROUTES = SZ_COUNT(routes) };

static void add_issuers(struct sz_buf *out)
{
    static const char *const audiences[] = {"[api]", "[api, other]", "[other, api]", "[third, other, api]", "[other]"};
    static const char *const keys[] = {"first", "first", "second", "both"};
    static const char *const settings[] = {
        "leeway: 2s",        "leeway: 0s",        "leeway: 30s", "ignore_cnf: true",
        "types: [JWT]",      "max_lifetime: 50s", "leeway: 1s",  "required_claims: [plan]",
        "tenant_claim: plan"};
    sz_buf_printf(out,
                  "issuers:\n"
                  "  test: {issuer: " ISSUER_NAME ", audiences: %s, algorithms: [ES256], jwks_file: "
                  "\"{dir}/%s.json\", %s}\n"
                  "  idp: {issuer: \"%s\", audiences: [api], tenant_claim: plan, introspection: {endpoint: "
                  "\"%s/introspect\", client_id: gateway, client_secret_file: \"{dir}/secret\"}}\n",
                  CHOSEN(audiences, AUDIENCE), CHOSEN(keys, KEYS), CHOSEN(settings, SETTING), provider_url(provider),
                  provider_url(provider));
}

static void add_caches(struct sz_buf *out, bool full)
{
    static const char *const ttls[] = {"60ms", "5ms", "1s"};
    const char *ttl = CHOSEN(ttls, TTL);
    if (full)
        sz_buf_printf(out,
                      "cache: {l1: {capacity: 64, ttl: %s, ttl_opaque: %s}, negative: {ttl: %s}, decisions: {capacity: "
                      "100, ttl: %s, negative_ttl: %s}, l2: {jwt: true, lease: 1s}}\n"
                      "redis: {url: \"%s\", key_file: \"{dir}/fleet.key\", timeout: 300ms}\n",
                      ttl, ttl, ttl, ttl, ttl, redis.url);
    else
        sz_buf_printf(out, "cache: {l1: {capacity: 1, ttl: 1ms, ttl_opaque: 1ms}, negative: {capacity: 1, ttl: 1ms}, "
                           "decisions: {capacity: 0}}\n");
}

/* Every route exists always; their order, and with it that of the scopes and claims, does not. */
static char *yaml_of(bool full)
{
    struct sz_buf out = {0};
    sz_buf_printf(&out, "listen: [{address: \"127.0.0.1:{port}\", mode: decide, dialect: traefik}]\n"
                        "admin: {address: \"127.0.0.1:{admin}\"}\n"
                        "workers: 2\n"
                        "log: {access: off}\n"
                        "trusted_proxies: [127.0.0.1/32]\n");
    add_caches(&out, full);
    add_issuers(&out);
    sz_buf_printf(&out, "%supstreams: {up: {urls: [\"http://127.0.0.1:{upstream}\"]}}\nroutes:\n", openfga_yaml(&fga));
    for (unsigned i = 0; i < ROUTES; i++) {
        unsigned at = (i + choices[ORDER]) % ROUTES;
        sz_buf_printf(&out, "  - {id: j%u, match: {path: \"/test/%u/{d}\"}, auth: {issuers: [test], %s}\n", at, at,
                      routes[at]);
        sz_buf_printf(&out, "  - {id: o%u, match: {path: \"/idp/%u/{d}\"}, auth: {issuers: [idp], %s}\n", at, at,
                      routes[at]);
    }
    sz_buf_add(&out, "", 1);
    return out.p;
}

/* All three obey, or none does. */
static void reload(void)
{
    bool obeyed[GATEWAYS];
    unsigned *choice = &choices[dice(CHOICES)], old = *choice;
    *choice = dice(720);
    for (int i = 0; i < GATEWAYS; i++) {
        char *yaml = yaml_of(i != BARE);
        gateway_rewrite(&gateways[i], yaml);
        obeyed[i] = gateway_reload(&gateways[i]);
        free(yaml);
    }
    cr_assert(obeyed[BARE] == obeyed[ONE] && obeyed[BARE] == obeyed[TWO]);
    if (!obeyed[BARE])
        *choice = old;
    seen.reloads += obeyed[BARE];
    seen.refused_reloads += !obeyed[BARE];
}

/* ---- tokens ------------------------------------------------------------------------------------------------------ */

static const char *const claims[] = {
    "\"scope\":\"a b\"",
    "\"scope\":\"b\",\"scp\":[\"a\",\"c\"]",
    "\"scope\":\"a b c d\",\"plan\":\"gold\"",
    "\"plan\":\"gold\",\"list\":[\"y\",\"x\"]",
    "\"plan\":7,\"email\":\"a@example\",\"scope\":\"a\"",
    "\"plan\":null,\"scope\":\"d\"",
    "\"plan\":\"silver\",\"scope\":\"a c\",\"client_id\":\"web\"",
    "\"cnf\":{\"jkt\":\"x\"},\"scope\":\"a b c\"",
    "\"tenant\":\"gold\",\"client_id\":\"app\",\"scope\":\"a\"",
};

static char *sign(const struct token *t, const char *more, int64_t now)
{
    static const char *const auds[] = {"\"api\"", "\"api\"", "[\"other\",\"api\"]", "\"other\"", "[]"};
    static const int ends[] = {60, 60, 60, 60, 2, 4, -1, -20};
    static const int starts[] = {-10, 1, 3, 40};
    struct sz_arena arena;
    struct sz_slice token;
    struct sz_buf text = {0};
    bool honest = dice(3) != 0; /* nothing is against it under most settings */
    sz_arena_init(&arena);
    sz_buf_printf(&text, "{\"iss\":\"" ISSUER_NAME "\",\"aud\":%s,\"sub\":\"%s\",\"jti\":\"j%u\",\"sid\":\"s%u\",%s",
                  honest ? "[\"api\",\"other\"]" : PICK(auds), t->sub, t->serial, t->serial, more);
    sz_buf_printf(&text, ",\"exp\":%lld", (long long)now + (honest ? 45 : PICK(ends)));
    if (honest)
        sz_buf_printf(&text, ",\"iat\":%lld", (long long)now);
    else if (dice(5) != 0)
        sz_buf_printf(&text, ",\"iat\":%lld", (long long)now - (long long)dice(8));
    if (!honest && dice(6) == 0)
        sz_buf_printf(&text, ",\"nbf\":%lld", (long long)now + PICK(starts));
    sz_buf_printf(&text, "}");
    SZ_ASSERT(sz_signer_sign(!honest && dice(2) == 0 ? second.signer : first.signer, SZ_ALG_ES256,
                             dice(3) == 0 ? "JWT" : "at+jwt", sz_buf_slice(&text), &arena.pool, &token) == 0);
    char *copy = strndup(token.p, token.n);
    if (!honest && dice(6) == 0) /* not the signature's last digit, which has bits without meaning */
        copy[token.n - 9] = copy[token.n - 9] == 'A' ? 'B' : 'A';
    sz_buf_fini(&text);
    sz_arena_fini(&arena);
    return copy;
}

static void make_token(unsigned i)
{
    static unsigned serial;
    static const long lives[] = {60, 60, 2, 3};
    struct token *t = &tokens[i];
    char more[256];
    free(t->text);
    t->serial = serial++;
    t->opaque = i >= JWTS;
    snprintf(t->sub, sizeof(t->sub), "%s", dice(3) == 0 ? "bob" : "alice");
    if (!t->opaque) {
        t->text = sign(t, PICK(claims), sz_wall_seconds(sz_wall_read()));
        return;
    }
    snprintf(more, sizeof(more), "\"jti\":\"j%u\",\"sid\":\"s%u\",%s", t->serial, t->serial, PICK(claims));
    t->text = dice(10) == 0 ? strdup("never-issued") : provider_opaque(provider, t->sub, PICK(lives), more);
}

/* ---- revocations ------------------------------------------------------------------------------------------------- */

static void write_revocation(char *body, size_t size)
{
    const struct token *t = &tokens[dice(TOKENS)];
    const char *issuer = t->opaque ? "idp" : "test", *sub = dice(2) == 0 ? "alice" : "bob";
    long long now = (long long)sz_wall_seconds(sz_wall_read()), before = now - 8 - (long long)dice(16);
    unsigned what = dice(20);
    if (what < 6)
        snprintf(body, size, "{\"kind\":\"token\",\"value\":\"%s\"}", t->text);
    else if (what < 10)
        snprintf(body, size, "{\"kind\":\"jti\",\"issuer\":\"%s\",\"value\":\"j%u\"}", issuer, t->serial);
    else if (what < 14)
        snprintf(body, size, "{\"kind\":\"sid\",\"issuer\":\"%s\",\"value\":\"s%u\"}", issuer, t->serial);
    else if (what < 17)
        snprintf(body, size, "{\"kind\":\"subject\",\"issuer\":\"%s\",\"value\":\"%s\",\"before\":%lld}", issuer, sub,
                 before);
    else if (what < 19)
        snprintf(body, size, "{\"kind\":\"client\",\"issuer\":\"%s\",\"value\":\"web\",\"before\":%lld}", issuer,
                 before);
    else
        snprintf(body, size, "{\"kind\":\"issuer\",\"issuer\":\"%s\",\"before\":%lld}", issuer, before - 30);
}

/* At the plain one first: from then on its word is that it is revoked. */
static void revoke_something(void)
{
    char body[SZ_TOKEN_MAX];
    write_revocation(body, sizeof(body));
    int plain = revoke_post(&gateways[BARE], body, NULL, NULL), shared = revoke_post(&gateways[ONE], body, NULL, NULL);
    cr_assert(plain == 200 || plain == 201, "%d: %s", plain, body);
    cr_assert(shared == 200 || shared == 201, "%d: %s", shared, body);
    revoked_at = sz_mono_read();
}

/* ---- comparing --------------------------------------------------------------------------------------------------- */

struct answer {
    int status;
    char reason[64];
    char identity[2048]; /* the fields that say what was found, each with its line's end */
};

static bool names_request(const char *line)
{
    return strncasecmp(line, "x-request-id:", 13) == 0 || strncasecmp(line, "date:", 5) == 0 ||
           strncasecmp(line, "content-length:", 15) == 0 || strncasecmp(line, "retry-after:", 12) == 0;
}

static void ask(int who, const struct token *t, unsigned route, struct answer *a)
{
    struct http1_response r = {0};
    char fields[256];
    snprintf(fields, sizeof(fields),
             "X-Forwarded-Method: GET\r\nX-Forwarded-Proto: https\r\nX-Forwarded-Host: app.example\r\n"
             "X-Forwarded-Uri: /%s/%u/%u\r\n",
             t->opaque ? "idp" : "test", route, route % 3);
    *a = (struct answer){.status = http1_ask(gateways[who].port, "GET", "/", t->text, fields, NULL, &r)};
    cr_assert_neq(a->status, 0, "%s does not answer", names[who]);
    http1_field(&r, "x-subzero-reason", a->reason, sizeof(a->reason));
    size_t n = 0;
    char *rest = strstr(r.head.p, "\r\n");
    for (char *line; rest != NULL && (line = strsep(&rest, "\n")) != NULL;)
        if (!names_request(line) && n + strlen(line) + 2 < sizeof(a->identity))
            n += (size_t)snprintf(a->identity + n, sizeof(a->identity) - n, "%s\n", line);
    http1_response_fini(&r);
}

/* What was refused for another reason may have expired since: no is no, and the first reason was right. */
static bool same(const struct answer *cached, const struct answer *fresh)
{
    if (cached->status != fresh->status)
        return false;
    if (fresh->status == 401)
        return strcmp(cached->reason, fresh->reason) == 0 || strcmp(fresh->reason, "expired_token") == 0;
    return strcmp(cached->reason, fresh->reason) == 0 && strcmp(cached->identity, fresh->identity) == 0;
}

/* Heard of through Redis: within its bound, which is wide here for a busy machine, an old answer is one more chance. */
static bool may_be_late(const struct answer *cached, const struct answer *fresh)
{
    return strcmp(fresh->reason, "revoked_token") == 0 && cached->status != 401 &&
           sz_between(revoked_at, sz_mono_read()).us < LATE_MS * 1000;
}

static void compare(int who, const struct token *t, unsigned route, const struct answer *before, unsigned step)
{
    struct answer got, after;
    ask(who, t, route, &got);
    if (same(&got, before))
        return;
    seen.raced++;
    ask(BARE, t, route, &after);
    for (; who == TWO && may_be_late(&got, &after); seen.late++) {
        usleep(10000);
        ask(who, t, route, &got);
        ask(BARE, t, route, &after);
    }
    cr_assert(same(&got, &after), "step %u, %s: /%s/%u\n%d %s\n%sand without caches %d %s\n%s", step, names[who],
              t->opaque ? "idp" : "test", route, got.status, got.reason, got.identity, after.status, after.reason,
              after.identity);
}

static void ask_about(unsigned step, const struct token *t, unsigned route)
{
    struct answer plain;
    ask(BARE, t, route, &plain);
    compare(ONE, t, route, &plain, step);
    compare(TWO, t, route, &plain, step);
    seen.asked++;
    seen.allowed += plain.status == 200;
    seen.refused += plain.status == 401 || plain.status == 403;
    seen.revoked += strcmp(plain.reason, "revoked_token") == 0;
}

/* ---- the run ----------------------------------------------------------------------------------------------------- */

static void write_keys(const char *name, struct sz_slice one, struct sz_slice other)
{
    struct sz_buf set = {0};
    sz_buf_printf(&set, "{\"keys\":[%.*s%s%.*s]}", SZ_FMT(one), other.n > 0 ? "," : "", SZ_FMT(other));
    scratch_write(name, sz_buf_slice(&set));
    sz_buf_fini(&set);
}

static void make_keys(void)
{
    struct sz_buf sets[2] = {{0}, {0}};
    struct sz_slice key[2];
    issuer_init(&first);
    issuer_init(&second);
    cr_assert_eq(sz_signer_jwks(first.signer, &sets[0]), 0);
    cr_assert_eq(sz_signer_jwks(second.signer, &sets[1]), 0);
    for (int i = 0; i < 2; i++) /* {"keys":[ ... ]} */
        key[i] = sz_sub(sz_buf_slice(&sets[i]), 9, sets[i].n - 11);
    write_keys("first.json", key[0], SZ_NONE);
    write_keys("second.json", key[1], SZ_NONE);
    write_keys("both.json", key[0], key[1]);
    sz_buf_fini(&sets[0]);
    sz_buf_fini(&sets[1]);
}

static void setup(void)
{
    if (!redis_available())
        cr_skip_test("no redis-server here");
    sz_crypto_init();
    scratch_write("fleet.key", SZ_S("MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE=\n"));
    scratch_write("secret", SZ_S(PROVIDER_SECRET));
    make_keys();
    redis = (struct redis_server){0};
    cr_assert(redis_start(&redis));
    provider = provider_start(NULL);
    openfga_init(&fga);
    up = upstream_start(NULL);
    for (int i = 0; i < GATEWAYS; i++) {
        char *yaml = yaml_of(i != BARE);
        cr_assert(gateway_start_as(&gateways[i], names[i], yaml, upstream_port(up)));
        free(yaml);
    }
    for (int i = ONE; i < GATEWAYS; i++)
        cr_assert(revoke_health(&gateways[i], "\"revocations\":{\"status\":\"ok\""));
}

static void teardown(void)
{
    for (int i = 0; i < GATEWAYS; i++)
        stop_gateway(&gateways[i]);
    openfga_fini(&fga);
    provider_stop(&provider);
    redis_stop(&redis);
    upstream_stop(&up);
    sz_signer_free(&first.signer);
    sz_signer_free(&second.signer);
    for (unsigned i = 0; i < TOKENS; i++)
        free(tokens[i].text);
    scratch_remove();
}

TestSuite(differential, .init = setup, .fini = teardown, .timeout = 600);

/* Some are asked about much more than others. */
static void ask_all(unsigned step)
{
    ask_about(step, &tokens[dice(4) == 0 ? dice(TOKENS) : dice(2) == 0 ? dice(5) : JWTS + dice(3)], dice(ROUTES));
}

/* The same questions before and after. */
static void reload_under_way(unsigned step)
{
    unsigned route = dice(ROUTES), from = dice(TOKENS);
    for (unsigned i = 0; i < 6; i++)
        ask_about(step, &tokens[(from + i) % TOKENS], route);
    reload();
    for (unsigned i = 0; i < 6; i++)
        ask_about(step, &tokens[(from + i) % TOKENS], route);
}

static void take_step(unsigned step)
{
    unsigned what = dice(1000);
    if (what < 12) {
        reload_under_way(step);
    } else if (what < 110) {
        make_token(dice(TOKENS));
    } else if (what < 130) {
        revoke_something();
    } else if (what < 160) {
        usleep(dice(300) * 1000);
    } else {
        ask_all(step);
    }
}

/* Of both that have one. */
static double hits(const char *labels)
{
    char sample[128];
    snprintf(sample, sizeof(sample), "subzero_cache_hits_total{%s}", labels);
    double a = gateway_metric(&gateways[ONE], sample), b = gateway_metric(&gateways[TWO], sample);
    return (a > 0 ? a : 0) + (b > 0 ? b : 0);
}

Test(differential, every_layer_on_is_every_layer_off)
{
    const char *seed = getenv("SUBZERO_SEED");
    state = seed != NULL ? strtoull(seed, NULL, 0) : UINT64_C(0x9e3779b97f4a7c15);
    fprintf(stderr, "differential: SUBZERO_SEED=%#llx\n", (unsigned long long)state);
    for (unsigned i = 0; i < TOKENS; i++)
        make_token(i);
    for (unsigned step = 0; step < STEPS; step++)
        take_step(step);
    double l1 = hits("layer=\"l1\",kind=\"token\""), l2 = hits("layer=\"l2\",kind=\"token\""),
           no = hits("layer=\"l1\",kind=\"negative\""), decisions = hits("layer=\"l2\",kind=\"decision\"");
    fprintf(stderr,
            "differential: %u questions: %u allowed, %u refused, %u of them revoked; %u answers changed meanwhile, %u "
            "were late; %u reloads and %u refused; hits: L1 %.0f, L2 %.0f, rejections %.0f, decisions in L2 %.0f\n",
            seen.asked, seen.allowed, seen.refused, seen.revoked, seen.raced, seen.late, seen.reloads,
            seen.refused_reloads, l1, l2, no, decisions);
    /* Else nothing was compared. */
    cr_expect_gt(seen.asked, STEPS / 2);
    cr_expect(seen.allowed > 200 && seen.refused > 200 && seen.revoked > 50 && seen.reloads > 8);
    cr_expect(l1 > 100 && l2 > 200 && no > 20 && decisions > 10);
    cr_expect_lt(seen.raced, seen.asked / 5);
    cr_expect_eq(gateway_metric(&gateways[ONE], "subzero_l2_bad_values_total") > 0, false);
}

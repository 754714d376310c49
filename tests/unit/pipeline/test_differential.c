/*
 * Z5 by trial: a gateway with its caches and one whose caches are emptied before every request give every request the
 * same answer, whatever tokens, routes, time and reloads come in whatever order.  Settings change as a reload changes
 * them: keys come and go, audiences and issuers change their order, the vocabulary its bits.
 */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "unit/pipeline/kit.h"

#define ROUNDS 12
#define STEPS  300
#define TOKENS 32

static struct kit kit, bare; /* one loop, key and snapshot; caches and worker of their own */
static struct sz_signer *second;
static struct sz_slice tokens[TOKENS];
static bool early[TOKENS]; /* its nbf had not come when it was made */
static uint64_t state;

static unsigned dice(unsigned n)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (unsigned)(state >> 11) % n;
}

#define PICK(list) (list)[dice(SZ_COUNT(list))]

/* ---- configurations -------------------------------------------------------------------------------------- */

static const char *const audiences[] = {"[api]", "[api, other]", "[other, api]", "[third, other, api]", "[other]"};
static const char *const keys[] = {"jwks.json", "jwks.json", "second.json", "both.json"};
static const char *const settings[] = {"leeway: 10s",       "leeway: 0s",
                                       "leeway: 60s",       "ignore_cnf: true",
                                       "max_lifetime: 50s", "required_claims: [plan]",
                                       "types: [JWT]",      "permissions_claim: permissions",
                                       "tenant_claim: plan"};

/* What a reload may change.  Most change one of them, so that nothing hides behind the change of another. */
enum { ORDER, VOCABULARY, AUDIENCE, TTL, AUDIENCES, KEYS = AUDIENCES + 2, SETTINGS = KEYS + 2, CHOICES = SETTINGS + 2 };
static unsigned choices[CHOICES];
#define CHOSEN(list, choice) (list)[choices[choice] % SZ_COUNT(list)]

static void add_issuer(struct sz_buf *out, const char *name)
{
    unsigned i = name[0] == 't';
    sz_buf_printf(
        out, "  %s: {issuer: https://%s.example/, audiences: %s, algorithms: [ES256], jwks_file: %s/%s, %s}\n", name,
        name, CHOSEN(audiences, AUDIENCES + i), kit.dir, CHOSEN(keys, KEYS + i), CHOSEN(settings, SETTINGS + i));
}

/* Every route exists always; their order, and with it that of the vocabulary, does not. */
static void add_routes(struct sz_buf *out, const char *audience)
{
    const char *rows[] = {"scopes: [a, b]",
                          "scopes: [c]",
                          "any_scope: [b, d]",
                          "claims: {plan: [gold, 7]}",
                          "claims: {sub: alice, list: x}",
                          "claims: {tenant: gold}"};
    unsigned turn = choices[VOCABULARY];
    for (unsigned i = 0; i < SZ_COUNT(rows); i++) {
        unsigned at = (i + turn) % SZ_COUNT(rows);
        sz_buf_printf(out,
                      "  - {id: r%u, match: {path: /r%u}, auth: {issuers: [one], audiences: [%s], %s}, upstream: up}\n",
                      at, at, audience, rows[at]);
    }
    sz_buf_printf(out,
                  "  - {id: r6, match: {path: /r6}, auth: {issuers: [one], audiences: [%s]}, upstream: up,\n"
                  "     set_headers: {X-Plan: \"{claims.plan}\", X-Email: \"{claims.email}\"}}\n"
                  "  - {id: r7, match: {path: /r7}, auth: {issuers: [two, one], audiences: [%s]}, upstream: up,\n"
                  "     shared_subjects: true}\n",
                  audience, audience);
}

/* NULL: the routes' audience is none of an issuer's. */
static struct sz_snapshot *load(void)
{
    static const char *const ttls[] = {"1s", "30s", "1h"}, *const of_routes[] = {"api", "other"};
    struct sz_buf text = {0};
    struct sz_mistakes m;
    bool swap = choices[ORDER] % 2 == 0;
    sz_mistakes_init(&m);
    sz_buf_printf(&text,
                  "listen: [{address: 127.0.0.1:1}, {address: 127.0.0.1:2, mode: decide, dialect: envoy}]\n"
                  "trusted_proxies: [10.0.0.0/8]\nlog: {access: off}\n"
                  "cache: {l1: {ttl: %s}, negative: {ttl: %s}}\n"
                  "upstreams: {up: {urls: [\"http://127.0.0.1:9\"]}}\nissuers:\n",
                  CHOSEN(ttls, TTL), CHOSEN(ttls, TTL));
    add_issuer(&text, swap ? "two" : "one");
    add_issuer(&text, swap ? "one" : "two");
    sz_buf_printf(&text, "routes:\n");
    add_routes(&text, CHOSEN(of_routes, AUDIENCE));
    struct sz_conf *conf = sz_conf_load_text(sz_buf_slice(&text), "test.yaml", &m);
    struct sz_snapshot *snapshot = conf == NULL ? NULL : sz_snapshot_new(conf, NULL, &m);
    sz_buf_fini(&text);
    sz_mistakes_fini(&m);
    return snapshot;
}

static bool reload_as_chosen(void)
{
    struct sz_snapshot *next = load();
    if (next == NULL)
        return false;
    sz_worker_swap(&kit.worker, next);
    sz_worker_swap(&bare.worker, next);
    sz_snapshot_unref(kit.snapshot);
    kit.snapshot = bare.snapshot = next;
    return true;
}

static void reload(void)
{
    do
        choices[dice(CHOICES)] = dice(720);
    while (!reload_as_chosen());
}

/* ---- tokens -------------------------------------------------------------------------------------------------- */

/* An honest one has nothing against it under most settings. */
static void add_times(struct sz_buf *out, int64_t now, bool honest, bool *is_early)
{
    static const int ends[] = {-70, -30, -5, 1, 5, 20, 60, 120};
    static const int starts[] = {-100, -5, 3, 30, 70};
    *is_early = false;
    sz_buf_printf(out, ",\"exp\":%lld", (long long)(now + (honest ? 55 : PICK(ends))));
    if (honest) {
        sz_buf_printf(out, ",\"iat\":%lld", (long long)now);
        return;
    }
    if (dice(4) != 0)
        sz_buf_printf(out, ",\"iat\":%lld%s", (long long)(now - dice(60)), dice(3) == 0 ? ".5" : "");
    if (dice(4) == 0) {
        int start = PICK(starts);
        *is_early = start > 0;
        sz_buf_printf(out, ",\"nbf\":%lld", (long long)(now + start));
    }
}

enum { KINDS = 13 };

static void make_token(size_t i, size_t kind, bool honest)
{
    static const char *const issuers[] = {"one", "one", "one", "two", "three"};
    static const char *const auds[] = {"\"api\"", "\"other\"", "[\"api\",\"third\"]", "[\"other\",\"api\"]", "[]", "7"};
    static const char *const more[KINDS] = {
        "\"scope\":\"a b\"",
        "\"scope\":\"b\",\"scp\":[\"a\",\"c\"]",
        "\"permissions\":[\"a\",\"b\",\"d\"]",
        "\"scope\":\"a\\u0009b\"",
        "\"plan\":\"gold\",\"list\":[\"y\",\"x\"]",
        "\"plan\":7,\"email\":\"a@example\"",
        "\"plan\":null",
        "\"plan\":\"a\\nb\",\"scope\":\"c\"",
        "\"cnf\":{\"x5t#S256\":\"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA\"}",
        "\"cnf\":{\"jkt\":\"x\"}",
        "\"cnf\":{\"jkt\":\"x\"},\"scope\":\"a b c\"",
        "\"client_id\":\"c\",\"azp\":\"d\"",
        "\"plan\":\"" /* 1 KiB follows: more than one slot, less than what an identity holds */
    };
    struct sz_buf claims = {0};
    int64_t now = sz_wall_seconds(sz_loop_wall(kit.loop));
    sz_buf_printf(&claims, "{\"iss\":\"https://%s.example/\",\"aud\":%s", honest ? "one" : PICK(issuers),
                  honest ? "[\"api\",\"other\"]" : PICK(auds));
    if (dice(8) != 0)
        sz_buf_printf(&claims, ",\"sub\":\"%s\"", dice(3) == 0 ? "bob" : "alice");
    add_times(&claims, now, honest, &early[i]);
    sz_buf_printf(&claims, ",%s", more[kind]);
    for (unsigned n = 0; kind + 1 == KINDS && n < 1024; n++)
        sz_buf_add(&claims, "g", 1);
    sz_buf_printf(&claims, "%s}", kind + 1 == KINDS ? "\"" : "");
    cr_assert_eq(sz_signer_sign(!honest && dice(2) == 0 ? second : kit.signer, SZ_ALG_ES256,
                                dice(2) == 0 ? "JWT" : "at+jwt", sz_buf_slice(&claims), &kit.arena.pool, &tokens[i]),
                 0);
    sz_buf_fini(&claims);
    if (!honest && dice(5) == 0) { /* not the signature's last digit, which has bits without meaning */
        char *spoilt = sz_pool_strdup(&kit.arena.pool, tokens[i]);
        spoilt[tokens[i].n - 9] = spoilt[tokens[i].n - 9] == 'A' ? 'B' : 'A';
        tokens[i].p = spoilt;
    }
}

static void make_any(size_t i)
{
    make_token(i, dice(KINDS), dice(i < 6 ? 5 : 2) != 0);
}

/* ---- comparing ----------------------------------------------------------------------------------------------- */

/* Fields that name the request, not what was found. */
static bool differs_anyway(struct sz_slice name)
{
    return sz_eq(name, SZ_S("x-request-id")) || sz_eq(name, SZ_S("traceparent"));
}

static void same_headers(const struct sz_headers *a, const struct sz_headers *b, unsigned step)
{
    cr_assert_eq(a->n, b->n, "step %u: %zu and %zu headers", step, a->n, b->n);
    for (size_t i = 0; i < a->n; i++) {
        cr_assert(sz_eq(a->v[i].name, b->v[i].name), "step %u: header %zu", step, i);
        cr_assert(differs_anyway(a->v[i].name) || sz_eq(a->v[i].value, b->v[i].value), "step %u: %.*s", step,
                  SZ_FMT(a->v[i].name));
    }
}

/* What was refused for another reason may have expired since: no is no, and the first reason was right. */
static bool same_reason(enum sz_reason cached, enum sz_reason fresh)
{
    return cached == fresh || (fresh == SZ_REASON_expired_token && sz_reason_row(cached)->status == 401);
}

static void same(const struct sz_txn *cached, const struct sz_txn *fresh, unsigned step)
{
    cr_assert(same_reason(cached->decision.reason, fresh->decision.reason),
              "step %u, %.*s: %s from the cache (layer %u), %s anew", step, SZ_FMT(fresh->req.target),
              sz_reason_row(cached->decision.reason)->name, cached->token_layer,
              sz_reason_row(fresh->decision.reason)->name);
    cr_assert_eq(cached->decision.allow, fresh->decision.allow);
    cr_assert_eq(cached->proxy, fresh->proxy);
    if (cached->proxy)
        cr_assert_eq(cached->forward.stream_until.us, fresh->forward.stream_until.us, "step %u: the stream's end",
                     step);
    else
        cr_assert_eq(cached->answer.status, fresh->answer.status);
    if (cached->decision.reason != fresh->decision.reason)
        return;
    same_headers(cached->proxy ? &cached->forward.headers : &cached->answer.headers,
                 fresh->proxy ? &fresh->forward.headers : &fresh->answer.headers, step);
}

static unsigned hits, rejected, revoked;

static void ask_both(unsigned step, size_t token, unsigned route, bool reload_between)
{
    static const uint8_t proof[32];
    char target[8];
    struct sz_cache_stats before, after;
    enum sz_step a, b;
    snprintf(target, sizeof(target), "/r%u", route);
    struct kit_request r = {
        .target = sz_pool_strdup(&kit.arena.pool, sz_cstr(target)), .token = tokens[token], .decide = dice(4) == 0};
    r.client_cert_sha256 = dice(2) == 0 ? proof : NULL;
    sz_token_cache_flush(bare.gate.tokens);
    sz_reject_cache_flush(bare.gate.rejects);
    sz_reject_cache_stats(kit.gate.rejects, &before);
    struct sz_txn *cached = kit_start(&kit, &r, &a), *fresh = kit_start(&bare, &r, &b);
    sz_reject_cache_stats(kit.gate.rejects, &after);
    if (reload_between)
        reload();
    fake_loop_settle(kit.loop);
    hits += cached->token_layer == 1;
    revoked += cached->decision.reason == SZ_REASON_revoked_token;
    rejected += after.hits > before.hits;
    same(cached, fresh, step);
    kit_end(cached);
    kit_end(fresh);
}

/* ---- the run --------------------------------------------------------------------------------------------------- */

static void write_keys(const char *name, const char *a, const char *b)
{
    char path[128];
    snprintf(path, sizeof(path), "%s/%s", kit.dir, name);
    FILE *file = fopen(path, "w");
    cr_assert_not_null(file);
    fprintf(file, "{\"keys\":[%s%s%s]}", a, b[0] != '\0' ? "," : "", b);
    fclose(file);
}

/* The one key of a set, without the set around it. */
static char *key_of(struct sz_signer *signer)
{
    struct sz_buf set = {0};
    cr_assert_eq(sz_signer_jwks(signer, &set), 0);
    struct sz_slice inner = sz_sub(sz_buf_slice(&set), 9, set.n - 11); /* {"keys":[ ... ]} */
    char *key = sz_pool_strdup(&kit.arena.pool, inner);
    sz_buf_fini(&set);
    return key;
}

static void open_both(void)
{
    struct sz_buf jwk = {0};
    struct sz_text why;
    kit_open(&kit, "  - {id: r, match: {path: /}, public: true, upstream: up}\n");
    cr_assert_eq(sz_key_generate(SZ_ALG_ES256, &jwk), 0);
    second = sz_signer_new(sz_buf_slice(&jwk), &why);
    cr_assert_not_null(second);
    sz_buf_fini(&jwk);
    write_keys("second.json", key_of(second), "");
    write_keys("both.json", key_of(kit.signer), key_of(second));
    bare = kit;
    sz_arena_init(&bare.arena);
    cr_assert_eq(sz_gate_init(&bare.gate, kit.snapshot->conf), 0);
    sz_worker_init(&bare.worker, kit.loop, &bare.gate, kit.snapshot);
    sz_revocations_start(kit.gate.revocations, kit.loop);
    sz_revocations_start(bare.gate.revocations, kit.loop);
    reload();
}

static void close_both(void)
{
    char path[128];
    sz_worker_fini(&bare.worker);
    sz_gate_fini(&bare.gate);
    sz_arena_fini(&bare.arena);
    sz_signer_free(&second);
    snprintf(path, sizeof(path), "%s/second.json", kit.dir);
    unlink(path);
    snprintf(path, sizeof(path), "%s/both.json", kit.dir);
    unlink(path);
    kit_close(&kit);
}

/* An hour ahead and back: what the wrong clock said is forgotten with it. */
static void step_the_wall_clock(unsigned step)
{
    struct sz_wall wall = sz_loop_wall(kit.loop);
    fake_loop_set_wall(kit.loop, (struct sz_wall){wall.us + SZ_SEC(3600).us});
    for (unsigned i = 0; i < 5; i++) {
        size_t token = dice(TOKENS);
        if (!early[token])
            ask_both(step, token, dice(8), false);
    }
    fake_loop_set_wall(kit.loop, wall);
}

static void on_revoked(struct sz_revocation_op *op, enum sz_revoked result)
{
    (void)op;
    cr_assert_neq(result, SZ_REVOKED_FULL);
}

/* One for both: by token, subject before some time, client, or, rarely, all that an issuer or a key made. */
static void revoke_something(void)
{
    static struct sz_revocation_op ops[2];
    int64_t now = sz_wall_seconds(sz_loop_wall(kit.loop));
    struct sz_revocation r = {.kind = SZ_REVOKE_TOKEN, .before = INT64_MAX, .expires = INT64_MAX, .made = 1};
    struct sz_slice iss = SZ_S("https://one.example/");
    unsigned what = dice(10);
    if (what < 4) {
        sz_revocation_digest(SZ_REVOKE_TOKEN, SZ_NONE, sz_token_signed(tokens[dice(TOKENS)]), r.digest);
    } else {
        r.kind = what < 8 ? SZ_REVOKE_SUBJECT : what < 9 ? SZ_REVOKE_CLIENT : SZ_REVOKE_ISSUER;
        r.before = now - (int64_t)dice(60);
        sz_revocation_digest((enum sz_revocation_kind)r.kind, iss,
                             what < 8   ? SZ_S("bob")
                             : what < 9 ? SZ_S("c")
                                        : SZ_NONE,
                             r.digest);
    }
    for (size_t i = 0; i < 2; i++) {
        ops[i] = (struct sz_revocation_op){.on_done = on_revoked};
        sz_revocations_add(i == 0 ? kit.gate.revocations : bare.gate.revocations, &r, &ops[i]);
    }
    fake_loop_settle(kit.loop);
}

/* The same questions before and after. */
static void reload_under_way(unsigned step)
{
    unsigned route = dice(8), first = dice(TOKENS);
    for (unsigned i = 0; i < 8; i++)
        ask_both(step, (first + i) % TOKENS, route, false);
    reload();
    for (unsigned i = 0; i < 8; i++)
        ask_both(step, (first + i) % TOKENS, route, false);
}

Test(differential, cache_on_is_cache_off, .timeout = 60)
{
    hits = rejected = revoked = 0;
    for (unsigned round = 0; round < ROUNDS; round++) {
        state = 0x9e3779b97f4a7c15u * (round + 1);
        open_both();
        for (size_t i = 0; i < TOKENS; i++)
            make_any(i);
        for (unsigned i = 0; i < STEPS; i++) {
            unsigned what = dice(100), step = round * STEPS + i;
            if (what < 4)
                reload_under_way(step);
            else if (what < 10)
                fake_loop_advance(kit.loop, SZ_MS(dice(8000)));
            else if (what < 16)
                make_any(dice(TOKENS));
            else if (what < 18)
                step_the_wall_clock(step);
            else if (what < 20)
                revoke_something();
            else
                ask_both(step, dice(4) == 0 ? dice(TOKENS) : dice(6), dice(8), what < 22);
        }
        close_both();
    }
    cr_assert_gt(hits, 200, "only %u hits", hits); /* else nothing was compared */
    cr_assert_gt(rejected, 200, "only %u known rejections", rejected);
    cr_assert_gt(revoked, 100, "only %u revoked", revoked);
}

static void ask_all(unsigned step, bool anew)
{
    for (size_t i = 0; i < KINDS && anew; i++)
        make_token(i, i, true);
    for (size_t i = 0; i < KINDS; i++) {
        ask_both(step, i, 6, false);
        ask_both(step, i, dice(8), false);
    }
}

/* There and back: facts that were learned before each change, and those that were learned under it. */
Test(differential, one_setting_at_a_time, .timeout = 60)
{
    state = 88172645463325252u;
    open_both();
    memset(choices, 0, sizeof(choices));
    cr_assert(reload_as_chosen());
    for (unsigned choice = 0; choice <= SETTINGS; choice++) { /* of issuer two no token here asks */
        for (unsigned value = 1; value < (choice < SETTINGS ? 4 : SZ_COUNT(settings)); value++) {
            ask_all(choice, true);
            choices[choice] = value;
            if (reload_as_chosen()) {
                ask_all(choice, false);
                ask_all(choice, true);
            }
            choices[choice] = 0;
            cr_assert(reload_as_chosen());
            ask_all(choice, false);
        }
    }
    close_both();
}

/*
 * Revocations as requests meet them.  Every kind, on the way from the verifier and on a hit alike, revoked before and
 * after the token was seen first.
 */
#include <criterion/criterion.h>
#include <stdio.h>

#include "pipeline/revoked.h"
#include "unit/pipeline/kit.h"

static const char routes[] =
    "  - {id: plain, match: {methods: [GET], path: /plain}, auth: {issuers: [one]}, upstream: up}\n"
    "  - {id: doc, match: {methods: [GET], path: \"/doc/{id}\"}, auth: {issuers: [one]}, upstream: up,\n"
    "     authorize: {user: \"user:{claims.sub}\", relation: viewer, object: \"document:{path.id}\"}}\n";

static struct kit kit;

static void open_kit(void)
{
    kit_open(&kit, routes);
    sz_revocations_start(kit.gate.revocations, kit.loop);
}

static void close_kit(void)
{
    kit_close(&kit);
}

TestSuite(revoked, .init = open_kit, .fini = close_kit);

static enum sz_reason ask(struct sz_slice token)
{
    return kit_reason(&kit, &(struct kit_request){.method = "GET", .target = "/plain", .token = token});
}

static void on_done(struct sz_revocation_op *op, enum sz_revoked result)
{
    (void)op;
    cr_assert_eq(result, SZ_REVOKED_NEW);
}

static void shut(enum sz_revocation_kind kind, struct sz_slice iss, struct sz_slice value, int64_t before)
{
    static struct sz_revocation_op ops[32];
    static size_t n;
    struct sz_revocation r = {.kind = (uint8_t)kind, .before = before, .expires = INT64_MAX};
    struct sz_revocation_op *op = &ops[n++ % SZ_COUNT(ops)];
    *op = (struct sz_revocation_op){.on_done = on_done};
    sz_revocation_digest(kind, iss, value, r.digest);
    sz_revocations_add(kit.gate.revocations, &r, op);
    fake_loop_settle(kit.loop);
}

static int64_t now(void)
{
    return sz_wall_seconds(sz_loop_wall(kit.loop));
}

/* Of issuer `one`; the claims are all but iss, aud and exp. */
static struct sz_slice token(const char *claims)
{
    struct sz_slice out;
    struct sz_slice text =
        sz_pool_printf(&kit.arena.pool, "{\"iss\":\"https://one.example/\",\"aud\":\"api\",\"exp\":%lld,%s}",
                       (long long)now() + 60, claims);
    cr_assert_eq(sz_signer_sign(kit.signer, SZ_ALG_ES256, "at+jwt", text, &kit.arena.pool, &out), 0);
    return out;
}

static struct sz_slice iss_of_kit(void)
{
    return kit.snapshot->conf->issuers[0].issuer;
}

static const struct {
    enum sz_revocation_kind kind;
    const char *value;
} rows[] = {
    {SZ_REVOKE_JTI, "j1"},
    {SZ_REVOKE_SID, "s1"},
    {SZ_REVOKE_SUBJECT, "alice"},
    {SZ_REVOKE_CLIENT, "app"},
};
#define CLAIMS "\"sub\":\"alice\",\"jti\":\"j1\",\"sid\":\"s1\",\"client_id\":\"app\""
#define OTHERS "\"sub\":\"bob\",\"jti\":\"j2\",\"sid\":\"s2\",\"client_id\":\"web\""

Test(revoked, every_kind_ends_what_was_cached_and_what_comes_new)
{
    for (size_t i = 0; i < SZ_COUNT(rows); i++) {
        struct sz_slice hot = token(CLAIMS), other = token(OTHERS);
        cr_assert_eq(ask(hot), SZ_REASON_allowed);
        cr_assert_eq(ask(other), SZ_REASON_allowed);
        struct sz_slice cold = token(CLAIMS ",\"fresh\":1");
        shut(rows[i].kind, iss_of_kit(), sz_cstr(rows[i].value), INT64_MAX);
        for (int again = 0; again < 2; again++) {
            cr_assert_eq(ask(hot), SZ_REASON_revoked_token, "row %zu, cached", i);
            cr_assert_eq(ask(cold), SZ_REASON_revoked_token, "row %zu, new", i);
            cr_assert_eq(ask(other), SZ_REASON_allowed, "row %zu", i);
        }
        close_kit();
        open_kit();
    }
}

Test(revoked, another_issuers_namesake_is_somebody_else)
{
    struct sz_slice hot = token(CLAIMS);
    cr_assert_eq(ask(hot), SZ_REASON_allowed);
    for (size_t i = 0; i < SZ_COUNT(rows); i++)
        shut(rows[i].kind, SZ_S("https://elsewhere.test/"), sz_cstr(rows[i].value), INT64_MAX);
    for (size_t i = 0; i < SZ_COUNT(rows); i++) /* nor is a value of one kind one of another */
        shut(rows[i].kind, iss_of_kit(), sz_cstr(rows[(i + 1) % SZ_COUNT(rows)].value), INT64_MAX);
    cr_assert_eq(ask(hot), SZ_REASON_allowed);
}

Test(revoked, the_token_itself_whoever_signs_it_again)
{
    struct sz_slice one = token(CLAIMS), two = token(OTHERS);
    cr_assert_eq(ask(one), SZ_REASON_allowed);
    cr_assert_eq(ask(two), SZ_REASON_allowed);
    shut(SZ_REVOKE_TOKEN, SZ_NONE, sz_token_signed(one), INT64_MAX);
    cr_assert_eq(ask(one), SZ_REASON_revoked_token);
    cr_assert_eq(ask(two), SZ_REASON_allowed);
    /* ECDSA signs the same anew each time: another signature, the same token. */
    const char *dot = memchr(one.p, '.', one.n), *last = memrchr(one.p, '.', one.n);
    char bytes[2048];
    size_t n;
    struct sz_slice again;
    cr_assert_eq(sz_b64url_decode(sz_slice(dot + 1, (size_t)(last - dot - 1)), bytes, &n), 0);
    struct sz_slice claims = sz_slice(bytes, n);
    cr_assert_eq(sz_signer_sign(kit.signer, SZ_ALG_ES256, "at+jwt", claims, &kit.arena.pool, &again), 0);
    cr_assert(sz_eq(sz_token_signed(again), sz_token_signed(one)));
    cr_assert_not(sz_eq(again, one));
    cr_assert_eq(ask(again), SZ_REASON_revoked_token);
}

Test(revoked, before_a_time)
{
    char claims[128];
    snprintf(claims, sizeof(claims), "\"sub\":\"alice\",\"iat\":%lld", (long long)now() - 30);
    struct sz_slice old = token(claims), without = token("\"sub\":\"alice\"");
    snprintf(claims, sizeof(claims), "\"sub\":\"alice\",\"iat\":%lld", (long long)now());
    struct sz_slice fresh = token(claims);
    cr_assert_eq(ask(old), SZ_REASON_allowed);
    cr_assert_eq(ask(fresh), SZ_REASON_allowed);
    cr_assert_eq(ask(without), SZ_REASON_allowed);
    shut(SZ_REVOKE_SUBJECT, iss_of_kit(), SZ_S("alice"), now() - 20);
    cr_assert_eq(ask(old), SZ_REASON_revoked_token);
    cr_assert_eq(ask(without), SZ_REASON_revoked_token, "one that does not say when");
    cr_assert_eq(ask(fresh), SZ_REASON_allowed);
}

Test(revoked, an_issuer_and_a_key_take_all_with_them)
{
    struct sz_buf jwks = {0};
    struct sz_slice hot = token(CLAIMS);
    cr_assert_eq(ask(hot), SZ_REASON_allowed);
    cr_assert_eq(sz_signer_jwks(kit.signer, &jwks), 0);
    const char *at = strstr(jwks.p, "\"kid\"");
    cr_assert_not_null(at);
    at = strchr(at + 5, '"') + 1;
    shut(SZ_REVOKE_KID, iss_of_kit(), sz_slice(at, (size_t)(strchr(at, '"') - at)), INT64_MAX);
    cr_assert_eq(ask(hot), SZ_REASON_revoked_token);
    cr_assert_eq(ask(token(OTHERS)), SZ_REASON_revoked_token);
    sz_buf_fini(&jwks);
    close_kit();
    open_kit();
    hot = token(CLAIMS);
    cr_assert_eq(ask(hot), SZ_REASON_allowed);
    shut(SZ_REVOKE_ISSUER, iss_of_kit(), SZ_NONE, now());
    cr_assert_eq(ask(hot), SZ_REASON_revoked_token);
}

/* A hit that was judged by all there is costs no look; one that was not is judged by what is newer alone. */
Test(revoked, a_fact_remembers_what_it_was_judged_by)
{
    struct kit_request request = {.method = "GET", .target = "/plain", .token = token(CLAIMS)};
    shut(SZ_REVOKE_SUBJECT, iss_of_kit(), SZ_S("carol"), INT64_MAX);
    for (int i = 0; i < 2; i++) {
        struct sz_txn *txn = kit_run(&kit, &request);
        cr_assert_eq(txn->decision.reason, SZ_REASON_allowed);
        cr_assert_eq(txn->identity->revocation, sz_revocation_sequence(kit.gate.news));
        cr_assert_not(sz_revocation_newer(kit.gate.news, txn->identity->revocation));
        kit_end(txn);
    }
}

/* Revoked while its relation is being asked about: the answer to that is yes, and comes too late. */
Test(revoked, while_the_request_waits)
{
    enum sz_step step;
    kit_answer("document:later", SZ_AUTHZ_ALLOWED, true);
    struct sz_txn *txn =
        kit_start(&kit, &(struct kit_request){.method = "GET", .target = "/doc/later", .token = token(CLAIMS)}, &step);
    cr_assert_eq(step, SZ_STEP_PARKED);
    shut(SZ_REVOKE_SUBJECT, iss_of_kit(), SZ_S("alice"), INT64_MAX);
    cr_expect_eq((int)txn->decision.reason, SZ_REASON_revoked_token);
    cr_expect_not(txn->decision.allow);
    kit_end(txn);
}

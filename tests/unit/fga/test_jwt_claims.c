/* fga/jwt_claims.c, fga/jwt_scopes.c, fga/jwt_binding.c: the rules of the claims, and the identity that comes out. */
#include <criterion/criterion.h>
#include <stdio.h>

#include "subzero/crypto.h"
#include "subzero/revocation.h"
#include "unit/fga/issuer_world.h"

TestSuite(claims);

#define ISS "\"iss\":\"https://issuer.test/\","
#define AUD "\"aud\":\"api\","
#define EXP "\"exp\":" WORLD_LATER

static const struct {
    const char *claims;
    enum sz_reason reason;
} rows[] = {
    /* exp */
    {"{" ISS AUD EXP "}", SZ_REASON_allowed},
    {"{" ISS AUD "\"exp\":null}", SZ_REASON_invalid_token},
    {"{" ISS AUD "\"exp\":\"1767229200\"}", SZ_REASON_invalid_token},
    {"{" ISS AUD "\"exp\":[1767229200]}", SZ_REASON_invalid_token},
    {"{" ISS AUD "\"x\":1}", SZ_REASON_invalid_token},
    {"{" ISS AUD "\"exp\":0}", SZ_REASON_expired_token},
    {"{" ISS AUD "\"exp\":-1}", SZ_REASON_expired_token},
    {"{" ISS AUD "\"exp\":1767225540}", SZ_REASON_expired_token},   /* now - 60, leeway 60 */
    {"{" ISS AUD "\"exp\":1767225540.9}", SZ_REASON_expired_token}, /* rounded down */
    {"{" ISS AUD "\"exp\":1767225541}", SZ_REASON_allowed},
    {"{" ISS AUD "\"exp\":1.767229200e9}", SZ_REASON_allowed},
    {"{" ISS AUD "\"exp\":9007199254740992}", SZ_REASON_allowed},
    {"{" ISS AUD "\"exp\":9007199254740993}", SZ_REASON_invalid_token},
    {"{" ISS AUD "\"exp\":9223372036854775807}", SZ_REASON_invalid_token},
    {"{" ISS AUD "\"exp\":18446744073709551615}", SZ_REASON_invalid_token},
    {"{" ISS AUD "\"exp\":1e300}", SZ_REASON_invalid_token},
    {"{" ISS AUD "\"exp\":1e999}", SZ_REASON_invalid_token},
    {"{" ISS AUD "\"exp\":-1e999}", SZ_REASON_invalid_token},
    /* nbf, iat */
    {"{" ISS AUD EXP ",\"nbf\":1767225660}", SZ_REASON_allowed},
    {"{" ISS AUD EXP ",\"nbf\":1767225660.1}", SZ_REASON_invalid_token}, /* rounded up */
    {"{" ISS AUD EXP ",\"nbf\":1767225661}", SZ_REASON_invalid_token},
    {"{" ISS AUD EXP ",\"nbf\":-9007199254740992}", SZ_REASON_allowed},
    {"{" ISS AUD EXP ",\"nbf\":null}", SZ_REASON_invalid_token},
    {"{" ISS AUD EXP ",\"nbf\":true}", SZ_REASON_invalid_token},
    {"{" ISS AUD EXP ",\"iat\":1767225661}", SZ_REASON_invalid_token},
    {"{" ISS AUD EXP ",\"iat\":1767225660}", SZ_REASON_allowed},
    {"{" ISS AUD EXP ",\"iat\":\"x\"}", SZ_REASON_invalid_token},
    /* aud */
    {"{" ISS EXP "}", SZ_REASON_wrong_audience},
    {"{" ISS "\"aud\":[]," EXP "}", SZ_REASON_wrong_audience},
    {"{" ISS "\"aud\":null," EXP "}", SZ_REASON_wrong_audience},
    {"{" ISS "\"aud\":{\"api\":1}," EXP "}", SZ_REASON_wrong_audience},
    {"{" ISS "\"aud\":[\"api\",1]," EXP "}", SZ_REASON_wrong_audience},
    {"{" ISS "\"aud\":[[\"api\"]]," EXP "}", SZ_REASON_wrong_audience},
    {"{" ISS "\"aud\":\"API\"," EXP "}", SZ_REASON_wrong_audience},
    {"{" ISS "\"aud\":\"api\\u0000\"," EXP "}", SZ_REASON_wrong_audience},
    {"{" ISS "\"aud\":[\"x\",\"api\"]," EXP "}", SZ_REASON_allowed},
    /* who */
    {"{" ISS AUD EXP ",\"sub\":\"\"}", SZ_REASON_invalid_token},
    {"{" ISS AUD EXP ",\"sub\":1}", SZ_REASON_invalid_token},
    {"{" ISS AUD EXP ",\"sub\":null}", SZ_REASON_invalid_token},
    {"{" ISS AUD EXP ",\"azp\":\"a\",\"client_id\":\"b\"}", SZ_REASON_invalid_token},
    {"{" ISS AUD EXP ",\"azp\":\"a\",\"client_id\":\"a\"}", SZ_REASON_allowed},
    {"{" ISS AUD EXP ",\"client_id\":[]}", SZ_REASON_invalid_token},
    {"{" ISS AUD EXP ",\"jti\":7}", SZ_REASON_invalid_token},
    {"{" ISS AUD EXP ",\"sid\":{}}", SZ_REASON_invalid_token},
    {"{" ISS AUD EXP ",\"org\":{}}", SZ_REASON_invalid_token}, /* the tenant claim */
    {"{" ISS AUD EXP ",\"org\":1.5}", SZ_REASON_invalid_token},
    {"{" ISS AUD EXP ",\"org\":\"\"}", SZ_REASON_invalid_token},
    {"{" ISS AUD EXP ",\"org\":null}", SZ_REASON_allowed},
    /* scopes */
    {"{" ISS AUD EXP ",\"scope\":\"\"}", SZ_REASON_allowed},
    {"{" ISS AUD EXP ",\"scope\":\" a\"}", SZ_REASON_invalid_token},
    {"{" ISS AUD EXP ",\"scope\":\"a \"}", SZ_REASON_invalid_token},
    {"{" ISS AUD EXP ",\"scope\":\"a  b\"}", SZ_REASON_invalid_token},
    {"{" ISS AUD EXP ",\"scope\":\"a\\tb\"}", SZ_REASON_invalid_token},
    {"{" ISS AUD EXP ",\"scope\":\"a\\\"b\"}", SZ_REASON_invalid_token},
    {"{" ISS AUD EXP ",\"scope\":\"a\\\\b\"}", SZ_REASON_invalid_token},
    {"{" ISS AUD EXP ",\"scope\":\"a\\u0000\"}", SZ_REASON_invalid_token},
    {"{" ISS AUD EXP ",\"scope\":\"a\xc2\xa0"
     "b\"}",
     SZ_REASON_invalid_token},
    {"{" ISS AUD EXP ",\"scope\":\"a\\r\\nX: y\"}", SZ_REASON_invalid_token},
    {"{" ISS AUD EXP ",\"scope\":1}", SZ_REASON_invalid_token},
    {"{" ISS AUD EXP ",\"scope\":null}", SZ_REASON_invalid_token},
    {"{" ISS AUD EXP ",\"scope\":{\"read\":true}}", SZ_REASON_invalid_token},
    {"{" ISS AUD EXP ",\"scp\":[\"a b\"]}", SZ_REASON_invalid_token},
    {"{" ISS AUD EXP ",\"scp\":[\"\"]}", SZ_REASON_invalid_token},
    {"{" ISS AUD EXP ",\"scp\":[1]}", SZ_REASON_invalid_token},
    {"{" ISS AUD EXP ",\"scp\":[]}", SZ_REASON_allowed},
    {"{" ISS AUD EXP ",\"perms\":[\"a\\nb\"]}", SZ_REASON_invalid_token},
    {"{" ISS AUD EXP ",\"permissions\":[\"a\\nb\"]}", SZ_REASON_allowed}, /* not the claim of this issuer's option */
    /* cnf */
    {"{" ISS AUD EXP ",\"cnf\":\"x\"}", SZ_REASON_invalid_token},
    {"{" ISS AUD EXP ",\"cnf\":null}", SZ_REASON_invalid_token},
    {"{" ISS AUD EXP ",\"cnf\":{\"x5t#S256\":\"short\"}}", SZ_REASON_invalid_token},
    {"{" ISS AUD EXP ",\"cnf\":{\"x5t#S256\":null}}", SZ_REASON_invalid_token},
};

static void configure(struct world *w)
{
    world_init(w);
    w->scopes[0] = SZ_S("write");
    w->scopes[1] = SZ_S("read");
    w->scopes[2] = SZ_S("read:documents");
    w->scopes[3] = SZ_S("admin");
    w->claims[0] = SZ_S("role");
    w->claims[1] = SZ_S("https://x.test/groups");
    w->claims[2] = SZ_S("level");
    w->claims[3] = SZ_S("sub");
    w->conf.vocabulary.scopes = (struct sz_strings){w->scopes, 4};
    w->conf.vocabulary.claims = (struct sz_strings){w->claims, 4};
    w->issuer[0].tenant_claim = SZ_S("org");
    w->issuer[0].permissions_claim = SZ_S("perms");
}

Test(claims, every_row_has_its_reason)
{
    struct world w;
    configure(&w);
    world_open(&w);
    for (size_t i = 0; i < SZ_COUNT(rows); i++) {
        enum sz_reason reason = world_judge(&w, world_token(&w, rows[i].claims));
        cr_expect_eq(reason, rows[i].reason, "%s: %s", rows[i].claims, sz_reason_row(reason)->name);
    }
    world_fini(&w);
}

Test(claims, what_time_heals_says_when)
{
    struct world w;
    struct sz_identity id;
    struct sz_verified verified;
    configure(&w);
    world_open(&w);
    world_verify(&w, world_token(&w, "{" ISS AUD EXP ",\"nbf\":1767226000}"), &id, &verified);
    cr_expect(verified.heals && verified.heals_at == 1767226000 - 60);
    world_verify(&w, world_token(&w, "{" ISS AUD "\"exp\":1}"), &id, &verified);
    cr_expect(!verified.heals, "nothing makes an expired token good");
    world_fini(&w);
}

Test(claims, lifetime_is_bounded_on_demand)
{
    struct world w;
    configure(&w);
    w.issuer[0].max_lifetime = SZ_SEC(3600);
    world_open(&w);
    cr_expect_eq(world_judge(&w, world_token(&w, "{" ISS AUD EXP ",\"iat\":1767225600}")), SZ_REASON_allowed);
    cr_expect_eq(world_judge(&w, world_token(&w, "{" ISS AUD EXP ",\"iat\":1767225599}")), SZ_REASON_invalid_token);
    cr_expect_eq(world_judge(&w, world_token(&w, "{" ISS AUD EXP "}")), SZ_REASON_invalid_token);
    cr_expect_eq(world_judge(&w, world_token(&w, "{" ISS AUD EXP ",\"iat\":-9007199254740992}")),
                 SZ_REASON_invalid_token);
    world_fini(&w);
}

Test(claims, required_claims_and_types_are_the_issuers)
{
    struct world w;
    configure(&w);
    w.required[0] = SZ_S("sub");
    w.issuer[0].required_claims = (struct sz_strings){w.required, 1};
    w.types[0] = SZ_S("at+jwt");
    w.issuer[0].types = (struct sz_strings){w.types, 1};
    world_open(&w);
    struct sz_slice typed = SZ_S("{\"alg\":\"ES256\",\"typ\":\"application/at+jwt\"}");
    cr_expect_eq(world_judge(&w, world_sign(&w, typed, SZ_S("{" ISS AUD EXP ",\"sub\":\"a\"}"))), SZ_REASON_allowed);
    cr_expect_eq(world_judge(&w, world_sign(&w, typed, SZ_S("{" ISS AUD EXP "}"))), SZ_REASON_invalid_token);
    cr_expect_eq(world_judge(&w, world_token(&w, "{" ISS AUD EXP ",\"sub\":\"a\"}")), SZ_REASON_invalid_token,
                 "no typ");
    world_fini(&w);
}

static bool scopes_are(const struct sz_identity *id, uint64_t bits)
{
    return id->scopes[0] == bits && (id->scopes[1] | id->scopes[2] | id->scopes[3]) == 0;
}

Test(claims, scopes_of_all_claims_end_as_bits)
{
    static const struct {
        const char *claims;
        uint64_t bits;
    } sets[] = {
        {"{" ISS AUD EXP "}", 0},
        {"{" ISS AUD EXP ",\"scope\":\"read unknown\"}", 2},
        {"{" ISS AUD EXP ",\"scope\":\"rea read:document admin2\"}", 0},
        {"{" ISS AUD EXP ",\"scope\":[\"admin\",\"write\"]}", 9},
        {"{" ISS AUD EXP ",\"scp\":\"read:documents\"}", 4},
        {"{" ISS AUD EXP ",\"scope\":\"read\",\"scp\":[\"write\"],\"perms\":[\"admin\"]}", 11},
        {"{" ISS AUD EXP ",\"permissions\":[\"admin\"]}", 0},
    };
    struct world w;
    struct sz_identity id;
    struct sz_verified verified;
    configure(&w);
    world_open(&w);
    for (size_t i = 0; i < SZ_COUNT(sets); i++) {
        cr_expect_eq(world_verify(&w, world_token(&w, sets[i].claims), &id, &verified), SZ_REASON_allowed);
        cr_expect(scopes_are(&id, sets[i].bits), "%s", sets[i].claims);
    }
    world_fini(&w);
}

Test(claims, the_identity_holds_what_was_verified)
{
    struct world w;
    struct sz_identity id;
    struct sz_verified verified;
    configure(&w);
    w.audiences[1] = SZ_S("second");
    w.issuer[0].audiences.n = 2;
    world_open(&w);
    struct sz_slice token = world_token(
        &w,
        "{" ISS
        "\"aud\":[\"second\",\"x\"],\"exp\":1767229200.9,\"iat\":1767225000.9,\"sub\":\"al\\u00efce\",\"azp\":\"app\","
        "\"org\":42,\"jti\":\"j\",\"sid\":\"s\",\"role\":\"boss\",\"https://x.test/"
        "groups\":[\"a\",\"\",\"b\"],\"level\":-7}");
    cr_assert_eq(world_verify(&w, token, &id, &verified), SZ_REASON_allowed);
    cr_expect_eq(id.exp, 1767229200);
    cr_expect_eq(id.iat, 1767225000);
    cr_expect_eq(id.audiences, 2);
    cr_expect_eq(id.kind, SZ_CREDENTIAL_JWT);
    cr_expect_eq(id.flags, SZ_ID_HAS_IAT | SZ_ID_HAS_JTI | SZ_ID_HAS_SID);
    cr_expect(sz_eq(sz_identity_text(&id, id.subject), SZ_S("al\xc3\xaf"
                                                            "ce")));
    cr_expect(sz_eq(sz_identity_text(&id, id.client), SZ_S("app")));
    cr_expect(sz_eq(sz_identity_text(&id, id.tenant), SZ_S("42")));
    const struct sz_slice iss = SZ_S("https://issuer.test/");
    cr_expect_eq(id.jti, sz_revocation_name(SZ_REVOKE_JTI, iss, SZ_S("j")));
    cr_expect_neq(id.jti, sz_revocation_name(SZ_REVOKE_SID, iss, SZ_S("j")));
    cr_expect_neq(id.jti, sz_revocation_name(SZ_REVOKE_JTI, SZ_S("https://issuer.tes"), SZ_S("t/j")));
    struct sz_claim role = sz_identity_claim(&id, 0), groups = sz_identity_claim(&id, 1),
                    level = sz_identity_claim(&id, 2);
    cr_expect(role.type == SZ_CLAIM_STRING && sz_eq(role.text, SZ_S("boss")));
    cr_expect(level.type == SZ_CLAIM_INTEGER && level.integer == -7);
    cr_assert_eq(groups.type, SZ_CLAIM_STRINGS);
    static const char *const expected[] = {"a", "", "b"};
    struct sz_slice rest = groups.text, item;
    for (size_t i = 0; i < SZ_COUNT(expected); i++)
        cr_expect(sz_claim_next(&rest, &item) && sz_eq(item, sz_cstr(expected[i])));
    cr_expect(!sz_claim_next(&rest, &item));
    cr_expect_eq(sz_identity_claim(&id, 3).type, SZ_CLAIM_STRING);
    world_fini(&w);
}

Test(claims, types_of_other_values)
{
    static const struct {
        const char *value;
        enum sz_claim_type type;
        int64_t integer;
    } values[] = {
        {"null", SZ_CLAIM_ABSENT, 0},
        {"true", SZ_CLAIM_BOOL, 1},
        {"false", SZ_CLAIM_BOOL, 0},
        {"9223372036854775807", SZ_CLAIM_INTEGER, INT64_MAX},
        {"-9223372036854775808", SZ_CLAIM_INTEGER, INT64_MIN},
        {"9223372036854775808", SZ_CLAIM_OTHER, 0},
        {"1.0", SZ_CLAIM_OTHER, 0},
        {"{}", SZ_CLAIM_OTHER, 0},
        {"[]", SZ_CLAIM_STRINGS, 0},
        {"[\"a\",1]", SZ_CLAIM_OTHER, 0},
        {"[[\"a\"]]", SZ_CLAIM_OTHER, 0},
        {"\"\"", SZ_CLAIM_STRING, 0},
    };
    struct world w;
    struct sz_identity id;
    struct sz_verified verified;
    configure(&w);
    world_open(&w);
    for (size_t i = 0; i < SZ_COUNT(values); i++) {
        char claims[256];
        snprintf(claims, sizeof(claims), "{" ISS AUD EXP ",\"role\":%s}", values[i].value);
        cr_assert_eq(world_verify(&w, world_token(&w, claims), &id, &verified), SZ_REASON_allowed);
        struct sz_claim claim = sz_identity_claim(&id, 0);
        cr_expect_eq(claim.type, values[i].type, "%s", values[i].value);
        cr_expect_eq(claim.integer, values[i].integer, "%s", values[i].value);
    }
    world_fini(&w);
}

Test(claims, what_does_not_fit_refuses_the_token)
{
    struct world w;
    configure(&w);
    world_open(&w);
    for (int n = 1800; n < 2300; n += 10) {
        char claims[4096];
        snprintf(claims, sizeof(claims), "{" ISS AUD EXP ",\"sub\":\"%0*d\"}", n, 1);
        enum sz_reason reason = world_judge(&w, world_token(&w, claims));
        cr_expect(reason == SZ_REASON_allowed || reason == SZ_REASON_malformed_token);
        cr_expect(n < SZ_IDENTITY_TEXT || reason == SZ_REASON_malformed_token);
        snprintf(claims, sizeof(claims), "{" ISS AUD EXP ",\"https://x.test/groups\":[\"a\",\"%0*d\"]}", n, 1);
        reason = world_judge(&w, world_token(&w, claims));
        cr_expect(n < SZ_IDENTITY_TEXT - 16 ? reason == SZ_REASON_allowed : true);
        cr_expect(n < SZ_IDENTITY_TEXT || reason == SZ_REASON_malformed_token);
    }
    world_fini(&w);
}

static const struct {
    const char *claims;
    unsigned flags;
} bindings[] = {
    {"{" ISS AUD EXP "}", 0},
    {"{" ISS AUD EXP ",\"typ\":\"Bearer\",\"token_type\":\"Bearer\"}", 0},
    {"{" ISS AUD EXP ",\"cnf\":{\"x5t#S256\":\"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA\"}}",
     SZ_ID_SENDER_BOUND | SZ_ID_HAS_X5T},
    {"{" ISS AUD EXP ",\"cnf\":{\"x5t#S256\":\"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA\",\"jkt\":\"x\"}}",
     SZ_ID_SENDER_BOUND | SZ_ID_HAS_X5T | SZ_ID_CNF_OTHER},
    {"{" ISS AUD EXP ",\"cnf\":{\"jkt\":\"x\"}}", SZ_ID_SENDER_BOUND | SZ_ID_CNF_OTHER},
    {"{" ISS AUD EXP ",\"cnf\":{\"x5t\":\"x\"}}", SZ_ID_SENDER_BOUND | SZ_ID_CNF_OTHER},
    {"{" ISS AUD EXP ",\"cnf\":{}}", SZ_ID_SENDER_BOUND | SZ_ID_CNF_OTHER},
    {"{" ISS AUD EXP ",\"typ\":\"DPoP\"}", SZ_ID_SENDER_BOUND | SZ_ID_CNF_OTHER},
    {"{" ISS AUD EXP ",\"token_type\":\"dpop\"}", SZ_ID_SENDER_BOUND | SZ_ID_CNF_OTHER},
};

Test(claims, bound_tokens_are_marked_unless_ignored)
{
    for (int ignore = 0; ignore < 2; ignore++) {
        struct world w;
        struct sz_identity id;
        struct sz_verified verified;
        configure(&w);
        w.issuer[0].ignore_cnf = ignore != 0;
        world_open(&w);
        for (size_t i = 0; i < SZ_COUNT(bindings); i++) {
            cr_expect_eq(world_verify(&w, world_token(&w, bindings[i].claims), &id, &verified), SZ_REASON_allowed);
            cr_expect_eq(id.flags, ignore != 0 ? 0 : bindings[i].flags, "%s", bindings[i].claims);
        }
        world_fini(&w);
    }
}

Test(claims, no_detail_repeats_a_value_of_the_token)
{
    struct world w;
    struct sz_identity id;
    struct sz_verified verified;
    configure(&w);
    world_open(&w);
    static const char *const tokens[] = {
        "{\"iss\":\"SECRET\"}",
        "{" ISS "\"aud\":\"SECRET\"," EXP "}",
        "{" ISS AUD EXP ",\"scope\":\"SECRET\\n\"}",
        "{" ISS AUD "\"exp\":\"SECRET\"}",
        "{" ISS AUD EXP ",\"cnf\":{\"x5t#S256\":\"SECRET\"}}",
        "{\"SECRET\":}",
    };
    for (size_t i = 0; i < SZ_COUNT(tokens); i++) {
        cr_expect_neq(world_verify(&w, world_token(&w, tokens[i]), &id, &verified), SZ_REASON_allowed);
        cr_expect(verified.detail.s[0] != '\0' && strstr(verified.detail.s, "SECRET") == NULL, "%s", verified.detail.s);
    }
    world_fini(&w);
}

/* Logout tokens: everything that is nearly one, then the two kinds that are. */
#include <criterion/criterion.h>

#include "unit/fga/issuer_world.h"

TestSuite(logout);

#define ISS   "\"iss\":\"https://issuer.test/\","
#define AUD   "\"aud\":\"rp\","
#define IAT   "\"iat\":1767225590,"
#define EXP   "\"exp\":1767225700,"
#define JTI   "\"jti\":\"j\","
#define EVENT "\"events\":{\"http://schemas.openid.net/event/backchannel-logout\":{}},"
#define SID   "\"sid\":\"s1\""
#define TYP   "{\"alg\":\"ES256\",\"kid\":\"k1\",\"typ\":\"logout+jwt\"}"

static const struct {
    const char *header, *claims;
    enum sz_reason reason;
} rows[] = {
    {TYP, "{" ISS AUD IAT EXP JTI EVENT SID "}", SZ_REASON_allowed},
    {TYP, "{" ISS AUD IAT EXP JTI EVENT "\"sub\":\"alice\"}", SZ_REASON_allowed},
    {TYP, "{" ISS AUD IAT EXP JTI EVENT "\"sub\":\"alice\"," SID "}", SZ_REASON_allowed},
    {TYP, "{" ISS "\"aud\":[\"x\",\"rp\"]," IAT EXP JTI EVENT SID "}", SZ_REASON_allowed},
    {TYP, "{" ISS AUD IAT JTI EVENT SID "}", SZ_REASON_allowed}, /* no exp: fresh by its iat */
    {"{\"alg\":\"ES256\",\"kid\":\"k1\"}", "{" ISS AUD IAT EXP JTI EVENT SID "}", SZ_REASON_allowed},
    {"{\"alg\":\"ES256\",\"kid\":\"k1\",\"typ\":\"JWT\"}", "{" ISS AUD IAT EXP JTI EVENT SID "}", SZ_REASON_allowed},
    /* what is another token */
    {"{\"alg\":\"ES256\",\"kid\":\"k1\",\"typ\":\"at+jwt\"}", "{" ISS AUD IAT EXP JTI EVENT SID "}",
     SZ_REASON_invalid_token},
    {TYP, "{" ISS AUD IAT EXP JTI SID "}", SZ_REASON_invalid_token},
    {TYP, "{" ISS AUD IAT EXP JTI "\"events\":{}," SID "}", SZ_REASON_invalid_token},
    {TYP, "{" ISS AUD IAT EXP JTI "\"events\":[\"http://schemas.openid.net/event/backchannel-logout\"]," SID "}",
     SZ_REASON_invalid_token},
    {TYP, "{" ISS AUD IAT EXP JTI "\"events\":{\"http://schemas.openid.net/event/backchannel-logout\":true}," SID "}",
     SZ_REASON_invalid_token},
    {TYP, "{" ISS AUD IAT EXP JTI EVENT "\"nonce\":\"n\"," SID "}", SZ_REASON_invalid_token},
    {TYP, "{" ISS AUD IAT EXP JTI EVENT "\"nonce\":null," SID "}", SZ_REASON_invalid_token},
    /* for somebody else */
    {TYP, "{" ISS "\"aud\":\"api\"," IAT EXP JTI EVENT SID "}", SZ_REASON_wrong_audience},
    {TYP, "{" ISS "\"aud\":[]," IAT EXP JTI EVENT SID "}", SZ_REASON_wrong_audience},
    {TYP, "{" ISS "\"aud\":{\"rp\":1}," IAT EXP JTI EVENT SID "}", SZ_REASON_wrong_audience},
    {TYP, "{" ISS IAT EXP JTI EVENT SID "}", SZ_REASON_wrong_audience},
    {TYP, "{\"iss\":\"https://other.test/\"," AUD IAT EXP JTI EVENT SID "}", SZ_REASON_wrong_issuer},
    {TYP, "{" AUD IAT EXP JTI EVENT SID "}", SZ_REASON_wrong_issuer},
    /* times */
    {TYP, "{" ISS AUD EXP JTI EVENT SID "}", SZ_REASON_invalid_token},
    {TYP, "{" ISS AUD "\"iat\":\"now\"," EXP JTI EVENT SID "}", SZ_REASON_invalid_token},
    {TYP, "{" ISS AUD "\"iat\":-1," EXP JTI EVENT SID "}", SZ_REASON_invalid_token},
    {TYP, "{" ISS AUD "\"iat\":1e300," EXP JTI EVENT SID "}", SZ_REASON_invalid_token},
    {TYP, "{" ISS AUD "\"iat\":1767225700," EXP JTI EVENT SID "}", SZ_REASON_invalid_token},
    {TYP, "{" ISS AUD IAT "\"exp\":1767225000," JTI EVENT SID "}", SZ_REASON_expired_token},
    {TYP, "{" ISS AUD "\"iat\":1767224000," JTI EVENT SID "}", SZ_REASON_expired_token},
    /* nobody, or too much */
    {TYP, "{" ISS AUD IAT EXP JTI EVENT "\"x\":1}", SZ_REASON_invalid_token},
    {TYP, "{" ISS AUD IAT EXP JTI EVENT "\"sid\":\"\"}", SZ_REASON_invalid_token},
    {TYP, "{" ISS AUD IAT EXP JTI EVENT "\"sid\":7}", SZ_REASON_invalid_token},
    {TYP, "{" ISS AUD IAT EXP JTI EVENT "\"sub\":{}," SID "}", SZ_REASON_invalid_token},
    {TYP, "{" ISS AUD IAT EXP EVENT SID "}", SZ_REASON_invalid_token},
    {TYP, "{" ISS AUD IAT EXP "\"jti\":1," EVENT SID "}", SZ_REASON_invalid_token},
};

static enum sz_reason verify(struct world *w, const char *path, struct sz_slice token, struct sz_logout *out)
{
    struct sz_verified verdict;
    struct sz_wall now = {WORLD_NOW * 1000000};
    memset(out, 0x5a, sizeof(*out));
    cr_assert_eq(sz_logout_verify(w->issuers, sz_cstr(path), token, now, out, &verdict), 0);
    return verdict.reason;
}

static void open_world(struct world *w)
{
    static const struct sz_slice clients[] = {SZ_S("rp"), SZ_S("rp2")};
    world_init(w);
    w->issuer[0].logout.path = SZ_S("/out");
    w->issuer[0].logout.client_ids = (struct sz_strings){.v = clients, .n = 2};
    world_open(w);
}

Test(logout, verdicts)
{
    struct world w;
    struct sz_logout out;
    open_world(&w);
    for (size_t i = 0; i < SZ_COUNT(rows); i++) {
        struct sz_slice token = world_sign(&w, sz_cstr(rows[i].header), sz_cstr(rows[i].claims));
        enum sz_reason got = verify(&w, "/out", token, &out);
        cr_expect_eq(got, rows[i].reason, "row %zu: %s", i, sz_reason_row(got)->name);
    }
    world_fini(&w);
}

Test(logout, what_it_says)
{
    struct world w;
    struct sz_logout out, other;
    open_world(&w);
    struct sz_slice token = world_sign(&w, SZ_S(TYP), SZ_S("{" ISS AUD IAT EXP JTI EVENT "\"sub\":\"alice\"," SID "}"));
    cr_assert_eq(verify(&w, "/out", token, &out), SZ_REASON_allowed);
    cr_expect(sz_eq(sz_slice(out.sub, out.sub_n), SZ_S("alice")) && sz_eq(sz_slice(out.sid, out.sid_n), SZ_S("s1")));
    cr_expect_eq(out.iat, 1767225590);
    cr_expect_geq(out.until, 1767225700);
    cr_expect_eq(verify(&w, "/elsewhere", token, &other), SZ_REASON_wrong_issuer);
    token = world_sign(&w, SZ_S(TYP), SZ_S("{" ISS AUD IAT EXP "\"jti\":\"k\"," EVENT SID "}"));
    cr_assert_eq(verify(&w, "/out", token, &other), SZ_REASON_allowed);
    cr_expect_neq(out.jti, other.jti);
    world_fini(&w);
}

Test(logout, a_signature_that_is_none)
{
    struct world w;
    struct sz_logout out;
    char bytes[2048];
    open_world(&w);
    struct sz_slice token = world_sign(&w, SZ_S(TYP), SZ_S("{" ISS AUD IAT EXP JTI EVENT SID "}"));
    memcpy(bytes, token.p, token.n);
    bytes[token.n - 10] = bytes[token.n - 10] == 'A' ? 'B' : 'A';
    cr_expect_eq(verify(&w, "/out", sz_slice(bytes, token.n), &out), SZ_REASON_invalid_token);
    token = world_sign(&w, SZ_S("{\"alg\":\"none\"}"), SZ_S("{" ISS AUD IAT EXP JTI EVENT SID "}"));
    cr_expect_eq(verify(&w, "/out", token, &out), SZ_REASON_algorithm_not_allowed);
    cr_expect_eq(verify(&w, "/out", SZ_S("a.b.c"), &out), SZ_REASON_malformed_token);
    cr_expect_eq(verify(&w, "/out", SZ_S(""), &out), SZ_REASON_malformed_token);
    world_fini(&w);
}

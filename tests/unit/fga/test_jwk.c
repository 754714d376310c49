/* fga/jwk.c, fga/jwks.c: which keys may verify what; the vectors cover the encodings, this the rules around them. */
#include <criterion/criterion.h>
#include <errno.h>
#include <openssl/ec.h>
#include <openssl/objects.h>

#include "fga/jwks.h"
#include "fga/key_registry.h"
#include "subzero/crypto.h"

TestSuite(jwk, .init = sz_crypto_init);

#define EC_X "\"kty\":\"EC\",\"crv\":\"P-256\",\"x\":\"f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU\","
#define EC   EC_X "\"y\":\"x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0\""
#define ED   "\"kty\":\"OKP\",\"crv\":\"Ed25519\",\"x\":\"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo\""
#define HS32 "\"kty\":\"oct\",\"k\":\"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA\""

static struct sz_jwks *parse(const char *document, enum sz_jwks_kinds kinds)
{
    struct sz_jwks *keys = NULL;
    struct sz_text why = {""};
    int rc = sz_jwks_parse(sz_cstr(document), 7, kinds, NULL, &keys, &why);
    cr_expect(rc == 0 || (keys == NULL && why.s[0] != '\0'));
    return keys;
}

static const char *const documents[] = {
    "",
    "null",
    "{}",
    "[]",
    "{\"keys\":{}}",
    "{\"keys\":null}",
    "{\"keys\":[{" EC "}],\"keys\":[]}",
    "{\"keys\":[{" EC ",\"kid\":\"a\",\"kid\":\"b\"}]}",
    "{\"keys\":[{" EC "}]} {}",
};

Test(jwk, what_is_no_key_set_is_refused)
{
    for (size_t i = 0; i < SZ_COUNT(documents); i++)
        cr_expect(parse(documents[i], SZ_JWKS_ANY) == NULL, "%s", documents[i]);
}

Test(jwk, size_and_number_are_bounded)
{
    struct sz_buf b = {0};
    struct sz_jwks *keys;
    struct sz_text why;
    sz_buf_printf(&b, "{\"keys\":[");
    for (size_t i = 0; i <= SZ_JWKS_KEYS_MAX; i++)
        sz_buf_printf(&b, "%s{}", i == 0 ? "" : ",");
    sz_buf_printf(&b, "]}");
    cr_expect_eq(sz_jwks_parse(sz_buf_slice(&b), 7, SZ_JWKS_ANY, NULL, &keys, &why), -EINVAL);
    while (b.n <= SZ_JWKS_BYTES_MAX)
        sz_buf_add(&b, "          ", 10);
    cr_expect_eq(sz_jwks_parse(sz_buf_slice(&b), 7, SZ_JWKS_ANY, NULL, &keys, &why), -EINVAL);
    sz_buf_fini(&b);
}

static const struct {
    const char *members;
    uint32_t algs; /* 0: unusable */
} rows[] = {
    {EC, 1u << SZ_ALG_ES256},
    {EC ",\"use\":\"sig\"", 1u << SZ_ALG_ES256},
    {EC ",\"use\":\"enc\"", 0},
    {EC ",\"use\":\"\"", 0},
    {EC ",\"use\":[\"sig\"]", 0},
    {EC ",\"use\":null", 0},
    {EC ",\"key_ops\":[\"verify\"]", 1u << SZ_ALG_ES256},
    {EC ",\"key_ops\":[]", 0},
    {EC ",\"key_ops\":\"verify\"", 0},
    {EC ",\"key_ops\":[\"verify\",\"verify\"]", 0},
    {EC ",\"key_ops\":[\"verify\",1]", 0},
    {EC ",\"use\":\"sig\",\"key_ops\":[\"sign\"]", 0},
    {EC ",\"alg\":\"ES256\"", 1u << SZ_ALG_ES256},
    {EC ",\"alg\":\"ES384\"", 0},
    {EC ",\"alg\":\"es256\"", 0},
    {EC ",\"alg\":\"none\"", 0},
    {EC ",\"alg\":\"HS256\"", 0},
    {EC ",\"alg\":\"ECDH-ES\"", 0},
    {EC ",\"alg\":\"ES256\\u0000\"", 0},
    {EC ",\"kid\":1", 0},
    {EC ",\"d\":\"nonsense, never read\"", 1u << SZ_ALG_ES256},
    {EC ",\"x5c\":[\"nonsense, never read\"],\"x5u\":\"file:///etc/passwd\"", 1u << SZ_ALG_ES256},
    {EC_X "\"y\":\"x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a1\"", 0}, /* stray low bits */
    {ED, 1u << SZ_ALG_EDDSA},
    {ED ",\"alg\":\"EdDSA\"", 1u << SZ_ALG_EDDSA},
    {ED ",\"alg\":\"ES256\"", 0},
    {HS32, 1u << SZ_ALG_HS256},
    {HS32 ",\"alg\":\"HS384\"", 0}, /* 32 octets are too few */
    {HS32 ",\"alg\":\"RS256\"", 0},
};

Test(jwk, a_key_does_what_its_kind_alg_use_and_key_ops_agree_on)
{
    for (size_t i = 0; i < SZ_COUNT(rows); i++) {
        char document[1024];
        snprintf(document, sizeof(document), "{\"keys\":[{%s}]}", rows[i].members);
        struct sz_jwks *keys = parse(document, SZ_JWKS_ANY);
        cr_assert(keys != NULL, "%s", rows[i].members);
        cr_expect_eq(keys->n, rows[i].algs != 0, "%s", rows[i].members);
        cr_expect(keys->n == 0 || keys->keys[0].algs == rows[i].algs, "%s", rows[i].members);
        sz_jwks_unref(&keys);
    }
}

static size_t skipped_n;

static void on_skipped(struct sz_jwks_notes *notes, size_t index, const char *why)
{
    (void)notes;
    cr_expect_eq(index, 1);
    cr_expect(strstr(why, "secret") != NULL);
    skipped_n++;
}

Test(jwk, a_published_set_gives_no_shared_secret)
{
    struct sz_jwks_notes notes = {on_skipped};
    struct sz_jwks *keys;
    struct sz_text why;
    struct sz_slice document = SZ_S("{\"keys\":[{" EC "},{" HS32 "},{" ED "}]}");
    cr_assert_eq(sz_jwks_parse(document, 7, SZ_JWKS_PUBLIC, &notes, &keys, &why), 0);
    cr_expect_eq(keys->n, 2);
    cr_expect_eq(skipped_n, 1);
    cr_expect_eq(keys->keys[1].index, 2);
    sz_jwks_unref(&keys);
}

Test(jwk, keys_are_found_by_kid_and_algorithm)
{
    const struct sz_jwk *found[4];
    bool known;
    struct sz_jwks *keys = parse(
        "{\"keys\":[{" EC ",\"kid\":\"a\"},{" ED ",\"kid\":\"a\"},{" ED ",\"kid\":\"b\"},{" EC "}]}", SZ_JWKS_PUBLIC);
    cr_assert_eq(keys->n, 4);
    cr_expect_eq(sz_jwks_find(keys, SZ_S("a"), SZ_ALG_ES256, found, 4, &known), 1);
    cr_expect(known && found[0] == &keys->keys[0]);
    cr_expect_eq(sz_jwks_find(keys, SZ_S("a"), SZ_ALG_EDDSA, found, 4, &known), 1);
    cr_expect(found[0] == &keys->keys[1]);
    cr_expect_eq(sz_jwks_find(keys, SZ_S("b"), SZ_ALG_ES256, found, 4, &known), 0);
    cr_expect(known, "the kid is there, for another algorithm");
    cr_expect_eq(sz_jwks_find(keys, SZ_S("A"), SZ_ALG_ES256, found, 4, &known), 0);
    cr_expect(!known);
    cr_expect_eq(sz_jwks_find(keys, SZ_NONE, SZ_ALG_ES256, found, 1, &known), 2, "all are counted");
    cr_expect_eq(sz_jwks_find(keys, SZ_NONE, SZ_ALG_RS256, found, 4, &known), 0);
    sz_jwks_unref(&keys);
}

/* RFC 7638 section 3.1 and RFC 8037 appendix A.3. */
Test(jwk, thumbprints_are_those_of_the_rfcs)
{
    static const struct {
        const char *document, *thumbprint;
    } known[] = {
        {"{\"keys\":[{\"kty\":\"RSA\",\"n\":"
         "\"0vx7agoebGcQSuuPiLJXZptN9nndrQmbXEps2aiAFbWhM78LhWx4cbbfAAtVT86zwu1RK7aPFFxuhDR1L6tSoc_BJECPebWKRXjBZCi"
         "FV4n3oknjhMstn64tZ_2W-5JsGY4Hc5n9yBXArwl93lqt7_RN5w6Cf0h4QyQ5v-65YGjQR0_FDW2QvzqY368QQMicAtaSqzs8KJZgnYb9"
         "c7d0zgdAZHzu6qMQvRL5hajrn1n91CbOpbISD08qNLyrdkt-bFTWhAI4vMQFh6WeZu0fM4lFd2NcRwr3XPksINHaQ-G_xBniIqbw0Ls1j"
         "F44-csFCur-kEgU8awapJzKnqDKgw\",\"e\":\"AQAB\",\"alg\":\"RS256\",\"kid\":\"2011-04-29\"}]}",
         "NzbLsXh8uDCcd-6MNwXF4W_7noWXFZAfHkxZsRGC9Xs"},
        {"{\"keys\":[{" ED "}]}", "kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k"},
    };
    for (size_t i = 0; i < SZ_COUNT(known); i++) {
        struct sz_jwks *keys = parse(known[i].document, SZ_JWKS_PUBLIC);
        char text[SZ_B64_LEN(32) + 1] = "";
        cr_assert(keys != NULL && keys->n == 1);
        sz_b64url_encode(keys->keys[0].thumbprint, 32, text);
        cr_expect_str_eq(text, known[i].thumbprint);
        sz_jwks_unref(&keys);
    }
}

Test(jwk, orders_of_the_curves_are_openssls)
{
    for (enum sz_alg alg = SZ_ALG_ES256; alg <= SZ_ALG_ES512; alg++) {
        const struct sz_curve *curve = sz_curve_by_alg(alg);
        EC_GROUP *group = EC_GROUP_new_by_curve_name(OBJ_sn2nid(curve->group));
        uint8_t order[66];
        cr_assert(group != NULL);
        cr_expect_eq(BN_bn2binpad(EC_GROUP_get0_order(group), order, (int)curve->bytes), (int)curve->bytes);
        cr_expect(sz_eq(sz_slice(order, curve->bytes), sz_slice(curve->order, curve->bytes)));
        EC_GROUP_free(group);
        cr_expect(sz_curve_by_name(sz_cstr(curve->crv)) == curve);
    }
}

/* ---- numbers ----------------------------------------------------------------------------------------------------- */

Test(jwk, the_same_key_keeps_its_number_while_someone_holds_it)
{
    struct sz_jwks *old = parse("{\"keys\":[{" EC ",\"kid\":\"a\"},{" ED ",\"kid\":\"b\"}]}", SZ_JWKS_PUBLIC);
    uint32_t ec = old->keys[0].id, ed = old->keys[1].id;
    uint64_t epoch = sz_keys_epoch(), hash = old->hash;
    cr_expect(ec != 0 && ed != 0 && ec != ed);
    struct sz_jwks *next = parse("{\"keys\":[{" ED ",\"kid\":\"b\"},{" EC ",\"kid\":\"a\"}]}", SZ_JWKS_PUBLIC);
    cr_expect_eq(next->keys[0].id, ed);
    cr_expect_eq(next->keys[1].id, ec);
    cr_expect_eq(next->hash, hash, "order does not matter");
    sz_jwks_unref(&old);
    cr_expect_eq(sz_keys_epoch(), epoch, "nothing was let go");
    sz_jwks_unref(&next);
    cr_expect_neq(sz_keys_epoch(), epoch);
    cr_expect_eq(sz_keys_count(), 0);
    next = parse("{\"keys\":[{" EC ",\"kid\":\"a\"}]}", SZ_JWKS_PUBLIC);
    cr_expect_neq(next->keys[0].id, ec, "a dead number is never given out again");
    sz_jwks_unref(&next);
}

Test(jwk, another_name_alg_or_issuer_is_another_key)
{
    struct sz_jwks *a = parse("{\"keys\":[{" EC ",\"kid\":\"a\"},{" EC ",\"kid\":\"b\"},{" EC "}]}", SZ_JWKS_PUBLIC);
    struct sz_jwks *other = NULL;
    struct sz_text why;
    cr_expect(a->keys[0].id != a->keys[1].id && a->keys[1].id != a->keys[2].id && a->keys[0].id != a->keys[2].id);
    cr_assert_eq(sz_jwks_parse(SZ_S("{\"keys\":[{" EC ",\"kid\":\"a\"}]}"), 8, SZ_JWKS_PUBLIC, NULL, &other, &why), 0);
    cr_expect_neq(other->keys[0].id, a->keys[0].id);
    sz_jwks_unref(&other);
    sz_jwks_unref(&a);
}

Test(jwk, a_secret_joins_a_set)
{
    struct sz_jwks *keys = parse("{\"keys\":[{" EC ",\"kid\":\"a\"}]}", SZ_JWKS_PUBLIC);
    const struct sz_jwk *found[2];
    struct sz_text why;
    bool known;
    cr_expect_eq(sz_jwks_with_secret(&keys, SZ_S("short"), 7, &why), -EINVAL);
    cr_assert_eq(sz_jwks_with_secret(&keys, SZ_S("0123456789abcdef0123456789abcdef"), 7, &why), 0);
    cr_expect_eq(keys->n, 2);
    cr_expect_eq(sz_jwks_find(keys, SZ_S("whatever"), SZ_ALG_HS256, found, 2, &known), 1, "it answers to any kid");
    cr_expect_eq(sz_jwks_find(keys, SZ_S("a"), SZ_ALG_ES256, found, 2, &known), 1);
    cr_expect_eq(sz_jwks_find(keys, SZ_NONE, SZ_ALG_HS384, found, 2, &known), 0);
    sz_jwks_unref(&keys);
}

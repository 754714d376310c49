/* fga/sign.c, fga/private_key*.c: what we sign verifies by our own rules, and odd keys are refused. */
#include <criterion/criterion.h>
#include <errno.h>
#include <jansson.h>
#include <stdlib.h>

#include "fga/jws_verify.h"
#include "subzero/crypto.h"
#include "subzero/issuers.h"

TestSuite(sign, .init = sz_crypto_init);

static const struct {
    const char *what, *key;
} hostile[] = {
    {"empty", ""},
    {"text", "hello"},
    {"a list", "[]"},
    {"public only", "{\"kty\":\"OKP\",\"crv\":\"Ed25519\",\"x\":\"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo\"}"},
    {"another's public half",
     "{\"kty\":\"OKP\",\"crv\":\"Ed25519\",\"x\":\"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo\","
     "\"d\":\"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA\"}"},
    {"EC d of another key", "{\"kty\":\"EC\",\"crv\":\"P-256\",\"x\":\"f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU\","
                            "\"y\":\"x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0\",\"d\":\"AQ\"}"},
    {"name twice", "{\"kty\":\"oct\",\"kty\":\"oct\",\"k\":\"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA\"}"},
    {"short secret", "{\"kty\":\"oct\",\"k\":\"AAAA\"}"},
    {"encryption key", "{\"kty\":\"oct\",\"use\":\"enc\",\"k\":\"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA\"}"},
    {"PEM of nothing", "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"},
    {"encrypted PEM", "-----BEGIN ENCRYPTED PRIVATE KEY-----\n"
                      "MIGjMF8GCSqGSIb3DQEFDTBSMDEGCSqGSIb3DQEFDDAkBBCZBxBhQBUVhZ1oe1ZB\n"
                      "-----END ENCRYPTED PRIVATE KEY-----\n"},
};

Test(sign, odd_keys_are_refused)
{
    for (size_t i = 0; i < SZ_COUNT(hostile); i++) {
        struct sz_text why = {""};
        struct sz_signer *signer = sz_signer_new(sz_cstr(hostile[i].key), &why);
        cr_expect(signer == NULL && why.s[0] != '\0', "%s", hostile[i].what);
        sz_signer_free(&signer);
    }
}

static void verify(struct sz_slice token, struct sz_slice document, enum sz_alg alg, const char *typ)
{
    struct sz_jwks *keys;
    struct sz_text why = {""};
    struct sz_jws jws;
    struct sz_jose jose;
    const struct sz_jwk *key;
    cr_assert_eq(sz_jwks_parse(document, 1, SZ_JWKS_ANY, NULL, &keys, &why), 0, "%s", why.s);
    cr_assert_eq(keys->n, 1);
    cr_assert_eq(sz_jws_split(token, &jws), 0);
    cr_assert_eq(sz_jose_parse(jws.header, &jose, &why), 0, "%s", why.s);
    cr_expect(jose.alg_known && jose.alg == alg);
    cr_expect(sz_eq(jose.typ, sz_cstr(typ)));
    cr_expect(sz_eq(jose.kid, keys->keys[0].kid));
    cr_expect_eq(sz_jws_verify(keys, &jose, &jws, &key), 0, "%s", sz_alg_name(alg));
    sz_jwks_unref(&keys);
}

static void published(struct sz_signer *signer, struct sz_slice private_jwk, struct sz_buf *document)
{
    if (sz_signer_default_alg(signer) > SZ_ALG_HS512) {
        cr_assert_eq(sz_signer_jwks(signer, document), 0);
        cr_expect(strstr(document->p, "\"d\"") == NULL && strstr(document->p, "\"p\"") == NULL);
        return;
    }
    cr_expect(sz_signer_jwks(signer, document) != 0, "a secret is not published");
    sz_buf_fini(document);
    sz_buf_printf(document, "{\"keys\":[%.*s]}", SZ_FMT(private_jwk));
}

Test(sign, every_algorithm_verifies_under_the_published_key)
{
    struct sz_slice claims = SZ_S("{\"iss\":\"me\",\"exp\":4102444800}");
    for (enum sz_alg alg = 0; alg < SZ_ALG_COUNT; alg++) {
        static const char *const types[] = {"JWT", "at+jwt"}; /* two ways of signing */
        struct sz_buf jwk = {0}, document = {0};
        struct sz_text why = {""};
        cr_assert_eq(sz_key_generate(alg, &jwk), 0);
        struct sz_signer *signer = sz_signer_new(sz_buf_slice(&jwk), &why);
        cr_assert(signer != NULL, "%s: %s", sz_alg_name(alg), why.s);
        cr_expect_eq(sz_signer_default_alg(signer), alg);
        published(signer, sz_buf_slice(&jwk), &document);
        for (size_t i = 0; i < SZ_COUNT(types); i++) {
            struct sz_arena arena;
            struct sz_slice token;
            sz_arena_init(&arena);
            cr_assert_eq(sz_signer_sign(signer, alg, types[i], claims, &arena.pool, &token), 0);
            verify(token, sz_buf_slice(&document), alg, types[i]);
            sz_arena_fini(&arena);
        }
        sz_signer_free(&signer);
        sz_buf_fini(&jwk);
        sz_buf_fini(&document);
    }
}

Test(sign, an_algorithm_of_another_kind_is_refused)
{
    struct sz_arena arena;
    struct sz_buf jwk = {0};
    struct sz_text why;
    struct sz_slice token;
    sz_arena_init(&arena);
    cr_assert_eq(sz_key_generate(SZ_ALG_ES256, &jwk), 0);
    struct sz_signer *signer = sz_signer_new(sz_buf_slice(&jwk), &why);
    for (enum sz_alg alg = 0; alg < SZ_ALG_COUNT; alg++) {
        int rc = sz_signer_sign(signer, alg, "JWT", SZ_S("{}"), &arena.pool, &token);
        cr_expect(alg == SZ_ALG_ES256 ? rc == 0 : rc == -EINVAL);
    }
    cr_expect_eq(sz_signer_sign(signer, SZ_ALG_ES256, "JWT", SZ_S("[]"), &arena.pool, &token), -EINVAL);
    cr_expect_eq(sz_signer_sign(signer, SZ_ALG_ES256, "JWT", SZ_S("{\"a\":}"), &arena.pool, &token), -EINVAL);
    sz_signer_free(&signer);
    sz_buf_fini(&jwk);
    sz_arena_fini(&arena);
}

Test(sign, a_pem_key_is_named_by_its_thumbprint)
{
    /* The key of RFC 8037 appendix A, whose thumbprint is in A.3. */
    static const char pem[] = "-----BEGIN PRIVATE KEY-----\n"
                              "MC4CAQAwBQYDK2VwBCIEIJ1hsZ3v/VpguoRK9JLsLMREScVpezJpGXA7rAMcrn9g\n"
                              "-----END PRIVATE KEY-----\n";
    struct sz_text why = {""};
    struct sz_buf document = {0};
    struct sz_signer *signer = sz_signer_new(sz_cstr(pem), &why);
    cr_assert(signer != NULL, "%s", why.s);
    cr_assert_eq(sz_signer_jwks(signer, &document), 0);
    json_t *root = json_loadb(document.p, document.n, 0, NULL);
    const json_t *key = json_array_get(json_object_get(root, "keys"), 0);
    cr_expect_str_eq(json_string_value(json_object_get(key, "kid")), "kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k");
    cr_expect_str_eq(json_string_value(json_object_get(key, "x")), "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo");
    json_decref(root);
    sz_signer_free(&signer);
    sz_buf_fini(&document);
}

/* fga/jose.c, fga/jws.c, fga/jws_check.c beyond the vectors: what is remembered, and what must not be. */
#include <criterion/criterion.h>
#include <errno.h>

#include "fga/verify_thread.h"
#include "subzero/crypto.h"
#include "unit/fga/issuer_world.h"

TestSuite(jws, .init = sz_crypto_init);

static struct sz_slice encode(const char *text, char *room)
{
    return sz_slice(room, sz_b64url_encode(text, strlen(text), room));
}

static const char *const refused[] = {
    "",
    "{}",
    "[]",
    "null",
    "{\"alg\":1}",
    "{\"alg\":null}",
    "{\"Alg\":\"ES256\"}",
    "{\"alg\":\"ES256\",\"alg\":\"ES256\"}",
    "{\"alg\":\"ES256\",\"crit\":[]}",
    "{\"alg\":\"ES256\",\"crit\":null}",
    "{\"alg\":\"ES256\",\"b64\":true}",
    "{\"alg\":\"ES256\",\"enc\":\"A128GCM\"}",
    "{\"alg\":\"ES256\",\"zip\":\"DEF\"}",
    "{\"alg\":\"ES256\",\"kid\":\"\"}",
    "{\"alg\":\"ES256\",\"kid\":null}",
    "{\"alg\":\"ES256\",\"kid\":[\"a\"]}",
    "{\"alg\":\"ES256\",\"typ\":1}",
    "{\"alg\":\"ES256\",\"cty\":{}}",
};

Test(jws, odd_headers_are_refused)
{
    for (size_t i = 0; i < SZ_COUNT(refused); i++) {
        struct sz_jose jose;
        struct sz_text why = {""};
        char room[256];
        cr_expect_eq(sz_jose_parse(encode(refused[i], room), &jose, &why), -EINVAL, "%s", refused[i]);
        cr_expect(why.s[0] != '\0');
    }
}

Test(jws, long_names_are_refused)
{
    char text[4096], room[8192];
    struct sz_jose jose;
    struct sz_text why;
    for (int n = 2000; n < 2100; n += 4) {
        snprintf(text, sizeof(text), "{\"alg\":\"ES256\",\"kid\":\"%0*d\"}", n, 0);
        cr_expect_eq(sz_jose_parse(encode(text, room), &jose, &why), n <= SZ_JOSE_TEXT_MAX ? 0 : -EINVAL);
        snprintf(text, sizeof(text), "{\"alg\":\"ES256\",\"typ\":\"%0*d\"}", n, 0);
        cr_expect_eq(sz_jose_parse(encode(text, room), &jose, &why), n <= SZ_JOSE_TEXT_MAX ? 0 : -EINVAL);
    }
}

static const struct {
    const char *token;
    int rc;
} shapes[] = {
    {"", -EINVAL}, {".", -EINVAL}, {"a.b", -EINVAL}, {"a.b.c.d", -EINVAL}, {"a.b.c.", -EINVAL}, {"..", 0}, {"a.b.", 0},
};

Test(jws, three_segments_and_no_more)
{
    struct sz_jws jws;
    for (size_t i = 0; i < SZ_COUNT(shapes); i++)
        cr_expect_eq(sz_jws_split(sz_cstr(shapes[i].token), &jws), shapes[i].rc, "%s", shapes[i].token);
    cr_assert_eq(sz_jws_split(SZ_S("ab.c.def"), &jws), 0);
    cr_expect(sz_eq(jws.header, SZ_S("ab")) && sz_eq(jws.payload, SZ_S("c")) && sz_eq(jws.signature, SZ_S("def")));
    cr_expect(sz_eq(jws.input, SZ_S("ab.c")));
}

Test(jws, only_headers_of_good_tokens_are_remembered)
{
    struct world w;
    world_init(&w);
    world_open(&w);
    struct sz_slice good =
        world_token(&w, "{\"iss\":\"https://issuer.test/\",\"aud\":\"api\",\"exp\":" WORLD_LATER "}");
    struct sz_slice bad = world_sign(&w, SZ_S("{\"alg\":\"ES256\",\"kid\":\"k1\",\"x\":1}"), SZ_S("{}"));
    struct sz_verify_thread *t = sz_verify_thread();
    cr_expect_eq(world_judge(&w, bad), SZ_REASON_wrong_issuer);
    cr_expect_eq(t->headers[0].n, 0);
    cr_expect_eq(world_judge(&w, good), SZ_REASON_allowed);
    cr_expect_neq(t->headers[0].n, 0);
    for (int i = 0; i < 3; i++)
        cr_expect_eq(world_judge(&w, good), SZ_REASON_allowed);
    cr_expect_eq(t->headers[1].n, 0, "once");
    cr_expect(t->headers[0].jose.kid.p >= t->headers[0].jose.text &&
                  t->headers[0].jose.kid.p < t->headers[0].jose.text + sizeof(t->headers[0].jose.text),
              "the kept header owns its text");
    world_fini(&w);
}

Test(jws, what_was_prepared_for_a_key_goes_with_it)
{
    struct world w;
    world_init(&w);
    world_open(&w);
    struct sz_slice good =
        world_token(&w, "{\"iss\":\"https://issuer.test/\",\"aud\":\"api\",\"exp\":" WORLD_LATER "}");
    cr_expect_eq(world_judge(&w, good), SZ_REASON_allowed);
    struct sz_verify_thread *t = sz_verify_thread();
    size_t used = 0;
    for (size_t i = 0; i < SZ_PREPARED_MAX; i++)
        used += t->prepared[i].key_id != 0;
    cr_expect_eq(used, 1);
    sz_issuers_free(&w.issuers);
    (void)sz_verify_thread();
    for (size_t i = 0; i < SZ_PREPARED_MAX; i++)
        cr_expect_eq(t->prepared[i].key_id, 0);
    world_fini(&w);
}

/* More keys than slots: they push each other out and still verify. */
Test(jws, prepared_slots_are_shared_without_mixing_keys)
{
    enum { KEYS = 3 * SZ_PREPARED_MAX };
    struct sz_buf b = {0};
    struct sz_jwks *keys;
    struct sz_text why;
    static const char names[] = "abcdefgh";
    sz_buf_printf(&b, "{\"keys\":[");
    for (unsigned i = 0; i < KEYS; i++) { /* the secret: 32 octets that differ */
        char secret[33], text[64] = "";
        snprintf(secret, sizeof(secret), "%032u", i);
        sz_b64url_encode(secret, 32, text);
        sz_buf_printf(&b, "%s{\"kty\":\"oct\",\"k\":\"%s\"}", i == 0 ? "" : ",", text);
    }
    sz_buf_printf(&b, "]}");
    cr_assert_eq(sz_jwks_parse(sz_buf_slice(&b), 1, SZ_JWKS_ANY, NULL, &keys, &why), 0, "%s", why.s);
    cr_assert_eq(keys->n, KEYS);
    for (unsigned round = 0; round < 2; round++) {
        for (unsigned i = 0; i < KEYS; i++) {
            uint8_t mac[32];
            sz_hmac_sha256(keys->keys[i].secret, sz_cstr(names), mac);
            cr_expect_eq(sz_jws_check(&keys->keys[i], SZ_ALG_HS256, sz_cstr(names), sz_slice(mac, 32)), 0);
            cr_expect_eq(sz_jws_check(&keys->keys[(i + 1) % KEYS], SZ_ALG_HS256, sz_cstr(names), sz_slice(mac, 32)),
                         SZ_JWS_BAD);
        }
    }
    sz_jwks_unref(&keys);
    sz_buf_fini(&b);
}

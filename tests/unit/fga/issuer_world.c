#include "unit/fga/issuer_world.h"

#include <criterion/criterion.h>
#include <openssl/ec.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "fga/private_key.h"
#include "subzero/crypto.h"

void world_keys(struct world *w, struct sz_slice jwks)
{
    FILE *file = fopen(w->path, "w");
    cr_assert(file != NULL && fwrite(jwks.p, 1, jwks.n, file) == jwks.n && fclose(file) == 0);
}

void world_init(struct world *w)
{
    struct sz_private_key key;
    struct sz_buf document = {0};
    memset(w, 0, sizeof(*w));
    sz_crypto_init();
    sz_arena_init(&w->arena);
    cr_assert_eq(sz_private_key_generate(&key, SZ_ALG_ES256), 0);
    free((char *)key.kid.p);
    key.kid = sz_cstr(strdup("k1"));
    sz_buf_printf(&document, "{\"keys\":[");
    cr_assert_eq(sz_private_key_write(&key, SZ_ALG_ES256, false, &document), 0);
    sz_buf_printf(&document, "]}");
    w->jwks = sz_pool_dup(&w->arena.pool, sz_buf_slice(&document));
    sz_buf_fini(&document);
    EVP_PKEY_up_ref(key.pkey);
    w->key = key.pkey;
    sz_private_key_fini(&key);
    snprintf(w->path, sizeof(w->path), "/tmp/sz-world-XXXXXX");
    close(mkstemp(w->path));
    world_keys(w, w->jwks);
    w->audiences[0] = SZ_S("api");
    w->issuer[0] = (struct sz_conf_issuer){
        .name = SZ_S("main"),
        .issuer = SZ_S("https://issuer.test/"),
        .audiences = {w->audiences, 1},
        .algorithms = 1u << SZ_ALG_ES256,
        .jwks_file = sz_cstr(w->path),
        .leeway = SZ_SEC(60),
        .settings = 11,
    };
    w->conf.issuers = w->issuer;
    w->conf.issuers_n = 1;
}

void world_open(struct world *w)
{
    struct sz_issuers *old = w->issuers;
    sz_mistakes_init(&w->mistakes);
    w->issuers = sz_issuers_new(&w->conf, &w->mistakes);
    cr_assert(w->issuers != NULL, "%s", w->mistakes.n != 0 ? w->mistakes.v[0].message.p : "");
    sz_mistakes_fini(&w->mistakes);
    sz_issuers_free(&old); /* afterwards, as a reload does */
}

void world_fini(struct world *w)
{
    sz_issuers_free(&w->issuers);
    EVP_PKEY_free(w->key);
    unlink(w->path);
    sz_arena_fini(&w->arena);
}

static struct sz_slice encode(struct world *w, struct sz_slice s)
{
    char *text = sz_pool_alloc(&w->arena.pool, SZ_B64_LEN(s.n) + 1);
    return sz_slice(text, sz_b64url_encode(s.p, s.n, text));
}

struct sz_slice world_sign_encoded(struct world *w, struct sz_slice header, struct sz_slice payload)
{
    struct sz_slice input = sz_pool_printf(&w->arena.pool, "%.*s.%.*s", SZ_FMT(header), SZ_FMT(payload));
    uint8_t der[128], raw[64];
    size_t n = sizeof(der);
    EVP_MD_CTX *ctx = EVP_MD_CTX_new();
    cr_assert(EVP_DigestSignInit_ex(ctx, NULL, "SHA256", NULL, NULL, w->key, NULL) == 1);
    cr_assert(EVP_DigestSign(ctx, der, &n, (const uint8_t *)input.p, input.n) == 1);
    EVP_MD_CTX_free(ctx);
    const uint8_t *p = der;
    ECDSA_SIG *pair = d2i_ECDSA_SIG(NULL, &p, (long)n);
    cr_assert(BN_bn2binpad(ECDSA_SIG_get0_r(pair), raw, 32) == 32);
    cr_assert(BN_bn2binpad(ECDSA_SIG_get0_s(pair), raw + 32, 32) == 32);
    ECDSA_SIG_free(pair);
    struct sz_slice signature = encode(w, sz_slice(raw, sizeof(raw)));
    return sz_pool_printf(&w->arena.pool, "%.*s.%.*s", SZ_FMT(input), SZ_FMT(signature));
}

struct sz_slice world_sign(struct world *w, struct sz_slice header, struct sz_slice payload)
{
    return world_sign_encoded(w, encode(w, header), encode(w, payload));
}

struct sz_slice world_token(struct world *w, const char *claims)
{
    return world_sign(w, SZ_S("{\"alg\":\"ES256\",\"kid\":\"k1\"}"), sz_cstr(claims));
}

enum sz_reason world_verify(struct world *w, struct sz_slice token, struct sz_identity *id,
                            struct sz_verified *verified)
{
    struct sz_wall now = {WORLD_NOW * 1000000};
    memset(id, 0x5a, sizeof(*id)); /* whatever was in it must not shine through */
    memset(verified, 0x5a, sizeof(*verified));
    cr_assert_eq(sz_jwt_verify(w->issuers, token, now, id, verified), 0);
    return verified->reason;
}

enum sz_reason world_judge(struct world *w, struct sz_slice token)
{
    struct sz_identity id;
    struct sz_verified verified;
    return world_verify(w, token, &id, &verified);
}

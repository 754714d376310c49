/* See issuer.h. */
#include "fake/issuer.h"

#include <stdlib.h>

#include "fake/process.h"
#include "subzero/crypto.h"
#include "subzero/time.h"

void issuer_init(struct issuer *issuer)
{
    struct sz_buf key = {0}, jwks = {0};
    struct sz_text why;
    sz_crypto_init();
    SZ_ASSERT(sz_key_generate(SZ_ALG_ES256, &key) == 0);
    issuer->signer = sz_signer_new(sz_buf_slice(&key), &why);
    SZ_ASSERT(issuer->signer != NULL && sz_signer_jwks(issuer->signer, &jwks) == 0);
    scratch_write("jwks.json", sz_buf_slice(&jwks));
    sz_buf_fini(&key);
    sz_buf_fini(&jwks);
}

char *issuer_token(struct issuer *issuer, const char *sub, long ttl_seconds, const char *extra)
{
    long now = (long)sz_wall_seconds(sz_wall_read());
    struct sz_buf claims = {0};
    struct sz_arena arena;
    struct sz_slice token;

    sz_buf_printf(&claims, "{\"iss\":\"" ISSUER_NAME "\",\"aud\":\"api\",\"sub\":\"%s\",\"iat\":%ld,\"exp\":%ld%s%s}",
                  sub, now, now + ttl_seconds, extra != NULL ? "," : "", extra != NULL ? extra : "");
    sz_arena_init(&arena);
    SZ_ASSERT(sz_signer_sign(issuer->signer, SZ_ALG_ES256, "at+jwt", sz_buf_slice(&claims), &arena.pool, &token) == 0);
    char *copy = sz_xmalloc(token.n + 1);
    memcpy(copy, token.p, token.n);
    copy[token.n] = '\0';
    sz_arena_fini(&arena);
    sz_buf_fini(&claims);
    return copy;
}

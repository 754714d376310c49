/*
 * Making tokens: for the demo issuer, `token mint` and identity assertions.  libjwt builds RS, ES and HS
 * tokens of type JWT; it knows neither PSS nor EdDSA and writes "typ":"JWT" over any other type, so the
 * rest (an at+jwt of RFC 9068 above all) is put together here with OpenSSL.  libjwt parses the PEM
 * again for every token (a quarter of a millisecond): bearable for what is signed here, and one
 * reason why it verifies nothing.
 */
#include <errno.h>
#include <jwt.h>
#include <openssl/ecdsa.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rsa.h>
#include <stdlib.h>

#include "fga/private_key.h"
#include "subzero/crypto.h"
#include "subzero/issuers.h"

enum { OLDER_MAX = 7 };

struct sz_signer {
    struct sz_private_key key;
    struct sz_buf pem;                      /* RSA, EC: for libjwt; wiped */
    enum sz_alg alg;                        /* default */
    struct sz_private_key older[OLDER_MAX]; /* published still, sign no more */
    size_t older_n;
};

static int to_pem(const EVP_PKEY *pkey, struct sz_buf *out)
{
    char *text;
    BIO *bio = BIO_new(BIO_s_secmem());
    int rc = -ENOMEM;
    if (bio != NULL && PEM_write_bio_PrivateKey(bio, pkey, NULL, NULL, 0, NULL, NULL) == 1) {
        long n = BIO_get_mem_data(bio, &text);
        sz_buf_add(out, text, (size_t)n);
        rc = 0;
    }
    BIO_free(bio);
    return rc;
}

static enum sz_alg default_alg(const struct sz_private_key *key)
{
    return (enum sz_alg)__builtin_ctz(key->algs);
}

static int read_key(struct sz_private_key *key, struct sz_slice text, struct sz_text *why)
{
    int rc = sz_private_key_read(key, text, why);
    if (rc == 0 && sz_find_byte(key->kid, '\0') >= 0) {
        sz_private_key_fini(key);
        sz_text_set(why, "the kid holds a NUL");
        rc = -EINVAL;
    }
    return rc;
}

/* The keys below the first line: of an earlier rotation, one JWK a line. */
static int read_older(struct sz_signer *signer, struct sz_slice lines, struct sz_text *why)
{
    struct sz_slice line;
    while (sz_split(&lines, '\n', &line)) {
        if (sz_trim(line).n == 0)
            continue;
        if (signer->older_n == OLDER_MAX) {
            sz_text_set(why, "more than %d keys; remove those whose tokens have expired", OLDER_MAX + 1);
            return -EINVAL;
        }
        int rc = read_key(&signer->older[signer->older_n], line, why);
        if (rc != 0)
            return rc;
        signer->older_n++;
    }
    return 0;
}

/* One key in any form, or several JWKs, one a line: the first signs, all are published. */
static int read_keys(struct sz_signer *signer, struct sz_slice text, struct sz_text *why)
{
    size_t at;
    ptrdiff_t end = sz_find_byte(text, '\n');
    if (end < 0 || sz_starts_with(text, SZ_S("-----BEGIN")) || sz_json_check(text, 32, &at) == 0)
        return read_key(&signer->key, text, why);
    int rc = read_key(&signer->key, sz_sub(text, 0, (size_t)end), why);
    return rc != 0 ? rc : read_older(signer, sz_from(text, (size_t)end + 1), why);
}

struct sz_signer *sz_signer_new(struct sz_slice text, struct sz_text *why)
{
    struct sz_signer *signer = sz_xcalloc(1, sizeof(*signer));
    int rc = read_keys(signer, text, why);
    if (rc == 0 && (signer->key.kty == SZ_KTY_RSA || signer->key.kty == SZ_KTY_EC)) {
        rc = to_pem(signer->key.pkey, &signer->pem);
        if (rc != 0)
            sz_text_set(why, "out of memory");
    }
    if (rc == 0)
        signer->alg = default_alg(&signer->key);
    else
        sz_signer_free(&signer);
    return signer;
}

void sz_signer_free(struct sz_signer **signer)
{
    struct sz_signer *s = *signer;
    *signer = NULL;
    if (s == NULL)
        return;
    if (s->pem.p != NULL)
        sz_wipe(s->pem.p, s->pem.n);
    sz_buf_fini(&s->pem);
    sz_private_key_fini(&s->key);
    for (size_t i = 0; i < s->older_n; i++)
        sz_private_key_fini(&s->older[i]);
    free(s);
}

enum sz_alg sz_signer_default_alg(const struct sz_signer *signer)
{
    return signer->alg;
}

int sz_signer_jwks(struct sz_signer *signer, struct sz_buf *out)
{
    sz_buf_printf(out, "{\"keys\":[");
    int rc = sz_private_key_write(&signer->key, signer->alg, false, out);
    for (size_t i = 0; i < signer->older_n && rc == 0; i++) {
        sz_buf_printf(out, ",");
        rc = sz_private_key_write(&signer->older[i], default_alg(&signer->older[i]), false, out);
    }
    sz_buf_printf(out, "]}");
    return rc;
}

/* ---- libjwt: RS, ES, HS ------------------------------------------------------------------------------------------ */

static jwt_alg_t libjwt_alg(enum sz_alg alg)
{
    switch (alg) {
    case SZ_ALG_HS256:
        return JWT_ALG_HS256;
    case SZ_ALG_HS384:
        return JWT_ALG_HS384;
    case SZ_ALG_HS512:
        return JWT_ALG_HS512;
    case SZ_ALG_RS256:
        return JWT_ALG_RS256;
    case SZ_ALG_RS384:
        return JWT_ALG_RS384;
    case SZ_ALG_RS512:
        return JWT_ALG_RS512;
    case SZ_ALG_ES256:
        return JWT_ALG_ES256;
    case SZ_ALG_ES384:
        return JWT_ALG_ES384;
    case SZ_ALG_ES512:
        return JWT_ALG_ES512;
    case SZ_ALG_PS256:
    case SZ_ALG_PS384:
    case SZ_ALG_PS512:
    case SZ_ALG_EDDSA:
    case SZ_ALG_COUNT:
        break;
    }
    return JWT_ALG_NONE;
}

static int sign_libjwt(struct sz_signer *signer, enum sz_alg alg, const char *typ, const char *kid, const char *claims,
                       struct sz_pool *pool, struct sz_slice *out)
{
    struct sz_slice key = signer->key.kty == SZ_KTY_OCT ? signer->key.secret : sz_buf_slice(&signer->pem);
    jwt_t *jwt = NULL;
    char *token = NULL;
    int rc = jwt_new(&jwt);
    if (rc == 0)
        rc = jwt_add_grants_json(jwt, claims);
    if (rc == 0)
        rc = jwt_add_header(jwt, "typ", typ);
    if (rc == 0)
        rc = jwt_add_header(jwt, "kid", kid);
    if (rc == 0)
        rc = jwt_set_alg(jwt, libjwt_alg(alg), (const unsigned char *)key.p, (int)key.n);
    if (rc == 0 && (token = jwt_encode_str(jwt)) == NULL)
        rc = ENOMEM;
    if (rc == 0) {
        *out = sz_pool_dup(pool, sz_cstr(token));
        sz_wipe(token, strlen(token));
    }
    free(token);
    jwt_free(jwt);
    ERR_clear_error();
    return -rc;
}

/* ---- OpenSSL: everything else ------------------------------------------------------------------------------------ */

static const char *digest_name(enum sz_alg alg)
{
    const char *name = sz_alg_name(alg);
    if (alg == SZ_ALG_EDDSA)
        return NULL;
    return strcmp(name + 2, "256") == 0 ? "SHA256" : strcmp(name + 2, "384") == 0 ? "SHA384" : "SHA512";
}

/* ECDSA: from OpenSSL's DER to r and s side by side (RFC 7518 section 3.4), in place. */
static int unwrap_ecdsa(enum sz_alg alg, uint8_t *signature, size_t *n)
{
    const struct sz_curve *curve = sz_curve_by_alg(alg);
    const uint8_t *der = signature;
    ECDSA_SIG *pair = d2i_ECDSA_SIG(NULL, &der, (long)*n);
    int bytes = (int)curve->bytes;
    int rc = pair != NULL && BN_bn2binpad(ECDSA_SIG_get0_r(pair), signature, bytes) == bytes &&
                     BN_bn2binpad(ECDSA_SIG_get0_s(pair), signature + bytes, bytes) == bytes
                 ? 0
                 : -EIO;
    ECDSA_SIG_free(pair);
    *n = 2 * curve->bytes;
    return rc;
}

static int sign_pair(EVP_PKEY *pkey, enum sz_alg alg, struct sz_slice input, uint8_t *signature, size_t *n)
{
    EVP_PKEY_CTX *options = NULL;
    EVP_MD_CTX *ctx = EVP_MD_CTX_new();
    bool ok = ctx != NULL && EVP_DigestSignInit_ex(ctx, &options, digest_name(alg), NULL, NULL, pkey, NULL) == 1;
    if (ok && (1u << alg & SZ_ALGS_PS) != 0)
        ok = EVP_PKEY_CTX_set_rsa_padding(options, RSA_PKCS1_PSS_PADDING) == 1 &&
             EVP_PKEY_CTX_set_rsa_pss_saltlen(options, RSA_PSS_SALTLEN_DIGEST) == 1;
    ok = ok && EVP_DigestSign(ctx, signature, n, (const uint8_t *)input.p, input.n) == 1;
    EVP_MD_CTX_free(ctx);
    ERR_clear_error();
    if (!ok)
        return -EIO;
    return (1u << alg & SZ_ALGS_ES) != 0 ? unwrap_ecdsa(alg, signature, n) : 0;
}

static int sign_secret(struct sz_slice secret, enum sz_alg alg, struct sz_slice input, uint8_t *mac, size_t *n)
{
    const unsigned char *made = EVP_Q_mac(NULL, "HMAC", NULL, digest_name(alg), NULL, secret.p, secret.n,
                                          (const unsigned char *)input.p, input.n, mac, *n, n);
    return made == NULL ? -EIO : 0;
}

static void add_segment(struct sz_buf *b, struct sz_slice bytes, struct sz_pool *pool)
{
    char *text = sz_pool_alloc(pool, SZ_B64_LEN(bytes.n) + 1);
    sz_buf_add(b, text, sz_b64url_encode(bytes.p, bytes.n, text));
}

static int sign_openssl(struct sz_signer *signer, enum sz_alg alg, const char *typ, const char *kid,
                        struct sz_slice claims, struct sz_pool *pool, struct sz_slice *out)
{
    uint8_t signature[SZ_RSA_BYTES_MAX];
    size_t n = sizeof(signature);
    struct sz_buf header = {0}, token = {0};
    sz_buf_printf(&header, "{\"alg\":\"%s\",\"kid\":", sz_alg_name(alg));
    sz_buf_json(&header, sz_cstr(kid));
    sz_buf_printf(&header, ",\"typ\":");
    sz_buf_json(&header, sz_cstr(typ));
    sz_buf_printf(&header, "}");
    add_segment(&token, sz_buf_slice(&header), pool);
    sz_buf_printf(&token, ".");
    add_segment(&token, claims, pool);
    struct sz_slice input = sz_buf_slice(&token);
    int rc = signer->key.kty == SZ_KTY_OCT ? sign_secret(signer->key.secret, alg, input, signature, &n)
                                           : sign_pair(signer->key.pkey, alg, input, signature, &n);
    if (rc == 0) {
        sz_buf_printf(&token, ".");
        add_segment(&token, sz_slice(signature, n), pool);
        *out = sz_pool_dup(pool, sz_buf_slice(&token));
    }
    sz_buf_fini(&header);
    if (token.p != NULL)
        sz_wipe(token.p, token.n);
    sz_buf_fini(&token);
    return rc;
}

int sz_signer_sign(struct sz_signer *signer, enum sz_alg alg, const char *typ, struct sz_slice claims,
                   struct sz_pool *pool, struct sz_slice *out)
{
    size_t at;
    if (alg >= SZ_ALG_COUNT || (signer->key.algs >> alg & 1) == 0)
        return -EINVAL;
    if (!sz_starts_with(claims, SZ_S("{")) || sz_json_check(claims, 32, &at) != 0)
        return -EINVAL;
    const char *kid = sz_pool_strdup(pool, signer->key.kid);
    if (libjwt_alg(alg) == JWT_ALG_NONE || strcmp(typ, "JWT") != 0)
        return sign_openssl(signer, alg, typ, kid, claims, pool, out);
    return sign_libjwt(signer, alg, typ, kid, sz_pool_strdup(pool, claims), pool, out);
}

int sz_key_generate(enum sz_alg alg, struct sz_buf *jwk)
{
    enum { ROOM = 16 * 1024 };
    struct sz_private_key key;
    int rc = sz_private_key_generate(&key, alg);
    if (rc != 0)
        return rc;
    if (jwk->p == NULL) { /* at once, so that growing leaves no copies of the key behind */
        jwk->p = sz_xmalloc(ROOM);
        jwk->cap = ROOM;
    }
    rc = sz_private_key_write(&key, alg, true, jwk);
    sz_private_key_fini(&key);
    return rc;
}

/*
 * One signature under one key: RSA (PKCS #1 v1.5 and PSS) and ECDSA by OpenSSL over a digest
 * of our own, Ed25519 by libsodium (1.7 times as fast, and strict about S and small orders), HMAC by a
 * context that is re-initialised instead of re-keyed.
 *
 * Lengths are checked before the library sees a signature: some of them tolerate a
 * short RSA signature or a redundant octet in an ECDSA number, and then one token has two spellings.
 */
#include <errno.h>
#include <openssl/core_names.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/rsa.h>
#include <sodium.h>

#include "fga/verify_thread.h"
#include "subzero/crypto.h"

enum { DER_MAX = 3 + 2 * (2 + 1 + 66) }; /* SEQUENCE of two INTEGERs of P-521 */

/* ---- contexts -------------------------------------------------------------------------------------------------- */

static EVP_PKEY_CTX *new_pkey_ctx(const struct sz_jwk *key, enum sz_alg alg)
{
    EVP_PKEY_CTX *ctx = EVP_PKEY_CTX_new_from_pkey(NULL, key->pkey, NULL);
    bool ok = ctx != NULL && EVP_PKEY_verify_init(ctx) == 1;
    if (ok && (1u << alg & SZ_ALGS_RS) != 0)
        ok = EVP_PKEY_CTX_set_rsa_padding(ctx, RSA_PKCS1_PADDING) == 1;
    if (ok && (1u << alg & SZ_ALGS_PS) != 0)
        ok = EVP_PKEY_CTX_set_rsa_padding(ctx, RSA_PKCS1_PSS_PADDING) == 1;
    if (ok)
        ok = EVP_PKEY_CTX_set_signature_md(ctx, sz_alg_md(alg)) == 1;
    if (ok && (1u << alg & SZ_ALGS_PS) != 0) /* RFC 7518 section 3.5: as long as the hash; MGF1 with the same hash */
        ok = EVP_PKEY_CTX_set_rsa_mgf1_md(ctx, sz_alg_md(alg)) == 1 &&
             EVP_PKEY_CTX_set_rsa_pss_saltlen(ctx, RSA_PSS_SALTLEN_DIGEST) == 1;
    if (!ok) {
        EVP_PKEY_CTX_free(ctx);
        return NULL;
    }
    return ctx;
}

static EVP_MAC_CTX *new_mac_ctx(const struct sz_jwk *key, enum sz_alg alg)
{
    EVP_MAC *mac = EVP_MAC_fetch(NULL, "HMAC", NULL);
    EVP_MAC_CTX *ctx = mac == NULL ? NULL : EVP_MAC_CTX_new(mac);
    EVP_MAC_free(mac);
    OSSL_PARAM params[] = {
        OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, (char *)sz_alg_md_name(alg), 0),
        OSSL_PARAM_construct_end(),
    };
    if (ctx != NULL && EVP_MAC_init(ctx, (const uint8_t *)key->secret.p, key->secret.n, params) != 1) {
        EVP_MAC_CTX_free(ctx);
        return NULL;
    }
    return ctx;
}

/* Direct-mapped: two keys that meet in a slot cost each other a preparation, nothing else. */
static struct sz_prepared *prepare(struct sz_verify_thread *t, const struct sz_jwk *key, enum sz_alg alg)
{
    struct sz_prepared *slot = &t->prepared[(key->id * 5 + (unsigned)alg) % SZ_PREPARED_MAX];
    if (SZ_LIKELY(slot->key_id == key->id && slot->alg == alg))
        return slot;
    EVP_PKEY_CTX_free(slot->pkey);
    EVP_MAC_CTX_free(slot->mac);
    *slot = (struct sz_prepared){.alg = alg};
    if (key->kty == SZ_KTY_OCT)
        slot->mac = new_mac_ctx(key, alg);
    else
        slot->pkey = new_pkey_ctx(key, alg);
    if (slot->mac == NULL && slot->pkey == NULL) {
        ERR_clear_error();
        return NULL;
    }
    slot->key_id = key->id;
    return slot;
}

/* ---- RSA and ECDSA --------------------------------------------------------------------------------------------- */

static int verify_digest(const struct sz_jwk *key, enum sz_alg alg, struct sz_slice input, struct sz_slice sig)
{
    struct sz_verify_thread *t = sz_verify_thread();
    struct sz_prepared *slot = prepare(t, key, alg);
    uint8_t digest[EVP_MAX_MD_SIZE];
    unsigned digest_n;
    if (slot == NULL || EVP_DigestInit_ex2(t->digest, sz_alg_md(alg), NULL) != 1 ||
        EVP_DigestUpdate(t->digest, input.p, input.n) != 1 || EVP_DigestFinal_ex(t->digest, digest, &digest_n) != 1)
        return -ENOMEM;
    if (EVP_PKEY_verify(slot->pkey, (const uint8_t *)sig.p, sig.n, digest, digest_n) == 1)
        return 0;
    ERR_clear_error();
    return SZ_JWS_BAD;
}

static int check_rsa(const struct sz_jwk *key, enum sz_alg alg, struct sz_slice input, struct sz_slice sig)
{
    if (sig.n != (size_t)EVP_PKEY_get_size(key->pkey))
        return SZ_JWS_BAD;
    return verify_digest(key, alg, input, sig);
}

/* 0 < v < n, both big endian and of the curve's length. */
static bool in_range(const uint8_t *v, const struct sz_curve *curve)
{
    uint8_t any = 0;
    for (size_t i = 0; i < curve->bytes; i++)
        any |= v[i];
    return any != 0 && sz_cmp(sz_slice(v, curve->bytes), sz_slice(curve->order, curve->bytes)) < 0;
}

/* INTEGER: no redundant leading zeros, one zero when the top bit would make it negative.  Returns the end. */
static uint8_t *der_integer(uint8_t *out, const uint8_t *v, size_t n)
{
    while (n > 1 && *v == 0) {
        v++;
        n--;
    }
    size_t pad = *v >> 7;
    *out++ = 0x02;
    *out++ = (uint8_t)(n + pad);
    if (pad != 0)
        *out++ = 0;
    memcpy(out, v, n);
    return out + n;
}

static int check_ecdsa(const struct sz_jwk *key, enum sz_alg alg, struct sz_slice input, struct sz_slice sig)
{
    const struct sz_curve *curve = sz_curve_by_alg(alg);
    if (sig.n != 2 * curve->bytes)
        return SZ_JWS_BAD;
    const uint8_t *r = (const uint8_t *)sig.p, *s = r + curve->bytes;
    if (!in_range(r, curve) || !in_range(s, curve))
        return SZ_JWS_BAD;
    uint8_t der[DER_MAX], *body = der + 3;
    size_t n = (size_t)(der_integer(der_integer(body, r, curve->bytes), s, curve->bytes) - body);
    uint8_t *start = n < 128 ? der + 1 : der;
    start[0] = 0x30;
    if (n >= 128)
        start[1] = 0x81;
    body[-1] = (uint8_t)n;
    return verify_digest(key, alg, input, sz_slice(start, (size_t)(body - start) + n));
}

/* ---- HMAC and Ed25519 ------------------------------------------------------------------------------------------ */

static int check_hmac(const struct sz_jwk *key, enum sz_alg alg, struct sz_slice input, struct sz_slice sig)
{
    struct sz_prepared *slot = prepare(sz_verify_thread(), key, alg);
    uint8_t mac[EVP_MAX_MD_SIZE];
    size_t n;
    if (slot == NULL || EVP_MAC_init(slot->mac, NULL, 0, NULL) != 1 ||
        EVP_MAC_update(slot->mac, (const uint8_t *)input.p, input.n) != 1 ||
        EVP_MAC_final(slot->mac, mac, &n, sizeof(mac)) != 1)
        return -ENOMEM;
    int rc = sz_secret_eq(sz_slice(mac, n), sig) ? 0 : SZ_JWS_BAD;
    sz_wipe(mac, sizeof(mac));
    return rc;
}

static int check_ed25519(const struct sz_jwk *key, struct sz_slice input, struct sz_slice sig)
{
    if (sig.n != crypto_sign_BYTES)
        return SZ_JWS_BAD;
    int rc = crypto_sign_verify_detached((const uint8_t *)sig.p, (const uint8_t *)input.p, input.n, key->ed25519);
    return rc == 0 ? 0 : SZ_JWS_BAD;
}

int sz_jws_check(const struct sz_jwk *key, enum sz_alg alg, struct sz_slice input, struct sz_slice sig)
{
    SZ_ASSERT((key->algs >> alg & 1) != 0 && key->id != 0);
    switch (key->kty) {
    case SZ_KTY_RSA:
        return check_rsa(key, alg, input, sig);
    case SZ_KTY_EC:
        return check_ecdsa(key, alg, input, sig);
    case SZ_KTY_OKP:
        return check_ed25519(key, input, sig);
    case SZ_KTY_OCT:
        return check_hmac(key, alg, input, sig);
    }
    return SZ_JWS_BAD;
}

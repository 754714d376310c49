/*
 * Reading and making private keys.  A key that was read proves itself by a signature that its own public half
 * verifies, so a JWK whose members belong to different keys is found at the start and not by the
 * first client whose token nobody accepts.
 */
#include "fga/private_key.h"

#include <errno.h>
#include <openssl/core_names.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/param_build.h>
#include <openssl/pem.h>
#include <openssl/rsa.h>
#include <stdlib.h>

#include "subzero/crypto.h"

enum { TEXT_MAX = 64 * 1024, DEPTH = 8 };

/* ---- JWK ------------------------------------------------------------------------------------------------------- */

static EVP_PKEY *pair_from(const char *type, OSSL_PARAM_BLD *build)
{
    EVP_PKEY *pkey = NULL;
    OSSL_PARAM *params = OSSL_PARAM_BLD_to_param(build);
    EVP_PKEY_CTX *ctx = EVP_PKEY_CTX_new_from_name(NULL, type, NULL);
    if (params == NULL || ctx == NULL || EVP_PKEY_fromdata_init(ctx) != 1 ||
        EVP_PKEY_fromdata(ctx, &pkey, EVP_PKEY_KEYPAIR, params) != 1) {
        EVP_PKEY_free(pkey);
        pkey = NULL;
    }
    EVP_PKEY_CTX_free(ctx);
    OSSL_PARAM_free(params);
    return pkey;
}

/* A member as a number; NULL: missing or malformed.  Secure heap is not used: the key lives in the process anyway. */
static BIGNUM *number_of(const json_t *jwk, const char *name)
{
    uint8_t bytes[SZ_RSA_BYTES_MAX];
    size_t n;
    if (sz_jwk_bytes(jwk, name, bytes, sizeof(bytes), &n) != 0)
        return NULL;
    BIGNUM *number = BN_bin2bn(bytes, (int)n, NULL);
    sz_wipe(bytes, sizeof(bytes));
    return number;
}

static EVP_PKEY *rsa_pair(const json_t *jwk)
{
    static const char *const names[][2] = {
        {"n", OSSL_PKEY_PARAM_RSA_N},          {"e", OSSL_PKEY_PARAM_RSA_E},
        {"d", OSSL_PKEY_PARAM_RSA_D},          {"p", OSSL_PKEY_PARAM_RSA_FACTOR1},
        {"q", OSSL_PKEY_PARAM_RSA_FACTOR2},    {"dp", OSSL_PKEY_PARAM_RSA_EXPONENT1},
        {"dq", OSSL_PKEY_PARAM_RSA_EXPONENT2}, {"qi", OSSL_PKEY_PARAM_RSA_COEFFICIENT1},
    };
    BIGNUM *numbers[SZ_COUNT(names)] = {NULL};
    OSSL_PARAM_BLD *build = OSSL_PARAM_BLD_new();
    bool ok = build != NULL;
    for (size_t i = 0; i < SZ_COUNT(names) && ok; i++) {
        numbers[i] = number_of(jwk, names[i][0]);
        ok = numbers[i] != NULL && OSSL_PARAM_BLD_push_BN(build, names[i][1], numbers[i]) == 1;
    }
    EVP_PKEY *pkey = ok ? pair_from("RSA", build) : NULL;
    OSSL_PARAM_BLD_free(build);
    for (size_t i = 0; i < SZ_COUNT(names); i++)
        BN_clear_free(numbers[i]);
    return pkey;
}

static EVP_PKEY *ec_pair(const json_t *jwk)
{
    const char *crv = json_string_value(json_object_get(jwk, "crv"));
    const struct sz_curve *curve = crv == NULL ? NULL : sz_curve_by_name(sz_cstr(crv));
    uint8_t point[1 + 2 * 66] = {4};
    size_t x, y;
    if (curve == NULL || sz_jwk_bytes(jwk, "x", point + 1, curve->bytes, &x) != 0 || x != curve->bytes ||
        sz_jwk_bytes(jwk, "y", point + 1 + x, curve->bytes, &y) != 0 || y != curve->bytes)
        return NULL;
    BIGNUM *d = number_of(jwk, "d");
    OSSL_PARAM_BLD *build = OSSL_PARAM_BLD_new();
    EVP_PKEY *pkey = NULL;
    if (d != NULL && build != NULL &&
        OSSL_PARAM_BLD_push_utf8_string(build, OSSL_PKEY_PARAM_GROUP_NAME, curve->group, 0) == 1 &&
        OSSL_PARAM_BLD_push_octet_string(build, OSSL_PKEY_PARAM_PUB_KEY, point, 1 + 2 * curve->bytes) == 1 &&
        OSSL_PARAM_BLD_push_BN(build, OSSL_PKEY_PARAM_PRIV_KEY, d) == 1)
        pkey = pair_from("EC", build);
    OSSL_PARAM_BLD_free(build);
    BN_clear_free(d);
    return pkey;
}

static EVP_PKEY *okp_pair(const json_t *jwk)
{
    uint8_t d[32], x[32], derived[32];
    size_t d_n, x_n, n = sizeof(derived);
    if (sz_jwk_bytes(jwk, "d", d, sizeof(d), &d_n) != 0 || d_n != 32 ||
        sz_jwk_bytes(jwk, "x", x, sizeof(x), &x_n) != 0 || x_n != 32)
        return NULL;
    EVP_PKEY *pkey = EVP_PKEY_new_raw_private_key(EVP_PKEY_ED25519, NULL, d, sizeof(d));
    sz_wipe(d, sizeof(d));
    if (pkey != NULL &&
        (EVP_PKEY_get_raw_public_key(pkey, derived, &n) != 1 || !sz_eq(sz_slice(derived, 32), sz_slice(x, 32)))) {
        EVP_PKEY_free(pkey);
        pkey = NULL;
    }
    return pkey;
}

/* The public rules of the verifier hold for our own keys too: size, curve, alg, use. */
static int read_jwk_object(struct sz_private_key *key, json_t *jwk, struct sz_text *why)
{
    struct sz_jwk half;
    json_object_del(jwk, "key_ops"); /* says "sign" here, which the verifier's rule would refuse */
    if (sz_jwk_init(&half, jwk, why) != 0)
        return -EINVAL;
    key->kty = half.kty;
    key->algs = half.algs;
    key->kid = half.kid;
    half.kid = SZ_NONE;
    if (half.kty == SZ_KTY_OCT) {
        key->secret = half.secret;
        half.secret = SZ_NONE;
    }
    sz_jwk_fini(&half);
    if (key->kty != SZ_KTY_OCT)
        key->pkey = key->kty == SZ_KTY_RSA ? rsa_pair(jwk) : key->kty == SZ_KTY_EC ? ec_pair(jwk) : okp_pair(jwk);
    if (key->pkey == NULL && key->kty != SZ_KTY_OCT) {
        sz_text_set(why, "private members are missing or do not fit the public ones (RSA: d p q dp dq qi; others: d)");
        return -EINVAL;
    }
    return 0;
}

static int read_jwk(struct sz_private_key *key, struct sz_slice text, struct sz_text *why)
{
    size_t at;
    json_t *jwk = NULL;
    if (sz_json_check(text, DEPTH, &at) == 0)
        jwk = json_loadb(text.p, text.n, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, NULL);
    if (!json_is_object(jwk)) {
        json_decref(jwk);
        sz_text_set(why, "neither a PEM private key nor a JWK object");
        return -EINVAL;
    }
    int rc = read_jwk_object(key, jwk, why);
    json_decref(jwk);
    return rc;
}

/* ---- PEM ------------------------------------------------------------------------------------------------------- */

/* NOLINTNEXTLINE(readability-non-const-parameter): the type is OpenSSL's */
static int no_password(char *buf, int size, int rwflag, void *arg)
{
    (void)buf;
    (void)size;
    (void)rwflag;
    (void)arg;
    return -1;
}

static int classify(struct sz_private_key *key, struct sz_text *why)
{
    char group[32] = "";
    key->algs = 0;
    switch (EVP_PKEY_get_base_id(key->pkey)) {
    case EVP_PKEY_RSA:
        key->kty = SZ_KTY_RSA;
        if (EVP_PKEY_get_bits(key->pkey) >= SZ_RSA_BITS_MIN && EVP_PKEY_get_bits(key->pkey) <= SZ_RSA_BITS_MAX)
            key->algs = SZ_ALGS_RS | SZ_ALGS_PS;
        break;
    case EVP_PKEY_EC:
        key->kty = SZ_KTY_EC;
        (void)EVP_PKEY_get_group_name(key->pkey, group, sizeof(group), NULL);
        for (enum sz_alg alg = SZ_ALG_ES256; alg <= SZ_ALG_ES512; alg++)
            key->algs |= strcmp(group, sz_curve_by_alg(alg)->group) == 0 ? 1u << alg : 0;
        break;
    case EVP_PKEY_ED25519:
        key->kty = SZ_KTY_OKP;
        key->algs = 1u << SZ_ALG_EDDSA;
        break;
    default:
        break;
    }
    if (key->algs != 0)
        return 0;
    sz_text_set(why, "not an RSA key of %d to %d bits, nor P-256, P-384, P-521 or Ed25519", SZ_RSA_BITS_MIN,
                SZ_RSA_BITS_MAX);
    return -EINVAL;
}

static int read_pem(struct sz_private_key *key, struct sz_slice text, struct sz_text *why)
{
    BIO *bio = BIO_new_mem_buf(text.p, (int)text.n);
    key->pkey = bio == NULL ? NULL : PEM_read_bio_PrivateKey(bio, NULL, no_password, NULL);
    BIO_free(bio);
    if (key->pkey == NULL) {
        sz_text_set(why, "not a PEM private key, or an encrypted one");
        return -EINVAL;
    }
    return classify(key, why);
}

/* ---- both ------------------------------------------------------------------------------------------------------ */

static bool proves_itself(EVP_PKEY *pkey)
{
    static const uint8_t probe[] = "probe";
    const char *md = EVP_PKEY_get_base_id(pkey) == EVP_PKEY_ED25519 ? NULL : "SHA256";
    uint8_t signature[SZ_RSA_BYTES_MAX];
    size_t n = sizeof(signature);
    EVP_MD_CTX *sign = EVP_MD_CTX_new(), *verify = EVP_MD_CTX_new();
    bool ok = sign != NULL && verify != NULL && EVP_DigestSignInit_ex(sign, NULL, md, NULL, NULL, pkey, NULL) == 1 &&
              EVP_DigestSign(sign, signature, &n, probe, sizeof(probe)) == 1 &&
              EVP_DigestVerifyInit_ex(verify, NULL, md, NULL, NULL, pkey, NULL) == 1 &&
              EVP_DigestVerify(verify, signature, n, probe, sizeof(probe)) == 1;
    EVP_MD_CTX_free(sign);
    EVP_MD_CTX_free(verify);
    return ok;
}

/* kid = thumbprint (RFC 7638), by way of the text that will be published. */
static int name_key(struct sz_private_key *key)
{
    struct sz_buf text = {0};
    uint8_t print[32];
    if (key->kid.p != NULL)
        return 0;
    enum sz_alg alg = (enum sz_alg)__builtin_ctz(key->algs);
    int rc = sz_private_key_write(key, alg, key->kty == SZ_KTY_OCT, &text);
    json_t *jwk = rc != 0 ? NULL : json_loadb(text.p, text.n, 0, NULL);
    rc = jwk == NULL ? -EINVAL : sz_jwk_thumbprint(jwk, key->kty, print);
    json_decref(jwk);
    if (text.p != NULL)
        sz_wipe(text.p, text.n);
    sz_buf_fini(&text);
    if (rc == 0) {
        char *kid = sz_xmalloc(SZ_B64_LEN(32));
        key->kid = sz_slice(kid, sz_b64url_encode(print, sizeof(print), kid));
    }
    return rc;
}

int sz_private_key_read(struct sz_private_key *key, struct sz_slice text, struct sz_text *why)
{
    memset(key, 0, sizeof(*key));
    text = sz_trim(text);
    int rc = -EINVAL;
    if (text.n > TEXT_MAX)
        sz_text_set(why, "longer than %d bytes", TEXT_MAX);
    else if (sz_starts_with(text, SZ_S("-----BEGIN")))
        rc = read_pem(key, text, why);
    else
        rc = read_jwk(key, text, why);
    if (rc == 0 && key->pkey != NULL && !proves_itself(key->pkey)) {
        sz_text_set(why, "the private half does not belong to the public one");
        rc = -EINVAL;
    }
    if (rc == 0)
        rc = name_key(key);
    ERR_clear_error();
    if (rc != 0)
        sz_private_key_fini(key);
    return rc;
}

static int generate_secret(struct sz_private_key *key, enum sz_alg alg)
{
    size_t n = alg == SZ_ALG_HS256 ? 32 : alg == SZ_ALG_HS384 ? 48 : 64;
    uint8_t *secret = sz_xmalloc(n);
    sz_random(secret, n);
    key->kty = SZ_KTY_OCT;
    key->secret = sz_slice(secret, n);
    key->algs = 1u << alg;
    return 0;
}

int sz_private_key_generate(struct sz_private_key *key, enum sz_alg alg)
{
    struct sz_text why;
    memset(key, 0, sizeof(*key));
    if ((1u << alg & SZ_ALGS_HS) != 0)
        return generate_secret(key, alg) != 0 ? -EINVAL : name_key(key);
    if ((1u << alg & SZ_ALGS_ES) != 0)
        key->pkey = EVP_EC_gen(sz_curve_by_alg(alg)->group);
    else if (alg == SZ_ALG_EDDSA)
        key->pkey = EVP_PKEY_Q_keygen(NULL, NULL, "ED25519");
    else
        key->pkey = EVP_RSA_gen(SZ_RSA_BITS_MIN);
    int rc = key->pkey == NULL ? -ENOMEM : classify(key, &why);
    if (rc == 0)
        rc = name_key(key);
    if (rc != 0)
        sz_private_key_fini(key);
    return rc;
}

void sz_private_key_fini(struct sz_private_key *key)
{
    EVP_PKEY_free(key->pkey);
    free((char *)key->kid.p);
    if (key->secret.p != NULL) {
        sz_wipe((char *)key->secret.p, key->secret.n);
        free((char *)key->secret.p);
    }
    memset(key, 0, sizeof(*key));
}

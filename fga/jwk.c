/*
 * A JWK becomes a key here or it does not: whatever is odd about it (a missing member, a
 * padded number, a point off the curve, an algorithm that the kind cannot do, a use other than
 * signatures) makes the key unusable as a whole.  A key that is "mostly fine" is how
 * verifiers get talked into the wrong algorithm.
 *
 *   kty -> what the kind can do -> narrowed by alg -> use and key_ops must agree -> algs
 */
#include "fga/jwk.h"

#include <errno.h>
#include <openssl/core_names.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/param_build.h>
#include <sodium.h>

#include "subzero/crypto.h"

/* Larger exponents only serve to make verification slow; OpenSSL itself refuses them above 3,072 bits. */
enum { EXPONENT_BYTES_MAX = 8 };

static struct sz_slice string_of(const json_t *jwk, const char *name)
{
    const json_t *value = json_object_get(jwk, name);
    if (!json_is_string(value))
        return SZ_NONE;
    return sz_slice(json_string_value(value), json_string_length(value));
}

int sz_jwk_bytes(const json_t *jwk, const char *name, uint8_t *out, size_t max, size_t *n)
{
    struct sz_slice text = string_of(jwk, name);
    if (text.p == NULL || text.n == 0 || SZ_B64_BYTES(text.n) > max)
        return -EINVAL;
    return sz_b64url_decode(text, out, n);
}

/* ---- thumbprint ------------------------------------------------------------------------------------------------ */

/* RFC 7638: the required members alone, in lexicographic order, without white space. */
static const char *const required_members[][3] = {
    [SZ_KTY_RSA] = {"e", "kty", "n"},
    [SZ_KTY_EC] = {"crv", "kty", "x"}, /* and y, which sorts last */
    [SZ_KTY_OKP] = {"crv", "kty", "x"},
    [SZ_KTY_OCT] = {"k", "kty", NULL},
};

static void add_member(struct sz_buf *b, const char *name, struct sz_slice value)
{
    sz_buf_printf(b, "%c\"%s\":", b->n == 0 ? '{' : ',', name);
    sz_buf_json(b, value);
}

int sz_jwk_thumbprint(const json_t *jwk, enum sz_kty kty, uint8_t out[32])
{
    struct sz_buf text = {0};
    int rc = 0;
    for (size_t i = 0; i < 3 && required_members[kty][i] != NULL; i++) {
        struct sz_slice value = string_of(jwk, required_members[kty][i]);
        if (value.p == NULL)
            rc = -EINVAL;
        else
            add_member(&text, required_members[kty][i], value);
    }
    if (kty == SZ_KTY_EC) {
        struct sz_slice y = string_of(jwk, "y");
        if (y.p == NULL)
            rc = -EINVAL;
        else
            add_member(&text, "y", y);
    }
    sz_buf_printf(&text, "}");
    if (rc == 0)
        sz_sha256(sz_buf_slice(&text), out);
    if (kty == SZ_KTY_OCT && text.p != NULL)
        sz_wipe(text.p, text.n);
    sz_buf_fini(&text);
    return rc;
}

/* ---- the four kinds -------------------------------------------------------------------------------------------- */

static EVP_PKEY *pkey_from(const char *type, OSSL_PARAM *params)
{
    EVP_PKEY *pkey = NULL;
    EVP_PKEY_CTX *ctx = EVP_PKEY_CTX_new_from_name(NULL, type, NULL);
    if (ctx == NULL || EVP_PKEY_fromdata_init(ctx) != 1 ||
        EVP_PKEY_fromdata(ctx, &pkey, EVP_PKEY_PUBLIC_KEY, params) != 1) {
        EVP_PKEY_free(pkey);
        pkey = NULL;
    }
    EVP_PKEY_CTX_free(ctx);
    ERR_clear_error();
    return pkey;
}

static EVP_PKEY *rsa_from(const uint8_t *n, size_t n_len, const uint8_t *e, size_t e_len)
{
    EVP_PKEY *pkey = NULL;
    BIGNUM *modulus = BN_bin2bn(n, (int)n_len, NULL), *exponent = BN_bin2bn(e, (int)e_len, NULL);
    OSSL_PARAM_BLD *build = OSSL_PARAM_BLD_new();
    OSSL_PARAM *params = NULL;
    if (modulus != NULL && exponent != NULL && build != NULL &&
        OSSL_PARAM_BLD_push_BN(build, OSSL_PKEY_PARAM_RSA_N, modulus) == 1 &&
        OSSL_PARAM_BLD_push_BN(build, OSSL_PKEY_PARAM_RSA_E, exponent) == 1)
        params = OSSL_PARAM_BLD_to_param(build);
    if (params != NULL)
        pkey = pkey_from("RSA", params);
    OSSL_PARAM_free(params);
    OSSL_PARAM_BLD_free(build);
    BN_free(modulus);
    BN_free(exponent);
    return pkey;
}

static size_t bit_length(const uint8_t *p, size_t n)
{
    return n * 8 - (size_t)(__builtin_clz(p[0]) - 24); /* p[0] != 0 */
}

static int read_rsa(struct sz_jwk *key, const json_t *jwk, struct sz_text *why)
{
    uint8_t n[SZ_RSA_BYTES_MAX], e[EXPONENT_BYTES_MAX];
    size_t n_len, e_len;
    if (sz_jwk_bytes(jwk, "n", n, sizeof(n), &n_len) != 0 || sz_jwk_bytes(jwk, "e", e, sizeof(e), &e_len) != 0) {
        sz_text_set(why, "n or e is missing, too long, or not base64url without padding");
        return -EINVAL;
    }
    if (n[0] == 0 || e[0] == 0) {
        sz_text_set(why, "n or e starts with a zero octet (RFC 7518 section 6.3.1)");
        return -EINVAL;
    }
    if (bit_length(n, n_len) < SZ_RSA_BITS_MIN) {
        sz_text_set(why, "RSA key of %zu bits; at least %d are needed", bit_length(n, n_len), SZ_RSA_BITS_MIN);
        return -EINVAL;
    }
    if ((n[n_len - 1] & 1) == 0 || (e[e_len - 1] & 1) == 0 || (e_len == 1 && e[0] < 3)) {
        sz_text_set(why, "n must be odd, e odd and at least 3");
        return -EINVAL;
    }
    key->pkey = rsa_from(n, n_len, e, e_len);
    if (key->pkey == NULL) {
        sz_text_set(why, "not an RSA key");
        return -EINVAL;
    }
    key->algs = SZ_ALGS_RS | SZ_ALGS_PS;
    return 0;
}

static int read_ec(struct sz_jwk *key, const json_t *jwk, struct sz_text *why)
{
    const struct sz_curve *curve = sz_curve_by_name(string_of(jwk, "crv"));
    if (curve == NULL) {
        sz_text_set(why, "crv is none of P-256, P-384, P-521");
        return -EINVAL;
    }
    uint8_t point[1 + 2 * 66] = {4}; /* uncompressed: 04 x y */
    size_t x_len, y_len;
    if (sz_jwk_bytes(jwk, "x", point + 1, curve->bytes, &x_len) != 0 || x_len != curve->bytes ||
        sz_jwk_bytes(jwk, "y", point + 1 + curve->bytes, curve->bytes, &y_len) != 0 || y_len != curve->bytes) {
        sz_text_set(why, "x and y must be base64url of exactly %zu octets", curve->bytes);
        return -EINVAL;
    }
    OSSL_PARAM params[] = {
        OSSL_PARAM_construct_utf8_string(OSSL_PKEY_PARAM_GROUP_NAME, (char *)curve->group, 0),
        OSSL_PARAM_construct_octet_string(OSSL_PKEY_PARAM_PUB_KEY, point, 1 + 2 * curve->bytes),
        OSSL_PARAM_construct_end(),
    };
    key->pkey = pkey_from("EC", params); /* refuses a point that is not on the curve */
    if (key->pkey == NULL) {
        sz_text_set(why, "x and y are no point of %s", curve->crv);
        return -EINVAL;
    }
    key->algs = 1u << curve->alg;
    return 0;
}

static int read_okp(struct sz_jwk *key, const json_t *jwk, struct sz_text *why)
{
    size_t n;
    if (!sz_eq(string_of(jwk, "crv"), SZ_S("Ed25519"))) {
        sz_text_set(why, "crv is not Ed25519");
        return -EINVAL;
    }
    /* With a point of small order anyone could sign: S = 0 verifies. */
    if (sz_jwk_bytes(jwk, "x", key->ed25519, sizeof(key->ed25519), &n) != 0 || n != sizeof(key->ed25519) ||
        crypto_core_ed25519_is_valid_point(key->ed25519) != 1) {
        sz_text_set(why, "x is no public key of Ed25519");
        return -EINVAL;
    }
    key->algs = 1u << SZ_ALG_EDDSA;
    return 0;
}

static uint32_t hs_algs(size_t secret_len)
{
    return (secret_len >= 32 ? 1u << SZ_ALG_HS256 : 0) | (secret_len >= 48 ? 1u << SZ_ALG_HS384 : 0) |
           (secret_len >= 64 ? 1u << SZ_ALG_HS512 : 0);
}

static int take_secret(struct sz_jwk *key, const uint8_t *bytes, size_t n, struct sz_text *why)
{
    key->algs = hs_algs(n);
    if (key->algs == 0) {
        sz_text_set(why, "secret of %zu octets; HS256 needs at least 32 (RFC 7518 section 3.2)", n);
        return -EINVAL;
    }
    uint8_t *copy = sz_xmalloc(n);
    memcpy(copy, bytes, n);
    key->secret = sz_slice(copy, n);
    return 0;
}

static int read_oct(struct sz_jwk *key, const json_t *jwk, struct sz_text *why)
{
    uint8_t secret[SZ_HMAC_SECRET_MAX];
    size_t n;
    if (sz_jwk_bytes(jwk, "k", secret, sizeof(secret), &n) != 0) {
        sz_text_set(why, "k is missing, too long, or not base64url without padding");
        return -EINVAL;
    }
    int rc = take_secret(key, secret, n, why);
    sz_wipe(secret, sizeof(secret));
    return rc;
}

/* ---- what it may be used for ----------------------------------------------------------------------------------- */

/* key_ops, when there, is a list of different strings that has "verify" in it (RFC 7517 section 4.3). */
static bool ops_allow_verify(const json_t *ops)
{
    bool verify = false;
    if (!json_is_array(ops) || json_array_size(ops) > 16)
        return false;
    for (size_t i = 0; i < json_array_size(ops); i++) {
        const json_t *op = json_array_get(ops, i);
        if (!json_is_string(op))
            return false;
        for (size_t j = 0; j < i; j++) {
            if (json_equal(op, json_array_get(ops, j)))
                return false;
        }
        verify = verify || (json_string_length(op) == 6 && memcmp(json_string_value(op), "verify", 6) == 0);
    }
    return verify;
}

static int narrow(struct sz_jwk *key, const json_t *jwk, struct sz_text *why)
{
    const json_t *alg = json_object_get(jwk, "alg"), *use = json_object_get(jwk, "use");
    const json_t *ops = json_object_get(jwk, "key_ops");
    if (use != NULL && !sz_eq(string_of(jwk, "use"), SZ_S("sig"))) {
        sz_text_set(why, "use is not sig");
        return -EINVAL;
    }
    if (ops != NULL && !ops_allow_verify(ops)) {
        sz_text_set(why, "key_ops is not a list of different strings with verify among them");
        return -EINVAL;
    }
    if (alg != NULL) {
        enum sz_alg only = sz_alg_from(string_of(jwk, "alg"));
        key->algs &= only == SZ_ALG_COUNT ? 0 : 1u << only;
        if (key->algs == 0) {
            sz_text_set(why, "alg is no signature algorithm that this key can do");
            return -EINVAL;
        }
    }
    return 0;
}

static int read_kid(struct sz_jwk *key, const json_t *jwk, struct sz_text *why)
{
    const json_t *kid = json_object_get(jwk, "kid");
    if (kid == NULL)
        return 0;
    struct sz_slice text = string_of(jwk, "kid");
    if (text.p == NULL) {
        sz_text_set(why, "kid is not a string");
        return -EINVAL;
    }
    if (text.n == 0)
        return 0; /* an empty name names nothing: as if absent */
    char *copy = sz_xmalloc(text.n);
    memcpy(copy, text.p, text.n);
    key->kid = sz_slice(copy, text.n);
    return 0;
}

static int kty_of(const json_t *jwk, enum sz_kty *kty)
{
    static const struct {
        const char *name;
        enum sz_kty kty;
    } kinds[] = {{"RSA", SZ_KTY_RSA}, {"EC", SZ_KTY_EC}, {"OKP", SZ_KTY_OKP}, {"oct", SZ_KTY_OCT}};
    struct sz_slice name = string_of(jwk, "kty");
    for (size_t i = 0; i < SZ_COUNT(kinds); i++) {
        if (sz_eq(name, sz_cstr(kinds[i].name))) {
            *kty = kinds[i].kty;
            return 0;
        }
    }
    return -EINVAL;
}

static int read_kind(struct sz_jwk *key, const json_t *jwk, struct sz_text *why)
{
    switch (key->kty) {
    case SZ_KTY_RSA:
        return read_rsa(key, jwk, why);
    case SZ_KTY_EC:
        return read_ec(key, jwk, why);
    case SZ_KTY_OKP:
        return read_okp(key, jwk, why);
    case SZ_KTY_OCT:
        return read_oct(key, jwk, why);
    }
    return -EINVAL;
}

int sz_jwk_init(struct sz_jwk *key, json_t *jwk, struct sz_text *why)
{
    memset(key, 0, sizeof(*key));
    if (!json_is_object(jwk)) {
        sz_text_set(why, "not an object");
        return -EINVAL;
    }
    if (kty_of(jwk, &key->kty) != 0) {
        sz_text_set(why, "kty is none of RSA, EC, OKP, oct");
        return -EINVAL;
    }
    int rc = read_kind(key, jwk, why);
    if (rc == 0)
        rc = narrow(key, jwk, why);
    if (rc == 0)
        rc = read_kid(key, jwk, why);
    if (rc == 0)
        rc = sz_jwk_thumbprint(jwk, key->kty, key->thumbprint);
    if (rc != 0)
        sz_jwk_fini(key);
    return rc;
}

int sz_jwk_init_secret(struct sz_jwk *key, struct sz_slice secret, struct sz_text *why)
{
    memset(key, 0, sizeof(*key));
    key->kty = SZ_KTY_OCT;
    key->any_kid = true;
    if (secret.n > SZ_HMAC_SECRET_MAX) {
        sz_text_set(why, "secret longer than %d octets", SZ_HMAC_SECRET_MAX);
        return -EINVAL;
    }
    int rc = take_secret(key, (const uint8_t *)secret.p, secret.n, why);
    if (rc == 0)
        sz_sha256(secret, key->thumbprint);
    return rc;
}

void sz_jwk_fini(struct sz_jwk *key)
{
    EVP_PKEY_free(key->pkey);
    free((char *)key->kid.p);
    if (key->secret.p != NULL) {
        sz_wipe((char *)key->secret.p, key->secret.n);
        free((char *)key->secret.p);
    }
    sz_wipe(key, sizeof(*key));
}

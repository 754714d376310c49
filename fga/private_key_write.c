/*
 * A key as JWK text (RFC 7518 section 6).  Also where an unnamed key gets its name: the kid is the
 * RFC 7638 thumbprint of the very members written here.
 */
#include "fga/private_key.h"

#include <errno.h>
#include <openssl/core_names.h>
#include <openssl/evp.h>

#include "subzero/crypto.h"

struct member {
    const char *name, *param;
};

static void add_bytes(struct sz_buf *out, const char *name, const uint8_t *bytes, size_t n)
{
    char text[SZ_B64_LEN(SZ_HMAC_SECRET_MAX)];
    size_t len = sz_b64url_encode(bytes, n, text);
    sz_buf_printf(out, ",\"%s\":\"", name);
    sz_buf_add(out, text, len);
    sz_buf_printf(out, "\"");
    sz_wipe(text, len);
}

/* A number, as big endian octets: as few as it takes, or exactly `size`. */
static int add_number(struct sz_buf *out, const EVP_PKEY *pkey, const char *name, const char *param, size_t size)
{
    uint8_t bytes[SZ_RSA_BYTES_MAX];
    BIGNUM *number = NULL;
    if (EVP_PKEY_get_bn_param(pkey, param, &number) != 1)
        return -EINVAL;
    int n = size != 0 ? (int)size : BN_num_bytes(number);
    int rc = n > (int)sizeof(bytes) || BN_bn2binpad(number, bytes, n) != n ? -EINVAL : 0;
    if (rc == 0)
        add_bytes(out, name, bytes, (size_t)n);
    BN_clear_free(number);
    sz_wipe(bytes, sizeof(bytes));
    return rc;
}

static int write_rsa(const struct sz_private_key *key, bool private_too, struct sz_buf *out)
{
    static const struct member members[] = {
        {"n", OSSL_PKEY_PARAM_RSA_N},          {"e", OSSL_PKEY_PARAM_RSA_E},
        {"d", OSSL_PKEY_PARAM_RSA_D},          {"p", OSSL_PKEY_PARAM_RSA_FACTOR1},
        {"q", OSSL_PKEY_PARAM_RSA_FACTOR2},    {"dp", OSSL_PKEY_PARAM_RSA_EXPONENT1},
        {"dq", OSSL_PKEY_PARAM_RSA_EXPONENT2}, {"qi", OSSL_PKEY_PARAM_RSA_COEFFICIENT1},
    };
    int rc = 0;
    sz_buf_printf(out, "{\"kty\":\"RSA\"");
    for (size_t i = 0; i < (private_too ? SZ_COUNT(members) : 2) && rc == 0; i++)
        rc = add_number(out, key->pkey, members[i].name, members[i].param, 0);
    return rc;
}

static int write_ec(const struct sz_private_key *key, bool private_too, struct sz_buf *out)
{
    const struct sz_curve *curve = NULL;
    for (enum sz_alg alg = SZ_ALG_ES256; alg <= SZ_ALG_ES512; alg++) {
        if ((key->algs >> alg & 1) != 0)
            curve = sz_curve_by_alg(alg);
    }
    if (curve == NULL)
        return -EINVAL;
    sz_buf_printf(out, "{\"kty\":\"EC\",\"crv\":\"%s\"", curve->crv);
    int rc = add_number(out, key->pkey, "x", OSSL_PKEY_PARAM_EC_PUB_X, curve->bytes);
    if (rc == 0)
        rc = add_number(out, key->pkey, "y", OSSL_PKEY_PARAM_EC_PUB_Y, curve->bytes);
    if (rc == 0 && private_too)
        rc = add_number(out, key->pkey, "d", OSSL_PKEY_PARAM_PRIV_KEY, curve->bytes);
    return rc;
}

static int write_okp(const struct sz_private_key *key, bool private_too, struct sz_buf *out)
{
    uint8_t bytes[32];
    size_t n = sizeof(bytes);
    if (EVP_PKEY_get_raw_public_key(key->pkey, bytes, &n) != 1)
        return -EINVAL;
    sz_buf_printf(out, "{\"kty\":\"OKP\",\"crv\":\"Ed25519\"");
    add_bytes(out, "x", bytes, n);
    if (!private_too)
        return 0;
    n = sizeof(bytes);
    if (EVP_PKEY_get_raw_private_key(key->pkey, bytes, &n) != 1)
        return -EINVAL;
    add_bytes(out, "d", bytes, n);
    sz_wipe(bytes, sizeof(bytes));
    return 0;
}

static int write_oct(const struct sz_private_key *key, struct sz_buf *out)
{
    sz_buf_printf(out, "{\"kty\":\"oct\"");
    add_bytes(out, "k", (const uint8_t *)key->secret.p, key->secret.n);
    return 0;
}

int sz_private_key_write(const struct sz_private_key *key, enum sz_alg alg, bool private_too, struct sz_buf *out)
{
    int rc = -EINVAL;
    switch (key->kty) {
    case SZ_KTY_RSA:
        rc = write_rsa(key, private_too, out);
        break;
    case SZ_KTY_EC:
        rc = write_ec(key, private_too, out);
        break;
    case SZ_KTY_OKP:
        rc = write_okp(key, private_too, out);
        break;
    case SZ_KTY_OCT:
        rc = private_too ? write_oct(key, out) : -EINVAL; /* it has no public half */
        break;
    }
    if (rc != 0)
        return rc;
    if (key->kid.p != NULL) {
        sz_buf_printf(out, ",\"kid\":");
        sz_buf_json(out, key->kid);
    }
    sz_buf_printf(out, ",\"use\":\"sig\",\"alg\":\"%s\"}", sz_alg_name(alg));
    return out->overflow ? -EFBIG : 0;
}

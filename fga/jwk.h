/*
 * One verification key, parsed once from a JWK (RFC 7517, 7518, 8037) into the form that the
 * primitives use.  Immutable afterwards; owned by its key set.
 */
#ifndef SZ_FGA_JWK_H
#define SZ_FGA_JWK_H

#include <jansson.h>
#include <openssl/types.h>

#include "subzero/base.h"
#include "subzero/conf.h"

#define SZ_RSA_BITS_MIN    2048
#define SZ_RSA_BITS_MAX    8192
#define SZ_RSA_BYTES_MAX   (SZ_RSA_BITS_MAX / 8)
#define SZ_HMAC_SECRET_MAX 8192 /* bytes */

#define SZ_ALGS_HS  (1u << SZ_ALG_HS256 | 1u << SZ_ALG_HS384 | 1u << SZ_ALG_HS512)
#define SZ_ALGS_RS  (1u << SZ_ALG_RS256 | 1u << SZ_ALG_RS384 | 1u << SZ_ALG_RS512)
#define SZ_ALGS_PS  (1u << SZ_ALG_PS256 | 1u << SZ_ALG_PS384 | 1u << SZ_ALG_PS512)
#define SZ_ALGS_ES  (1u << SZ_ALG_ES256 | 1u << SZ_ALG_ES384 | 1u << SZ_ALG_ES512)
#define SZ_ALGS_ALL ((1u << SZ_ALG_COUNT) - 1)

enum sz_kty { SZ_KTY_RSA, SZ_KTY_EC, SZ_KTY_OKP, SZ_KTY_OCT };

struct sz_jwk {
    enum sz_kty kty;
    uint32_t algs;          /* what it may verify: kind, size, `alg`, `use` and `key_ops` taken together; never 0 */
    struct sz_slice kid;    /* SZ_NONE: the JWK has none; heap */
    bool any_kid;           /* the one shared secret of an issuer: whatever kid the token names */
    EVP_PKEY *pkey;         /* RSA, EC */
    uint8_t ed25519[32];    /* OKP */
    struct sz_slice secret; /* oct; heap, wiped */
    uint8_t thumbprint[32]; /* RFC 7638, SHA-256 */
    size_t index;           /* position in the document */
    uint32_t id;            /* process-wide: key_registry.h; 0 until registered */
};

/*
 * Reads one JWK.  0, or -EINVAL when it may not verify anything: *why says so in a few words, without key
 * material.  Private members are neither needed nor looked at.  Whole on 0, empty on failure.
 */
int sz_jwk_init(struct sz_jwk *key, json_t *jwk, struct sz_text *why) SZ_MUST_CHECK;
/* A shared secret that is no JWK (an issuer's secret_file).  -EINVAL: too short for HS256, or too long. */
int sz_jwk_init_secret(struct sz_jwk *key, struct sz_slice secret, struct sz_text *why) SZ_MUST_CHECK;
void sz_jwk_fini(struct sz_jwk *key); /* wipes */

/* ---- for the signer, which reads the private members too ------------------------------------------------------ */

/* A string member as canonical base64url, decoded into out; -EINVAL when absent, not a string, empty or too long. */
int sz_jwk_bytes(const json_t *jwk, const char *name, uint8_t *out, size_t max, size_t *n) SZ_MUST_CHECK;
/* RFC 7638 over the required public members of `kty`; -EINVAL when one is missing. */
int sz_jwk_thumbprint(const json_t *jwk, enum sz_kty kty, uint8_t out[32]) SZ_MUST_CHECK;
/* Names and sizes of a curve by its JOSE name; NULL when we do not know it. */
struct sz_curve {
    const char *crv;   /* P-256 */
    const char *group; /* OpenSSL's name */
    size_t bytes;      /* of a coordinate */
    enum sz_alg alg;   /* the one algorithm that fits */
    uint8_t order[66]; /* n, big endian, `bytes` long */
};
const struct sz_curve *sz_curve_by_name(struct sz_slice crv);
const struct sz_curve *sz_curve_by_alg(enum sz_alg alg);

#endif

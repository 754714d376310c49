/* JOSE algorithm names (RFC 7518 section 3.1, RFC 8037).  "none" is not among them. */
#include "subzero/conf.h"

static const char *const names[SZ_ALG_COUNT] = {
    [SZ_ALG_HS256] = "HS256", [SZ_ALG_HS384] = "HS384", [SZ_ALG_HS512] = "HS512", [SZ_ALG_RS256] = "RS256",
    [SZ_ALG_RS384] = "RS384", [SZ_ALG_RS512] = "RS512", [SZ_ALG_PS256] = "PS256", [SZ_ALG_PS384] = "PS384",
    [SZ_ALG_PS512] = "PS512", [SZ_ALG_ES256] = "ES256", [SZ_ALG_ES384] = "ES384", [SZ_ALG_ES512] = "ES512",
    [SZ_ALG_EDDSA] = "EdDSA",
};

const char *sz_alg_name(enum sz_alg alg)
{
    SZ_ASSERT(alg < SZ_ALG_COUNT);
    return names[alg];
}

enum sz_alg sz_alg_from(struct sz_slice name)
{
    for (unsigned i = 0; i < SZ_ALG_COUNT; i++) {
        if (sz_eq(name, sz_cstr(names[i])))
            return (enum sz_alg)i;
    }
    return SZ_ALG_COUNT;
}

/*
 * From a verified payload to the compact identity: the claim rules of RFC 7519, RFC 9068 and RFC 7800 as the
 * issuer is configured.  Private to the JWT files.
 */
#ifndef SZ_FGA_JWT_CLAIMS_H
#define SZ_FGA_JWT_CLAIMS_H

#include <jansson.h>

#include "fga/issuer.h"
#include "fga/jws_verify.h"

struct sz_claims_in {
    const struct sz_issuers *issuers;
    const struct sz_issuer *issuer;
    const struct sz_jose *jose;
    json_t *claims; /* an object */
    struct sz_wall now;
};

/* Fills the identity (all but generation, key and issuer ids) and the verdict: out->reason. */
void sz_jwt_claims(const struct sz_claims_in *in, struct sz_identity *identity, struct sz_verified *out);

/* The verdict `reason`, with a detail that holds no value from the token.  Returns false, for "return
 * sz_jwt_deny(...)". */
bool sz_jwt_deny(struct sz_verified *out, enum sz_reason reason, const char *fmt, ...) SZ_PRINTF(3, 4);

/* Scopes from scope, scp and the permissions claim into identity->scopes.  False: denied. */
bool sz_jwt_scopes(const struct sz_claims_in *in, struct sz_identity *identity, struct sz_verified *out);

/* cnf and DPoP marks into the flags and x5t.  False: denied. */
bool sz_jwt_binding(const struct sz_claims_in *in, struct sz_identity *identity, struct sz_verified *out);

static inline struct sz_slice sz_json_slice(const json_t *string)
{
    return sz_slice(json_string_value(string), json_string_length(string));
}

#endif

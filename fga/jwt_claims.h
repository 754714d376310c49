/*
 * From a verified payload to the compact identity: the claim rules of RFC 7519, RFC 9068 and RFC 7800 as the
 * issuer is configured.  Private to the JWT files.
 */
#ifndef SZ_FGA_JWT_CLAIMS_H
#define SZ_FGA_JWT_CLAIMS_H

#include "fga/issuer.h"
#include "fga/json_tree.h"
#include "fga/jws_verify.h"

struct sz_claims_in {
    const struct sz_issuers *issuers;
    const struct sz_issuer *issuer;
    const struct sz_jose *jose;      /* NULL with `told` */
    const struct sz_json_tree *tree; /* the payload; its root is an object */
    struct sz_wall now;
    bool told;        /* not a token's own claims, but what its provider says of it: no header, `exp` may be missing */
    bool no_audience; /* ... at an endpoint that tells no audience and no scopes */
};

/* A verdict to begin with. */
void sz_jwt_begin(struct sz_verified *out, enum sz_reason reason);
/* Splits, decodes and parses.  *in and *jws borrow from token, the thread and payload.  False: denied. */
bool sz_jwt_open(struct sz_slice token, struct sz_jws *jws, struct sz_claims_in *in, struct sz_buf *payload,
                 struct sz_verified *out);
/* 0 with key_id set when the signature is good; otherwise the denial is in *out, or something broke. */
int sz_jwt_signature(struct sz_issuer *issuer, const struct sz_jose *jose, const struct sz_jws *jws,
                     struct sz_identity *id, struct sz_verified *out) SZ_MUST_CHECK;

/* Fills the identity (all but generation, key and issuer ids) and the verdict: out->reason. */
void sz_jwt_claims(const struct sz_claims_in *in, struct sz_identity *identity, struct sz_verified *out);

/* The verdict `reason`, with a detail that holds no value from the token.  Returns false, for "return
 * sz_jwt_deny(...)". */
bool sz_jwt_deny(struct sz_verified *out, enum sz_reason reason, const char *fmt, ...) SZ_PRINTF(3, 4);

/* Scopes from scope, scp and the permissions claim into identity->scopes.  False: denied. */
bool sz_jwt_scopes(const struct sz_claims_in *in, struct sz_identity *identity, struct sz_verified *out);

/* cnf and DPoP marks into the flags and x5t.  False: denied. */
bool sz_jwt_binding(const struct sz_claims_in *in, struct sz_identity *identity, struct sz_verified *out);

/* A claim by its name. */
static inline const struct sz_json_node *sz_claim(const struct sz_claims_in *in, struct sz_slice name)
{
    return sz_json_get(in->tree, in->tree->v, name);
}

#endif

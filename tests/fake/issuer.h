/* An issuer for tests: a key, its JWK Set as a file, tokens.  Its name is "https://issuer.test/", its audience "api".
 */
#ifndef FAKE_ISSUER_H
#define FAKE_ISSUER_H

#include "subzero/issuers.h"

#define ISSUER_NAME "https://issuer.test/"
/* For a gateway's template: the issuer under the key `test`. */
#define ISSUER_YAML                 \
    "issuers:\n"                    \
    "  test:\n"                     \
    "    issuer: " ISSUER_NAME "\n" \
    "    audiences: [api]\n"        \
    "    algorithms: [ES256]\n"     \
    "    jwks_file: \"{dir}/jwks.json\"\n"

struct issuer {
    struct sz_signer *signer;
};

/* A fresh key; writes jwks.json into the scratch folder. */
void issuer_init(struct issuer *issuer);
/* A token valid from now; extra: more claims ("\"scope\":\"a b\""), or NULL.  malloc'ed. */
char *issuer_token(struct issuer *issuer, const char *sub, long ttl_seconds, const char *extra);

#endif

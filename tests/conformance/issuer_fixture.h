/* One issuer by hand, as the configuration would have made it, for vectors that bring their own policy. */
#ifndef TESTS_CONFORMANCE_ISSUER_FIXTURE_H
#define TESTS_CONFORMANCE_ISSUER_FIXTURE_H

#include <jansson.h>

#include "subzero/issuers.h"

struct issuer_fixture {
    struct sz_conf conf;
    struct sz_conf_issuer issuer;
    struct sz_mistakes mistakes;
    struct sz_issuers *issuers;
    struct sz_slice audiences[8], required[16], types[2], scopes[8];
    char path[64];
};

/* policy: the member of a vector {iss, aud, skew, require, required_scope, typ}; jwks: its key set. */
void issuer_fixture_init(struct issuer_fixture *f, const json_t *policy, const json_t *jwks);
/* The same, asked by introspection instead: no keys. */
void issuer_fixture_asked(struct issuer_fixture *f, const json_t *policy, const json_t *jwks);
void issuer_fixture_fini(struct issuer_fixture *f);

#endif

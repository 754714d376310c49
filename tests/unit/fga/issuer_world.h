/*
 * A world of one issuer (or two) and its key, for tests: any header and payload, well formed or not, with a good
 * signature.
 */
#ifndef TESTS_FGA_ISSUER_WORLD_H
#define TESTS_FGA_ISSUER_WORLD_H

#include <openssl/evp.h>

#include "fga/issuer.h"
#include "subzero/issuers.h"

#define WORLD_NOW   INT64_C(1767225600)
#define WORLD_LATER "1767229200" /* an hour on */

struct world {
    struct sz_arena arena;
    struct sz_conf conf;
    struct sz_conf_issuer issuer[2];
    struct sz_slice audiences[2], scopes[4], claims[4], types[2], required[2];
    struct sz_mistakes mistakes;
    struct sz_issuers *issuers;
    EVP_PKEY *key; /* P-256, kid k1 */
    struct sz_slice jwks;
    char path[64];
};

/* One issuer https://issuer.test/, audience "api", ES256, 60 s leeway; change w->issuer and the like, then world_open.
 */
void world_init(struct world *w);
void world_open(struct world *w);
void world_fini(struct world *w);
/* Writes another key set into the file that the next world_open reads. */
void world_keys(struct world *w, struct sz_slice jwks);

/* {"alg":"ES256","kid":"k1"} and these claims. */
struct sz_slice world_token(struct world *w, const char *claims);
struct sz_slice world_sign(struct world *w, struct sz_slice header, struct sz_slice payload);
/* The same with the text already encoded: for what no encoder would write. */
struct sz_slice world_sign_encoded(struct world *w, struct sz_slice header, struct sz_slice payload);

/* sz_jwt_verify at WORLD_NOW; asserts that nothing broke. */
enum sz_reason world_verify(struct world *w, struct sz_slice token, struct sz_identity *id,
                            struct sz_verified *verified);
/* The reason alone. */
enum sz_reason world_judge(struct world *w, struct sz_slice token);

#endif

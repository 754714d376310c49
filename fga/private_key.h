/*
 * Private keys: read from a JWK or PEM, generated, written as a JWK.  For the signer; verification never comes here.
 */
#ifndef SZ_FGA_PRIVATE_KEY_H
#define SZ_FGA_PRIVATE_KEY_H

#include <jansson.h>

#include "fga/jwk.h"

struct sz_private_key {
    enum sz_kty kty;
    uint32_t algs;          /* what it can sign with */
    EVP_PKEY *pkey;         /* RSA, EC, OKP */
    struct sz_slice secret; /* oct; heap, wiped */
    struct sz_slice kid;    /* the JWK's, else the RFC 7638 thumbprint; heap */
};

/* -EINVAL: *why, without key material.  Blocking: an encrypted PEM is refused, nobody is asked for a password. */
int sz_private_key_read(struct sz_private_key *key, struct sz_slice text, struct sz_text *why) SZ_MUST_CHECK;
int sz_private_key_generate(struct sz_private_key *key, enum sz_alg alg) SZ_MUST_CHECK;
void sz_private_key_fini(struct sz_private_key *key); /* wipes */

/* As a JWK object: kty, the members of its kind, kid, use, alg; with the private members too on demand. */
int sz_private_key_write(const struct sz_private_key *key, enum sz_alg alg, bool private_too,
                         struct sz_buf *out) SZ_MUST_CHECK;

#endif

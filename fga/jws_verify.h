/*
 * The bare signature check, and the compact serialisation around it (RFC 7515), without any meaning of
 * claims.  Nothing here allocates per call but OpenSSL itself; what a thread prepares for
 * a key (contexts) is kept per thread, bounded, and forgotten when a key set lets a key go.
 */
#ifndef SZ_FGA_JWS_VERIFY_H
#define SZ_FGA_JWS_VERIFY_H

#include "fga/jwks.h"
#include "subzero/conf.h"

enum { SZ_JWS_BAD = 1 }; /* the signature does not verify */

/* The signature `sig` of `input` under one key.  alg must be in key->algs.  0, SZ_JWS_BAD, or negative: broken. */
int sz_jws_check(const struct sz_jwk *key, enum sz_alg alg, struct sz_slice input, struct sz_slice sig) SZ_MUST_CHECK;

/* The three segments, as text and borrowed from the token; input = header.payload.  -EINVAL: not three of them. */
struct sz_jws {
    struct sz_slice header, payload, signature, input;
};
int sz_jws_split(struct sz_slice token, struct sz_jws *jws) SZ_MUST_CHECK;

#define SZ_JOSE_TEXT_MAX 2048 /* kid and typ together */

/* The protected header, decoded.  Slices point into text. */
struct sz_jose {
    bool alg_known; /* one of ours; "none" and everything else is not */
    enum sz_alg alg;
    struct sz_slice kid; /* SZ_NONE: absent */
    struct sz_slice typ; /* SZ_NONE: absent */
    bool nested;         /* cty says that the payload is a JWT itself */
    uint16_t text_n;
    char text[SZ_JOSE_TEXT_MAX];
};
/*
 * -EINVAL with *why: not canonical base64url of a strict JSON object; alg missing or no string; kid, typ or cty of a
 * wrong type; crit, b64, enc or zip present (nothing critical is understood, nothing is inflated). jwk, jku, x5u and
 * x5c are never looked at.
 */
int sz_jose_parse(struct sz_slice encoded, struct sz_jose *jose, struct sz_text *why) SZ_MUST_CHECK;
/*
 * The same through the thread's memory of headers that were on validly signed tokens: most tokens of one issuer carry
 * the same bytes.  *jose is borrowed until the thread's next call here.
 */
int sz_jose_get(struct sz_slice encoded, const struct sz_jose **jose, struct sz_text *why) SZ_MUST_CHECK;
/* Does it decode to a JSON object at all?  The mark of a JWT among bearer tokens. */
bool sz_jose_is_object(struct sz_slice encoded);
/* The header just got was on a token with a good signature: worth remembering. */
void sz_jose_keep(struct sz_slice encoded, const struct sz_jose *jose);

/*
 * The payload, decoded into out (SZ_B64_BYTES of its length).  -EINVAL: not canonical base64url, or a token inside the
 * token.
 */
int sz_jws_payload(const struct sz_jws *jws, const struct sz_jose *jose, char *out, size_t *out_n) SZ_MUST_CHECK;

#define SZ_JWS_TRIES_MAX 8 /* keys tried for one token: no kid, or a kid that several keys have */
enum { SZ_JWS_NO_KEY = 2, SZ_JWS_MISFIT = 3 };

/*
 * Finds the key by kid and algorithm and checks the signature.  0 with *verified_by; SZ_JWS_BAD; SZ_JWS_NO_KEY: no key
 * of that kid, or none at all of that kind (new keys may heal it); SZ_JWS_MISFIT: the kid is there but does not do that
 * algorithm.  The algorithm's being allowed is the caller's check.
 */
int sz_jws_verify(const struct sz_jwks *keys, const struct sz_jose *jose, const struct sz_jws *jws,
                  const struct sz_jwk **verified_by) SZ_MUST_CHECK;

#endif

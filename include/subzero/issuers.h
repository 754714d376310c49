/*
 * Issuers and their keys: from a compact token to a validated identity.  Built from the
 * configuration on the service thread, immutable afterwards but for key sets, which are swapped
 * whole.  Verification runs on any loop thread, never blocks and asks nobody: where a key has to be
 * fetched the verdict says so (missing_key) and subzero/provider.h knows whom to ask.
 */
#ifndef SUBZERO_ISSUERS_H
#define SUBZERO_ISSUERS_H

#include "subzero/base.h"
#include "subzero/conf.h"
#include "subzero/identity.h"
#include "subzero/reason.h"
#include "subzero/time.h"

#define SZ_TOKEN_MAX (16 * 1024) /* longer tokens are refused undecoded */

struct sz_issuers;

/* Reads key files and secrets: blocking.  NULL: mistakes in *m.  `conf` must outlive it. */
struct sz_issuers *sz_issuers_new(const struct sz_conf *conf, struct sz_mistakes *m);
void sz_issuers_free(struct sz_issuers **issuers);

/* Changes when any issuer's settings, the vocabulary or any key set changes: the reject cache's generation. */
uint64_t sz_issuers_generation(const struct sz_issuers *issuers);
/* The current generation of one issuer (by process-wide registry id), 0 when it is not configured. */
uint64_t sz_issuer_generation(const struct sz_issuers *issuers, unsigned id);
/* Registry id (sz_identity.issuer) of conf->issuers[index]; and back: -1 when not configured any more. */
unsigned sz_issuer_id(const struct sz_issuers *issuers, size_t index);
int sz_issuer_index(const struct sz_issuers *issuers, unsigned id);
/* False: the key that verified this fact has been removed from its issuer's set. */
bool sz_issuer_key_alive(const struct sz_issuers *issuers, unsigned issuer_id, uint32_t key_id);
/* What a revocation of that key's `kid` is known by: sz_revocation_name; 0: it has none, or is gone. */
uint64_t sz_issuer_key_name(const struct sz_issuers *issuers, unsigned issuer_id, uint32_t key_id);
/* Its RFC 7638 thumbprint, the same on every instance.  False: it is gone.  And back: 0 when the issuer has no such
 * key. */
bool sz_issuer_key_thumbprint(const struct sz_issuers *issuers, unsigned issuer_id, uint32_t key_id, uint8_t out[32]);
uint32_t sz_issuer_key_by_thumbprint(const struct sz_issuers *issuers, unsigned issuer_id,
                                     const uint8_t thumbprint[32]);
/* True when at least one issuer has a usable key (readiness). */
bool sz_issuers_usable(const struct sz_issuers *issuers);

/* Stands for what a token names, in this process: the hash of an issuer, a name and a value under a key of its own. */
uint64_t sz_issuer_claim_hash(unsigned issuer_id, struct sz_slice name, struct sz_slice value);

/* JWT-shaped: three segments, the first decoding to a JSON object; anything else is opaque.  NONE: empty. */
enum sz_credential_kind sz_credential_kind(struct sz_slice token);

/*
 * What of a token a revocation is about: of a JWT what is signed, without the signature, which anybody could write in a
 * second way (with ES256, s and n - s are equally good); of an opaque token all of it.
 */
struct sz_slice sz_token_signed(struct sz_slice token);

struct sz_verified {
    enum sz_reason reason; /* SZ_REASON_allowed: identity is valid */
    bool heals;            /* a rejection that time or new keys may heal (nbf, iat in the future, unknown kid) */
    int64_t heals_at;      /* unix seconds when time heals it, 0 = unknown */
    bool missing_key;      /* ... because a key is missing that a fetch might bring: subzero/provider.h */
    bool ask;     /* the issuer has no keys here: it is to be asked about the token (reason then says nothing) */
    int issuer;   /* whose token it claims to be: index into conf->issuers, -1: nobody's */
    uint64_t kid; /* with missing_key: stands for the kid; 0: the token names none */
    struct sz_text detail; /* for the log and `token inspect`; never the token, never a claim's value */
};

/*
 * Verifies a compact JWS and its claims against the configured issuer named by `iss` (exact).
 * Order: size, shape, header, issuer, algorithm on the issuer's list and fitting the key, key by kid, signature,
 * then claims (exp, nbf, iat, aud, typ, required, lifetime).  identity is filled when the reason is
 * `allowed`.  0, or negative when something broke (treat as identity_unavailable).
 */
int sz_jwt_verify(const struct sz_issuers *issuers, struct sz_slice token, struct sz_wall now,
                  struct sz_identity *identity, struct sz_verified *out) SZ_MUST_CHECK;

#define SZ_LOGOUT_TEXT 255 /* bytes of `sub` and `sid`, as OpenID Connect bounds them */
struct sz_logout {         /* what a logout token says */
    char sub[SZ_LOGOUT_TEXT + 1], sid[SZ_LOGOUT_TEXT + 1];
    size_t sub_n, sid_n; /* 0: absent; at least one is there */
    int64_t iat, until;  /* unix seconds; until: when the token itself is over */
    uint64_t jti;        /* stands for its `jti` */
};
/*
 * A logout token (OpenID Connect Back-Channel Logout 1.0, 2.4 and 2.6) of an issuer that has backchannel_logout at
 * `path`.  The verdict as sz_jwt_verify gives it, with missing_key where a fetch may help; *out with `allowed`.
 */
int sz_logout_verify(const struct sz_issuers *issuers, struct sz_slice path, struct sz_slice token, struct sz_wall now,
                     struct sz_logout *out, struct sz_verified *verdict) SZ_MUST_CHECK;

/*
 * Header and claims for people, NOT verified, several lines of ASCII.  -EINVAL: no JWT; *why.  Allocates; for the
 * command line.
 */
int sz_jwt_describe(struct sz_slice token, struct sz_wall now, struct sz_buf *out, struct sz_text *why) SZ_MUST_CHECK;

/* ---- making tokens (demo issuer, token mint, identity assertions): fga/sign.c ---------------------------------- */

struct sz_signer;
/* From a private JWK (RSA, EC, OKP, oct), PEM, or several JWKs, one a line: the first signs, all are published, so that
 * keys rotate.  Blocking.  NULL: *why. */
struct sz_signer *sz_signer_new(struct sz_slice key, struct sz_text *why);
void sz_signer_free(struct sz_signer **signer);
/*
 * Compact JWS over a JSON claims object; typ e.g. "at+jwt".  *out from pool.  Any thread, several at once (all workers
 * sign assertions with the one of their snapshot): nothing in the signer changes.
 */
int sz_signer_sign(struct sz_signer *signer, enum sz_alg alg, const char *typ, struct sz_slice claims,
                   struct sz_pool *pool, struct sz_slice *out) SZ_MUST_CHECK;
/* The public half as a JWK Set document. */
int sz_signer_jwks(struct sz_signer *signer, struct sz_buf *out) SZ_MUST_CHECK;
enum sz_alg sz_signer_default_alg(const struct sz_signer *signer);
/* A new private JWK (alg decides the kind), with kid = RFC 7638 thumbprint. */
int sz_key_generate(enum sz_alg alg, struct sz_buf *jwk) SZ_MUST_CHECK;

#endif

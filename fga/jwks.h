/*
 * A set of verification keys: parsed from a JWK Set document (RFC 7517), then immutable and counted.
 * An issuer's set is swapped as a whole; who verifies holds a reference for that long.
 */
#ifndef SZ_FGA_JWKS_H
#define SZ_FGA_JWKS_H

#include "fga/jwk.h"

#define SZ_JWKS_BYTES_MAX (512 * 1024)
#define SZ_JWKS_KEYS_MAX  256 /* members of `keys`, usable or not; more refuse the document */

struct sz_jwks {
    _Atomic uint32_t refs;
    uint64_t hash; /* of the keys that are in it, in any order: the same keys, the same hash, on every instance */
    size_t n;
    struct sz_jwk keys[];
};

/* Told about each key that is left out.  `index`: position in the document. */
struct sz_jwks_notes {
    void (*skipped)(struct sz_jwks_notes *notes, size_t index, const char *why);
};

enum sz_jwks_kinds {
    SZ_JWKS_PUBLIC, /* oct keys are left out: a secret has no place in a document that others can read */
    SZ_JWKS_ANY,    /* oct too */
};

/*
 * 0 with one reference in *out, which may hold no key at all (n == 0).  -EINVAL: not a JWK Set; *why.
 * Keys that cannot be used are left out and the others kept (RFC 7517 section 5).  The keys are registered for
 * `issuer`. notes may be NULL.  Any thread; parses RSA and EC keys: not on a loop.
 */
int sz_jwks_parse(struct sz_slice document, uint16_t issuer, enum sz_jwks_kinds kinds, struct sz_jwks_notes *notes,
                  struct sz_jwks **out, struct sz_text *why) SZ_MUST_CHECK;
/* The set without keys. */
struct sz_jwks *sz_jwks_empty(void);
/*
 * `keys` and, first, one shared secret; consumes the reference to keys.  -EINVAL: *why, and keys is untouched.
 */
int sz_jwks_with_secret(struct sz_jwks **keys, struct sz_slice secret, uint16_t issuer,
                        struct sz_text *why) SZ_MUST_CHECK;

struct sz_jwks *sz_jwks_ref(struct sz_jwks *set);
void sz_jwks_unref(struct sz_jwks **set); /* the last one wipes and frees */

/*
 * The keys that may verify a token with this kid and algorithm, at most `max` of them; returns how many there are.
 * kid SZ_NONE: any key of a fitting kind.  A kid matches byte by byte, and keys without one are no
 * match for it.  *known: some key has that kid (whatever it can do); true for SZ_NONE.
 */
size_t sz_jwks_find(const struct sz_jwks *set, struct sz_slice kid, enum sz_alg alg, const struct sz_jwk **found,
                    size_t max, bool *known);

#endif

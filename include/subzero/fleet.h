/*
 * What instances that share a Redis have in common: one key, from which the names of their entries and the
 * seals of their values come.  Redis sees neither a name that can be guessed without the key nor a value
 * that it could read, change, move or keep alive (Z6).
 *
 * Immutable once made; counted by whoever holds it; any thread.
 */
#ifndef SUBZERO_FLEET_H
#define SUBZERO_FLEET_H

#include "subzero/base.h"

#define SZ_FLEET_KEY 32 /* bytes of redis.key_file, base64 in the file; `subzero key new` makes one */

struct sz_fleet;

/*
 * key: SZ_FLEET_KEY bytes.  seal_keys: the keys of cache.l2.seal_keys_file, the first of which seals and all of
 * which open; with none, seals come from `key` by HKDF as names do.  A fleet that begins to use seal keys lists its
 * first key among them for as long as entries sealed with it are to open.  Copies, and wipes nothing of the caller's.
 * NULL: a key of another length, or more than SZ_SEAL_KEYS_MAX.
 */
#define SZ_SEAL_KEYS_MAX 16
struct sz_fleet *sz_fleet_new(struct sz_slice key, const struct sz_slice *seal_keys, size_t seal_keys_n);
void sz_fleet_free(struct sz_fleet **fleet);

/* A fleet of one: a random key that never leaves the process (the demo). */
struct sz_fleet *sz_fleet_draw(void);

/*
 * A name: HMAC-SHA-256 under the fleet's naming key over the kind and the fields (built with sz_key_field), as 32
 * bytes. The same on every instance; nobody without the key can compute or invert it.
 */
void sz_fleet_name(const struct sz_fleet *fleet, const char *kind, struct sz_slice fields, uint8_t out[32]);
/* What names everything of a kind, for who does it often: the name is the HMAC of the fields under it.  A secret. */
struct sz_hmac_key;
void sz_fleet_namer(const struct sz_fleet *fleet, const char *kind, struct sz_hmac_key *namer);

/*
 * Seals: XChaCha20-Poly1305 with a random nonce.  What is bound but not stored: `kind` (a literal), the whole Redis
 * `key` that it is stored under, and `generation`.  What is inside: the plain bytes and `expires` (unix microseconds;
 * INT64_MAX: never).  An entry moved to another key, of another kind or generation does not open; Redis's own
 * TTL is never believed.
 */
struct sz_seal_bind {
    const char *kind;    /* "identity", "decision", "revocation", "block" */
    struct sz_slice key; /* the Redis key, whole; at most SZ_SEAL_NAME_MAX bytes */
    uint64_t generation; /* 0 where there is none */
};
#define SZ_SEAL_NAME_MAX 512
#define SZ_SEAL_OVERHEAD 56 /* bytes that a sealed value is longer than the plain one; see cache/seal.c */
void sz_seal(const struct sz_fleet *fleet, const struct sz_seal_bind *bind, int64_t expires, struct sz_slice plain,
             struct sz_buf *out);
enum sz_unseal {
    SZ_UNSEAL_OK,
    SZ_UNSEAL_BAD,    /* not ours, altered, moved, of another generation, sealed with a key that is gone */
    SZ_UNSEAL_EXPIRED /* genuine, and over */
};
/* Appends the plain bytes to out, which the caller wipes and frees; nothing is appended unless OK. */
enum sz_unseal sz_unseal(const struct sz_fleet *fleet, const struct sz_seal_bind *bind, int64_t wall_us,
                         struct sz_slice sealed, struct sz_buf *out, int64_t *expires);

#endif

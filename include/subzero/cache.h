/*
 * The caches.  They hold facts, never verdicts (Z5), and are keyed so that a client can
 * neither forge a hit nor choose its slot (Z7).
 */
#ifndef SUBZERO_CACHE_H
#define SUBZERO_CACHE_H

#include "subzero/base.h"
#include "subzero/crypto.h"
#include "subzero/identity.h"
#include "subzero/reason.h"
#include "subzero/time.h"

/*
 * Fingerprint of a credential: SipHash-2-4-128 under a random process key, over the kind and
 * the token.  `scope_id` tells apart what the same bytes mean in different places: 0 for a
 * JWT (its issuer is inside), the issuer's registry id + 1 for an opaque token.
 */
struct sz_fingerprint {
    struct sz_hash128 h;
};
struct sz_fingerprint sz_fingerprint(enum sz_credential_kind kind, uint32_t scope_id, struct sz_slice token);

/* ---- L1: identities ---------------------------------------------------------------- */

/*
 * One table for the process: contiguous arrays, set-associative, fixed memory from the start
 * (mapped, touched only when used).  get: any thread, no lock, no allocation, copies the record out.
 * put: any thread, try-lock on one set; one that finds the set locked is skipped.  drop/flush: any thread,
 * no lock, always done when they return (flush walks the table: 10 ms at 500,000).
 */
struct sz_token_cache;
/* NULL: errno.  capacity 1..500,000, rounded up to whole sets of 8; more than 140 bytes of text take several places. */
struct sz_token_cache *sz_token_cache_new(size_t capacity);
void sz_token_cache_free(struct sz_token_cache **cache);
/*
 * True and a copy in *out on a hit: present, now < its deadline, and wall < its exp.  Generation, key and
 * revocation checks are the caller's (it knows the configuration).  On false *out means nothing.
 */
bool sz_token_cache_get(struct sz_token_cache *cache, struct sz_fingerprint fp, struct sz_mono now, struct sz_wall wall,
                        struct sz_identity *out);
/*
 * After a miss: the token was verified before and has not expired, the fact alone has ended.  A hint about whom to
 * serve first, and nothing more.  It is true until the record's place is wanted.
 */
bool sz_token_cache_known(struct sz_token_cache *cache, struct sz_fingerprint fp, struct sz_wall wall);
/* Keeps the identity until `until` (already clipped by TTL and expiry).  False: not kept (too large, set busy). */
bool sz_token_cache_put(struct sz_token_cache *cache, struct sz_fingerprint fp, const struct sz_identity *id,
                        struct sz_mono now, struct sz_mono until);
void sz_token_cache_drop(struct sz_token_cache *cache, struct sz_fingerprint fp);
void sz_token_cache_flush(struct sz_token_cache *cache);

/* ---- rejected tokens: a smaller table of their own ---------------------------------------- */

struct sz_reject_cache;
struct sz_reject_cache *sz_reject_cache_new(size_t capacity);
void sz_reject_cache_free(struct sz_reject_cache **cache);
/*
 * A rejection is a fact about (token, issuer settings): `generation` is the hash over all issuers' settings and key
 * sets (sz_issuers_generation), so new keys or settings end it by themselves.
 */
bool sz_reject_cache_get(struct sz_reject_cache *cache, struct sz_fingerprint fp, uint64_t generation,
                         struct sz_mono now, enum sz_reason *reason);
void sz_reject_cache_put(struct sz_reject_cache *cache, struct sz_fingerprint fp, uint64_t generation,
                         enum sz_reason reason, struct sz_mono now, struct sz_mono until);
void sz_reject_cache_flush(struct sz_reject_cache *cache);

struct sz_cache_stats { /* summed over threads when read */
    uint64_t lookups, hits, inserts, evictions, expired, too_large, busy;
    uint64_t entries, capacity, bytes;
};
void sz_token_cache_stats(struct sz_token_cache *cache, struct sz_cache_stats *out);
void sz_reject_cache_stats(struct sz_reject_cache *cache, struct sz_cache_stats *out);

/*
 * Where a fact's end is computed, once for every cache: the earliest of ttl from now and the token's expiry
 * (seconds, wall) mapped onto the monotonic clock.
 */
struct sz_mono sz_fact_end(struct sz_mono now, struct sz_wall wall, struct sz_span ttl, int64_t exp_seconds);

#endif

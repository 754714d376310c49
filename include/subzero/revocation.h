/*
 * Revocations: what is refused although its issuer once said yes.  By token, `jti`, `sid`, subject, client, issuer, or
 * an issuer's key.  A bounded set; every instance has all of it in memory, on its disk where there is a state_dir, and
 * in Redis where there is one.
 *
 *   a request ──▶ is there anything newer than the fact?  (one load)
 *                    └─ yes ─▶ kinds that are ─▶ a look at the index for each      any thread, no lock
 *
 *   POST /revocations, a logout token ──▶ sz_revocations_add ──▶ applied here at once
 *                                             ├─▶ disk  (a thread of its own)  ┐ both: "done"
 *                                             └─▶ Redis (announced, sequenced) ┘ else: "applied here, not safe yet"
 *
 * A revocation is known by a digest of what it says, never by the value itself: no token, subject or session id is in
 * memory, on disk or in Redis because of it.
 */
#ifndef SUBZERO_REVOCATION_H
#define SUBZERO_REVOCATION_H

#include <stdatomic.h>

#include "subzero/base.h"
#include "subzero/time.h"

enum sz_revocation_kind {
    SZ_REVOKE_TOKEN,
    SZ_REVOKE_JTI,
    SZ_REVOKE_SID,
    SZ_REVOKE_SUBJECT,
    SZ_REVOKE_CLIENT,
    SZ_REVOKE_ISSUER,
    SZ_REVOKE_KID,
    SZ_REVOKE_KINDS
};
const char *sz_revocation_kind_name(enum sz_revocation_kind kind);              /* "token" ... */
bool sz_revocation_kind_from(struct sz_slice s, enum sz_revocation_kind *kind); /* false: no such kind */

/*
 * What a revocation is known by: SHA-256 over kind, the issuer's `iss` and the value, the same on every instance and
 * under every key.  TOKEN has no issuer, and its value is what sz_token_signed() gives; ISSUER has no value.
 */
void sz_revocation_digest(enum sz_revocation_kind kind, struct sz_slice iss, struct sz_slice value, uint8_t out[32]);
/*
 * Its first 64 bits: what facts carry and the index is asked by; never 0.  Two different values with one name would
 * refuse one token too many, never let one through.
 */
uint64_t sz_revocation_name(enum sz_revocation_kind kind, struct sz_slice iss, struct sz_slice value);
static inline uint64_t sz_revocation_name_of(const uint8_t digest[32])
{
    uint64_t name;
    memcpy(&name, digest, sizeof(name));
    return name != 0 ? name : 1;
}

/* ---- looking: any thread, no lock, no allocation ----------------------------------------------------------------- */

struct sz_revocations;

/* The part that every request reads; on a cache line that is written when something is revoked. */
struct sz_revocation_news {
    _Atomic uint64_t sequence;                /* grows with each revocation applied in this process */
    _Atomic uint64_t newest[SZ_REVOKE_KINDS]; /* the sequence of the newest of a kind; 0: there is none */
    _Atomic bool deaf;                        /* a Redis is configured and what it announces cannot be heard now */
};
const struct sz_revocation_news *sz_revocations_news(const struct sz_revocations *revocations);

/*
 * What a fact is to remember as identity.revocation: read before it is judged.  A fact that remembers s was judged by
 * all revocations up to s, so that later looks need consider newer ones alone.  0: by none.
 */
static inline uint64_t sz_revocation_sequence(const struct sz_revocation_news *news)
{
    return atomic_load_explicit(&news->sequence, memory_order_acquire);
}
static inline bool sz_revocation_newer(const struct sz_revocation_news *news, uint64_t since)
{
    return sz_revocation_sequence(news) > since;
}
/* What others revoke cannot be heard: nothing that was learned before is to be believed for long. */
static inline bool sz_revocation_deaf(const struct sz_revocation_news *news)
{
    return atomic_load_explicit(&news->deaf, memory_order_relaxed);
}
/* A bit for each kind of which there is something newer. */
uint32_t sz_revocation_kinds(const struct sz_revocation_news *news, uint64_t since);

struct sz_issued { /* when the fact's token was */
    bool known;
    int64_t iat, leeway; /* unix seconds, seconds */
};
/* `name` is revoked for a token issued then: all of it, or before a time that lies after (no iat, or iat <= t +
 * leeway). */
bool sz_revocations_cover(const struct sz_revocations *revocations, uint64_t name, const struct sz_issued *issued);

/* ---- revoking: the service thread -------------------------------------------------------------------------------- */

struct sz_revocation {
    uint8_t digest[32];
    uint8_t kind;    /* enum sz_revocation_kind */
    int64_t before;  /* unix seconds: tokens issued until then; INT64_MAX: all */
    int64_t expires; /* unix seconds: nothing that it ends can still be valid; INT64_MAX: never */
    int64_t made;    /* unix microseconds: when it was asked for */
};

enum sz_revoked {
    SZ_REVOKED_NEW,    /* disk and Redis have it, as far as there are any */
    SZ_REVOKED_STOOD,  /* it stood already, there too */
    SZ_REVOKED_UNSAFE, /* applied here; disk or Redis does not have it yet: tried again until it does */
    SZ_REVOKED_FULL,   /* not applied: revocation.capacity, or too many under way */
};
struct sz_revocation_op { /* the caller's memory, zero-initialised with on_done set */
    void (*on_done)(struct sz_revocation_op *op, enum sz_revoked result); /* once, never inside the call */
    struct sz_revocation_op *next;
    uint32_t record; /* position + 1 */
    bool stood, full;
    struct sz_mono deadline;
};
void sz_revocations_add(struct sz_revocations *revocations, const struct sz_revocation *revocation,
                        struct sz_revocation_op *op);
void sz_revocations_cancel(struct sz_revocations *revocations, struct sz_revocation_op *op); /* no-op when done */

/* ---- life: the service thread ------------------------------------------------------------------------------------ */

struct sz_loop;
struct sz_redis;
struct sz_fleet;

/*
 * `state_dir` SZ_NONE: nothing is kept on disk.  Reads what was saved: blocking.  NULL: *why (the directory is not ours
 * alone, another process uses it, the file is damaged, more saved than `capacity`).
 */
struct sz_revocations *sz_revocations_new(size_t capacity, struct sz_slice state_dir, struct sz_wall now,
                                          struct sz_text *why);
/* Begins to write, retry and forget on this loop, which outlives it or is stopped by sz_revocations_stop. */
void sz_revocations_start(struct sz_revocations *revocations, struct sz_loop *loop);
/* Waits for the write under way.  Operations that still wait are told how far they have come: UNSAFE where anything is
 * missing. */
void sz_revocations_stop(struct sz_revocations *revocations);
void sz_revocations_free(struct sz_revocations **revocations);

/*
 * After the start: shares revocations with all who use this Redis under this key.  Both outlive the stop.  on_deaf:
 * what others revoke cannot be heard any more, or can again; it may be NULL.
 */
void sz_revocations_follow(struct sz_revocations *revocations, struct sz_redis *redis, const struct sz_fleet *fleet,
                           void (*on_deaf)(void *arg, bool deaf), void *arg);

struct sz_revocations_look {
    size_t n, capacity, unsaved, unpublished;
    bool full;            /* something that others revoked did not fit */
    bool shared, deaf;    /* a Redis is configured; nothing can be heard of it now */
    struct sz_text fault; /* of the last write to disk or Redis, when it failed; else empty */
};
void sz_revocations_look(const struct sz_revocations *revocations, struct sz_revocations_look *out);

#endif

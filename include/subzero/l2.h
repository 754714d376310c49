/*
 * L2: facts that the instances of a fleet share through Redis, sealed (subzero/fleet.h).  A bad, moved, foreign or
 * over-aged value is a miss and is counted; a Redis that is slow, full or gone costs its timeout at most and never an
 * answer.  Writes are behind the answer and never awaited.
 *
 *   subzero:l2:v1:KIND:{HMAC(kind ‖ fields)}   ─▶   seal(plain, expires)          Redis forgets it, at the latest, by
 * PX
 *
 * Threads: what is made once is the process's; a look belongs to its loop's thread.
 */
#ifndef SUBZERO_L2_H
#define SUBZERO_L2_H

#include "subzero/identity.h"
#include "subzero/redis.h"

#define SZ_L2_VALUE_MAX (4 * 1024) /* bytes of a plain fact */
#define SZ_L2_WRITES    1024       /* writes under way in the process; further ones are left out and counted */

struct sz_l2;
/* conf: keys, lifetime.  NULL where no Redis is configured. */
struct sz_l2 *sz_l2_new(const struct sz_conf *conf);
void sz_l2_free(struct sz_l2 **l2); /* after the last client of its Redis */

struct sz_l2_name {
    char text[112];
    size_t n;
};
/* kind: a literal, "identity" or "decision"; fields: built with sz_key_field, in one piece or many. */
void sz_l2_name(const struct sz_l2 *l2, const char *kind, const struct sz_slice *fields, size_t fields_n,
                struct sz_l2_name *out);

/* Zero-initialise, set on_done; alive until it ran or the look was cancelled. */
struct sz_l2_look {
    /* Once, never inside the start.  plain: borrowed, SZ_NONE for a miss of whatever cause. */
    void (*on_done)(struct sz_l2_look *look, struct sz_slice plain);
    struct sz_redis_op op;
    struct sz_l2 *l2;
    struct sz_loop *loop;
    const char *kind;
    struct sz_l2_name name;
};
/* 0: on_done will run.  1: a miss already (not connected, breaker open), nothing will be called. */
int sz_l2_get(struct sz_l2 *l2, struct sz_redis *redis, struct sz_loop *loop, const char *kind,
              const struct sz_l2_name *name, struct sz_mono deadline, struct sz_l2_look *look) SZ_MUST_CHECK;
void sz_l2_cancel(struct sz_l2_look *look); /* no-op when not under way */
/* Until `expires` or cache.l2.ttl from now, whichever is earlier. */
void sz_l2_put(struct sz_l2 *l2, struct sz_redis *redis, struct sz_loop *loop, const char *kind,
               const struct sz_l2_name *name, struct sz_slice plain, struct sz_wall expires);

/*
 * An identity as bytes that mean the same on every instance: the issuer is known by its generation, the verifying key
 * by its thumbprint (zeros: there was none).  What a process counts for itself (registry ids, revocations seen) stays
 * out.
 */
void sz_l2_pack(const struct sz_identity *id, const uint8_t thumbprint[32], struct sz_buf *out);
/* False: not one of ours.  issuer, key_id and revocation are 0: the caller's to set. */
bool sz_l2_unpack(struct sz_slice bytes, struct sz_identity *id, uint8_t thumbprint[32]);

/*
 * A lease: of all instances that miss the same fact, one asks its source.  Whoever holds it renews it while it works;
 * one that died loses it by itself.  Best effort: without Redis everybody asks.
 */
struct sz_l2_lease {
    void (*on_done)(struct sz_l2_lease *lease,
                    bool taken); /* once, never inside the start; taken also when Redis fails */
    struct sz_redis_op op;
    struct sz_l2 *l2;
    struct sz_redis *redis;
    struct sz_loop *loop;
    struct sz_timer renew;
    struct sz_defer alone; /* Redis could not be asked */
    struct sz_l2_name name;
    char owner[33];
    bool held;
};
void sz_l2_lease_take(struct sz_l2 *l2, struct sz_redis *redis, struct sz_loop *loop, const struct sz_l2_name *name,
                      struct sz_mono deadline, struct sz_l2_lease *lease);
void sz_l2_lease_drop(struct sz_l2_lease *lease);        /* gives it back, or stops asking for it */
struct sz_span sz_l2_lease_time(const struct sz_l2 *l2); /* 0: no leases */

struct sz_l2_stats {
    uint64_t looks, hits, bad, expired, writes, refused; /* refused: writes that were not done, or not taken */
    bool paused;                                         /* Redis is full: no writes for a while */
};
void sz_l2_stats(const struct sz_l2 *l2, struct sz_mono now, struct sz_l2_stats *out);

#endif

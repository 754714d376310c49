/*
 * Revocations in Redis: one hash, so that a script sees all of it and a cluster keeps it in one place.
 *
 *   subzero:{TAG}:revocations     e      which hash this is: drawn when it is made, so that one that was flushed and
 * made again is known for another s      the last number N      a sealed record, as many as are in force
 *   subzero:{TAG}:revoked         "N sealed", announced when it is written
 *
 * TAG is a name under the fleet's key.  Numbers, `e` and `s` are hints: whoever can write to Redis can make instances
 * read all of it again, or nothing at all.  What a record says is sealed; instances keep what they have heard of and
 * write again what Redis has lost.
 */
#ifndef SZ_CACHE_REVOCATION_SHARED_H
#define SZ_CACHE_REVOCATION_SHARED_H

#include "cache/revocation.h"
#include "subzero/fleet.h"
#include "subzero/metrics.h"
#include "subzero/redis.h"

#define SZ_SHARED_SEALED    (SZ_REVOCATION_PLAIN + SZ_SEAL_OVERHEAD)
#define SZ_SHARED_PAGE      200 /* records read at once */
#define SZ_SHARED_PUBLISHES 16  /* under way at once */

struct sz_revocation_publish {
    struct sz_redis_op op;
    struct sz_revocation_shared *shared;
    bool busy;
    size_t at;
    struct sz_revocation sent;
    uint64_t replaced; /* the number it had */
};

enum sz_shared_reading { SZ_READING_NOTHING, SZ_READING_TAIL, SZ_READING_ALL };

struct sz_revocation_shared {
    struct sz_revocations *set;
    struct sz_redis *redis;
    const struct sz_fleet *fleet;
    char key[64], channel[64];
    struct sz_redis_listener listener;
    bool up;      /* announcements are heard */
    bool current; /* and everything before them has been read */

    char epoch[17];
    uint64_t last;   /* everything up to this number has been seen */
    uint64_t newest; /* the last number there was when the whole look began */
    uint32_t sync;   /* counts whole looks */
    size_t numbered; /* records with a number */
    char cursor[24];
    bool all_wanted, tail_wanted;
    enum sz_shared_reading reading;
    struct sz_redis_op read;
    struct sz_timer poll;
    struct sz_mono all_at; /* the next whole look */
    unsigned failures;

    struct sz_revocation_publish publish[SZ_SHARED_PUBLISHES];
    size_t publishing;
    struct sz_mono publish_at; /* not before */
    struct sz_text fault;

    uint64_t forget[24];
    size_t forget_n;
    struct sz_redis_op forgetting;

    void (*on_deaf)(void *arg, bool deaf);
    void *arg;
    struct sz_series delay, heard, forged, republished;
};

/* What came sealed from Redis: -1 forged, 0 nothing new, 1 new here.  *r: the record. */
int sz_revocation_hear(struct sz_revocation_shared *shared, uint64_t number, struct sz_slice sealed,
                       struct sz_revocation *r);
/* Redis has it under this number, as it is here. */
void sz_revocation_numbered(struct sz_revocation_shared *shared, struct sz_revocation_record *record, uint64_t number);
/* Everything, and then what of ours was not there is written again. */
void sz_revocation_read_all(struct sz_revocation_shared *shared);
void sz_revocation_bind(const struct sz_revocation_shared *shared, struct sz_seal_bind *bind);
bool sz_revocation_number(struct sz_slice text, uint64_t *number);

/* ---- revocation_publish.c ---------------------------------------------------------------------------------------- */

void sz_revocation_publish_kick(struct sz_revocation_shared *shared);

#endif

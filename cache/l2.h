/* The inside of L2. */
#ifndef CACHE_L2_H
#define CACHE_L2_H

#include "subzero/crypto.h"
#include "subzero/fleet.h"
#include "subzero/l2.h"
#include "subzero/metrics.h"

struct sz_l2_namer { /* a name costs the hash of its fields, and nothing for its kind */
    const char *kind;
    struct sz_hmac_key key;
};

struct sz_l2 {
    struct sz_fleet *fleet;
    struct sz_l2_namer namers[2]; /* "identity", "decision" */
    struct sz_span ttl, lease;
    struct sz_redis_script renew;
    struct sz_series bad_series;
    _Atomic int64_t paused_until;
    _Atomic uint32_t under_way;
    _Atomic uint64_t looks, hits, bad, expired, writes, refused;
};

extern const char sz_l2_lease_script[]; /* renews for ARGV[2] ms, or with 0 ends, what ARGV[1] owns */

#endif

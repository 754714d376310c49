/*
 * Passive health of an upstream's urls, shared by all threads.  Only what says "nothing is there" counts: failed
 * connects and resets.  A status never does, and a timeout of a slow answer does not either: those say something about
 * the request.  Three in a row put a url aside for 10 s, never the last one left.  Pure: atomics and arithmetic.
 */
#ifndef SZ_EDGE_UPSTREAM_HEALTH_H
#define SZ_EDGE_UPSTREAM_HEALTH_H

#include <stdatomic.h>

#include "subzero/base.h"
#include "subzero/time.h"

#define SZ_HEALTH_FAILURES 3
#define SZ_HEALTH_EJECT    SZ_SEC(10)
#define SZ_URLS_MAX        64 /* of one upstream: a set of them is a mask in one word */

struct sz_health { /* zeroed = healthy */
    _Atomic uint32_t failures;
    _Atomic int64_t until; /* microseconds on the monotonic clock; 0 = never was ejected */
};

/* Any thread.  True when this failure put the url aside. */
bool sz_health_failed(struct sz_health *all, size_t n, size_t at, struct sz_mono now);
void sz_health_ok(struct sz_health *health);
bool sz_health_usable(const struct sz_health *health, struct sz_mono now);
/*
 * The next url in turn that is usable and not in `tried` (a bit per url); when every untried one is ejected, the
 * next untried one all the same: a guess is better than a refusal.  n when all were tried.  *turn belongs to the
 * caller's thread.
 */
size_t sz_health_pick(const struct sz_health *all, size_t n, unsigned *turn, uint64_t tried, struct sz_mono now);

#endif

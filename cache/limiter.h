/* The inside of the limiter: limiter.c (local, and what happens without the store), limiter_redis.c, limiter_lease.c.
 */
#ifndef SZ_CACHE_LIMITER_H
#define SZ_CACHE_LIMITER_H

#include "guard/limit_table.h"
#include "subzero/addr_count.h"
#include "subzero/fleet.h"
#include "subzero/limiter.h"
#include "subzero/metrics.h"
#include "subzero/redis.h"

extern const char sz_lua_limit_bucket[], sz_lua_limit_window[]; /* cache/limit_*.lua */

#define SZ_LIMITER_TABLES 3

struct sz_limiter {
    struct sz_limit_table *buckets;
    struct sz_limit_table *addresses;   /* apart: a flood of addresses gives up no tenant's bucket */
    struct sz_limit_table *emergencies; /* one bucket for each limit of a route */
    struct sz_addr_count *in_flight;
    struct sz_fleet *fleet; /* names keys; NULL: no Redis */
    struct sz_limit_table
        *leases; /* what was taken and is not spent yet, and what is known to be empty; NULL likewise */
    struct sz_redis_script scripts[2]; /* by enum sz_limit_kind */
    struct sz_series unreadable;
    struct {
        struct sz_series series;
        uint64_t told;
    } given_up[SZ_LIMITER_TABLES]; /* buckets, addresses, leases */
};

/* Asks the script for up to `want` requests' worth.  As sz_limiter_ask. */
int sz_limiter_ask_redis(struct sz_limit_op *op, uint64_t want) SZ_MUST_CHECK;

/* ---- leases: of a policy that has them ----------------------------------------------------------------------------
 */

/* True: answered from what is held.  Else *want is how much to ask the script for. */
bool sz_lease_spend(struct sz_limit_op *op, uint64_t *want);
/* What the script granted beyond the one that is spent now is kept; a denial is, too. */
void sz_lease_granted(struct sz_limit_op *op, uint64_t granted);
/* The script could not be asked. */
void sz_lease_failed(struct sz_limit_op *op);

#endif

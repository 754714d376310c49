/* The inside of the limiter. */
#ifndef SZ_CACHE_LIMITER_H
#define SZ_CACHE_LIMITER_H

#include "subzero/addr_count.h"
#include "subzero/limiter.h"

struct sz_limiter {
    struct sz_limit_table *buckets;
    struct sz_limit_table *addresses; /* apart: a flood of addresses gives up no tenant's bucket */
    struct sz_addr_count *in_flight;
};

#endif

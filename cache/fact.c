/*
 * When a fact ends.  One function for every cache, because the mistake is always the same: a
 * lifetime that outlives the token, or a sum that wraps.
 */
#include "subzero/cache.h"

#define US 1000000

struct sz_mono sz_fact_end(struct sz_mono now, struct sz_wall wall, struct sz_span ttl, int64_t exp_seconds)
{
    int64_t exp_us, left;

    if (exp_seconds > INT64_MAX / US)
        exp_us = INT64_MAX;
    else if (exp_seconds < 0)
        exp_us = 0; /* long past; keeps the difference below in range */
    else
        exp_us = exp_seconds * US;
    if (wall.us >= exp_us || ttl.us <= 0)
        return now;
    /* exp_us > wall.us; the difference can only leave the range when wall is before 1970. */
    left = wall.us < 0 && exp_us > INT64_MAX + wall.us ? INT64_MAX : exp_us - wall.us;
    return sz_earlier(sz_after(now, ttl), sz_after(now, (struct sz_span){left}));
}

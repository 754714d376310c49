/* The one place where a fact's end is computed. */
#include <criterion/criterion.h>

#include "subzero/cache.h"

#define S INT64_C(1000000)

Test(fact, ends_at_the_earliest)
{
    const struct {
        int64_t now, wall, ttl, exp, end; /* us, us, us, s, us */
    } rows[] = {
        {5 * S, 100 * S, 30 * S, 1000, 35 * S},                     /* ttl */
        {5 * S, 100 * S, 30 * S, 110, 15 * S},                      /* exp */
        {5 * S, 100 * S, 30 * S, 130, 35 * S},                      /* both at once */
        {5 * S, 100 * S + 1, 30 * S, 101, 6 * S - 1},               /* to the microsecond */
        {5 * S, 100 * S, 30 * S, 100, 5 * S},                       /* over now */
        {5 * S, 100 * S, 30 * S, 99, 5 * S},                        /* exp before now */
        {5 * S, 100 * S, 30 * S, 0, 5 * S},                         /* never set */
        {5 * S, 100 * S, 30 * S, -1, 5 * S},                        /* negative */
        {5 * S, 100 * S, 30 * S, INT64_MIN, 5 * S},                 /* would wrap */
        {5 * S, 100 * S, 30 * S, INT64_MAX, 35 * S},                /* would wrap the other way */
        {5 * S, 100 * S, 30 * S, INT64_MAX / S + 1, 35 * S},        /* the first that would */
        {5 * S, 100 * S, INT64_MAX, INT64_MAX, INT64_MAX - 95 * S}, /* no sum that wraps */
        {5 * S, 0, INT64_MAX, INT64_MAX, INT64_MAX},                /* never */
        {INT64_MAX - 1, 0, 30 * S, INT64_MAX, INT64_MAX},           /* a clock near its end */
        {5 * S, 100 * S, 0, 1000, 5 * S},                           /* ttl 0: keeps nothing */
        {5 * S, 100 * S, -1, 1000, 5 * S},                          /* negative ttl */
        {5 * S, -100 * S, 30 * S, 10, 35 * S},                      /* wall before 1970 */
        {5 * S, INT64_MIN, 30 * S, INT64_MAX, 35 * S},              /* absurdly so */
        {5 * S, INT64_MIN, 30 * S, -1, 35 * S},                     /* ... and exp there too, yet later */
        {5 * S, INT64_MAX, 30 * S, INT64_MAX, 5 * S},               /* wall at the end of time */
    };

    for (size_t i = 0; i < SZ_COUNT(rows); i++) {
        struct sz_mono end = sz_fact_end((struct sz_mono){rows[i].now}, (struct sz_wall){rows[i].wall},
                                         (struct sz_span){rows[i].ttl}, rows[i].exp);
        cr_assert_eq(end.us, rows[i].end, "row %zu: %lld", i, (long long)end.us);
    }
}

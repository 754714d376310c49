/*
 * Time wears its unit.  Durations and deadlines live on the monotonic clock;
 * wall time is for claims, audit records and Redis alone.  One-field structs so
 * that the compiler refuses to mix them.  Modules are handed `now`; only
 * src/base/clock.c and src/loop read a clock.
 */
#ifndef SUBZERO_TIME_H
#define SUBZERO_TIME_H

#include <stdint.h>

struct sz_mono { /* CLOCK_MONOTONIC instant; 0 is never handed out, so {0} can mean "unset" */
    int64_t us;
};
struct sz_wall { /* microseconds since 1970-01-01T00:00:00Z, no leap seconds */
    int64_t us;
};
struct sz_span { /* a duration */
    int64_t us;
};

#define SZ_US(n)  ((struct sz_span){(n)})
#define SZ_MS(n)  ((struct sz_span){(int64_t)(n)*1000})
#define SZ_SEC(n) ((struct sz_span){(int64_t)(n)*1000000})
#define SZ_NEVER  ((struct sz_mono){INT64_MAX})

struct sz_mono sz_mono_read(void);
struct sz_wall sz_wall_read(void);

static inline struct sz_mono sz_after(struct sz_mono t, struct sz_span d) /* saturates at SZ_NEVER */
{
    return (struct sz_mono){d.us > 0 && t.us > INT64_MAX - d.us ? INT64_MAX : t.us + d.us};
}
static inline struct sz_span sz_between(struct sz_mono from, struct sz_mono to)
{
    return (struct sz_span){to.us - from.us};
}
static inline struct sz_mono sz_earlier(struct sz_mono a, struct sz_mono b)
{
    return a.us < b.us ? a : b;
}
static inline int64_t sz_wall_seconds(struct sz_wall t) /* floor */
{
    return t.us / 1000000 - (t.us % 1000000 < 0);
}

/* RFC 3339 in UTC with `digits` fractional digits (0, 3, 6, 9) and a NUL; returns the length. */
int sz_wall_format(struct sz_wall t, int digits, char out[32]);

#endif

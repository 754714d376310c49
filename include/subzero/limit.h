/*
 * Rate limits as arithmetic: what a bucket or a window holds, and whether a request still fits.  Pure calculators: no
 * clock, no I/O, no memory; `now` counts in microseconds on whatever clock the caller keeps to (Redis's, or the
 * monotonic one).  cache/limit_bucket.lua and cache/limit_window.lua do the same steps on the same integers, so that
 * a state means the same in Redis and here.
 *
 *   token bucket     tokens in millionths; refill = floor(elapsed x n / d), n/d reduced; a denial changes nothing
 *   sliding window   windows of W ms stand side by side; allowed while
 *                    current x W + previous x (W - elapsed) < limit x W, for a request of cost 1
 *
 * Every product stays below 2^52: exact in the doubles of Lua as in 64 bits.  Any thread.
 */
#ifndef SUBZERO_LIMIT_H
#define SUBZERO_LIMIT_H

#include "subzero/base.h"
#include "subzero/time.h"

#define SZ_LIMIT_TOKEN       UINT64_C(1000000) /* micro-tokens of a token */
#define SZ_LIMIT_PRODUCT_MAX (UINT64_C(1) << 52)
#define SZ_LIMIT_COUNT_MAX   UINT64_C(1000000000) /* largest capacity, limit or cost, in tokens or requests */

enum sz_limit_kind { SZ_LIMIT_BUCKET, SZ_LIMIT_WINDOW };

struct sz_limit_rule {
    enum sz_limit_kind kind;
    uint64_t capacity; /* BUCKET: micro-tokens; WINDOW: what fits into one */
    uint64_t cost;     /* of one request, likewise; 1..capacity */
    uint64_t n, d;     /* BUCKET: n/d micro-tokens a microsecond; n 0: never refilled */
    uint64_t fill;     /* BUCKET: microseconds that fill an empty one; 0 with n 0 */
    uint64_t window;   /* WINDOW: its milliseconds */
    uint64_t largest;  /* product that the rule can lead to */
};

/* `tokens` come back in every `per`; all counts in tokens, at most SZ_LIMIT_COUNT_MAX.  -ERANGE: a product of 2^52. */
int sz_limit_bucket(uint64_t capacity, uint64_t tokens, struct sz_span per, uint64_t cost,
                    struct sz_limit_rule *out) SZ_MUST_CHECK;
/* A bucket one second of its rate deep, but at least one request's worth: what is let through without a store. */
int sz_limit_emergency(uint64_t tokens, struct sz_span per, uint64_t cost, struct sz_limit_rule *out) SZ_MUST_CHECK;
/* Likewise; window: whole milliseconds. */
int sz_limit_window(uint64_t limit, struct sz_span window, uint64_t cost, struct sz_limit_rule *out) SZ_MUST_CHECK;

/* What is kept of one key.  BUCKET: micro-tokens, and when they were that many (us).  WINDOW: number of the window,
 * and its count << 32 | the count of the one before. */
struct sz_limit_state {
    uint64_t a, b;
};

/* Untouched: a full bucket, an empty window. */
struct sz_limit_state sz_limit_fresh(const struct sz_limit_rule *rule, uint64_t now);
/* Takes as many of `want` requests as fit; how many: 0 is a denial and leaves the state as it was. */
uint64_t sz_limit_take(const struct sz_limit_rule *rule, struct sz_limit_state *state, uint64_t now, uint64_t want);
/* When (us) the state says no more than a fresh one would; UINT64_MAX: never. */
uint64_t sz_limit_over(const struct sz_limit_rule *rule, const struct sz_limit_state *state);

struct sz_limit_view {
    uint64_t left;        /* whole tokens, or what still fits into the window */
    struct sz_span reset; /* until nothing is held against the key any more; INT64_MAX: never */
    struct sz_span retry; /* until one request fits; 0: now; INT64_MAX: never */
};
void sz_limit_look(const struct sz_limit_rule *rule, const struct sz_limit_state *state, uint64_t now,
                   struct sz_limit_view *out);

/* ---- a table of states ------------------------------------------------------------------------------------------ */

/*
 * Fixed memory for the whole process, mapped at the start and touched as it fills.  A set is locked for some tens of
 * nanoseconds by whoever works on one of its seven keys; nobody calls out, waits or allocates meanwhile, so admission
 * is exact under any race.  Keys are keyed hashes: nobody can choose a set.  A full set gives up the state that is
 * nearest to a fresh one; those that are over cost nothing.
 *
 * `now`: microseconds of one clock for the whole table.  Any thread.
 */
struct sz_limit_table;

struct sz_limit_table *sz_limit_table_new(size_t keys); /* at least so many; NULL: errno */
void sz_limit_table_free(struct sz_limit_table **table);
/* `key`: whatever bytes name it; hashed under a key of the table.  view: NULL, or how it stands afterwards. */
uint64_t sz_limit_table_take(struct sz_limit_table *table, struct sz_slice key, const struct sz_limit_rule *rule,
                             uint64_t now, uint64_t want, struct sz_limit_view *view);
struct sz_limit_table_look {
    size_t keys, bytes; /* room */
    uint64_t given_up;  /* states that were not over yet */
};
void sz_limit_table_look(const struct sz_limit_table *table, struct sz_limit_table_look *out);

#endif

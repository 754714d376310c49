/*
 * What the hot path would otherwise compute per request, computed once per snapshot: which client
 * headers go, which identity headers exist, a route's challenge and its metric series.
 */
#ifndef SZ_PIPELINE_PLAN_H
#define SZ_PIPELINE_PLAN_H

#include <stdatomic.h>

#include "pipeline/nameset.h"
#include "subzero/conf.h"
#include "subzero/metrics.h"
#include "subzero/reason.h"

struct sz_route_plan {
    struct sz_nameset strip;    /* every client header this route removes */
    struct sz_slice scope_list; /* "read:a write:b" for insufficient_scope challenges */
    const char *label;          /* the route's id as metric label */
    /* requests_total by allow and reason: handle + 1, 0 = not registered yet */
    _Atomic uint32_t series[2][SZ_REASON_COUNT];
};

struct sz_limit_plan { /* of one rate limit */
    const char *label;
    struct sz_slice policy; /* its part of RateLimit-Policy */
    /* ratelimit_decisions_total by allow and reason: as above */
    _Atomic uint32_t series[2][SZ_REASON_COUNT];
};

struct sz_plan {
    struct sz_route_plan *routes;   /* one per conf->routes */
    struct sz_route_plan unmatched; /* label "none"; strips what every route strips */
    struct sz_limit_plan *limits;   /* one per conf->rate_limits */
    struct sz_strings identity;     /* every header that we or any route sets, for decide answers */
};
struct sz_plan *sz_plan_new(const struct sz_conf *conf, struct sz_pool *pool);

/* The names we set ourselves, lower-case; the first SZ_OWN_IDENTITY say who the subject is. */
enum { SZ_OWN_IDENTITY = 5 };
extern const struct sz_slice sz_own_headers[];
extern const size_t sz_own_headers_n;

struct sz_series sz_plan_series(struct sz_route_plan *plan, bool allow, enum sz_reason reason);
struct sz_series sz_plan_limit_series(struct sz_limit_plan *plan, bool allow, enum sz_reason reason);

#endif

/*
 * Route patterns and the compiled router.  Host, then path, then method.  A path is matched
 * segment by segment, leftmost first: literal beats {x} beats a trailing *, whatever the order in the
 * file; an exact host beats *.suffix beats none.  If the most specific pattern has no route
 * for the method the answer is "method not allowed": never a less specific pattern.
 * The cost depends on the target's length, not on the number of routes.
 */
#ifndef SUBZERO_ROUTER_H
#define SUBZERO_ROUTER_H

#include "subzero/base.h"

#define SZ_PATH_PARAMS_MAX 16

struct sz_conf_route;
struct sz_router;

struct sz_route_match {
    const struct sz_conf_route *route;          /* NULL: see allow */
    struct sz_slice params[SZ_PATH_PARAMS_MAX]; /* borrowed from path, in pattern order */
    unsigned params_n;
    struct sz_slice allow; /* set when the path matched but no route takes the method: "GET, HEAD, POST" */
    const struct sz_conf_route *sibling; /* then any route of that pattern (for CORS) */
};

/*
 * Compiles into pool; `routes` must live as long.  NULL and *why: a malformed pattern, two routes that match the same
 * requests, or patterns so entangled that one request could take more than 256 steps (the loader reports positions
 * itself).
 */
struct sz_router *sz_router_new(const struct sz_conf_route *routes, size_t n, struct sz_pool *pool,
                                struct sz_text *why);
/*
 * host: lower-case, without port; path: canonical (subzero pipeline's sz_target), no query.
 * True when a route matches; false with allow.n > 0: 405; false with allow.n == 0: 404.
 * HEAD matches GET routes.  TRACE and CONNECT never match, nor what is not of upper-case letters and '-'.  Any thread;
 * no allocation.
 */
bool sz_router_match(const struct sz_router *router, struct sz_slice host, struct sz_slice path, struct sz_slice method,
                     struct sz_route_match *out);

#endif

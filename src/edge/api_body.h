/*
 * Bodies of api calls as questions.  Strict: one JSON object without duplicate or unknown members, of bounded depth;
 * types and relations are words, and what stands for an id is written as a template would write it, so that a service
 * that asks about `a:b` and a route that sees it in its path ask about the same thing.
 *
 * Pure functions over bytes, memory from the pool.  `why` is text for the one who asks.
 */
#ifndef SZ_EDGE_API_BODY_H
#define SZ_EDGE_API_BODY_H

#include "edge/api_ask.h"

#define SZ_API_EVALUATIONS_MAX 50 /* as many as OpenFGA takes in one call */

/* {user_id, resource_type, resource_id, relation, context?, consistency?}.  False: *why. */
bool sz_api_read_check(struct sz_slice body, struct sz_pool *pool, struct sz_check *check,
                       const char **why) SZ_MUST_CHECK;

/*
 * AuthZEN: {subject, action, resource, context?}, and with `several` the same as defaults of `evaluations`, and
 * `options`.  One question at least: what is wrong with one of several is said by the item, false is for the whole.
 */
struct sz_api_evaluations {
    struct sz_api_item *items;
    size_t n;
    bool several; /* the answer is a list */
    enum sz_api_until until;
};
bool sz_api_read_evaluations(struct sz_slice body, bool several, struct sz_pool *pool, struct sz_api_evaluations *out,
                             const char **why) SZ_MUST_CHECK;

#endif

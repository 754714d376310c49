/*
 * Ways back, for predictions: where to go on when a rule ends, and after that rule, and so on.  Many ways are kept as
 * one node of a shared graph, so that following all alternatives at once costs as much as the graph and not as the
 * number of paths through it.  Equal nodes have equal numbers.
 */
#ifndef SZ_ENGINE_DSL_STACK_H
#define SZ_ENGINE_DSL_STACK_H

#include "subzero/base.h"

#define SZ_WAY_NONE 0      /* the node that stands for the end of what is known */
#define SZ_WAY_END  0xffff /* the same as one of several ways of a node */

struct sz_way {
    uint16_t ret;
    uint32_t parent;
};
struct sz_ways {
    struct sz_way *pool; /* all nodes' ways, one after the other */
    size_t n_pool, cap_pool;
    struct {
        uint32_t first, n, next; /* next: in the same hash bucket */
    } * nodes;
    size_t n_nodes, cap_nodes;
    uint32_t buckets[1024];
    struct {
        uint32_t a, b, merged;
    } memo[1024];
    uint64_t work;
};

void sz_ways_reset(struct sz_ways *w); /* zero-initialise before the first */
void sz_ways_fini(struct sz_ways *w);
uint32_t sz_ways_push(struct sz_ways *w, uint16_t ret, uint32_t parent);
/* Both together.  wildcard: the end of what is known stands for every way, so it absorbs longer ones. */
uint32_t sz_ways_merge(struct sz_ways *w, uint32_t a, uint32_t b, bool wildcard);
/* The i-th way of a node; false: there are no more.  SZ_WAY_NONE has one, the end. */
bool sz_ways_at(const struct sz_ways *w, uint32_t node, size_t i, struct sz_way *out);

#endif

/*
 * The compiled router's arrays, shared by the compiler (router_build.c) and the matcher (router.c).
 *
 *   host ──▶ root node ──▶ trie over path segments ──▶ group: all routes of one pattern
 *
 *   nodes   one per distinct pattern prefix: {param child, group that ends here, group of a star here}
 *   edges   one open-addressing table for every literal child of every node, and for the hosts
 *   groups  {methods -> route, Allow list, where the parameters stand}
 *
 * Cost.  A request visits a node at most once, and from a node at most two children (the literal and
 * the parameter), so the visits are at most
 *      visits(node) = 1 + max over its literal children of visits(child) + visits(parameter child)
 * which the compiler computes for every root, adds up over the hosts that one request may try, and bounds
 * by SZ_ROUTER_STEPS_MAX: a configuration beyond it is refused.  A visit costs one hash of one segment
 * and at most SZ_EDGE_PROBES probes: the compiler chooses the table's seed and size so that none needs
 * more.  Neither number grows with the number of routes.
 */
#ifndef SZ_CONF_ROUTER_TABLE_H
#define SZ_CONF_ROUTER_TABLE_H

#include "conf/pattern.h"
#include "subzero/router.h"

#define SZ_ROUTER_STEPS_MAX 256
#define SZ_EDGE_PROBES      8

/* Parents that are no nodes: a host, exact or as the suffix behind "*". */
enum { SZ_EDGE_HOST = UINT32_MAX, SZ_EDGE_SUFFIX = UINT32_MAX - 1 };

struct sz_edge { /* 32 bytes: two on a cache line; p == NULL: free */
    const char *p;
    uint64_t hash;
    uint32_t n, parent, child;
};

struct sz_route_node { /* 0: none; node 0 is never used */
    uint32_t param, end, star;
    bool literals; /* has literal children */
};

struct sz_route_method {
    struct sz_slice name;
    const struct sz_conf_route *route;
};

struct sz_route_group {
    const struct sz_conf_route *any; /* takes every method but TRACE and CONNECT */
    const struct sz_route_method *methods;
    uint32_t methods_n;
    struct sz_slice allow;
    uint8_t params_n, param_at[SZ_PATH_PARAMS_MAX]; /* segment index of each parameter */
};

struct sz_router {
    struct sz_edge *edges;
    uint64_t mask, seed;
    struct sz_route_node *nodes;
    struct sz_route_group *groups; /* group 0 is never used */
    uint32_t any_root;             /* routes without a host; 0: none */
    bool hosts;                    /* any exact host at all */
    unsigned suffix_labels;        /* labels of the longest "*." suffix; 0: none */
};

static inline uint64_t sz_edge_mix(uint64_t a, uint64_t b)
{
    __uint128_t m = (__uint128_t)a * b;
    return (uint64_t)m ^ (uint64_t)(m >> 64);
}

/* Not keyed against attackers: they choose what is looked up, not what is stored, and probes are bounded. */
static inline uint64_t sz_edge_hash(uint64_t seed, uint32_t parent, const char *p, size_t n)
{
    uint64_t h = seed ^ ((uint64_t)parent * 0x9e3779b97f4a7c15ull), w;
    size_t left = n;
    for (; left >= 8; left -= 8, p += 8) {
        memcpy(&w, p, 8);
        h = sz_edge_mix(h ^ w, 0xa0761d6478bd642full);
    }
    w = 0;
    memcpy(&w, p, left);
    return sz_edge_mix(h ^ w, 0xe7037ed1a0b428dbull ^ n);
}

/* The child or 0. */
static inline uint32_t sz_edge_find(const struct sz_router *r, uint32_t parent, const char *p, size_t n)
{
    uint64_t h = sz_edge_hash(r->seed, parent, p, n);
    for (uint64_t i = 0; i < SZ_EDGE_PROBES; i++) {
        const struct sz_edge *e = &r->edges[(h + i) & r->mask];
        if (e->p == NULL)
            return 0;
        if (e->hash == h && e->parent == parent && sz_eq(sz_slice(e->p, e->n), sz_slice(p, n)))
            return e->child;
    }
    return 0;
}

#endif

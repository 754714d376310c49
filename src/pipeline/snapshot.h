/*
 * What a request is judged by: one configuration with everything made from it.  Built off
 * the loops (at the start, or by a reload's own thread), immutable, swapped whole.  A request keeps the snapshot it
 * began with.
 *
 * Counting: `refs` is atomic and counts worker threads (one each while it is current or any request of that
 * thread uses it); within a thread sz_worker counts requests without atomics.
 */
#ifndef SZ_PIPELINE_SNAPSHOT_H
#define SZ_PIPELINE_SNAPSHOT_H

#include <stdatomic.h>

#include "subzero/conf.h"
#include "subzero/fga_api.h"
#include "subzero/issuers.h"
#include "subzero/metrics.h"

struct sz_prefixes;
struct sz_signer;
struct sz_plan;

struct sz_snapshot {
    atomic_uint refs;
    struct sz_conf *conf;
    struct sz_issuers *issuers;
    struct sz_authz *source;      /* what authz is, or wraps once a gate has adopted it; borrowed */
    struct sz_authz *authz;       /* NULL when nobody asks */
    struct sz_fga_seed *seed;     /* for the hub's own store; NULL without fga.listen */
    struct sz_fga_keys *fga_keys; /* of fga.listen; NULL: none are needed */
    struct sz_prefixes *allowed_ranges, *listed_ranges; /* threat lists; NULL: none */
    struct sz_signer *assertion;                        /* signs X-Subzero-Assertion; NULL when off */
    struct sz_plan *plan;                               /* what the hot path would otherwise compute per request */
    struct sz_arena arena;                              /* owns the plan */
    void (*on_free)(void *arg); /* told when the last reference went (tests, the edge's TLS contexts) */
    void *on_free_arg;
};

/*
 * Takes conf over in every case.  Blocking (keys, models are read).  hub: the process's, which outlives all snapshots;
 * NULL where nothing is served.  NULL: mistakes in m.
 */
struct sz_snapshot *sz_snapshot_new(struct sz_conf *conf, struct sz_fga_hub *hub, struct sz_mistakes *m);
/* Puts what the configuration brings into the hub's own store: the last thing before the snapshot is used.  -EINVAL. */
int sz_snapshot_seed(struct sz_snapshot *snapshot, struct sz_fga_hub *hub, struct sz_mistakes *m) SZ_MUST_CHECK;
void sz_snapshot_ref(struct sz_snapshot *snapshot);
void sz_snapshot_unref(struct sz_snapshot *snapshot); /* any thread; frees with the last */

#endif

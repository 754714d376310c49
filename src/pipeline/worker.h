/* The inside of a worker: snapshots as one thread counts them. */
#ifndef SZ_PIPELINE_WORKER_H
#define SZ_PIPELINE_WORKER_H

#include "pipeline/txn.h"

struct sz_local_snapshot {
    struct sz_snapshot *snapshot;
    uint32_t users; /* requests of this thread, plus one while it is current */
};
static inline struct sz_local_snapshot *sz_local_ref(struct sz_local_snapshot *local)
{
    local->users++;
    return local;
}
void sz_local_unref(struct sz_local_snapshot *local);

#endif

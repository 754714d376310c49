/* limits.idle_timeout and limits.request_timeout on client connections.  Own thread. */
#ifndef SZ_EDGE_SWEEP_H
#define SZ_EDGE_SWEEP_H

struct sz_edge_thread;
void sz_sweep_start(struct sz_edge_thread *thread);

#endif

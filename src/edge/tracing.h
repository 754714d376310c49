/* Traces on their way out: what the exporter in src/obs is given of the network, and its place in the process's life.
 */
#ifndef SZ_EDGE_TRACING_H
#define SZ_EDGE_TRACING_H

#include "edge/server.h"

/* Where the configuration names a collector; NULL otherwise.  Before there are workers. */
struct sz_tracing *sz_tracing_new(struct sz_server *server);
/* Once the service thread exists and no worker runs; *why: the certificates of authorities cannot be read. */
int sz_tracing_start(struct sz_tracing *tracing, struct sz_text *why) SZ_MUST_CHECK;
/* The last worker has gone: sends what is left, for two seconds at most, then calls on_done with the server. */
void sz_tracing_drain(struct sz_tracing *tracing, void (*on_done)(void *server));
/* Before the service thread's HTTP client goes. */
void sz_tracing_free(struct sz_tracing **tracing);

#endif

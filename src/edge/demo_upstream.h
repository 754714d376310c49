/* The demo's upstream: answers every request with what it received, as JSON.  Service thread, loopback. */
#ifndef SZ_EDGE_DEMO_UPSTREAM_H
#define SZ_EDGE_DEMO_UPSTREAM_H

#include <h2o.h>

int sz_demo_upstream_on_req(h2o_handler_t *handler, h2o_req_t *req);

#endif

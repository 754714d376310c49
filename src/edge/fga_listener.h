/* The listener of the OpenFGA API (fga.listen): from h2o to subzero/fga_api.h and back.  Workers. */
#ifndef SZ_EDGE_FGA_LISTENER_H
#define SZ_EDGE_FGA_LISTENER_H

#include <h2o.h>

int sz_fga_on_req(h2o_handler_t *handler, h2o_req_t *req);

#endif

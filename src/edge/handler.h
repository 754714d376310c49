/* The one handler of the data listeners: h2o calls it for every request whose head and body are in. */
#ifndef SZ_EDGE_HANDLER_H
#define SZ_EDGE_HANDLER_H

#include <h2o.h>

int sz_handler_on_req(h2o_handler_t *handler, h2o_req_t *req);

#endif

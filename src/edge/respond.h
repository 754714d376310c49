/* A complete response over h2o: status, header, body.  What every answer of our own ends in. */
#ifndef SZ_EDGE_RESPOND_H
#define SZ_EDGE_RESPOND_H

#include <h2o.h>

#include "pipeline/request.h"
#include "subzero/reason.h"

/* "Not Found"; never NULL. */
const char *sz_status_text(unsigned status);
/* Adds them to the response; names and values must live as long as the request. */
void sz_respond_headers(h2o_req_t *req, const struct sz_headers *headers);
/* Sends everything; the body must live as long as the request.  HEAD gets the header alone. */
void sz_respond(h2o_req_t *req, unsigned status, const struct sz_headers *headers, struct sz_slice body);
/* A problem document without a transaction: the admin listener and h2o's own refusals. */
void sz_respond_problem(h2o_req_t *req, unsigned status, enum sz_reason reason, const char *detail);

#endif

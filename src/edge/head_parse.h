/*
 * One reading of an HTTP/1 head instead of two.  h2o's parser goes over it byte by byte and makes a list of all fields,
 * after which our own strict reading begins anew.  On data listeners the strict one comes first: where it finds a
 * whole, good head, h2o is given what it needs of it (the few fields that decide over framing and the connection), and
 * the handler is given the rest.  Everything else, incomplete heads among it, goes to h2o's parser as before.
 *
 * The definition of phr_parse_request stands in for libh2o's (see edge/overrides.h).
 */
#ifndef SZ_EDGE_HEAD_PARSE_H
#define SZ_EDGE_HEAD_PARSE_H

#include "edge/head_check.h"

/* Around h2o's read callback of a connection: whether its requests are read by us first. */
void sz_head_parse_ours(bool ours);
/*
 * In the handler of a request without a body: what was read of the head that begins at `bytes`; NULL: it was not read
 * by us, or others were since.  Until the handler returns.  Names are lower-case.
 */
const struct sz_head *sz_head_parse_known(const char *bytes);

/*
 * First thing in a handler: true when h2o could not parse the head (then its request says nothing about it, and the
 * bytes are where they always are, in the socket's input).  Once for each such request.
 */
bool sz_head_parse_failed(void);

#endif

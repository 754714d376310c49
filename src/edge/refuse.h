/*
 * What h2o would refuse by itself, in its own words and unrecorded: heads that its parser gives up on, bodies that are
 * too large or badly chunked, expectations, HTTP/2 fields of forbidden bytes.  Here they become refusals like all
 * others: a problem document, an access line, a count.  The definition of
 * h2o_send_error_generic stands in for libh2o's (see edge/overrides.h).
 */
#ifndef SZ_EDGE_REFUSE_H
#define SZ_EDGE_REFUSE_H

#include <h2o.h>

#include "edge/exchange.h"

/* One whose head h2o could not parse (edge/head_parse.h), on a data listener; the connection ends. */
void sz_refuse_unparsed(struct sz_exchange *x);

#endif

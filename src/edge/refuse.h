/*
 * What h2o would refuse by itself, in its own words and unrecorded: heads that its parser gives up on, bodies that are
 * too large or badly chunked, expectations, HTTP/2 fields of forbidden bytes.  Here they become refusals like all
 * others: a problem document, an access line, a count.  Two definitions in libh2o's place (see edge/overrides.h).
 */
#ifndef SZ_EDGE_REFUSE_H
#define SZ_EDGE_REFUSE_H

#include <h2o.h>

#include "edge/exchange.h"

/*
 * First thing in a handler: true when h2o could not parse the head (then `req` says nothing about it, and the bytes are
 * where they always are, in the socket's input).  Once for each such request.
 */
bool sz_refuse_is_unparsed(void);
/* Answers it on a data listener; the connection ends. */
void sz_refuse_unparsed(struct sz_exchange *x);

#endif

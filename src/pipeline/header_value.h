/* A claim's value on its way into a header field: no claim may change the number of header lines. */
#ifndef SZ_PIPELINE_HEADER_VALUE_H
#define SZ_PIPELINE_HEADER_VALUE_H

#include "subzero/base.h"

/*
 * Control characters are refused (false).  Bytes outside 0x20-0x7E and blanks at the ends are
 * percent-encoded.  Borrows the input where nothing changes.
 */
bool sz_header_value(struct sz_slice raw, struct sz_pool *pool, struct sz_slice *out);

#endif

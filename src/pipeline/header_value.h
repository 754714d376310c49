/* What becomes the value of a header field: claims, none of which may change the number of header lines, and lists. */
#ifndef SZ_PIPELINE_HEADER_VALUE_H
#define SZ_PIPELINE_HEADER_VALUE_H

#include "subzero/conf.h"

/*
 * Control characters are refused (false).  Bytes outside 0x20-0x7E and blanks at the ends are
 * percent-encoded.  Borrows the input where nothing changes.
 */
bool sz_header_value(struct sz_slice raw, struct sz_pool *pool, struct sz_slice *out);

/* The strings in order, `between` them.  In pool. */
struct sz_slice sz_header_list(const struct sz_strings *strings, const char *between, struct sz_pool *pool);

#endif

/* h2o's runs of bytes as ours. */
#ifndef SZ_EDGE_IOVEC_H
#define SZ_EDGE_IOVEC_H

#include <h2o.h>

#include "subzero/base.h"

/* Present even when it is empty. */
static inline struct sz_slice sz_iovec(h2o_iovec_t v)
{
    return sz_slice(v.base != NULL ? v.base : "", v.len);
}

#endif

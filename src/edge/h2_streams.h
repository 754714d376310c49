/*
 * A look inside h2o's HTTP/2 connections, for what it has no accessor for: the streams whose requests are still
 * arriving. The layout is that of libh2o 2.2.5; the start's self-test looks whether it holds.
 */
#ifndef SZ_EDGE_H2_STREAMS_H
#define SZ_EDGE_H2_STREAMS_H

#include <h2o.h>
/* In this order. */
#include <h2o/http2.h>
#include <h2o/http2_internal.h>

/* The next stream at or behind *at, which moves on; NULL at the end.  Start with 0. */
static inline h2o_http2_stream_t *sz_h2_next_stream(h2o_http2_conn_t *conn, uint32_t *at)
{
    for (; *at < kh_end(conn->streams); (*at)++) {
        if ((conn->streams->flags[*at >> 4] >> ((*at & 15) << 1) & 3) == 0)
            return kh_val(conn->streams, (*at)++);
    }
    return NULL;
}

#endif

/*
 * Between the bytes of an HTTP/2 client and libh2o's reading of them.  libh2o 2.2.5 trusts a client in four places
 * where it must not; the definitions in h2_guard.c stand in for its own (see edge/overrides.h for how that works).
 */
#ifndef SZ_EDGE_H2_GUARD_H
#define SZ_EDGE_H2_GUARD_H

struct st_h2o_http2_conn_t;

/* Around each call of h2o's HTTP/2 read callback: whose frames are read.  NULL afterwards. */
void sz_h2_guard_reading(struct st_h2o_http2_conn_t *conn);

#endif

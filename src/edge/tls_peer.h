/*
 * What TLS knows about the other end of a connection, and what our end showed it.  h2o has no accessor for its SSL
 * object; the first two fields of its private structure are checked by the start's self-test.
 */
#ifndef SZ_EDGE_TLS_PEER_H
#define SZ_EDGE_TLS_PEER_H

#include <h2o.h>
#include <openssl/ssl.h>

#include "edge/connection.h"

/* NULL on a cleartext connection. */
SSL *sz_tls_peer_ssl(h2o_socket_t *sock);
/* SHA-256 of the client certificate that was verified on this connection, as long as it lives; NULL without one. */
const uint8_t *sz_tls_peer_cert(struct sz_conn *conn);
/* The certificate shown on this connection is valid for the authority's host (RFC 9110 7.4: otherwise 421). */
bool sz_tls_peer_covers(struct sz_conn *conn, struct sz_slice authority);

#endif

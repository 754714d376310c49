/*
 * From a fresh descriptor to a protocol: who may connect, what the load balancer says about it, then HTTP/1, HTTP/2 or
 * TLS.
 */
#ifndef SZ_EDGE_ACCEPT_H
#define SZ_EDGE_ACCEPT_H

#include <sys/socket.h>

struct sz_acceptor;

/*
 * Takes the descriptor over in every case.  For data listeners the caller has counted the connection
 * (sz_server_conn_open); from here on its end is counted, too.
 */
void sz_accept(struct sz_acceptor *acceptor, int fd, const struct sockaddr *sa, socklen_t len);

#endif

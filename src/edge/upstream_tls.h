/*
 * What the threads share of an upstream: the TLS context and the health of its urls.  Made off the loops when a
 * configuration is loaded (files are read), then only read, but for the health's atomics.
 */
#ifndef SZ_EDGE_UPSTREAM_TLS_H
#define SZ_EDGE_UPSTREAM_TLS_H

#include <openssl/ssl.h>
#include <stdatomic.h>

#include "edge/upstream_health.h"
#include "subzero/conf.h"

struct sz_upstream_shared {
    atomic_uint refs;
    SSL_CTX *ctx;       /* NULL: no url of it is https */
    uint8_t digest[32]; /* of the certificate and key files: pools stay only while these do */
    size_t urls_n;
    struct sz_health health[];
};

struct sz_upstream_tls {
    atomic_uint refs;
    size_t n;
    struct sz_upstream_shared *v[]; /* one per upstream of the configuration */
};

void sz_upstream_shared_ref(struct sz_upstream_shared *shared);
void sz_upstream_shared_unref(struct sz_upstream_shared *shared);

/*
 * A client handle for one connection: SNI, the name or address to verify, the descriptor.  NULL: out of memory.
 * The handshake itself fails on a certificate that is not valid for that name, before a byte of a request is sent.
 */
SSL *sz_upstream_ssl_new(struct sz_upstream_shared *shared, const char *name, int fd);

#endif

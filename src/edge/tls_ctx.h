/* One SSL_CTX for one certificate of a listener. */
#ifndef SZ_EDGE_TLS_CTX_H
#define SZ_EDGE_TLS_CTX_H

#include <openssl/ssl.h>

#include "subzero/conf.h"

/* Reads the files.  NULL: the reason and the file are in *why. */
SSL_CTX *sz_tls_ctx_new(const struct sz_conf_listener *listener, const struct sz_conf_cert *cert, struct sz_text *why);
/* Lets `ctx` choose among `n` contexts by the client's SNI; the first is the default.  The array must outlive them. */
struct sz_tls_choice {
    SSL_CTX **v;
    size_t n;
};
void sz_tls_ctx_choose(SSL_CTX *ctx, struct sz_tls_choice *choice);

#endif

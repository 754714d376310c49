/* Certificates for tests: a CA, leaves with names, revocation lists; as files of the scratch folder. */
#ifndef FAKE_CERTS_H
#define FAKE_CERTS_H

#include <openssl/ssl.h>

#include "fake/process.h"

struct cert {
    X509 *x509;
    EVP_PKEY *key;
    const char *file, *key_file; /* PEM */
};

/* A self-signed CA, NAME.pem and NAME.key in the scratch folder. */
void cert_ca(struct cert *ca, const char *name);
/* A leaf with the subject alternative names ("DNS:a.example,IP:127.0.0.1"; NULL: none), valid for `days`. */
void cert_leaf(struct cert *leaf, const char *name, const struct cert *ca, const char *san, int days);
/* A CRL of the CA that revokes one leaf (NULL: none); its path. */
const char *cert_crl(const char *name, const struct cert *ca, const struct cert *revoked);
/* Writes the leaf over another's files (a renewal). */
void cert_replace(const struct cert *old, const struct cert *renewed);
void cert_sha256(const struct cert *cert, uint8_t out[32]);

/* ---- a TLS client ----------------------------------------------------------------------------------------- */

struct tls_client {
    SSL_CTX *ctx;
    SSL *ssl;
    int fd;
};
struct tls_options {
    const char *sni, *alpn; /* alpn: "h2", "http/1.1" or NULL */
    int min, max;           /* TLS1_2_VERSION ...; 0 = any */
    const struct cert *cert;
    SSL_SESSION *session;
};
/* True when the handshake succeeded.  TLS 1.3 shows a refused client certificate only at the first read. */
bool tls_open(struct tls_client *c, uint16_t port, const struct tls_options *options);
/* Sends and reads one response; its status, 0 when there was none. */
int tls_request(struct tls_client *c, const char *request, char *buf, size_t size);
/* CN of the server's certificate. */
void tls_server_name(struct tls_client *c, char *out, size_t size);
void tls_close(struct tls_client *c);

#endif

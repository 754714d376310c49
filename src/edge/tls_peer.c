/* Both answers are remembered with the connection: they cost microseconds and rarely change. */
#include "edge/tls_peer.h"

#include <openssl/x509v3.h>

#include "edge/head_check.h"

struct h2o_private_ssl { /* the head of st_h2o_socket_ssl_t */
    SSL_CTX *ctx;
    SSL *ossl;
};

SSL *sz_tls_peer_ssl(h2o_socket_t *sock)
{
    return sock->ssl != NULL ? ((struct h2o_private_ssl *)(void *)sock->ssl)->ossl : NULL;
}

static bool digest(const X509 *cert, uint8_t out[32])
{
    unsigned n = 32;
    return X509_digest(cert, EVP_sha256(), out, &n) == 1 && n == 32;
}

const uint8_t *sz_tls_peer_cert(struct sz_conn *conn)
{
    if (!conn->certificate_known) {
        SSL *ssl = sz_tls_peer_ssl(conn->sock);
        X509 *cert = ssl != NULL ? SSL_get0_peer_certificate(ssl) : NULL;
        conn->certificate_known = true;
        conn->has_certificate =
            cert != NULL && SSL_get_verify_result(ssl) == X509_V_OK && digest(cert, conn->cert_sha256);
    }
    return conn->has_certificate ? conn->cert_sha256 : NULL;
}

static bool covers(X509 *cert, const char *host)
{
    struct sz_addr addr;
    if (sz_addr_parse(sz_cstr(host), &addr) == 0)
        return X509_check_ip_asc(cert, host, 0) == 1;
    return X509_check_host(cert, host, 0, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS, NULL) == 1;
}

bool sz_tls_peer_covers(struct sz_conn *conn, struct sz_slice authority)
{
    char host[sizeof(conn->covered)];
    struct sz_slice name = sz_head_host(authority);
    SSL *ssl = sz_tls_peer_ssl(conn->sock);

    if (authority.n == 0)
        return true; /* HTTP/1.0 without Host names nobody */
    if (ssl == NULL || name.n == 0 || name.n >= sizeof(host))
        return false;
    memcpy(host, name.p, name.n);
    host[name.n] = '\0';
    if (strcmp(conn->covered, host) == 0)
        return true;
    X509 *cert = SSL_get_certificate(ssl);
    if (cert == NULL || !covers(cert, host))
        return false;
    memcpy(conn->covered, host, sizeof(host));
    return true;
}

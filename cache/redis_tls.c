/*
 * TLS on a socket of ours.  The certificate must be for the very name or address that the configuration (or a
 * cluster's map) gives, and its chain end at ca_file or in the system's store; OpenSSL checks both within the
 * handshake, on TLS 1.2 and 1.3 alike.
 */
#include <errno.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include "cache/redis_client.h"

static const char *reason(const char *otherwise)
{
    unsigned long code = ERR_peek_last_error();
    const char *text = code != 0 ? ERR_reason_error_string(code) : NULL;
    ERR_clear_error();
    return text != NULL ? text : otherwise;
}

SSL_CTX *sz_redis_tls_new(struct sz_slice ca_file, struct sz_text *why)
{
    SSL_CTX *ctx = SSL_CTX_new(TLS_client_method());
    if (ctx == NULL) {
        sz_text_set(why, "redis: out of memory");
        return NULL;
    }
    SSL_CTX_set_min_proto_version(ctx, TLS1_2_VERSION);
    SSL_CTX_set_options(ctx, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
    SSL_CTX_set_mode(ctx, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER, NULL);
    SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_OFF);
    if (ca_file.p != NULL ? SSL_CTX_load_verify_locations(ctx, ca_file.p, NULL) == 1
                          : SSL_CTX_set_default_verify_paths(ctx) == 1)
        return ctx;
    sz_text_set(why, "redis: cannot load ca_file %.*s: %s", SZ_FMT(ca_file), reason("no certificate in it"));
    SSL_CTX_free(ctx);
    return NULL;
}

void sz_redis_tls_free(SSL_CTX **ctx)
{
    SSL_CTX_free(*ctx);
    *ctx = NULL;
}

SSL *sz_redis_ssl_new(SSL_CTX *ctx, struct sz_slice host, int fd)
{
    struct sz_addr ip;
    SSL *ssl = SSL_new(ctx);
    if (ssl == NULL)
        return NULL;
    X509_VERIFY_PARAM *param = SSL_get0_param(ssl);
    X509_VERIFY_PARAM_set_hostflags(param, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
    bool ok = sz_addr_parse(host, &ip) == 0 ? X509_VERIFY_PARAM_set1_ip_asc(param, host.p) == 1
                                            : X509_VERIFY_PARAM_set1_host(param, host.p, host.n) == 1 &&
                                                  SSL_set_tlsext_host_name(ssl, host.p) == 1;
    if (!ok || SSL_set_fd(ssl, fd) != 1) {
        SSL_free(ssl);
        return NULL;
    }
    SSL_set_connect_state(ssl);
    return ssl;
}

void sz_redis_ssl_free(SSL **ssl)
{
    if (*ssl == NULL)
        return;
    SSL_set_quiet_shutdown(*ssl, 1);
    SSL_free(*ssl);
    *ssl = NULL;
}

int sz_redis_ssl_handshake(SSL *ssl, unsigned *wants, struct sz_text *why)
{
    ERR_clear_error();
    errno = 0;
    int rc = SSL_do_handshake(ssl);
    if (rc == 1)
        return 0;
    int error = errno;
    switch (SSL_get_error(ssl, rc)) {
    case SSL_ERROR_WANT_READ:
        *wants = SZ_READ;
        return -EAGAIN;
    case SSL_ERROR_WANT_WRITE:
        *wants = SZ_WRITE;
        return -EAGAIN;
    default:
        break;
    }
    long verified = SSL_get_verify_result(ssl);
    if (verified != X509_V_OK)
        sz_text_set(why, "its certificate is not believed: %s", X509_verify_cert_error_string(verified));
    else
        sz_text_set(why, "no TLS: %s", reason(error != 0 ? strerror(error) : "the connection was closed"));
    return -EPROTO;
}

/* Renegotiation is off, so reading waits for reading alone, and writing for writing (TLS 1.3's key updates are small).
 */
static ptrdiff_t failed(SSL *ssl, int rc)
{
    int error = errno;
    switch (SSL_get_error(ssl, rc)) {
    case SSL_ERROR_WANT_READ:
    case SSL_ERROR_WANT_WRITE:
        return -EAGAIN;
    case SSL_ERROR_ZERO_RETURN:
        return 0;
    case SSL_ERROR_SYSCALL:
        return error != 0 ? -error : 0;
    default:
        ERR_clear_error();
        return -EPROTO;
    }
}

ptrdiff_t sz_redis_ssl_read(SSL *ssl, void *out, size_t n)
{
    ERR_clear_error();
    errno = 0;
    int rc = SSL_read(ssl, out, (int)n);
    return rc > 0 ? rc : failed(ssl, rc);
}

ptrdiff_t sz_redis_ssl_write(SSL *ssl, const void *bytes, size_t n)
{
    ERR_clear_error();
    errno = 0;
    int rc = SSL_write(ssl, bytes, (int)(n < 65536 ? n : 65536));
    ptrdiff_t got = rc > 0 ? rc : failed(ssl, rc);
    return got == 0 ? -EPIPE : got;
}

bool sz_redis_ssl_has_more(const SSL *ssl)
{
    return SSL_has_pending(ssl) == 1;
}

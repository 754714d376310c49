/*
 * TLS 1.2 and 1.3, ALPN h2 and http/1.1, no renegotiation, no compression, no session cache (tickets alone, whose keys
 * live and die with the context: nothing is resumed on another listener, or after a reload that may have changed
 * client_ca).
 */
#include "edge/tls_ctx.h"

#include <h2o.h>
#include <openssl/err.h>
#include <openssl/x509v3.h>

#include "subzero/crypto.h"

static void say(struct sz_text *why, const char *what, struct sz_slice file)
{
    unsigned long code = ERR_get_error();
    const char *reason = code != 0 ? ERR_reason_error_string(code) : NULL;
    sz_text_set(why, "%s %.*s: %s", what, SZ_FMT(file), reason != NULL ? reason : "unusable");
    ERR_clear_error();
}

static bool load_certificate(SSL_CTX *ctx, const struct sz_conf_cert *cert, struct sz_text *why)
{
    if (SSL_CTX_use_certificate_chain_file(ctx, cert->certificate.p) != 1) {
        say(why, "cannot use the certificate", cert->certificate);
        return false;
    }
    if (SSL_CTX_use_PrivateKey_file(ctx, cert->key.p, SSL_FILETYPE_PEM) != 1) {
        say(why, "cannot use the key", cert->key);
        return false;
    }
    return true;
}

/*
 * A resumed session shows no certificate again, so it must not outlive the one that it was made with: the ticket says
 * how long it is good for.
 */
static int on_new_ticket(SSL *ssl, void *arg)
{
    const X509 *cert = SSL_get0_peer_certificate(ssl);
    SSL_SESSION *session = SSL_get_session(ssl);
    int days = 0, seconds = 0;

    (void)arg;
    if (cert == NULL || session == NULL)
        return 1;
    if (ASN1_TIME_diff(&days, &seconds, NULL, X509_get0_notAfter(cert)) != 1)
        return 0;
    int64_t left = (int64_t)days * 86400 + seconds;
    if (left < SSL_SESSION_get_timeout(session))
        SSL_SESSION_set_timeout(session, left > 0 ? (long)left : 0);
    return 1;
}

static bool load_client_ca(SSL_CTX *ctx, const struct sz_conf_tls *tls, struct sz_text *why)
{
    STACK_OF(X509_NAME) *names = SSL_load_client_CA_file(tls->client_ca.p);
    if (names == NULL || SSL_CTX_load_verify_locations(ctx, tls->client_ca.p, NULL) != 1) {
        sk_X509_NAME_pop_free(names, X509_NAME_free);
        say(why, "cannot use client_ca", tls->client_ca);
        return false;
    }
    SSL_CTX_set_client_CA_list(ctx, names);
    SSL_CTX_set_session_ticket_cb(ctx, on_new_ticket, NULL, NULL);
    if (tls->crl.n > 0) {
        X509_STORE *store = SSL_CTX_get_cert_store(ctx);
        if (X509_STORE_load_locations(store, tls->crl.p, NULL) != 1) {
            say(why, "cannot use the CRL", tls->crl);
            return false;
        }
        X509_STORE_set_flags(store, X509_V_FLAG_CRL_CHECK);
    }
    SSL_CTX_set_verify(
        ctx, SSL_VERIFY_PEER | (tls->client_auth == SZ_CLIENT_AUTH_OPTIONAL ? 0 : SSL_VERIFY_FAIL_IF_NO_PEER_CERT),
        NULL);
    return true;
}

/* A session belongs to the listener and to what it demands of clients. */
static void set_session_context(SSL_CTX *ctx, const struct sz_conf_listener *listener)
{
    struct sz_buf key = {0};
    uint8_t id[32];
    sz_key_field(&key, 1, listener->address);
    sz_key_field(&key, 2, listener->tls.client_ca);
    sz_key_field(&key, 3, listener->tls.crl);
    sz_buf_printf(&key, "%d", (int)listener->tls.client_auth);
    sz_sha256(sz_buf_slice(&key), id);
    sz_buf_fini(&key);
    SSL_CTX_set_session_id_context(ctx, id, sizeof(id));
}

SSL_CTX *sz_tls_ctx_new(const struct sz_conf_listener *listener, const struct sz_conf_cert *cert, struct sz_text *why)
{
    SSL_CTX *ctx = SSL_CTX_new(TLS_server_method());
    if (ctx == NULL) {
        sz_text_set(why, "out of memory");
        return NULL;
    }
    SSL_CTX_set_min_proto_version(ctx, TLS1_2_VERSION);
    SSL_CTX_set_options(ctx, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION | SSL_OP_CIPHER_SERVER_PREFERENCE);
    SSL_CTX_set_mode(ctx, SSL_MODE_RELEASE_BUFFERS);
    SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_OFF);
    set_session_context(ctx, listener);
    h2o_ssl_register_alpn_protocols(ctx, h2o_http2_alpn_protocols);
    if (load_certificate(ctx, cert, why) &&
        (listener->tls.client_ca.n == 0 || load_client_ca(ctx, &listener->tls, why)))
        return ctx;
    SSL_CTX_free(ctx);
    return NULL;
}

static int on_server_name(SSL *ssl, int *alert, void *arg)
{
    const struct sz_tls_choice *choice = arg;
    const char *name = SSL_get_servername(ssl, TLSEXT_NAMETYPE_host_name);
    (void)alert;
    if (name == NULL)
        return SSL_TLSEXT_ERR_OK;
    for (size_t i = 0; i < choice->n; i++) {
        X509 *cert = SSL_CTX_get0_certificate(choice->v[i]);
        if (X509_check_host(cert, name, 0, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS, NULL) == 1) {
            SSL_set_SSL_CTX(ssl, choice->v[i]);
            break;
        }
    }
    return SSL_TLSEXT_ERR_OK;
}

void sz_tls_ctx_choose(SSL_CTX *ctx, struct sz_tls_choice *choice)
{
    SSL_CTX_set_tlsext_servername_callback(ctx, on_server_name);
    SSL_CTX_set_tlsext_servername_arg(ctx, choice);
}

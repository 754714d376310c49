/*
 * Whom https believes.  Certificates are parsed here once, at the start or a reload; libcurl by itself would read and
 * parse the file again for each connection, on the loop (5 ms and a disk for the system's 140 authorities).
 *
 * Our store is handed to OpenSSL as the one to verify with, past libcurl's own.  libcurl then cannot see whom a
 * connection was verified by, and would lend one that a private authority vouched for to a call that believes the
 * public ones alone.  It does compare the CA path of two calls before they share a connection or a TLS
 * session, so each trust gives a path of its own, to a place that does not exist: nothing is ever read from it.
 */
#include <errno.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <stdlib.h>

#include "fga/http_client.h"

struct sz_http_trust {
    _Atomic unsigned refs;
    X509_STORE *store;
    char tag[48];
};

static const char *const system_bundles[] = {
    "/etc/ssl/certs/ca-certificates.crt", /* Debian, Alpine, Arch */
    "/etc/pki/tls/certs/ca-bundle.crt",   /* Fedora, RHEL */
    "/etc/ssl/ca-bundle.pem",             /* SUSE */
    "/etc/ssl/cert.pem",                  /* BSD */
};

static int load(X509_STORE *store, const char *ca_file, struct sz_text *why)
{
    if (ca_file != NULL) {
        if (X509_STORE_load_file(store, ca_file) == 1)
            return 0;
        sz_text_set(why, "'%s' cannot be read as PEM certificates: %s", ca_file,
                    ERR_reason_error_string(ERR_peek_last_error()));
        return -EINVAL;
    }
    for (size_t i = 0; i < SZ_COUNT(system_bundles); i++)
        if (X509_STORE_load_file(store, system_bundles[i]) == 1)
            return 0;
    sz_text_set(why, "the system has no certificate store (%s); install ca-certificates, or name a ca_file",
                system_bundles[0]);
    return -ENOENT;
}

struct sz_http_trust *sz_http_trust_new(const char *ca_file, struct sz_text *why)
{
    static _Atomic unsigned count;
    if (sz_http_prepare(why) != 0)
        return NULL;
    struct sz_http_trust *trust = sz_xcalloc(1, sizeof(*trust));
    trust->refs = 1;
    snprintf(trust->tag, sizeof(trust->tag), "/nonexistent/trust-%u", ++count);
    trust->store = X509_STORE_new();
    SZ_ASSERT(trust->store != NULL);
    /* A certificate in the file is believed as it is, an intermediate or a server's own too. */
    X509_STORE_set_flags(trust->store, X509_V_FLAG_PARTIAL_CHAIN | X509_V_FLAG_TRUSTED_FIRST);
    int rc = load(trust->store, ca_file, why);
    ERR_clear_error();
    if (rc != 0)
        sz_http_trust_unref(&trust);
    return trust;
}

struct sz_http_trust *sz_http_trust_ref(struct sz_http_trust *trust)
{
    if (trust != NULL)
        trust->refs++;
    return trust;
}

void sz_http_trust_unref(struct sz_http_trust **trust)
{
    struct sz_http_trust *t = *trust;
    *trust = NULL;
    if (t == NULL || --t->refs != 0)
        return;
    X509_STORE_free(t->store);
    free(t);
}

static CURLcode use_store(CURL *easy, void *ssl_ctx, void *arg)
{
    struct sz_http_trust *trust = arg;
    (void)easy;
    SSL_CTX_set1_verify_cert_store((SSL_CTX *)ssl_ctx, trust->store);
    SSL_CTX_set_options((SSL_CTX *)ssl_ctx, SSL_OP_CLEANSE_PLAINTEXT); /* answers hold tokens */
    return CURLE_OK;
}

void sz_http_trust_apply(struct sz_http_trust *trust, CURL *easy)
{
    sz_curl_set_pointer(easy, CURLOPT_CAPATH, trust->tag);
    sz_curl_set_pointer(easy, CURLOPT_SSL_CTX_DATA, trust);
    sz_curl_set_callback(easy, CURLOPT_SSL_CTX_FUNCTION, use_store);
}

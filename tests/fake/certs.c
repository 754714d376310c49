/* See certs.h. */
#include "fake/certs.h"

#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "fake/client.h"

/* Kept to the process's end, so that a test need not count them. */
static struct cert kept[64];
static size_t kept_n;

static const char *write_pem(const char *name, const char *suffix, const struct cert *cert, bool key)
{
    char file[128];
    BIO *bio = BIO_new(BIO_s_mem());
    char *p;
    snprintf(file, sizeof(file), "%s%s", name, suffix);
    SZ_ASSERT(key ? PEM_write_bio_PrivateKey(bio, cert->key, NULL, NULL, 0, NULL, NULL) == 1
                  : PEM_write_bio_X509(bio, cert->x509) == 1);
    long n = BIO_get_mem_data(bio, &p);
    const char *path = scratch_write(file, sz_slice(p, (size_t)n));
    BIO_free(bio);
    return path;
}

static void add_extension(X509 *x509, X509 *issuer, int nid, const char *value)
{
    X509V3_CTX ctx;
    X509V3_set_ctx(&ctx, issuer, x509, NULL, NULL, 0);
    X509_EXTENSION *ext = X509V3_EXT_conf_nid(NULL, &ctx, nid, value);
    SZ_ASSERT(ext != NULL && X509_add_ext(x509, ext, -1) == 1);
    X509_EXTENSION_free(ext);
}

static void make(struct cert *cert, const char *name, const struct cert *ca, const char *san, int days)
{
    static long serial = 1000;
    cert->key = EVP_PKEY_Q_keygen(NULL, NULL, "EC", "P-256");
    cert->x509 = X509_new();
    X509 *x = cert->x509, *issuer = ca != NULL ? ca->x509 : x;
    X509_NAME *subject = X509_get_subject_name(x);
    SZ_ASSERT(cert->key != NULL && X509_set_version(x, 2) == 1);
    ASN1_INTEGER_set(X509_get_serialNumber(x), ++serial);
    X509_gmtime_adj(X509_getm_notBefore(x), -3600);
    X509_gmtime_adj(X509_getm_notAfter(x), days * 86400L);
    X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_ASC, (const unsigned char *)name, -1, -1, 0);
    X509_set_issuer_name(x, X509_get_subject_name(issuer));
    X509_set_pubkey(x, cert->key);
    add_extension(x, issuer, NID_basic_constraints, ca == NULL ? "critical,CA:TRUE" : "CA:FALSE");
    if (ca == NULL)
        add_extension(x, issuer, NID_key_usage, "critical,keyCertSign,cRLSign");
    if (san != NULL)
        add_extension(x, issuer, NID_subject_alt_name, san);
    SZ_ASSERT(X509_sign(x, ca != NULL ? ca->key : cert->key, EVP_sha256()) > 0);
    cert->file = write_pem(name, ".pem", cert, false);
    cert->key_file = write_pem(name, ".key", cert, true);
    SZ_ASSERT(kept_n < SZ_COUNT(kept));
    kept[kept_n++] = *cert;
}

void cert_ca(struct cert *ca, const char *name)
{
    make(ca, name, NULL, NULL, 365);
}

void cert_leaf(struct cert *leaf, const char *name, const struct cert *ca, const char *san, int days)
{
    make(leaf, name, ca, san, days);
}

const char *cert_crl(const char *name, const struct cert *ca, const struct cert *revoked)
{
    X509_CRL *crl = X509_CRL_new();
    ASN1_TIME *now = X509_gmtime_adj(NULL, -60), *next = X509_gmtime_adj(NULL, 86400);
    BIO *bio = BIO_new(BIO_s_mem());
    char *p;
    SZ_ASSERT(X509_CRL_set_version(crl, 1) == 1);
    X509_CRL_set_issuer_name(crl, X509_get_subject_name(ca->x509));
    X509_CRL_set1_lastUpdate(crl, now);
    X509_CRL_set1_nextUpdate(crl, next);
    if (revoked != NULL) {
        X509_REVOKED *entry = X509_REVOKED_new();
        X509_REVOKED_set_serialNumber(entry, X509_get_serialNumber(revoked->x509));
        X509_REVOKED_set_revocationDate(entry, now);
        X509_CRL_add0_revoked(crl, entry);
    }
    SZ_ASSERT(X509_CRL_sign(crl, ca->key, EVP_sha256()) > 0 && PEM_write_bio_X509_CRL(bio, crl) == 1);
    long n = BIO_get_mem_data(bio, &p);
    const char *path = scratch_write(name, sz_slice(p, (size_t)n));
    BIO_free(bio);
    X509_CRL_free(crl);
    ASN1_TIME_free(now);
    ASN1_TIME_free(next);
    return path;
}

void cert_replace(const struct cert *old, const struct cert *renewed)
{
    SZ_ASSERT(rename(renewed->key_file, old->key_file) == 0 && rename(renewed->file, old->file) == 0);
}

void cert_sha256(const struct cert *cert, uint8_t out[32])
{
    unsigned n = 32;
    SZ_ASSERT(X509_digest(cert->x509, EVP_sha256(), out, &n) == 1);
}

static void set_alpn(SSL *ssl, const char *alpn)
{
    unsigned char wire[32];
    size_t n = strlen(alpn);
    wire[0] = (unsigned char)n;
    memcpy(wire + 1, alpn, n);
    SSL_set_alpn_protos(ssl, wire, (unsigned)n + 1);
}

bool tls_open(struct tls_client *c, uint16_t port, const struct tls_options *o)
{
    struct timeval patience = {.tv_sec = 10};
    signal(SIGPIPE, SIG_IGN);
    c->ctx = SSL_CTX_new(TLS_client_method());
    c->fd = client_open(port);
    SZ_ASSERT(c->ctx != NULL && c->fd >= 0);
    setsockopt(c->fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
    SSL_CTX_set_min_proto_version(c->ctx, o->min);
    SSL_CTX_set_max_proto_version(c->ctx, o->max);
    SSL_CTX_set_session_cache_mode(c->ctx, SSL_SESS_CACHE_OFF); /* a cached session dies with its context */
    if (o->min != 0 && o->min < TLS1_2_VERSION)
        SSL_CTX_set_security_level(c->ctx, 0);
    if (o->cert != NULL)
        SZ_ASSERT(SSL_CTX_use_certificate(c->ctx, o->cert->x509) == 1 &&
                  SSL_CTX_use_PrivateKey(c->ctx, o->cert->key) == 1);
    c->ssl = SSL_new(c->ctx);
    SSL_set_fd(c->ssl, c->fd);
    if (o->sni != NULL)
        SSL_set_tlsext_host_name(c->ssl, o->sni);
    if (o->alpn != NULL)
        set_alpn(c->ssl, o->alpn);
    if (o->session != NULL)
        SSL_set_session(c->ssl, o->session);
    return SSL_connect(c->ssl) == 1;
}

int tls_request(struct tls_client *c, const char *request, char *buf, size_t size)
{
    size_t n = 0;
    char value[32];
    buf[0] = '\0';
    if (SSL_write(c->ssl, request, (int)strlen(request)) <= 0)
        return 0;
    while (n + 1 < size) {
        int got = SSL_read(c->ssl, buf + n, (int)(size - 1 - n));
        if (got <= 0)
            break;
        n += (size_t)got;
        buf[n] = '\0';
        const char *end = strstr(buf, "\r\n\r\n");
        if (end == NULL)
            continue;
        size_t body = raw_header(buf, "content-length", value, sizeof(value)) ? strtoul(value, NULL, 10) : 0;
        if (n >= (size_t)(end - buf) + 4 + body)
            return raw_status(buf);
    }
    return 0;
}

void tls_server_name(struct tls_client *c, char *out, size_t size)
{
    X509 *x = SSL_get0_peer_certificate(c->ssl);
    out[0] = '\0';
    if (x != NULL)
        X509_NAME_get_text_by_NID(X509_get_subject_name(x), NID_commonName, out, (int)size);
}

void tls_close(struct tls_client *c)
{
    SSL_shutdown(c->ssl); /* else its session would not be resumable */
    SSL_free(c->ssl);
    SSL_CTX_free(c->ctx);
    close(c->fd);
}

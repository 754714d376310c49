/*
 * TLS towards upstreams.  The name (or address) of the url, or tls.server_name, must be in the certificate, and the
 * chain must end at ca_file or the system's store: SSL_VERIFY_PEER with X509_VERIFY_PARAM, checked by OpenSSL within
 * the handshake, on TLS 1.2 and 1.3 alike.  h2o's own client checks names after our last flight is sent and
 * never accepts addresses; that is one reason why the descriptor is ours.
 */
#include "edge/upstream_tls.h"

#include <arpa/inet.h>
#include <errno.h>
#include <openssl/err.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <stdlib.h>

#include "edge/proxy.h"
#include "edge/upstream.h"

#define FILE_MAX ((size_t)4 * 1024 * 1024)

static void mistake(struct sz_mistakes *m, const struct sz_conf *conf, const struct sz_conf_upstream *upstream,
                    const char *what, struct sz_slice file, const char *reason)
{
    struct sz_text path;
    sz_text_set(&path, "upstreams.%.*s.tls", SZ_FMT(upstream->name));
    sz_conf_mistake(conf, path.s, m, "upstream '%.*s': %s %.*s%s%s", SZ_FMT(upstream->name), what, SZ_FMT(file),
                    reason != NULL ? ": " : "", reason != NULL ? reason : "");
}

static const char *library_reason(void)
{
    unsigned long code = ERR_peek_last_error();
    ERR_clear_error();
    return code != 0 ? ERR_reason_error_string(code) : NULL;
}

/* Adds a file's bytes to the digest, so that a renewed certificate under the same name is a change. */
static int digest_file(EVP_MD_CTX *md, struct sz_slice path)
{
    char buf[4096];
    size_t total = 0, n;
    FILE *file = path.n > 0 ? fopen(path.p, "re") : NULL;

    if (path.n == 0)
        return 0;
    if (file == NULL)
        return -errno;
    while ((n = fread(buf, 1, sizeof(buf), file)) > 0 && total <= FILE_MAX) {
        total += n;
        EVP_DigestUpdate(md, buf, n);
    }
    int status = ferror(file) ? -EIO : total > FILE_MAX ? -EFBIG : 0;
    fclose(file);
    OPENSSL_cleanse(buf, sizeof(buf));
    EVP_DigestUpdate(md, &total, sizeof(total)); /* keeps the files apart */
    return status;
}

static int digest_files(struct sz_upstream_shared *shared, const struct sz_conf_upstream *upstream,
                        struct sz_slice *failed)
{
    const struct sz_slice files[] = {upstream->tls.ca_file, upstream->tls.certificate, upstream->tls.key};
    EVP_MD_CTX *md = EVP_MD_CTX_new();
    int status = md != NULL && EVP_DigestInit_ex(md, EVP_sha256(), NULL) == 1 ? 0 : -ENOMEM;

    for (size_t i = 0; status == 0 && i < SZ_COUNT(files); i++) {
        status = digest_file(md, files[i]);
        *failed = files[i];
    }
    if (status == 0)
        EVP_DigestFinal_ex(md, shared->digest, NULL);
    EVP_MD_CTX_free(md);
    return status;
}

/* OpenSSL hands over each ticket as it comes; the newest one serves the url's next connection on this thread. */
static int on_session(SSL *ssl, SSL_SESSION *session)
{
    struct sz_upconn *conn = SSL_get_app_data(ssl);
    if (conn == NULL)
        return 0;
    SSL_SESSION_free(conn->url->session);
    conn->url->session = session;
    return 1;
}

static const char *load_files(SSL_CTX *ctx, const struct sz_conf_upstream *upstream, struct sz_slice *file)
{
    *file = upstream->tls.ca_file;
    if (file->n > 0 ? SSL_CTX_load_verify_locations(ctx, file->p, NULL) != 1
                    : SSL_CTX_set_default_verify_paths(ctx) != 1)
        return "cannot load tls.ca_file";
    *file = upstream->tls.certificate;
    if (file->n == 0)
        return NULL;
    if (SSL_CTX_use_certificate_chain_file(ctx, file->p) != 1)
        return "cannot load tls.certificate";
    *file = upstream->tls.key;
    if (file->n == 0)
        return "tls.certificate without tls.key";
    if (SSL_CTX_use_PrivateKey_file(ctx, file->p, SSL_FILETYPE_PEM) != 1)
        return "cannot load tls.key";
    return SSL_CTX_check_private_key(ctx) == 1 ? NULL : "tls.key does not belong to tls.certificate:";
}

static SSL_CTX *context_new(void)
{
    SSL_CTX *ctx = SSL_CTX_new(TLS_client_method());
    if (ctx == NULL)
        return NULL;
    SSL_CTX_set_min_proto_version(ctx, TLS1_2_VERSION);
    SSL_CTX_set_options(ctx, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
    SSL_CTX_set_mode(ctx,
                     SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER | SSL_MODE_RELEASE_BUFFERS);
    SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER, NULL);
    SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL);
    SSL_CTX_sess_set_new_cb(ctx, on_session);
    return ctx;
}

static struct sz_upstream_shared *shared_new(const struct sz_conf *conf, const struct sz_conf_upstream *upstream,
                                             struct sz_mistakes *m)
{
    struct sz_upstream_shared *shared = sz_xcalloc(1, sizeof(*shared) + upstream->urls_n * sizeof(shared->health[0]));
    bool tls = false;
    struct sz_slice file = SZ_NONE;

    atomic_init(&shared->refs, 1);
    shared->urls_n = upstream->urls_n;
    for (size_t i = 0; i < upstream->urls_n; i++)
        tls |= upstream->urls[i].tls;
    if (upstream->urls_n > SZ_URLS_MAX)
        sz_mistakes_add(m, conf->source, 0, 0, false, "upstream '%.*s': %zu urls; at most %d", SZ_FMT(upstream->name),
                        upstream->urls_n, SZ_URLS_MAX);
    if (!tls)
        return shared;
    ERR_clear_error();
    int status = digest_files(shared, upstream, &file);
    if (status != 0) {
        mistake(m, conf, upstream, "cannot read", file, strerror(-status));
        return shared;
    }
    shared->ctx = context_new();
    SZ_ASSERT(shared->ctx != NULL);
    const char *what = load_files(shared->ctx, upstream, &file);
    if (what != NULL)
        mistake(m, conf, upstream, what, file, library_reason());
    return shared;
}

void sz_upstream_shared_ref(struct sz_upstream_shared *shared)
{
    atomic_fetch_add_explicit(&shared->refs, 1, memory_order_relaxed);
}

void sz_upstream_shared_unref(struct sz_upstream_shared *shared)
{
    if (shared == NULL || atomic_fetch_sub_explicit(&shared->refs, 1, memory_order_acq_rel) != 1)
        return;
    SSL_CTX_free(shared->ctx);
    free(shared);
}

struct sz_upstream_tls *sz_upstream_tls_new(const struct sz_conf *conf, struct sz_mistakes *m)
{
    struct sz_upstream_tls *tls = sz_xcalloc(1, sizeof(*tls) + conf->upstreams_n * sizeof(tls->v[0]));
    size_t before = m->errors;

    atomic_init(&tls->refs, 1);
    tls->n = conf->upstreams_n;
    for (size_t i = 0; i < tls->n; i++)
        tls->v[i] = shared_new(conf, &conf->upstreams[i], m);
    if (m->errors == before)
        return tls;
    sz_upstream_tls_unref(tls);
    return NULL;
}

void sz_upstream_tls_ref(struct sz_upstream_tls *tls)
{
    atomic_fetch_add_explicit(&tls->refs, 1, memory_order_relaxed);
}

void sz_upstream_tls_unref(struct sz_upstream_tls *tls)
{
    if (tls == NULL || atomic_fetch_sub_explicit(&tls->refs, 1, memory_order_acq_rel) != 1)
        return;
    for (size_t i = 0; i < tls->n; i++)
        sz_upstream_shared_unref(tls->v[i]);
    free(tls);
}

static bool is_address(const char *name)
{
    unsigned char bytes[16];
    return inet_pton(AF_INET, name, bytes) == 1 || inet_pton(AF_INET6, name, bytes) == 1;
}

SSL *sz_upstream_ssl_new(struct sz_upstream_shared *shared, const char *name, int fd)
{
    SSL *ssl = SSL_new(shared->ctx);
    if (ssl == NULL)
        return NULL;
    X509_VERIFY_PARAM *param = SSL_get0_param(ssl);
    X509_VERIFY_PARAM_set_hostflags(param, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
    bool ok = is_address(name) ? X509_VERIFY_PARAM_set1_ip_asc(param, name) == 1
                               : X509_VERIFY_PARAM_set1_host(param, name, 0) == 1 &&
                                     SSL_set_tlsext_host_name(ssl, name) == 1; /* RFC 6066: no addresses in SNI */
    if (!ok || SSL_set_fd(ssl, fd) != 1) {
        SSL_free(ssl);
        return NULL;
    }
    SSL_set_connect_state(ssl);
    return ssl;
}

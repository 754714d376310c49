/*
 * Sets of TLS contexts and their way to the threads.  A thread holds the current set and, for a while, those before it.
 */
#include "edge/tls.h"

#include <openssl/x509.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "edge/server.h"
#include "edge/thread.h"
#include "edge/tls_ctx.h"
#include "subzero/crypto.h"

struct sz_tls_set {
    atomic_uint refs;
    struct sz_tls_expiry expiry;
    uint64_t files; /* their state just before they were read */
    size_t n;
    struct sz_tls_choice listeners[]; /* by index of the server's listeners; n == 0: cleartext */
};

struct sz_tls_retired {
    struct sz_timer timer;
    struct sz_edge_thread *thread;
    struct sz_tls_set *set;
    struct sz_tls_retired *next, **prev;
};

/* h2o's handshake timeout is 10 s. */
#define HOLD SZ_SEC(20)

static void note_expiry(struct sz_tls_set *set, SSL_CTX *ctx)
{
    X509 *cert = SSL_CTX_get0_certificate(ctx);
    struct tm tm;
    if (ASN1_TIME_to_tm(X509_get0_notAfter(cert), &tm) != 1)
        return;
    int64_t at = (int64_t)timegm(&tm);
    if (set->expiry.subject[0] != '\0' && at >= set->expiry.at)
        return;
    set->expiry.at = at;
    X509_NAME_oneline(X509_get_subject_name(cert), set->expiry.subject, sizeof(set->expiry.subject));
}

static bool build_listener(struct sz_tls_set *set, size_t at, const struct sz_conf *conf,
                           const struct sz_conf_listener *listener, struct sz_mistakes *m)
{
    struct sz_tls_choice *choice = &set->listeners[at];
    struct sz_text why;

    choice->v = sz_xcalloc(listener->tls.certs_n, sizeof(SSL_CTX *));
    for (size_t i = 0; i < listener->tls.certs_n; i++) {
        SSL_CTX *ctx = sz_tls_ctx_new(listener, &listener->tls.certs[i], &why);
        if (ctx == NULL) {
            sz_conf_mistake(conf, "listen", m, "listener %.*s: tls: %s", SZ_FMT(listener->address), why.s);
            return false;
        }
        choice->v[choice->n++] = ctx;
        note_expiry(set, ctx);
    }
    if (choice->n > 1)
        sz_tls_ctx_choose(choice->v[0], choice);
    return true;
}

/* All that may speak TLS: the listeners, then the OpenFGA API's.  NULL: no more. */
static const struct sz_conf_listener *listener_at(const struct sz_conf *conf, size_t i)
{
    return i < conf->listeners_n ? &conf->listeners[i] : i == conf->listeners_n ? conf->fga.listen : NULL;
}

static const struct sz_conf_listener *now_called(const struct sz_conf *conf, const struct sz_conf_listener *boot)
{
    const struct sz_conf_listener *one;
    for (size_t i = 0; (one = listener_at(conf, i)) != NULL; i++) {
        if (sz_eq(one->address, boot->address) && one->tls.on)
            return one;
    }
    return boot;
}

static struct sz_tls_set *set_new(size_t n)
{
    struct sz_tls_set *set = sz_xcalloc(1, sizeof(*set) + n * sizeof(set->listeners[0]));
    atomic_init(&set->refs, 1);
    set->n = n;
    return set;
}

bool sz_tls_check(const struct sz_conf *conf, struct sz_mistakes *m)
{
    struct sz_tls_set *set = set_new(conf->listeners_n + 1);
    const struct sz_conf_listener *one;
    bool ok = true;
    for (size_t i = 0; (one = listener_at(conf, i)) != NULL; i++) {
        if (one->tls.on)
            ok = build_listener(set, i, conf, one, m) && ok;
    }
    sz_tls_set_unref(set);
    return ok;
}

struct sz_tls_set *sz_tls_set_new(struct sz_server *server, const struct sz_conf *conf, struct sz_mistakes *m)
{
    size_t n = server->listeners_n;
    struct sz_tls_set *set = set_new(n);
    set->files = sz_tls_files_state(server, conf);
    for (size_t i = 0; i < n; i++) {
        const struct sz_conf_listener *boot = server->listeners[i].conf;
        if (boot == NULL || !boot->tls.on)
            continue;
        if (!build_listener(set, i, conf, now_called(conf, boot), m)) {
            sz_tls_set_unref(set);
            return NULL;
        }
    }
    return set;
}

void sz_tls_set_ref(struct sz_tls_set *set)
{
    atomic_fetch_add_explicit(&set->refs, 1, memory_order_relaxed);
}

void sz_tls_set_unref(struct sz_tls_set *set)
{
    if (set == NULL || atomic_fetch_sub_explicit(&set->refs, 1, memory_order_acq_rel) != 1)
        return;
    for (size_t i = 0; i < set->n; i++) {
        for (size_t k = 0; k < set->listeners[i].n; k++)
            SSL_CTX_free(set->listeners[i].v[k]);
        free(set->listeners[i].v);
    }
    free(set);
}

static void forget(struct sz_tls_retired *retired)
{
    sz_timer_cancel(retired->thread->loop, &retired->timer);
    *retired->prev = retired->next;
    if (retired->next != NULL)
        retired->next->prev = retired->prev;
    sz_tls_set_unref(retired->set);
    free(retired);
}

static void on_held(struct sz_timer *timer)
{
    forget(SZ_CONTAINER(timer, struct sz_tls_retired, timer));
}

static void retire(struct sz_edge_thread *thread, struct sz_tls_set *set)
{
    struct sz_tls_retired *retired = sz_xcalloc(1, sizeof(*retired));
    retired->thread = thread;
    retired->set = set;
    retired->timer.on_fire = on_held;
    retired->prev = &thread->tls_retired;
    retired->next = thread->tls_retired;
    if (retired->next != NULL)
        retired->next->prev = &retired->next;
    thread->tls_retired = retired;
    sz_timer_start(thread->loop, &retired->timer, sz_after(sz_loop_now(thread->loop), HOLD));
}

void sz_tls_thread_swap(struct sz_edge_thread *thread, struct sz_tls_set *set)
{
    if (thread->tls != NULL)
        retire(thread, thread->tls);
    sz_tls_set_ref(set);
    thread->tls = set;
    for (size_t i = 0; i < thread->acceptors_n; i++) {
        struct sz_acceptor *acceptor = &thread->acceptors[i];
        struct sz_tls_choice *choice = &set->listeners[acceptor->listener - thread->server->listeners];
        acceptor->ctx.ssl_ctx = choice->n > 0 ? choice->v[0] : NULL;
    }
}

void sz_tls_thread_fini(struct sz_edge_thread *thread)
{
    while (thread->tls_retired != NULL)
        forget(thread->tls_retired);
    sz_tls_set_unref(thread->tls);
    thread->tls = NULL;
}

bool sz_tls_first_expiry(const struct sz_tls_set *set, struct sz_tls_expiry *out)
{
    *out = set->expiry;
    return set->expiry.subject[0] != '\0';
}

void sz_tls_collect(void *arg, struct sz_buf *out)
{
    const struct sz_server *server = arg;
    struct sz_tls_expiry expiry;
    if (server->tls != NULL && sz_tls_first_expiry(server->tls, &expiry))
        sz_buf_printf(out, "%s %lld\n", sz_metrics_head(out, SZ_COLLECTED_certificate), (long long)expiry.at);
}

bool sz_tls_wants_watch(const struct sz_conf *conf)
{
    const struct sz_conf_listener *one;
    for (size_t i = 0; (one = listener_at(conf, i)) != NULL; i++) {
        if (one->tls.watch)
            return true;
    }
    return false;
}

static void add_file(struct sz_buf *b, struct sz_slice path)
{
    struct stat st;
    if (path.n == 0)
        return;
    sz_key_field(b, 1, path);
    if (stat(path.p, &st) == 0)
        sz_buf_printf(b, "%lld.%ld.%lld.%llu", (long long)st.st_mtim.tv_sec, st.st_mtim.tv_nsec, (long long)st.st_size,
                      (unsigned long long)st.st_ino);
}

uint64_t sz_tls_set_files(const struct sz_tls_set *set)
{
    return set->files;
}

uint64_t sz_tls_files_state(const struct sz_server *server, const struct sz_conf *conf)
{
    static const struct sz_key128 key = {{1}};
    struct sz_buf b = {0};
    for (size_t i = 0; i < server->listeners_n; i++) {
        const struct sz_conf_listener *boot = server->listeners[i].conf;
        if (boot == NULL || !boot->tls.on)
            continue;
        const struct sz_conf_tls *tls = &now_called(conf, boot)->tls;
        if (!tls->watch)
            continue;
        for (size_t k = 0; k < tls->certs_n; k++) {
            add_file(&b, tls->certs[k].certificate);
            add_file(&b, tls->certs[k].key);
        }
        add_file(&b, tls->client_ca);
        add_file(&b, tls->crl);
    }
    uint64_t state = sz_hash64(&key, sz_buf_slice(&b));
    sz_buf_fini(&b);
    return state;
}

/*
 * One build at a time.  The builder thread owns nothing but its job; the job comes back to the service thread as a
 * message, and only there the server's references change.
 */
#include "edge/reload.h"

#include <pthread.h>
#include <stdlib.h>
#include <time.h> /* struct timespec */

#include "edge/cert_watch.h"
#include "edge/proxy.h"
#include "edge/server.h"
#include "edge/thread.h"
#include "edge/tls.h"
#include "subzero/decision.h"
#include "subzero/log.h"

struct job {
    struct sz_msg done; /* to the service thread */
    struct sz_reloader *reloader;
    struct sz_snapshot *snapshot; /* NULL: failed */
    struct sz_tls_set *tls;
    struct sz_upstream_tls *upstream_tls;
    struct sz_mistakes mistakes;
    pthread_t thread;
};

struct sz_reloader {
    struct sz_server *server;
    struct job *running;
    bool again;
    bool failed;
    struct sz_text why;
};

struct swap { /* to one worker */
    struct sz_msg msg;
    struct sz_edge_thread *thread;
    struct sz_snapshot *snapshot;
    struct sz_tls_set *tls;
    struct sz_upstream_tls *upstream_tls;
};

void sz_mistakes_log(const struct sz_mistakes *m)
{
    for (size_t i = 0; i < m->n; i++) {
        struct sz_buf text = {0};
        sz_mistake_format(&m->v[i], &text);
        sz_log(m->v[i].warning ? SZ_LOG_WARN : SZ_LOG_ERROR, "conf", "%.*s", SZ_FMT(sz_buf_slice(&text)));
        sz_buf_fini(&text);
    }
}

static void build(struct job *job)
{
    struct sz_server *server = job->reloader->server;
    struct sz_conf *conf = server->source.load(server->source.arg, &job->mistakes);
    if (conf == NULL)
        return;
    struct sz_snapshot *snapshot = sz_snapshot_new(conf, server->fga, &job->mistakes);
    if (snapshot == NULL)
        return;
    job->tls = sz_tls_set_new(server, snapshot->conf, &job->mistakes);
    if (job->tls != NULL)
        job->upstream_tls = sz_upstream_tls_new(snapshot->conf, &job->mistakes);
    if (job->upstream_tls != NULL && sz_snapshot_seed(snapshot, server->fga, &job->mistakes) == 0)
        job->snapshot = snapshot;
    if (job->snapshot != NULL)
        return;
    sz_upstream_tls_unref(job->upstream_tls);
    job->upstream_tls = NULL;
    sz_snapshot_unref(snapshot);
}

static void *builder(void *arg)
{
    struct job *job = arg;
    build(job);
    sz_loop_post(job->reloader->server->service->loop, &job->done);
    return NULL;
}

static void on_swap(struct sz_msg *msg, struct sz_loop *loop)
{
    struct swap *swap = SZ_CONTAINER(msg, struct swap, msg);
    struct sz_edge_thread *thread = swap->thread;
    (void)loop;
    sz_worker_swap(&thread->worker, swap->snapshot);
    sz_proxy_pools_configure(thread->pools, swap->snapshot->conf, swap->upstream_tls);
    sz_tls_thread_swap(thread, swap->tls);
    sz_snapshot_unref(swap->snapshot);
    sz_tls_set_unref(swap->tls);
    sz_upstream_tls_unref(swap->upstream_tls);
    free(swap);
}

static void send_swap(struct sz_edge_thread *thread, struct job *job)
{
    struct swap *swap = sz_xcalloc(1, sizeof(*swap));
    swap->msg.on_msg = on_swap;
    swap->thread = thread;
    swap->snapshot = job->snapshot;
    swap->tls = job->tls;
    swap->upstream_tls = job->upstream_tls;
    sz_snapshot_ref(job->snapshot);
    sz_tls_set_ref(job->tls);
    sz_upstream_tls_ref(job->upstream_tls);
    sz_loop_post(thread->loop, &swap->msg);
}

static void say_restart_needed(struct sz_server *server, const struct sz_conf *next)
{
    struct sz_buf text = {.limit = 4096};
    sz_conf_restart_needed(server->boot->conf, next, &text);
    struct sz_slice rest = sz_buf_slice(&text), line;
    while (text.n > 0 && sz_split(&rest, '\n', &line)) {
        if (line.n > 0)
            sz_log(SZ_LOG_WARN, "conf", "needs a restart: %.*s", SZ_FMT(line));
    }
    sz_buf_fini(&text);
}

/* A fact keeps the end that it was given; a shorter ttl is meant for those that are there already, too. */
static void shorten_facts(struct sz_server *server, const struct sz_conf *next)
{
    const struct sz_conf_cache *was = &server->current->conf->cache;
    if (next->cache.ttl.us < was->ttl.us)
        sz_token_cache_flush(server->gate.tokens);
    if (next->cache.negative_ttl.us < was->negative_ttl.us)
        sz_reject_cache_flush(server->gate.rejects);
    bool shorter = next->cache.decisions.ttl.us < was->decisions.ttl.us ||
                   next->cache.decisions.negative_ttl.us < was->decisions.negative_ttl.us;
    if (shorter && server->gate.decisions != NULL)
        sz_decisions_flush(server->gate.decisions);
}

static void record(struct sz_server *server, bool taken, struct sz_slice why)
{
    struct sz_audit_event e = {.kind = SZ_AUDIT_RELOAD, .config = server->current->conf->version};
    e.text[SZ_AUDIT_ACTION] = SZ_S("config.reload");
    e.text[SZ_AUDIT_OBJECT] = server->current->conf->source;
    e.text[SZ_AUDIT_RESULT] = taken ? SZ_S("ok") : SZ_S("refused");
    e.text[SZ_AUDIT_DETAIL] = why;
    (void)sz_audit_note(server->gate.audit, &e); /* a full queue counts its own losses */
}

static void take(struct sz_server *server, struct job *job)
{
    shorten_facts(server, job->snapshot->conf);
    say_restart_needed(server, job->snapshot->conf);
    sz_providers_adopt(server->providers, job->snapshot->issuers, false);
    sz_followers_adopt(server->followers, job->snapshot->source);
    sz_gate_adopt(&server->gate, job->snapshot);
    for (unsigned i = 0; i < server->threads_n; i++)
        send_swap(server->threads[i], job);
    sz_snapshot_unref(server->current);
    server->current = job->snapshot;
    sz_tls_set_unref(server->tls);
    server->tls = job->tls;
    sz_cert_watch_follow(server);
    sz_upstream_tls_unref(job->upstream_tls);
    record(server, true, SZ_NONE);
    sz_log(SZ_LOG_INFO, "conf", "configuration reloaded from %.*s", SZ_FMT(server->current->conf->source));
}

static void keep_old(struct sz_reloader *reloader, struct job *job)
{
    const struct sz_mistakes *m = &job->mistakes;
    struct sz_buf first = {0};
    for (size_t i = 0; i < m->n && first.n == 0; i++) {
        if (!m->v[i].warning)
            sz_mistake_format(&m->v[i], &first);
    }
    sz_text_set(&reloader->why, "%.*s", SZ_FMT(first.n > 0 ? sz_buf_slice(&first) : SZ_S("it could not be loaded")));
    sz_buf_fini(&first);
    sz_tls_set_unref(job->tls);
    record(reloader->server, false, sz_cstr(reloader->why.s));
    sz_log(SZ_LOG_ERROR, "conf", "the new configuration has mistakes; the old one stays in force");
}

static void on_done(struct sz_msg *msg, struct sz_loop *loop)
{
    struct job *job = SZ_CONTAINER(msg, struct job, done);
    struct sz_reloader *reloader = job->reloader;
    (void)loop;

    pthread_join(job->thread, NULL);
    sz_mistakes_log(&job->mistakes);
    reloader->failed = job->snapshot == NULL;
    sz_gauge_set(reloader->server->series.reload_ok, reloader->failed ? 0 : 1);
    if (reloader->failed)
        keep_old(reloader, job);
    else
        take(reloader->server, job);
    sz_mistakes_fini(&job->mistakes);
    free(job);
    reloader->running = NULL;
    if (reloader->again) {
        reloader->again = false;
        sz_reload_start(reloader);
    }
}

void sz_reload_start(struct sz_reloader *reloader)
{
    if (reloader->running != NULL) {
        reloader->again = true;
        return;
    }
    struct job *job = sz_xcalloc(1, sizeof(*job));
    job->done.on_msg = on_done;
    job->reloader = reloader;
    sz_mistakes_init(&job->mistakes);
    reloader->running = job;
    if (pthread_create(&job->thread, NULL, builder, job) == 0)
        return;
    reloader->running = NULL;
    reloader->failed = true;
    sz_text_set(&reloader->why, "no thread to load the configuration on");
    sz_log(SZ_LOG_ERROR, "conf", "%s", reloader->why.s);
    sz_mistakes_fini(&job->mistakes);
    free(job);
}

bool sz_reload_ok(const struct sz_reloader *reloader, struct sz_text *why)
{
    if (reloader->failed)
        *why = reloader->why;
    return !reloader->failed;
}

struct sz_reloader *sz_reloader_new(struct sz_server *server)
{
    struct sz_reloader *reloader = sz_xcalloc(1, sizeof(*reloader));
    reloader->server = server;
    return reloader;
}

/* What was being built when the process was told to end. */
static void drop(struct job *job)
{
    if (job->snapshot != NULL) {
        sz_snapshot_unref(job->snapshot);
        sz_upstream_tls_unref(job->upstream_tls);
    }
    sz_tls_set_unref(job->tls);
    sz_mistakes_fini(&job->mistakes);
    free(job);
}

bool sz_reload_wait(struct sz_reloader *reloader, struct sz_mono end)
{
    struct timespec at = {.tv_sec = end.us / 1000000, .tv_nsec = end.us % 1000000 * 1000};
    struct job *job = reloader->running;
    if (job == NULL || pthread_clockjoin_np(job->thread, NULL, CLOCK_MONOTONIC, &at) != 0)
        return job == NULL;
    drop(job);
    reloader->running = NULL;
    return true;
}

void sz_reloader_free(struct sz_reloader **reloader)
{
    if (*reloader == NULL)
        return;
    SZ_ASSERT((*reloader)->running == NULL);
    free(*reloader);
    *reloader = NULL;
}

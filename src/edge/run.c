/*
 * Running: workers on their threads, the service loop here, and the way down.
 *
 *   SIGHUP  ─▶ reload         SIGTERM, SIGINT ─▶ drain ─▶ every worker stops accepting, answers what it has begun,
 *                                                        ends when its last connection is gone ─▶ teardown
 *                              limits.drain later ─▶ the process ends, connections or not
 */
#include <errno.h>
#include <h2o.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "edge/admin_write.h"
#include "edge/cert_watch.h"
#include "edge/globalconf.h"
#include "edge/reload.h"
#include "edge/revoking.h"
#include "edge/server.h"
#include "edge/thread.h"
#include "edge/tls.h"
#include "edge/tracing.h"
#include "subzero/fleet.h"
#include "subzero/log.h"
#include "subzero/threat_store.h"

struct service { /* what only the main thread needs while it runs */
    struct sz_server *server;
    int signals;
    struct sz_watch *watch;
    struct sz_timer hard_end;
};
static struct service service;

/*
 * The last worker has gone: so do the service thread's own connections (admin, the demo's upstream), before h2o's
 * context on it may be disposed of.
 */
static void end_service(struct sz_edge_thread *thread)
{
    thread->draining = true;
    for (size_t i = 0; i < thread->acceptors_n; i++)
        sz_acceptor_stop(&thread->acceptors[i]);
    for (struct sz_conn *conn = thread->conns; conn != NULL; conn = conn->next)
        sz_conn_cut(conn);
    sz_thread_conn_gone(thread);
}

static void on_traces_gone(void *server)
{
    end_service(((struct sz_server *)server)->service);
}

static void on_worker_gone(struct sz_msg *msg, struct sz_loop *loop)
{
    struct sz_server *server = service.server;
    (void)loop;
    free(msg);
    if (atomic_load(&server->threads_running) > 0)
        return;
    if (server->tracing != NULL)
        sz_tracing_drain(server->tracing, on_traces_gone);
    else
        end_service(server->service);
}

/* What nobody waits for any more may still be under way for this loop, and would post to it when it is gone. */
static void settle(struct sz_edge_thread *thread)
{
    bool again;
    do {
        again = sz_fga_hub_settle(thread->server->fga, thread->loop);
        sz_loop_stop(thread->loop);
        sz_loop_run(thread->loop);
    } while (again);
}

static void *worker_main(void *arg)
{
    struct sz_edge_thread *thread = arg;
    struct sz_server *server = thread->server;
    struct sz_msg *gone = sz_xcalloc(1, sizeof(*gone));
    char name[16];

    snprintf(name, sizeof(name), "worker-%u", thread->index);
    pthread_setname_np(pthread_self(), name);
    sz_loop_run(thread->loop);
    if (server->fga != NULL)
        settle(thread);
    sz_thread_fini(thread);
    gone->on_msg = on_worker_gone;
    atomic_fetch_sub(&server->threads_running, 1);
    sz_loop_post(server->service->loop, gone);
    return NULL;
}

/* Something will not end: the promise of limits.drain goes before it. */
static void end_now(void)
{
    sz_audit_flush(service.server->gate.audit);
    sz_log_stop();
    _exit(0);
}

static void on_hard_end(struct sz_timer *timer)
{
    (void)timer;
    sz_log(SZ_LOG_WARN, "edge", "the drain took longer than limits.drain: %u connections are cut",
           atomic_load(&service.server->connections));
    end_now();
}

static void on_drain(struct sz_msg *msg, struct sz_loop *loop)
{
    (void)loop;
    sz_thread_drain(SZ_CONTAINER(msg, struct sz_edge_thread, drain));
}

void sz_server_drain(struct sz_server *server)
{
    struct sz_loop *loop = server->service->loop;
    struct sz_span most = server->current->conf->limits.drain;

    if (atomic_exchange(&server->gate.draining, true)) {
        sz_log(SZ_LOG_WARN, "edge", "told twice to stop: ending now");
        end_now();
    }
    sz_log(SZ_LOG_INFO, "edge", "draining: no new connections, at most %lld ms for what has begun",
           (long long)(most.us / 1000));
    for (unsigned i = 0; i < server->threads_n; i++) {
        server->threads[i]->drain.on_msg = on_drain;
        sz_loop_post(server->threads[i]->loop, &server->threads[i]->drain);
    }
    service.hard_end.on_fire = on_hard_end;
    sz_timer_start(loop, &service.hard_end, sz_after(sz_loop_now(loop), most));
}

static void on_signal(void *arg, int fd, unsigned events)
{
    struct sz_server *server = arg;
    struct signalfd_siginfo info;
    (void)events;
    while (read(fd, &info, sizeof(info)) == sizeof(info)) {
        if (info.ssi_signo != SIGHUP) {
            sz_server_drain(server);
        } else if (!sz_server_draining(server)) {
            sz_audit_reopen(server->gate.audit);
            sz_reload_start(server->reloader);
        }
    }
}

/* The signals that come by signalfd, and by it alone. */
static sigset_t our_signals(void)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGHUP);
    return set;
}

static int watch_signals(struct sz_server *server)
{
    sigset_t set = our_signals();
    service.signals = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
    if (service.signals < 0)
        return -errno;
    service.watch = sz_watch_new(server->service->loop, service.signals, on_signal, server);
    if (service.watch == NULL)
        return -errno;
    sz_watch_set(service.watch, SZ_READ);
    return 0;
}

/* Before any thread exists, so that all inherit it. */
static void block_signals(void)
{
    sigset_t set = our_signals();
    pthread_sigmask(SIG_BLOCK, &set, NULL);
}

/* One client for each worker, one for the service loop. */
static int make_redis(struct sz_server *server, struct sz_text *why)
{
    const struct sz_conf_redis *conf = &server->boot->conf->redis;
    if (!conf->on)
        return 0;
    unsigned clients = server->threads_n + 1, cache = 1u << SZ_REDIS_CACHE, uses = SZ_REDIS_ALL_USES;
    const struct sz_conf_redis *own = &server->boot->conf->redis_cache;
    uses &= own->on ? ~cache : SZ_REDIS_ALL_USES;
    uses &= server->boot->conf->threat.share ? SZ_REDIS_ALL_USES : ~(1u << SZ_REDIS_THREAT);
    server->redis = sz_redis_shared_new(conf, uses, clients, why);
    if (server->redis == NULL)
        return -EINVAL;
    if (own->on) {
        server->redis_cache = sz_redis_shared_new(own, cache, clients, why);
        return server->redis_cache != NULL ? 0 : -EINVAL;
    }
    sz_log(SZ_LOG_INFO, "redis", "%.*s holds cache, limits and revocations alike: what fills its memory is shared",
           SZ_FMT(conf->shown));
    return 0;
}

static int make_threads(struct sz_server *server, struct sz_upstream_tls *upstream_tls)
{
    int rc = 0;
    /* Shared out among the workers: the service loop fetches a few keys at a time and takes no share away. */
    server->http = sz_http_shared_new(&server->boot->conf->http, server->threads_n);
    if (server->http == NULL)
        return -ENOMEM;
    server->threads = sz_xcalloc(server->threads_n, sizeof(struct sz_edge_thread *));
    server->service = sz_xcalloc(1, sizeof(*server->service));
    for (unsigned i = 0; i < server->threads_n && rc == 0; i++) {
        server->threads[i] = sz_xcalloc(1, sizeof(struct sz_edge_thread));
        rc = sz_thread_init(server->threads[i], server, i, true);
        if (rc != 0)
            break;
        sz_proxy_pools_configure(server->threads[i]->pools, server->current->conf, upstream_tls);
        sz_tls_thread_swap(server->threads[i], server->tls);
    }
    if (rc == 0)
        rc = sz_thread_init(server->service, server, server->threads_n, false);
    if (rc == 0)
        server->audit_port = sz_audit_port_open(server->gate.audit, server->service->loop);
    return rc;
}

static int start_providers(struct sz_server *server, struct sz_text *why)
{
    server->providers =
        sz_providers_new(server->service->loop, server->service->http, server->boot->conf->state_dir, why);
    if (server->providers == NULL)
        return -EINVAL;
    sz_providers_adopt(server->providers, server->current->issuers, true);
    server->followers = sz_followers_new(server->service->loop, server->service->http);
    sz_followers_adopt(server->followers, server->current->source);
    return 0;
}

static int start_threat_store(struct sz_server *server, struct sz_text *why)
{
    struct sz_loop *loop = server->service->loop;
    server->threat_store = sz_threat_store_new(loop, server->gate.threat, server->boot->conf->state_dir,
                                               sz_loop_now(loop), sz_loop_wall(loop), why);
    server->gate.threat_store = server->threat_store;
    return server->threat_store == NULL ? -EINVAL : 0;
}

/* `check` has seen to it that there is a Redis with a key. */
static void share_blocks(struct sz_server *server)
{
    const struct sz_conf *conf = server->boot->conf;
    if (!conf->threat.share)
        return;
    server->threat_fleet = sz_fleet_new(conf->redis.key.value, NULL, 0);
    SZ_ASSERT(server->threat_fleet != NULL);
    sz_threat_store_share(server->threat_store, server->service->redis, server->threat_fleet);
}

static int start_threads(struct sz_server *server)
{
    for (unsigned i = 0; i < server->threads_n; i++) {
        atomic_fetch_add(&server->threads_running, 1);
        int rc = pthread_create(&server->threads[i]->id, NULL, worker_main, server->threads[i]);
        if (rc != 0)
            return -rc;
    }
    return 0;
}

static void end(struct sz_server *server)
{
    /* Its thread posts to the service loop. */
    if (!sz_reload_wait(server->reloader, service.hard_end.at)) {
        sz_log(SZ_LOG_WARN, "edge", "the drain took longer than limits.drain: a reload is left that waits for a file");
        end_now();
    }
    for (unsigned i = 0; i < server->threads_n; i++) {
        pthread_join(server->threads[i]->id, NULL);
        free(server->threads[i]);
    }
    free(server->threads);
    if (server->boot->conf->fga.listen != NULL)
        sz_fga_hub_audit(server->fga, NULL);
    sz_cert_watch_end(server);
    sz_revoking_stop(server);
    sz_timer_cancel(server->service->loop, &service.hard_end);
    sz_watch_free(&service.watch);
    close(service.signals);
    sz_providers_free(&server->providers);
    sz_threat_store_stop(server->threat_store);
    sz_admin_writes_end(server);
    sz_audit_port_close(&server->audit_port);
    sz_audit_stop_reading(server->gate.audit);
    sz_followers_free(&server->followers);
    sz_tracing_free(&server->tracing);
    sz_thread_fini(server->service);
    sz_threat_store_free(&server->threat_store);
    sz_fleet_free(&server->threat_fleet);
    free(server->service);
    server->service = NULL;
    server->threads = NULL;
    server->threads_n = 0;
    sz_http_shared_free(&server->http);
    sz_redis_shared_free(&server->redis_cache);
    sz_redis_shared_free(&server->redis);
}

int sz_server_run(struct sz_server *server, void (*on_ready)(struct sz_server *server), struct sz_text *why)
{
    struct sz_mistakes mistakes;
    int rc = -EINVAL;

    service.server = server;
    block_signals();
    if (sz_revoking_open(server, why) != 0)
        return rc;
    sz_mistakes_init(&mistakes);
    struct sz_upstream_tls *upstream_tls = sz_upstream_tls_new(server->current->conf, &mistakes);
    server->tls = upstream_tls == NULL ? NULL : sz_tls_set_new(server, server->current->conf, &mistakes);
    if (server->tls != NULL && make_redis(server, why) != 0)
        return -EINVAL;
    if (server->tls != NULL)
        rc = make_threads(server, upstream_tls);
    sz_mistakes_log(&mistakes);
    sz_mistakes_fini(&mistakes);
    sz_upstream_tls_unref(upstream_tls);
    if (rc == 0 && (start_providers(server, why) != 0 || start_threat_store(server, why) != 0))
        return -EINVAL;
    if (rc == 0 && server->tracing != NULL && sz_tracing_start(server->tracing, why) != 0)
        return -EINVAL;
    if (rc == 0)
        rc = watch_signals(server);
    if (rc == 0)
        rc = sz_revoking_start(server);
    if (rc == 0)
        share_blocks(server);
    if (rc == 0)
        rc = start_threads(server);
    if (rc != 0) {
        sz_text_set(why, "cannot start: %s", server->tls == NULL ? "see the mistakes above" : strerror(-rc));
        return rc;
    }
    sz_cert_watch_follow(server);
    on_ready(server);
    sz_loop_run(server->service->loop);
    sz_log(SZ_LOG_INFO, "edge", "drained");
    end(server);
    return 0;
}

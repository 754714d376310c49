/* A thread that sleeps on a condition with a timeout, so that it can be ended at once. */
#include "edge/cert_watch.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h> /* struct timespec */

#include "edge/reload.h"
#include "edge/server.h"
#include "edge/thread.h"
#include "edge/tls.h"
#include "subzero/log.h"

#define LOOK_EVERY SZ_SEC(2)

struct sz_cert_watch {
    struct sz_server *server;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    bool end;
    uint64_t loaded; /* the state of the files that are in use, or that a reload was asked for */
    struct sz_msg changed;
    atomic_bool posted;
};

static void on_changed(struct sz_msg *msg, struct sz_loop *loop)
{
    struct sz_cert_watch *watch = SZ_CONTAINER(msg, struct sz_cert_watch, changed);
    (void)loop;
    atomic_store(&watch->posted, false);
    if (sz_server_draining(watch->server))
        return;
    sz_log(SZ_LOG_INFO, "tls", "certificate files have changed: reloading");
    sz_reload_start(watch->server->reloader);
}

/* True when the watch is to end. */
static bool sleep_until_look(struct sz_cert_watch *watch)
{
    int64_t us = sz_after(sz_mono_read(), LOOK_EVERY).us;
    struct timespec at = {.tv_sec = us / 1000000, .tv_nsec = us % 1000000 * 1000};
    pthread_mutex_lock(&watch->lock);
    while (!watch->end && pthread_cond_timedwait(&watch->wake, &watch->lock, &at) == 0)
        continue;
    bool end = watch->end;
    pthread_mutex_unlock(&watch->lock);
    return end;
}

static void *watch_main(void *arg)
{
    struct sz_cert_watch *watch = arg;
    const struct sz_conf *conf = watch->server->boot->conf;
    uint64_t before = watch->loaded;
    while (!sleep_until_look(watch)) {
        uint64_t now = sz_tls_files_state(conf);
        if (now != watch->loaded && now == before && !atomic_exchange(&watch->posted, true)) {
            watch->loaded = now;
            sz_loop_post(watch->server->service->loop, &watch->changed);
        }
        before = now;
    }
    return NULL;
}

struct sz_cert_watch *sz_cert_watch_new(struct sz_server *server)
{
    pthread_condattr_t attr;
    if (!sz_tls_wants_watch(server->boot->conf))
        return NULL;
    struct sz_cert_watch *watch = sz_xcalloc(1, sizeof(*watch));
    watch->server = server;
    watch->loaded = sz_tls_set_files(server->tls);
    watch->changed.on_msg = on_changed;
    pthread_mutex_init(&watch->lock, NULL);
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&watch->wake, &attr);
    pthread_condattr_destroy(&attr);
    if (pthread_create(&watch->thread, NULL, watch_main, watch) == 0)
        return watch;
    sz_server_note(server, "tls.watch: no thread for it; certificates are reloaded on SIGHUP alone");
    free(watch);
    return NULL;
}

void sz_cert_watch_free(struct sz_cert_watch **watchp)
{
    struct sz_cert_watch *watch = *watchp;
    if (watch == NULL)
        return;
    *watchp = NULL;
    pthread_mutex_lock(&watch->lock);
    watch->end = true;
    pthread_cond_signal(&watch->wake);
    pthread_mutex_unlock(&watch->lock);
    pthread_join(watch->thread, NULL);
    pthread_cond_destroy(&watch->wake);
    pthread_mutex_destroy(&watch->lock);
    free(watch);
}

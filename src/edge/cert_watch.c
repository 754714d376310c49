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
    struct sz_snapshot *snapshot; /* whose files are watched; one reference */
    uint64_t loaded;              /* the state of the files that are in use, or that a reload was asked for */
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

/* With a reference of its own: the files are looked at without the lock. */
static struct sz_snapshot *watched(struct sz_cert_watch *watch)
{
    pthread_mutex_lock(&watch->lock);
    struct sz_snapshot *snapshot = watch->snapshot;
    sz_snapshot_ref(snapshot);
    pthread_mutex_unlock(&watch->lock);
    return snapshot;
}

/* True when they are not those that were loaded, and no reload has changed meanwhile what is watched. */
static bool are_new(struct sz_cert_watch *watch, const struct sz_snapshot *snapshot, uint64_t now)
{
    pthread_mutex_lock(&watch->lock);
    bool new = watch->snapshot == snapshot &&now != watch->loaded && !atomic_exchange(&watch->posted, true);
    if (new)
        watch->loaded = now;
    pthread_mutex_unlock(&watch->lock);
    return new;
}

static void *watch_main(void *arg)
{
    struct sz_cert_watch *watch = arg;
    uint64_t before = 0;
    while (!sleep_until_look(watch)) {
        struct sz_snapshot *snapshot = watched(watch);
        uint64_t now = sz_tls_files_state(watch->server, snapshot->conf);
        if (now == before && are_new(watch, snapshot, now))
            sz_loop_post(watch->server->service->loop, &watch->changed);
        before = now;
        sz_snapshot_unref(snapshot);
    }
    return NULL;
}

static void release(struct sz_cert_watch *watch)
{
    pthread_cond_destroy(&watch->wake);
    pthread_mutex_destroy(&watch->lock);
    sz_snapshot_unref(watch->snapshot);
    free(watch);
}

static void start(struct sz_server *server)
{
    pthread_condattr_t attr;
    struct sz_cert_watch *watch = sz_xcalloc(1, sizeof(*watch));
    watch->server = server;
    watch->snapshot = server->current;
    sz_snapshot_ref(watch->snapshot);
    watch->loaded = sz_tls_set_files(server->tls);
    watch->changed.on_msg = on_changed;
    pthread_mutex_init(&watch->lock, NULL);
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&watch->wake, &attr);
    pthread_condattr_destroy(&attr);
    if (pthread_create(&watch->thread, NULL, watch_main, watch) == 0) {
        server->certs = watch;
        return;
    }
    sz_server_note(server, "tls.watch: no thread for it; certificates are reloaded on SIGHUP alone");
    release(watch);
}

void sz_cert_watch_follow(struct sz_server *server)
{
    struct sz_cert_watch *watch = server->certs;
    if (watch == NULL) {
        if (sz_tls_wants_watch(server->current->conf))
            start(server);
        return;
    }
    pthread_mutex_lock(&watch->lock);
    struct sz_snapshot *old = watch->snapshot;
    watch->snapshot = server->current;
    sz_snapshot_ref(watch->snapshot);
    watch->loaded = sz_tls_set_files(server->tls);
    pthread_mutex_unlock(&watch->lock);
    sz_snapshot_unref(old);
}

void sz_cert_watch_end(struct sz_server *server)
{
    struct sz_cert_watch *watch = server->certs;
    if (watch == NULL)
        return;
    server->certs = NULL;
    pthread_mutex_lock(&watch->lock);
    watch->end = true;
    pthread_cond_signal(&watch->wake);
    pthread_mutex_unlock(&watch->lock);
    pthread_join(watch->thread, NULL);
    release(watch);
}

/* Two lists under one lock, a condition for the thread and an eventfd for the loop. */
#include "fga/keeper.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

struct list {
    struct sz_keeper_job *first, **last;
};

struct sz_keeper {
    pthread_mutex_t lock;
    pthread_cond_t wake;
    struct list todo, done;
    bool stop, started;
    pthread_t thread;
    int fd;
    struct sz_watch *watch;
};

static void clear(struct list *list)
{
    list->first = NULL;
    list->last = &list->first;
}

static void append(struct list *list, struct sz_keeper_job *job)
{
    job->next = NULL;
    *list->last = job;
    list->last = &job->next;
}

static struct sz_keeper_job *take(struct list *list)
{
    struct sz_keeper_job *job = list->first;
    if (job == NULL)
        return NULL;
    list->first = job->next;
    if (list->first == NULL)
        list->last = &list->first;
    return job;
}

static void *run(void *arg)
{
    struct sz_keeper *keeper = arg;
    pthread_setname_np(pthread_self(), "keeper");
    pthread_mutex_lock(&keeper->lock);
    while (!keeper->stop) {
        struct sz_keeper_job *job = take(&keeper->todo);
        if (job == NULL) {
            pthread_cond_wait(&keeper->wake, &keeper->lock);
            continue;
        }
        pthread_mutex_unlock(&keeper->lock);
        job->work(job);
        pthread_mutex_lock(&keeper->lock);
        append(&keeper->done, job);
        (void)eventfd_write(keeper->fd, 1);
    }
    pthread_mutex_unlock(&keeper->lock);
    return NULL;
}

static void on_ready(void *arg, int fd, unsigned events)
{
    struct sz_keeper *keeper = arg;
    struct sz_keeper_job *job;
    eventfd_t n;
    (void)events;
    (void)eventfd_read(fd, &n);
    for (;;) {
        pthread_mutex_lock(&keeper->lock);
        job = take(&keeper->done);
        pthread_mutex_unlock(&keeper->lock);
        if (job == NULL)
            return;
        job->done(job);
    }
}

struct sz_keeper *sz_keeper_new(struct sz_loop *loop)
{
    struct sz_keeper *keeper = sz_xcalloc(1, sizeof(*keeper));
    pthread_mutex_init(&keeper->lock, NULL);
    pthread_cond_init(&keeper->wake, NULL);
    clear(&keeper->todo);
    clear(&keeper->done);
    keeper->fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (keeper->fd >= 0)
        keeper->watch = sz_watch_new(loop, keeper->fd, on_ready, keeper);
    if (keeper->watch == NULL) {
        int error = errno;
        sz_keeper_free(&keeper);
        errno = error;
        return NULL;
    }
    sz_watch_set(keeper->watch, SZ_READ);
    return keeper;
}

void sz_keeper_free(struct sz_keeper **keeperp)
{
    struct sz_keeper *keeper = *keeperp;
    *keeperp = NULL;
    if (keeper == NULL)
        return;
    if (keeper->started) {
        pthread_mutex_lock(&keeper->lock);
        keeper->stop = true;
        pthread_cond_signal(&keeper->wake);
        pthread_mutex_unlock(&keeper->lock);
        pthread_join(keeper->thread, NULL);
    }
    sz_watch_free(&keeper->watch);
    if (keeper->fd >= 0)
        close(keeper->fd);
    pthread_cond_destroy(&keeper->wake);
    pthread_mutex_destroy(&keeper->lock);
    free(keeper);
}

void sz_keeper_post(struct sz_keeper *keeper, struct sz_keeper_job *job)
{
    if (!keeper->started && pthread_create(&keeper->thread, NULL, run, keeper) == 0)
        keeper->started = true;
    pthread_mutex_lock(&keeper->lock);
    append(&keeper->todo, job); /* without a thread: tried again with the next job */
    pthread_cond_signal(&keeper->wake);
    pthread_mutex_unlock(&keeper->lock);
}

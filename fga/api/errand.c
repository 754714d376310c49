/*
 * One mutex a queue.  It is held for a few instructions and the post of a message, never while an errand runs: a loop
 * that takes it waits for nobody's work.
 */
#include "fga/api/errand.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>

#define THREADS_MAX 8
#define BATCH       64 /* errands until `after` */

struct sz_errands {
    pthread_mutex_t lock;
    pthread_cond_t work;
    struct sz_errand *first, **last;
    unsigned waiting, most;
    char name[16];
    pthread_t threads[THREADS_MAX];
    unsigned threads_n, started;
    bool ending;
    void (*after)(void *arg);
    void *arg;
};

struct sz_errands *sz_errands_new(const char *name, unsigned threads, unsigned most, void (*after)(void *arg),
                                  void *arg)
{
    struct sz_errands *q = sz_xcalloc(1, sizeof(*q));
    SZ_ASSERT(threads >= 1 && threads <= THREADS_MAX && strlen(name) < sizeof(q->name));
    pthread_mutex_init(&q->lock, NULL);
    pthread_cond_init(&q->work, NULL);
    q->last = &q->first;
    q->most = most;
    memcpy(q->name, name, strlen(name));
    q->threads_n = threads;
    q->after = after;
    q->arg = arg;
    return q;
}

/* ---- the threads' side ---- */

void sz_errand_finish(struct sz_errand *e)
{
    struct sz_errands *q = e->on;
    pthread_mutex_lock(&q->lock);
    bool wanted = e->loop != NULL && !e->cancelled;
    if (wanted) {
        e->posted = true;
        sz_loop_post(e->loop, &e->msg); /* under the lock: after a cancel the loop may be gone */
    }
    pthread_mutex_unlock(&q->lock);
    if (!wanted)
        e->free(e);
}

bool sz_errand_wanted(struct sz_errand *e)
{
    pthread_mutex_lock(&e->on->lock);
    bool wanted = !e->cancelled;
    pthread_mutex_unlock(&e->on->lock);
    return wanted;
}

static struct sz_errand *take(struct sz_errands *q)
{
    struct sz_errand *e = q->first;
    if (e == NULL)
        return NULL;
    q->first = e->next;
    if (q->first == NULL)
        q->last = &q->first;
    q->waiting--;
    return e;
}

static void *thread_main(void *arg)
{
    struct sz_errands *q = arg;
    unsigned ran = 0;
    pthread_setname_np(pthread_self(), q->name);
    pthread_mutex_lock(&q->lock);
    for (;;) {
        if (q->after != NULL && ran > 0 && (q->first == NULL || ran == BATCH)) {
            pthread_mutex_unlock(&q->lock);
            q->after(q->arg);
            ran = 0;
            pthread_mutex_lock(&q->lock);
            continue;
        }
        struct sz_errand *e = take(q);
        if (e == NULL && q->ending)
            break;
        if (e == NULL) {
            pthread_cond_wait(&q->work, &q->lock);
            continue;
        }
        bool wanted = !e->cancelled;
        pthread_mutex_unlock(&q->lock);
        ran++;
        if (!wanted || e->run(e))
            sz_errand_finish(e);
        pthread_mutex_lock(&q->lock);
    }
    pthread_mutex_unlock(&q->lock);
    return NULL;
}

/* ---- the loops' side ---- */

static void on_msg(struct sz_msg *msg, struct sz_loop *loop)
{
    struct sz_errand *e = SZ_CONTAINER(msg, struct sz_errand, msg);
    (void)loop;
    if (!e->cancelled) /* set on this thread alone */
        e->done(e);
    e->free(e);
}

/* Under the lock.  The threads take no signals, whenever they begin: those are the main thread's. */
static bool have_threads(struct sz_errands *q)
{
    sigset_t all, before;
    if (q->started == q->threads_n)
        return true;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    while (q->started < q->threads_n && pthread_create(&q->threads[q->started], NULL, thread_main, q) == 0)
        q->started++;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return q->started > 0;
}

static bool add(struct sz_errands *q, struct sz_errand *e, unsigned most)
{
    e->on = q;
    e->next = NULL;
    e->msg.on_msg = on_msg;
    pthread_mutex_lock(&q->lock);
    bool taken = q->waiting < most && have_threads(q);
    if (taken) {
        *q->last = e;
        q->last = &e->next;
        q->waiting++;
        pthread_cond_signal(&q->work);
    }
    pthread_mutex_unlock(&q->lock);
    return taken;
}

bool sz_errand_start(struct sz_errands *q, struct sz_errand *e)
{
    return add(q, e, q->most);
}

void sz_errand_push(struct sz_errands *q, struct sz_errand *e)
{
    if (!add(q, e, UINT32_MAX))
        e->free(e);
}

void sz_errand_cancel(struct sz_errand *e)
{
    struct sz_errands *q = e->on;
    pthread_mutex_lock(&q->lock);
    e->cancelled = true;
    pthread_mutex_unlock(&q->lock);
}

void sz_errands_free(struct sz_errands **errands)
{
    struct sz_errands *q = *errands;
    *errands = NULL;
    if (q == NULL)
        return;
    pthread_mutex_lock(&q->lock);
    q->ending = true;
    pthread_cond_broadcast(&q->work);
    pthread_mutex_unlock(&q->lock);
    for (unsigned i = 0; i < q->started; i++)
        pthread_join(q->threads[i], NULL);
    pthread_cond_destroy(&q->work);
    pthread_mutex_destroy(&q->lock);
    free(q);
}

/*
 * One mutex a queue.  It is held for a few instructions and the post of a message, never while an errand runs: a loop
 * that takes it waits for nobody's work.
 */
#include "fga/api/errand.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

#define THREADS_MAX 8
#define BATCH       64 /* errands until `after` */

struct line { /* who waits for threads of one kind */
    struct sz_errands *of;
    pthread_cond_t work;
    struct sz_errand *first, **last;
    unsigned waiting, most;
    pthread_t threads[THREADS_MAX];
    unsigned threads_n, started;
    bool ending;
    char name[16];
};

struct sz_errands {
    pthread_mutex_t lock;
    struct line at_once, later;
    struct sz_errand *awaited; /* by loops */
    pthread_cond_t posted;
    int nice; /* of the threads of at_once */
    void (*after)(void *arg);
    void *arg;
};

static void line_init(struct line *line, struct sz_errands *q, unsigned threads, unsigned most)
{
    SZ_ASSERT(threads <= THREADS_MAX);
    line->of = q;
    pthread_cond_init(&line->work, NULL);
    line->last = &line->first;
    line->threads_n = threads;
    line->most = most;
}

struct sz_errands *sz_errands_new(const struct sz_errands_conf *conf)
{
    struct sz_errands *q = sz_xcalloc(1, sizeof(*q));
    SZ_ASSERT(conf->threads >= 1);
    pthread_mutex_init(&q->lock, NULL);
    pthread_cond_init(&q->posted, NULL);
    line_init(&q->at_once, q, conf->threads, conf->most);
    line_init(&q->later, q, conf->long_threads, conf->long_most);
    q->nice = conf->nice;
    snprintf(q->at_once.name, sizeof(q->at_once.name), "%s", conf->name);
    snprintf(q->later.name, sizeof(q->later.name), "%s-long", conf->name);
    q->after = conf->after;
    q->arg = conf->arg;
    return q;
}

/* ---- who is waited for; all under the lock ---- */

static void await(struct sz_errands *q, struct sz_errand *e)
{
    e->before = NULL;
    e->after = q->awaited;
    if (q->awaited != NULL)
        q->awaited->before = e;
    q->awaited = e;
}

static void await_no_more(struct sz_errand *e)
{
    if (e->before != NULL)
        e->before->after = e->after;
    else
        e->on->awaited = e->after;
    if (e->after != NULL)
        e->after->before = e->before;
}

/* ---- the threads' side ---- */

void sz_errand_finish(struct sz_errand *e)
{
    struct sz_errands *q = e->on;
    pthread_mutex_lock(&q->lock);
    bool wanted = e->loop != NULL && !e->cancelled;
    if (wanted) {
        e->posted = true;
        await_no_more(e);
        sz_loop_post(e->loop, &e->msg); /* under the lock: after a cancel the loop may be gone */
        pthread_cond_broadcast(&q->posted);
    }
    pthread_mutex_unlock(&q->lock);
    if (!wanted)
        e->free(e);
}

bool sz_errand_wanted(struct sz_errand *e)
{
    return !atomic_load_explicit(&e->cancelled, memory_order_relaxed) &&
           !atomic_load_explicit(&e->hurried, memory_order_relaxed);
}

static struct sz_errand *take(struct line *line)
{
    struct sz_errand *e = line->first;
    if (e == NULL)
        return NULL;
    line->first = e->next;
    if (line->first == NULL)
        line->last = &line->first;
    line->waiting--;
    return e;
}

/* Under the lock.  False: the line is full, or there is no thread to be had. */
static bool join(struct line *line, struct sz_errand *e, unsigned most);

/* An errand of `at_once` has had its time. */
static void give_way(struct sz_errands *q, struct sz_errand *e)
{
    SZ_ASSERT(!e->is_long);
    e->is_long = true;
    pthread_mutex_lock(&q->lock);
    bool joined = join(&q->later, e, q->later.most);
    pthread_mutex_unlock(&q->lock);
    if (joined)
        return;
    e->crowded(e);
    sz_errand_finish(e);
}

static void work(struct sz_errands *q, struct sz_errand *e, bool wanted)
{
    switch (wanted ? e->run(e) : SZ_ERRAND_DONE) {
    case SZ_ERRAND_DONE:
        sz_errand_finish(e);
        break;
    case SZ_ERRAND_HELD:
        break;
    case SZ_ERRAND_LONG:
        give_way(q, e);
        break;
    }
}

/* Of this thread alone, as Linux has it.  Where it may not, it competes like any other. */
static void begin_thread(const struct line *line)
{
    const struct sched_param none = {0};
    pthread_setname_np(pthread_self(), line->name);
    if (line == &line->of->later)
        (void)sched_setscheduler(0, SCHED_IDLE, &none);
    else if (line->of->nice != 0)
        (void)setpriority(PRIO_PROCESS, 0, line->of->nice);
}

static void *thread_main(void *arg)
{
    struct line *line = arg;
    struct sz_errands *q = line->of;
    unsigned ran = 0;
    begin_thread(line);
    pthread_mutex_lock(&q->lock);
    for (;;) {
        if (q->after != NULL && ran > 0 && (line->first == NULL || ran == BATCH)) {
            pthread_mutex_unlock(&q->lock);
            q->after(q->arg);
            ran = 0;
            pthread_mutex_lock(&q->lock);
            continue;
        }
        struct sz_errand *e = take(line);
        if (e == NULL && line->ending)
            break;
        if (e == NULL) {
            pthread_cond_wait(&line->work, &q->lock);
            continue;
        }
        bool wanted = !e->cancelled;
        pthread_mutex_unlock(&q->lock);
        ran++;
        work(q, e, wanted);
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
static bool have_threads(struct line *line)
{
    sigset_t all, before;
    if (line->started == line->threads_n)
        return line->threads_n > 0;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    while (line->started < line->threads_n &&
           pthread_create(&line->threads[line->started], NULL, thread_main, line) == 0)
        line->started++;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return line->started > 0;
}

static bool join(struct line *line, struct sz_errand *e, unsigned most)
{
    e->next = NULL;
    if (line->waiting >= most || !have_threads(line))
        return false;
    *line->last = e;
    line->last = &e->next;
    line->waiting++;
    pthread_cond_signal(&line->work);
    return true;
}

static bool add(struct sz_errands *q, struct sz_errand *e, unsigned most)
{
    e->on = q;
    e->is_long = false;
    e->msg.on_msg = on_msg;
    pthread_mutex_lock(&q->lock);
    bool taken = join(&q->at_once, e, most);
    if (taken && e->loop != NULL)
        await(q, e);
    pthread_mutex_unlock(&q->lock);
    return taken;
}

bool sz_errand_start(struct sz_errands *q, struct sz_errand *e)
{
    return add(q, e, q->at_once.most);
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
    if (!e->posted)
        await_no_more(e);
    pthread_mutex_unlock(&q->lock);
}

/* Under the lock.  True: there are some. */
static bool hurry(struct sz_errands *q, const struct sz_loop *loop)
{
    bool any = false;
    for (struct sz_errand *e = q->awaited; e != NULL; e = e->after) {
        e->hurried = e->hurried || e->loop == loop;
        any = any || e->loop == loop;
    }
    return any;
}

bool sz_errands_settle(struct sz_errands *q, struct sz_loop *loop)
{
    bool any = false;
    pthread_mutex_lock(&q->lock);
    while (hurry(q, loop)) {
        any = true;
        pthread_cond_wait(&q->posted, &q->lock);
    }
    pthread_mutex_unlock(&q->lock);
    return any;
}

static void end_line(struct sz_errands *q, struct line *line)
{
    pthread_mutex_lock(&q->lock);
    line->ending = true;
    pthread_cond_broadcast(&line->work);
    pthread_mutex_unlock(&q->lock);
    for (unsigned i = 0; i < line->started; i++)
        pthread_join(line->threads[i], NULL);
    pthread_cond_destroy(&line->work);
}

void sz_errands_free(struct sz_errands **errands)
{
    struct sz_errands *q = *errands;
    *errands = NULL;
    if (q == NULL)
        return;
    end_line(q, &q->at_once); /* first: it makes long ones, and starts their threads */
    end_line(q, &q->later);
    pthread_cond_destroy(&q->posted);
    pthread_mutex_destroy(&q->lock);
    free(q);
}

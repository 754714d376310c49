/* Who waits for whom among errands. */
#include <criterion/criterion.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#include "fake/loop.h"
#include "fga/api/errand.h"

TestSuite(errand, .timeout = 60);

enum { LONG_THREADS = 2, LONG_MOST = 3 };

struct world {
    struct sz_errands *errands;
    struct sz_loop *loop;
    sem_t gate, at_gate; /* long ones wait for the first, and say by the second that they do */
    unsigned done, wanted, crowded;
};

struct job {
    struct sz_errand errand;
    struct world *w;
    bool is_long, was_crowded, patient; /* patient: for as long as somebody wants it */
};

static enum sz_errand_end run(struct sz_errand *e)
{
    struct job *job = SZ_CONTAINER(e, struct job, errand);
    if (!job->is_long)
        return SZ_ERRAND_DONE;
    if (!e->is_long)
        return SZ_ERRAND_LONG;
    sem_post(&job->w->at_gate);
    if (job->patient)
        while (sz_errand_wanted(e))
            usleep(1000);
    else
        while (sem_wait(&job->w->gate) != 0)
            continue;
    return SZ_ERRAND_DONE;
}

static void crowded(struct sz_errand *e)
{
    SZ_CONTAINER(e, struct job, errand)->was_crowded = true;
}

static void done(struct sz_errand *e)
{
    struct job *job = SZ_CONTAINER(e, struct job, errand);
    job->w->done++;
    job->w->crowded += job->was_crowded;
}

static void free_job(struct sz_errand *e)
{
    free(SZ_CONTAINER(e, struct job, errand));
}

static struct job *start_job(struct world *w, bool is_long, bool patient)
{
    struct job *job = calloc(1, sizeof(*job));
    job->errand = (struct sz_errand){.run = run, .crowded = crowded, .done = done, .free = free_job, .loop = w->loop};
    job->w = w;
    job->is_long = is_long;
    job->patient = patient;
    cr_assert(sz_errand_start(w->errands, &job->errand));
    return job;
}

static struct job *start(struct world *w, bool is_long)
{
    return start_job(w, is_long, false);
}

static void open_world(struct world *w)
{
    memset(w, 0, sizeof(*w));
    w->loop = fake_loop_new(0);
    w->errands = sz_errands_new(&(struct sz_errands_conf){
        .name = "test", .threads = 1, .most = 100, .long_threads = LONG_THREADS, .long_most = LONG_MOST});
    sem_init(&w->gate, 0, 0);
    sem_init(&w->at_gate, 0, 0);
}

static bool enough(void *arg)
{
    const struct world *w = arg;
    return w->done >= w->wanted;
}

static void wait_done(struct world *w, unsigned n)
{
    w->wanted = n;
    cr_assert(fake_loop_run_until(w->loop, enough, w, 20000), "%u of %u", w->done, n);
}

static void close_world(struct world *w)
{
    for (int i = 0; i < 100; i++)
        sem_post(&w->gate);
    sz_errands_free(&w->errands);
    fake_loop_settle(w->loop);
    fake_loop_free(&w->loop);
    sem_destroy(&w->gate);
    sem_destroy(&w->at_gate);
}

static void hold_long_threads(struct world *w)
{
    for (int i = 0; i < LONG_THREADS; i++)
        start(w, true);
    for (int i = 0; i < LONG_THREADS; i++)
        while (sem_wait(&w->at_gate) != 0)
            continue;
}

Test(errand, short_ones_do_not_wait_for_long_ones)
{
    struct world w;
    open_world(&w);
    hold_long_threads(&w);
    for (int i = 0; i < 50; i++)
        start(&w, i % 25 == 24);
    wait_done(&w, 48);
    cr_expect_eq(w.done, 48);
    close_world(&w);
    cr_expect_eq(w.done, 52);
    cr_expect_eq(w.crowded, 0);
}

Test(errand, too_many_long_ones_hear_it)
{
    struct world w;
    open_world(&w);
    hold_long_threads(&w);
    for (int i = 0; i < LONG_MOST + 4; i++)
        start(&w, true);
    wait_done(&w, 4);
    cr_expect_eq(w.crowded, 4);
    close_world(&w);
    cr_expect_eq(w.done, LONG_THREADS + LONG_MOST + 4);
}

Test(errand, who_leaves_is_told_nothing)
{
    struct world w;
    open_world(&w);
    hold_long_threads(&w);
    struct job *waits = start(&w, true);
    start(&w, false);
    wait_done(&w, 1);
    sz_errand_cancel(&waits->errand);
    close_world(&w);
    cr_expect_eq(w.done, 1 + LONG_THREADS);
}

/* An errand that nobody cancels, because whoever asked is gone, must not post to a loop that is no more. */
Test(errand, a_loop_that_ends_gets_everything_back_first)
{
    struct world w;
    open_world(&w);
    struct sz_loop *other = fake_loop_new(1);
    for (int i = 0; i < LONG_THREADS + 1; i++)
        start_job(&w, true, true);
    while (sem_wait(&w.at_gate) != 0)
        continue;
    cr_expect_not(sz_errands_settle(w.errands, other));
    cr_expect_eq(w.done, 0);
    cr_expect(sz_errands_settle(w.errands, w.loop));
    fake_loop_settle(w.loop);
    cr_expect_eq(w.done, LONG_THREADS + 1);
    cr_expect_not(sz_errands_settle(w.errands, w.loop));
    fake_loop_free(&other);
    close_world(&w);
}

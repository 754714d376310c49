/*
 * Workers that submit traces while the service loop takes, posts and drops them: for ThreadSanitizer.  Every span is
 * counted once, as exported or as dropped.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "subzero/metrics.h"
#include "subzero/tracing.h"

enum { THREADS = 3, EACH = 20000 };

static struct sz_tracer *tracer;
static struct sz_loop *loop;
static atomic_uint running = THREADS;

static struct later { /* the collector: answers at the next turn */
    struct sz_defer defer;
    struct sz_dependency_call *call;
} later;

static void on_later(struct sz_defer *defer)
{
    static unsigned number;
    struct sz_http_answer answer = {.result = SZ_HTTP_ANSWERED, .status = ++number % 7 == 0 ? 400 : 200};
    (void)defer;
    later.call->on_done(later.call, &answer);
}

static int start(void *arg, const struct sz_http_request *request, struct sz_dependency_call *call)
{
    (void)arg;
    SZ_ASSERT(request->body.n > 0);
    later.call = call;
    later.defer.on_run = on_later;
    sz_defer_start(loop, &later.defer);
    return 0;
}

static void cancel(struct sz_dependency_call *call)
{
    (void)call;
    sz_defer_cancel(&later.defer);
}

static enum sz_breaker_outcome outcome(const struct sz_http_answer *answer)
{
    (void)answer;
    return SZ_BREAKER_SUCCESS;
}

static void *work(void *arg)
{
    for (unsigned i = 0; i < EACH; i++) {
        struct sz_trace *trace = sz_tracer_record(tracer);
        trace->parent.trace_id[0] = (uint8_t)(1 + (uintptr_t)arg);
        trace->ids = i;
        trace->method = trace->protocol = "GET";
        trace->spans[0] = (struct sz_trace_span){.name = "request", .kind = SZ_TRACE_SERVER};
        trace->n = 1;
        sz_tracer_submit(tracer, trace);
    }
    atomic_fetch_sub(&running, 1);
    return NULL;
}

static void on_drained(void *arg)
{
    (void)arg;
    sz_loop_stop(loop);
}

static void on_look(struct sz_timer *timer)
{
    if (atomic_load(&running) == 0)
        sz_tracer_drain(tracer, SZ_SEC(60), on_drained, NULL);
    else
        sz_timer_start(loop, timer, sz_after(sz_loop_now(loop), SZ_MS(5)));
}

int main(void)
{
    static const struct sz_conf_tracing conf = {.on = true, .queue = 1024, .timeout = {1000000}};
    static const struct sz_trace_wire wire = {NULL, start, cancel, outcome};
    static const char *const results[] = {"exported", "rejected", "failed", "full"};
    struct sz_timer look = {.on_fire = on_look};
    pthread_t threads[THREADS];
    uint64_t sum = 0;
    sz_metrics_init(1);
    loop = sz_loop_new(0);
    SZ_ASSERT(loop != NULL);
    tracer = sz_tracer_new(&conf);
    sz_tracer_start(tracer, loop, &wire);
    for (uintptr_t i = 0; i < THREADS; i++)
        SZ_ASSERT(pthread_create(&threads[i], NULL, work, (void *)i) == 0);
    sz_timer_start(loop, &look, sz_loop_now(loop));
    sz_loop_run(loop);
    for (unsigned i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    sz_tracer_free(&tracer);
    for (size_t i = 0; i < SZ_COUNT(results); i++) {
        uint64_t n = sz_counter_read(sz_series1(SZ_METRIC_trace_spans, results[i]));
        printf("%s %llu\n", results[i], (unsigned long long)n);
        sum += n;
    }
    SZ_ASSERT(sum == THREADS * EACH);
    sz_loop_free(&loop);
    sz_metrics_fini();
    return 0;
}

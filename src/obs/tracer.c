/*
 * The way of traces to the collector.  Workers push records onto a list without a lock; the service loop takes them
 * off in batches.  There is one batch at a time: while it is under way or waits to be tried again, the queue fills, and
 * what does not fit is dropped and counted.  So a collector that is slow, gone or hostile costs a fixed amount of
 * memory, and no request notices.
 *
 *   IDLE ──▶ GATHERING (a second, or a batch is full) ──▶ SENDING ──▶ IDLE
 *                                                            │ ▲
 *                                        may pass, or open   ▼ │ 1, 2, 4 ... 30 s, or what the collector asks for
 *                                                          WAITING ──▶ a minute old: lost
 */
#include <stdatomic.h>
#include <stdlib.h>

#include "subzero/crypto.h"
#include "subzero/log.h"
#include "subzero/metrics.h"
#include "subzero/tracing.h"

enum { BATCH = 256 }; /* traces */
enum { ANSWER_MAX = 64 * 1024 };
#define GATHER    SZ_SEC(1)
#define FIRST_TRY SZ_SEC(1)
#define LAST_TRY  SZ_SEC(30)
#define GIVE_UP   SZ_SEC(60)

enum state { IDLE, GATHERING, SENDING, WAITING };

struct batch {
    struct sz_buf body;
    uint64_t spans;
    struct sz_mono made;
    struct sz_span pause;
};

struct sz_tracer {
    const struct sz_conf_tracing *conf;
    struct {
        struct sz_series exported, rejected, failed, full;
    } series;

    /* Any thread. */
    _Atomic(struct sz_trace *) head; /* the newest first */
    _Atomic uint32_t queued;
    _Atomic bool poked;

    /* The service loop's. */
    struct sz_loop *loop;
    struct sz_trace_wire wire;
    struct sz_msg poke;
    struct sz_timer timer, end; /* of the state; of a drain */
    enum state state;
    struct sz_trace *taken; /* off the list, oldest first, not yet in a batch */
    struct batch batch;
    struct sz_dependency_call call;
    bool failing; /* said in the log */
    void (*on_drained)(void *arg);
    void *drained_arg;
    uint64_t jitter;
};

static void advance(struct sz_tracer *t);

/* ---- the queue -----------------------------------------------------------------------------------------------------
 */

struct sz_trace *sz_tracer_record(struct sz_tracer *tracer)
{
    (void)tracer;
    return sz_xcalloc(1, sizeof(struct sz_trace));
}

static uint64_t spans_of(const struct sz_trace *trace)
{
    uint64_t n = 0;
    for (unsigned i = 0; i < trace->n; i++)
        n += trace->spans[i].name != NULL;
    return n;
}

static void drop(struct sz_trace *trace, struct sz_series why)
{
    sz_count(SZ_NO_LOOP, why, spans_of(trace));
    free(trace);
}

/* One wake for the first of a batch, and one when a batch is full: not one for each. */
static void poke(struct sz_tracer *t, uint32_t queued)
{
    if ((queued == 1 || queued == BATCH) && !atomic_exchange(&t->poked, true))
        sz_loop_post(t->loop, &t->poke);
}

void sz_tracer_submit(struct sz_tracer *t, struct sz_trace *trace)
{
    uint32_t queued = atomic_fetch_add(&t->queued, 1) + 1;
    if (queued > t->conf->queue) {
        atomic_fetch_sub(&t->queued, 1);
        drop(trace, t->series.full);
        return;
    }
    trace->next = atomic_load_explicit(&t->head, memory_order_relaxed);
    while (!atomic_compare_exchange_weak_explicit(&t->head, &trace->next, trace, memory_order_release,
                                                  memory_order_relaxed))
        ;
    poke(t, queued);
}

/* The list is taken whole and turned round. */
static void take(struct sz_tracer *t)
{
    struct sz_trace *newest = atomic_exchange_explicit(&t->head, NULL, memory_order_acquire), *oldest = NULL;
    while (newest != NULL) {
        struct sz_trace *next = newest->next;
        newest->next = oldest;
        oldest = newest;
        newest = next;
    }
    struct sz_trace **end = &t->taken;
    while (*end != NULL)
        end = &(*end)->next;
    *end = oldest;
}

/* ---- a batch -------------------------------------------------------------------------------------------------------
 */

static void fill_batch(struct sz_tracer *t)
{
    struct sz_trace *first = t->taken, **end = &t->taken;
    uint32_t n = 0;
    t->batch = (struct batch){.made = sz_loop_now(t->loop), .pause = FIRST_TRY};
    for (; *end != NULL && n < BATCH; n++) {
        t->batch.spans += spans_of(*end);
        end = &(*end)->next;
    }
    t->taken = *end;
    *end = NULL;
    sz_otlp_encode(t->conf, first, &t->batch.body);
    while (first != NULL) {
        struct sz_trace *next = first->next;
        free(first);
        first = next;
    }
    atomic_fetch_sub(&t->queued, n);
}

static void end_batch(struct sz_tracer *t)
{
    sz_buf_fini(&t->batch.body);
    t->batch = (struct batch){0};
    t->state = IDLE;
}

static void lose_batch(struct sz_tracer *t)
{
    sz_count(SZ_NO_LOOP, t->series.failed, t->batch.spans);
    end_batch(t);
}

static void arm(struct sz_tracer *t, enum state state, struct sz_span in)
{
    t->state = state;
    sz_timer_start(t->loop, &t->timer, sz_after(sz_loop_now(t->loop), in));
}

/* Once when it begins to fail, once when it is over. */
static void tell(struct sz_tracer *t, const char *why, int status)
{
    if (t->failing)
        return;
    t->failing = true;
    sz_log(SZ_LOG_WARN, "tracing", "%.*s takes no spans: %s (status %d); subzero_trace_spans_total counts what is lost",
           SZ_FMT(t->conf->endpoint), why, status);
}

/* Half of the pause is chance, so that instances which were cut off together do not come back together. */
static void wait_to_retry(struct sz_tracer *t, struct sz_span asked)
{
    struct sz_span pause = t->batch.pause;
    struct sz_mono now = sz_loop_now(t->loop);
    if (t->on_drained != NULL || sz_between(t->batch.made, now).us >= GIVE_UP.us) {
        lose_batch(t);
        return;
    }
    t->batch.pause.us = pause.us * 2 < LAST_TRY.us ? pause.us * 2 : LAST_TRY.us;
    pause.us = pause.us / 2 + (int64_t)(sz_trace_random(&t->jitter) % (uint64_t)(pause.us / 2));
    arm(t, WAITING, asked.us > pause.us ? asked : pause);
}

static void succeed(struct sz_tracer *t, const struct sz_http_answer *answer)
{
    uint64_t rejected = sz_otlp_rejected(answer->body);
    if (rejected > t->batch.spans)
        rejected = t->batch.spans;
    sz_count(SZ_NO_LOOP, t->series.rejected, rejected);
    sz_count(SZ_NO_LOOP, t->series.exported, t->batch.spans - rejected);
    if (t->failing)
        sz_log(SZ_LOG_INFO, "tracing", "%.*s takes spans again", SZ_FMT(t->conf->endpoint));
    t->failing = false;
    end_batch(t);
}

/* What the OTLP specification says may be sent again, and what never was an answer. */
static bool may_pass(const struct sz_http_answer *answer)
{
    switch (answer->result) {
    case SZ_HTTP_ANSWERED:
        return answer->status == 429 || (answer->status >= 502 && answer->status <= 504);
    case SZ_HTTP_TOO_LARGE:
    case SZ_HTTP_REDIRECT:
    case SZ_HTTP_MALFORMED:
    case SZ_HTTP_CANCELLED:
        return false;
    default:
        return true;
    }
}

static enum sz_breaker_outcome on_done(struct sz_dependency_call *call, const struct sz_http_answer *answer)
{
    struct sz_tracer *t = SZ_CONTAINER(call, struct sz_tracer, call);
    if (answer->result == SZ_HTTP_ANSWERED && answer->status / 100 == 2) {
        succeed(t, answer);
    } else {
        tell(t, answer->result == SZ_HTTP_ANSWERED ? "refused" : answer->why.s, answer->status);
        if (may_pass(answer))
            wait_to_retry(t, answer->retry_after);
        else
            lose_batch(t);
    }
    if (t->state == IDLE)
        sz_timer_start(t->loop, &t->timer, sz_loop_now(t->loop)); /* what is next: not inside this call */
    return t->wire.outcome(answer);
}

static void send_batch(struct sz_tracer *t)
{
    struct sz_http_field fields[SZ_HTTP_FIELDS_MAX] = {{SZ_S("content-type"), SZ_S("application/x-protobuf")}};
    size_t n = 1;
    for (size_t i = 0; i < t->conf->headers_n && n < SZ_HTTP_FIELDS_MAX; i++)
        fields[n++] = (struct sz_http_field){t->conf->headers[i].name, t->conf->headers[i].value};
    struct sz_http_request request = {
        .method = SZ_HTTP_POST,
        .url = t->conf->endpoint,
        .insecure_http = t->conf->insecure_http,
        .fields = fields,
        .fields_n = n,
        .body = sz_buf_slice(&t->batch.body),
        .credentials = t->conf->headers_n > 0,
        .idempotent = true, /* span ids are fixed: a collector that gets them twice has them once */
        .deadline = sz_after(sz_loop_now(t->loop), t->conf->timeout),
        .limit = ANSWER_MAX,
    };
    t->call = (struct sz_dependency_call){.on_done = on_done};
    t->state = SENDING;
    int rc = t->wire.start(t->wire.arg, &request, &t->call);
    if (rc == 0)
        return;
    tell(t, rc == SZ_DEPENDENCY_OPEN ? "its breaker is open" : "it cannot be asked", 0);
    wait_to_retry(t, (struct sz_span){0});
}

/* ---- what is next --------------------------------------------------------------------------------------------------
 */

static void finish_drain(struct sz_tracer *t)
{
    void (*on_drained)(void *arg) = t->on_drained;
    sz_timer_cancel(t->loop, &t->end);
    t->on_drained = NULL;
    on_drained(t->drained_arg);
}

static void advance(struct sz_tracer *t)
{
    bool draining = t->on_drained != NULL;
    while (t->state == IDLE || t->state == GATHERING) {
        take(t);
        uint32_t queued = atomic_load(&t->queued);
        if (t->taken == NULL) {
            if (draining && sz_timer_armed(&t->end))
                sz_timer_start(t->loop, &t->end, sz_loop_now(t->loop)); /* nothing is left: at the next turn */
            return;
        }
        if (!draining && queued < BATCH && (t->state == IDLE || sz_timer_armed(&t->timer))) {
            if (t->state == IDLE)
                arm(t, GATHERING, GATHER);
            return;
        }
        sz_timer_cancel(t->loop, &t->timer);
        fill_batch(t);
        send_batch(t);
    }
}

static void on_timer(struct sz_timer *timer)
{
    struct sz_tracer *t = SZ_CONTAINER(timer, struct sz_tracer, timer);
    if (t->state == WAITING)
        send_batch(t);
    advance(t);
}

static void on_poke(struct sz_msg *msg, struct sz_loop *loop)
{
    struct sz_tracer *t = SZ_CONTAINER(msg, struct sz_tracer, poke);
    (void)loop;
    atomic_store(&t->poked, false); /* before the look: whoever comes later pokes again */
    advance(t);
}

/* ---- life ----------------------------------------------------------------------------------------------------------
 */

struct sz_tracer *sz_tracer_new(const struct sz_conf_tracing *conf)
{
    struct sz_tracer *t = sz_xcalloc(1, sizeof(*t));
    t->conf = conf;
    t->series.exported = sz_series1(SZ_METRIC_trace_spans, "exported");
    t->series.rejected = sz_series1(SZ_METRIC_trace_spans, "rejected");
    t->series.failed = sz_series1(SZ_METRIC_trace_spans, "failed");
    t->series.full = sz_series1(SZ_METRIC_trace_spans, "full");
    sz_random(&t->jitter, sizeof(t->jitter));
    atomic_store(&t->poked, true); /* nobody is there to be woken yet */
    return t;
}

void sz_tracer_start(struct sz_tracer *t, struct sz_loop *loop, const struct sz_trace_wire *wire)
{
    t->loop = loop;
    t->wire = *wire;
    t->poke.on_msg = on_poke;
    t->timer.on_fire = on_timer;
    atomic_store(&t->poked, false);
}

static void on_end(struct sz_timer *timer)
{
    finish_drain(SZ_CONTAINER(timer, struct sz_tracer, end));
}

void sz_tracer_drain(struct sz_tracer *t, struct sz_span most, void (*on_drained)(void *arg), void *arg)
{
    t->on_drained = on_drained;
    t->drained_arg = arg;
    t->end.on_fire = on_end;
    sz_timer_start(t->loop, &t->end, sz_after(sz_loop_now(t->loop), most));
    if (t->state == WAITING) { /* once more, and then no more */
        sz_timer_cancel(t->loop, &t->timer);
        send_batch(t);
    }
    advance(t);
}

void sz_tracer_free(struct sz_tracer **tp)
{
    struct sz_tracer *t = *tp;
    *tp = NULL;
    if (t == NULL)
        return;
    if (t->loop != NULL) {
        sz_timer_cancel(t->loop, &t->timer);
        sz_timer_cancel(t->loop, &t->end);
        if (t->state == SENDING)
            t->wire.cancel(&t->call);
    }
    if (t->state == SENDING || t->state == WAITING)
        lose_batch(t);
    for (take(t); t->taken != NULL;) {
        struct sz_trace *next = t->taken->next;
        drop(t->taken, t->series.failed);
        t->taken = next;
    }
    free(t);
}

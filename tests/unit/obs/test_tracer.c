/*
 * otlp.c and tracer.c: what is encoded is what a reader of the protocol reads; and the queue, batches, pauses and
 * bounds with a collector that does as the test says, on a loop whose time the test moves.
 */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>

#include "fake/loop.h"
#include "fake/otlp.h"
#include "subzero/metrics.h"
#include "subzero/tracing.h"

/* ---- a collector ----------------------------------------------------------------------------------------------------
 */

static struct {
    struct sz_dependency_call *call; /* waits for its answer */
    struct sz_buf body;
    unsigned posts, cancelled;
    int refuses; /* what start returns */
    size_t fields_n;
} collector;

static int start(void *arg, const struct sz_http_request *request, struct sz_dependency_call *call)
{
    cr_assert_eq(arg, (void *)&collector);
    cr_assert_null(collector.call, "one at a time");
    if (collector.refuses != 0)
        return collector.refuses;
    collector.call = call;
    collector.posts++;
    collector.fields_n = request->fields_n;
    collector.body.n = 0;
    sz_buf_adds(&collector.body, request->body);
    return 0;
}

static void cancel(struct sz_dependency_call *call)
{
    cr_assert_eq(call, collector.call);
    collector.call = NULL;
    collector.cancelled++;
}

static enum sz_breaker_outcome outcome(const struct sz_http_answer *answer)
{
    return answer->status / 100 == 2 ? SZ_BREAKER_SUCCESS : SZ_BREAKER_FAILURE;
}

static void answer(enum sz_http_result result, int status, struct sz_slice body)
{
    struct sz_dependency_call *call = collector.call;
    cr_assert_not_null(call, "nothing was posted");
    struct sz_http_answer a = {.result = result, .status = status, .body = body};
    collector.call = NULL;
    call->on_done(call, &a);
}

/* ---- the tracer -----------------------------------------------------------------------------------------------------
 */

static const struct sz_conf_pair resource[] = {{{"deployment.environment", 22}, {"test", 4}}};
static struct sz_conf_tracing conf;
static struct sz_tracer *tracer;
static struct sz_loop *loop;
static const struct sz_trace_wire wire = {&collector, start, cancel, outcome};

static void setup(void)
{
    sz_metrics_init(2);
    loop = fake_loop_new(0);
    conf = (struct sz_conf_tracing){.on = true,
                                    .endpoint = SZ_S("https://collector/v1/traces"),
                                    .service_name = SZ_S("gateway"),
                                    .resource = resource,
                                    .resource_n = 1,
                                    .sample = SZ_TRACE_ALL,
                                    .queue = 1000,
                                    .timeout = SZ_SEC(10)};
    tracer = sz_tracer_new(&conf);
    sz_tracer_start(tracer, loop, &wire);
}

static void teardown(void)
{
    sz_tracer_free(&tracer);
    fake_loop_free(&loop);
    sz_buf_fini(&collector.body);
    sz_metrics_fini();
}

TestSuite(tracer, .init = setup, .fini = teardown, .timeout = 60);

static double spans(const char *result)
{
    return (double)sz_counter_read(sz_series1(SZ_METRIC_trace_spans, result));
}

/* Two spans. */
static struct sz_trace *record(unsigned number)
{
    struct sz_trace *trace = sz_tracer_record(tracer);
    trace->parent.trace_id[15] = (uint8_t)number;
    trace->parent.trace_id[14] = (uint8_t)(number >> 8);
    trace->parent.trace_id[0] = 1;
    trace->ids = number * 1000;
    trace->mono = sz_loop_now(loop);
    trace->wall = sz_loop_wall(loop);
    trace->spans[SZ_TRACE_ROOT] = (struct sz_trace_span){
        .name = "request", .kind = SZ_TRACE_SERVER, .start = trace->mono, .end = sz_after(trace->mono, SZ_MS(5))};
    trace->spans[SZ_TRACE_FIRST] = (struct sz_trace_span){
        .name = "admit", .kind = SZ_TRACE_INTERNAL, .start = trace->mono, .end = sz_after(trace->mono, SZ_MS(1))};
    trace->n = SZ_TRACE_FIRST + 1;
    trace->made = trace->allow = true;
    trace->reason = SZ_REASON_allowed;
    trace->status = 200;
    trace->method = "GET";
    trace->protocol = "1.1";
    snprintf(trace->pattern, sizeof(trace->pattern), "/documents/{id}");
    snprintf(trace->route, sizeof(trace->route), "documents.read");
    return trace;
}

static void submit(unsigned from, unsigned n)
{
    for (unsigned i = from; i < from + n; i++)
        sz_tracer_submit(tracer, record(i));
}

static size_t posted(void)
{
    struct otlp got = {.n = 0};
    cr_assert(otlp_read(&got, sz_buf_slice(&collector.body)));
    size_t n = got.n;
    otlp_free(&got);
    return n;
}

/* ---- encoding -------------------------------------------------------------------------------------------------------
 */

Test(tracer, a_reader_of_the_protocol_reads_it)
{
    struct otlp got = {.n = 0};
    struct sz_buf out = {0};
    struct sz_trace *trace = record(1);
    trace->has_parent = true;
    memset(trace->parent.span_id, 0xab, sizeof(trace->parent.span_id));
    trace->spans[SZ_TRACE_UPSTREAM] = (struct sz_trace_span){
        .name = "upstream", .kind = SZ_TRACE_CLIENT, .start = trace->mono, .end = sz_after(trace->mono, SZ_MS(2))};
    trace->spans[SZ_TRACE_FIRST].layer = 2;
    snprintf(trace->upstream, sizeof(trace->upstream), "up");
    trace->https = true;
    trace->status = 502;
    trace->reason = SZ_REASON_upstream_error;
    sz_otlp_encode(&conf, trace, &out);
    cr_assert(otlp_read(&got, sz_buf_slice(&out)));
    cr_expect(sz_eq(sz_buf_slice(&got.resource),
                    SZ_S("service.name=gateway\nservice.version=" SZ_VERSION "\ndeployment.environment=test\n")));
    cr_assert_eq(got.n, 3);
    const struct otlp_span *root = otlp_find(&got, "GET /documents/{id}"), *up = otlp_find(&got, "upstream"),
                           *admit = otlp_find(&got, "admit");
    cr_assert(root != NULL && up != NULL && admit != NULL);
    cr_expect_str_eq(root->trace_id, "01000000000000000000000000000001");
    cr_expect_str_eq(root->parent, "abababababababab");
    cr_expect(root->remote && !up->remote && root->kind == 2 && up->kind == 3 && admit->kind == 1);
    cr_expect_str_eq(up->parent, root->id);
    cr_expect_str_eq(admit->parent, root->id);
    cr_expect_str_neq(up->id, admit->id);
    cr_expect_eq(root->end - root->start, 5000000);
    cr_expect_eq(root->start, (uint64_t)sz_loop_wall(loop).us * 1000);
    static const char *const attributes[] = {
        "http.request.method=GET",   "http.route=/documents/{id}",    "url.scheme=https",
        "error.type=upstream_error", "http.response.status_code=502", "subzero.route=documents.read",
        "subzero.decision=allow",    "subzero.reason=upstream_error", "network.protocol.version=1.1"};
    for (size_t i = 0; i < SZ_COUNT(attributes); i++)
        cr_expect(otlp_has(root, attributes[i]), "%s", attributes[i]);
    cr_expect(otlp_has(admit, "subzero.cache.layer=l2"));
    cr_expect(otlp_has(up, "subzero.upstream=up"));
    cr_expect(root->status == 2 && up->status == 2 && admit->status == 0);
    otlp_free(&got);
    sz_buf_fini(&out);
    free(trace);
}

Test(tracer, an_upstreams_own_failure_is_its_status)
{
    struct otlp got = {.n = 0};
    struct sz_buf out = {0};
    struct sz_trace *trace = record(1);
    trace->status = 501;
    sz_otlp_encode(&conf, trace, &out);
    cr_assert(otlp_read(&got, sz_buf_slice(&out)));
    cr_expect(otlp_has(&got.v[0], "error.type=501") && got.v[0].status == 2);
    otlp_free(&got);
    out.n = 0;
    trace->made = false; /* its client left */
    trace->status = 0;
    sz_otlp_encode(&conf, trace, &out);
    cr_assert(otlp_read(&got, sz_buf_slice(&out)));
    cr_expect(otlp_has(&got.v[0], "error.type=client_left") && got.v[0].status == 0);
    cr_expect_not(otlp_has(&got.v[0], "subzero.decision=allow"));
    otlp_free(&got);
    sz_buf_fini(&out);
    free(trace);
}

Test(tracer, rejected_spans_are_read_and_nonsense_is_not)
{
    static const struct {
        struct sz_slice response;
        uint64_t rejected;
    } rows[] = {
        {{"", 0}, 0},
        {{"\x0a\x00", 2}, 0},
        {{"\x0a\x02\x08\x05", 4}, 5},
        {{"\x0a\x06\x08\xac\x02\x12\x01x", 8}, 300},
        {{"\x0a\x7f\x08\x05", 4}, 0}, /* longer than it is */
        {{"<html>502 Bad Gateway</html>", 28}, 0},
        {{"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", 11}, 0},
        {{"\x0a\x02\x0a\x00", 4}, 0}, /* the number is a text */
        {{"\x0b\x01", 2}, 0},
    };
    for (size_t i = 0; i < SZ_COUNT(rows); i++)
        cr_expect_eq(sz_otlp_rejected(rows[i].response), rows[i].rejected, "row %zu", i);
}

/* ---- the way out
 * ----------------------------------------------------------------------------------------------------- */

Test(tracer, a_second_of_requests_is_one_post)
{
    submit(1, 10);
    fake_loop_settle(loop);
    cr_expect_eq(collector.posts, 0, "they gather first");
    fake_loop_run_for(loop, SZ_MS(1001));
    cr_expect_eq(collector.posts, 1);
    cr_expect_eq(posted(), 20);
    answer(SZ_HTTP_ANSWERED, 200, SZ_NONE);
    fake_loop_run_for(loop, SZ_SEC(5));
    cr_expect_eq(collector.posts, 1, "nothing is posted when there is nothing");
    cr_expect_eq(spans("exported"), 20);
}

Test(tracer, a_full_batch_does_not_wait)
{
    submit(1, 600);
    fake_loop_settle(loop);
    cr_expect_eq(collector.posts, 1);
    cr_expect_eq(posted(), 512);
    answer(SZ_HTTP_ANSWERED, 200, SZ_S("\x0a\x02\x08\x05"));
    fake_loop_settle(loop);
    cr_expect_eq(spans("rejected"), 5);
    cr_expect_eq(spans("exported"), 507);
    answer(SZ_HTTP_ANSWERED, 202, SZ_S("not protobuf"));
    fake_loop_run_for(loop, SZ_SEC(2));
    answer(SZ_HTTP_ANSWERED, 200, SZ_NONE);
    cr_expect_eq(spans("exported"), 1195);
}

/* Z9. */
Test(tracer, the_queue_is_bounded_and_what_does_not_fit_is_counted)
{
    collector.refuses = SZ_DEPENDENCY_OPEN;
    submit(1, 1000);
    fake_loop_run_for(loop, SZ_SEC(3)); /* one batch of them waits for its turn, outside the queue */
    submit(1001, 1256);
    cr_expect_eq(spans("full"), 2.0 * 1000);
    collector.refuses = 0;
    fake_loop_run_for(loop, SZ_SEC(30));
    for (int i = 0; i < 5; i++) {
        answer(SZ_HTTP_ANSWERED, 200, SZ_NONE);
        fake_loop_run_for(loop, SZ_SEC(2));
        if (collector.call == NULL)
            break;
    }
    cr_expect_eq(spans("exported"), 2.0 * 1256);
    cr_expect_eq(spans("failed"), 0);
}

Test(tracer, what_may_pass_is_tried_again_and_the_rest_is_lost)
{
    static const struct {
        enum sz_http_result result;
        int status;
        bool again;
    } rows[] = {
        {SZ_HTTP_ANSWERED, 400, false}, {SZ_HTTP_ANSWERED, 401, false}, {SZ_HTTP_ANSWERED, 404, false},
        {SZ_HTTP_ANSWERED, 429, true},  {SZ_HTTP_ANSWERED, 500, false}, {SZ_HTTP_ANSWERED, 502, true},
        {SZ_HTTP_ANSWERED, 503, true},  {SZ_HTTP_ANSWERED, 504, true},  {SZ_HTTP_REFUSED, 0, true},
        {SZ_HTTP_RESOLVE, 0, true},     {SZ_HTTP_TIMEOUT, 0, true},     {SZ_HTTP_TRUNCATED, 200, true},
        {SZ_HTTP_TLS, 0, true},         {SZ_HTTP_BUSY, 0, true},        {SZ_HTTP_TOO_LARGE, 200, false},
        {SZ_HTTP_MALFORMED, 0, false},  {SZ_HTTP_REDIRECT, 302, false},
    };
    for (unsigned i = 0; i < SZ_COUNT(rows); i++) {
        double failed = spans("failed");
        submit(1, 1);
        fake_loop_run_for(loop, SZ_SEC(2));
        unsigned posts = collector.posts;
        answer(rows[i].result, rows[i].status, SZ_NONE);
        fake_loop_run_for(loop, SZ_SEC(2));
        cr_expect_eq(collector.posts > posts, rows[i].again, "row %u", i);
        if (rows[i].again)
            answer(SZ_HTTP_ANSWERED, 200, SZ_NONE);
        cr_expect_eq(spans("failed") - failed, rows[i].again ? 0 : 2, "row %u", i);
    }
}

Test(tracer, pauses_grow_and_a_minute_is_enough)
{
    submit(1, 3);
    fake_loop_run_for(loop, SZ_SEC(2));
    struct sz_mono begun = sz_loop_now(loop);
    for (unsigned tries = 1; collector.call != NULL; tries++) {
        cr_assert_lt(tries, 20);
        answer(SZ_HTTP_ANSWERED, 503, SZ_NONE);
        for (int i = 0; i < 31 && collector.call == NULL; i++)
            fake_loop_run_for(loop, SZ_SEC(1));
    }
    cr_expect_leq(collector.posts, 10);
    cr_expect_leq(sz_between(begun, sz_loop_now(loop)).us, SZ_SEC(125).us);
    cr_expect_eq(spans("failed"), 6);
    submit(10, 1); /* and it goes on */
    fake_loop_run_for(loop, SZ_SEC(2));
    answer(SZ_HTTP_ANSWERED, 200, SZ_NONE);
    cr_expect_eq(spans("exported"), 2);
}

Test(tracer, retry_after_is_obeyed)
{
    submit(1, 1);
    fake_loop_run_for(loop, SZ_SEC(2));
    struct sz_dependency_call *call = collector.call;
    struct sz_http_answer a = {.result = SZ_HTTP_ANSWERED, .status = 429, .retry_after = SZ_SEC(20)};
    collector.call = NULL;
    call->on_done(call, &a);
    fake_loop_run_for(loop, SZ_SEC(19));
    cr_expect_eq(collector.posts, 1);
    fake_loop_run_for(loop, SZ_SEC(2));
    cr_expect_eq(collector.posts, 2);
}

static void on_drained(void *arg)
{
    *(int *)arg += 1;
}

Test(tracer, a_drain_sends_what_is_left)
{
    int drained = 0;
    submit(1, 300);
    fake_loop_settle(loop);
    submit(301, 5);
    sz_tracer_drain(tracer, SZ_SEC(2), on_drained, &drained);
    answer(SZ_HTTP_ANSWERED, 200, SZ_NONE);
    fake_loop_settle(loop);
    answer(SZ_HTTP_ANSWERED, 200, SZ_NONE);
    fake_loop_run_for(loop, SZ_MS(10));
    cr_expect_eq(drained, 1);
    cr_expect_eq(spans("exported"), 610);
}

Test(tracer, a_drain_ends_although_the_collector_is_silent_or_gone)
{
    int drained = 0;
    submit(1, 300);
    fake_loop_settle(loop);
    sz_tracer_drain(tracer, SZ_SEC(2), on_drained, &drained);
    fake_loop_run_for(loop, SZ_MS(2001));
    cr_expect_eq(drained, 1);
    sz_tracer_free(&tracer);
    cr_expect_eq(collector.cancelled, 1);
    cr_expect_eq(spans("failed"), 600);

    tracer = sz_tracer_new(&conf);
    sz_tracer_start(tracer, loop, &wire);
    collector.refuses = SZ_DEPENDENCY_OPEN;
    submit(1, 700);
    fake_loop_settle(loop);
    sz_tracer_drain(tracer, SZ_SEC(2), on_drained, &drained);
    fake_loop_run_for(loop, SZ_MS(10));
    cr_expect_eq(drained, 2, "nothing is waited for that cannot be");
    cr_expect_eq(spans("failed"), 2000);
}

Test(tracer, an_idle_one_drains_at_once)
{
    int drained = 0;
    sz_tracer_drain(tracer, SZ_SEC(2), on_drained, &drained);
    cr_expect_eq(drained, 0, "never inside the call");
    fake_loop_run_for(loop, SZ_MS(10));
    cr_expect_eq(drained, 1);
}

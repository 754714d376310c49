/* dependency.c: what opens the breaker and what does not, one probe, what is told meanwhile, reloads. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>

#include "http_kit.h"
#include "subzero/dependency.h"

static struct http_kit k;
static struct sz_dependency *d;
static struct sz_conf_breaker conf = {.failures = 3, .open = SZ_MS(200)};

static void setup(void)
{
    sz_metrics_init(1);
    kit_start(&k, NULL);
    d = sz_dependency_get("issuer:test", &conf, sz_loop_now(k.loop));
}

static void teardown(void)
{
    sz_dependency_put(&d);
    kit_stop(&k);
    sz_metrics_fini();
}

TestSuite(dependency, .init = setup, .fini = teardown, .timeout = 60);

static enum sz_breaker_outcome told;
static bool judge_as_nonsense;
static int done;
static enum sz_http_result last;

static enum sz_breaker_outcome on_done(struct sz_dependency_call *call, const struct sz_http_answer *answer)
{
    cr_expect_null(call->dependency);
    done++;
    last = answer->result;
    sz_loop_stop(k.loop);
    told = judge_as_nonsense ? SZ_BREAKER_FAILURE : sz_dependency_outcome(answer);
    return told;
}

static int ask(struct sz_dependency_call *call, const char *path)
{
    struct sz_http_request r = kit_get(&k, path);
    r.deadline = sz_after(sz_loop_now(k.loop), SZ_MS(300));
    *call = (struct sz_dependency_call){.on_done = on_done};
    int rc = sz_dependency_start(d, k.http, &r, call);
    int before = done;
    if (rc == 0)
        sz_loop_run(k.loop);
    cr_expect_eq(done, before + (rc == 0));
    return rc;
}

static enum sz_breaker_state state(void)
{
    static enum sz_breaker_state found;
    struct sz_buf out = {0};
    sz_metrics_expose(&out);
    sz_buf_add(&out, "", 1);
    const char *line = strstr(out.p, "\nsubzero_breaker_state{dependency=\"issuer:test\"} ");
    cr_assert_not_null(line);
    found = (enum sz_breaker_state)(strchr(line + 1, '}')[2] - '0');
    sz_buf_fini(&out);
    return found;
}

Test(dependency, what_counts_as_what)
{
    static const struct {
        enum sz_http_result result;
        int status;
        enum sz_breaker_outcome outcome;
    } cases[] = {
        {SZ_HTTP_ANSWERED, 200, SZ_BREAKER_SUCCESS},  {SZ_HTTP_ANSWERED, 304, SZ_BREAKER_SUCCESS},
        {SZ_HTTP_ANSWERED, 400, SZ_BREAKER_SUCCESS},  {SZ_HTTP_ANSWERED, 401, SZ_BREAKER_SUCCESS},
        {SZ_HTTP_ANSWERED, 403, SZ_BREAKER_SUCCESS},  {SZ_HTTP_ANSWERED, 404, SZ_BREAKER_SUCCESS},
        {SZ_HTTP_ANSWERED, 408, SZ_BREAKER_FAILURE},  {SZ_HTTP_ANSWERED, 429, SZ_BREAKER_UNKNOWN},
        {SZ_HTTP_ANSWERED, 500, SZ_BREAKER_FAILURE},  {SZ_HTTP_ANSWERED, 503, SZ_BREAKER_FAILURE},
        {SZ_HTTP_REFUSED, 0, SZ_BREAKER_FAILURE},     {SZ_HTTP_RESOLVE, 0, SZ_BREAKER_FAILURE},
        {SZ_HTTP_TLS, 0, SZ_BREAKER_FAILURE},         {SZ_HTTP_TIMEOUT, 0, SZ_BREAKER_FAILURE},
        {SZ_HTTP_TRUNCATED, 200, SZ_BREAKER_FAILURE}, {SZ_HTTP_TOO_LARGE, 200, SZ_BREAKER_FAILURE},
        {SZ_HTTP_REDIRECT, 302, SZ_BREAKER_FAILURE},  {SZ_HTTP_MALFORMED, 0, SZ_BREAKER_FAILURE},
        {SZ_HTTP_BUSY, 0, SZ_BREAKER_UNKNOWN},        {SZ_HTTP_CANCELLED, 0, SZ_BREAKER_UNKNOWN},
    };
    for (size_t i = 0; i < SZ_COUNT(cases); i++) {
        struct sz_http_answer answer = {.result = cases[i].result, .status = cases[i].status};
        cr_expect_eq(sz_dependency_outcome(&answer), cases[i].outcome, "%s %d", sz_http_result_name(cases[i].result),
                     cases[i].status);
    }
}

Test(dependency, failures_open_it_and_one_probe_closes_it)
{
    struct sz_dependency_call call;
    provider_fault(k.provider, PROVIDER_JWKS, PROVIDER_RESET);
    for (int i = 0; i < 3; i++) {
        cr_expect_eq(state(), SZ_BREAKER_CLOSED);
        cr_expect_eq(ask(&call, "/jwks"), 0);
        cr_expect_eq(told, SZ_BREAKER_FAILURE);
    }
    cr_expect_eq(state(), SZ_BREAKER_OPEN);
    unsigned before = provider_calls(k.provider, PROVIDER_JWKS);
    for (int i = 0; i < 100; i++)
        cr_expect_eq(ask(&call, "/jwks"), SZ_DEPENDENCY_OPEN);
    cr_expect_eq(provider_calls(k.provider, PROVIDER_JWKS), before);
    struct sz_span rest = sz_dependency_retry(d, sz_loop_tick(k.loop));
    cr_expect(rest.us > 0 && rest.us <= SZ_MS(201).us, "%ld", (long)rest.us);
    kit_run_for(&k, SZ_MS(210));
    cr_expect_eq(ask(&call, "/jwks"), 0); /* the probe, which fails */
    cr_expect_eq(state(), SZ_BREAKER_OPEN);
    cr_expect_eq(ask(&call, "/jwks"), SZ_DEPENDENCY_OPEN);
    kit_run_for(&k, SZ_MS(210));
    provider_fault(k.provider, PROVIDER_JWKS, PROVIDER_WELL);
    struct sz_dependency_call second = {.on_done = on_done};
    struct sz_http_request r = kit_get(&k, "/jwks");
    call = (struct sz_dependency_call){.on_done = on_done};
    cr_expect_eq(sz_dependency_start(d, k.http, &r, &call), 0);
    cr_expect_eq(state(), SZ_BREAKER_HALF_OPEN);
    cr_expect_eq(sz_dependency_start(d, k.http, &r, &second), SZ_DEPENDENCY_OPEN);
    sz_loop_run(k.loop);
    cr_expect_eq(state(), SZ_BREAKER_CLOSED);
    cr_expect_eq(sz_dependency_retry(d, sz_loop_now(k.loop)).us, 0);
    cr_expect_eq(ask(&call, "/jwks"), 0);
}

Test(dependency, refusals_of_a_client_are_no_outage)
{
    struct sz_dependency_call call;
    for (int i = 0; i < 10; i++) {
        cr_expect_eq(ask(&call, "/userinfo"), 0); /* 401 */
        cr_expect_eq(told, SZ_BREAKER_SUCCESS);
    }
    struct provider_script script = {.fault = PROVIDER_STATUS, .status = 429, .retry_after = "7"};
    provider_play(k.provider, PROVIDER_JWKS, &script);
    for (int i = 0; i < 10; i++)
        cr_expect_eq(ask(&call, "/jwks"), 0);
    cr_expect_eq(state(), SZ_BREAKER_CLOSED);
}

Test(dependency, nonsense_in_a_good_answer_is_the_callers_to_say)
{
    struct sz_dependency_call call;
    provider_fault(k.provider, PROVIDER_JWKS, PROVIDER_HTML);
    judge_as_nonsense = true;
    for (int i = 0; i < 3; i++)
        cr_expect_eq(ask(&call, "/jwks"), 0);
    cr_expect_eq(ask(&call, "/jwks"), SZ_DEPENDENCY_OPEN);
}

Test(dependency, a_cancelled_probe_hands_its_place_on)
{
    struct sz_dependency_call call;
    struct sz_http_request r;
    provider_refuse(k.provider);
    for (int i = 0; i < 3; i++)
        cr_expect_eq(ask(&call, "/x"), 0);
    provider_accept(k.provider);
    kit_run_for(&k, SZ_MS(210));
    r = kit_get(&k, "/x");
    call = (struct sz_dependency_call){.on_done = on_done};
    cr_expect_eq(sz_dependency_start(d, k.http, &r, &call), 0);
    sz_dependency_cancel(&call);
    sz_dependency_cancel(&call);
    cr_expect_eq(ask(&call, "/x"), 0);
    cr_expect_eq(state(), SZ_BREAKER_CLOSED);
}

Test(dependency, what_never_left_is_not_held_against_it)
{
    struct sz_dependency_call call = {.on_done = on_done};
    struct sz_http_request r = kit_get(&k, "/x");
    r.deadline = sz_loop_now(k.loop);
    for (int i = 0; i < 10; i++) {
        cr_expect_eq(sz_dependency_start(d, k.http, &r, &call), 0);
        sz_loop_run(k.loop);
        cr_expect_eq(last, SZ_HTTP_BUSY);
    }
    r.url = SZ_S("nonsense");
    for (int i = 0; i < 10; i++)
        cr_expect_lt(sz_dependency_start(d, k.http, &r, &call), 0);
    cr_expect_null(call.dependency);
    cr_expect_eq(state(), SZ_BREAKER_CLOSED);
}

Test(dependency, a_reload_keeps_what_was_learnt_unless_the_settings_change)
{
    struct sz_dependency_call call;
    struct sz_conf_breaker other = {.failures = 2, .open = SZ_SEC(1)};
    provider_refuse(k.provider);
    for (int i = 0; i < 3; i++)
        cr_expect_eq(ask(&call, "/x"), 0);
    struct sz_dependency *again = sz_dependency_get("issuer:test", &conf, sz_loop_now(k.loop));
    cr_expect_eq(again, d);
    cr_expect_str_eq(sz_dependency_name(again), "issuer:test");
    sz_dependency_put(&again);
    again = sz_dependency_get("issuer:test", &other, sz_loop_now(k.loop));
    cr_expect_neq(again, d);
    cr_expect_eq(state(), SZ_BREAKER_CLOSED);
    sz_dependency_put(&d); /* the old configuration ends */
    cr_expect_eq(state(), SZ_BREAKER_CLOSED);
    d = again;
}

Test(dependency, it_may_go_while_a_call_is_under_way)
{
    struct sz_dependency_call call = {.on_done = on_done};
    struct sz_http_request r = kit_get(&k, "/x");
    cr_expect_eq(sz_dependency_start(d, k.http, &r, &call), 0);
    sz_dependency_put(&d);
    sz_loop_run(k.loop);
    cr_expect_eq(done, 1);
}

Test(dependency, durations_are_measured)
{
    struct sz_dependency_call call;
    struct sz_buf out = {0};
    cr_expect_eq(ask(&call, "/x"), 0);
    sz_metrics_expose(&out);
    sz_buf_add(&out, "", 1);
    cr_expect_not_null(strstr(out.p, "subzero_dependency_duration_seconds_count{dependency=\"issuer:test\"} 1\n"));
    cr_expect_not_null(strstr(out.p, "subzero_http_connections_total{use=\"new\"} 1\n"));
    sz_buf_fini(&out);
}

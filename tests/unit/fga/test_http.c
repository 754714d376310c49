/* http*.c, the way of a call: what is answered, every way of not being answered, limits, redirects, retries, cancel. */
#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "http_kit.h"

static struct http_kit k;

static void setup(void)
{
    kit_start(&k, NULL);
}

static void teardown(void)
{
    kit_stop(&k);
}

TestSuite(http, .init = setup, .fini = teardown, .timeout = 60);

/* ---- answered ---------------------------------------------------------------------------------------------------- */

Test(http, a_whole_answer)
{
    struct kit_call c;
    struct provider_script script = {.cache_control = "max-age=60"};
    provider_play(k.provider, PROVIDER_JWKS, &script);
    const struct sz_http_answer *a = kit_ask_url(&k, &c, "/jwks");
    cr_expect_eq(a->result, SZ_HTTP_ANSWERED);
    cr_expect_eq(a->status, 200);
    cr_expect(sz_starts_with(a->body, SZ_S("{\"keys\":[")));
    cr_expect(sz_eq(sz_http_answer_field(a, SZ_S("CACHE-control")), SZ_S("max-age=60")));
    cr_expect(sz_eq(sz_http_answer_field(a, SZ_S("content-type")), SZ_S("application/json")));
    cr_expect_null(sz_http_answer_field(a, SZ_S("cache")).p);
    cr_expect_eq(a->tries, 1);
    cr_expect(!a->reused && a->took.us > 0 && a->why.s[0] == '\0');
    kit_end(&c);
    cr_expect(kit_ask_url(&k, &c, "/jwks")->reused);
    kit_end(&c);
}

Test(http, any_status_is_an_answer)
{
    static const int statuses[] = {200, 204, 304, 400, 401, 403, 404, 418, 500, 599};
    for (size_t i = 0; i < SZ_COUNT(statuses); i++) {
        struct provider_script script = {.fault = PROVIDER_STATUS, .status = statuses[i]};
        struct kit_call c;
        provider_play(k.provider, PROVIDER_OTHER, &script);
        const struct sz_http_answer *a = kit_ask_url(&k, &c, "/x");
        cr_expect_eq(a->result, SZ_HTTP_ANSWERED, "%d: %s", statuses[i], a->why.s);
        cr_expect_eq(a->status, statuses[i]);
        kit_end(&c);
    }
}

Test(http, a_form_is_posted_with_its_fields)
{
    struct kit_call c;
    char *token = provider_opaque(k.provider, "alice", 60, "\"scope\":\"read\""), body[256];
    struct sz_http_field fields[] = {{SZ_S("Content-Type"), SZ_S("application/x-www-form-urlencoded")},
                                     {SZ_S("Authorization"), SZ_S("Basic Z2F0ZXdheTpzM2NyZXQlMkIlMkYlM0ElMjU=")}};
    struct sz_http_request r = kit_get(&k, "/introspect");
    r.method = SZ_HTTP_POST;
    r.fields = fields;
    r.fields_n = 2;
    r.credentials = true;
    snprintf(body, sizeof(body), "token=%s", token);
    r.body = sz_cstr(body);
    kit_begin(&k, &c, &r);
    memset(body, 'x', sizeof(body)); /* everything was copied */
    memset(fields, 0, sizeof(fields));
    kit_run_until(&k, 1);
    cr_expect_eq(c.answer.status, 200);
    cr_expect_not_null(strstr(c.body, "\"active\":true"), "%s", c.body);
    cr_expect_not_null(strstr(c.body, "\"scope\":\"read\""));
    kit_end(&c);
    free(token);
}

Test(http, what_may_not_be_asked)
{
    struct sz_http_field good = {SZ_S("X-A"), SZ_S("b")},
                         bad[] = {
                             {SZ_S("X A"), SZ_S("b")},      {SZ_S("X-A:"), SZ_S("b")},   {SZ_S(""), SZ_S("b")},
                             {SZ_S("X-A"), SZ_S("b\r\nc")}, {SZ_S("X-A"), SZ_S("b\0c")}, {SZ_S("X-A"), SZ_S("b\n")},
                             {SZ_S("X-A"), SZ_S("")},       {SZ_S("X-A"), SZ_S("  ")},   {SZ_NONE, SZ_NONE}};
    struct sz_http_call call = {.on_done = (void (*)(struct sz_http_call *, const struct sz_http_answer *))abort};
    struct sz_http_request r = kit_get(&k, "/x");
    r.fields_n = 1;
    for (size_t i = 0; i < SZ_COUNT(bad); i++) {
        r.fields = &bad[i];
        cr_expect_eq(sz_http_start(k.http, &r, &call), -EINVAL, "%zu", i);
    }
    r.fields = &good;
    r.redirects = 1;
    r.credentials = true; /* a redirect would carry them elsewhere */
    cr_expect_eq(sz_http_start(k.http, &r, &call), -EINVAL);
    r.credentials = false;
    r.method = SZ_HTTP_POST;
    cr_expect_eq(sz_http_start(k.http, &r, &call), -EINVAL);
    r.redirects = 0;
    r.method = SZ_HTTP_GET;
    r.body = SZ_S("body");
    cr_expect_eq(sz_http_start(k.http, &r, &call), -EINVAL);
    r.body = SZ_NONE;
    r.url = SZ_S("http://192.0.2.1/");
    cr_expect_eq(sz_http_start(k.http, &r, &call), -EINVAL);
    r.url = SZ_S("https://127.0.0.1/"); /* without certificates to check it by */
    cr_expect_eq(sz_http_start(k.http, &r, &call), -EINVAL);
    r.url = SZ_S("http://127.0.0.1/#x");
    cr_expect_eq(sz_http_start(k.http, &r, &call), -EINVAL);
    cr_expect_null(call.job);
}

/* ---- not answered ------------------------------------------------------------------------------------------------ */

static void expect_fault(enum provider_fault fault, enum sz_http_result result)
{
    struct kit_call c;
    struct sz_http_request r = kit_get(&k, "/jwks");
    provider_fault(k.provider, PROVIDER_JWKS, fault);
    if (result == SZ_HTTP_TIMEOUT)
        r.deadline = sz_after(sz_loop_now(k.loop), SZ_MS(300));
    kit_ask(&k, &c, &r);
    cr_expect_eq(c.answer.result, result, "fault %d: %s, %s", fault, sz_http_result_name(c.answer.result),
                 c.answer.why.s);
    cr_expect_neq(c.answer.why.s[0], '\0', "fault %d says nothing", fault);
    cr_expect_lt(c.answer.took.us, SZ_SEC(4).us);
    kit_end(&c);
}

Test(http, each_fault_has_its_class)
{
    expect_fault(PROVIDER_TRUNCATE, SZ_HTTP_TRUNCATED);
    expect_fault(PROVIDER_RESET, SZ_HTTP_TRUNCATED);
    expect_fault(PROVIDER_CLOSE, SZ_HTTP_TRUNCATED);
    expect_fault(PROVIDER_GARBAGE, SZ_HTTP_MALFORMED);
    expect_fault(PROVIDER_HUGE, SZ_HTTP_TOO_LARGE);
    expect_fault(PROVIDER_ENDLESS, SZ_HTTP_TOO_LARGE);
    expect_fault(PROVIDER_FLOOD, SZ_HTTP_TOO_LARGE);
    expect_fault(PROVIDER_HANG, SZ_HTTP_TIMEOUT);
    expect_fault(PROVIDER_DRIP, SZ_HTTP_TIMEOUT);
}

Test(http, nobody_listens)
{
    struct kit_call c;
    provider_refuse(k.provider);
    const struct sz_http_answer *a = kit_ask_url(&k, &c, "/x");
    cr_expect_eq(a->result, SZ_HTTP_REFUSED, "%s", a->why.s);
    cr_expect_eq(a->status, 0);
    cr_expect_not_null(strstr(a->why.s, "127.0.0.1"));
    kit_end(&c);
    provider_accept(k.provider);
    cr_expect_eq(kit_ask_url(&k, &c, "/x")->result, SZ_HTTP_ANSWERED);
    kit_end(&c);
}

Test(http, a_connection_that_is_never_made)
{
    /* A listener whose queue is full lets nobody in and refuses nobody. */
    struct sockaddr_in addr = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t n = sizeof(addr);
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), fill[4];
    cr_assert(bind(listener, (struct sockaddr *)&addr, n) == 0 && listen(listener, 0) == 0);
    cr_assert_eq(getsockname(listener, (struct sockaddr *)&addr, &n), 0);
    for (size_t i = 0; i < SZ_COUNT(fill); i++) {
        fill[i] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
        (void)!connect(fill[i], (struct sockaddr *)&addr, n);
    }
    char url[64];
    struct kit_call c;
    snprintf(url, sizeof(url), "http://127.0.0.1:%u/", ntohs(addr.sin_port));
    struct sz_http_request r = kit_get(&k, url);
    r.connect = SZ_MS(100);
    kit_ask(&k, &c, &r);
    cr_expect_eq(c.answer.result, SZ_HTTP_TIMEOUT, "%s", c.answer.why.s);
    cr_expect(c.answer.took.us >= SZ_MS(100).us && c.answer.took.us < SZ_SEC(4).us, "%ld", (long)c.answer.took.us);
    kit_end(&c);
    for (size_t i = 0; i < SZ_COUNT(fill); i++)
        close(fill[i]);
    close(listener);
}

Test(http, the_deadline_holds_and_is_not_early)
{
    struct kit_call c;
    struct sz_http_request r = kit_get(&k, "/jwks");
    provider_fault(k.provider, PROVIDER_JWKS, PROVIDER_HANG);
    r.deadline = sz_after(sz_loop_now(k.loop), SZ_MS(80));
    r.retries = 5;
    kit_ask(&k, &c, &r);
    cr_expect_eq(c.answer.result, SZ_HTTP_TIMEOUT);
    cr_expect(c.answer.took.us >= SZ_MS(80).us && c.answer.took.us < SZ_SEC(4).us, "%ld", (long)c.answer.took.us);
    kit_end(&c);
    r.deadline = sz_loop_now(k.loop); /* none left: never asked, and not the provider's fault */
    kit_ask(&k, &c, &r);
    cr_expect_eq(c.answer.result, SZ_HTTP_BUSY);
    kit_end(&c);
}

/* ---- bodies ------------------------------------------------------------------------------------------------------ */

static long peak_kb(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_maxrss;
}

Test(http, a_huge_body_costs_no_more_than_its_limit)
{
    struct kit_call c;
    struct sz_http_request r = kit_get(&k, "/jwks");
    long before = peak_kb();
    r.limit = 64 * 1024;
    provider_fault(k.provider, PROVIDER_JWKS, PROVIDER_ENDLESS);
    kit_ask(&k, &c, &r);
    cr_expect_eq(c.answer.result, SZ_HTTP_TOO_LARGE);
    cr_expect_leq(c.answer.body.n, 64 * 1024);
    cr_expect_lt(peak_kb() - before, 20 * 1024);
    kit_end(&c);
    provider_fault(k.provider, PROVIDER_JWKS, PROVIDER_HUGE); /* announced: not one byte of it is read */
    kit_ask(&k, &c, &r);
    cr_expect_eq(c.answer.result, SZ_HTTP_TOO_LARGE);
    cr_expect_eq(c.answer.body.n, 0);
    kit_end(&c);
}

Test(http, the_limit_itself_is_allowed)
{
    struct kit_call c;
    struct sz_http_request r = kit_get(&k, "/x");
    r.limit = 2; /* "ok" */
    kit_ask(&k, &c, &r);
    cr_expect_eq(c.answer.result, SZ_HTTP_ANSWERED);
    kit_end(&c);
    r.limit = 1;
    kit_ask(&k, &c, &r);
    cr_expect_eq(c.answer.result, SZ_HTTP_TOO_LARGE);
    kit_end(&c);
}

/* ---- redirects --------------------------------------------------------------------------------------------------- */

static const struct sz_http_answer *redirected(struct kit_call *c, const char *to, unsigned allowed)
{
    struct provider_script script = {.fault = PROVIDER_REDIRECT, .status = 302};
    struct sz_http_request r = kit_get(&k, "/jwks");
    snprintf(script.location, sizeof(script.location), "%s", to);
    provider_play(k.provider, PROVIDER_JWKS, &script);
    r.redirects = (uint8_t)allowed;
    kit_ask(&k, c, &r);
    return &c->answer;
}

Test(http, no_redirect_is_followed_unasked)
{
    static const int statuses[] = {301, 302, 303, 307, 308};
    for (size_t i = 0; i < SZ_COUNT(statuses); i++) {
        struct provider_script script = {.fault = PROVIDER_REDIRECT, .status = statuses[i], .location = "/other"};
        struct kit_call c;
        struct sz_http_request r = kit_get(&k, "/introspect");
        r.method = SZ_HTTP_POST;
        r.body = SZ_S("token=secret");
        r.credentials = true;
        provider_play(k.provider, PROVIDER_INTROSPECT, &script);
        kit_ask(&k, &c, &r);
        cr_expect_eq(c.answer.result, SZ_HTTP_REDIRECT);
        cr_expect_eq(c.answer.status, statuses[i]);
        cr_expect(sz_eq(sz_http_answer_field(&c.answer, SZ_S("location")), SZ_S("/other")));
        kit_end(&c);
    }
    cr_expect_eq(provider_calls(k.provider, PROVIDER_OTHER), 0);
}

Test(http, redirects_are_followed_so_far)
{
    struct kit_call c;
    cr_expect_eq(redirected(&c, "/other", 1)->result, SZ_HTTP_ANSWERED);
    cr_expect_str_eq(c.body, "ok");
    cr_expect_eq(c.answer.tries, 2);
    kit_end(&c);
    cr_expect_eq(redirected(&c, "/jwks", 3)->result, SZ_HTTP_REDIRECT); /* a circle */
    cr_expect_eq(c.answer.tries, 4);
    kit_end(&c);
    cr_expect_eq(redirected(&c, "/other#there", 1)->result, SZ_HTTP_ANSWERED);
    kit_end(&c);
    char elsewhere[128];
    struct provider *other = provider_start(NULL);
    snprintf(elsewhere, sizeof(elsewhere), "%s/x", provider_url(other));
    cr_expect_eq(redirected(&c, elsewhere, 1)->result, SZ_HTTP_ANSWERED);
    cr_expect_eq(provider_calls(other, PROVIDER_OTHER), 1);
    kit_end(&c);
    provider_stop(&other);
}

Test(http, redirects_that_lead_nowhere_good)
{
    static const char *const bad[] = {
        "http://192.0.2.1/x",  "https://127.0.0.1/x", "ftp://127.0.0.1/",    "file:///etc/passwd",
        "http://a@127.0.0.1/", "javascript:alert(1)", "http://127.0.0.1:0/", ""};
    for (size_t i = 0; i < SZ_COUNT(bad); i++) {
        struct kit_call c;
        const struct sz_http_answer *a = redirected(&c, bad[i], 3);
        cr_expect_eq(a->result, SZ_HTTP_REDIRECT, "%s: %s", bad[i], sz_http_result_name(a->result));
        cr_expect_neq(a->why.s[0], '\0');
        kit_end(&c);
    }
}

/* ---- retries ----------------------------------------------------------------------------------------------------- */

static void play(enum provider_fault fault, int status, unsigned times, const char *retry_after)
{
    struct provider_script script = {.fault = fault, .status = status, .times = times};
    snprintf(script.retry_after, sizeof(script.retry_after), "%s", retry_after);
    provider_play(k.provider, PROVIDER_JWKS, &script);
    provider_clear(k.provider);
}

Test(http, what_may_pass_is_tried_again)
{
    static const struct {
        enum provider_fault fault;
        int status;
    } passing[] = {{PROVIDER_STATUS, 503}, {PROVIDER_STATUS, 429}, {PROVIDER_STATUS, 500},
                   {PROVIDER_TRUNCATE, 0}, {PROVIDER_RESET, 0},    {PROVIDER_CLOSE, 0}};
    for (size_t i = 0; i < SZ_COUNT(passing); i++) {
        struct kit_call c;
        struct sz_http_request r = kit_get(&k, "/jwks");
        r.retries = 2;
        play(passing[i].fault, passing[i].status, 2, "");
        kit_ask(&k, &c, &r);
        cr_expect_eq(c.answer.result, SZ_HTTP_ANSWERED, "%zu: %s", i, c.answer.why.s);
        cr_expect_eq(c.answer.status, 200);
        cr_expect_eq(c.answer.why.s[0], '\0');
        kit_end(&c);
    }
}

Test(http, tries_are_bounded_and_others_not_repeated)
{
    struct kit_call c;
    struct sz_http_request r = kit_get(&k, "/jwks");
    r.retries = 2;
    play(PROVIDER_STATUS, 503, 0, "");
    kit_ask(&k, &c, &r);
    cr_expect_eq(c.answer.status, 503);
    cr_expect_eq(c.answer.tries, 3);
    cr_expect_eq(provider_calls(k.provider, PROVIDER_JWKS), 3);
    kit_end(&c);
    play(PROVIDER_STATUS, 404, 0, "");
    kit_ask(&k, &c, &r);
    cr_expect_eq(provider_calls(k.provider, PROVIDER_JWKS), 1);
    kit_end(&c);
    r.idempotent = false;
    play(PROVIDER_STATUS, 503, 0, "");
    kit_ask(&k, &c, &r);
    cr_expect_eq(provider_calls(k.provider, PROVIDER_JWKS), 1);
    kit_end(&c);
}

Test(http, retry_after_is_obeyed_or_told)
{
    struct kit_call c;
    struct sz_http_request r = kit_get(&k, "/jwks");
    r.retries = 1;
    play(PROVIDER_STATUS, 503, 1, "1");
    kit_ask(&k, &c, &r);
    cr_expect_eq(c.answer.status, 200);
    cr_expect(c.answer.took.us >= SZ_SEC(1).us, "%ld", (long)c.answer.took.us);
    kit_end(&c);
    play(PROVIDER_STATUS, 503, 1, "60"); /* beyond the deadline: told at once */
    r = kit_get(&k, "/jwks");
    r.retries = 1;
    kit_ask(&k, &c, &r);
    cr_expect_eq(c.answer.status, 503);
    cr_expect_eq(c.answer.retry_after.us, SZ_SEC(60).us);
    cr_expect_lt(c.answer.took.us, SZ_SEC(4).us);
    kit_end(&c);
}

Test(http, a_try_that_hangs_is_given_up_for_another)
{
    struct kit_call c;
    struct sz_http_request r = kit_get(&k, "/jwks");
    r.retries = 1;
    r.attempt = SZ_MS(100);
    play(PROVIDER_HANG, 0, 1, "");
    kit_ask(&k, &c, &r);
    cr_expect_eq(c.answer.result, SZ_HTTP_ANSWERED);
    cr_expect_eq(c.answer.tries, 2);
    cr_expect(c.answer.took.us >= SZ_MS(100).us && c.answer.took.us < SZ_SEC(4).us);
    kit_end(&c);
}

/* ---- the environment --------------------------------------------------------------------------------------------- */

Test(http, proxy_variables_are_ignored)
{
    static const char *const names[] = {"http_proxy", "https_proxy", "all_proxy",
                                        "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"};
    struct kit_call c;
    for (size_t i = 0; i < SZ_COUNT(names); i++)
        setenv(names[i], "http://127.0.0.1:1", 1);
    cr_expect_eq(kit_ask_url(&k, &c, "/x")->result, SZ_HTTP_ANSWERED, "%s", c.answer.why.s);
    kit_end(&c);
}

/* ---- cancel ------------------------------------------------------------------------------------------------------ */

static void cancel_in(struct sz_span after, enum provider_fault fault, unsigned latency_ms, unsigned retries)
{
    struct kit_call c, other;
    struct provider_script script = {.fault = fault, .status = 503, .latency_ms = latency_ms};
    struct sz_http_request r = kit_get(&k, "/jwks"), plain = kit_get(&k, "/x");
    provider_play(k.provider, PROVIDER_JWKS, &script);
    r.retries = (uint8_t)retries;
    kit_begin(&k, &c, &r);
    if (after.us > 0)
        kit_run_for(&k, after);
    cr_assert_eq(c.done, 0);
    sz_http_cancel(&c.call);
    cr_expect_null(c.call.job);
    sz_http_cancel(&c.call);
    kit_ask(&k, &other, &plain);
    cr_expect_eq(other.answer.result, SZ_HTTP_ANSWERED);
    cr_expect_eq(c.done, 0);
    kit_end(&other);
}

Test(http, cancel_in_every_phase)
{
    cancel_in(SZ_MS(0), PROVIDER_WELL, 0, 0);     /* not yet connected */
    cancel_in(SZ_MS(50), PROVIDER_WELL, 1000, 0); /* waiting for the answer */
    cancel_in(SZ_MS(300), PROVIDER_DRIP, 0, 0);   /* in the middle of it */
    cancel_in(SZ_MS(20), PROVIDER_STATUS, 0, 9);  /* between two tries */
    struct sz_http_stats stats;
    sz_http_stats(k.http, &stats);
    cr_expect_eq(stats.calls, 0);
    cr_expect_eq(stats.waiting, 0);
}

static struct kit_call victims[3];

static void cancel_others(struct sz_http_call *call, const struct sz_http_answer *answer)
{
    (void)answer;
    for (size_t i = 0; i < SZ_COUNT(victims); i++)
        if (&victims[i].call != call)
            sz_http_cancel(&victims[i].call);
    sz_http_cancel(call); /* no longer under way: nothing */
    kit_done++;
    sz_loop_stop(k.loop);
}

Test(http, a_callback_may_cancel_others_that_are_ready)
{
    for (int round = 0; round < 20; round++) {
        struct sz_http_request r = kit_get(&k, "/x");
        for (size_t i = 0; i < SZ_COUNT(victims); i++) {
            kit_begin(&k, &victims[i], &r);
            victims[i].call.on_done = cancel_others;
        }
        int before = kit_done;
        kit_run_until(&k, 1000000);
        cr_expect_eq(kit_done, before + 1);
    }
}

static struct kit_call chain;
static unsigned links;

static void start_next(struct sz_http_call *call, const struct sz_http_answer *answer)
{
    cr_assert_eq(answer->result, SZ_HTTP_ANSWERED);
    if (++links == 50) {
        sz_loop_stop(k.loop);
        return;
    }
    struct sz_http_request r = kit_get(&k, "/x");
    cr_assert_eq(sz_http_start(k.http, &r, call), 0);
}

Test(http, a_callback_may_start_the_next_with_the_same_struct)
{
    struct sz_http_request r = kit_get(&k, "/x");
    kit_begin(&k, &chain, &r);
    chain.call.on_done = start_next;
    kit_run_until(&k, 1000000);
    cr_expect_eq(links, 50);
}

static struct kit_call orphans[5];
static unsigned orphaned;

static void on_orphan(struct sz_http_call *call, const struct sz_http_answer *answer)
{
    struct sz_http_request r = kit_get(&k, "/x");
    cr_expect_eq(answer->result, SZ_HTTP_CANCELLED);
    cr_expect_eq(sz_http_start(k.http, &r, call), -ECANCELED);
    orphaned++;
}

Test(http, freeing_the_client_tells_who_waits)
{
    struct sz_http_request r = kit_get(&k, "/jwks");
    provider_fault(k.provider, PROVIDER_JWKS, PROVIDER_HANG);
    for (size_t i = 0; i < SZ_COUNT(orphans); i++) {
        kit_begin(&k, &orphans[i], &r);
        orphans[i].call.on_done = on_orphan;
    }
    kit_run_for(&k, SZ_MS(50));
    sz_http_free(&k.http);
    cr_expect_eq(orphaned, 5);
}

/* ---- not used ---------------------------------------------------------------------------------------------------- */

static unsigned descriptors(void)
{
    unsigned n = 0;
    for (int fd = 0; fd < 1024; fd++)
        n += fcntl(fd, F_GETFD) >= 0;
    return n;
}

TestSuite(http_unused, .init = sz_crypto_init);

Test(http_unused, a_client_that_is_never_used_holds_nothing)
{
    struct sz_loop *loop = sz_loop_new(0);
    unsigned before = descriptors();
    struct sz_http_shared *shared = sz_http_shared_new(&kit_conf, 1);
    struct sz_http *http = sz_http_new(shared, loop);
    struct sz_http_call call = {.on_done = (void (*)(struct sz_http_call *, const struct sz_http_answer *))abort};
    struct sz_http_request r = {.url = SZ_S("http://127.0.0.1:1/"), .deadline = SZ_NEVER};
    cr_expect_eq(descriptors(), before);
    cr_expect_eq(sz_http_start(http, &r, &call), -ELIBACC); /* nobody has loaded libcurl */
    cr_expect_eq(descriptors(), before);
    sz_http_free(&http);
    sz_http_shared_free(&shared);
    sz_loop_free(&loop);
}

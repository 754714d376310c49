/*
 * A call, from its start to on_done.
 *
 *   WAITING ──▶ FLYING ──▶ over
 *      ▲          │ failed, and may pass          ENDING: over, but inside somebody else's call:
 *      └─ PAUSING ┘ or redirected                 told on the next turn
 *
 * One timer serves all phases: the end of a pause, of a try, or of everything.
 */
#include <errno.h>
#include <stdlib.h>

#include "fga/http_client.h"
#include "subzero/crypto.h"

/* ---- the end ----------------------------------------------------------------------------------------------------- */

static void wipe_buf(struct sz_buf *buf)
{
    if (buf->n != 0)
        sz_wipe(buf->p, buf->n);
    sz_buf_fini(buf);
}

static void free_job(struct sz_http_job *job)
{
    sz_curl.slist_free_all(job->fields); /* wiped by http_lib.c */
    if (job->body.n != 0)
        sz_wipe((void *)(uintptr_t)job->body.p, job->body.n);
    free((void *)(uintptr_t)job->body.p);
    sz_wipe(job->url, strlen(job->url));
    free(job->url);
    wipe_buf(&job->head);
    wipe_buf(&job->answer_body);
    sz_http_trust_unref(&job->trust);
    free(job);
}

/* Out of everything; the memory stays. */
static void detach(struct sz_http_job *job)
{
    struct sz_http *http = job->http;
    sz_timer_cancel(http->loop, &job->timer);
    *job->prev = job->next;
    if (job->next != NULL)
        job->next->prev = job->prev;
    http->calls--;
    if (job->host != NULL)
        sz_http_host_release(job->host);
    job->host = NULL;
    job->call->job = NULL;
}

/* Takes it out of the queue or out of libcurl's hands. */
static void ground(struct sz_http_job *job, enum sz_http_result result)
{
    if (job->phase == SZ_HTTP_WAITING)
        sz_http_host_leave(job->host, job);
    if (job->phase == SZ_HTTP_FLYING) {
        sz_http_multi_remove(job->http, &job->easy);
        sz_http_host_landed(job->host, result, job->answer.why.s);
    }
    job->phase = SZ_HTTP_ENDING;
}

static void finish(struct sz_http_job *job)
{
    struct sz_http_call *call = job->call;
    job->answer.took = sz_between(job->started, sz_loop_now(job->http->loop));
    detach(job);
    call->on_done(call, &job->answer);
    free_job(job);
}

static void finish_as(struct sz_http_job *job, enum sz_http_result result, const char *why)
{
    job->answer.result = result;
    sz_text_set(&job->answer.why, "%s", why);
    finish(job);
}

/* ---- tries ------------------------------------------------------------------------------------------------------- */

static void arm(struct sz_http_job *job, struct sz_mono at)
{
    sz_timer_start(job->http->loop, &job->timer, at);
}

void sz_http_job_fly(struct sz_http_job *job)
{
    struct sz_http *http = job->http;
    job->phase = SZ_HTTP_FLYING;
    job->answer.tries++;
    job->tries_here++;
    job->easy = sz_http_multi_handle(http);
    sz_http_easy_prepare(job);
    if (job->attempt.us != 0)
        arm(job, sz_earlier(job->deadline, sz_after(sz_loop_now(http->loop), job->attempt)));
    sz_http_multi_add(http, job->easy);
}

void sz_http_job_fail_soon(struct sz_http_job *job, enum sz_http_result result, const char *why)
{
    job->phase = SZ_HTTP_ENDING;
    job->tries_here++;
    job->answer.result = result;
    sz_text_set(&job->answer.why, "%s", why);
    arm(job, sz_loop_now(job->http->loop));
}

static void enter(struct sz_http_job *job)
{
    if (job->deadline.us <= sz_loop_now(job->http->loop).us) {
        sz_http_job_fail_soon(job, SZ_HTTP_BUSY, "no time was left to ask");
        return;
    }
    job->phase = SZ_HTTP_WAITING;
    arm(job, job->deadline);
    sz_http_host_enter(job->host, job);
}

/* A try is over and the job in nobody's hands: again, or the end. */
static void decide(struct sz_http_job *job)
{
    struct sz_http_try t = {
        .result = job->answer.result,
        .status = job->answer.status,
        .retry_after = job->answer.retry_after,
        .made = job->tries_here,
        .allowed = job->idempotent ? job->retries : 0,
        .now = sz_loop_now(job->http->loop),
        .deadline = job->deadline,
    };
    struct sz_mono at;
    uint64_t random = 0;
    if (t.allowed != 0)
        sz_random(&random, sizeof(random));
    if (sz_http_retry(&t, random, &at)) {
        job->phase = SZ_HTTP_PAUSING;
        arm(job, at);
    } else {
        finish(job);
    }
}

/* ---- redirects --------------------------------------------------------------------------------------------------- */

static bool is_redirect(int status)
{
    return status == 301 || status == 302 || status == 303 || status == 307 || status == 308;
}

static const char *follow(struct sz_http_job *job, struct sz_slice to)
{
    struct sz_http_url url;
    ptrdiff_t fragment = sz_find_byte(to, '#');
    if (fragment >= 0)
        to.n = (size_t)fragment;
    if (to.p == NULL)
        return "it leads nowhere";
    if (job->redirects == 0)
        return "no (further) redirect is followed";
    if (sz_http_url_parse(to, &url, NULL) != 0)
        return "it leads to something that is no URL";
    if (!url.tls && (job->host->url.tls || !(url.loopback || job->insecure_http)))
        return "it leads away from https";
    if (url.tls && job->trust == NULL)
        return "it leads to https, and there are no certificates to check it by";
    struct sz_http_host *host = sz_http_host_get(job->http, &url);
    if (host == NULL)
        return "too many hosts are in use";
    sz_http_host_release(job->host);
    job->host = host;
    free(job->url);
    job->url = sz_xmalloc(to.n + 1);
    memcpy(job->url, to.p, to.n);
    job->url[to.n] = '\0';
    job->redirects--;
    job->tries_here = 0;
    return NULL;
}

/* ---- landing ----------------------------------------------------------------------------------------------------- */

void sz_http_job_landed(struct sz_http_job *job, CURLcode code)
{
    char *location = NULL;
    const char *refused = NULL;
    sz_http_easy_read(job, code);
    bool redirect = job->answer.result == SZ_HTTP_ANSWERED && is_redirect(job->answer.status);
    if (redirect) {
        sz_curl.easy_getinfo(job->easy, CURLINFO_REDIRECT_URL, &location);
        location = location != NULL ? sz_xstrdup(location) : NULL; /* the handle's, and that goes */
    }
    ground(job, job->answer.result);
    if (redirect) {
        refused = follow(job, sz_cstr(location));
        free(location);
    }
    if (!redirect)
        decide(job);
    else if (refused == NULL)
        enter(job);
    else
        finish_as(job, SZ_HTTP_REDIRECT, refused);
}

/* ---- time -------------------------------------------------------------------------------------------------------- */

static void wait_over(struct sz_http_job *job)
{
    bool reachable = sz_http_host_reachable(job->host);
    const struct sz_http_url *url = &job->host->url;
    struct sz_text why;
    sz_text_set(&why, reachable ? "no connection to %s:%u came free in time" : "%s:%u could not be reached in time",
                url->host, url->port);
    ground(job, SZ_HTTP_BUSY);
    finish_as(job, reachable ? SZ_HTTP_BUSY : SZ_HTTP_TIMEOUT, why.s);
}

static void flight_over(struct sz_http_job *job)
{
    const struct sz_http_url *url = &job->host->url;
    sz_http_easy_read(job, CURLE_OPERATION_TIMEDOUT);
    job->answer.result = SZ_HTTP_TIMEOUT;
    sz_text_set(&job->answer.why, job->connected ? "%s:%u did not answer in time" : "%s:%u let nobody connect in time",
                url->host, url->port);
    ground(job, SZ_HTTP_TIMEOUT);
    decide(job);
}

static void on_fire(struct sz_timer *timer)
{
    struct sz_http_job *job = SZ_CONTAINER(timer, struct sz_http_job, timer);
    switch (job->phase) {
    case SZ_HTTP_WAITING:
        wait_over(job);
        break;
    case SZ_HTTP_FLYING:
        flight_over(job);
        break;
    case SZ_HTTP_PAUSING:
        enter(job);
        break;
    case SZ_HTTP_ENDING:
        decide(job);
        break;
    }
}

/* ---- the start --------------------------------------------------------------------------------------------------- */

static bool valid(const struct sz_http_request *r, const struct sz_http_url *url)
{
    if (!url->tls && !url->loopback && !r->insecure_http)
        return false;
    if ((url->tls && r->trust == NULL) || (r->redirects != 0 && (r->credentials || r->method != SZ_HTTP_GET)))
        return false;
    if (r->fields_n > SZ_HTTP_FIELDS_MAX || (r->method == SZ_HTTP_GET && r->body.n != 0))
        return false;
    for (size_t i = 0; i < r->fields_n; i++)
        if (!sz_http_field_valid(&r->fields[i]))
            return false;
    return true;
}

static void add_field(struct sz_http_job *job, struct sz_slice name, struct sz_slice value)
{
    size_t n = name.n + 2 + value.n;
    char *line = sz_xmalloc(n + 1);
    memcpy(line, name.p, name.n);
    memcpy(line + name.n, ": ", 2);
    memcpy(line + name.n + 2, value.p, value.n);
    line[n] = '\0';
    struct curl_slist *longer = sz_curl.slist_append(job->fields, line);
    SZ_ASSERT(longer != NULL);
    job->fields = longer;
    sz_wipe(line, n);
    free(line);
}

static char *copy(struct sz_slice s)
{
    char *p = sz_xmalloc(s.n + 1);
    if (s.n != 0)
        memcpy(p, s.p, s.n);
    p[s.n] = '\0';
    return p;
}

static struct sz_http_job *make_job(struct sz_http *http, const struct sz_http_request *r)
{
    struct sz_http_job *job = sz_xcalloc(1, sizeof(*job));
    job->http = http;
    job->timer.on_fire = on_fire;
    job->started = sz_loop_now(http->loop);
    job->deadline = r->deadline;
    job->method = r->method;
    job->idempotent = r->idempotent;
    job->insecure_http = r->insecure_http;
    job->retries = r->retries;
    job->redirects = r->redirects;
    job->connect = r->connect;
    job->attempt = r->attempt;
    job->limit = r->limit != 0 ? r->limit : SZ_HTTP_BODY_DEFAULT;
    job->answer.head = job->answer.body = SZ_S("");
    job->trust = sz_http_trust_ref(r->trust);
    job->url = copy(r->url);
    job->body = sz_slice(copy(r->body), r->body.n);
    for (size_t i = 0; i < r->fields_n; i++)
        add_field(job, r->fields[i].name, r->fields[i].value);
    if (r->method == SZ_HTTP_POST) /* libcurl would ask leave to send a large body, and wait for it */
        job->fields = sz_curl.slist_append(job->fields, "Expect:");
    return job;
}

int sz_http_start(struct sz_http *http, const struct sz_http_request *request, struct sz_http_call *call)
{
    struct sz_http_url url;
    SZ_ASSERT(call->job == NULL && call->on_done != NULL);
    if (http->closing)
        return -ECANCELED;
    if (sz_http_url_parse(request->url, &url, NULL) != 0 || !valid(request, &url))
        return -EINVAL;
    int rc = http->multi != NULL ? 0 : sz_http_multi_init(http);
    if (rc != 0)
        return rc;
    struct sz_http_host *host = http->calls < SZ_HTTP_CALLS_MAX ? sz_http_host_get(http, &url) : NULL;
    if (host == NULL)
        return SZ_HTTP_FULL;
    struct sz_http_job *job = make_job(http, request);
    job->host = host;
    job->call = call;
    call->job = job;
    job->next = http->jobs;
    job->prev = &http->jobs;
    if (job->next != NULL)
        job->next->prev = &job->next;
    http->jobs = job;
    http->calls++;
    enter(job);
    return 0;
}

void sz_http_cancel(struct sz_http_call *call)
{
    struct sz_http_job *job = call->job;
    if (job == NULL)
        return;
    ground(job, SZ_HTTP_CANCELLED);
    detach(job);
    free_job(job);
}

void sz_http_jobs_fini(struct sz_http *http)
{
    while (http->jobs != NULL) {
        struct sz_http_job *job = http->jobs;
        ground(job, SZ_HTTP_CANCELLED);
        finish_as(job, SZ_HTTP_CANCELLED, "the client is closing");
    }
}

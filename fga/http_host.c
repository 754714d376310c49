/*
 * Who may send now.  libcurl has limits of its own, but keeps those who wait in one queue for all hosts and looks
 * at its head alone: a host that is full or hangs would hold up the others.  So a job is given to libcurl only when it
 * can go at once; until then it waits here, in the queue of its host.
 *
 *   - The host's addresses are known.  Old ones do while new ones are looked up.
 *   - Fewer than `per_host` tries to it are under way, and fewer than `connections` in all.  Hosts that wait
 *     for the latter stand in a ring and go in turn.
 *   - https: it is known whether the host speaks HTTP/2.  While it is not, one job goes ahead and the others
 *     wait for its connection to stand: a hundred calls at a cold start then share one connection instead of
 *     making a hundred.  When that one is refused, so are they.
 */
#include <stdlib.h>

#include "fga/http_client.h"

enum { HOSTS_MAX = 512 };

#define FORGET_AFTER SZ_SEC(600)

/* ---- the table --------------------------------------------------------------------------------------------------- */

static struct sz_http_host **bucket(struct sz_http *http, const struct sz_http_url *url)
{
    uint64_t hash = sz_hash64(&http->shared->key, sz_cstr(url->host)) + url->port;
    return &http->hosts[hash % SZ_HTTP_BUCKETS];
}

static bool same(const struct sz_http_url *a, const struct sz_http_url *b)
{
    return a->tls == b->tls && a->port == b->port && strcmp(a->host, b->host) == 0;
}

static void unblock(struct sz_http_host *host)
{
    struct sz_http *http = host->http;
    if (!host->blocked)
        return;
    host->blocked = false;
    *host->blocked_prev = host->blocked_next;
    if (host->blocked_next != NULL)
        host->blocked_next->blocked_prev = host->blocked_prev;
    else
        http->blocked_last = host->blocked_prev;
}

static void block(struct sz_http_host *host)
{
    struct sz_http *http = host->http;
    if (host->blocked)
        return;
    host->blocked = true;
    host->blocked_next = NULL;
    host->blocked_prev = http->blocked_last;
    *http->blocked_last = host;
    http->blocked_last = &host->blocked_next;
}

/* Takes it out of its bucket, *at. */
static void forget(struct sz_http_host **at)
{
    struct sz_http_host *host = *at;
    SZ_ASSERT(host->jobs == 0);
    *at = host->next;
    host->http->hosts_n--;
    unblock(host);
    if (host->asking)
        sz_resolver_forget(&host->http->mailbox, &host->ask);
    free(host->pin.data);
    free(host);
}

static void sweep(struct sz_http *http, struct sz_mono unused_since)
{
    for (size_t i = 0; i < SZ_HTTP_BUCKETS; i++)
        for (struct sz_http_host **at = &http->hosts[i]; *at != NULL;)
            if ((*at)->jobs == 0 && (*at)->used.us <= unused_since.us)
                forget(at);
            else
                at = &(*at)->next;
}

void sz_http_hosts_sweep(struct sz_http *http, struct sz_mono now)
{
    sweep(http, (struct sz_mono){now.us - FORGET_AFTER.us});
}

void sz_http_hosts_fini(struct sz_http *http)
{
    sweep(http, SZ_NEVER);
    SZ_ASSERT(http->hosts_n == 0);
}

struct sz_http_host *sz_http_host_get(struct sz_http *http, const struct sz_http_url *url)
{
    struct sz_http_host **at = bucket(http, url), *host;
    for (host = *at; host != NULL; host = host->next)
        if (same(&host->url, url))
            break;
    if (host == NULL) {
        if (http->hosts_n == HOSTS_MAX)
            sweep(http, SZ_NEVER);
        if (http->hosts_n == HOSTS_MAX)
            return NULL;
        host = sz_xcalloc(1, sizeof(*host));
        host->http = http;
        host->url = *url;
        host->waiting.last = &host->waiting.first;
        host->next = *at;
        *at = host;
        http->hosts_n++;
    }
    host->jobs++;
    return host;
}

void sz_http_host_release(struct sz_http_host *host)
{
    host->jobs--;
    host->used = sz_loop_now(host->http->loop);
}

/* ---- the queue --------------------------------------------------------------------------------------------------- */

static void append(struct sz_http_host *host, struct sz_http_job *job)
{
    job->queue_next = NULL;
    job->queue_prev = host->waiting.last;
    *host->waiting.last = job;
    host->waiting.last = &job->queue_next;
    host->http->waiting++;
}

void sz_http_host_leave(struct sz_http_host *host, struct sz_http_job *job)
{
    *job->queue_prev = job->queue_next;
    if (job->queue_next != NULL)
        job->queue_next->queue_prev = job->queue_prev;
    else
        host->waiting.last = job->queue_prev;
    host->http->waiting--;
}

static void fail_waiting(struct sz_http_host *host, enum sz_http_result result, const char *why)
{
    while (host->waiting.first != NULL) {
        struct sz_http_job *job = host->waiting.first;
        sz_http_host_leave(host, job);
        sz_http_job_fail_soon(job, result, why);
    }
}

/* ---- addresses --------------------------------------------------------------------------------------------------- */

static void pin(struct sz_http_host *host, const struct sz_addresses *found)
{
    struct sz_buf text = {0};
    sz_buf_printf(&text, "+%s:%u:", host->url.host, host->url.port);
    for (size_t i = 0; i < found->n; i++) {
        char address[SZ_ADDR_TEXT];
        sz_addr_format(found->v[i], address);
        sz_buf_printf(&text, sz_addr_is_v4(found->v[i]) ? "%s%s" : "%s[%s]", i == 0 ? "" : ",", address);
    }
    sz_buf_add(&text, "", 1);
    free(host->pin.data);
    host->pin.data = text.p;
}

/* An answer has come, from memory or by mail. */
static void take_addresses(struct sz_http_host *host)
{
    struct sz_http *http = host->http;
    host->until = host->ask.until;
    if (host->ask.looked_up) {
        http->lookups++;
        sz_count(sz_loop_index(http->loop), host->ask.status == 0 ? http->m_lookups : http->m_failed_lookups, 1);
    }
    if (host->ask.status == 0)
        pin(host, &host->ask.found);
    else if (host->pin.data == NULL)
        fail_waiting(host, SZ_HTTP_RESOLVE, strerror(-host->ask.status));
}

/* True: there are some to use; otherwise they come later, or who waited has been told that there are none. */
static bool have_addresses(struct sz_http_host *host)
{
    struct sz_mono now = sz_loop_now(host->http->loop);
    if (host->url.literal || host->asking)
        return host->url.literal || host->pin.data != NULL;
    if (host->until.us > now.us) {
        if (host->pin.data == NULL)
            fail_waiting(host, SZ_HTTP_RESOLVE, strerror(-host->ask.status));
        return host->pin.data != NULL;
    }
    int rc = sz_resolver_ask(&host->http->mailbox, host->url.host, now, &host->ask);
    host->asking = rc == SZ_RESOLVER_WAIT;
    if (rc == 0)
        take_addresses(host);
    else if (rc == SZ_RESOLVER_FULL && host->pin.data == NULL)
        fail_waiting(host, SZ_HTTP_BUSY, "too many names are being looked up");
    return host->pin.data != NULL;
}

/* ---- whose turn it is -------------------------------------------------------------------------------------------- */

static bool is_met(const struct sz_http_host *host)
{
    return !host->url.tls || host->met.us > sz_loop_now(host->http->loop).us;
}

static bool has_room(const struct sz_http_host *host)
{
    return (is_met(host) || host->flying == 0) && host->flying < host->http->shared->conf.per_host;
}

/* Lets up to `most` of them go. */
static void let_go(struct sz_http_host *host, unsigned most)
{
    struct sz_http *http = host->http;
    while (host->waiting.first != NULL && !http->closing && have_addresses(host) && has_room(host)) {
        if (most-- == 0 || http->flying >= http->shared->conf.connections) {
            block(host);
            return;
        }
        struct sz_http_job *job = host->waiting.first;
        sz_http_host_leave(host, job);
        host->flying++;
        http->flying++;
        sz_http_job_fly(job);
    }
}

void sz_http_hosts_turn(struct sz_http *http)
{
    while (http->blocked != NULL && http->flying < http->shared->conf.connections) {
        struct sz_http_host *host = http->blocked;
        unblock(host);
        let_go(host, 1);
    }
}

void sz_http_host_enter(struct sz_http_host *host, struct sz_http_job *job)
{
    append(host, job);
    let_go(host, UINT32_MAX);
}

void sz_http_host_landed(struct sz_http_host *host, enum sz_http_result result, const char *why)
{
    host->flying--;
    host->http->flying--;
    if (result == SZ_HTTP_REFUSED || result == SZ_HTTP_TLS) {
        if (!is_met(host))
            fail_waiting(host, result, why);
        host->met = (struct sz_mono){0};
    }
    if (host->waiting.first != NULL)
        block(host); /* behind those who have waited longer for a connection */
    sz_http_hosts_turn(host->http);
}

/* Called by libcurl, which takes no new work meanwhile: the ring is served when it has returned. */
void sz_http_host_met(struct sz_http_host *host)
{
    if (!is_met(host) && host->waiting.first != NULL)
        block(host);
    host->met = sz_after(sz_loop_now(host->http->loop), host->http->shared->conf.idle);
}

bool sz_http_host_reachable(const struct sz_http_host *host)
{
    return (host->url.literal || host->pin.data != NULL) && is_met(host);
}

void sz_http_hosts_answered(struct sz_http *http)
{
    struct sz_ask *ask;
    while ((ask = sz_mailbox_take(&http->mailbox)) != NULL) {
        struct sz_http_host *host = SZ_CONTAINER(ask, struct sz_http_host, ask);
        host->asking = false;
        take_addresses(host);
        let_go(host, UINT32_MAX);
    }
}

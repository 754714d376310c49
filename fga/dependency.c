/* See subzero/dependency.h. */
#include "subzero/dependency.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "subzero/metrics.h"

#define PROBE SZ_SEC(60) /* every call has a deadline before this: no probe is ever lost */

struct sz_dependency {
    struct sz_dependency *next;
    _Atomic unsigned refs; /* from 0 and to 0 under the registry's lock */
    bool current;          /* the one that its name finds */
    struct sz_conf_breaker conf;
    struct sz_breaker breaker;
    struct sz_series took;
    char name[SZ_DEPENDENCY_NAME_MAX + 1];
};

/* ---- the registry ------------------------------------------------------------------------------------------------ */

static struct {
    pthread_mutex_t lock;
    struct sz_dependency *first;
} registry = {.lock = PTHREAD_MUTEX_INITIALIZER};

static bool same(const struct sz_conf_breaker *a, const struct sz_conf_breaker *b)
{
    return a->failures == b->failures && a->open.us == b->open.us;
}

static struct sz_dependency *make(const char *name, const struct sz_conf_breaker *conf, struct sz_mono now)
{
    struct sz_dependency *d = sz_xcalloc(1, sizeof(*d));
    snprintf(d->name, sizeof(d->name), "%s", name);
    d->refs = 1;
    d->current = true;
    d->conf = *conf;
    d->took = sz_series1(SZ_METRIC_dependency, d->name);
    sz_breaker_init(&d->breaker, conf->failures, conf->open, PROBE, now);
    sz_breakers_add(d->name, &d->breaker);
    d->next = registry.first;
    registry.first = d;
    return d;
}

struct sz_dependency *sz_dependency_get(const char *name, const struct sz_conf_breaker *conf, struct sz_mono now)
{
    pthread_mutex_lock(&registry.lock);
    struct sz_dependency *d = registry.first;
    while (d != NULL && !(d->current && strncmp(d->name, name, SZ_DEPENDENCY_NAME_MAX) == 0))
        d = d->next;
    if (d != NULL && same(&d->conf, conf)) {
        d->refs++;
    } else {
        if (d != NULL)
            d->current = false;
        d = make(name, conf, now);
    }
    pthread_mutex_unlock(&registry.lock);
    return d;
}

struct sz_dependency *sz_dependency_ref(struct sz_dependency *d)
{
    d->refs++;
    return d;
}

static void drop_last(struct sz_dependency *d)
{
    pthread_mutex_lock(&registry.lock);
    bool last = --d->refs == 0; /* unless its name was asked for meanwhile */
    if (last) {
        struct sz_dependency **at = &registry.first;
        while (*at != d)
            at = &(*at)->next;
        *at = d->next;
        sz_breakers_remove(&d->breaker);
    }
    pthread_mutex_unlock(&registry.lock);
    if (last)
        free(d);
}

void sz_dependency_put(struct sz_dependency **dependency)
{
    struct sz_dependency *d = *dependency;
    *dependency = NULL;
    if (d == NULL)
        return;
    unsigned refs = d->refs;
    while (refs > 1) { /* as after each call: without the lock */
        if (atomic_compare_exchange_weak(&d->refs, &refs, refs - 1))
            return;
    }
    drop_last(d);
}

const char *sz_dependency_name(const struct sz_dependency *d)
{
    return d->name;
}

/* ---- calls ------------------------------------------------------------------------------------------------------- */

enum sz_breaker_outcome sz_dependency_outcome(const struct sz_http_answer *answer)
{
    switch (answer->result) {
    case SZ_HTTP_ANSWERED:
        if (answer->status == 429)
            return SZ_BREAKER_UNKNOWN;
        return answer->status >= 500 || answer->status == 408 ? SZ_BREAKER_FAILURE : SZ_BREAKER_SUCCESS;
    case SZ_HTTP_REFUSED:
    case SZ_HTTP_RESOLVE:
    case SZ_HTTP_TLS:
    case SZ_HTTP_TIMEOUT:
    case SZ_HTTP_TRUNCATED:
    case SZ_HTTP_TOO_LARGE:
    case SZ_HTTP_REDIRECT:
    case SZ_HTTP_MALFORMED:
        return SZ_BREAKER_FAILURE;
    case SZ_HTTP_BUSY:
    case SZ_HTTP_CANCELLED:
    case SZ_HTTP_RESULTS:
        break;
    }
    return SZ_BREAKER_UNKNOWN;
}

struct sz_span sz_dependency_retry(const struct sz_dependency *d, struct sz_mono now)
{
    struct sz_breaker_look look;
    sz_breaker_look(&d->breaker, now, &look);
    return look.retry;
}

static void on_answer(struct sz_http_call *http, const struct sz_http_answer *answer)
{
    struct sz_dependency_call *call = SZ_CONTAINER(http, struct sz_dependency_call, http);
    struct sz_dependency *d = call->dependency;
    struct sz_breaker_ticket ticket = call->ticket;
    struct sz_loop *loop = call->loop;
    call->dependency = NULL;
    if (answer->tries != 0)
        sz_observe(sz_loop_index(loop), d->took, answer->took);
    enum sz_breaker_outcome outcome = call->on_done(call, answer); /* call may be gone */
    sz_breaker_tell(&d->breaker, ticket, outcome, sz_loop_now(loop));
    sz_dependency_put(&d);
}

int sz_dependency_start(struct sz_dependency *d, struct sz_http *http, const struct sz_http_request *request,
                        struct sz_dependency_call *call)
{
    struct sz_mono now = sz_loop_now(sz_http_loop(http));
    SZ_ASSERT(call->dependency == NULL && call->on_done != NULL);
    call->ticket = sz_breaker_ask(&d->breaker, now);
    if (call->ticket.answer == SZ_BREAKER_REJECT)
        return SZ_DEPENDENCY_OPEN;
    call->http.on_done = on_answer;
    int rc = sz_http_start(http, request, &call->http);
    if (rc != 0) {
        sz_breaker_tell(&d->breaker, call->ticket, SZ_BREAKER_UNKNOWN, now);
        return rc;
    }
    call->loop = sz_http_loop(http);
    call->dependency = sz_dependency_ref(d);
    return 0;
}

void sz_dependency_cancel(struct sz_dependency_call *call)
{
    if (call->dependency == NULL)
        return;
    sz_http_cancel(&call->http);
    sz_breaker_tell(&call->dependency->breaker, call->ticket, SZ_BREAKER_UNKNOWN, sz_loop_now(call->loop));
    sz_dependency_put(&call->dependency);
}

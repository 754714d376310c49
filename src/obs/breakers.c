/* The list of breakers.  It has a handful of rows and changes with the configuration alone, so it is a sorted list. */
#include "subzero/breakers.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "obs/series.h"

struct row {
    struct row *next;
    const struct sz_breaker *breaker;
    char dependency[SZ_DEPENDENCY_NAME_MAX + 1];
};

static struct {
    pthread_mutex_t lock;
    struct row *first;
} list = {.lock = PTHREAD_MUTEX_INITIALIZER};

const char *sz_breaker_state_name(enum sz_breaker_state state)
{
    static const char *const names[] = {
        [SZ_BREAKER_CLOSED] = "closed", [SZ_BREAKER_OPEN] = "open", [SZ_BREAKER_HALF_OPEN] = "half_open"};
    return names[state];
}

void sz_breakers_add(const char *dependency, const struct sz_breaker *breaker)
{
    struct row *row = sz_xcalloc(1, sizeof(*row)), *old = NULL;
    snprintf(row->dependency, sizeof(row->dependency), "%s", dependency);
    row->breaker = breaker;
    pthread_mutex_lock(&list.lock);
    struct row **at = &list.first;
    while (*at != NULL && strcmp((*at)->dependency, row->dependency) < 0)
        at = &(*at)->next;
    row->next = *at;
    if (*at != NULL && strcmp((*at)->dependency, row->dependency) == 0) {
        old = *at;
        row->next = old->next;
    }
    *at = row;
    pthread_mutex_unlock(&list.lock);
    free(old);
}

void sz_breakers_remove(const struct sz_breaker *breaker)
{
    struct row *row = NULL;
    pthread_mutex_lock(&list.lock);
    for (struct row **at = &list.first; *at != NULL; at = &(*at)->next) {
        if ((*at)->breaker != breaker)
            continue;
        row = *at;
        *at = row->next;
        break;
    }
    pthread_mutex_unlock(&list.lock);
    free(row);
}

void sz_breakers_each(struct sz_mono now,
                      void (*see)(void *arg, const char *dependency, const struct sz_breaker_look *look), void *arg)
{
    pthread_mutex_lock(&list.lock);
    for (const struct row *row = list.first; row != NULL; row = row->next) {
        struct sz_breaker_look look;
        sz_breaker_look(row->breaker, now, &look);
        see(arg, row->dependency, &look);
    }
    pthread_mutex_unlock(&list.lock);
}

/* ---- the exposition ---------------------------------------------------------------------------------------------- */

static void add_label(struct sz_buf *out, const char *dependency)
{
    for (const char *p = dependency; *p != '\0'; p++) {
        if (*p == '\\' || *p == '"')
            sz_buf_printf(out, "\\%c", *p);
        else if (*p == '\n')
            sz_buf_printf(out, "\\n");
        else
            sz_buf_add(out, p, 1);
    }
}

static void add_state(void *arg, const char *dependency, const struct sz_breaker_look *look)
{
    struct sz_buf *out = arg;
    sz_buf_printf(out, "subzero_breaker_state{dependency=\"");
    add_label(out, dependency);
    sz_buf_printf(out, "\"} %d\n", (int)look->state);
}

static void add_transitions(void *arg, const char *dependency, const struct sz_breaker_look *look)
{
    struct sz_buf *out = arg;
    for (enum sz_breaker_state to = SZ_BREAKER_CLOSED; to <= SZ_BREAKER_HALF_OPEN; to++) {
        sz_buf_printf(out, "subzero_breaker_transitions_total{dependency=\"");
        add_label(out, dependency);
        sz_buf_printf(out, "\",to=\"%s\"} %" PRIu64 "\n", sz_breaker_state_name(to), look->moved[to]);
    }
}

void sz_breakers_expose(struct sz_buf *out)
{
    struct sz_mono any = {0}; /* neither the state nor the count depends on the time */
    pthread_mutex_lock(&list.lock);
    bool empty = list.first == NULL;
    pthread_mutex_unlock(&list.lock);
    if (empty)
        return;
    sz_metrics_head(out, SZ_COLLECTED_breaker_state);
    sz_breakers_each(any, add_state, out);
    sz_metrics_head(out, SZ_COLLECTED_breaker_transitions);
    sz_breakers_each(any, add_transitions, out);
}

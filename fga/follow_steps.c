/*
 * What is asked of a store that is followed, one request after the other, on the service loop.  A failure keeps what
 * was reached and tries again, ever more slowly; a token that the server does not take any more begins all anew.
 */
#include <errno.h>
#include <jansson.h>
#include <stdio.h>

#include "fga/follow.h"
#include "fga/http_client.h"
#include "subzero/conf.h"
#include "subzero/log.h"

#define TIME    SZ_SEC(15) /* for one request, all its tries */
#define SLOWEST SZ_SEC(30) /* between two, after failures */
#define OVERLAP 120        /* seconds before the load whose changes are applied once more: clocks, slow writes */
#define PAGE    "page_size=100"

static void next(struct sz_follower *f);
static enum sz_breaker_outcome on_answer(struct sz_fga_ask *ask, const struct sz_http_answer *answer, const char *why);

static struct sz_loop *loop_of(const struct sz_follower *f)
{
    return f->all->loop;
}

static struct sz_fga_lane *lane_of(struct sz_follower *f)
{
    return sz_fga_lane_of(f->client, f->all->loop, f->all->http);
}

static void on_timer(struct sz_timer *timer)
{
    next(SZ_CONTAINER(timer, struct sz_follower, timer));
}

static void after(struct sz_follower *f, struct sz_span pause)
{
    f->timer.on_fire = on_timer;
    sz_timer_start(loop_of(f), &f->timer, sz_after(sz_loop_now(loop_of(f)), pause));
}

/* ---- asking ------------------------------------------------------------------------------------------------------ */

/* A token is bytes of the server's, and goes into a query or a JSON string as such. */
static void add_encoded(struct sz_buf *b, struct sz_slice s)
{
    for (size_t i = 0; i < s.n; i++) {
        unsigned char c = (unsigned char)s.p[i];
        bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '.';
        sz_buf_printf(b, plain ? "%c" : "%%%02X", c);
    }
}

static void write_read(const struct sz_follower *f, struct sz_buf *path, struct sz_buf *body)
{
    sz_buf_printf(path, "/read");
    sz_buf_printf(body, "{\"page_size\":100");
    if (f->token.n > 0) {
        sz_buf_printf(body, ",\"continuation_token\":");
        sz_buf_json(body, sz_buf_slice(&f->token));
    }
    sz_buf_printf(body, "}");
}

static void write_changes(const struct sz_follower *f, struct sz_buf *path)
{
    sz_buf_printf(path, "/changes?" PAGE);
    sz_buf_printf(path, f->token.n > 0 ? "&continuation_token=" : "&start_time=");
    add_encoded(path, f->token.n > 0 ? sz_buf_slice(&f->token) : sz_cstr(f->start_time));
}

static void next(struct sz_follower *f)
{
    struct sz_buf path = {0}, body = {0};
    f->asked = sz_loop_now(loop_of(f));
    f->ask.on_done = on_answer;
    switch (f->step) {
    case SZ_FGA_MODEL:
        sz_buf_printf(&path, "/authorization-models/%.*s", SZ_FMT(f->client->model_id));
        break;
    case SZ_FGA_READ:
        write_read(f, &path, &body);
        break;
    case SZ_FGA_FOLLOW:
        write_changes(f, &path);
        break;
    case SZ_FGA_LOADING:
        return; /* sz_follower_loaded goes on */
    }
    sz_fga_ask_start(&f->ask, lane_of(f), sz_buf_slice(&path), body.n > 0 ? sz_buf_slice(&body) : SZ_NONE,
                     sz_after(f->asked, TIME));
    sz_buf_fini(&path);
    sz_buf_fini(&body);
}

/* ---- failing ----------------------------------------------------------------------------------------------------- */

static void failed(struct sz_follower *f, bool misconfigured, const char *why)
{
    struct sz_span pause = f->poll;
    f->failures++;
    sz_text_set(&f->why, "%s", why);
    sz_fga_fault(lane_of(f), misconfigured, "the store cannot be followed", why);
    for (unsigned i = 1; i < f->failures && pause.us < SLOWEST.us; i++)
        pause.us *= 2;
    after(f, pause.us < SLOWEST.us ? pause : SLOWEST);
}

static void free_retired(struct sz_follower *f)
{
    for (struct sz_fga_copy **at = &f->retired; *at != NULL;) {
        struct sz_fga_copy *copy = *at;
        bool used = false;
        for (size_t i = 0; i < SZ_FGA_LANES && !used; i++)
            used = atomic_load(&f->news->used[i]) == copy;
        if (used) {
            at = &copy->retired;
            continue;
        }
        *at = copy->retired;
        sz_fga_copy_free(&copy);
    }
}

/* What answers now goes on for as long as it is fresh enough. */
static void begin_anew(struct sz_follower *f, const char *why)
{
    sz_log(SZ_LOG_WARN, "fga", "the store is read anew: %s", why);
    f->step = SZ_FGA_MODEL;
    f->token.n = 0;
    sz_fga_copy_free(&f->fresh);
    sz_fga_load_free(&f->load);
    sz_model_free(f->model);
    f->model = NULL;
    after(f, f->poll);
}

static void refused(struct sz_follower *f, const struct sz_http_answer *answer)
{
    int number;
    struct sz_text why;
    sz_fga_read_error(answer->status, answer->body, &number, &why);
    bool token = (number == 2007 || number == 2052) && f->token.n > 0;
    if (token)
        begin_anew(f, why.s);
    else
        failed(f, answer->status >= 400 && answer->status < 500 && answer->status != 429 && answer->status != 408,
               why.s);
}

/* ---- going on ---------------------------------------------------------------------------------------------------- */

static int take_model(struct sz_follower *f, const struct sz_http_answer *answer)
{
    int64_t date = 0;
    struct sz_slice field = sz_http_answer_field(answer, SZ_S("date"));
    if (field.p == NULL || sz_http_date(field, &date) != 0)
        date = sz_wall_seconds(sz_loop_wall(loop_of(f)));
    sz_wall_format((struct sz_wall){(date - OVERLAP) * 1000000}, 0, f->start_time);
    f->token.n = 0;
    json_t *json = sz_fga_read_object(answer->body);
    json_t *model = json_object_get(json, "authorization_model");
    int rc = json_is_object(model) ? 0 : -EPROTO;
    if (rc == 0 && f->copies) {
        struct sz_problems problems;
        sz_problems_init(&problems);
        f->model = sz_model_json_read(model, &problems);
        if (f->model == NULL)
            rc = -EPROTO;
        sz_problems_fini(&problems);
    }
    json_decref(json);
    if (rc != 0)
        return rc;
    f->step = f->copies ? SZ_FGA_READ : SZ_FGA_FOLLOW;
    if (f->copies)
        f->load = sz_fga_load_new(f);
    next(f);
    return 0;
}

static int take_tuples(struct sz_follower *f, const struct sz_http_answer *answer)
{
    struct sz_buf token = {0};
    int rc = sz_follower_read_page(f, answer->body, &token);
    sz_buf_fini(rc == 0 ? &f->token : &token); /* a page that was not taken whole is asked for again */
    if (rc == 0)
        f->token = token;
    if (rc == -E2BIG) {
        begin_anew(f, "it has more tuples than a copy may have; use 'mode: remote'");
        after(f, SLOWEST);
        return 0;
    }
    if (rc != 0)
        return rc;
    if (f->token.n == 0) {
        f->step = SZ_FGA_LOADING;
        sz_fga_load_start(f->load);
    } else {
        next(f);
    }
    return 0;
}

void sz_follower_loaded(struct sz_follower *f, struct sz_fga_copy *copy, struct sz_text why)
{
    sz_fga_load_free(&f->load);
    if (copy == NULL) {
        f->step = SZ_FGA_MODEL;
        failed(f, true, why.s);
        return;
    }
    f->fresh = copy;
    f->step = SZ_FGA_FOLLOW;
    next(f);
}

/* The copy is the store: from now on it answers. */
static void publish(struct sz_follower *f)
{
    struct sz_fga_copy *old = atomic_exchange(&f->news->copy, f->fresh);
    struct sz_engine_stats stats;
    sz_engine_stats(f->fresh->engine, &stats);
    f->fresh = NULL;
    if (old != NULL) {
        old->retired = f->retired;
        f->retired = old;
    }
    sz_log(SZ_LOG_INFO, "fga", "the store is copied: %zu tuples; its changes are followed", stats.tuples);
}

static int take_changes(struct sz_follower *f, const struct sz_http_answer *answer)
{
    struct sz_buf token = {0};
    size_t n = 0;
    int rc = sz_follower_changes_page(f, answer->body, &n, &token);
    if (rc != 0) {
        sz_buf_fini(&token);
        return rc;
    }
    bool same = sz_eq(sz_buf_slice(&token), sz_buf_slice(&f->token));
    bool has = token.n > 0; /* until the first change there is none: asked by time again */
    sz_buf_fini(has ? &f->token : &token);
    if (has)
        f->token = token;
    f->applied += n;
    if (n > 0)
        atomic_fetch_add_explicit(&f->news->changes, 1, memory_order_release);
    if (n > 0 && !same && has) {
        next(f); /* there may be more */
        return 0;
    }
    if (f->fresh != NULL)
        publish(f);
    atomic_store(&f->news->heard, f->asked.us);
    free_retired(f);
    after(f, f->poll);
    return 0;
}

static enum sz_breaker_outcome on_answer(struct sz_fga_ask *ask, const struct sz_http_answer *answer, const char *why)
{
    struct sz_follower *f = SZ_CONTAINER(ask, struct sz_follower, ask);
    if (answer == NULL) {
        failed(f, false, why);
        return SZ_BREAKER_UNKNOWN;
    }
    enum sz_breaker_outcome outcome = sz_dependency_outcome(answer);
    if (answer->result == SZ_HTTP_CANCELLED)
        return outcome;
    if (answer->result != SZ_HTTP_ANSWERED) {
        failed(f, false, why);
        return outcome;
    }
    if (answer->status != 200) {
        refused(f, answer);
        return outcome;
    }
    int rc = f->step == SZ_FGA_MODEL  ? take_model(f, answer)
             : f->step == SZ_FGA_READ ? take_tuples(f, answer)
                                      : take_changes(f, answer);
    if (rc == 0) {
        f->failures = 0;
        return outcome;
    }
    failed(f, false, "the answer is not what OpenFGA says here");
    return SZ_BREAKER_FAILURE;
}

/* ---- life -------------------------------------------------------------------------------------------------------- */

void sz_follower_begin(struct sz_follower *f)
{
    f->step = SZ_FGA_MODEL;
    next(f);
}

void sz_follower_stop(struct sz_follower *f)
{
    sz_timer_cancel(loop_of(f), &f->timer);
    sz_fga_ask_cancel(&f->ask);
    sz_fga_load_free(&f->load);
    sz_model_free(f->model);
    f->model = NULL;
    sz_fga_copy_free(&f->fresh);
    while (f->retired != NULL) { /* whoever still looked at one has long gone on: it was replaced a poll ago or more */
        struct sz_fga_copy *copy = f->retired;
        f->retired = copy->retired;
        for (size_t i = 0; i < SZ_FGA_LANES; i++) {
            while (atomic_load(&f->news->used[i]) == copy)
                ; /* at most the rest of one check */
        }
        sz_fga_copy_free(&copy);
    }
}

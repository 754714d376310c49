/*
 * The real stages without a socket: a loop, a worker, fresh caches, and a relation source that writes down what goes
 * through it.  Providers and a remote store are asked as a gateway would ask them.  Nothing is recorded, limited or
 * proxied for real: no journal, no Redis, no upstream.
 */
#include <errno.h>
#include <stdlib.h>

#include "cli/explain.h"
#include "subzero/http.h"
#include "subzero/provider.h"

/* ---- the source between the stages and the real one ---------------------------------------------------------------
 */

struct under_way {          /* a route's checks are under way together where they have to be waited for */
    struct sz_authz_op *op; /* NULL: free */
    void (*on_done)(struct sz_authz_op *op); /* the stage's */
    struct sz_explain_check *check;          /* NULL: more than are written down */
};
struct listening {
    struct sz_authz authz;
    struct sz_authz *inner;
    struct sz_explain *x;
    struct under_way under_way[SZ_EXPLAIN_CHECKS];
};
static struct listening *listening_of(struct sz_authz *authz)
{
    return SZ_CONTAINER(authz, struct listening, authz);
}
static struct listening *active; /* one command, one request: on_done is given the op alone */

static struct sz_slice copy(struct sz_explain *x, struct sz_slice s)
{
    return s.p == NULL ? SZ_NONE : sz_pool_dup(&x->arena.pool, s);
}

static void copy_key(struct sz_explain *x, const struct sz_tuple_key *from, struct sz_tuple_key *to)
{
    *to = (struct sz_tuple_key){copy(x, from->user), copy(x, from->relation), copy(x, from->object),
                                copy(x, from->condition), copy(x, from->condition_context)};
}

static struct sz_explain_check *note(struct listening *l, const struct sz_check *check)
{
    struct sz_explain *x = l->x;
    if (x->checks_n == SZ_EXPLAIN_CHECKS)
        return NULL;
    struct sz_explain_check *c = &x->checks[x->checks_n++];
    struct sz_tuple_key *tuples = sz_pool_alloc(&x->arena.pool, check->contextual_n * sizeof(*tuples));
    c->asked = *check;
    copy_key(x, &check->key, &c->asked.key);
    c->asked.context = copy(x, check->context);
    for (size_t i = 0; i < check->contextual_n; i++)
        copy_key(x, &check->contextual[i], &tuples[i]);
    c->asked.contextual = tuples;
    if (l->inner->explain != NULL) {
        struct sz_buf why = {0};
        l->inner->explain(l->inner, check, &why);
        c->why = sz_pool_dup(&x->arena.pool, sz_buf_slice(&why));
        sz_buf_fini(&why);
    }
    return c;
}

static void answered(struct sz_explain_check *check, const struct sz_authz_op *op)
{
    if (check == NULL)
        return;
    check->answer = op->answer;
    check->answered = true;
}

/* The slot of an op, or with NULL a free one; a route has fewer checks than there are slots. */
static struct under_way *slot_of(struct listening *l, const struct sz_authz_op *op)
{
    for (size_t i = 0; i < SZ_COUNT(l->under_way); i++) {
        if (l->under_way[i].op == op)
            return &l->under_way[i];
    }
    return NULL;
}

static void on_inner(struct sz_authz_op *op)
{
    struct under_way *slot = slot_of(active, op);
    SZ_ASSERT(slot != NULL);
    slot->op = NULL;
    answered(slot->check, op);
    slot->on_done(op);
}

static int start(struct sz_authz *authz, struct sz_loop *loop, const struct sz_check *check, struct sz_mono deadline,
                 struct sz_authz_op *op)
{
    struct listening *l = listening_of(authz);
    struct under_way *slot = slot_of(l, NULL);
    SZ_ASSERT(slot != NULL);
    active = l;
    *slot = (struct under_way){.op = op, .on_done = op->on_done, .check = note(l, check)};
    op->on_done = on_inner;
    int rc = sz_authz_start(l->inner, loop, check, deadline, op);
    if (rc < 0)
        op->answer.outcome = SZ_AUTHZ_UNAVAILABLE;
    if (rc == 0)
        return 0;
    slot->op = NULL;
    answered(slot->check, op);
    return rc;
}

static void cancel(struct sz_authz *authz, struct sz_authz_op *op)
{
    struct listening *l = listening_of(authz);
    struct under_way *slot = slot_of(l, op);
    if (slot != NULL)
        slot->op = NULL;
    l->inner->cancel(l->inner, op);
}

static void destroy(struct sz_authz *authz)
{
    struct listening *l = listening_of(authz);
    l->inner->free(l->inner);
    free(l);
}

static void listen_in(struct sz_explain *x)
{
    if (x->snapshot->authz == NULL)
        return;
    struct listening *l = sz_xcalloc(1, sizeof(*l));
    l->authz = (struct sz_authz){.start = start, .cancel = cancel, .free = destroy};
    l->inner = x->snapshot->authz;
    l->x = x;
    x->snapshot->authz = &l->authz;
}

/* ---- the run ------------------------------------------------------------------------------------------------------
 */

struct run {
    struct sz_explain *x;
    struct sz_loop *loop;
    struct sz_http_shared *shared;
    struct sz_http *http;
    struct sz_providers *providers;
    struct sz_gate gate;
    struct sz_worker worker;
    struct sz_defer begin;
};

static void on_finished(struct sz_txn *txn)
{
    sz_loop_stop(txn->worker->loop);
}

static void on_begin(struct sz_defer *defer)
{
    struct run *run = SZ_CONTAINER(defer, struct run, begin);
    if (sz_txn_start(&run->x->txn) == SZ_STEP_FINISHED)
        sz_loop_stop(run->loop);
}

static void make_request(struct run *run)
{
    struct sz_explain *x = run->x;
    struct sz_request *req = &x->txn.req;
    x->txn.worker = &run->worker;
    x->txn.pool = &x->arena.pool;
    x->txn.on_finished = on_finished;
    req->listener = &x->listener;
    req->protocol = SZ_HTTP_1_1;
    req->https = x->https;
    req->method = x->head.method;
    req->target = x->head.target;
    req->authority = x->head.authority;
    for (size_t i = 0; i < x->head.fields_n; i++) {
        struct sz_slice name = sz_pool_lower(&x->arena.pool, x->head.fields[i].name);
        if (!sz_eq(name, SZ_S("host")))
            sz_headers_add(&req->headers, &x->arena.pool, name, x->head.fields[i].value);
    }
}

static int open_run(struct run *run, struct sz_text *why)
{
    const struct sz_conf *conf = run->x->snapshot->conf;
    run->loop = sz_loop_new(0);
    run->shared = run->loop == NULL ? NULL : sz_http_shared_new(&conf->http, 1);
    run->http = run->shared == NULL ? NULL : sz_http_new(run->shared, run->loop);
    int rc = run->http == NULL ? -ENOMEM : sz_gate_init(&run->gate, conf);
    if (rc != 0) {
        sz_text_set(why, "cannot set up the stages: %s", strerror(-rc));
        return rc;
    }
    sz_worker_init(&run->worker, run->loop, &run->gate, run->x->snapshot);
    run->worker.http = run->http;
    run->providers = sz_providers_new(run->loop, run->http, SZ_NONE, why);
    if (run->providers == NULL)
        return -EINVAL;
    sz_providers_adopt(run->providers, run->x->snapshot->issuers, true);
    return 0;
}

static void close_run(struct run *run)
{
    sz_providers_free(&run->providers);
    sz_http_free(&run->http);
    if (run->worker.gate != NULL) {
        sz_worker_fini(&run->worker);
        sz_gate_fini(&run->gate);
    }
    sz_http_shared_free(&run->shared);
    sz_loop_free(&run->loop);
}

int sz_explain_run(struct sz_explain *x, struct sz_text *why)
{
    struct run *run = sz_xcalloc(1, sizeof(*run));
    run->x = x;
    listen_in(x);
    int rc = open_run(run, why);
    if (rc == 0) {
        make_request(run);
        run->begin.on_run = on_begin;
        sz_defer_start(run->loop, &run->begin);
        sz_loop_run(run->loop);
        rc = sz_explain_print(x);
        sz_txn_end(&x->txn);
    }
    close_run(run);
    free(run);
    return rc;
}

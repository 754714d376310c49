/*
 * A followed store's copy as a source: answers here while the copy is fresh enough, and asks the store itself until it
 * is loaded, when it was not heard for too long, when a check must not be answered from a copy, and when the answer is
 * far away: the copy's budget is the loop's time.
 */
#include <errno.h>
#include <stdlib.h>

#include "fga/follow.h"
#include "fga/openfga_source.h"
#include "subzero/conf.h"

/* About a millisecond of walking, against a call over the network; about what a look into the cache costs. */
enum { STEPS = 20000, QUICK_STEPS = 32 };

struct replica {
    struct sz_authz authz;
    struct sz_fga_client *client;
    struct sz_fga_news *news; /* counted; NULL: not followed yet */
    struct sz_span poll, max_lag;
};

/* ---- looking at the copy ----------------------------------------------------------------------------------------- */

/*
 * The copy, held until let_go: announced before it is believed to be current, so that a follower which has put another
 * in its place sees who still looks at it.  NULL: none.
 */
static struct sz_fga_copy *hold(struct sz_fga_news *news, unsigned index)
{
    struct sz_fga_copy *copy = atomic_load(&news->copy), *again;
    for (;; copy = again) {
        atomic_store(&news->used[index], copy);
        again = atomic_load(&news->copy);
        if (again == copy)
            return copy;
    }
}

static void let_go(struct sz_fga_news *news, unsigned index)
{
    atomic_store_explicit(&news->used[index], NULL, memory_order_release);
}

static bool is_fresh(const struct replica *r, struct sz_mono now)
{
    int64_t heard = r->news == NULL ? 0 : atomic_load_explicit(&r->news->heard, memory_order_acquire);
    return heard != 0 && now.us - heard <= r->max_lag.us;
}

/* False: not to be answered here. */
static bool answer_here(struct replica *r, struct sz_loop *loop, const struct sz_check *check, uint64_t steps,
                        struct sz_authz_op *op)
{
    struct sz_fault fault = {0};
    unsigned index = sz_loop_index(loop);
    if (check->consistency == SZ_HIGHER_CONSISTENCY || !is_fresh(r, sz_loop_now(loop)))
        return false;
    struct sz_fga_copy *copy = hold(r->news, index);
    if (copy == NULL)
        return false;
    int result = sz_engine_check(copy->engine, copy->program, check, &steps, &fault);
    let_go(r->news, index);
    if (result == SZ_ENGINE_BUDGET)
        return false;
    memset(&op->answer, 0, sizeof(op->answer));
    op->answer.source = SZ_AUTHZ_FROM_REPLICA;
    op->answer.met_cycle = fault.cycle;
    op->answer.outcome = result == SZ_ENGINE_YES  ? SZ_AUTHZ_ALLOWED
                         : result == SZ_ENGINE_NO ? SZ_AUTHZ_DENIED
                                                  : SZ_AUTHZ_ERROR;
    if (op->answer.outcome == SZ_AUTHZ_ERROR) {
        op->answer.code = fault.code;
        op->answer.message = fault.message;
    }
    return true;
}

/* ---- the source -------------------------------------------------------------------------------------------------- */

static int start(struct sz_authz *authz, struct sz_loop *loop, const struct sz_check *check, struct sz_mono deadline,
                 struct sz_authz_op *op)
{
    struct replica *r = SZ_CONTAINER(authz, struct replica, authz);
    op->impl = NULL;
    if (answer_here(r, loop, check, STEPS, op))
        return 1;
    return sz_fga_client_check(r->client, loop, check, deadline, op);
}

static int quick(struct sz_authz *authz, const struct sz_check *check, struct sz_authz_op *op)
{
    struct sz_loop *loop = sz_loop_current();
    return loop != NULL && answer_here(SZ_CONTAINER(authz, struct replica, authz), loop, check, QUICK_STEPS, op) ? 1
                                                                                                                 : 0;
}

static void cancel(struct sz_authz *authz, struct sz_authz_op *op)
{
    (void)authz;
    sz_fga_client_cancel(op);
}

static void destroy(struct sz_authz *authz)
{
    struct replica *r = SZ_CONTAINER(authz, struct replica, authz);
    sz_fga_client_unref(&r->client);
    sz_fga_news_unref(&r->news);
    free(r);
}

/* Each page of changes has a number of its own: all answers from before it are over, whoever gave them. */
static uint64_t epoch(struct sz_authz *authz)
{
    const struct replica *r = SZ_CONTAINER(authz, struct replica, authz);
    uint64_t changes = r->news == NULL ? 0 : atomic_load_explicit(&r->news->changes, memory_order_acquire);
    return r->client->settings + changes;
}

static void follow(struct sz_authz *authz, struct sz_followers *followers)
{
    struct replica *r = SZ_CONTAINER(authz, struct replica, authz);
    r->news = sz_followers_take(followers, r->client, r->poll, true);
}

struct sz_authz *sz_authz_replica_open(const struct sz_conf_fga *conf, struct sz_text *why)
{
    struct sz_fga_client *client = sz_fga_client_new(&conf->remote, why);
    if (client == NULL)
        return NULL;
    struct replica *r = sz_xcalloc(1, sizeof(*r));
    r->authz = (struct sz_authz){
        .start = start, .cancel = cancel, .free = destroy, .quick = quick, .epoch = epoch, .follow = follow};
    r->client = client;
    r->poll = conf->remote.poll;
    r->max_lag = conf->remote.max_lag;
    return &r->authz;
}

/*
 * A remote store as an authorization source: each check becomes an item that waits for the end of this turn of its loop
 * (openfga_call.c), and is told once: its answer, or at its own deadline that there is none.
 */
#include "fga/openfga.h"

#include <errno.h>
#include <stdlib.h>

#include "fga/follow.h"
#include "fga/openfga_source.h"
#include "subzero/conf.h"

struct remote {
    struct sz_authz authz;
    struct sz_fga_client *client;
    bool follow;
    struct sz_span poll;
    struct sz_fga_news *news; /* counted; NULL: its changes are not followed */
};

static void free_item(struct sz_fga_item *item)
{
    sz_timer_cancel(item->lane->loop, &item->deadline);
    sz_buf_fini(&item->question);
    item->op->impl = NULL;
    free(item);
}

void sz_fga_item_tell(struct sz_fga_item *item, const struct sz_authz_answer *answer)
{
    struct sz_authz_op *op = item->op;
    op->answer = *answer;
    op->answer.source = SZ_AUTHZ_FROM_OPENFGA;
    free_item(item);
    op->on_done(op);
}

static void on_deadline(struct sz_timer *timer)
{
    struct sz_fga_item *item = SZ_CONTAINER(timer, struct sz_fga_item, deadline);
    struct sz_authz_answer answer = {.outcome = SZ_AUTHZ_UNAVAILABLE};
    sz_text_set(&answer.message, "no answer in time");
    sz_fga_item_remove(item);
    sz_fga_item_tell(item, &answer);
}

int sz_fga_client_check(struct sz_fga_client *client, struct sz_loop *loop, const struct sz_check *check,
                        struct sz_mono deadline, struct sz_authz_op *op)
{
    memset(&op->answer, 0, sizeof(op->answer));
    op->answer.source = SZ_AUTHZ_FROM_OPENFGA;
    op->answer.outcome = SZ_AUTHZ_UNAVAILABLE;
    if (op->http == NULL)
        return -ENOTCONN;
    struct sz_buf question = {.limit = SZ_FGA_BATCH_BYTES};
    int rc = sz_fga_write_question(&question, check);
    if (rc != 0 || question.overflow) {
        op->answer.outcome = SZ_AUTHZ_ERROR;
        op->answer.code = 2000;
        sz_text_set(&op->answer.message, rc != 0 ? "a context is no JSON object" : "the check is too long");
        sz_buf_fini(&question);
        return 1;
    }
    struct sz_fga_item *item = sz_xcalloc(1, sizeof(*item));
    item->op = op;
    item->lane = sz_fga_lane_of(client, loop, op->http);
    item->question = question;
    item->consistency = check->consistency == SZ_HIGHER_CONSISTENCY ? SZ_HIGHER_CONSISTENCY : client->consistency;
    item->deadline.on_fire = on_deadline;
    op->impl = item;
    sz_timer_start(loop, &item->deadline, deadline);
    sz_fga_lane_add(item->lane, item);
    return 0;
}

void sz_fga_client_cancel(struct sz_authz_op *op)
{
    struct sz_fga_item *item = op->impl;
    if (item == NULL)
        return;
    sz_fga_item_remove(item);
    free_item(item);
}

static int start(struct sz_authz *authz, struct sz_loop *loop, const struct sz_check *check, struct sz_mono deadline,
                 struct sz_authz_op *op)
{
    return sz_fga_client_check(SZ_CONTAINER(authz, struct remote, authz)->client, loop, check, deadline, op);
}

static void cancel(struct sz_authz *authz, struct sz_authz_op *op)
{
    (void)authz;
    sz_fga_client_cancel(op);
}

static void destroy(struct sz_authz *authz)
{
    struct remote *r = SZ_CONTAINER(authz, struct remote, authz);
    sz_fga_client_unref(&r->client);
    sz_fga_news_unref(&r->news);
    free(r);
}

/* The same server, store and model give the same answers, before and after a reload, until a change of them is seen. */
static uint64_t epoch(struct sz_authz *authz)
{
    const struct remote *r = SZ_CONTAINER(authz, struct remote, authz);
    uint64_t changes = r->news == NULL ? 0 : atomic_load_explicit(&r->news->changes, memory_order_acquire);
    return r->client->settings + changes;
}

static void follow(struct sz_authz *authz, struct sz_followers *followers)
{
    struct remote *r = SZ_CONTAINER(authz, struct remote, authz);
    if (r->follow)
        r->news = sz_followers_take(followers, r->client, r->poll, false);
}

struct sz_authz *sz_authz_remote_open(const struct sz_conf_fga *conf, struct sz_text *why)
{
    struct sz_fga_client *client = sz_fga_client_new(&conf->remote, why);
    if (client == NULL)
        return NULL;
    struct remote *r = sz_xcalloc(1, sizeof(*r));
    r->authz = (struct sz_authz){.start = start, .cancel = cancel, .free = destroy, .epoch = epoch, .follow = follow};
    r->client = client;
    r->follow = conf->remote.follow;
    r->poll = conf->remote.poll;
    r->authz.shared = !r->follow; /* each counts the changes that it has seen */
    return &r->authz;
}

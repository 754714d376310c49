/*
 * Calls: what a loop's requests ask within one turn goes out together when the turn ends, at most fifty checks a call.
 * A batch that the server refuses as a whole (one bad question can do that) is asked again one by one, so that nobody's
 * answer depends on what others asked.  A token that is refused is thrown away and the call made once more.
 */
#include <errno.h>
#include <stdlib.h>

#include "fga/openfga.h"

#define CONNECT_TIME SZ_SEC(2)
#define WORTH_WHILE  SZ_MS(5) /* with less left nothing is asked: the timeout would be held against the server */
#define NO_BATCH     SZ_SEC(60)

struct sz_fga_call {
    struct sz_dependency_call http;
    struct sz_fga_client *client; /* counted */
    struct sz_fga_lane *lane;
    struct sz_fga_items items;
    unsigned n; /* of them at the start */
    enum sz_consistency consistency;
    struct sz_mono deadline;
    bool batch;
    bool again; /* with a new token */
    bool over;  /* its items are being told */
    struct sz_fga_token_wait *token_wait;
    uint64_t token; /* generation of the one that was sent */
};

static void append(struct sz_fga_items *items, struct sz_fga_item *item)
{
    if (items->first == NULL)
        items->last = &items->first;
    item->next = NULL;
    item->prev = items->last;
    *items->last = item;
    items->last = &item->next;
}

static void take(struct sz_fga_items *items, struct sz_fga_item *item)
{
    *item->prev = item->next;
    if (item->next != NULL)
        item->next->prev = item->prev;
    else
        items->last = item->prev;
}

static void free_call(struct sz_fga_call *call)
{
    sz_dependency_cancel(&call->http);
    if (call->token_wait != NULL)
        call->token_wait->owner = NULL;
    sz_fga_client_unref(&call->client);
    free(call);
}

void sz_fga_item_remove(struct sz_fga_item *item)
{
    struct sz_fga_call *call = item->call;
    take(call != NULL ? &call->items : &item->lane->waiting, item);
    item->call = NULL;
    if (call != NULL && call->items.first == NULL && !call->over)
        free_call(call);
}

/* ---- telling ----------------------------------------------------------------------------------------------------- */

static bool is_misconfigured(const struct sz_authz_answer *answer, int status)
{
    return status == 401 || status == 403 || (answer->outcome == SZ_AUTHZ_ERROR && answer->code != 2002);
}

/* answers: one for all, or (batch) by the items' numbers. */
static void tell_all(struct sz_fga_call *call, const struct sz_authz_answer *answers, bool one_each, int status)
{
    struct sz_fga_item *item;
    call->over = true;
    while ((item = call->items.first) != NULL) {
        const struct sz_authz_answer *answer = &answers[one_each ? item->number : 0];
        sz_fga_item_remove(item);
        if (answer->outcome == SZ_AUTHZ_ERROR || answer->outcome == SZ_AUTHZ_UNAVAILABLE)
            sz_fga_fault(call->lane, is_misconfigured(answer, status), "a check was not answered", answer->message.s);
        sz_fga_item_tell(item, answer);
    }
    free_call(call);
}

static void fail(struct sz_fga_call *call, struct sz_span retry, const char *why)
{
    struct sz_authz_answer answer = {.outcome = SZ_AUTHZ_UNAVAILABLE, .retry_after = retry};
    sz_text_set(&answer.message, "%s", why);
    tell_all(call, &answer, false, 0);
}

/* ---- the answer -------------------------------------------------------------------------------------------------- */

static void send_call(struct sz_fga_call *call);

/* One by one: a refusal of the whole says nothing about most of them. */
static void split(struct sz_fga_call *call)
{
    struct sz_fga_item *item;
    call->over = true;
    while ((item = call->items.first) != NULL) {
        sz_fga_item_remove(item);
        item->alone = true;
        sz_fga_lane_add(item->lane, item);
    }
    free_call(call);
}

/* Whether the call and not a question is what the server did not like. */
static bool is_whole_refused(struct sz_fga_call *call, const struct sz_http_answer *answer)
{
    int number;
    struct sz_text message;
    if (!call->batch)
        return false;
    sz_fga_read_error(answer->status, answer->body, &number, &message);
    bool unknown = (answer->status == 404 || answer->status == 405 || answer->status == 501) && number != 5002;
    if (unknown)
        call->lane->no_batch = sz_after(sz_loop_now(call->lane->loop), NO_BATCH);
    return unknown || answer->status == 413 || (answer->status == 400 && (number == 2000 || number == 2053));
}

static enum sz_breaker_outcome read_batch(struct sz_fga_call *call, const struct sz_http_answer *http)
{
    struct sz_authz_answer *answers = sz_xcalloc(call->n, sizeof(*answers));
    enum sz_breaker_outcome outcome = sz_fga_read_batch(http->status, http->body, answers, call->n);
    for (unsigned i = 0; i < call->n; i++)
        answers[i].retry_after = http->retry_after;
    tell_all(call, answers, true, http->status);
    free(answers);
    return outcome;
}

static enum sz_breaker_outcome read_one(struct sz_fga_call *call, const struct sz_http_answer *http)
{
    struct sz_authz_answer answer = {.retry_after = http->retry_after};
    enum sz_breaker_outcome outcome = sz_fga_read_check(http->status, http->body, &answer);
    tell_all(call, &answer, false, http->status);
    return outcome;
}

static enum sz_breaker_outcome on_answer(struct sz_dependency_call *http, const struct sz_http_answer *answer)
{
    struct sz_fga_call *call = SZ_CONTAINER(http, struct sz_fga_call, http);
    enum sz_breaker_outcome outcome = sz_dependency_outcome(answer);
    if (answer->result != SZ_HTTP_ANSWERED) {
        fail(call, (struct sz_span){0}, answer->why.s);
        return outcome;
    }
    if (answer->status == 401 && call->client->token != NULL && !call->again) {
        sz_fga_token_refused(call->client, call->token);
        call->again = true;
        send_call(call);
        return outcome;
    }
    if (is_whole_refused(call, answer)) {
        split(call);
        return outcome;
    }
    return call->batch ? read_batch(call, answer) : read_one(call, answer);
}

/* ---- the question ------------------------------------------------------------------------------------------------ */

static int start(struct sz_fga_call *call, struct sz_slice authorization, struct sz_slice body)
{
    const struct sz_fga_client *client = call->client;
    struct sz_http_field fields[3] = {{SZ_S("content-type"), SZ_S("application/json")},
                                      {SZ_S("accept"), SZ_S("application/json")},
                                      {SZ_S("authorization"), authorization}};
    struct sz_http_request request = {
        .method = SZ_HTTP_POST,
        .url = call->batch ? client->batch_url : client->check_url,
        .trust = client->trust,
        .insecure_http = client->insecure_http,
        .fields = fields,
        .fields_n = authorization.n > 0 ? 3 : 2,
        .body = body,
        .credentials = authorization.n > 0,
        .idempotent = true, /* asking twice changes nothing */
        .retries = client->retries,
        .deadline = call->deadline,
        .connect = CONNECT_TIME,
        .attempt = client->timeout,
        .limit = SZ_FGA_ANSWER_MAX,
    };
    return sz_dependency_start(call->lane->dependency, call->lane->http, &request, &call->http);
}

static void on_token(void *owner)
{
    struct sz_fga_call *call = owner;
    call->token_wait = NULL;
    send_call(call);
}

static void write_body(struct sz_fga_call *call, struct sz_buf *body)
{
    if (call->batch)
        sz_fga_write_batch(body, call->client, call->items.first, call->consistency);
    else
        sz_fga_write_check(body, call->client, sz_buf_slice(&call->items.first->question), call->consistency);
}

/* 0: sent.  Positive: as sz_dependency_start, or waits for a token (token_wait). */
static int try_send(struct sz_fga_call *call, struct sz_span *retry, struct sz_text *why)
{
    struct sz_buf authorization = {0}, body = {0};
    int rc = 0;
    sz_text_set(why, "it could not be asked");
    if (call->client->token != NULL)
        rc = sz_fga_token_get(call->lane, on_token, call, &authorization, &call->token, &call->token_wait, retry, why);
    else if (call->client->shared_key.n > 0)
        sz_buf_adds(&authorization, call->client->shared_key);
    if (rc == 0) {
        write_body(call, &body);
        rc = start(call, authorization.n > 0 ? sz_buf_slice(&authorization) : SZ_NONE, sz_buf_slice(&body));
        if (rc == SZ_DEPENDENCY_OPEN) {
            *retry = sz_dependency_retry(call->lane->dependency, sz_loop_now(call->lane->loop));
            sz_text_set(why, "it has failed too often, and is not asked for a while");
        }
    }
    if (authorization.p != NULL)
        sz_wipe(authorization.p, authorization.n);
    sz_buf_fini(&authorization);
    sz_buf_fini(&body);
    return rc;
}

static void send_call(struct sz_fga_call *call)
{
    struct sz_span retry = {0};
    struct sz_text why;
    struct sz_mono now = sz_loop_now(call->lane->loop);
    if (sz_between(now, call->deadline).us < WORTH_WHILE.us) {
        fail(call, retry, "no time is left to ask");
        return;
    }
    int rc = try_send(call, &retry, &why);
    if (rc != 0 && call->token_wait == NULL)
        fail(call, retry, why.s);
}

/* ---- gathering --------------------------------------------------------------------------------------------------- */

static bool may_join(const struct sz_fga_call *call, const struct sz_fga_item *item, size_t bytes)
{
    return call->n < SZ_FGA_BATCH_MAX && !item->alone && item->consistency == call->consistency &&
           bytes + item->question.n <= SZ_FGA_BATCH_BYTES;
}

static void gather(struct sz_fga_lane *lane)
{
    struct sz_fga_call *call = sz_xcalloc(1, sizeof(*call));
    struct sz_fga_item *item = lane->waiting.first, *next;
    size_t bytes = 0;
    bool alone = item->alone || sz_loop_now(lane->loop).us < lane->no_batch.us;
    call->http.on_done = on_answer;
    call->client = sz_fga_client_ref(lane->client);
    call->lane = lane;
    call->consistency = item->consistency;
    for (; item != NULL && (call->n == 0 || !alone); item = next) {
        next = item->next;
        if (call->n > 0 && !may_join(call, item, bytes))
            continue;
        take(&lane->waiting, item);
        append(&call->items, item);
        item->call = call;
        call->n++;
        bytes += item->question.n;
        if (item->deadline.at.us > call->deadline.us)
            call->deadline = item->deadline.at;
    }
    call->batch = call->n > 1;
    send_call(call);
}

void sz_fga_lane_send(struct sz_defer *defer)
{
    struct sz_fga_lane *lane = SZ_CONTAINER(defer, struct sz_fga_lane, send);
    struct sz_fga_client *client = lane->client; /* sz_fga_lane_add's reference */
    lane->queued = false;
    while (lane->waiting.first != NULL)
        gather(lane);
    sz_fga_client_unref(&client);
}

void sz_fga_lane_add(struct sz_fga_lane *lane, struct sz_fga_item *item)
{
    append(&lane->waiting, item);
    if (lane->queued)
        return;
    lane->queued = true;
    sz_fga_client_ref(lane->client); /* the lane must outlive the turn, also when all items leave before its end */
    sz_defer_start(lane->loop, &lane->send);
}

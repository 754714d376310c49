/* See openfga_ask.h.  As a check's call, but for one asker, and of any endpoint. */
#include "fga/openfga_ask.h"

#include <stdlib.h>

#define CONNECT_TIME SZ_SEC(3)
#define TRY          SZ_SEC(5)
#define LIMIT        ((size_t)4 << 20) /* a page of 100 tuples with contexts, or a model */

static void send_ask(struct sz_fga_ask *ask);

static void close_ask(struct sz_fga_ask *ask)
{
    sz_buf_fini(&ask->url);
    sz_buf_fini(&ask->body);
    sz_fga_client_unref(&ask->client);
}

static void on_failing(struct sz_defer *defer)
{
    struct sz_fga_ask *ask = SZ_CONTAINER(defer, struct sz_fga_ask, failing);
    struct sz_text why = ask->why;
    close_ask(ask);
    (void)ask->on_done(ask, NULL, why.s);
}

static enum sz_breaker_outcome on_answer(struct sz_dependency_call *http, const struct sz_http_answer *answer)
{
    struct sz_fga_ask *ask = SZ_CONTAINER(http, struct sz_fga_ask, http);
    if (answer->result == SZ_HTTP_ANSWERED && answer->status == 401 && ask->client->token != NULL && !ask->again) {
        sz_fga_token_refused(ask->client, ask->token);
        ask->again = true;
        send_ask(ask);
        return sz_dependency_outcome(answer);
    }
    close_ask(ask);
    return ask->on_done(ask, answer, answer->why.s);
}

static void on_token(void *owner)
{
    struct sz_fga_ask *ask = owner;
    ask->token_wait = NULL;
    send_ask(ask);
}

static int start(struct sz_fga_ask *ask, struct sz_slice authorization)
{
    const struct sz_fga_client *client = ask->client;
    struct sz_http_field fields[3] = {{SZ_S("accept"), SZ_S("application/json")}};
    size_t n = 1;
    if (authorization.n > 0)
        fields[n++] = (struct sz_http_field){SZ_S("authorization"), authorization};
    if (ask->method == SZ_HTTP_POST)
        fields[n++] = (struct sz_http_field){SZ_S("content-type"), SZ_S("application/json")};
    struct sz_http_request request = {
        .method = ask->method,
        .url = sz_buf_slice(&ask->url),
        .trust = client->trust,
        .insecure_http = client->insecure_http,
        .fields = fields,
        .fields_n = n,
        .body = sz_buf_slice(&ask->body),
        .credentials = authorization.n > 0,
        .idempotent = true, /* it only reads */
        .retries = client->retries,
        .deadline = ask->deadline,
        .connect = CONNECT_TIME,
        .attempt = TRY,
        .limit = LIMIT,
    };
    return sz_dependency_start(ask->lane->dependency, ask->lane->http, &request, &ask->http);
}

static void send_ask(struct sz_fga_ask *ask)
{
    struct sz_buf authorization = {0};
    struct sz_span retry;
    int rc = 0;
    sz_text_set(&ask->why, "it could not be asked");
    if (ask->client->token != NULL)
        rc = sz_fga_token_get(ask->lane, on_token, ask, &authorization, &ask->token, &ask->token_wait, &retry,
                              &ask->why);
    else if (ask->client->shared_key.n > 0)
        sz_buf_adds(&authorization, ask->client->shared_key);
    if (rc == 0)
        rc = start(ask, authorization.n > 0 ? sz_buf_slice(&authorization) : SZ_NONE);
    if (rc == SZ_DEPENDENCY_OPEN && ask->token_wait == NULL)
        sz_text_set(&ask->why, "it has failed too often, and is not asked for a while");
    if (authorization.p != NULL)
        sz_wipe(authorization.p, authorization.n);
    sz_buf_fini(&authorization);
    if (rc != 0 && ask->token_wait == NULL)
        sz_defer_start(ask->lane->loop, &ask->failing);
}

void sz_fga_ask_start(struct sz_fga_ask *ask, struct sz_fga_lane *lane, struct sz_slice path, struct sz_slice body,
                      struct sz_mono deadline)
{
    SZ_ASSERT(ask->client == NULL && ask->on_done != NULL);
    ask->http.on_done = on_answer;
    ask->failing.on_run = on_failing;
    ask->client = sz_fga_client_ref(lane->client);
    ask->lane = lane;
    ask->again = false;
    ask->deadline = deadline;
    ask->method = body.p == NULL ? SZ_HTTP_GET : SZ_HTTP_POST;
    sz_buf_adds(&ask->url, lane->client->store_url);
    sz_buf_adds(&ask->url, path);
    sz_buf_adds(&ask->body, body);
    send_ask(ask);
}

void sz_fga_ask_cancel(struct sz_fga_ask *ask)
{
    if (ask->client == NULL)
        return;
    sz_dependency_cancel(&ask->http);
    sz_defer_cancel(&ask->failing);
    if (ask->token_wait != NULL)
        ask->token_wait->owner = NULL;
    ask->token_wait = NULL;
    close_ask(ask);
}

/*
 * Client credentials (RFC 6749 section 4.4): one token for the process.  Whoever needs it while it is good takes it;
 * ahead of its end one of them has it refreshed, and goes on with the old one; when there is none, all wait for the
 * same request.  After a failure nobody asks for a moment.
 *
 * The token is kept here alone, and wiped; what goes around between loops is only the word that there is one.
 */
#include <errno.h>
#include <jansson.h>
#include <stdlib.h>

#include "fga/openfga.h"
#include "subzero/conf.h"
#include "subzero/crypto.h"

#define TIME         SZ_SEC(10) /* for the whole request */
#define TRY          SZ_SEC(4)
#define CONNECT_TIME SZ_SEC(3)
#define PAUSE        SZ_SEC(1) /* after a failure */
#define TOKEN_MAX    (16 * 1024)
#define LIFE_MAX     86400 /* seconds; whatever the issuer says, it is asked once a day */
#define LIFE_DEFAULT 60    /* when it does not say */

struct sz_fga_token {
    struct sz_slice url, client_id, client_secret, audience;
    pthread_mutex_t lock; /* for all below; nothing is called under it */
    char *value;          /* "Bearer ..." */
    size_t n;
    uint64_t generation; /* of value */
    struct sz_mono end, refresh, pause;
    struct sz_text why; /* of the last failure */
    bool asking;
    struct sz_fga_token_wait *waiters;
};

struct request { /* one at a time */
    struct sz_dependency_call http;
    struct sz_fga_client *client; /* counted */
    struct sz_fga_lane *lane;
};

struct sz_fga_token *sz_fga_token_new(const struct sz_conf_fga_remote *conf, struct sz_pool *pool)
{
    struct sz_fga_token *t = sz_xcalloc(1, sizeof(*t));
    pthread_mutex_init(&t->lock, NULL);
    t->url = sz_pool_dup(pool, conf->token_url);
    t->client_id = sz_pool_dup(pool, conf->client_id);
    t->client_secret = sz_pool_dup(pool, conf->client_secret.value);
    t->audience = sz_pool_dup(pool, conf->audience);
    return t;
}

static void forget(struct sz_fga_token *t)
{
    if (t->value != NULL)
        sz_wipe(t->value, t->n);
    free(t->value);
    t->value = NULL;
    t->n = 0;
}

void sz_fga_token_free(struct sz_fga_token **tp)
{
    struct sz_fga_token *t = *tp;
    *tp = NULL;
    if (t == NULL)
        return;
    forget(t);
    sz_wipe((void *)(uintptr_t)t->client_secret.p, t->client_secret.n);
    pthread_mutex_destroy(&t->lock);
    free(t);
}

void sz_fga_token_refused(struct sz_fga_client *client, uint64_t generation)
{
    struct sz_fga_token *t = client->token;
    pthread_mutex_lock(&t->lock);
    if (t->generation == generation)
        forget(t);
    pthread_mutex_unlock(&t->lock);
}

/* ---- the end of a request ---------------------------------------------------------------------------------------- */

static void on_msg(struct sz_msg *msg, struct sz_loop *loop)
{
    struct sz_fga_token_wait *wait = SZ_CONTAINER(msg, struct sz_fga_token_wait, msg);
    void (*on_done)(void *owner) = wait->on_done;
    void *owner = wait->owner;
    (void)loop;
    free(wait);
    if (owner != NULL)
        on_done(owner);
}

/* Tells all who wait that there is something to see. */
static void end(struct request *r)
{
    struct sz_fga_token *t = r->client->token;
    pthread_mutex_lock(&t->lock);
    struct sz_fga_token_wait *wait = t->waiters;
    t->waiters = NULL;
    t->asking = false;
    pthread_mutex_unlock(&t->lock);
    for (struct sz_fga_token_wait *next; wait != NULL; wait = next) {
        next = wait->next; /* once posted it is its loop's */
        wait->msg.on_msg = on_msg;
        sz_loop_post(wait->loop, &wait->msg);
    }
    sz_fga_client_unref(&r->client);
    free(r);
}

static void failed(struct request *r, bool misconfigured, struct sz_span pause, const char *why)
{
    struct sz_fga_token *t = r->client->token;
    sz_fga_fault(r->lane, misconfigured, "the token endpoint gave no token", why);
    pthread_mutex_lock(&t->lock);
    t->pause = sz_after(sz_loop_now(r->lane->loop), pause.us > PAUSE.us ? pause : PAUSE);
    sz_text_set(&t->why, "no token from the token endpoint: %s", why);
    pthread_mutex_unlock(&t->lock);
}

/* In its last quarter, or the last five to ten minutes, it is refreshed; in its last moments it is not used. */
static void take(struct request *r, const char *token, int64_t life)
{
    struct sz_fga_token *t = r->client->token;
    struct sz_mono now = sz_loop_now(r->lane->loop);
    uint32_t random;
    sz_random(&random, sizeof(random));
    int64_t ahead = life > 1200 ? 300 + (int64_t)(random % 300) : life / 4;
    size_t n = strlen(token) + sizeof("Bearer ") - 1;
    char *value = sz_xmalloc(n + 1);
    memcpy(value, "Bearer ", sizeof("Bearer ") - 1);
    memcpy(value + sizeof("Bearer ") - 1, token, n + 1 - (sizeof("Bearer ") - 1));
    pthread_mutex_lock(&t->lock);
    forget(t);
    t->value = value;
    t->n = n;
    t->generation++;
    t->end = sz_after(now, SZ_SEC(life > 20 ? life - 5 : life));
    t->refresh = sz_after(now, SZ_SEC(life - ahead));
    pthread_mutex_unlock(&t->lock);
}

/* NULL: what is wrong with it. */
static const char *read_token(struct sz_slice body, json_t **json, const char **token, int64_t *life)
{
    *json = sz_fga_read_object(body);
    const json_t *expires = json_object_get(*json, "expires_in");
    const char *type = json_string_value(json_object_get(*json, "token_type"));
    *token = json_string_value(json_object_get(*json, "access_token"));
    if (*token == NULL || **token == '\0')
        return "the answer has no 'access_token'";
    if (type != NULL && !sz_ieq(sz_cstr(type), SZ_S("bearer")))
        return "the answer's token is no bearer token";
    for (const char *c = *token; *c != '\0'; c++) {
        if (*c <= ' ' || *c >= 0x7f)
            return "the answer's token cannot be sent";
    }
    double seconds = json_is_number(expires) ? json_number_value(expires) : LIFE_DEFAULT;
    if (!(seconds >= 1))
        return "the answer's token is over already";
    *life = seconds < LIFE_MAX ? (int64_t)seconds : LIFE_MAX;
    return NULL;
}

static enum sz_breaker_outcome on_answer(struct sz_dependency_call *http, const struct sz_http_answer *answer)
{
    struct request *r = SZ_CONTAINER(http, struct request, http);
    enum sz_breaker_outcome outcome = sz_dependency_outcome(answer);
    struct sz_text why = answer->why;
    const char *wrong = why.s, *token = NULL;
    json_t *json = NULL;
    int64_t life = 0;
    bool answered = answer->result == SZ_HTTP_ANSWERED, good = answered && answer->status == 200;
    if (answered && !good)
        sz_text_set(&why, "it answers %d%s", answer->status,
                    answer->status == 401 || answer->status == 403 ? ": client_id and secret are refused" : "");
    else if (good)
        wrong = read_token(answer->body, &json, &token, &life);
    if (good && wrong == NULL)
        take(r, token, life);
    else
        failed(r, answered && answer->status >= 400 && answer->status < 500 && answer->status != 429,
               answer->retry_after, wrong);
    if (good && wrong != NULL)
        outcome = SZ_BREAKER_FAILURE;
    if (token != NULL)
        sz_wipe((void *)(uintptr_t)token, strlen(token));
    json_decref(json);
    end(r);
    return outcome;
}

/* ---- the request ------------------------------------------------------------------------------------------------- */

static void add_encoded(struct sz_buf *b, const char *name, struct sz_slice s)
{
    sz_buf_printf(b, "&%s=", name);
    for (size_t i = 0; i < s.n; i++) {
        unsigned char c = (unsigned char)s.p[i];
        if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '.' ||
            c == '_')
            sz_buf_add(b, &c, 1);
        else
            sz_buf_printf(b, "%%%02X", c);
    }
}

static int start(struct request *r)
{
    const struct sz_fga_token *t = r->client->token;
    struct sz_buf body = {0};
    struct sz_http_field fields[] = {{SZ_S("content-type"), SZ_S("application/x-www-form-urlencoded")},
                                     {SZ_S("accept"), SZ_S("application/json")}};
    sz_buf_printf(&body, "grant_type=client_credentials");
    add_encoded(&body, "client_id", t->client_id);
    add_encoded(&body, "client_secret", t->client_secret);
    if (t->audience.n > 0)
        add_encoded(&body, "audience", t->audience);
    struct sz_http_request request = {
        .method = SZ_HTTP_POST,
        .url = t->url,
        .trust = r->client->trust,
        .insecure_http = r->client->insecure_http,
        .fields = fields,
        .fields_n = SZ_COUNT(fields),
        .body = sz_buf_slice(&body),
        .credentials = true,
        .idempotent = true, /* two tokens are as good as one */
        .retries = 1,
        .deadline = sz_after(sz_loop_now(r->lane->loop), TIME),
        .connect = CONNECT_TIME,
        .attempt = TRY,
        .limit = TOKEN_MAX,
    };
    int rc = sz_dependency_start(r->lane->dependency, r->lane->http, &request, &r->http);
    sz_wipe(body.p, body.n);
    sz_buf_fini(&body);
    return rc;
}

/* `asking` is set: it is this caller's to begin. */
static void request(struct sz_fga_lane *lane)
{
    struct request *r = sz_xcalloc(1, sizeof(*r));
    r->http.on_done = on_answer;
    r->client = sz_fga_client_ref(lane->client);
    r->lane = lane;
    int rc = start(r);
    if (rc == 0)
        return;
    struct sz_span retry = sz_dependency_retry(lane->dependency, sz_loop_now(lane->loop));
    failed(r, false, retry, rc == SZ_DEPENDENCY_OPEN ? "it has failed too often" : "it could not be asked");
    end(r);
}

int sz_fga_token_get(struct sz_fga_lane *lane, void (*on_done)(void *owner), void *owner, struct sz_buf *out,
                     uint64_t *generation, struct sz_fga_token_wait **waitp, struct sz_span *retry, struct sz_text *why)
{
    struct sz_fga_token *t = lane->client->token;
    struct sz_mono now = sz_loop_now(lane->loop);
    struct sz_fga_token_wait *wait = sz_xcalloc(1, sizeof(*wait));
    bool begin = false;
    int rc = 0;
    *wait = (struct sz_fga_token_wait){.on_done = on_done, .owner = owner, .loop = lane->loop};

    pthread_mutex_lock(&t->lock);
    bool good = t->value != NULL && now.us < t->end.us, paused = now.us < t->pause.us;
    if (good) {
        sz_buf_add(out, t->value, t->n);
        *generation = t->generation;
        begin = now.us >= t->refresh.us && !t->asking && !paused;
    } else if (paused && !t->asking) {
        rc = -EAGAIN;
        *retry = sz_between(now, t->pause);
        *why = t->why;
    } else {
        rc = SZ_FGA_TOKEN_WAIT;
        begin = !t->asking;
        wait->next = t->waiters;
        t->waiters = wait;
        *waitp = wait;
    }
    t->asking = t->asking || begin;
    pthread_mutex_unlock(&t->lock);

    if (rc != SZ_FGA_TOKEN_WAIT)
        free(wait);
    if (begin)
        request(lane);
    return rc;
}

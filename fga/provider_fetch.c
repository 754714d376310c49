/*
 * One fetch, from the timer or a token to its outcome.  A failure, whatever it is, leaves the keys as they are and is
 * tried again soon; keys that nobody could refresh for max_stale are taken away: then it is "could not ask".
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "fga/provider_impl.h"
#include "subzero/log.h"

#define CALL_TIME      SZ_SEC(10)
#define CONNECT_TIME   SZ_SEC(3)
#define METADATA_BYTES (256 * 1024)
#define METADATA_KEPT  SZ_SEC(86400) /* a jwks_uri moves rarely, and a failure looks it up anew */
#define FRESH_MOST     SZ_SEC(86400)

static void ask(struct sz_provider *p);

/* ---- outcome ----------------------------------------------------------------------------------------------------- */

static void tell(struct sz_provider *p, int status)
{
    struct sz_keys_op *ops = p->ops;
    p->ops = NULL;
    while (ops != NULL) {
        struct sz_keys_op *op = ops;
        ops = op->next;
        sz_key_slot_unref(&op->slot);
        op->on_done(op, status);
    }
}

static void publish_state(struct sz_provider *p, bool running, bool failed, struct sz_mono next)
{
    pthread_mutex_lock(&p->slot->lock);
    p->slot->fetch.running = running;
    p->slot->fetch.failed = failed;
    p->slot->fetch.next = next;
    pthread_mutex_unlock(&p->slot->lock);
}

static uint64_t random64(void)
{
    uint64_t r;
    sz_random(&r, sizeof(r));
    return r;
}

static void end(struct sz_provider *p, int status)
{
    p->step = SZ_PROVIDER_REST;
    sz_provider_plan(p);
    tell(p, status);
}

static void fail(struct sz_provider *p, enum sz_provider_result result)
{
    struct sz_mono now = sz_loop_now(p->all->loop);
    p->failures++;
    p->found_at = (struct sz_mono){0};
    p->due = sz_after(now, sz_provider_backoff(p->failures, random64()));
    publish_state(p, false, true, p->due);
    sz_count(SZ_NO_LOOP, p->refreshed[result], 1);
    sz_log(SZ_LOG_WARN, "issuer", "issuer '%.*s': its keys cannot be fetched: %s; %s, asked again in %" PRId64 " ms",
           SZ_FMT(p->name), p->why.s, p->has_keys ? "those known stay in use" : "it has none",
           sz_between(now, p->due).us / 1000);
    end(p, -EAGAIN);
}

/* Between three and nine tenths of it: early enough for some failures, and no fleet asks in step. */
static struct sz_span refresh_in(struct sz_span lifetime)
{
    int64_t tenth = lifetime.us / 10;
    return (struct sz_span){7 * tenth + (int64_t)(random64() % (uint64_t)(2 * tenth + 1))};
}

static void take_keys(struct sz_provider *p, struct sz_mono fetched)
{
    struct sz_jwks *keys = p->parse.keys;
    p->parse.keys = NULL;
    p->has_keys = true;
    p->fetched = fetched;
    sz_key_slot_set(p->slot, keys);
}

static void succeed(struct sz_provider *p)
{
    struct sz_mono now = sz_loop_now(p->all->loop);
    if (p->failures > 0 || !p->has_keys)
        sz_log(SZ_LOG_INFO, "issuer", "issuer '%.*s': %zu usable keys fetched", SZ_FMT(p->name), p->parse.keys->n);
    p->failures = 0;
    p->why.s[0] = '\0';
    take_keys(p, now);
    p->due = sz_after(now, refresh_in(p->parse.lifetime));
    publish_state(p, false, false, sz_after(now, p->cooldown));
    sz_count(SZ_NO_LOOP, p->refreshed[SZ_PROVIDER_OK], 1);
    sz_provider_save(p);
    end(p, 0);
}

/* ---- what was saved ---------------------------------------------------------------------------------------------- */

/* The keys of the last run, with the age they have by now. */
static void take_saved(struct sz_provider *p)
{
    struct sz_mono now = sz_loop_now(p->all->loop);
    int64_t age = sz_wall_seconds(sz_loop_wall(p->all->loop)) - p->parse.fetched;
    if (p->has_keys || age < -60 || age >= p->max_stale.us / 1000000) {
        sz_jwks_unref(&p->parse.keys);
        if (!p->has_keys)
            sz_log(SZ_LOG_WARN, "issuer", "issuer '%.*s': saved keys are %s and not used", SZ_FMT(p->name),
                   age < 0 ? "from the future" : "older than max_stale");
        return;
    }
    sz_log(SZ_LOG_INFO, "issuer", "issuer '%.*s': %zu saved keys, %" PRId64 " s old", SZ_FMT(p->name), p->parse.keys->n,
           age > 0 ? age : 0);
    take_keys(p, (struct sz_mono){now.us - (age > 0 ? age : 0) * 1000000});
}

void sz_provider_parsed(struct sz_provider *p)
{
    if (!p->parse.from_disk) {
        if (p->parse.keys != NULL) {
            succeed(p);
        } else {
            p->why = p->parse.why;
            fail(p, SZ_PROVIDER_UNUSABLE);
        }
        return;
    }
    if (p->parse.keys != NULL)
        take_saved(p);
    else if (p->parse.why.s[0] != '\0')
        sz_log(SZ_LOG_WARN, "issuer", "issuer '%.*s': saved keys are not used: %s", SZ_FMT(p->name), p->parse.why.s);
    sz_provider_start(p);
}

/* ---- asking ------------------------------------------------------------------------------------------------------ */

/* An answer that holds what was asked for; otherwise p->why says what it was. */
static bool answered(struct sz_provider *p, const struct sz_http_answer *answer)
{
    if (answer->result == SZ_HTTP_ANSWERED && answer->status == 200)
        return true;
    if (answer->result == SZ_HTTP_ANSWERED)
        sz_text_set(&p->why, "status %d", answer->status);
    else
        p->why = answer->why;
    return false;
}

static void on_metadata(struct sz_provider *p, const struct sz_http_answer *answer)
{
    bool openid = p->step == SZ_PROVIDER_METADATA && p->metadata.p == NULL;
    if (openid && answer->result == SZ_HTTP_ANSWERED && answer->status == 404) {
        p->step = SZ_PROVIDER_METADATA_OAUTH;
        ask(p);
        return;
    }
    struct sz_slice found;
    if (!answered(p, answer)) {
        fail(p, SZ_PROVIDER_UNAVAILABLE);
    } else if (sz_metadata_read(answer->body, p->issuer, p->insecure_http, &found, &p->why) != 0) {
        fail(p, SZ_PROVIDER_UNUSABLE);
    } else {
        free((void *)(uintptr_t)p->found.p);
        p->found = found;
        p->found_at = sz_loop_now(p->all->loop);
        p->step = SZ_PROVIDER_JWKS;
        ask(p);
    }
}

static void on_keys(struct sz_provider *p, const struct sz_http_answer *answer)
{
    struct sz_wall wall = sz_loop_wall(p->all->loop);
    if (!answered(p, answer)) {
        fail(p, SZ_PROVIDER_UNAVAILABLE);
        return;
    }
    struct sz_span least = p->cooldown.us > 1000000 ? p->cooldown : SZ_SEC(1);
    struct sz_span most = p->max_stale.us < FRESH_MOST.us ? p->max_stale : FRESH_MOST;
    p->step = SZ_PROVIDER_PARSE;
    p->parse.document.n = 0;
    sz_buf_adds(&p->parse.document, answer->body);
    p->parse.fetched = sz_wall_seconds(wall);
    p->parse.lifetime = sz_freshness(answer, wall, least, most);
    sz_provider_parse(p);
}

static void on_done(struct sz_http_call *call, const struct sz_http_answer *answer)
{
    struct sz_provider *p = SZ_CONTAINER(call, struct sz_provider, call);
    if (p->step == SZ_PROVIDER_JWKS)
        on_keys(p, answer);
    else
        on_metadata(p, answer);
}

static struct sz_slice where(struct sz_provider *p, struct sz_pool *pool)
{
    if (p->step == SZ_PROVIDER_JWKS)
        return p->jwks_uri.p != NULL ? p->jwks_uri : p->found;
    if (p->step == SZ_PROVIDER_METADATA_OAUTH)
        return sz_metadata_oauth(p->issuer, pool);
    return p->metadata.p != NULL ? p->metadata : sz_metadata_openid(p->issuer, pool);
}

static void ask(struct sz_provider *p)
{
    static const struct sz_http_field accept = {{"accept", 6}, {"application/json", 16}};
    struct sz_arena arena;
    sz_arena_init(&arena);
    struct sz_http_request request = {
        .method = SZ_HTTP_GET,
        .url = where(p, &arena.pool),
        .trust = p->trust,
        .insecure_http = p->insecure_http,
        .fields = &accept,
        .fields_n = 1,
        .idempotent = true,
        .deadline = sz_after(sz_loop_now(p->all->loop), CALL_TIME),
        .connect = CONNECT_TIME,
        .limit = p->step == SZ_PROVIDER_JWKS ? SZ_JWKS_BYTES_MAX : METADATA_BYTES,
    };
    p->call.on_done = on_done;
    int rc = sz_http_start(p->all->http, &request, &p->call);
    sz_arena_fini(&arena);
    if (rc == 0)
        return;
    sz_text_set(&p->why, "the call could not be started: %s", rc > 0 ? "too many" : strerror(-rc));
    fail(p, SZ_PROVIDER_UNAVAILABLE);
}

void sz_provider_start(struct sz_provider *p)
{
    struct sz_mono now = sz_loop_now(p->all->loop);
    if (p->step != SZ_PROVIDER_REST || p->parse.busy)
        return;
    publish_state(p, true, p->failures > 0, now);
    bool found = p->jwks_uri.p != NULL || (p->found_at.us != 0 && now.us < sz_after(p->found_at, METADATA_KEPT).us);
    p->step = found ? SZ_PROVIDER_JWKS : SZ_PROVIDER_METADATA;
    ask(p);
}

/* ---- when -------------------------------------------------------------------------------------------------------- */

static void on_timer(struct sz_timer *timer)
{
    struct sz_provider *p = SZ_CONTAINER(timer, struct sz_provider, timer);
    struct sz_mono now = sz_loop_now(p->all->loop);
    if (p->has_keys && now.us >= sz_after(p->fetched, p->max_stale).us) {
        p->has_keys = false;
        sz_key_slot_set(p->slot, sz_jwks_empty());
        sz_log(SZ_LOG_ERROR, "issuer", "issuer '%.*s': its keys are older than max_stale and no longer used",
               SZ_FMT(p->name));
    }
    if (now.us >= p->due.us)
        sz_provider_start(p);
    sz_provider_plan(p);
}

void sz_provider_plan(struct sz_provider *p)
{
    bool idle = p->step == SZ_PROVIDER_REST && !p->parse.busy;
    struct sz_mono at = idle ? p->due : SZ_NEVER;
    if (p->has_keys)
        at = sz_earlier(at, sz_after(p->fetched, p->max_stale));
    p->timer.on_fire = on_timer;
    if (at.us < SZ_NEVER.us)
        sz_timer_start(p->all->loop, &p->timer, at);
}

void sz_provider_stop(struct sz_provider *p)
{
    sz_http_cancel(&p->call);
    sz_timer_cancel(p->all->loop, &p->timer);
    p->step = SZ_PROVIDER_REST;
    publish_state(p, false, true, SZ_NEVER);
    tell(p, -ECANCELED);
}

/* ---- because of a token ------------------------------------------------------------------------------------------ */

static void on_wish(struct sz_msg *msg, struct sz_loop *loop)
{
    struct sz_keys_op *op = SZ_CONTAINER(msg, struct sz_keys_op, msg);
    struct sz_provider *p = op->slot->provider;
    int status = 0;
    if (p == NULL) {
        status = -ECANCELED;
    } else if (p->step == SZ_PROVIDER_REST && !p->parse.busy) {
        pthread_mutex_lock(&op->slot->lock);
        bool early = sz_loop_now(loop).us < op->slot->fetch.next.us; /* another one has just ended */
        pthread_mutex_unlock(&op->slot->lock);
        status = p->failures > 0 ? -EAGAIN : 0;
        if (early)
            p = NULL;
    }
    if (p == NULL) {
        sz_key_slot_unref(&op->slot);
        op->on_done(op, status);
        return;
    }
    op->next = p->ops;
    p->ops = op;
    sz_provider_start(p);
}

void sz_keys_fetch(const struct sz_issuers *issuers, int index, struct sz_keys_op *op)
{
    struct sz_key_slot *slot = issuers->v[index].slot;
    SZ_ASSERT(slot->loop != NULL);
    op->slot = sz_key_slot_ref(slot);
    op->msg.on_msg = on_wish;
    sz_loop_post(slot->loop, &op->msg);
}

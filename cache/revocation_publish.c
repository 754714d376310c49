/*
 * Telling the other instances.  A script gives the number, writes and announces in one go, so that whoever hears of a
 * number can read everything before it.  A record that says more than an older one takes its place.
 */
#include <stdio.h>

#include "cache/revocation_shared.h"
#include "subzero/crypto.h"

static const struct sz_span WRITE_TIME = {1000 * 1000}, PAUSE = {500 * 1000};
/* Beyond this a number is nobody's of ours: doubles count exactly up to 2^53. */

/* epoch to begin with, channel, record, the number that it takes the place of.  e, and its number. */
static struct sz_redis_script publish_script = {
    .name = "revocations_publish",
    .text = SZ_S("local k=KEYS[1] "
                 "local t=redis.call('TYPE',k).ok "
                 "local e=nil local s=nil "
                 "if t=='hash' then "
                 "if redis.call('HSTRLEN',k,'e')==16 then e=redis.call('HGET',k,'e') end "
                 "if redis.call('HSTRLEN',k,'s')<=16 then s=tonumber(redis.call('HGET',k,'s') or '') end "
                 "end "
                 "if not e or not s or s<0 or s>4503599627370496 or s~=math.floor(s) then "
                 "redis.call('DEL',k) e=ARGV[1] s=0 redis.call('HSET',k,'e',e) end "
                 "local n=string.format('%.0f',s+1) "
                 "redis.call('HSET',k,'s',n,n,ARGV[3]) "
                 "if ARGV[4]~='0' then redis.call('HDEL',k,ARGV[4]) end "
                 "redis.call('PUBLISH',ARGV[2],n..' '..ARGV[3]) "
                 "return {e,n}")};

void sz_revocation_untold(struct sz_revocations *set, size_t at)
{
    set->v[at].published = set->shared == NULL;
    if (set->shared != NULL)
        sz_revocation_queue_add(&set->untold, at);
}

static bool told(struct sz_revocation_publish *p, const struct sz_redis_answer *answer)
{
    struct sz_revocation_shared *shared = p->shared;
    struct sz_revocation_record *record = &shared->set->v[p->at];
    const struct sz_redis_reply *reply = answer->reply;
    uint64_t number;
    if (answer->result != SZ_REDIS_ANSWERED || reply->type != SZ_REDIS_ARRAY || reply->items_n != 2 ||
        reply->items[0].type != SZ_REDIS_STRING || reply->items[1].type != SZ_REDIS_STRING ||
        !sz_revocation_number(reply->items[1].text, &number) || number == 0)
        return false;
    if (record->number == p->replaced && p->replaced != 0) { /* the script has removed it */
        record->number = 0;
        shared->numbered--;
    }
    sz_revocation_numbered(shared, record, number);
    record->published = record->r.before == p->sent.before && record->r.expires == p->sent.expires;
    if (!record->published)
        sz_revocation_untold(shared->set, p->at);
    if (!sz_eq(reply->items[0].text, sz_cstr(shared->epoch)))
        sz_revocation_read_all(shared); /* Redis has lost the others */
    return true;
}

static enum sz_breaker_outcome on_told(struct sz_redis_op *op, const struct sz_redis_answer *answer)
{
    struct sz_revocation_publish *p = SZ_CONTAINER(op, struct sz_revocation_publish, op);
    struct sz_revocation_shared *shared = p->shared;
    struct sz_revocations *set = shared->set;
    bool good = told(p, answer);
    p->busy = false;
    shared->publishing--;
    set->v[p->at].publishing = false;
    if (!good) {
        sz_text_set(&shared->fault, "writing one: %s", sz_redis_result_name(answer->result));
        shared->publish_at = sz_after(sz_loop_now(set->loop), PAUSE);
        sz_revocation_queue_add(&set->untold, p->at);
    }
    sz_revocation_settle(set);
    sz_revocation_publish_kick(shared);
    return good || answer->result != SZ_REDIS_ANSWERED ? sz_redis_outcome(answer) : SZ_BREAKER_FAILURE;
}

/* The seal ends with what it says, to the microsecond; INT64_MAX: never. */
static int64_t end_of(const struct sz_revocation *r)
{
    return r->expires > INT64_MAX / 1000000 - 3600 ? INT64_MAX : (r->expires + 3600) * 1000000;
}

static void seal(const struct sz_revocation_shared *shared, const struct sz_revocation *r, struct sz_buf *out)
{
    struct sz_seal_bind bind;
    struct sz_buf plain = {0};
    sz_revocation_bind(shared, &bind);
    sz_revocation_encode(r, 0, &plain);
    sz_seal(shared->fleet, &bind, end_of(r), sz_sub(sz_buf_slice(&plain), 0, SZ_REVOCATION_PLAIN), out);
    sz_buf_fini(&plain);
}

/* False: not now. */
static bool tell(struct sz_revocation_shared *shared, struct sz_revocation_publish *p, size_t at)
{
    struct sz_revocation_record *record = &shared->set->v[at];
    struct sz_buf sealed = {0};
    uint8_t random[8];
    char epoch[16], number[24];
    seal(shared, &record->r, &sealed);
    sz_random(random, sizeof(random));
    sz_hex_encode(random, sizeof(random), epoch);
    int n = snprintf(number, sizeof(number), "%llu", (unsigned long long)record->number);
    const struct sz_slice args[] = {sz_slice(epoch, sizeof(epoch)), sz_cstr(shared->channel), sz_buf_slice(&sealed),
                                    sz_slice(number, (size_t)n)};
    struct sz_mono deadline = sz_after(sz_loop_now(shared->set->loop), WRITE_TIME);
    *p = (struct sz_revocation_publish){
        .op.on_done = on_told, .shared = shared, .at = at, .sent = record->r, .replaced = record->number};
    int rc = sz_redis_eval(shared->redis, SZ_REDIS_REVOCATION, &publish_script, sz_cstr(shared->key), args, 4, deadline,
                           &p->op);
    sz_buf_fini(&sealed);
    if (rc != 0) {
        sz_text_set(&shared->fault, "writing one: %s", sz_redis_result_name((enum sz_redis_result)rc));
        return false;
    }
    p->busy = record->publishing = true;
    shared->publishing++;
    return true;
}

static struct sz_revocation_publish *free_one(struct sz_revocation_shared *shared)
{
    for (size_t i = 0; i < SZ_SHARED_PUBLISHES; i++) {
        if (!shared->publish[i].busy)
            return &shared->publish[i];
    }
    return NULL;
}

static enum sz_breaker_outcome on_forgotten(struct sz_redis_op *op, const struct sz_redis_answer *answer)
{
    (void)op;
    return sz_redis_outcome(answer);
}

static void forget_kick(struct sz_revocation_shared *shared)
{
    char texts[SZ_COUNT(shared->forget)][24];
    struct sz_slice args[2 + SZ_COUNT(shared->forget)] = {SZ_S("HDEL"), sz_cstr(shared->key)};
    if (shared->forget_n == 0 || shared->forgetting.pending != NULL || !shared->current)
        return;
    for (size_t i = 0; i < shared->forget_n; i++) {
        int n = snprintf(texts[i], sizeof(texts[i]), "%llu", (unsigned long long)shared->forget[i]);
        args[2 + i] = sz_slice(texts[i], (size_t)n);
    }
    struct sz_redis_command command = {.args = args,
                                       .args_n = 2 + shared->forget_n,
                                       .key = 1,
                                       .deadline = sz_after(sz_loop_now(shared->set->loop), WRITE_TIME)};
    shared->forgetting.on_done = on_forgotten;
    if (sz_redis_start(shared->redis, SZ_REDIS_REVOCATION, &command, &shared->forgetting) == 0)
        shared->forget_n = 0;
}

void sz_revocation_publish_kick(struct sz_revocation_shared *shared)
{
    struct sz_revocations *set = shared->set;
    struct sz_revocation_publish *p;
    sz_redis_script_prepare(&publish_script);
    while (shared->current && set->untold.n > 0 && sz_loop_now(set->loop).us >= shared->publish_at.us &&
           (p = free_one(shared)) != NULL) {
        size_t at = set->untold.v[--set->untold.n];
        if (set->v[at].published || set->v[at].publishing)
            continue;
        if (!tell(shared, p, at)) {
            set->untold.v[set->untold.n++] = (uint32_t)at;
            shared->publish_at = sz_after(sz_loop_now(set->loop), PAUSE);
        }
    }
    forget_kick(shared);
}

void sz_revocation_shared_kick(struct sz_revocations *set)
{
    if (set->shared != NULL)
        sz_revocation_publish_kick(set->shared);
}

bool sz_revocation_shared_idle(const struct sz_revocations *set)
{
    return set->shared == NULL || set->shared->publishing == 0;
}

/* More than fit are left: the next whole look finds them again, and nothing depends on their being gone. */
void sz_revocation_shared_forget(struct sz_revocations *set, uint64_t number)
{
    struct sz_revocation_shared *shared = set->shared;
    if (shared != NULL && number != 0 && shared->forget_n < SZ_COUNT(shared->forget))
        shared->forget[shared->forget_n++] = number;
}

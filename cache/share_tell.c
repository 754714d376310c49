/*
 * Telling the other instances.  A script gives the number, writes and announces in one go, so that whoever hears of a
 * number can read everything before it.  A record that says more than an older one takes its place.
 */
#include "cache/share.h"

#include <stdio.h>
#include <stdlib.h>

#include "subzero/crypto.h"

static const struct sz_span WRITE_TIME = {1000 * 1000}, PAUSE = {500 * 1000};
/* Beyond this a number is nobody's of ours: doubles count exactly up to 2^53. */

/* epoch to begin with, channel, record, the number that it takes the place of.  e, and its number. */
static struct sz_redis_script publish_script = {
    .name = "share_publish",
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

/* Each that is to be told, once: what has been added again and again, while nothing could be told, takes no room. */
static void gather(struct sz_share *share)
{
    size_t n = share->face->count(share->owner);
    share->untold_n = 0;
    for (size_t i = 0; i < n && share->untold_n < share->untold_room; i++) {
        const struct sz_share_item *item = share->face->item(share->owner, i);
        if (item != NULL && !item->published)
            share->untold[share->untold_n++] = (uint32_t)i;
    }
}

void sz_share_tell(struct sz_share *share, size_t at)
{
    struct sz_share_item *item = share->face->item(share->owner, at);
    item->published = false;
    if (share->untold_n == share->untold_room && share->untold_n > 2 * share->face->count(share->owner)) {
        gather(share); /* this one too */
        return;
    }
    if (share->untold_n == share->untold_room) {
        share->untold_room = share->untold_room == 0 ? 64 : share->untold_room * 2;
        share->untold = sz_xrealloc(share->untold, share->untold_room * sizeof(*share->untold));
    }
    share->untold[share->untold_n++] = (uint32_t)at;
}

void sz_share_untell_all(struct sz_share *share)
{
    share->untold_n = 0;
}

static bool told(struct sz_share_publish *p, const struct sz_redis_answer *answer)
{
    struct sz_share *share = p->share;
    struct sz_share_item *item = share->face->item(share->owner, p->at);
    const struct sz_redis_reply *reply = answer->reply;
    uint64_t number;
    if (answer->result != SZ_REDIS_ANSWERED || reply->type != SZ_REDIS_ARRAY || reply->items_n != 2 ||
        reply->items[0].type != SZ_REDIS_STRING || reply->items[1].type != SZ_REDIS_STRING ||
        !sz_share_number(reply->items[1].text, &number) || number == 0)
        return false;
    if (item->number == p->replaced && p->replaced != 0) { /* the script has removed it */
        item->number = 0;
        share->numbered--;
    }
    sz_share_numbered(share, item, number);
    item->sealed_until = p->sealed_until;
    item->published = item->version == p->version;
    if (!item->published)
        sz_share_tell(share, p->at);
    if (!sz_eq(reply->items[0].text, sz_cstr(share->epoch)))
        sz_share_read_all(share); /* Redis has lost the others */
    return true;
}

static enum sz_breaker_outcome on_told(struct sz_redis_op *op, const struct sz_redis_answer *answer)
{
    struct sz_share_publish *p = SZ_CONTAINER(op, struct sz_share_publish, op);
    struct sz_share *share = p->share;
    bool good = told(p, answer);
    p->busy = false;
    share->publishing--;
    share->face->item(share->owner, p->at)->publishing = false;
    if (!good) {
        sz_text_set(&share->fault, "writing one: %s", sz_redis_result_name(answer->result));
        share->publish_at = sz_after(sz_loop_now(share->loop), PAUSE);
        if (!share->face->item(share->owner, p->at)->published) /* it may have been heard meanwhile */
            sz_share_tell(share, p->at);
    }
    share->face->on_change(share->owner);
    sz_share_kick(share);
    return good || answer->result != SZ_REDIS_ANSWERED ? sz_redis_outcome(answer) : SZ_BREAKER_FAILURE;
}

/* False: not now. */
static bool tell(struct sz_share *share, struct sz_share_publish *p, size_t at)
{
    struct sz_share_item *item = share->face->item(share->owner, at);
    struct sz_seal_bind bind;
    struct sz_buf plain = {0}, sealed = {0};
    uint8_t random[8];
    char epoch[16], number[24];
    int64_t expires = 0;
    sz_share_bind(share, &bind);
    share->face->encode(share->owner, at, &plain, &expires);
    SZ_ASSERT(plain.n + SZ_SEAL_OVERHEAD == share->face->sealed);
    sz_seal(share->fleet, &bind, expires, sz_buf_slice(&plain), &sealed);
    sz_wipe(plain.p, plain.n);
    sz_buf_fini(&plain);
    sz_random(random, sizeof(random));
    sz_hex_encode(random, sizeof(random), epoch);
    int n = snprintf(number, sizeof(number), "%llu", (unsigned long long)item->number);
    const struct sz_slice args[] = {sz_slice(epoch, sizeof(epoch)), sz_cstr(share->channel), sz_buf_slice(&sealed),
                                    sz_slice(number, (size_t)n)};
    struct sz_mono deadline = sz_after(sz_loop_now(share->loop), WRITE_TIME);
    *p = (struct sz_share_publish){.op.on_done = on_told,
                                   .share = share,
                                   .at = at,
                                   .version = item->version,
                                   .sealed_until = expires,
                                   .replaced = item->number};
    int rc =
        sz_redis_eval(share->redis, share->face->use, &publish_script, sz_cstr(share->key), args, 4, deadline, &p->op);
    sz_buf_fini(&sealed);
    if (rc != 0) {
        sz_text_set(&share->fault, "writing one: %s", sz_redis_result_name((enum sz_redis_result)rc));
        return false;
    }
    p->busy = item->publishing = true;
    share->publishing++;
    return true;
}

static struct sz_share_publish *free_one(struct sz_share *share)
{
    for (size_t i = 0; i < SZ_SHARE_PUBLISHES; i++) {
        if (!share->publish[i].busy)
            return &share->publish[i];
    }
    return NULL;
}

/* ---- what is over ------------------------------------------------------------------------------------------------ */

static enum sz_breaker_outcome on_forgotten(struct sz_redis_op *op, const struct sz_redis_answer *answer)
{
    (void)op;
    return sz_redis_outcome(answer);
}

static void forget_kick(struct sz_share *share)
{
    char texts[SZ_SHARE_FORGETS][24];
    struct sz_slice args[2 + SZ_SHARE_FORGETS] = {SZ_S("HDEL"), sz_cstr(share->key)};
    if (share->forget_n == 0 || share->forgetting.pending != NULL || !share->current)
        return;
    for (size_t i = 0; i < share->forget_n; i++) {
        int n = snprintf(texts[i], sizeof(texts[i]), "%llu", (unsigned long long)share->forget[i]);
        args[2 + i] = sz_slice(texts[i], (size_t)n);
    }
    struct sz_redis_command command = {.args = args,
                                       .args_n = 2 + share->forget_n,
                                       .key = 1,
                                       .deadline = sz_after(sz_loop_now(share->loop), WRITE_TIME)};
    share->forgetting.on_done = on_forgotten;
    if (sz_redis_start(share->redis, share->face->use, &command, &share->forgetting) == 0)
        share->forget_n = 0;
}

/* More than fit are left: the next whole look finds them again, and nothing depends on their being gone. */
void sz_share_forget_number(struct sz_share *share, uint64_t number)
{
    if (number != 0 && share->forget_n < SZ_SHARE_FORGETS)
        share->forget[share->forget_n++] = number;
}

void sz_share_forget(struct sz_share *share, struct sz_share_item *item)
{
    sz_share_forget_number(share, item->number);
    share->numbered -= item->number != 0;
    item->number = 0;
}

void sz_share_kick(struct sz_share *share)
{
    struct sz_share_publish *p;
    sz_redis_script_prepare(&publish_script);
    while (share->current && share->untold_n > 0 && sz_loop_now(share->loop).us >= share->publish_at.us &&
           (p = free_one(share)) != NULL) {
        size_t at = share->untold[--share->untold_n];
        const struct sz_share_item *item = share->face->item(share->owner, at);
        if (item == NULL || item->published || item->publishing)
            continue;
        if (!tell(share, p, at)) {
            share->untold[share->untold_n++] = (uint32_t)at;
            share->publish_at = sz_after(sz_loop_now(share->loop), PAUSE);
        }
    }
    forget_kick(share);
}

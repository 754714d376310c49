/*
 * Hearing the other instances.
 *
 *   listening ─▶ the tail is read (what was said while nobody listened) ─▶ current: not deaf
 *       │            └─ another hash, a number that went back, records missing ─▶ all of it is read, ours written again
 *       │
 *       ├─ an announcement with the next number: applied;  with a later one: a gap, the tail is read
 *       └─ four times a second: the tail, in case an announcement was lost (and a Redis that hangs is noticed)
 *
 * Deaf: not listening, or reading failed.  Then nothing is asked until the listener is back: its connection is tried
 * all the time, and commands that cannot succeed would only open the breaker.
 */
#include "cache/share.h"

#include <stdio.h>
#include <stdlib.h>

#include "subzero/crypto.h"
#include "subzero/log.h"

static const struct sz_span READ_TIME = {1000 * 1000}, ALL_EVERY = {300 * 1000000};
/* What no longer opens is taken away when it has been over for so long: by then a clock that is wrong is very wrong. */
static const int64_t OVER_US = INT64_C(3600) * 1000000;

/* from: the first number; count: how many; bytes of a record.  e, s, how many fields, then the records ("": none of
 * ours there). */
static struct sz_redis_script tail_script = {
    .name = "share_tail",
    .text = SZ_S("local k=KEYS[1] "
                 "if redis.call('TYPE',k).ok~='hash' then return {'','0','0'} end "
                 "local function short(f) "
                 "if redis.call('HSTRLEN',k,f)>16 then return '' end return redis.call('HGET',k,f) or '' end "
                 "local out={short('e'),short('s'),tostring(redis.call('HLEN',k))} "
                 "local from=tonumber(ARGV[1]) local n=tonumber(ARGV[3]) "
                 "for i=from,from+tonumber(ARGV[2])-1 do local f=string.format('%.0f',i) "
                 "if redis.call('HSTRLEN',k,f)==n then out[#out+1]=redis.call('HGET',k,f) else out[#out+1]='' end end "
                 "return out")};

/* cursor; about how many; bytes of a record.  e, s, the next cursor, then number and record by turns. */
static struct sz_redis_script all_script = {
    .name = "share_all",
    .text = SZ_S("local k=KEYS[1] "
                 "if redis.call('TYPE',k).ok~='hash' then return {'','0','0'} end "
                 "local function short(f) "
                 "if redis.call('HSTRLEN',k,f)>16 then return '' end return redis.call('HGET',k,f) or '' end "
                 "local r=redis.call('HSCAN',k,ARGV[1],'COUNT',ARGV[2]) local n=tonumber(ARGV[3]) "
                 "local out={short('e'),short('s'),r[1]} "
                 "for i=1,#r[2],2 do if #r[2][i]<=16 and #r[2][i+1]==n then "
                 "out[#out+1]=r[2][i] out[#out+1]=r[2][i+1] end end "
                 "return out")};

static void count(const struct sz_share *share, struct sz_series series)
{
    sz_count(sz_loop_index(share->loop), series, 1);
}

bool sz_share_number(struct sz_slice text, uint64_t *number)
{
    return text.n > 0 && text.n <= 16 && sz_parse_u64(text, UINT64_C(1) << 53, number) == 0;
}

void sz_share_bind(const struct sz_share *share, struct sz_seal_bind *bind)
{
    *bind = (struct sz_seal_bind){.kind = share->face->kind, .key = sz_cstr(share->key)};
}

static void set_deaf(struct sz_share *share, bool deaf)
{
    if (share->deaf == deaf)
        return;
    share->deaf = deaf;
    if (deaf)
        sz_log(SZ_LOG_WARN, share->face->component, "%s of other instances cannot be heard: %s", share->face->what,
               share->fault.s);
    else
        sz_log(SZ_LOG_INFO, share->face->component, "%s of other instances are heard", share->face->what);
    share->face->on_deaf(share->owner, deaf);
}

/* ---- what was heard ---------------------------------------------------------------------------------------------- */

void sz_share_numbered(struct sz_share *share, struct sz_share_item *item, uint64_t number)
{
    if (item->number != 0 && item->number != number) /* two of one: the older is superfluous */
        sz_share_forget_number(share, item->number < number ? item->number : number);
    share->numbered += item->number == 0;
    item->number = item->number > number ? item->number : number;
    item->sync = share->sync;
}

/* -1: forged.  0: nothing new.  1: new here. */
static int take(struct sz_share *share, uint64_t number, struct sz_slice plain, int64_t sealed_until)
{
    size_t at;
    bool stands;
    enum sz_share_heard heard = share->face->hear(share->owner, plain, &at, &stands);
    if (heard == SZ_HEARD_BAD)
        return -1;
    if (heard == SZ_HEARD_FULL)
        return 0;
    struct sz_share_item *item = share->face->item(share->owner, at);
    sz_share_numbered(share, item, number);
    /* Redis may have less than we do: an older one was put back. */
    item->published = stands;
    item->sealed_until = sealed_until;
    if (!stands)
        sz_share_tell(share, at);
    if (heard == SZ_HEARD_NEWS && share->current) /* else it was missed while nobody listened */
        count(share, share->heard);
    share->face->on_change(share->owner);
    return heard == SZ_HEARD_NEWS;
}

/* at_rest: it was read under this number, which hence is its own. */
static int hear(struct sz_share *share, uint64_t number, struct sz_slice sealed, bool at_rest)
{
    struct sz_seal_bind bind;
    struct sz_buf plain = {0};
    int64_t expires = 0, now = sz_loop_wall(share->loop).us;
    int news = -1;
    sz_share_bind(share, &bind);
    enum sz_unseal opened = sz_unseal(share->fleet, &bind, now, sealed, &plain, &expires);
    if (opened == SZ_UNSEAL_OK)
        news = take(share, number, sz_buf_slice(&plain), expires);
    if (plain.n > 0)
        sz_wipe(plain.p, plain.n);
    sz_buf_fini(&plain);
    if (opened == SZ_UNSEAL_EXPIRED) {
        count(share, share->stale);
        if (at_rest && now - OVER_US > expires)
            sz_share_forget_number(share, number);
        return 0;
    }
    if (news < 0)
        count(share, share->forged);
    return news;
}

static void read_tail(struct sz_share *share);

static void on_message(struct sz_redis_listener *listener, struct sz_slice channel, struct sz_slice message)
{
    struct sz_share *share = SZ_CONTAINER(listener, struct sz_share, listener);
    ptrdiff_t blank = sz_find_byte(message, ' ');
    uint64_t number;
    (void)channel;
    if (blank < 0 || !sz_share_number(sz_sub(message, 0, (size_t)blank), &number) ||
        message.n != (size_t)blank + 1 + share->face->sealed) {
        count(share, share->forged);
        return;
    }
    int news = hear(share, number, sz_from(message, (size_t)blank + 1), false);
    if (news < 0)
        return;
    if (number == share->last + 1) {
        share->last = number;
    } else if (number > share->last || news > 0) {
        share->all_wanted |= number <= share->last; /* Redis counts from further back than it did */
        read_tail(share);
    }
}

/* ---- reading ----------------------------------------------------------------------------------------------------- */

static void later(struct sz_share *share)
{
    static const int64_t ms[] = {250, 50, 500, 1000, 2000}; /* after so many failures */
    unsigned at = share->failures < SZ_COUNT(ms) ? share->failures : SZ_COUNT(ms) - 1;
    struct sz_loop *loop = share->loop;
    sz_timer_start(loop, &share->poll, sz_after(sz_loop_now(loop), SZ_MS(ms[at])));
}

static void failed(struct sz_share *share, enum sz_redis_result result)
{
    sz_text_set(&share->fault, "reading them: %s", sz_redis_result_name(result));
    if (++share->failures > 1) { /* one that was late is no cut */
        share->current = false;
        set_deaf(share, true);
    }
    later(share);
}

static void start_read(struct sz_share *share, const struct sz_redis_script *script, const struct sz_slice *args,
                       size_t n, enum sz_share_reading reading)
{
    struct sz_mono deadline = sz_after(sz_loop_now(share->loop), READ_TIME);
    sz_timer_cancel(share->loop, &share->poll);
    int rc =
        sz_redis_eval(share->redis, share->face->use, script, sz_cstr(share->key), args, n, deadline, &share->read);
    share->reading = rc == 0 ? reading : SZ_READING_NOTHING;
    if (rc != 0)
        failed(share, (enum sz_redis_result)rc);
}

static void say_sizes(const struct sz_share *share, char page[16], char bytes[16])
{
    snprintf(page, 16, "%u", share->face->page);
    snprintf(bytes, 16, "%zu", share->face->sealed);
}

static void read_tail(struct sz_share *share)
{
    char from[24], page[16], bytes[16];
    share->tail_wanted = true;
    if (share->reading != SZ_READING_NOTHING || !share->up)
        return;
    share->tail_wanted = false;
    int n = snprintf(from, sizeof(from), "%llu", (unsigned long long)share->last + 1);
    say_sizes(share, page, bytes);
    const struct sz_slice args[] = {sz_slice(from, (size_t)n), sz_cstr(page), sz_cstr(bytes)};
    start_read(share, &tail_script, args, 3, SZ_READING_TAIL);
}

static void read_page(struct sz_share *share)
{
    char page[16], bytes[16];
    say_sizes(share, page, bytes);
    const struct sz_slice args[] = {sz_cstr(share->cursor), sz_cstr(page), sz_cstr(bytes)};
    start_read(share, &all_script, args, 3, SZ_READING_ALL);
}

void sz_share_read_all(struct sz_share *share)
{
    share->all_wanted = true;
    if (share->reading != SZ_READING_NOTHING || !share->up)
        return;
    share->all_wanted = false;
    share->sync++;
    share->newest = 0;
    snprintf(share->cursor, sizeof(share->cursor), "0");
    read_page(share);
}

static void next(struct sz_share *share)
{
    if (share->all_wanted)
        sz_share_read_all(share);
    else if (share->tail_wanted)
        read_tail(share);
    if (share->reading == SZ_READING_NOTHING)
        later(share);
    sz_share_kick(share);
}

static void now_current(struct sz_share *share)
{
    if (!share->current)
        share->publish_at = (struct sz_mono){0}; /* what waited for Redis waits no longer */
    share->current = true;
    share->failures = 0;
    share->fault.s[0] = '\0';
    set_deaf(share, false);
}

/* What both scripts answer first: e, s, a third; all strings.  False: nonsense, as of somebody else. */
static bool head_ok(const struct sz_redis_answer *answer)
{
    const struct sz_redis_reply *reply = answer->reply;
    if (answer->result != SZ_REDIS_ANSWERED || reply->type != SZ_REDIS_ARRAY || reply->items_n < 3)
        return false;
    for (size_t i = 0; i < reply->items_n; i++) {
        if (reply->items[i].type != SZ_REDIS_STRING)
            return false;
    }
    return true;
}

static bool same_epoch(const struct sz_share *share, struct sz_slice epoch)
{
    return epoch.n > 0 && sz_eq(epoch, sz_cstr(share->epoch));
}

static void take_epoch(struct sz_share *share, struct sz_slice epoch)
{
    snprintf(share->epoch, sizeof(share->epoch), "%.*s", SZ_FMT(epoch));
}

static void tail_came(struct sz_share *share, const struct sz_redis_reply *reply)
{
    uint64_t newest = 0, fields = 0;
    (void)sz_share_number(reply->items[1].text, &newest);
    (void)sz_share_number(reply->items[2].text, &fields);
    for (size_t i = 3; i < reply->items_n; i++) {
        if (reply->items[i].text.n > 0)
            (void)hear(share, share->last + i - 2, reply->items[i].text, true);
    }
    size_t read = reply->items_n - 3;
    bool none = reply->items[0].text.n == 0 && share->epoch[0] == '\0'; /* nobody has revoked anything yet */
    bool lost = !none && (!same_epoch(share, reply->items[0].text) || newest < share->last ||
                          fields < share->numbered + 2 || newest - share->last > read);
    if (!lost)
        share->last = newest;
    if (lost || sz_loop_now(share->loop).us >= share->all_at.us)
        share->all_wanted = true;
    if (!lost)
        now_current(share);
}

/* What of ours is not in Redis is written there again. */
static void all_came(struct sz_share *share)
{
    size_t n = share->face->count(share->owner);
    share->numbered = 0;
    for (size_t i = 0; i < n; i++) {
        struct sz_share_item *item = share->face->item(share->owner, i);
        if (item == NULL)
            continue;
        if (item->sync != share->sync) {
            item->number = 0;
            if (item->published)
                count(share, share->republished);
            sz_share_tell(share, i);
        }
        share->numbered += item->number != 0;
    }
    share->last = share->newest;
    share->all_at = sz_after(sz_loop_now(share->loop), ALL_EVERY);
    share->tail_wanted = true; /* said since the look began */
    now_current(share);
}

static void page_came(struct sz_share *share, const struct sz_redis_reply *reply)
{
    uint64_t number;
    if (sz_eq(sz_cstr(share->cursor), SZ_S("0"))) {
        take_epoch(share, reply->items[0].text);
        (void)sz_share_number(reply->items[1].text, &share->newest);
    }
    for (size_t i = 3; i + 1 < reply->items_n; i += 2) {
        if (sz_share_number(reply->items[i].text, &number))
            (void)hear(share, number, reply->items[i + 1].text, true);
    }
    bool changed = reply->items[0].text.n > 0 && !same_epoch(share, reply->items[0].text);
    snprintf(share->cursor, sizeof(share->cursor), "%.*s", SZ_FMT(sz_sub(reply->items[2].text, 0, 20)));
    if (changed)
        share->all_wanted = true; /* flushed and made again meanwhile */
    else if (sz_eq(sz_cstr(share->cursor), SZ_S("0")))
        all_came(share);
    else
        read_page(share);
}

static enum sz_breaker_outcome on_read(struct sz_redis_op *op, const struct sz_redis_answer *answer)
{
    struct sz_share *share = SZ_CONTAINER(op, struct sz_share, read);
    enum sz_share_reading reading = share->reading;
    share->reading = SZ_READING_NOTHING;
    if (!head_ok(answer)) {
        share->all_wanted |= reading == SZ_READING_ALL;
        failed(share, answer->result);
        return answer->result == SZ_REDIS_ANSWERED ? SZ_BREAKER_FAILURE : sz_redis_outcome(answer);
    }
    if (reading == SZ_READING_TAIL)
        tail_came(share, answer->reply);
    else
        page_came(share, answer->reply);
    if (share->reading == SZ_READING_NOTHING)
        next(share);
    return SZ_BREAKER_SUCCESS;
}

static void on_poll(struct sz_timer *timer)
{
    struct sz_share *share = SZ_CONTAINER(timer, struct sz_share, poll);
    if (share->all_wanted)
        sz_share_read_all(share);
    else
        read_tail(share);
}

static void on_state(struct sz_redis_listener *listener, bool up)
{
    struct sz_share *share = SZ_CONTAINER(listener, struct sz_share, listener);
    share->up = up;
    share->failures = 0;
    if (up) {
        share->all_wanted = true; /* after the tail, which is read first: it is what is missing most often */
        read_tail(share);
        return;
    }
    share->current = false;
    sz_timer_cancel(share->loop, &share->poll);
    sz_text_set(&share->fault, "the connection that listens is down");
    set_deaf(share, true);
}

/* ---- life -------------------------------------------------------------------------------------------------------- */

static void make_names(struct sz_share *share)
{
    uint8_t name[32];
    char tag[33];
    sz_fleet_name(share->fleet, share->face->name, SZ_S(""), name);
    sz_hex_encode(name, 16, tag);
    tag[32] = '\0';
    SZ_ASSERT(sizeof("subzero:{}:") + 32 + strlen(share->face->name) <= sizeof(share->key));
    snprintf(share->key, sizeof(share->key), "subzero:{%s}:%.20s", tag, share->face->name);
    snprintf(share->channel, sizeof(share->channel), "subzero:{%s}:%.20s", tag, share->face->channel);
}

struct sz_share *sz_share_new(const struct sz_share_face *face, void *owner, struct sz_loop *loop,
                              struct sz_redis *redis, const struct sz_fleet *fleet)
{
    struct sz_share *share = sz_xcalloc(1, sizeof(*share));
    SZ_ASSERT(face->page * face->sealed < SZ_REDIS_REPLY_DEFAULT * 3 / 4);
    share->face = face;
    share->owner = owner;
    share->loop = loop;
    share->redis = redis;
    share->fleet = fleet;
    share->read.on_done = on_read;
    share->poll.on_fire = on_poll;
    share->listener.on_message = on_message;
    share->listener.on_state = on_state;
    make_names(share);
    share->heard = sz_series1(face->events, "heard");
    share->forged = sz_series1(face->events, "forged");
    share->stale = sz_series1(face->events, "stale");
    share->republished = sz_series1(face->events, "republished");
    sz_redis_script_prepare(&tail_script);
    sz_redis_script_prepare(&all_script);
    sz_text_set(&share->fault, "not connected yet");
    for (size_t i = 0; i < face->count(owner); i++) { /* until Redis is seen to have it */
        struct sz_share_item *item = face->item(owner, i);
        if (item != NULL)
            item->published = false;
    }
    set_deaf(share, true);
    const struct sz_slice channel = sz_cstr(share->channel);
    sz_redis_listen(redis, &channel, 1, &share->listener);
    return share;
}

void sz_share_free(struct sz_share **sharep)
{
    struct sz_share *share = *sharep;
    *sharep = NULL;
    if (share == NULL)
        return;
    sz_redis_unlisten(&share->listener);
    sz_redis_cancel(&share->read);
    sz_redis_cancel(&share->forgetting);
    for (size_t i = 0; i < SZ_SHARE_PUBLISHES; i++)
        sz_redis_cancel(&share->publish[i].op);
    sz_timer_cancel(share->loop, &share->poll);
    free(share->untold);
    free(share);
}

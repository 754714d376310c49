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
#include "cache/revocation_shared.h"

#include <stdio.h>
#include <stdlib.h>

#include "subzero/log.h"

static const struct sz_span READ_TIME = {1000 * 1000}, ALL_EVERY = {300 * 1000000};

/* from: the first number; count: how many.  e, s, how many fields, then the records ("": none of ours there). */
static struct sz_redis_script tail_script = {
    .name = "revocations_tail",
    .text =
        SZ_S("local k=KEYS[1] "
             "if redis.call('TYPE',k).ok~='hash' then return {'','0','0'} end "
             "local function short(f) "
             "if redis.call('HSTRLEN',k,f)>16 then return '' end return redis.call('HGET',k,f) or '' end "
             "local out={short('e'),short('s'),tostring(redis.call('HLEN',k))} "
             "local from=tonumber(ARGV[1]) "
             "for i=from,from+tonumber(ARGV[2])-1 do local f=string.format('%.0f',i) "
             "if redis.call('HSTRLEN',k,f)==120 then out[#out+1]=redis.call('HGET',k,f) else out[#out+1]='' end end "
             "return out")};

/* cursor.  e, s, the next cursor, then number and record by turns. */
static struct sz_redis_script all_script = {
    .name = "revocations_all",
    .text = SZ_S("local k=KEYS[1] "
                 "if redis.call('TYPE',k).ok~='hash' then return {'','0','0'} end "
                 "local function short(f) "
                 "if redis.call('HSTRLEN',k,f)>16 then return '' end return redis.call('HGET',k,f) or '' end "
                 "local r=redis.call('HSCAN',k,ARGV[1],'COUNT',100) "
                 "local out={short('e'),short('s'),r[1]} "
                 "for i=1,#r[2],2 do if #r[2][i]<=16 and #r[2][i+1]==120 then "
                 "out[#out+1]=r[2][i] out[#out+1]=r[2][i+1] end end "
                 "return out")};

_Static_assert(SZ_SHARED_SEALED == 120, "what the scripts let through");

static void count(const struct sz_revocation_shared *shared, struct sz_series series)
{
    sz_count(sz_loop_index(shared->set->loop), series, 1);
}

bool sz_revocation_number(struct sz_slice text, uint64_t *number)
{
    return text.n > 0 && text.n <= 16 && sz_parse_u64(text, UINT64_C(1) << 53, number) == 0;
}

void sz_revocation_bind(const struct sz_revocation_shared *shared, struct sz_seal_bind *bind)
{
    *bind = (struct sz_seal_bind){.kind = "revocation", .key = sz_cstr(shared->key)};
}

static void set_deaf(struct sz_revocation_shared *shared, bool deaf)
{
    if (atomic_exchange(&shared->set->news.deaf, deaf) == deaf)
        return;
    if (deaf)
        sz_log(SZ_LOG_WARN, "revocation", "revocations of other instances cannot be heard: %s", shared->fault.s);
    else
        sz_log(SZ_LOG_INFO, "revocation", "revocations of other instances are heard");
    if (shared->on_deaf != NULL)
        shared->on_deaf(shared->arg, deaf);
}

/* ---- what was heard ---------------------------------------------------------------------------------------------- */

void sz_revocation_numbered(struct sz_revocation_shared *shared, struct sz_revocation_record *record, uint64_t number)
{
    if (record->number != 0 && record->number != number) /* two of one: the older is superfluous */
        sz_revocation_shared_forget(shared->set, record->number < number ? record->number : number);
    shared->numbered += record->number == 0;
    record->number = record->number > number ? record->number : number;
    record->sync = shared->sync;
}

static void took(const struct sz_revocation_shared *shared, const struct sz_revocation *r)
{
    int64_t us = sz_loop_wall(shared->set->loop).us - r->made;
    count(shared, shared->heard);
    sz_observe(sz_loop_index(shared->set->loop), shared->delay, (struct sz_span){us > 0 ? us : 0});
}

int sz_revocation_hear(struct sz_revocation_shared *shared, uint64_t number, struct sz_slice sealed,
                       struct sz_revocation *r)
{
    struct sz_seal_bind bind;
    struct sz_buf plain = {0};
    int64_t expires;
    size_t within, at;
    sz_revocation_bind(shared, &bind);
    enum sz_unseal opened =
        sz_unseal(shared->fleet, &bind, sz_loop_wall(shared->set->loop).us, sealed, &plain, &expires);
    bool good = opened == SZ_UNSEAL_OK && sz_revocation_decode(sz_buf_slice(&plain), r, &within);
    sz_buf_fini(&plain);
    if (opened == SZ_UNSEAL_EXPIRED)
        return 0;
    if (!good) {
        count(shared, shared->forged);
        return -1;
    }
    enum sz_revocation_change change = sz_revocation_apply(shared->set, r, &at);
    if (change == SZ_CHANGE_FULL)
        return 0; /* /health says so */
    struct sz_revocation_record *record = &shared->set->v[at];
    sz_revocation_numbered(shared, record, number);
    /* Redis may have a narrower one than we: an older one was put back. */
    record->published = record->r.before <= r->before && record->r.expires <= r->expires;
    if (!record->published)
        sz_revocation_untold(shared->set, at);
    if (change == SZ_CHANGE_DONE) {
        if (shared->current) /* else it was missed, and how long it took says nothing */
            took(shared, r);
        sz_revocation_save_kick(shared->set);
    }
    sz_revocation_settle(shared->set);
    return change == SZ_CHANGE_DONE;
}

static void read_tail(struct sz_revocation_shared *shared);

static void on_message(struct sz_redis_listener *listener, struct sz_slice channel, struct sz_slice message)
{
    struct sz_revocation_shared *shared = SZ_CONTAINER(listener, struct sz_revocation_shared, listener);
    ptrdiff_t blank = sz_find_byte(message, ' ');
    struct sz_revocation r;
    uint64_t number;
    (void)channel;
    if (blank < 0 || !sz_revocation_number(sz_sub(message, 0, (size_t)blank), &number) ||
        message.n != (size_t)blank + 1 + SZ_SHARED_SEALED) {
        count(shared, shared->forged);
        return;
    }
    int news = sz_revocation_hear(shared, number, sz_from(message, (size_t)blank + 1), &r);
    if (news < 0)
        return;
    if (number == shared->last + 1) {
        shared->last = number;
    } else if (number > shared->last || news > 0) {
        shared->all_wanted |= number <= shared->last; /* Redis counts from further back than it did */
        read_tail(shared);
    }
}

/* ---- reading ----------------------------------------------------------------------------------------------------- */

static void later(struct sz_revocation_shared *shared)
{
    static const int64_t ms[] = {250, 50, 500, 1000, 2000}; /* after so many failures */
    unsigned at = shared->failures < SZ_COUNT(ms) ? shared->failures : SZ_COUNT(ms) - 1;
    struct sz_loop *loop = shared->set->loop;
    sz_timer_start(loop, &shared->poll, sz_after(sz_loop_now(loop), SZ_MS(ms[at])));
}

static void failed(struct sz_revocation_shared *shared, enum sz_redis_result result)
{
    sz_text_set(&shared->fault, "reading them: %s", sz_redis_result_name(result));
    if (++shared->failures > 1) { /* one that was late is no cut */
        shared->current = false;
        set_deaf(shared, true);
    }
    later(shared);
}

static void start_read(struct sz_revocation_shared *shared, const struct sz_redis_script *script,
                       const struct sz_slice *args, size_t n, enum sz_shared_reading reading)
{
    struct sz_mono deadline = sz_after(sz_loop_now(shared->set->loop), READ_TIME);
    sz_timer_cancel(shared->set->loop, &shared->poll);
    int rc = sz_redis_eval(shared->redis, SZ_REDIS_REVOCATION, script, sz_cstr(shared->key), args, n, deadline,
                           &shared->read);
    shared->reading = rc == 0 ? reading : SZ_READING_NOTHING;
    if (rc != 0)
        failed(shared, (enum sz_redis_result)rc);
}

static void read_tail(struct sz_revocation_shared *shared)
{
    char from[24];
    shared->tail_wanted = true;
    if (shared->reading != SZ_READING_NOTHING || !shared->up)
        return;
    shared->tail_wanted = false;
    int n = snprintf(from, sizeof(from), "%llu", (unsigned long long)shared->last + 1);
    const struct sz_slice args[] = {sz_slice(from, (size_t)n), SZ_S("200")};
    start_read(shared, &tail_script, args, 2, SZ_READING_TAIL);
}

static void read_page(struct sz_revocation_shared *shared)
{
    const struct sz_slice args[] = {sz_cstr(shared->cursor)};
    start_read(shared, &all_script, args, 1, SZ_READING_ALL);
}

void sz_revocation_read_all(struct sz_revocation_shared *shared)
{
    shared->all_wanted = true;
    if (shared->reading != SZ_READING_NOTHING || !shared->up)
        return;
    shared->all_wanted = false;
    shared->sync++;
    shared->newest = 0;
    snprintf(shared->cursor, sizeof(shared->cursor), "0");
    read_page(shared);
}

static void next(struct sz_revocation_shared *shared)
{
    if (shared->all_wanted)
        sz_revocation_read_all(shared);
    else if (shared->tail_wanted)
        read_tail(shared);
    if (shared->reading == SZ_READING_NOTHING)
        later(shared);
    sz_revocation_publish_kick(shared);
}

static void now_current(struct sz_revocation_shared *shared)
{
    if (!shared->current)
        shared->publish_at = (struct sz_mono){0}; /* what waited for Redis waits no longer */
    shared->current = true;
    shared->failures = 0;
    shared->fault.s[0] = '\0';
    set_deaf(shared, false);
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

static bool same_epoch(const struct sz_revocation_shared *shared, struct sz_slice epoch)
{
    return epoch.n > 0 && sz_eq(epoch, sz_cstr(shared->epoch));
}

static void take_epoch(struct sz_revocation_shared *shared, struct sz_slice epoch)
{
    snprintf(shared->epoch, sizeof(shared->epoch), "%.*s", SZ_FMT(epoch));
}

static void tail_came(struct sz_revocation_shared *shared, const struct sz_redis_reply *reply)
{
    uint64_t newest = 0, fields = 0;
    struct sz_revocation r;
    (void)sz_revocation_number(reply->items[1].text, &newest);
    (void)sz_revocation_number(reply->items[2].text, &fields);
    for (size_t i = 3; i < reply->items_n; i++) {
        if (reply->items[i].text.n > 0)
            (void)sz_revocation_hear(shared, shared->last + i - 2, reply->items[i].text, &r);
    }
    size_t read = reply->items_n - 3;
    bool none = reply->items[0].text.n == 0 && shared->epoch[0] == '\0'; /* nobody has revoked anything yet */
    bool lost = !none && (!same_epoch(shared, reply->items[0].text) || newest < shared->last ||
                          fields < shared->numbered + 2 || newest - shared->last > read);
    if (!lost)
        shared->last = newest;
    if (lost || sz_loop_now(shared->set->loop).us >= shared->all_at.us)
        shared->all_wanted = true;
    if (!lost)
        now_current(shared);
}

/* What of ours is not in Redis is written there again. */
static void all_came(struct sz_revocation_shared *shared)
{
    struct sz_revocations *set = shared->set;
    shared->numbered = 0;
    for (size_t i = 0; i < set->n; i++) {
        struct sz_revocation_record *record = &set->v[i];
        if (record->sync != shared->sync) {
            record->number = 0;
            if (record->published)
                count(shared, shared->republished);
            sz_revocation_untold(set, i);
        }
        shared->numbered += record->number != 0;
    }
    shared->last = shared->newest;
    shared->all_at = sz_after(sz_loop_now(set->loop), ALL_EVERY);
    shared->tail_wanted = true; /* said since the look began */
    now_current(shared);
}

static void page_came(struct sz_revocation_shared *shared, const struct sz_redis_reply *reply)
{
    struct sz_revocation r;
    uint64_t number;
    if (sz_eq(sz_cstr(shared->cursor), SZ_S("0"))) {
        take_epoch(shared, reply->items[0].text);
        (void)sz_revocation_number(reply->items[1].text, &shared->newest);
    }
    for (size_t i = 3; i + 1 < reply->items_n; i += 2) {
        if (sz_revocation_number(reply->items[i].text, &number))
            (void)sz_revocation_hear(shared, number, reply->items[i + 1].text, &r);
    }
    bool changed = reply->items[0].text.n > 0 && !same_epoch(shared, reply->items[0].text);
    snprintf(shared->cursor, sizeof(shared->cursor), "%.*s", SZ_FMT(sz_sub(reply->items[2].text, 0, 20)));
    if (changed)
        shared->all_wanted = true; /* flushed and made again meanwhile */
    else if (sz_eq(sz_cstr(shared->cursor), SZ_S("0")))
        all_came(shared);
    else
        read_page(shared);
}

static enum sz_breaker_outcome on_read(struct sz_redis_op *op, const struct sz_redis_answer *answer)
{
    struct sz_revocation_shared *shared = SZ_CONTAINER(op, struct sz_revocation_shared, read);
    enum sz_shared_reading reading = shared->reading;
    shared->reading = SZ_READING_NOTHING;
    if (!head_ok(answer)) {
        shared->all_wanted |= reading == SZ_READING_ALL;
        failed(shared, answer->result);
        return answer->result == SZ_REDIS_ANSWERED ? SZ_BREAKER_FAILURE : sz_redis_outcome(answer);
    }
    if (reading == SZ_READING_TAIL)
        tail_came(shared, answer->reply);
    else
        page_came(shared, answer->reply);
    if (shared->reading == SZ_READING_NOTHING)
        next(shared);
    return SZ_BREAKER_SUCCESS;
}

static void on_poll(struct sz_timer *timer)
{
    struct sz_revocation_shared *shared = SZ_CONTAINER(timer, struct sz_revocation_shared, poll);
    if (shared->all_wanted)
        sz_revocation_read_all(shared);
    else
        read_tail(shared);
}

static void on_state(struct sz_redis_listener *listener, bool up)
{
    struct sz_revocation_shared *shared = SZ_CONTAINER(listener, struct sz_revocation_shared, listener);
    shared->up = up;
    shared->failures = 0;
    if (up) {
        shared->all_wanted = true; /* after the tail, which is read first: it is what is missing most often */
        read_tail(shared);
        return;
    }
    shared->current = false;
    sz_timer_cancel(shared->set->loop, &shared->poll);
    sz_text_set(&shared->fault, "the connection that listens is down");
    set_deaf(shared, true);
}

/* ---- life -------------------------------------------------------------------------------------------------------- */

static void make_names(struct sz_revocation_shared *shared)
{
    uint8_t name[32];
    char tag[32];
    sz_fleet_name(shared->fleet, "revocations", SZ_S(""), name);
    sz_hex_encode(name, 16, tag);
    snprintf(shared->key, sizeof(shared->key), "subzero:{%.32s}:revocations", tag);
    snprintf(shared->channel, sizeof(shared->channel), "subzero:{%.32s}:revoked", tag);
}

static void register_series(struct sz_revocation_shared *shared)
{
    shared->delay = sz_series(SZ_METRIC_revocation_delay, NULL);
    shared->heard = sz_series1(SZ_METRIC_revocation_events, "heard");
    shared->forged = sz_series1(SZ_METRIC_revocation_events, "forged");
    shared->republished = sz_series1(SZ_METRIC_revocation_events, "republished");
}

void sz_revocations_follow(struct sz_revocations *set, struct sz_redis *redis, const struct sz_fleet *fleet,
                           void (*on_deaf)(void *arg, bool deaf), void *arg)
{
    struct sz_revocation_shared *shared = sz_xcalloc(1, sizeof(*shared));
    SZ_ASSERT(set->loop != NULL && set->shared == NULL);
    shared->set = set;
    shared->redis = redis;
    shared->fleet = fleet;
    shared->on_deaf = on_deaf;
    shared->arg = arg;
    shared->read.on_done = on_read;
    shared->poll.on_fire = on_poll;
    shared->listener.on_message = on_message;
    shared->listener.on_state = on_state;
    make_names(shared);
    register_series(shared);
    sz_redis_script_prepare(&tail_script);
    sz_redis_script_prepare(&all_script);
    set->shared = shared;
    for (size_t i = 0; i < set->n; i++) /* until Redis is seen to have it */
        set->v[i].published = false;
    sz_text_set(&shared->fault, "not connected yet");
    set_deaf(shared, true);
    const struct sz_slice channel = sz_cstr(shared->channel);
    sz_redis_listen(redis, &channel, 1, &shared->listener);
}

void sz_revocation_shared_stop(struct sz_revocations *set)
{
    struct sz_revocation_shared *shared = set->shared;
    if (shared == NULL)
        return;
    sz_redis_unlisten(&shared->listener);
    sz_redis_cancel(&shared->read);
    sz_redis_cancel(&shared->forgetting);
    for (size_t i = 0; i < SZ_SHARED_PUBLISHES; i++)
        sz_redis_cancel(&shared->publish[i].op);
    sz_timer_cancel(set->loop, &shared->poll);
    set->shared = NULL;
    free(shared);
}

void sz_revocation_shared_look(const struct sz_revocations *set, struct sz_revocations_look *out)
{
    const struct sz_revocation_shared *shared = set->shared;
    out->shared = shared != NULL;
    out->deaf = atomic_load(&set->news.deaf);
    if (shared != NULL && shared->fault.s[0] != '\0' && out->fault.s[0] == '\0')
        out->fault = shared->fault;
}

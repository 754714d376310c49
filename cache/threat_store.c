/*
 * The store: blocks and events on the loop, and a thread that writes all of it, again and again while there is
 * something new.  Who comes while a write is under way waits for the next one, with all others that came.
 */
#include "cache/threat_store.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "cache/threat_file.h"
#include "subzero/log.h"

#define RETRY     SZ_SEC(1)
#define TICK      SZ_SEC(1)
#define FILE_NAME "threat.jsonl"

/* ---- who waits --------------------------------------------------------------------------------------------------- */

static void enqueue(struct sz_threat_op **list, struct sz_threat_op *op)
{
    op->next = *list;
    if (*list != NULL)
        (*list)->prev = &op->next;
    op->prev = list;
    *list = op;
}

static void dequeue(struct sz_threat_op *op)
{
    *op->prev = op->next;
    if (op->next != NULL)
        op->next->prev = op->prev;
    op->prev = NULL;
}

void sz_threat_store_cancel(struct sz_threat_op *op)
{
    if (op->prev != NULL)
        dequeue(op);
}

static void finish_all(struct sz_threat_op **list, bool safe)
{
    while (*list != NULL) {
        struct sz_threat_op *op = *list;
        dequeue(op);
        op->on_done(op, !safe && op->result <= SZ_THREAT_STOOD ? SZ_THREAT_UNSAFE : op->result);
    }
}

/* ---- writing ----------------------------------------------------------------------------------------------------- */

static void *writer(void *arg)
{
    struct sz_threat_store *store = arg;
    pthread_setname_np(pthread_self(), "threat-store");
    pthread_mutex_lock(&store->mutex);
    while (!store->quit) {
        if (!store->busy) {
            pthread_cond_wait(&store->wake, &store->mutex);
            continue;
        }
        pthread_mutex_unlock(&store->mutex);
        int rc = sz_threat_file_replace(store->path, sz_buf_slice(&store->text));
        pthread_mutex_lock(&store->mutex);
        store->rc = rc;
        store->busy = false;
        sz_loop_post(store->loop, &store->done);
    }
    pthread_mutex_unlock(&store->mutex);
    return NULL;
}

static void write_all(struct sz_threat_store *store)
{
    store->text.n = 0;
    sz_threat_file_begin(&store->text);
    for (size_t i = 0; i < store->blocks.n; i++) {
        const struct sz_threat_record *r = &store->blocks.v[i].r;
        if (r->id != 0 && !r->by_score)
            sz_threat_file_add(&store->text, r);
    }
    for (size_t i = 0; i < store->events_n; i++)
        sz_threat_file_add(&store->text, &store->events[i]);
    sz_threat_file_end(&store->text);
}

/* Gives the writer what there is, unless it is at work or nothing is new. */
static void write_next(struct sz_threat_store *store)
{
    if (store->under_way || !store->changed)
        return;
    store->under_way = true;
    store->changed = false;
    write_all(store);
    store->writing = store->coming;
    if (store->writing != NULL)
        store->writing->prev = &store->writing;
    store->coming = NULL;
    pthread_mutex_lock(&store->mutex);
    store->busy = true;
    pthread_cond_signal(&store->wake);
    pthread_mutex_unlock(&store->mutex);
}

static void on_retry(struct sz_timer *timer)
{
    write_next(SZ_CONTAINER(timer, struct sz_threat_store, retry));
}

/* Those who wait for no write are answered. */
static void go_on(struct sz_threat_store *store)
{
    if (store->has_thread)
        write_next(store);
    if (!store->under_way)
        finish_all(&store->coming, true);
}

static void on_written(struct sz_msg *msg, struct sz_loop *loop)
{
    struct sz_threat_store *store = SZ_CONTAINER(msg, struct sz_threat_store, done);
    pthread_mutex_lock(&store->mutex);
    int rc = store->rc;
    pthread_mutex_unlock(&store->mutex);
    store->under_way = false;
    if (rc != 0) {
        if (store->fault.s[0] == '\0')
            sz_log(SZ_LOG_ERROR, "threat", "cannot write %s: %s; trying again each second", store->path, strerror(-rc));
        sz_text_set(&store->fault, "%s", strerror(-rc));
        store->changed = true;
        sz_timer_start(loop, &store->retry, sz_after(sz_loop_now(loop), RETRY));
    } else {
        store->fault.s[0] = '\0';
    }
    finish_all(&store->writing, rc == 0);
    if (rc == 0)
        go_on(store);
}

static void on_defer(struct sz_defer *defer)
{
    go_on(SZ_CONTAINER(defer, struct sz_threat_store, defer));
}

void sz_threat_store_changed(struct sz_threat_store *store)
{
    store->changed = true;
    sz_defer_start(store->loop, &store->defer);
}

/* The answer comes later, and where something has changed, after it was written. */
static void answer(struct sz_threat_store *store, struct sz_threat_op *op, enum sz_threat_saved result, bool changed)
{
    op->result = result;
    store->changed |= changed;
    enqueue(&store->coming, op);
    sz_defer_start(store->loop, &store->defer);
}

/* ---- the engine -------------------------------------------------------------------------------------------------- */

struct sz_threat_key sz_threat_store_key(const struct sz_threat_store *store, const struct sz_threat_record *r)
{
    return r->is_subject ? sz_threat_subject(store->threat, sz_cstr(r->issuer), sz_cstr(r->subject))
                         : sz_threat_address(store->threat, r->addr);
}

static bool is_blocked(const struct sz_threat_store *store, struct sz_threat_key key, struct sz_mono now)
{
    static const struct sz_threat_policy any = {1, 1, 1, {0}, {0}};
    struct sz_threat_view view;
    return sz_threat_look(store->threat, key, &any, now, &view) && view.blocked_until.us != 0;
}

/* `now` and `wall` are the same moment.  False: it did not take it: full there, or in somebody's hands. */
static bool put_in_engine(struct sz_threat_store *store, const struct sz_threat_record *r, struct sz_threat_key key,
                          struct sz_mono now, struct sz_wall wall)
{
    if (r->until.us == 0) {
        (void)sz_threat_lift(store->threat, key, now);
        return !is_blocked(store, key, now);
    }
    return r->until.us <= wall.us ||
           sz_threat_block(store->threat, key, now, sz_after(now, SZ_US(r->until.us - wall.us)));
}

void sz_threat_store_apply(struct sz_threat_store *store, struct sz_block *block, struct sz_wall before)
{
    struct sz_threat_key key = sz_threat_store_key(store, &block->r);
    struct sz_mono now = sz_loop_now(store->loop);
    if (before.us > block->r.until.us)
        (void)sz_threat_lift(store->threat, key, now);
    block->applied = put_in_engine(store, &block->r, key, now, sz_loop_wall(store->loop));
}

/* ---- events ------------------------------------------------------------------------------------------------------ */

static void add_event(struct sz_threat_store *store, const struct sz_threat_record *r, struct sz_mono now,
                      struct sz_wall wall)
{
    int64_t age = wall.us - r->made.us;
    struct sz_mono then = {age <= 0 ? now.us : age < now.us ? now.us - age : 1};
    sz_threat_note(store->threat, sz_threat_store_key(store, r), r->signal, 1, then);
    if (store->events_n == SZ_THREAT_RECORDS) { /* the oldest makes room */
        store->events_n--;
        memmove(&store->events[0], &store->events[1], store->events_n * sizeof(*store->events));
    }
    if (store->events_n == store->events_cap) {
        store->events_cap = store->events_cap == 0 ? 16 : store->events_cap * 2;
        store->events = sz_xrealloc(store->events, store->events_cap * sizeof(*store->events));
    }
    store->events[store->events_n++] = *r;
}

static void forget_events(struct sz_threat_store *store, struct sz_wall wall)
{
    size_t kept = 0;
    for (size_t i = 0; i < store->events_n; i++) {
        if (store->events[i].until.us > wall.us)
            store->events[kept++] = store->events[i];
    }
    store->events_n = kept;
}

/* ---- blocks ------------------------------------------------------------------------------------------------------ */

static uint64_t new_id(void)
{
    uint64_t id;
    sz_random(&id, sizeof(id));
    return id + (id == 0);
}

/* What need not be remembered any more goes, and what the engine would not take is tried again. */
static void tidy(struct sz_threat_store *store, struct sz_wall wall)
{
    for (size_t i = 0; i < store->blocks.n; i++) {
        struct sz_block *block = &store->blocks.v[i];
        if (block->r.id == 0)
            continue;
        if (!block->applied)
            sz_threat_store_apply(store, block, block->r.until);
        bool over = block->r.keep.us <= wall.us && (block->applied || block->r.until.us != 0);
        if (over && sz_threat_store_untell(store, block))
            sz_blocks_drop(&store->blocks, block);
    }
}

static void on_tick(struct sz_timer *timer)
{
    struct sz_threat_store *store = SZ_CONTAINER(timer, struct sz_threat_store, tick);
    struct sz_wall wall = sz_loop_wall(store->loop);
    struct sz_mono now = sz_loop_now(store->loop);
    uint32_t lost = atomic_exchange_explicit(&store->found.lost, 0, memory_order_relaxed);
    sz_count(sz_loop_index(store->loop), store->found.dropped, lost);
    tidy(store, wall);
    forget_events(store, wall);
    if (sz_between(store->ticked, now).us >= SZ_SEC(15).us) {
        store->ticked = now;
        sz_threat_store_renew(store, wall);
    }
    sz_timer_start(store->loop, timer, sz_after(now, TICK));
}

/* A record that is there and counts for nothing any more, as the one that takes its place: later than all before. */
static void follow(const struct sz_threat_record *old, struct sz_threat_record *r)
{
    r->made.us = r->made.us > old->made.us ? r->made.us : old->made.us + 1;
    r->keep = r->keep.us > old->keep.us ? r->keep : old->keep;
}

/*
 * A block that stands is made longer where the new one is, and keeps its id.  NULL: full.  *stood: nothing is new; the
 * engine is the caller's business.
 */
static struct sz_block *put_block(struct sz_threat_store *store, const struct sz_threat_record *record, uint64_t name,
                                  bool *stood, struct sz_wall *before)
{
    struct sz_threat_record r = *record;
    struct sz_block *block = sz_blocks_find(&store->blocks, name, record);
    r.keep = r.until;
    *before = (struct sz_wall){0};
    *stood = block != NULL && sz_block_stands(&block->r, r.made);
    if (block == NULL) {
        r.id = new_id();
        return sz_blocks_add(&store->blocks, name, &r);
    }
    if (*stood) {
        bool longer = r.until.us > block->r.until.us;
        *before = block->r.until;
        if (!longer && (r.by_score || !block->r.by_score))
            return block;
        r.id = block->r.id;
        r.until = longer ? r.until : block->r.until;
        r.by_score &= block->r.by_score;
    } else {
        r.id = new_id();
    }
    follow(&block->r, &r);
    sz_blocks_set(&store->blocks, block, &r);
    return block;
}

static enum sz_threat_saved add_block(struct sz_threat_store *store, const struct sz_threat_record *record,
                                      uint64_t *id)
{
    struct sz_threat_key key = sz_threat_store_key(store, record);
    struct sz_threat_record r = *record;
    struct sz_wall before;
    bool stood;
    if (!r.is_subject)
        r.addr = key.addr;
    if (store->blocks.used[0] >= SZ_THREAT_RECORDS)
        tidy(store, r.made);
    struct sz_block *block = put_block(store, &r, key.hash, &stood, &before);
    if (block == NULL)
        return SZ_THREAT_FULL;
    sz_threat_store_apply(store, block, before);
    if (!block->applied && !stood) { /* no room in the engine: it must not be promised */
        block->applied = true;
        if (sz_threat_store_untell(store, block))
            sz_blocks_drop(&store->blocks, block);
        return SZ_THREAT_FULL;
    }
    *id = block->r.id;
    sz_threat_store_tell(store, block);
    return stood ? SZ_THREAT_STOOD : SZ_THREAT_SAVED;
}

void sz_threat_store_add(struct sz_threat_store *store, const struct sz_threat_record *record, struct sz_threat_op *op)
{
    enum sz_threat_saved result = SZ_THREAT_SAVED;
    if (record->is_event) {
        struct sz_threat_record r = *record;
        r.id = op->id = new_id();
        add_event(store, &r, sz_loop_now(store->loop), sz_loop_wall(store->loop));
    } else {
        result = add_block(store, record, &op->id);
    }
    answer(store, op, result, result != SZ_THREAT_FULL);
}

/* Remembered where others may still say what it lifts; else it is gone with the next tick. */
static void lift(struct sz_threat_store *store, struct sz_block *block)
{
    struct sz_wall now = sz_loop_wall(store->loop), before = block->r.until;
    struct sz_threat_record r = block->r;
    r.made = now;
    r.until = (struct sz_wall){0};
    follow(&block->r, &r);
    if (store->share == NULL)
        r.keep = now;
    sz_blocks_set(&store->blocks, block, &r);
    sz_threat_store_apply(store, block, before);
    sz_threat_store_tell(store, block);
}

void sz_threat_store_lift(struct sz_threat_store *store, uint64_t id, struct sz_threat_op *op)
{
    struct sz_block *block = sz_blocks_by_id(&store->blocks, id);
    op->id = id;
    if (block == NULL || !sz_block_stands(&block->r, sz_loop_wall(store->loop))) {
        answer(store, op, SZ_THREAT_ABSENT, false);
        return;
    }
    bool kept = !block->r.by_score;
    lift(store, block);
    answer(store, op, SZ_THREAT_SAVED, kept);
}

/* ---- what the engine found --------------------------------------------------------------------------------------- */

/* It holds the block already. */
static void take_found(struct sz_threat_store *store, struct sz_threat_record *r)
{
    struct sz_threat_key key = sz_threat_store_key(store, r);
    struct sz_wall before;
    bool stood;
    snprintf(r->reason, sizeof(r->reason), "score");
    r->by_score = true;
    r->made = sz_loop_wall(store->loop);
    if (!r->is_subject)
        r->addr = key.addr;
    if (!sz_block_stands(r, r->made))
        return;
    struct sz_block *block = put_block(store, r, key.hash, &stood, &before);
    if (block == NULL) {
        sz_count(sz_loop_index(store->loop), store->found.dropped, 1);
        return;
    }
    block->applied = true;
    if (!stood || before.us != block->r.until.us)
        sz_threat_store_tell(store, block);
}

static void on_found(struct sz_msg *msg, struct sz_loop *loop)
{
    struct sz_threat_found *found = SZ_CONTAINER(msg, struct sz_threat_found, msg);
    struct sz_threat_store *store = SZ_CONTAINER(found, struct sz_threat_store, found);
    struct sz_found_one v[SZ_FOUND_MAX];
    (void)loop;
    pthread_mutex_lock(&found->mutex);
    size_t n = found->n;
    memcpy(v, found->v, n * sizeof(*v));
    found->n = 0;
    pthread_mutex_unlock(&found->mutex);
    for (size_t i = 0; i < n; i++) {
        struct sz_threat_record r = {.signal = SZ_SIGNALS, .addr = v[i].addr};
        r.until = v[i].until;
        take_found(store, &r);
    }
}

/* Nobody holds the lock for longer than it takes to copy. */
static bool lock_found(struct sz_threat_found *found)
{
    for (int tries = 0; tries < 64; tries++) {
        if (pthread_mutex_trylock(&found->mutex) == 0)
            return true;
    }
    return false;
}

void sz_threat_store_found(struct sz_threat_store *store, struct sz_addr addr, struct sz_wall until)
{
    struct sz_threat_found *found = &store->found;
    bool first = false, taken = false;
    if (lock_found(found)) {
        taken = found->n < SZ_FOUND_MAX;
        first = found->n == 0;
        if (taken)
            found->v[found->n++] = (struct sz_found_one){addr, until};
        pthread_mutex_unlock(&found->mutex);
    }
    if (!taken)
        atomic_fetch_add_explicit(&found->lost, 1, memory_order_relaxed);
    else if (first)
        sz_loop_post(store->loop, &found->msg);
}

void sz_threat_store_found_by_events(struct sz_threat_store *store, const struct sz_threat_record *who,
                                     struct sz_wall until)
{
    struct sz_threat_record r = {.is_subject = who->is_subject, .signal = SZ_SIGNALS, .addr = who->addr};
    memcpy(r.issuer, who->issuer, sizeof(r.issuer));
    memcpy(r.subject, who->subject, sizeof(r.subject));
    r.until = until;
    take_found(store, &r);
}

/* ---- looking ----------------------------------------------------------------------------------------------------- */

size_t sz_threat_store_each(const struct sz_threat_store *store, size_t from,
                            bool (*see)(void *arg, const struct sz_threat_record *r), void *arg)
{
    struct sz_wall now = sz_loop_wall(store->loop);
    for (size_t i = from; i < store->blocks.n; i++) {
        const struct sz_threat_record *r = &store->blocks.v[i].r;
        if (r->id != 0 && sz_block_stands(r, now) && !see(arg, r))
            return i;
    }
    return SIZE_MAX;
}

void sz_threat_store_look(const struct sz_threat_store *store, struct sz_threat_store_look *out)
{
    struct sz_wall now = sz_loop_wall(store->loop);
    *out = (struct sz_threat_store_look){.shared = store->share != NULL, .fault = store->fault};
    for (size_t i = 0; i < store->blocks.n; i++) {
        const struct sz_block *block = &store->blocks.v[i];
        if (block->r.id == 0)
            continue;
        if (sz_block_stands(&block->r, now))
            *(block->r.by_score ? &out->by_score : &out->by_hand) += 1;
        out->unpublished += store->share != NULL && !block->share.published;
    }
    out->deaf = store->share != NULL && store->share->deaf;
    if (out->fault.s[0] == '\0' && out->deaf)
        out->fault = store->share->fault;
}

/* ---- life -------------------------------------------------------------------------------------------------------- */

struct loading {
    struct sz_threat_store *store;
    struct sz_mono now;
    struct sz_wall wall;
};

static void load_one(void *arg, const struct sz_threat_record *r)
{
    struct loading *l = arg;
    struct sz_threat_store *store = l->store;
    struct sz_threat_record record = *r;
    if (r->is_event) {
        if (r->until.us > l->wall.us)
            add_event(store, r, l->now, l->wall);
        return;
    }
    struct sz_threat_key key = sz_threat_store_key(store, r);
    if (r->keep.us <= l->wall.us)
        return;
    if (!r->is_subject)
        record.addr = key.addr;
    struct sz_block *block = sz_blocks_find(&store->blocks, key.hash, &record);
    if (block == NULL)
        block = sz_blocks_add(&store->blocks, key.hash, &record);
    if (block == NULL)
        return;
    block->applied = put_in_engine(store, &block->r, key, l->now, l->wall);
    if (!block->applied)
        sz_log(SZ_LOG_ERROR, "threat", "no room for a block of %s: raise threat.capacity", store->path);
}

static int load(struct sz_threat_store *store, struct sz_mono now, struct sz_wall wall, struct sz_text *why)
{
    struct loading loading = {store, now, wall};
    struct sz_buf text = {0};
    struct sz_text reason = {""};
    int rc = sz_threat_file_load(store->path, &text);
    if (rc != 0)
        sz_text_set(&reason, "%s", strerror(-rc));
    else if (text.n > 0)
        rc = sz_threat_file_read(sz_buf_slice(&text), load_one, &loading, &reason);
    if (rc != 0)
        sz_text_set(why, "%s: %s", store->path, reason.s);
    sz_buf_fini(&text);
    return rc;
}

struct sz_threat_store *sz_threat_store_new(struct sz_loop *loop, struct sz_threat *threat, struct sz_slice dir,
                                            struct sz_mono now, struct sz_wall wall, struct sz_text *why)
{
    struct sz_threat_store *store = sz_xcalloc(1, sizeof(*store));
    store->loop = loop;
    store->threat = threat;
    store->defer.on_run = on_defer;
    store->retry.on_fire = on_retry;
    store->done.on_msg = on_written;
    store->tick.on_fire = on_tick;
    store->found.msg.on_msg = on_found;
    store->found.dropped = sz_series1(SZ_METRIC_threat_blocks, "dropped");
    pthread_mutex_init(&store->found.mutex, NULL);
    pthread_mutex_init(&store->mutex, NULL);
    pthread_cond_init(&store->wake, NULL);
    sz_timer_start(loop, &store->tick, sz_after(now, TICK));
    if (dir.p == NULL)
        return store;
    snprintf(store->path, sizeof(store->path), "%.*s/" FILE_NAME, SZ_FMT(dir));
    int rc = load(store, now, wall, why);
    if (rc == 0) {
        rc = -pthread_create(&store->thread, NULL, writer, store);
        store->has_thread = rc == 0;
        if (rc != 0)
            sz_text_set(why, "cannot start a thread: %s", strerror(-rc));
    }
    if (rc != 0) {
        sz_timer_cancel(loop, &store->tick);
        sz_threat_store_free(&store);
    }
    return store;
}

void sz_threat_store_stop(struct sz_threat_store *store)
{
    pthread_mutex_lock(&store->mutex);
    store->quit = true;
    pthread_cond_signal(&store->wake);
    pthread_mutex_unlock(&store->mutex);
    if (store->has_thread)
        pthread_join(store->thread, NULL);
    store->has_thread = false;
    sz_timer_cancel(store->loop, &store->retry);
    sz_timer_cancel(store->loop, &store->tick);
    sz_defer_cancel(&store->defer);
    sz_share_free(&store->share);
    finish_all(&store->writing, false);
    finish_all(&store->coming, false);
}

void sz_threat_store_free(struct sz_threat_store **storep)
{
    struct sz_threat_store *store = *storep;
    *storep = NULL;
    if (store == NULL)
        return;
    pthread_mutex_destroy(&store->found.mutex);
    pthread_mutex_destroy(&store->mutex);
    pthread_cond_destroy(&store->wake);
    sz_buf_fini(&store->text);
    sz_blocks_fini(&store->blocks);
    free(store->events);
    free(store);
}

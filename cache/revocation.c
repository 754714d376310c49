/*
 * The set: every revocation that still ends something, found by its digest.  Applied here first and at once, whatever
 * becomes of disk and Redis: a revocation that is known to one instance is never waited for.
 */
#include "cache/revocation.h"

#include <errno.h>
#include <stdlib.h>

#include "subzero/log.h"

enum { OPS_MAX = 1024 };
static const struct sz_span OP_TIME = {2 * 1000000}, TICK = {100 * 1000}, SWEEP = {60 * 1000000};
/* The wall clock may be set back: what has ended is kept a little longer than it matters. */
static const int64_t MARGIN = 3600;

/* ---- news: any thread -------------------------------------------------------------------------------------------- */

const struct sz_revocation_news *sz_revocations_news(const struct sz_revocations *set)
{
    return &set->news;
}

uint32_t sz_revocation_kinds(const struct sz_revocation_news *news, uint64_t since)
{
    uint32_t kinds = 0;
    for (uint32_t i = 0; i < SZ_REVOKE_KINDS; i++)
        kinds |= (uint32_t)(atomic_load_explicit(&news->newest[i], memory_order_acquire) > since) << i;
    return kinds;
}

bool sz_revocations_cover(const struct sz_revocations *set, uint64_t name, const struct sz_issued *issued)
{
    int64_t before;
    if (!sz_revocation_index_find(&set->index, name, &before))
        return false;
    if (before == INT64_MAX || !issued->known)
        return true;
    return issued->iat <= (before > INT64_MAX - issued->leeway ? INT64_MAX : before + issued->leeway);
}

/* ---- records ----------------------------------------------------------------------------------------------------- */

static size_t map_at(const struct sz_revocations *set, const uint8_t digest[32])
{
    size_t at = (size_t)sz_revocation_name_of(digest) & set->map_mask;
    while (set->map[at] != 0 && !sz_eq(sz_slice(set->v[set->map[at] - 1].r.digest, 32), sz_slice(digest, 32)))
        at = (at + 1) & set->map_mask;
    return at;
}

/* The map begins small: most sets are. */
static void map_make(struct sz_revocations *set, size_t slots)
{
    free(set->map);
    set->map = sz_xcalloc(slots, sizeof(*set->map));
    set->map_mask = slots - 1;
    for (size_t i = 0; i < set->n; i++)
        set->map[map_at(set, set->v[i].r.digest)] = (uint32_t)i + 1;
}

void sz_revocation_queue_add(struct sz_revocation_queue *queue, size_t at)
{
    if (queue->n == queue->room) {
        queue->room = queue->room == 0 ? 64 : queue->room * 2;
        queue->v = sz_xrealloc(queue->v, queue->room * sizeof(*queue->v));
    }
    queue->v[queue->n++] = (uint32_t)at;
}

static size_t add_record(struct sz_revocations *set, const struct sz_revocation *r)
{
    if (set->n == set->room) {
        set->room = set->room == 0 ? 64 : set->room * 2;
        set->v = sz_xrealloc(set->v, set->room * sizeof(*set->v));
    }
    if ((set->n + 1) * 2 > set->map_mask + 1)
        map_make(set, (set->map_mask + 1) * 2);
    set->v[set->n] = (struct sz_revocation_record){.r = *r};
    set->map[map_at(set, r->digest)] = (uint32_t)set->n + 1;
    return set->n++;
}

/* The index before the news: who sees the news finds it. */
static void announce(struct sz_revocations *set, const struct sz_revocation *r)
{
    uint64_t sequence = atomic_load(&set->news.sequence) + 1;
    sz_revocation_index_put(&set->index, sz_revocation_name_of(r->digest), r->before);
    atomic_store_explicit(&set->news.newest[r->kind], sequence, memory_order_release);
    atomic_store_explicit(&set->news.sequence, sequence, memory_order_release);
}

/* False: r says nothing more than what stands. */
static bool widen(struct sz_revocation *there, const struct sz_revocation *r)
{
    if (r->before <= there->before && r->expires <= there->expires)
        return false;
    there->before = r->before > there->before ? r->before : there->before;
    there->expires = r->expires > there->expires ? r->expires : there->expires;
    there->made = r->made;
    return true;
}

enum sz_revocation_change sz_revocation_apply(struct sz_revocations *set, const struct sz_revocation *r, size_t *at)
{
    uint32_t there = set->map[map_at(set, r->digest)];
    if (there == 0 && set->n == set->capacity) {
        set->full = true;
        return SZ_CHANGE_FULL;
    }
    if (there != 0) {
        *at = there - 1;
        if (!widen(&set->v[*at].r, r))
            return SZ_CHANGE_NONE;
    } else {
        *at = add_record(set, r);
    }
    announce(set, &set->v[*at].r);
    sz_revocation_untold(set, *at);
    sz_revocation_dirty(set, *at);
    return SZ_CHANGE_DONE;
}

/* ---- forgetting -------------------------------------------------------------------------------------------------- */

static bool over(const struct sz_revocation *r, int64_t now)
{
    return r->expires < INT64_MAX - MARGIN && r->expires + MARGIN < now;
}

static void reindex(struct sz_revocations *set)
{
    uint32_t kinds = 0;
    sz_revocation_index_begin(&set->index);
    for (size_t i = 0; i < set->n; i++) {
        sz_revocation_index_keep(&set->index, sz_revocation_name_of(set->v[i].r.digest), set->v[i].r.before);
        kinds |= 1u << set->v[i].r.kind;
    }
    sz_revocation_index_swap(&set->index);
    for (size_t kind = 0; kind < SZ_REVOKE_KINDS; kind++) {
        if ((kinds >> kind & 1) == 0) /* nobody needs to look for these any more */
            atomic_store_explicit(&set->news.newest[kind], 0, memory_order_release);
    }
}

/* Records move: only while nobody knows one by its position. */
static void sweep(struct sz_revocations *set, int64_t now)
{
    size_t kept = 0;
    for (size_t i = 0; i < set->n; i++) {
        if (!over(&set->v[i].r, now))
            set->v[kept++] = set->v[i];
        else if (set->share != NULL)
            sz_share_forget(set->share, &set->v[i].share);
    }
    if (kept == set->n)
        return;
    set->n = kept;
    set->full = false;
    map_make(set, set->map_mask + 1);
    reindex(set);
    set->dirty.n = 0;
    if (set->share != NULL)
        sz_share_untell_all(set->share);
    for (size_t i = 0; i < set->n; i++) {
        if (set->v[i].saved == SZ_SAVE_DIRTY)
            sz_revocation_dirty(set, i);
        if (set->share != NULL && !set->v[i].share.published)
            sz_share_tell(set->share, i);
    }
}

static void sweep_in_time(struct sz_revocations *set)
{
    struct sz_mono now = sz_loop_now(set->loop);
    if (now.us < set->sweep_at.us || set->ops != NULL || set->save.busy || !sz_revocation_share_idle(set))
        return;
    set->sweep_at = sz_after(now, SWEEP);
    sweep(set, sz_wall_seconds(sz_loop_wall(set->loop)));
}

/* ---- operations -------------------------------------------------------------------------------------------------- */

static bool settled(const struct sz_revocations *set, const struct sz_revocation_op *op, struct sz_mono now,
                    enum sz_revoked *result)
{
    if (op->full) {
        *result = SZ_REVOKED_FULL;
        return true;
    }
    const struct sz_revocation_record *record = &set->v[op->record - 1];
    bool safe = record->saved == SZ_SAVE_DONE && record->share.published;
    *result = !safe ? SZ_REVOKED_UNSAFE : op->stood ? SZ_REVOKED_STOOD : SZ_REVOKED_NEW;
    /* A Redis that is known to be away is not waited for. */
    bool hopeless = record->saved == SZ_SAVE_DONE && atomic_load(&set->news.deaf);
    return safe || hopeless || now.us >= op->deadline.us;
}

/* `all`: the waiting ones too, with what has become of them so far. */
static void end_ops(struct sz_revocations *set, bool all)
{
    struct sz_mono now = sz_loop_now(set->loop);
    struct sz_revocation_op **at = &set->ops, *done = NULL, **last = &done;
    enum sz_revoked result;
    while (*at != NULL) {
        struct sz_revocation_op *op = *at;
        if (!settled(set, op, now, &result) && !all) {
            at = &op->next;
            continue;
        }
        *at = op->next;
        op->next = NULL;
        *last = op;
        last = &op->next;
        set->ops_n--;
    }
    while (done != NULL) { /* a callback may begin another one */
        struct sz_revocation_op *op = done;
        done = op->next;
        (void)settled(set, op, now, &result);
        op->on_done(op, result);
    }
}

static void on_settle(struct sz_defer *defer)
{
    end_ops(SZ_CONTAINER(defer, struct sz_revocations, settle), false);
}

void sz_revocation_settle(struct sz_revocations *set)
{
    set->settle.on_run = on_settle;
    if (set->ops != NULL)
        sz_defer_start(set->loop, &set->settle);
}

static void on_tick(struct sz_timer *timer)
{
    struct sz_revocations *set = SZ_CONTAINER(timer, struct sz_revocations, tick);
    end_ops(set, false);
    sz_revocation_save_kick(set);
    sz_revocation_share_kick(set);
    sweep_in_time(set);
    bool soon = set->ops != NULL || set->dirty.n > 0;
    struct sz_mono next = sz_after(sz_loop_now(set->loop), soon ? TICK : SZ_SEC(5));
    sz_timer_start(set->loop, timer, next);
}

void sz_revocations_add(struct sz_revocations *set, const struct sz_revocation *r, struct sz_revocation_op *op)
{
    size_t at = 0;
    enum sz_revocation_change change = SZ_CHANGE_FULL;
    struct sz_mono now = sz_loop_now(set->loop);
    if (set->n == set->capacity && set->ops == NULL)
        set->sweep_at = now, sweep_in_time(set);
    if (set->ops_n < OPS_MAX)
        change = sz_revocation_apply(set, r, &at);
    op->full = change == SZ_CHANGE_FULL;
    op->stood = change == SZ_CHANGE_NONE;
    op->record = (uint32_t)at + 1;
    op->deadline = sz_after(now, OP_TIME);
    op->next = set->ops;
    set->ops = op;
    set->ops_n++;
    sz_revocation_save_kick(set);
    sz_revocation_share_kick(set);
    sz_revocation_settle(set);
    sz_timer_start(set->loop, &set->tick, sz_after(now, TICK));
}

void sz_revocations_cancel(struct sz_revocations *set, struct sz_revocation_op *op)
{
    for (struct sz_revocation_op **at = &set->ops; *at != NULL; at = &(*at)->next) {
        if (*at != op)
            continue;
        *at = op->next;
        op->next = NULL;
        set->ops_n--;
        return;
    }
}

/* ---- life -------------------------------------------------------------------------------------------------------- */

struct loading {
    struct sz_revocations *set;
    int64_t now;
    size_t refused;
};

static void on_record(void *arg, const struct sz_revocation *r)
{
    struct loading *loading = arg;
    size_t at;
    loading->set->save.written++;
    if (over(r, loading->now))
        return;
    if (sz_revocation_apply(loading->set, r, &at) == SZ_CHANGE_FULL)
        loading->refused++;
    else
        loading->set->v[at].saved = SZ_SAVE_DONE; /* what Redis has of it shows when it is asked */
}

static int load(struct sz_revocations *set, struct sz_slice state_dir, struct sz_wall now, struct sz_text *why)
{
    struct loading loading = {.set = set, .now = sz_wall_seconds(now)};
    struct sz_text detail;
    char *path = strndup(state_dir.p, state_dir.n);
    int rc = sz_revocation_file_open(&set->save.file, path, on_record, &loading, &detail);
    free(path);
    if (rc != 0) {
        sz_text_set(why, "state_dir '%.*s': %s", SZ_FMT(state_dir), detail.s);
        return rc;
    }
    set->disk = true;
    if (loading.refused == 0)
        return 0;
    sz_text_set(why, "state_dir '%.*s' holds %zu revocations more than revocation.capacity (%zu) allows: raise it",
                SZ_FMT(state_dir), loading.refused, set->capacity);
    return -ENOSPC;
}

struct sz_revocations *sz_revocations_new(size_t capacity, struct sz_slice state_dir, struct sz_wall now,
                                          struct sz_text *why)
{
    struct sz_revocations *set = aligned_alloc(SZ_CACHE_LINE, sizeof(*set));
    SZ_ASSERT(set != NULL && capacity > 0);
    memset(set, 0, sizeof(*set));
    set->save.file = (struct sz_revocation_file){.dir = -1, .lock = -1, .fd = -1};
    set->capacity = capacity;
    sz_revocation_index_init(&set->index, capacity);
    map_make(set, 128);
    pthread_mutex_init(&set->save.lock, NULL);
    pthread_cond_init(&set->save.wake, NULL);
    if (state_dir.p != NULL && load(set, state_dir, now, why) != 0)
        sz_revocations_free(&set);
    return set;
}

void sz_revocations_start(struct sz_revocations *set, struct sz_loop *loop)
{
    set->loop = loop;
    set->sweep_at = sz_after(sz_loop_now(loop), SWEEP);
    set->tick.on_fire = on_tick;
    sz_timer_start(loop, &set->tick, sz_after(sz_loop_now(loop), TICK));
}

void sz_revocations_stop(struct sz_revocations *set)
{
    if (set->loop == NULL)
        return;
    sz_share_free(&set->share);
    sz_revocation_save_stop(set);
    end_ops(set, true);
    sz_timer_cancel(set->loop, &set->tick);
    sz_defer_cancel(&set->settle);
    set->loop = NULL;
}

void sz_revocations_free(struct sz_revocations **setp)
{
    struct sz_revocations *set = *setp;
    *setp = NULL;
    if (set == NULL)
        return;
    sz_revocations_stop(set);
    sz_revocation_file_close(&set->save.file);
    sz_revocation_index_fini(&set->index);
    sz_buf_fini(&set->save.bytes);
    pthread_mutex_destroy(&set->save.lock);
    pthread_cond_destroy(&set->save.wake);
    free(set->map);
    free(set->dirty.v);
    free(set->v);
    free(set);
}

void sz_revocations_look(const struct sz_revocations *set, struct sz_revocations_look *out)
{
    *out = (struct sz_revocations_look){
        .n = set->n, .capacity = set->capacity, .full = set->full || set->n == set->capacity, .fault = set->fault};
    for (size_t i = 0; i < set->n; i++) {
        out->unsaved += set->v[i].saved != SZ_SAVE_DONE;
        out->unpublished += !set->v[i].share.published;
    }
    sz_revocation_share_look(set, out);
}

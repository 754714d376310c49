/*
 * The store: an array on the loop, and a thread that writes all of it, again and again while there is something new.
 * Who comes while a write is under way waits for the next one, with all others that came.
 */
#include "subzero/threat_store.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "cache/threat_file.h"
#include "subzero/log.h"

#define RETRY     SZ_SEC(1)
#define FILE_NAME "threat.jsonl"

struct sz_threat_store {
    struct sz_loop *loop;
    struct sz_threat *threat;
    struct sz_threat_record *records;
    size_t n, cap, blocks;
    char path[4096]; /* "" without a state_dir */
    bool changed;    /* since the write under way began */
    bool under_way;  /* from giving the writer its text to hearing that it is done */
    struct sz_threat_op *coming, *writing;
    struct sz_defer defer;
    struct sz_timer retry;
    struct sz_text fault;

    pthread_t thread;
    pthread_mutex_t mutex;
    pthread_cond_t wake;
    struct sz_buf text; /* the writer's while busy */
    bool has_thread, busy, quit;
    int rc;
    struct sz_msg done;
};

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

/* What counts for nothing any more goes. */
static void forget(struct sz_threat_store *store, struct sz_wall wall)
{
    size_t kept = 0;
    for (size_t i = 0; i < store->n; i++) {
        if (store->records[i].until.us > wall.us)
            store->records[kept++] = store->records[i];
        else
            store->blocks -= !store->records[i].is_event;
    }
    store->n = kept;
}

/* Gives the writer what there is, unless it is at work or nothing is new. */
static void write_next(struct sz_threat_store *store)
{
    if (store->under_way || !store->changed)
        return;
    store->under_way = true;
    store->changed = false;
    forget(store, sz_loop_wall(store->loop));
    store->text.n = 0;
    sz_threat_file_write(&store->text, store->records, store->n);
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

/* The answer comes later, and where something has changed, after it was written. */
static void answer(struct sz_threat_store *store, struct sz_threat_op *op, enum sz_threat_saved result, bool changed)
{
    op->result = result;
    store->changed |= changed;
    enqueue(&store->coming, op);
    sz_defer_start(store->loop, &store->defer);
}

/* ---- records ----------------------------------------------------------------------------------------------------- */

static struct sz_threat_key key_of(const struct sz_threat_store *store, const struct sz_threat_record *r)
{
    return r->is_subject ? sz_threat_subject(store->threat, sz_cstr(r->issuer), sz_cstr(r->subject))
                         : sz_threat_address(store->threat, r->addr);
}

/* `now` and `wall` are the same moment. */
static bool apply(struct sz_threat_store *store, const struct sz_threat_record *r, struct sz_mono now,
                  struct sz_wall wall)
{
    struct sz_threat_key key = key_of(store, r);
    if (!r->is_event)
        return sz_threat_block(store->threat, key, now, sz_after(now, SZ_US(r->until.us - wall.us)));
    int64_t age = wall.us - r->made.us;
    struct sz_mono then = {age <= 0 ? now.us : age < now.us ? now.us - age : 1};
    sz_threat_note(store->threat, key, r->signal, 1, then);
    return true;
}

static struct sz_threat_record *same_block(struct sz_threat_store *store, const struct sz_threat_record *r)
{
    for (size_t i = 0; i < store->n; i++) {
        struct sz_threat_record *old = &store->records[i];
        if (!old->is_event && old->is_subject == r->is_subject && sz_addr_eq(old->addr, r->addr) &&
            strcmp(old->issuer, r->issuer) == 0 && strcmp(old->subject, r->subject) == 0)
            return old;
    }
    return NULL;
}

/* The oldest event makes room for a new one. */
static void drop_oldest_event(struct sz_threat_store *store)
{
    for (size_t i = 0; i < store->n; i++) {
        if (!store->records[i].is_event)
            continue;
        memmove(&store->records[i], &store->records[i + 1], (store->n - i - 1) * sizeof(*store->records));
        store->n--;
        return;
    }
}

static struct sz_threat_record *append(struct sz_threat_store *store, const struct sz_threat_record *r)
{
    if (store->n == store->cap) {
        store->cap = store->cap == 0 ? 16 : store->cap * 2;
        store->records = sz_xrealloc(store->records, store->cap * sizeof(*store->records));
    }
    store->records[store->n] = *r;
    store->blocks += !r->is_event;
    return &store->records[store->n++];
}

void sz_threat_store_add(struct sz_threat_store *store, const struct sz_threat_record *record, struct sz_threat_op *op)
{
    struct sz_mono now = sz_loop_now(store->loop);
    struct sz_wall wall = sz_loop_wall(store->loop);
    struct sz_threat_record *old, *r;
    forget(store, wall);
    old = record->is_event ? NULL : same_block(store, record);
    bool full = old == NULL && !record->is_event && store->blocks >= SZ_THREAT_RECORDS;
    if (full || !apply(store, record, now, wall)) {
        answer(store, op, SZ_THREAT_FULL, false);
        return;
    }
    if (record->is_event && store->n - store->blocks >= SZ_THREAT_RECORDS)
        drop_oldest_event(store);
    r = old != NULL ? old : append(store, record);
    if (old != NULL && record->until.us > old->until.us)
        old->until = record->until;
    if (old == NULL)
        sz_random(&r->id, sizeof(r->id));
    r->id += r->id == 0;
    op->id = r->id;
    answer(store, op, old != NULL ? SZ_THREAT_STOOD : SZ_THREAT_SAVED, true);
}

void sz_threat_store_lift(struct sz_threat_store *store, uint64_t id, struct sz_threat_op *op)
{
    for (size_t i = 0; i < store->n; i++) {
        struct sz_threat_record *r = &store->records[i];
        if (r->id != id || r->is_event)
            continue;
        (void)sz_threat_lift(store->threat, key_of(store, r), sz_loop_now(store->loop));
        memmove(r, r + 1, (store->n - i - 1) * sizeof(*r));
        store->n--;
        store->blocks--;
        op->id = id;
        answer(store, op, SZ_THREAT_SAVED, true);
        return;
    }
    answer(store, op, SZ_THREAT_ABSENT, false);
}

void sz_threat_store_each(const struct sz_threat_store *store, void (*see)(void *arg, const struct sz_threat_record *r),
                          void *arg)
{
    for (size_t i = 0; i < store->n; i++) {
        if (!store->records[i].is_event)
            see(arg, &store->records[i]);
    }
}

const char *sz_threat_store_fault(const struct sz_threat_store *store)
{
    return store->fault.s;
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
    if (r->until.us <= l->wall.us || l->store->n >= 2 * SZ_THREAT_RECORDS)
        return;
    if (!apply(l->store, r, l->now, l->wall))
        sz_log(SZ_LOG_ERROR, "threat", "no room for a block of %s: raise threat.capacity", l->store->path);
    (void)append(l->store, r);
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
    pthread_mutex_init(&store->mutex, NULL);
    pthread_cond_init(&store->wake, NULL);
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
    if (rc != 0)
        sz_threat_store_free(&store);
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
    sz_defer_cancel(&store->defer);
}

void sz_threat_store_free(struct sz_threat_store **storep)
{
    struct sz_threat_store *store = *storep;
    *storep = NULL;
    if (store == NULL)
        return;
    pthread_mutex_destroy(&store->mutex);
    pthread_cond_destroy(&store->wake);
    sz_buf_fini(&store->text);
    free(store->records);
    free(store);
}

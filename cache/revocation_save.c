/*
 * Writing revocations to disk.  One write at a time, on a thread of its own, of all that has come meanwhile: under load
 * many share one sync.  A failed write makes the next one replace the whole file; until then nobody is told that a
 * revocation is safe.
 */
#include <stdlib.h>

#include "cache/revocation.h"
#include "subzero/log.h"

/* Each that is to be written, once: what changes again and again, while nothing can be written, takes no room. */
static void gather(struct sz_revocations *set)
{
    set->dirty.n = 0;
    for (size_t i = 0; i < set->n; i++) {
        if (set->v[i].saved == SZ_SAVE_DIRTY)
            sz_revocation_queue_add(&set->dirty, i);
    }
}

void sz_revocation_dirty(struct sz_revocations *set, size_t at)
{
    set->v[at].saved = set->disk ? SZ_SAVE_DIRTY : SZ_SAVE_DONE;
    if (set->disk)
        sz_revocation_queue_add(&set->dirty, at);
    if (set->dirty.n > 2 * set->n + 64)
        gather(set);
}

/* ---- the thread -------------------------------------------------------------------------------------------------- */

static void write_out(struct sz_revocation_save *save)
{
    struct sz_slice bytes = sz_buf_slice(&save->bytes);
    save->rc = save->replace ? sz_revocation_file_replace(&save->file, bytes, &sz_revocation_system, &save->why)
                             : sz_revocation_file_append(&save->file, bytes, &sz_revocation_system, &save->why);
}

static void *run(void *arg)
{
    struct sz_revocations *set = arg;
    struct sz_revocation_save *save = &set->save;
    pthread_setname_np(pthread_self(), "revocations");
    pthread_mutex_lock(&save->lock);
    for (;;) {
        while (!save->todo && !save->stop)
            pthread_cond_wait(&save->wake, &save->lock);
        if (!save->todo)
            break;
        save->todo = false;
        pthread_mutex_unlock(&save->lock);
        write_out(save);
        sz_loop_post(set->loop, &save->done);
        pthread_mutex_lock(&save->lock);
    }
    pthread_mutex_unlock(&save->lock);
    return NULL;
}

/* ---- the service thread ------------------------------------------------------------------------------------------ */

static void add_all(struct sz_revocations *set)
{
    for (size_t i = 0; i < set->n; i++) {
        sz_revocation_encode(&set->v[i].r, 0, &set->save.bytes);
        set->v[i].saved = SZ_SAVE_WRITING;
    }
    set->save.written = set->n;
    set->dirty.n = 0;
}

static void add_dirty(struct sz_revocations *set)
{
    struct sz_revocation_save *save = &set->save;
    while (set->dirty.n > 0 && save->batch_n < SZ_REVOCATION_BATCH) {
        uint32_t at = set->dirty.v[--set->dirty.n];
        if (set->v[at].saved != SZ_SAVE_DIRTY)
            continue;
        sz_revocation_encode(&set->v[at].r, save->batch_n, &save->bytes);
        set->v[at].saved = SZ_SAVE_WRITING;
        save->batch[save->batch_n++] = at;
    }
    save->written += save->batch_n;
}

/* Fills save->bytes; false: there is nothing to write. */
static bool collect(struct sz_revocations *set)
{
    struct sz_revocation_save *save = &set->save;
    save->bytes.n = 0;
    save->batch_n = 0;
    save->replace = save->file.broken || save->written > 2 * set->n + 4096;
    if (save->replace)
        add_all(set);
    else
        add_dirty(set);
    return save->replace || save->bytes.n > 0;
}

static void written_one(struct sz_revocations *set, size_t at)
{
    if (set->v[at].saved != SZ_SAVE_WRITING)
        return; /* it has changed meanwhile */
    set->v[at].saved = SZ_SAVE_DONE;
    if (set->save.rc != 0)
        sz_revocation_dirty(set, at);
}

static void written(struct sz_revocations *set)
{
    struct sz_revocation_save *save = &set->save;
    for (size_t i = 0; i < save->batch_n; i++)
        written_one(set, save->batch[i]);
    for (size_t i = 0; save->replace && i < set->n; i++)
        written_one(set, i);
    if (save->rc == 0) {
        set->fault.s[0] = '\0';
        return;
    }
    set->fault = save->why;
    save->file.broken = true;
    sz_log(SZ_LOG_ERROR, "revocation", "revocations could not be written to state_dir, and hold in memory alone: %s",
           save->why.s);
}

static void on_written(struct sz_msg *msg, struct sz_loop *loop)
{
    struct sz_revocations *set = SZ_CONTAINER(msg, struct sz_revocations, save.done);
    set->save.busy = false;
    written(set);
    if (set->save.rc != 0)
        set->save.again = sz_after(sz_loop_now(loop), SZ_SEC(1));
    sz_revocation_settle(set);
    sz_revocation_save_kick(set);
}

void sz_revocation_save_kick(struct sz_revocations *set)
{
    struct sz_revocation_save *save = &set->save;
    if (!set->disk || set->loop == NULL || save->busy || set->dirty.n == 0 ||
        sz_loop_now(set->loop).us < save->again.us)
        return;
    if (!save->started && pthread_create(&save->thread, NULL, run, set) != 0)
        return; /* tried again with the next tick */
    save->started = true;
    if (!collect(set))
        return;
    save->busy = true;
    save->done.on_msg = on_written;
    pthread_mutex_lock(&save->lock);
    save->todo = true;
    pthread_cond_signal(&save->wake);
    pthread_mutex_unlock(&save->lock);
}

void sz_revocation_save_stop(struct sz_revocations *set)
{
    struct sz_revocation_save *save = &set->save;
    if (!set->disk)
        return;
    if (save->started) {
        pthread_mutex_lock(&save->lock);
        save->stop = true;
        pthread_cond_signal(&save->wake);
        pthread_mutex_unlock(&save->lock);
        pthread_join(save->thread, NULL);
        save->started = false;
        if (save->busy)
            written(set);
        save->busy = false;
    }
    while (set->dirty.n > 0 && collect(set)) {
        write_out(save);
        written(set);
        if (save->rc != 0)
            break;
    }
}

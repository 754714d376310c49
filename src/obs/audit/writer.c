/*
 * The thread that writes the journal.  It is woken for whoever waits; otherwise it naps while records gather, as the
 * log's does, so that a loop rarely pays for a system call.
 *
 *   well ──a group fails──▶ failing: cut back, try again every 200 ms with what is queued, the gap record first
 *        ◀──a group is committed──
 *
 * A directory that is gone, or another one than it was, is opened anew from its path.
 */
#include <errno.h>
#include <linux/futex.h>
#include <signal.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "obs/audit/journal.h"
#include "subzero/log.h"

enum { NAP_MS = 5, RETRY_MS = 200, LOOK_MS = 1000, STOP_MS = 5000 };

static void futex_wait(_Atomic uint32_t *word, uint32_t expected, struct sz_span most)
{
    struct timespec timeout = {.tv_sec = most.us / 1000000, .tv_nsec = most.us % 1000000 * 1000};
    syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, expected, &timeout, NULL, 0);
}

static void futex_wake(_Atomic uint32_t *word)
{
    syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, INT32_MAX, NULL, NULL, 0);
}

void sz_audit_wake(struct sz_audit *audit)
{
    if (atomic_exchange(&audit->state, SZ_AUDIT_AWAKE) != SZ_AUDIT_AWAKE)
        futex_wake(&audit->state);
}

/* ---- trouble --------------------------------------------------------------------------------------------------------
 */

static void fail(struct sz_audit *audit, int rc, const char *what)
{
    if (atomic_exchange(&audit->failing, -rc) != -rc)
        sz_log(SZ_LOG_ERROR, "audit", "%s: %s; trying again", what, strerror(-rc));
    sz_gauge_set(audit->series.failing, 1);
    audit->retry_at = sz_after(sz_mono_read(), SZ_MS(RETRY_MS));
}

static void recovered(struct sz_audit *audit)
{
    if (atomic_exchange(&audit->failing, 0) == 0)
        return;
    sz_log(SZ_LOG_INFO, "audit", "the journal is written again");
    sz_gauge_set(audit->series.failing, 0);
}

/* Opens the directory anew; what is queued waits meanwhile. */
static bool reopen(struct sz_audit *audit)
{
    struct sz_text why = {""};
    int rc = sz_audit_store_sync(&audit->store);
    if (rc == 0)
        rc = sz_audit_store_reopen(&audit->store, &why);
    if (rc == 0)
        return true;
    atomic_store(&audit->reopen, true);
    audit->error = audit->error != 0 ? audit->error : -rc;
    fail(audit, rc, why.s[0] != '\0' ? why.s : "the journal cannot be opened");
    return false;
}

/* ---- a round
 * ---------------------------------------------------------------------------------------------------------- */

static bool commit(struct sz_audit *audit)
{
    struct sz_mono begun = sz_mono_read();
    int rc = sz_audit_store_present(&audit->store) ? sz_audit_store_commit(&audit->store) : -ENOENT;
    if (rc == -ENOENT || rc == -EEXIST)
        atomic_store(&audit->reopen, true); /* the directory is not as we know it: from its path once more */
    sz_observe(SZ_NO_LOOP, audit->series.commit, sz_between(begun, sz_mono_read()));
    sz_audit_group_end(audit, rc);
    if (rc != 0)
        fail(audit, rc, "the journal cannot be written");
    else
        recovered(audit);
    return rc == 0;
}

/* Commits what is queued; true: something was. */
static bool write_round(struct sz_audit *audit, bool last)
{
    bool any = false;
    uint64_t head = atomic_load(&audit->ring.head);
    while (sz_audit_group_make(audit, last)) {
        if (!commit(audit))
            return any;
        any = true;
        sz_audit_store_idle(&audit->store);
        if (sz_ring_used(&audit->ring) == 0)
            break;
    }
    if (audit->waits && audit->conf->durability != SZ_DURABILITY_INTERVAL)
        sz_audit_tell_ports(audit, true); /* counted denials alone: nothing had to be written */
    atomic_store(&audit->drained, head);
    if (atomic_load(&audit->settlers) > 0) {
        atomic_fetch_add(&audit->rounds, 1);
        futex_wake(&audit->rounds);
    }
    return any;
}

static void sync_when_due(struct sz_audit *audit, struct sz_mono now, bool all)
{
    if (audit->conf->durability != SZ_DURABILITY_INTERVAL || (!all && now.us < audit->sync_at.us))
        return;
    audit->sync_at = sz_after(now, audit->conf->sync_interval);
    int rc = sz_audit_store_sync(&audit->store);
    if (audit->waits || rc != 0)
        sz_audit_tell_ports(audit, rc == 0);
    if (rc == 0)
        return;
    audit->error = -rc;
    fail(audit, rc, "the journal cannot be synced");
}

/* Once a second: figures, free space, whether the directory is still there. */
static void look_around(struct sz_audit *audit, struct sz_mono now)
{
    struct statvfs fs;
    if (now.us < audit->look_at.us)
        return;
    audit->look_at = sz_after(now, SZ_MS(LOOK_MS));
    for (unsigned s = 0; s < SZ_AUDIT_STREAMS; s++) {
        const struct sz_audit_tape *tape = &audit->store.tape[s];
        uint64_t bytes = 0;
        for (size_t i = 0; i < tape->n; i++)
            bytes += atomic_load_explicit(&tape->v[i]->size, memory_order_relaxed);
        sz_gauge_set(audit->series.segments[s], (int64_t)tape->n);
        sz_gauge_set(audit->series.bytes[s], (int64_t)bytes);
    }
    sz_gauge_set(audit->series.queue, (int64_t)sz_ring_used(&audit->ring));
    if (audit->store.dir < 0 || fstatvfs(audit->store.dir, &fs) != 0)
        return;
    int64_t left = (int64_t)(fs.f_bavail * fs.f_frsize);
    bool low = left < (int64_t)audit->conf->free_space;
    atomic_store(&audit->free_bytes, left);
    sz_gauge_set(audit->series.free_bytes, left);
    if (low && !atomic_exchange(&audit->low_space, true))
        sz_log(SZ_LOG_WARN, "audit", "only %lld MiB are free where the journal is", (long long)(left >> 20));
    else if (!low)
        atomic_store(&audit->low_space, false);
}

/* ---- sleeping
 * ---------------------------------------------------------------------------------------------------------- */

static bool has_records(struct sz_audit *audit)
{
    struct iovec iov[2];
    return sz_ring_peek(&audit->ring, iov, 2).pieces != 0;
}

static bool asked(const struct sz_audit *audit)
{
    return atomic_load(&audit->stop) || atomic_load(&audit->reopen);
}

static int64_t until_due(const struct sz_audit *audit, struct sz_mono now)
{
    int64_t next = now.us + 1000000;
    bool unsynced = audit->store.tape[SZ_AUDIT_MAIN].unsynced || audit->store.tape[SZ_AUDIT_DENIED].unsynced;
    if (audit->conf->durability == SZ_DURABILITY_INTERVAL && (unsynced || audit->waits) && audit->sync_at.us < next)
        next = audit->sync_at.us;
    if (audit->since_checkpoint > 0 && audit->checkpoint_at.us < next)
        next = audit->checkpoint_at.us;
    return next > now.us ? next - now.us : 0;
}

static void sleep_until_woken(struct sz_audit *audit)
{
    int64_t us = until_due(audit, sz_mono_read());
    atomic_store(&audit->state, SZ_AUDIT_ASLEEP);
    /* One more look after that is known: whoever pushed before did not wake us. */
    if (us > 0 && !has_records(audit) && !asked(audit))
        futex_wait(&audit->state, SZ_AUDIT_ASLEEP, SZ_US(us));
    atomic_store(&audit->state, SZ_AUDIT_AWAKE);
}

static void nap(struct sz_audit *audit, int64_t us)
{
    atomic_store(&audit->state, SZ_AUDIT_NAPPING);
    if (!asked(audit))
        futex_wait(&audit->state, SZ_AUDIT_NAPPING, SZ_US(us));
    atomic_store(&audit->state, SZ_AUDIT_AWAKE);
}

/* ---- the thread
 * ------------------------------------------------------------------------------------------------------------ */

static bool stands_still(struct sz_audit *audit)
{
    struct sz_mono now = sz_mono_read();
    if (atomic_load(&audit->failing) == 0 || now.us >= audit->retry_at.us)
        return false;
    if (audit->conf->required)
        sz_audit_drop_queue(audit);
    nap(audit, audit->retry_at.us - now.us);
    return true;
}

static void add_mark(struct sz_audit *audit, enum sz_audit_kind kind)
{
    struct sz_audit_event e = {.kind = kind};
    e.text[SZ_AUDIT_DETAIL] = SZ_S("subzero " SZ_VERSION);
    (void)sz_audit_note(audit, &e);
}

/* The last records; what a disk that refuses does not take now is lost. */
static void finish(struct sz_audit *audit)
{
    add_mark(audit, SZ_AUDIT_STOP);
    (void)write_round(audit, true);
    sz_audit_store_begin(&audit->store, sz_wall_read());
    audit->checkpoint.n = 0;
    audit->group_records = 0;
    audit->findings = 0;
    audit->grouped_queue = audit->told_queue;
    audit->grouped_disk = audit->told_disk;
    sz_audit_store_add_checkpoint(&audit->store, sz_wall_read(), audit->has_key ? &audit->key : NULL,
                                  &audit->checkpoint);
    if (commit(audit))
        sz_audit_store_save_ends(&audit->store);
    sync_when_due(audit, sz_mono_read(), true);
    sz_audit_tell_ports(audit, false);
}

static void *run(void *arg)
{
    struct sz_audit *audit = arg;
    while (!atomic_load(&audit->stop)) {
        if (stands_still(audit))
            continue;
        bool again = atomic_exchange(&audit->reopen, false);
        bool wrote = (!again || reopen(audit)) && write_round(audit, false);
        sync_when_due(audit, sz_mono_read(), false);
        look_around(audit, sz_mono_read());
        if (atomic_load(&audit->failing) != 0)
            continue;
        if (wrote && !audit->conf->required)
            nap(audit, NAP_MS * 1000);
        else
            sleep_until_woken(audit);
    }
    if (!atomic_load(&audit->killed))
        finish(audit);
    return NULL;
}

int sz_audit_writer_start(struct sz_audit *audit)
{
    /* Signals belong to the threads that handle them. */
    sigset_t all, before;
    sigfillset(&all);
    audit->checkpoint_at = sz_after(sz_mono_read(), audit->conf->checkpoint_interval);
    add_mark(audit, SZ_AUDIT_START);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int rc = pthread_create(&audit->thread, NULL, run, audit);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (rc != 0)
        return -rc;
    pthread_setname_np(audit->thread, "subzero-audit");
    audit->running = true;
    return 0;
}

void sz_audit_writer_stop(struct sz_audit *audit)
{
    if (!audit->running)
        return;
    atomic_store(&audit->stop, true);
    sz_audit_wake(audit);
    pthread_join(audit->thread, NULL);
    audit->running = false;
}

void sz_audit_settle(struct sz_audit *audit, struct sz_span limit)
{
    uint64_t head = atomic_load(&audit->ring.head);
    struct sz_mono end = sz_after(sz_mono_read(), limit);
    atomic_fetch_add(&audit->settlers, 1);
    for (;;) {
        uint32_t rounds = atomic_load(&audit->rounds);
        int64_t left = sz_between(sz_mono_read(), end).us;
        if (atomic_load(&audit->drained) >= head || left <= 0)
            break;
        sz_audit_wake(audit);
        futex_wait(&audit->rounds, rounds, SZ_US(left < 5000 ? left : 5000));
    }
    atomic_fetch_sub(&audit->settlers, 1);
}

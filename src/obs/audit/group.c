/*
 * Making a group: what has to be said about earlier losses first, then events from the queue, counts of floods that are
 * over, a checkpoint when it is time.  All of it is committed together or not at all.
 */
#include <errno.h>
#include <stdio.h>

#include "obs/audit/journal.h"
#include "subzero/log.h"

enum { GROUP_BYTES = 256 * 1024, GROUP_RECORDS = 2048, GIVE_BACK = 16 * 1024 /* bytes of the queue */ };

static void add(struct sz_audit *audit, enum sz_audit_kind kind, struct sz_slice object, struct sz_slice detail,
                struct sz_slice extra)
{
    struct sz_audit_event e = {.kind = kind, .time = sz_wall_read()};
    e.text[SZ_AUDIT_OBJECT] = object;
    e.text[SZ_AUDIT_DETAIL] = detail;
    sz_audit_store_add(&audit->store, SZ_AUDIT_MAIN, &e, extra);
}

static void add_gap(struct sz_audit *audit)
{
    uint64_t queue = atomic_load(&audit->lost_queue), disk = atomic_load(&audit->lost_disk);
    audit->grouped_queue = queue;
    audit->grouped_disk = disk;
    queue -= audit->told_queue;
    disk -= audit->told_disk;
    if (queue + disk == 0 && audit->error == 0)
        return;
    struct sz_buf extra = {0};
    sz_buf_printf(&extra, ",\"lost\":%llu,\"lost_queue\":%llu,\"lost_disk\":%llu", (unsigned long long)(queue + disk),
                  (unsigned long long)queue, (unsigned long long)disk);
    add(audit, SZ_AUDIT_GAP, SZ_NONE, audit->error != 0 ? sz_cstr(strerror(audit->error)) : SZ_S("the queue was full"),
        sz_buf_slice(&extra));
    sz_buf_fini(&extra);
}

static void add_findings(struct sz_audit *audit)
{
    audit->findings = audit->store.findings_n;
    for (size_t i = 0; i < audit->findings; i++) {
        const struct sz_audit_finding *f = &audit->store.findings[i];
        add(audit, f->kind, sz_cstr(f->object.s), sz_cstr(f->detail.s), SZ_NONE);
    }
}

static void lose(struct sz_audit *audit, uint64_t records)
{
    atomic_fetch_add(&audit->lost_disk, records);
    sz_count(SZ_NO_LOOP, audit->series.lost, records);
}

/* ---- events of the queue -------------------------------------------------------------------------------------------
 */

/* One event into the group, or into the count of its address. */
static void take(struct sz_audit *audit, struct sz_slice bytes, struct sz_mono now)
{
    struct sz_audit_event e;
    uint32_t port;
    sz_audit_event_unpack(bytes, &e, &port);
    bool nobody = e.kind == SZ_AUDIT_DECISION && !e.allow && !e.authenticated;
    if (port != 0) {
        audit->ports[port - 1]->taken++;
        audit->waits = true;
    }
    if (nobody && e.has_address && !sz_audit_flood_pass(audit->flood, &e.address, now))
        return;
    sz_audit_store_add(&audit->store, nobody ? SZ_AUDIT_DENIED : SZ_AUDIT_MAIN, &e, SZ_NONE);
    audit->group_records++;
}

/* One more event of the queue, whole; false: none. */
static bool next(struct sz_audit *audit, struct sz_ring_view *view, char room[SZ_AUDIT_EVENT_MAX],
                 struct sz_slice *bytes)
{
    struct iovec iov[2];
    unsigned pieces = sz_ring_next(&audit->ring, view, iov);
    if (pieces == 0)
        return false;
    *bytes = sz_slice(iov[0].iov_base, iov[0].iov_len);
    if (pieces == 2) {
        memcpy(room, iov[0].iov_base, iov[0].iov_len);
        memcpy(room + iov[0].iov_len, iov[1].iov_base, iov[1].iov_len);
        *bytes = sz_slice(room, iov[0].iov_len + iov[1].iov_len);
    }
    return true;
}

/* Its place in the queue is given back with those before it, when they are many. */
static void done(struct sz_audit *audit, struct sz_ring_view *view, size_t enough)
{
    if (view->bytes < enough)
        return;
    sz_ring_release(&audit->ring, view);
    *view = sz_ring_view(&audit->ring);
}

static bool group_has_room(const struct sz_audit *audit)
{
    const struct sz_audit_store *store = &audit->store;
    return store->tape[SZ_AUDIT_MAIN].group.n + store->tape[SZ_AUDIT_DENIED].group.n < GROUP_BYTES &&
           sz_audit_store_room(store, SZ_AUDIT_MAIN) && sz_audit_store_room(store, SZ_AUDIT_DENIED);
}

static void take_queue(struct sz_audit *audit)
{
    char room[SZ_AUDIT_EVENT_MAX];
    struct sz_ring_view view = sz_ring_view(&audit->ring);
    struct sz_slice bytes;
    struct sz_mono now = sz_mono_read();
    for (unsigned i = 0; i < GROUP_RECORDS && group_has_room(audit) && next(audit, &view, room, &bytes); i++) {
        take(audit, bytes, now);
        done(audit, &view, GIVE_BACK);
    }
    done(audit, &view, 1);
}

void sz_audit_drop_queue(struct sz_audit *audit)
{
    char room[SZ_AUDIT_EVENT_MAX];
    struct sz_ring_view view = sz_ring_view(&audit->ring);
    struct sz_slice bytes;
    while (next(audit, &view, room, &bytes)) {
        struct sz_audit_event e;
        uint32_t port;
        sz_audit_event_unpack(bytes, &e, &port);
        if (port != 0)
            audit->ports[port - 1]->taken++;
        done(audit, &view, 1);
        lose(audit, 1);
    }
    sz_audit_tell_ports(audit, false);
}

/* ---- what is due
 * ------------------------------------------------------------------------------------------------------ */

static void add_floods(struct sz_audit *audit, bool last)
{
    struct sz_audit_flood_count count;
    struct sz_mono now = sz_mono_read();
    while (sz_audit_store_room(&audit->store, SZ_AUDIT_DENIED) &&
           sz_audit_flood_take(audit->flood, now, last, &count)) {
        struct sz_audit_event e = {.kind = SZ_AUDIT_DENIALS, .time = sz_wall_read()};
        char extra[40];
        e.has_address = count.has_address;
        e.address = count.address;
        int n = snprintf(extra, sizeof(extra), ",\"count\":%llu", (unsigned long long)count.count);
        sz_audit_store_add(&audit->store, SZ_AUDIT_DENIED, &e, sz_slice(extra, (size_t)n));
    }
}

static void add_checkpoint(struct sz_audit *audit, bool last)
{
    const struct sz_conf_audit *conf = audit->conf;
    struct sz_mono now = sz_mono_read();
    uint64_t records = audit->since_checkpoint + (audit->store.next_seq - audit->store.seq);
    audit->checkpoint.n = 0;
    if (records == 0 || !(last || records >= conf->checkpoint_records || now.us >= audit->checkpoint_at.us))
        return;
    sz_audit_store_add_checkpoint(&audit->store, sz_wall_read(), audit->has_key ? &audit->key : NULL,
                                  &audit->checkpoint);
}

bool sz_audit_group_make(struct sz_audit *audit, bool last)
{
    audit->group_records = 0;
    sz_audit_store_begin(&audit->store, sz_wall_read());
    add_gap(audit);
    add_findings(audit);
    take_queue(audit);
    add_floods(audit, last);
    add_checkpoint(audit, false);
    return !sz_audit_store_empty(&audit->store);
}

/* ---- after the commit
 * ---------------------------------------------------------------------------------------------------- */

void sz_audit_tell_ports(struct sz_audit *audit, bool committed)
{
    uint32_t n = atomic_load_explicit(&audit->ports_n, memory_order_acquire);
    for (uint32_t i = 0; i < n; i++)
        sz_audit_port_tell(audit->ports[i], committed);
    audit->waits = false;
}

static void put_anchor(struct sz_audit *audit)
{
    if (audit->checkpoint.n == 0)
        return;
    audit->since_checkpoint = 0;
    audit->checkpoint_at = sz_after(sz_mono_read(), audit->conf->checkpoint_interval);
    int rc = sz_audit_anchor_put(&audit->anchor, audit->conf, sz_buf_slice(&audit->checkpoint));
    if (rc != 0) {
        sz_count(SZ_NO_LOOP, audit->series.anchor_failed, 1);
        if (!atomic_exchange(&audit->anchor_bad, true))
            sz_log(SZ_LOG_WARN, "audit", "the anchor did not take a checkpoint: %s", strerror(-rc));
    } else {
        atomic_store(&audit->anchor_bad, false);
    }
}

static void committed(struct sz_audit *audit)
{
    for (unsigned k = 0; k < SZ_AUDIT_KINDS; k++) {
        if (audit->store.kinds[k] != 0)
            sz_count(SZ_NO_LOOP, audit->series.kinds[k], audit->store.kinds[k]);
        audit->since_checkpoint += audit->store.kinds[k];
    }
    uint64_t gap = audit->grouped_queue + audit->grouped_disk - audit->told_queue - audit->told_disk;
    if (gap > 0)
        sz_log(SZ_LOG_WARN, "audit", "%llu records were lost", (unsigned long long)gap);
    audit->told_queue = audit->grouped_queue;
    audit->told_disk = audit->grouped_disk;
    audit->error = 0;
    audit->store.findings_n -= audit->findings;
    memmove(audit->store.findings, audit->store.findings + audit->findings,
            audit->store.findings_n * sizeof(audit->store.findings[0]));
    put_anchor(audit);
    for (unsigned s = 0; s < SZ_AUDIT_STREAMS; s++) {
        uint64_t lost = sz_audit_elsewhere_put(&audit->elsewhere, sz_buf_slice(&audit->store.tape[s].group));
        if (lost > 0)
            sz_count(SZ_NO_LOOP, audit->series.copies_lost, lost);
    }
}

void sz_audit_group_end(struct sz_audit *audit, int rc)
{
    if (rc == 0) {
        /* With an interval a record counts as committed once it is synced. */
        if (audit->waits && audit->conf->durability != SZ_DURABILITY_INTERVAL)
            sz_audit_tell_ports(audit, true);
        committed(audit);
        return;
    }
    lose(audit, audit->group_records);
    audit->error = audit->error != 0 ? audit->error : -rc;
    sz_audit_tell_ports(audit, false);
}

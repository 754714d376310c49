/*
 * The journal as a whole: the queue that loops push into, the writer thread and what it keeps, the shelf that readers
 * take snapshots from.
 */
#ifndef SZ_OBS_AUDIT_JOURNAL_H
#define SZ_OBS_AUDIT_JOURNAL_H

#include <pthread.h>
#include <stdatomic.h>

#include "obs/audit/anchor.h"
#include "obs/audit/elsewhere.h"
#include "obs/audit/flood.h"
#include "obs/audit/port.h"
#include "obs/audit/store.h"
#include "obs/ring.h"
#include "subzero/metrics.h"

enum { SZ_AUDIT_PORTS = 260 /* workers, the service loop, and what tests open */ };

struct sz_audit_readers;

struct sz_audit_series {
    struct sz_series kinds[SZ_AUDIT_KINDS];
    struct sz_series lost, queue, failing, free_bytes, segments[SZ_AUDIT_STREAMS], bytes[SZ_AUDIT_STREAMS],
        anchor_failed, copies_lost;
    struct sz_series commit;
};

struct sz_audit {
    const struct sz_conf_audit *conf;
    struct sz_ring ring;
    struct sz_audit_shelf shelf;
    struct sz_audit_series series;

    /* Any thread. */
    _Atomic uint32_t state; /* futex: what the writer does */
    atomic_bool stop, reopen, killed;
    _Atomic int failing;         /* errno of the last attempt; 0: well */
    _Atomic uint64_t lost_queue; /* records for which there was no room */
    _Atomic uint64_t lost_disk;  /* that the disk refused */
    _Atomic uint64_t drained;    /* place in the queue up to which records are committed or lost */
    _Atomic uint32_t rounds;     /* futex: moves with `drained` while somebody waits for it */
    _Atomic uint32_t settlers;
    _Atomic bool low_space, anchor_bad;
    _Atomic int64_t free_bytes;

    struct sz_audit_readers *readers;
    pthread_mutex_t ports_lock; /* of the list; not taken by a loop after its port is open */
    struct sz_audit_port *ports[SZ_AUDIT_PORTS];
    _Atomic uint32_t ports_n;

    /* The writer's. */
    pthread_t thread;
    bool running;
    struct sz_audit_store store;
    struct sz_audit_flood *flood;
    struct sz_audit_anchor anchor;
    struct sz_audit_elsewhere elsewhere;
    struct sz_ed25519 key;
    bool has_key;
    uint64_t told_queue, told_disk;       /* of the losses above, what gap records have said */
    uint64_t grouped_queue, grouped_disk; /* ... and what the group's gap record says */
    int error;                            /* the first one of this outage */
    uint64_t since_checkpoint;            /* records */
    struct sz_mono checkpoint_at, retry_at, sync_at, look_at;
    struct sz_buf checkpoint; /* the group's, for the anchor */
    size_t findings;          /* of the store's, in the group */
    uint64_t group_records;   /* events of the queue in the group */
    bool waits;               /* somebody waits for the group */
};

/* sz_audit_open with another table of calls: tests. */
int sz_audit_open_io(const struct sz_conf_audit *conf, const struct sz_audit_io *io, struct sz_audit **audit,
                     struct sz_text *why) SZ_MUST_CHECK;

/* read.c */
struct sz_audit_readers *sz_audit_readers_new(struct sz_audit *audit);
void sz_audit_readers_free(struct sz_audit_readers **readers);

/* writer.c */
int sz_audit_writer_start(struct sz_audit *audit) SZ_MUST_CHECK;
void sz_audit_writer_stop(struct sz_audit *audit);
void sz_audit_wake(struct sz_audit *audit);
/* Waits until what was queued before the call is committed or lost, at most `limit`.  Not on a loop. */
void sz_audit_settle(struct sz_audit *audit, struct sz_span limit);
enum { SZ_AUDIT_AWAKE, SZ_AUDIT_NAPPING, SZ_AUDIT_ASLEEP };

/* group.c: takes what there is, as far as one group goes.  False: nothing to commit. */
bool sz_audit_group_make(struct sz_audit *audit, bool last);
/* After the commit: tells who waits, counts. */
void sz_audit_group_end(struct sz_audit *audit, int rc);
/* While the disk refuses and records are required: nothing waits in the queue. */
void sz_audit_drop_queue(struct sz_audit *audit);
void sz_audit_tell_ports(struct sz_audit *audit, bool committed);

#endif

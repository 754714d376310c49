/*
 * What people and providers said about addresses and subjects: blocks by hand, and events.  They outlive the process in
 * `state_dir`; what the engine found out by itself does not, it will find it again.
 *
 *   POST /threat/blocks, /threat/events ─▶ applied to the engine at once ─▶ written whole by a thread ─▶ on_done
 *
 * All functions on the loop's thread that it was made for.
 */
#ifndef SUBZERO_THREAT_STORE_H
#define SUBZERO_THREAT_STORE_H

#include "subzero/loop.h"
#include "subzero/threat.h"

#define SZ_THREAT_RECORDS 10000 /* blocks, and as many events, the oldest of which go first */
#define SZ_THREAT_TEXT    256   /* bytes of an issuer, a subject, a reason, their NUL included */

struct sz_threat_record {
    uint64_t id;           /* never 0; given by the store */
    bool is_event;         /* else a block */
    bool is_subject;       /* issuer and subject say who; else addr does */
    enum sz_signal signal; /* of an event */
    struct sz_addr addr;
    char issuer[SZ_THREAT_TEXT], subject[SZ_THREAT_TEXT], reason[SZ_THREAT_TEXT];
    struct sz_wall made, until; /* until: when it counts for nothing any more */
};

enum sz_threat_saved {
    SZ_THREAT_SAVED,  /* applied, and on the disk where there is one */
    SZ_THREAT_STOOD,  /* a block that is there already: made longer where the new one is */
    SZ_THREAT_UNSAFE, /* applied; the disk refused it, and is tried again */
    SZ_THREAT_FULL,   /* not applied: SZ_THREAT_RECORDS blocks, or no room in the engine */
    SZ_THREAT_ABSENT  /* nothing has that id */
};
struct sz_threat_op { /* the caller's memory, zero-initialised with on_done set */
    void (*on_done)(struct sz_threat_op *op, enum sz_threat_saved result); /* once, never inside the call */
    uint64_t id;                                                           /* of the record, set by the call */
    enum sz_threat_saved result;
    struct sz_threat_op *next, **prev; /* prev NULL: not under way */
};

struct sz_threat_store;
/*
 * dir: the state_dir, SZ_NONE: nothing is kept.  Reads what was saved and applies it: blocking.  NULL: *why (damaged,
 * of a newer version, not readable).
 */
struct sz_threat_store *sz_threat_store_new(struct sz_loop *loop, struct sz_threat *threat, struct sz_slice dir,
                                            struct sz_mono now, struct sz_wall wall, struct sz_text *why);
/* While the loop is there: waits for the write under way; whoever still waits hears nothing any more. */
void sz_threat_store_stop(struct sz_threat_store *store);
void sz_threat_store_free(struct sz_threat_store **store); /* after its loop */

void sz_threat_store_add(struct sz_threat_store *store, const struct sz_threat_record *record, struct sz_threat_op *op);
/* By the id of a record. */
void sz_threat_store_lift(struct sz_threat_store *store, uint64_t id, struct sz_threat_op *op);
void sz_threat_store_cancel(struct sz_threat_op *op); /* no-op when done; what was applied stays applied */

/* The blocks that stand. */
void sz_threat_store_each(const struct sz_threat_store *store, void (*see)(void *arg, const struct sz_threat_record *r),
                          void *arg);
/* The last write failed: why; "" otherwise. */
const char *sz_threat_store_fault(const struct sz_threat_store *store);

#endif

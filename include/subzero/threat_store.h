/*
 * What is said about addresses and subjects: blocks, by hand or by their score, and events of a provider.  What people
 * and providers said outlives the process in `state_dir`; what the engine found out by itself does not, it will find it
 * again.
 *
 *   POST /threat/blocks, /threat/events ─▶ applied to the engine at once ─▶ written whole by a thread ─▶ on_done
 *   the engine blocks somebody ──────────▶ listed ──┐
 *                                                   ├──▶ with a fleet: sealed, to the other instances, and from them
 *   a block is set or lifted ───────────────────────┘
 *
 * All functions on the loop's thread that it was made for, but sz_threat_store_found.
 *
 * Of two records about one address or subject the one that was made later holds, everywhere; a lift is a record, too,
 * kept until nothing that it lifts could come back.  What an instance hears counts if it was sealed within the last
 * SZ_THREAT_FRESH, so whoever stands for a block seals it again and again: somebody with all of Redis in his hands can
 * keep instances from hearing something, and can neither make a block nor bring back one that was lifted before that.
 */
#ifndef SUBZERO_THREAT_STORE_H
#define SUBZERO_THREAT_STORE_H

#include "subzero/loop.h"
#include "subzero/threat.h"

#define SZ_THREAT_RECORDS 10000       /* blocks by hand, as many by score, and events, the oldest of which go first */
#define SZ_THREAT_FRESH   SZ_SEC(600) /* a seal counts for so long */
#define SZ_THREAT_TEXT    256         /* bytes of an issuer, a subject, a reason, their NUL included */

struct sz_threat_record {
    uint64_t id;           /* never 0; given by the store */
    bool is_event;         /* else a block */
    bool is_subject;       /* issuer and subject say who; else addr does */
    bool by_score;         /* the engine's own; not kept on disk */
    enum sz_signal signal; /* of an event */
    struct sz_addr addr;
    char issuer[SZ_THREAT_TEXT], subject[SZ_THREAT_TEXT], reason[SZ_THREAT_TEXT];
    struct sz_wall made;
    struct sz_wall until; /* when it counts for nothing any more; of a block that was lifted: 0 */
    struct sz_wall keep;  /* of a block: when it need not be remembered any more; not before `until` */
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
struct sz_redis;
struct sz_fleet;

struct sz_threat_store;
/*
 * dir: the state_dir, SZ_NONE: nothing is kept.  Reads what was saved and applies it: blocking.  NULL: *why (damaged,
 * of a newer version, not readable).
 */
struct sz_threat_store *sz_threat_store_new(struct sz_loop *loop, struct sz_threat *threat, struct sz_slice dir,
                                            struct sz_mono now, struct sz_wall wall, struct sz_text *why);
/*
 * Shares blocks with all who use this Redis under this key, from now on; both outlive the stop.
 */
void sz_threat_store_share(struct sz_threat_store *store, struct sz_redis *redis, const struct sz_fleet *fleet);
/* While the loop is there: waits for the write under way; whoever still waits is told SZ_THREAT_UNSAFE. */
void sz_threat_store_stop(struct sz_threat_store *store);
void sz_threat_store_free(struct sz_threat_store **store); /* after its loop */

void sz_threat_store_add(struct sz_threat_store *store, const struct sz_threat_record *record, struct sz_threat_op *op);
/* By the id of a record. */
void sz_threat_store_lift(struct sz_threat_store *store, uint64_t id, struct sz_threat_op *op);
void sz_threat_store_cancel(struct sz_threat_op *op); /* no-op when done; what was applied stays applied */

/* The engine has blocked it by its score: lists it and tells the others.  Any thread, waits for nothing; beyond what
 * the loop keeps up with it is counted and the block stays here alone. */
void sz_threat_store_found(struct sz_threat_store *store, struct sz_addr addr, struct sz_wall until);
void sz_threat_store_found_by_events(struct sz_threat_store *store, const struct sz_threat_record *who,
                                     struct sz_wall until); /* the loop's thread */

/*
 * The blocks that stand, from position `from` on, until `see` says false.  The position to go on from, which the
 * caller may use later: positions do not move.  SIZE_MAX: that was all.
 */
size_t sz_threat_store_each(const struct sz_threat_store *store, size_t from,
                            bool (*see)(void *arg, const struct sz_threat_record *r), void *arg);

struct sz_threat_store_look {
    size_t by_hand, by_score; /* that stand */
    bool shared, deaf;        /* with other instances; nothing can be heard of them now */
    size_t unpublished;       /* that Redis does not have as they are here */
    struct sz_text fault;     /* of the last write to disk or Redis, when it failed; else empty */
};
void sz_threat_store_look(const struct sz_threat_store *store, struct sz_threat_store_look *out);

#endif

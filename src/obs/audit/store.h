/*
 * The journal on disk as its writer has it: the directory, the two streams, and the group that is being made.
 *
 *   sz_audit_store_begin ─▶ sz_audit_store_add … ─▶ sz_audit_store_commit
 *
 * A group is committed or not: when a write or a sync fails, the files are cut back to the last committed record and
 * the chain goes on from there.  One thread.
 */
#ifndef SZ_OBS_AUDIT_STORE_H
#define SZ_OBS_AUDIT_STORE_H

#include "obs/audit/event.h"
#include "obs/audit/segment.h"
#include "subzero/conf.h"
#include "subzero/crypto.h"

struct sz_audit_noted { /* a line of the group */
    size_t from;
    int64_t us;
    struct sz_audit_places places;
};

struct sz_audit_tape {           /* one stream */
    struct sz_audit_segment **v; /* oldest first; the last is written */
    size_t n, cap;
    struct sz_audit_hash head;  /* of the last committed line */
    struct sz_audit_hash front; /* what the first record's `prev` is */
    uint64_t size;              /* committed bytes of the segment being written */
    struct sz_wall began;       /* when that one was begun */
    bool unsynced;
    bool rotate;                      /* the next record goes into a new segment */
    bool dirty;                       /* there may be bytes behind `size`: cut before anything else */
    char leftover[SZ_AUDIT_NAME_MAX]; /* a segment of a failed group: removed before anything else; "": none */
    /* the group */
    struct sz_buf group;
    struct sz_audit_hash group_head, group_front;
    uint64_t group_first, group_last; /* sequence numbers; 0: none */
    int64_t group_newest;
    struct sz_audit_noted *noted; /* the group's lines, for the index */
    size_t noted_n, noted_cap;
    size_t removing; /* segments that retention removes once the group is committed */
    /* ended, and its side file is not written yet */
    struct sz_audit_segment *ended;
    struct sz_audit_hash ended_hash;
};

struct sz_audit_finding {    /* what opening met: told in the first records */
    enum sz_audit_kind kind; /* TORN, DAMAGE */
    struct sz_text object, detail;
};

struct sz_audit_store {
    const struct sz_conf_audit *conf;
    const struct sz_audit_io *io;
    struct sz_audit_shelf *shelf;
    int dir, lock;
    uint64_t dev, ino; /* of the directory */
    uint64_t boot;     /* random: event ids */
    uint64_t seq;      /* last committed */
    uint64_t next_seq; /* last of the group */
    struct sz_audit_memo memo;
    struct sz_audit_tape tape[SZ_AUDIT_STREAMS];
    struct sz_audit_finding findings[4];
    size_t findings_n;
    uint64_t kinds[SZ_AUDIT_KINDS]; /* records of the group, for metrics */
};

/* shelf, conf, io outlive it.  -errno and *why; sz_audit_store_reopen may then be tried. */
int sz_audit_store_open(struct sz_audit_store *store, const struct sz_conf_audit *conf, const struct sz_audit_io *io,
                        struct sz_audit_shelf *shelf, struct sz_text *why) SZ_MUST_CHECK;
/* Closes the files and opens them anew; the numbering and, when the directory is another one, the chain go on. */
int sz_audit_store_reopen(struct sz_audit_store *store, struct sz_text *why) SZ_MUST_CHECK;
void sz_audit_store_close(struct sz_audit_store *store);

/* A group begins: segments that are full or old end here. */
void sz_audit_store_begin(struct sz_audit_store *store, struct sz_wall now);
/* Room in the segment for one more record of that stream; false: commit first. */
bool sz_audit_store_room(const struct sz_audit_store *store, enum sz_audit_stream stream);
void sz_audit_store_add(struct sz_audit_store *store, enum sz_audit_stream stream, const struct sz_audit_event *event,
                        struct sz_slice extra);
/* The same in the evidence, signed unless key is NULL; the line (without newline) is appended to *copy. */
void sz_audit_store_add_checkpoint(struct sz_audit_store *store, struct sz_wall now, const struct sz_ed25519 *key,
                                   struct sz_buf *copy);
bool sz_audit_store_empty(const struct sz_audit_store *store);
/* 0, or -errno: nothing of the group is in the journal. */
int sz_audit_store_commit(struct sz_audit_store *store) SZ_MUST_CHECK;
/* Syncs what was committed without.  -errno: the next records go into new segments. */
int sz_audit_store_sync(struct sz_audit_store *store) SZ_MUST_CHECK;
/* At the end: side files of the segments being written, so that a search of the directory may skip them. */
void sz_audit_store_save_ends(struct sz_audit_store *store);
/* Work that nobody waits for: side files of segments that have ended. */
void sz_audit_store_idle(struct sz_audit_store *store);
/* The directory is still where its path says, and the files are still in it. */
bool sz_audit_store_present(const struct sz_audit_store *store);

/* ---- inside (store_*.c) ------------------------------------------------------------------------------------ */

/* recover.c: opens the directory, finds the segments, looks at the ends. */
int sz_audit_recover(struct sz_audit_store *store, struct sz_text *why) SZ_MUST_CHECK;
/* retain.c: chooses what goes and adds the record that says so. */
void sz_audit_retain_plan(struct sz_audit_store *store, struct sz_wall now);
void sz_audit_retain_remove(struct sz_audit_store *store);
void sz_audit_tape_push(struct sz_audit_tape *tape, struct sz_audit_segment *segment);
static inline struct sz_audit_segment *sz_audit_tape_last(const struct sz_audit_tape *tape)
{
    return tape->n == 0 ? NULL : tape->v[tape->n - 1];
}
void sz_audit_store_publish(struct sz_audit_store *store);

#endif

/*
 * Segments and what is known of them: two streams of files in one directory.
 *
 *   audit-00000000000000000001.jsonl    the evidence: allowed requests, denials of known subjects, everything else
 *   denied-00000000000000000017.jsonl   denials without a validated identity, in a share of their own
 *
 * A name carries the sequence number of its first record; numbers run through both streams, each stream has its own
 * chain.  A segment is counted: the directory's list holds it, and so does every reader that has a snapshot, which
 * keeps its descriptor open after retention has removed the file.
 *
 * The list is an immutable object that the writer replaces; a reader takes a reference to it under a lock that is held
 * for a pointer copy, and never anything that the writer needs after that.
 */
#ifndef SZ_OBS_AUDIT_SEGMENT_H
#define SZ_OBS_AUDIT_SEGMENT_H

#include <pthread.h>
#include <stdatomic.h>

#include "obs/audit/chain.h"
#include "obs/audit/index.h"
#include "subzero/time.h"

enum sz_audit_stream { SZ_AUDIT_MAIN, SZ_AUDIT_DENIED, SZ_AUDIT_STREAMS };

const char *sz_audit_stream_name(enum sz_audit_stream stream);
enum { SZ_AUDIT_NAME_MAX = 48 };

struct sz_audit_segment {
    atomic_uint refs;
    int fd;
    enum sz_audit_stream stream;
    uint64_t first;         /* sequence number of its first record */
    _Atomic uint64_t size;  /* committed bytes */
    _Atomic uint64_t last;  /* last committed sequence number; below first: none yet */
    _Atomic int64_t newest; /* time of its last record, us */
    bool whole;             /* nothing in it is known to be damaged */
    char name[SZ_AUDIT_NAME_MAX];
    struct sz_audit_index *_Atomic index; /* for searches; NULL: unknown, everything is read */
};

/* Takes fd over. */
struct sz_audit_segment *sz_audit_segment_new(int fd, enum sz_audit_stream stream, uint64_t first);
void sz_audit_segment_ref(struct sz_audit_segment *segment);
void sz_audit_segment_unref(struct sz_audit_segment *segment);
/* False when the name is no segment's. */
bool sz_audit_segment_parse(const char *name, enum sz_audit_stream *stream, uint64_t *first);

struct sz_audit_list {
    atomic_uint refs;
    size_t n[SZ_AUDIT_STREAMS];
    struct sz_audit_segment **v[SZ_AUDIT_STREAMS]; /* oldest first */
};
/* Counts every segment. */
struct sz_audit_list *sz_audit_list_new(struct sz_audit_segment *const *const v[SZ_AUDIT_STREAMS],
                                        const size_t n[SZ_AUDIT_STREAMS]);
void sz_audit_list_unref(struct sz_audit_list *list);

/* What the writer publishes and readers take. */
struct sz_audit_shelf {
    pthread_mutex_t lock; /* of the pointer */
    struct sz_audit_list *list;
    _Atomic uint64_t committed; /* sequence number up to which every record is readable */
};
void sz_audit_shelf_init(struct sz_audit_shelf *shelf);
void sz_audit_shelf_fini(struct sz_audit_shelf *shelf);
/* Takes the list over. */
void sz_audit_shelf_set(struct sz_audit_shelf *shelf, struct sz_audit_list *list);
/* A counted list and, read before it, the bound that is consistent over both streams. */
struct sz_audit_list *sz_audit_shelf_get(struct sz_audit_shelf *shelf, uint64_t *committed);

#endif

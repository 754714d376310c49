/*
 * The set of revocations behind subzero/revocation.h, as its parts see it:
 *
 *   revocation.c        records, operations, forgetting                 the service thread
 *   revocation_index.c  what requests ask                               written by it, read by all
 *   revocation_save.c   writing to disk, on a thread of its own
 *   revocation_file.c   the file
 *   revocation_share.c  what they are in Redis; share*.c tell and hear the other instances
 */
#ifndef SZ_CACHE_REVOCATION_H
#define SZ_CACHE_REVOCATION_H

#include <pthread.h>

#include "cache/revocation_file.h"
#include "cache/revocation_index.h"
#include "cache/share.h"
#include "subzero/loop.h"

enum sz_revocation_saved { SZ_SAVE_DIRTY, SZ_SAVE_WRITING, SZ_SAVE_DONE };

struct sz_revocation_record {
    struct sz_revocation r;
    uint8_t saved; /* enum sz_revocation_saved */
    struct sz_share_item share;
};

/* Positions of records that wait for something, in any order, some perhaps twice. */
struct sz_revocation_queue {
    uint32_t *v;
    size_t n, room;
};
void sz_revocation_queue_add(struct sz_revocation_queue *queue, size_t at);

struct sz_revocation_save {
    struct sz_revocation_file file; /* the thread's while busy */
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    bool started, busy, stop; /* busy: the service thread's view */
    bool todo;                /* the lock's */
    bool replace;
    uint32_t batch[SZ_REVOCATION_BATCH]; /* positions of what is being appended */
    size_t batch_n;
    struct sz_buf bytes;
    int rc;
    struct sz_text why;
    struct sz_msg done;
    size_t written; /* records in the file, dead ones too */
    struct sz_mono again;
};

struct sz_revocations {
    _Alignas(SZ_CACHE_LINE) struct sz_revocation_news news;
    _Alignas(SZ_CACHE_LINE) struct sz_revocation_index index;

    struct sz_loop *loop; /* NULL: not started */
    struct sz_revocation_record *v;
    size_t n, room, capacity;
    uint32_t *map; /* open addressing: position + 1 by digest */
    size_t map_mask;
    struct sz_revocation_queue dirty; /* to be written */

    struct sz_revocation_op *ops;
    size_t ops_n;
    struct sz_defer settle;
    struct sz_timer tick;
    struct sz_mono sweep_at;
    bool full;
    struct sz_text fault;
    bool disk;
    struct sz_revocation_save save;
    struct sz_share *share; /* NULL: no Redis */
    struct sz_series delay;
    void (*on_deaf)(void *arg, bool deaf);
    void *arg;
};

enum sz_revocation_change { SZ_CHANGE_NONE, SZ_CHANGE_DONE, SZ_CHANGE_FULL };

/* Applies one: the index first, then the news.  *at: its position. */
enum sz_revocation_change sz_revocation_apply(struct sz_revocations *set, const struct sz_revocation *r, size_t *at);
/* What one record has come to may end operations: looks at them in this turn. */
void sz_revocation_settle(struct sz_revocations *set);

/* ---- revocation_save.c ------------------------------------------------------------------------------------------- */

void sz_revocation_dirty(struct sz_revocations *set, size_t at);
void sz_revocation_save_kick(struct sz_revocations *set);
/* Waits for the write under way; what is left is then written here. */
void sz_revocation_save_stop(struct sz_revocations *set);

/* ---- revocation_share.c ------------------------------------------------------------------------------------------ */

/* The record changed: Redis is to be told of it, when there is one. */
void sz_revocation_untold(struct sz_revocations *set, size_t at);
void sz_revocation_share_kick(struct sz_revocations *set);
/* Nothing of it is under way with Redis that knows records by their position. */
bool sz_revocation_share_idle(const struct sz_revocations *set);
void sz_revocation_share_look(const struct sz_revocations *set, struct sz_revocations_look *out);

#endif

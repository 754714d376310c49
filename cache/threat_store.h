/* The inside of the store: threat_store.c (disk, operations), threat_share.c (the other instances). */
#ifndef SZ_CACHE_THREAT_STORE_H
#define SZ_CACHE_THREAT_STORE_H

#include <pthread.h>
#include <stdatomic.h>

#include "cache/share.h"
#include "cache/threat_blocks.h"

#define SZ_FOUND_MAX 256 /* that the engine has blocked and the loop has not seen yet */

struct sz_found_one {
    struct sz_addr addr;
    struct sz_wall until;
};
struct sz_threat_found { /* any thread's */
    pthread_mutex_t mutex;
    struct sz_found_one v[SZ_FOUND_MAX]; /* the lock's */
    size_t n;                            /* the lock's */
    struct sz_msg msg;                   /* posted while n > 0 */
    _Atomic uint32_t lost;
    struct sz_series dropped;
};

struct sz_threat_store {
    struct sz_loop *loop;
    struct sz_threat *threat;
    struct sz_blocks blocks;
    struct sz_threat_record *events; /* the oldest first */
    size_t events_n, events_cap;
    struct sz_timer tick; /* what is over, what the engine would not take, seals that are to be renewed */
    struct sz_mono ticked;
    struct sz_threat_found found;
    struct sz_share *share;   /* NULL: not shared */
    struct sz_span eagerness; /* how much before the others this instance renews a seal */

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

struct sz_threat_key sz_threat_store_key(const struct sz_threat_store *store, const struct sz_threat_record *r);
/*
 * Makes the engine hold what the record says, by what it said before (until 0: nothing).  Where the engine would not
 * take it now, the tick tries again.
 */
void sz_threat_store_apply(struct sz_threat_store *store, struct sz_block *block, struct sz_wall before);
/* Something that the disk is to have has changed: it is written after this turn. */
void sz_threat_store_changed(struct sz_threat_store *store);

/* ---- threat_share.c: no-ops where blocks are not shared ---------------------------------------------------------- */

/* The record is new or another one. */
void sz_threat_store_tell(struct sz_threat_store *store, struct sz_block *block);
/* It is about to be dropped.  False: not now, it is being told. */
bool sz_threat_store_untell(struct sz_threat_store *store, struct sz_block *block);
/* Seals that would end soon are made anew. */
void sz_threat_store_renew(struct sz_threat_store *store, struct sz_wall now);

#endif

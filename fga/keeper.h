/*
 * A thread for what blocks a loop: disks, and parsing keys.  Jobs are the caller's memory and run one after another;
 * how many there can be is the caller's bound (a provider has at most two).
 */
#ifndef SZ_FGA_KEEPER_H
#define SZ_FGA_KEEPER_H

#include "subzero/loop.h"

struct sz_keeper;
struct sz_keeper_job {
    void (*work)(struct sz_keeper_job *job); /* on the keeper's thread */
    void (*done)(struct sz_keeper_job *job); /* then, on the loop's */
    struct sz_keeper_job *next;
};

/* The thread starts with the first job.  NULL: errno. */
struct sz_keeper *sz_keeper_new(struct sz_loop *loop);
/* Waits for the job being worked on; the others are dropped, and no `done` runs any more.  Loop's thread. */
void sz_keeper_free(struct sz_keeper **keeper);
/* Loop's thread.  The job belongs to the keeper until `done`. */
void sz_keeper_post(struct sz_keeper *keeper, struct sz_keeper_job *job);

#endif

/* The thread that takes lines from the ring to a descriptor.  One per process. */
#ifndef SZ_OBS_WRITER_H
#define SZ_OBS_WRITER_H

#include "subzero/base.h"

/* Starts the thread on fd (not owned).  -EALREADY, or what the system said. */
int sz_writer_start(int fd) SZ_MUST_CHECK;
/* Waits until the queue is written, at most 2 s; what is left then is counted as lost. */
void sz_writer_stop(void);
bool sz_writer_running(void);
/* Any thread: queues a line, newline included; false: full, counted. */
bool sz_writer_push(struct sz_slice line);
void sz_writer_count_lost(uint64_t lines);
uint64_t sz_writer_lost(void);

#endif

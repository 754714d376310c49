/*
 * A streamed answer on its way from a thread to a loop.  The thread adds lines; the loop takes what is there each time
 * that its client has taken what came before.  What nobody has taken yet is bounded: beyond SZ_STREAM_AHEAD the thread
 * waits, until the call's deadline.
 *
 *   thread: add ─▶ (lines) ─▶ take :loop
 *            └─ the loop is idle: on_part
 */
#ifndef SZ_FGA_API_STREAM_H
#define SZ_FGA_API_STREAM_H

#include "subzero/loop.h"

enum { SZ_STREAM_AHEAD = 64 << 10 };

struct sz_lines;

/* on_part: on the loop, when there is something to take and the last take found nothing. */
struct sz_lines *sz_lines_new(struct sz_loop *loop, void (*on_part)(void *arg), void *arg);
/* When neither the thread nor the loop uses it any more: the loop has left, or heard that the errand is done. */
void sz_lines_free(struct sz_lines **lines);

/* The thread.  False: nobody takes it, because the loop has left or did not take what was before in time. */
bool sz_lines_add(struct sz_lines *lines, struct sz_slice line, struct sz_mono deadline) SZ_MUST_CHECK;

/* The loop.  Appends what is there; nothing there: false, and on_part will be called. */
bool sz_lines_take(struct sz_lines *lines, struct sz_buf *out);
/* The loop wants no more: on_part is not called again, and a thread that waits goes on. */
void sz_lines_leave(struct sz_lines *lines);

#endif

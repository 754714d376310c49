/*
 * The process log: JSON lines on stdout, written by one thread.  Callers format into a
 * bounded queue and never block: a full queue drops the line and counts it (the writer
 * says how many were lost as soon as it can).  The same queue and thread carry access
 * lines.  No secret may be passed: no token, key, cookie.
 */
#ifndef SUBZERO_LOG_H
#define SUBZERO_LOG_H

#include "subzero/base.h"

#define SZ_LOG_LINE_MAX 4096 /* bytes of a line, newline included */

enum sz_log_level { SZ_LOG_DEBUG, SZ_LOG_INFO, SZ_LOG_WARN, SZ_LOG_ERROR };

/*
 * Starts the writer thread on a descriptor (not owned; stdout may block, the loops do not care).
 * Before it starts, and after sz_log_stop, lines go to stderr synchronously.
 */
int sz_log_start(int fd, enum sz_log_level least) SZ_MUST_CHECK;
/* Drains within 2 s, joins; what a blocked descriptor did not take by then is lost.  No other thread logs any more. */
void sz_log_stop(void);

/* Any thread.  component: a short literal ("conf", "edge").  Control characters are escaped, long lines cut. */
void sz_log(enum sz_log_level level, const char *component, const char *fmt, ...) SZ_PRINTF(3, 4);

/*
 * A finished line (one JSON object, no newline), for access records.  Copied.
 * False: the queue was full or the line empty or too long, counted as lost.  Any thread, no lock wait,
 * no system call on the loop beyond waking a sleeping writer (once in 5 ms at most).
 */
bool sz_log_line(struct sz_slice json);
uint64_t sz_log_lost(void);

#endif

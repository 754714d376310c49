/*
 * A strict reader of the Prometheus text exposition 0.0.4, for tests: every line must be a
 * HELP, a TYPE or a sample, spelled as the format says; a metric's lines stand together, HELP
 * before TYPE before samples, each once; no series twice; counters end in _total; a histogram's
 * buckets ascend in bound and count, end in +Inf and agree with its _count.
 */
#ifndef FAKE_EXPOSITION_H
#define FAKE_EXPOSITION_H

#include "subzero/base.h"

/* True when the text is valid; otherwise *why says which line and what. */
bool exposition_valid(struct sz_slice text, struct sz_text *why);
/* The value of one series, written exactly as exposed: name or name{a="x"}.  NAN when it is not there. */
double exposition_value(struct sz_slice text, const char *series);

#endif

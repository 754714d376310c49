/*
 * state_dir: the directory of what outlives the process.  Whoever could write there could make keys or unmake
 * revocations, so it is ours alone or not used.
 */
#ifndef SUBZERO_STATE_DIR_H
#define SUBZERO_STATE_DIR_H

#include "subzero/base.h"

/*
 * Opens the directory, made (mode 0700) when it is not there.  Blocking.  -errno and *why: not a directory, a symbolic
 * link, not ours, or open to others.
 */
int sz_state_dir_open(const char *path, struct sz_text *why) SZ_MUST_CHECK;

#endif

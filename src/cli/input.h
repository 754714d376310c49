/* Small inputs of the commands: a file, or standard input. */
#ifndef SZ_CLI_INPUT_H
#define SZ_CLI_INPUT_H

#include "subzero/base.h"

/* Appends the whole of a file ("-": standard input).  -errno; -EFBIG: longer than max. */
int sz_cli_read(const char *path, size_t max, struct sz_buf *out) SZ_MUST_CHECK;

#endif

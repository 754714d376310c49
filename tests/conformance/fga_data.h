/*
 * The authorization data of the conformance folder ($SUBZERO_CONFORMANCE/fga) as JSON values.
 */
#ifndef FGA_DATA_H
#define FGA_DATA_H

#include <jansson.h>

#include "subzero/base.h"

/* A path below the folder into `out`; the folder is $SUBZERO_CONFORMANCE or ../shared/conformance beside the source. */
void fga_path(char *out, size_t size, const char *fmt, ...) SZ_PRINTF(3, 4);
/* The whole file, heap and NUL-terminated (out.p must be freed); {NULL, 0} when it is not there. */
struct sz_slice fga_read(const char *path);
/* A YAML file as JSON; NULL when it is not there, a failed assertion when it does not parse. */
json_t *fga_yaml(const char *path);
const char *fga_str(const json_t *o, const char *key); /* "" when absent */

#endif

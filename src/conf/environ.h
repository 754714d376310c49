/* The YAML that stands for environment variables while it is written: environ.c, environ_otel.c. */
#ifndef SZ_CONF_ENVIRON_H
#define SZ_CONF_ENVIRON_H

#include "subzero/conf.h"

#define SZ_ENVIRON_LINES 96
#define SZ_ENVIRON_PAIRS 16 /* attributes of OTEL_RESOURCE_ATTRIBUTES */

struct sz_environ {
    struct sz_buf yaml;
    const char *variable[SZ_ENVIRON_LINES]; /* of line i + 1 */
    unsigned lines, pairs;
    struct sz_mistakes *m;
};

/* NULL: unset or empty. */
const char *sz_environ_get(const char *name);
/* One line of variable `name` (NULL: ours); `value` is put between `before` and `after` in quotes. */
void sz_environ_line(struct sz_environ *t, const char *name, const char *before, const char *value, const char *after);

void sz_environ_otel(struct sz_environ *t);

#endif

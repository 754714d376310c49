/* Where the heads go besides the journal: a file, best on another disk, or a program that reads them. */
#ifndef SZ_OBS_AUDIT_ANCHOR_H
#define SZ_OBS_AUDIT_ANCHOR_H

#include <sys/types.h>

#include "subzero/conf.h"

struct sz_audit_anchor {
    pid_t running; /* the program; 0: none */
};
/* One checkpoint (a line without newline).  Blocking.  0, or -errno: told in /health, and tried with the next one. */
int sz_audit_anchor_put(struct sz_audit_anchor *anchor, const struct sz_conf_audit *conf, struct sz_slice line);
void sz_audit_anchor_end(struct sz_audit_anchor *anchor);

#endif

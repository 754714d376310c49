/* The address lists of `threat`, as sets. */
#ifndef SZ_PIPELINE_THREAT_LISTS_H
#define SZ_PIPELINE_THREAT_LISTS_H

#include "subzero/conf.h"

struct sz_prefixes;

/*
 * Blocking.  *allowed: what is never judged; *listed: enum sz_threat_list by range; both NULL where empty, to be
 * freed also after a failure.  -EINVAL: mistakes in m.
 */
int sz_threat_lists_load(const struct sz_conf *conf, struct sz_prefixes **allowed, struct sz_prefixes **listed,
                         struct sz_mistakes *m) SZ_MUST_CHECK;

#endif

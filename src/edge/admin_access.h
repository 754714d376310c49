/*
 * Who may talk to the admin listener.  A browser on the operator's machine can be made to send requests to loopback, so
 * loopback alone proves nothing: the Host must be one of ours (DNS rebinding), and nothing may come from a page.
 * Pure.
 */
#ifndef SZ_EDGE_ADMIN_ACCESS_H
#define SZ_EDGE_ADMIN_ACCESS_H

#include "edge/head_check.h"
#include "subzero/reason.h"

enum sz_admin_need { SZ_ADMIN_OPEN, SZ_ADMIN_METRICS, SZ_ADMIN_TOKEN };

/* SZ_REASON_allowed, or why not, with a literal in *why. */
enum sz_reason sz_admin_access(const struct sz_conf_admin *conf, const struct sz_head *head, struct sz_addr peer,
                               enum sz_admin_need need, const char **why);

#endif

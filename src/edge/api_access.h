/*
 * Who may ask an api listener: whoever holds one of its keys.  One without keys (loopback alone, the load sees to that)
 * serves this machine; a browser on it can be made to send requests there, so the Host must be a loopback name (DNS
 * rebinding), and nothing may come from a page.  Pure.
 */
#ifndef SZ_EDGE_API_ACCESS_H
#define SZ_EDGE_API_ACCESS_H

#include "pipeline/request.h"
#include "subzero/reason.h"

/* SZ_REASON_allowed, and the name of the key's holder; or why not, with a literal in *why. */
enum sz_reason sz_api_access(const struct sz_conf_listener *listener, const struct sz_request *req,
                             struct sz_slice *caller, const char **why) SZ_MUST_CHECK;

#endif

/* KIND(id, name, labels, help).  Kinds: COUNTER, GAUGE (per-thread values summed), HISTOGRAM (seconds).
 * labels: the label names, comma separated, "" for none; their values come from closed lists registered at the start. */
/* clang-format off */
SZ_COUNTER(requests,        "subzero_requests_total", "route,decision,reason", "Requests by route, decision and reason")
SZ_HISTOGRAM(duration,      "subzero_request_duration_seconds", "handler", "Time from the whole request head to the last byte handed over, by handler")
SZ_GAUGE(in_progress,       "subzero_requests_in_progress", "", "Requests being handled")
SZ_COUNTER(errors,          "subzero_errors_total", "component", "Faults of our own or of what we depend on")
SZ_COUNTER(cache_requests,  "subzero_cache_requests_total", "layer,kind", "Cache look-ups")
SZ_COUNTER(cache_hits,      "subzero_cache_hits_total", "layer,kind", "Cache look-ups that found a usable entry")
SZ_COUNTER(coalesced,       "subzero_coalesced_total", "kind", "Requests that waited for an answer that another one had asked for")
SZ_COUNTER(limits,          "subzero_ratelimit_decisions_total", "policy,reason,decision", "Rate limits asked, by policy, reason and what came of it")
SZ_COUNTER(shed,            "subzero_verifications_shed_total", "", "Verifications refused because the queue was full")
SZ_COUNTER(resets,          "subzero_http2_reset_connections_total", "", "HTTP/2 connections closed for resetting too many streams")
SZ_GAUGE(connections,       "subzero_connections", "listener", "Open client connections")
SZ_COUNTER(conn_refused,    "subzero_connections_refused_total", "cause", "Connections closed at accept")
SZ_HISTOGRAM(dependency,    "subzero_dependency_duration_seconds", "dependency", "Time of calls to what we depend on")
SZ_COUNTER(http_connections, "subzero_http_connections_total", "use", "Calls to other services over a new or a reused connection")
SZ_COUNTER(http_lookups,    "subzero_http_lookups_total", "result", "Names looked up to call other services")
SZ_COUNTER(jwks_refresh,    "subzero_jwks_refresh_total", "issuer,result", "Fetches of an issuer's keys: ok, unavailable, unusable")
SZ_COUNTER(threat_signals,  "subzero_threat_signals_total", "signal,action", "Signs of an attack, by what they led to: allow, monitor, challenge, block, dry_run")
SZ_COUNTER(redis_commands,  "subzero_redis_commands_total", "result", "Redis commands by how they ended; open and full: not asked")
SZ_COUNTER(redis_reconnects, "subzero_redis_reconnects_total", "", "Connections to Redis that were made again after a loss")
SZ_GAUGE(redis_connections, "subzero_redis_connections", "", "Connections to Redis, being made or made")
SZ_COUNTER(log_lost,        "subzero_log_lines_lost_total", "", "Log lines dropped because the queue was full")
SZ_COUNTER(audit_records,   "subzero_audit_records_total", "kind", "Records committed to the audit journal")
SZ_COUNTER(audit_lost,      "subzero_audit_lost_total", "", "Audit records lost: the queue was full, or the disk refused")
SZ_GAUGE(audit_queue,       "subzero_audit_queue", "", "Bytes waiting in the audit queue")
SZ_GAUGE(audit_failing,     "subzero_audit_failing", "", "1 while the audit journal cannot be written")
SZ_GAUGE(audit_free,        "subzero_audit_free_bytes", "", "Free space where the audit journal is")
SZ_GAUGE(audit_segments,    "subzero_audit_segments", "stream", "Segments of the audit journal")
SZ_GAUGE(audit_bytes,       "subzero_audit_bytes", "stream", "Bytes of the audit journal")
SZ_COUNTER(audit_anchor_failed, "subzero_audit_anchor_failed_total", "", "Checkpoints that the anchor did not take")
SZ_HISTOGRAM(audit_read,    "subzero_audit_read_seconds", "result", "Time from a question to the journal to its answer or piece of it: page, export, busy, damaged, failed")
SZ_HISTOGRAM(audit_commit,  "subzero_audit_commit_seconds", "", "Time to commit a group of audit records")
SZ_GAUGE(reload_ok,         "subzero_config_last_reload_successful", "", "1 when the last configuration load succeeded")
/* clang-format on */
#undef SZ_COUNTER
#undef SZ_GAUGE
#undef SZ_HISTOGRAM

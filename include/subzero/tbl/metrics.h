/*
 * The closed list of metrics.
 *   KIND(id, name, labels, help, watch)                    COUNTER, GAUGE (per-thread values summed), HISTOGRAM (seconds)
 *   SZ_COLLECTED(id, kind, name, labels, help, watch)      read where it lives when somebody scrapes: sz_metrics_head
 * labels: the label names, comma separated, "" for none; their values come from closed lists registered at the start
 * (subzero/tbl/labels.h).  watch: what to look for and what to do then; "" where there is nothing to do.
 * docs/metrics.md is made from this table.
 */
/* clang-format off */
#ifndef SZ_COUNTER
#define SZ_COUNTER(id, name, labels, help, watch)
#endif
#ifndef SZ_GAUGE
#define SZ_GAUGE(id, name, labels, help, watch)
#endif
#ifndef SZ_HISTOGRAM
#define SZ_HISTOGRAM(id, name, labels, help, watch)
#endif
#ifndef SZ_COLLECTED
#define SZ_COLLECTED(id, kind, name, labels, help, watch)
#endif
SZ_COUNTER(requests, "subzero_requests_total", "route,decision,reason",
    "Requests by route, decision and reason",
    "More denials than usual: look the reason up in errors.md. Reasons whose status is 5xx are faults, also counted in subzero_errors_total")
SZ_HISTOGRAM(duration, "subzero_request_duration_seconds", "handler",
    "Time from the whole request head to the last byte handed over, by handler",
    "p95 above its usual: compare auth, authz and subzero_dependency_duration_seconds to see who is slow; proxy contains the upstream's own time")
SZ_GAUGE(in_progress, "subzero_requests_in_progress", "",
    "Requests being handled",
    "Grows without end: something is not answered; limits.max_in_flight bounds it")
SZ_COUNTER(errors, "subzero_errors_total", "component",
    "Faults of our own or of what we depend on",
    "Anything but a flat line: /health and the log name the fault")
SZ_COUNTER(cache_requests, "subzero_cache_requests_total", "layer,kind",
    "Cache look-ups",
    "The denominator of a hit ratio")
SZ_COUNTER(cache_hits, "subzero_cache_hits_total", "layer,kind",
    "Cache look-ups that found a usable entry",
    "Token hits of l1 and l2 over l1 requests below 0.9: raise cache.l1.capacity where entries are at it, or cache.l1.ttl")
SZ_COLLECTED(cache_entries, gauge, "subzero_cache_entries", "layer,kind",
    "Entries in the caches of this process",
    "At the capacity and evictions grow: raise the capacity")
SZ_COLLECTED(cache_capacity, gauge, "subzero_cache_capacity", "layer,kind",
    "Entries that fit into the caches of this process",
    "")
SZ_COLLECTED(cache_evictions, counter, "subzero_cache_evictions_total", "layer,kind",
    "Entries that were still good and made room for others",
    "Steady growth: the capacity is smaller than what is in use")
SZ_COUNTER(l2_bad, "subzero_l2_bad_values_total", "",
    "Values in Redis that were not ours, altered, moved, or of the wrong type",
    "Not 0: instances have different keys, or somebody else writes there")
SZ_COUNTER(coalesced, "subzero_coalesced_total", "kind",
    "Requests that waited for an answer that another one had asked for",
    "")
SZ_COUNTER(limits, "subzero_ratelimit_decisions_total", "policy,reason,decision",
    "Rate limits asked, by policy, reason and what came of it",
    "reason circuit_open or redis_* with decision allow: the limiter runs open, without its store; with deny: it refuses for want of it")
SZ_COUNTER(limits_given_up, "subzero_ratelimit_given_up_total", "table",
    "Buckets given up before they were full again, for want of room: buckets, addresses, leases",
    "Grows: more keys at once than limits.rate_limit_keys (buckets, leases) or limits.per_address.keys (addresses) have room for, or somebody sprays keys; those nearest to a fresh bucket go")
SZ_COUNTER(shed, "subzero_verifications_shed_total", "",
    "Verifications refused because the queue was full",
    "Not 0: a flood of new or bad tokens; see subzero_threat_signals_total")
SZ_COUNTER(resets, "subzero_http2_reset_connections_total", "",
    "HTTP/2 connections closed for resetting too many streams",
    "Not 0: a rapid-reset attack, or a broken client")
SZ_GAUGE(connections, "subzero_connections", "listener",
    "Open client connections",
    "Near limits.max_connections: new ones are closed at once")
SZ_COUNTER(conn_refused, "subzero_connections_refused_total", "cause",
    "Connections closed at accept, or to get their buffered body back",
    "descriptors: raise LimitNOFILE; address: one client holds limits.connections_per_address; proxy_protocol, untrusted: the listener stands open to others than the proxy; buffered_bodies: limits.buffered_bodies is reached")
SZ_HISTOGRAM(dependency, "subzero_dependency_duration_seconds", "dependency",
    "Time of calls to what we depend on",
    "Slower than usual: its own figures say why")
SZ_COLLECTED(breaker_state, gauge, "subzero_breaker_state", "dependency",
    "Breaker by dependency: 0 closed, 1 open, 2 half-open",
    "1: the dependency failed several times in a row and is not asked for a while; restore it, the breaker closes by itself")
SZ_COLLECTED(breaker_transitions, counter, "subzero_breaker_transitions_total", "dependency,to",
    "Changes of a breaker's state",
    "Many: the dependency flaps")
SZ_COUNTER(http_connections, "subzero_http_connections_total", "use",
    "Calls to other services over a new or a reused connection",
    "")
SZ_COUNTER(http_lookups, "subzero_http_lookups_total", "result",
    "Names looked up to call other services",
    "failed grows: DNS")
SZ_COUNTER(jwks_refresh, "subzero_jwks_refresh_total", "issuer,result",
    "Fetches of an issuer's keys: ok, unavailable, unusable",
    "unusable: the provider answers with something that is no key set")
SZ_COLLECTED(jwks_age, gauge, "subzero_jwks_age_seconds", "issuer",
    "Time since the issuer's keys were last fetched",
    "Beyond an hour: the provider cannot be reached; beyond the issuer's max_stale its tokens are refused")
SZ_COUNTER(threat_signals, "subzero_threat_signals_total", "signal,action",
    "Signs of an attack, by what they led to: allow, monitor, challenge, block, dry_run",
    "/threat shows who; threat.md says what the signals mean")
SZ_COUNTER(threat_blocks, "subzero_threat_shared_blocks_total", "event",
    "Of blocks in Redis: heard, forged (did not open under our key), stale (sealed too long ago to count), republished (Redis had lost it); dropped: too many at once to be listed and shared",
    "forged: another key, or an attack; stale: clocks differ by minutes, or old records are put back; republished: Redis evicts or was emptied")
SZ_COUNTER(redis_commands, "subzero_redis_commands_total", "result",
    "Redis commands by how they ended; open and full: not asked",
    "Anything but answered: /health says what is wrong")
SZ_COUNTER(redis_reconnects, "subzero_redis_reconnects_total", "",
    "Connections to Redis that were made again after a loss",
    "")
SZ_GAUGE(redis_connections, "subzero_redis_connections", "",
    "Connections to Redis, being made or made",
    "")
SZ_COUNTER(log_lost, "subzero_log_lines_lost_total", "",
    "Log lines dropped because the queue was full",
    "Not 0: whoever reads standard output is too slow; log.access: sampled writes less")
SZ_COUNTER(audit_records, "subzero_audit_records_total", "kind",
    "Records committed to the audit journal",
    "")
SZ_COUNTER(audit_lost, "subzero_audit_lost_total", "",
    "Audit records lost: the queue was full, or the disk refused",
    "Not 0: the disk is too slow or full; the journal holds a gap record that says how many")
SZ_GAUGE(audit_queue, "subzero_audit_queue", "",
    "Bytes waiting in the audit queue",
    "Near 4 MiB: records are about to be lost, or requests refused where audit.required is set")
SZ_GAUGE(audit_failing, "subzero_audit_failing", "",
    "1 while the audit journal cannot be written",
    "1: free space or repair the disk; it goes on by itself")
SZ_GAUGE(audit_free, "subzero_audit_free_bytes", "",
    "Free space where the audit journal is",
    "Below audit.free_space: make room")
SZ_GAUGE(audit_segments, "subzero_audit_segments", "stream",
    "Segments of the audit journal",
    "")
SZ_GAUGE(audit_bytes, "subzero_audit_bytes", "stream",
    "Bytes of the audit journal",
    "")
SZ_COUNTER(audit_anchor_failed, "subzero_audit_anchor_failed_total", "",
    "Checkpoints that the anchor did not take",
    "Not 0: the heads of the journal are not elsewhere; see the log")
SZ_COUNTER(audit_copies_lost, "subzero_audit_copies_lost_total", "",
    "Records that standard output or syslog did not take; the journal has them",
    "")
SZ_HISTOGRAM(audit_read, "subzero_audit_read_seconds", "result",
    "Time from a question to the journal to its answer or piece of it: page, export, busy, damaged, failed",
    "damaged: run subzero audit verify")
SZ_HISTOGRAM(audit_commit, "subzero_audit_commit_seconds", "",
    "Time to commit a group of audit records",
    "With audit.required every allowed request waits so long: a slow disk is a slow gateway")
SZ_GAUGE(reload_ok, "subzero_config_last_reload_successful", "",
    "1 when the last configuration load succeeded",
    "0: the old configuration serves; the log has the mistakes, subzero check -c FILE too")
SZ_HISTOGRAM(revocation_delay, "subzero_revocation_propagation_seconds", "",
    "From a revocation at another instance until it is honoured here, by the clocks of the two",
    "p99 above 0.1: Redis is slow, or the clocks differ")
SZ_COUNTER(revocation_events, "subzero_revocation_events_total", "event",
    "Of revocations in Redis: heard, forged (did not open under our key), stale (sealed too long ago to count), republished (Redis had lost it)",
    "forged: another key, or an attack; republished: Redis evicts or was emptied")
SZ_COUNTER(trace_spans, "subzero_trace_spans_total", "result",
    "Spans by what became of them: exported, rejected (by the collector), failed (it could not be asked for a minute, or refused), full (the queue was)",
    "Anything but exported: the log says what the collector answered; full: raise tracing.queue or lower tracing.sample")
SZ_COLLECTED(certificate, gauge, "subzero_certificate_expiry_timestamp_seconds", "",
    "When the first of the listeners' certificates expires",
    "Within a week: renew it; SIGHUP or tls.watch loads the new one")
SZ_COLLECTED(cpu, counter, "process_cpu_seconds_total", "",
    "Total user and system CPU time spent in seconds",
    "")
SZ_COLLECTED(resident, gauge, "process_resident_memory_bytes", "",
    "Resident memory size in bytes",
    "")
SZ_COLLECTED(virtual, gauge, "process_virtual_memory_bytes", "",
    "Virtual memory size in bytes",
    "")
SZ_COLLECTED(open_fds, gauge, "process_open_fds", "",
    "Number of open file descriptors",
    "Near process_max_fds: new connections are refused")
SZ_COLLECTED(max_fds, gauge, "process_max_fds", "",
    "Maximum number of open file descriptors",
    "")
SZ_COLLECTED(start_time, gauge, "process_start_time_seconds", "",
    "Start time of the process since unix epoch in seconds",
    "It changes: the process was restarted")
SZ_COLLECTED(build, gauge, "subzero_build_info", "version,compiler",
    "What this binary was built from and with",
    "")
/* clang-format on */
#undef SZ_COUNTER
#undef SZ_GAUGE
#undef SZ_HISTOGRAM
#undef SZ_COLLECTED

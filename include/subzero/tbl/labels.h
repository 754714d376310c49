/*
 * SZ_LABEL(name, values, meaning): every label of every metric, and the closed list that its values come from.  No
 * value is ever taken from a request.  A list in braces is made elsewhere: {reasons}, {signals}, {audit kinds} are
 * tables beside this one; <...> are names that the configuration gives.
 */
/* clang-format off */
#ifndef SZ_LABEL
#error "define SZ_LABEL(name, values, meaning) first"
#endif
SZ_LABEL(route,      "<route ids> none", "the route that matched; `none`: no route did")
SZ_LABEL(decision,   "allow deny", "what was decided")
SZ_LABEL(reason,     "{reasons}", "why: see [errors.md](errors.md)")
SZ_LABEL(handler,    "auth authz proxy decide admin fga", "auth: until the identity is known; authz: from there until relations are answered, and all of an api request; proxy, decide: whole requests on such listeners; admin, fga: whole requests there")
SZ_LABEL(component,  "identity authz revocation rate_limit audit upstream overload rate_limit_state fga fga_misconfigured", "what failed; the first seven by requests that were answered with 5xx for it, the others by faults seen")
SZ_LABEL(layer,      "l1 l2", "l1: this process; l2: Redis")
SZ_LABEL(kind,       "token negative decision jwks {audit kinds}", "of caches: identities, rejected tokens, relations, key sets; of audit records: what happened")
SZ_LABEL(policy,     "<names in rate_limits>", "the rate limit")
SZ_LABEL(table,      "buckets addresses leases", "limits.rate_limit_keys; limits.per_address.keys; what instances hold of leases, as many as buckets")
SZ_LABEL(listener,   "<addresses in listen> fga admin demo", "where the client connected")
SZ_LABEL(cause,      "descriptors address proxy_protocol untrusted buffered_bodies", "why the connection was closed")
SZ_LABEL(dependency, "redis redis:limits redis:revocation redis:threat fga issuer:<issuer> upstream:<upstream> otlp", "who is asked")
SZ_LABEL(to,         "closed open half_open", "the state that the breaker changed to")
SZ_LABEL(use,        "new reused", "whether the call found a kept connection")
SZ_LABEL(result,     "ok unavailable unusable found failed page export busy damaged answered error noscript oom not_ready timeout connection full open exported rejected", "how it ended; which of them a metric has is in its meaning")
SZ_LABEL(issuer,     "<names in issuers>", "the issuer")
SZ_LABEL(signal,     "{signals}", "the sign: see [threat.md](threat.md)")
SZ_LABEL(action,     "allow monitor challenge block dry_run", "what the score was good for when it came")
SZ_LABEL(stream,     "audit denied", "the journal's two streams: unauthenticated denials have one of their own")
SZ_LABEL(event,      "heard forged stale republished dropped", "what became of it")
SZ_LABEL(version,    "<one>", "of this binary")
SZ_LABEL(compiler,   "<one>", "that built it")
/* clang-format on */
#undef SZ_LABEL

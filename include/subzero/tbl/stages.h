/* NAME, what it does.  In the order a transaction passes them; jumps go forward only. */
/* clang-format off */
#ifndef SZ_STAGE
#error "define SZ_STAGE(name, help) first"
#endif
SZ_STAGE(admit,     "canonical target, route, client address, admission limits")
SZ_STAGE(identify,  "credential to validated identity: L1, then verification")
SZ_STAGE(limit,     "rate limits of the validated tenant")
SZ_STAGE(authorize, "scope and claim rules, then the relation check")
SZ_STAGE(decide,    "the one place that writes ALLOW")
SZ_STAGE(commit,    "the audit record is durable where that is required")
SZ_STAGE(done,      "proxy or answer: the edge takes over")
/* clang-format on */
#undef SZ_STAGE

/*
 * SZ_REASON(NAME, status, title, component, where, why, remedy): the closed list of why a request was answered as it
 * was: `reason` in answers, logs, metrics and the journal.  title: for people.  component: what subzero_errors_total
 * counts when a request is answered so; "" for what is no fault of ours.  where and why it arises, and what the
 * operator does: docs/errors.md is made from these.
 */
/* clang-format off */
#ifndef SZ_REASON
#error "define SZ_REASON(name, status, title, component, where, why, remedy) first"
#endif
SZ_REASON(allowed, 200, "Allowed", "",
    "decide", "the request met everything that its route asks",
    "nothing")
SZ_REASON(bad_request, 400, "The request is malformed", "",
    "the edge's head check; admit; an api body; an `authorize` template that meets a value twice", "the request could be read in two ways, or not at all; `detail` says which rule",
    "nothing, as a rule: fix the client. Many from one address: /threat")
SZ_REASON(ambiguous_path, 400, "The request target can be read in more than one way", "",
    "admit", "`%2f`, `%5c`, `%00`, `..;`, double encoding, `//`, or a spelling that another server would route elsewhere",
    "fix the client; ids that need a slash belong into the query or the body")
SZ_REASON(headers_too_large, 431, "The request header is too large", "",
    "the edge, before the request is read", "`limits.request_head` bytes or `limits.headers` fields",
    "raise the limit only when a known client needs it; cookies are the usual cause")
SZ_REASON(body_too_large, 413, "The request body is too large", "",
    "the edge", "`request_body` of the listener or route, or the process's `limits.buffered_bodies`",
    "raise `request_body` on that route, or `buffered_bodies` when many large ones arrive at once")
SZ_REASON(no_route, 404, "No route matches", "",
    "admit", "host and path match no route: default deny",
    "add a route, or fix the client; `subzero explain` shows what is tried")
SZ_REASON(method_not_allowed, 405, "The method is not allowed here", "",
    "admit", "the most specific pattern lacks the method; `Allow` lists what it has",
    "add the method to that route: a looser route never takes its place")
SZ_REASON(misdirected, 421, "This connection does not serve that authority", "",
    "the edge", "the authority is not covered by the certificate of the connection, or the host is not the admin listener's",
    "clients retry on a new connection by themselves; else add the name to the certificate, or to `admin.hosts`")
SZ_REASON(untrusted_peer, 403, "The caller is not a trusted proxy", "",
    "the edge", "a decide listener, or one with `proxy_protocol`, was called from outside `trusted_proxies`; an admin or api listener without a key from elsewhere than loopback, or by a web page",
    "add the proxy's address, or close the listener to others")
SZ_REASON(ip_denied, 403, "The client address is not allowed", "",
    "admit", "a `threat.lists` file with `action: deny`, or the admin listener's rules",
    "take the address off the list when it is a mistake")
SZ_REASON(concurrency_limited, 429, "Too many requests at once from this address", "",
    "admit", "`limits.per_address.in_flight`",
    "raise it where many users share an address; name a proxy in `trusted_proxies`, so that its clients count and not itself")
SZ_REASON(missing_token, 401, "A bearer token is required", "",
    "identify", "no credential where the route looks for one",
    "fix the client; `public: true` for what needs no token")
SZ_REASON(malformed_token, 401, "The token is malformed", "",
    "identify", "not a JWT, and no issuer of the route takes opaque tokens; more than 16 KiB; two credentials; subject and claims that do not fit into 2,048 bytes",
    "fix the client")
SZ_REASON(invalid_token, 401, "The token is not valid", "",
    "identify", "the signature, `typ`, `crit`, `iat`, `nbf`, a required claim, or the provider's word on an opaque token",
    "`subzero token inspect -c FILE` says which; many at once after a key rotation: subzero_jwks_refresh_total")
SZ_REASON(expired_token, 401, "The token has expired", "",
    "identify", "`exp`, with `leeway`; longer than `max_lifetime`",
    "the client must renew it; check clocks when it is fresh")
SZ_REASON(revoked_token, 401, "The token has been revoked", "",
    "identify, and once more before the answer when the request waited", "a revocation by token, `jti`, `sid`, subject, client, issuer or key",
    "nothing: somebody revoked it (audit kind `revocation`)")
SZ_REASON(wrong_issuer, 401, "The token's issuer is not accepted here", "",
    "identify", "`iss` is not configured, or not one of the route's `issuers`",
    "add the issuer to the route, or fix the client; `iss` is compared byte for byte")
SZ_REASON(wrong_audience, 401, "The token is not meant for this audience", "",
    "identify", "`aud` names none of the issuer's or route's `audiences`",
    "have the token issued for this API")
SZ_REASON(algorithm_not_allowed, 401, "The token's algorithm is not allowed", "",
    "identify", "`alg` is not on the issuer's list, does not fit the key, or is `none`",
    "add the algorithm when the provider really uses it; otherwise this is an attack")
SZ_REASON(sender_constrained, 401, "The token is bound to a key that was not proven", "",
    "identify", "`cnf` asks for a proof that this request did not bring: its client certificate, or DPoP, which is not supported",
    "use mutual TLS (`client_ca`) up to the gateway")
SZ_REASON(insufficient_scope, 403, "The token lacks a required scope", "",
    "authorize", "`auth.scopes` of the route; the challenge lists them",
    "grant the scope, or lower what the route asks")
SZ_REASON(claim_mismatch, 403, "A required claim does not match", "",
    "authorize; decide, for a claim that cannot be a header", "`auth.claims` of the route, or a control character in a claim that a header is made from",
    "fix the claim at the provider, or the rule")
SZ_REASON(not_permitted, 403, "The subject may not do this here", "",
    "authorize", "the relation was asked and is not there",
    "write the tuple; `subzero fga explain` shows the way that was looked for")
SZ_REASON(identity_unavailable, 503, "The identity provider cannot be asked", "identity",
    "identify", "no usable key of the issuer, or the provider did not answer about an opaque token",
    "subzero_breaker_state{dependency=\"issuer:NAME\"}, subzero_jwks_age_seconds, /health: restore the provider; `state_dir` carries keys over a start")
SZ_REASON(revocation_unavailable, 503, "Revocations cannot be checked", "revocation",
    "identify", "Redis cannot be asked and `revocation.on_store_failure: closed`",
    "restore Redis, or accept `open`")
SZ_REASON(authz_unavailable, 503, "The authorization service cannot be asked", "authz",
    "authorize", "OpenFGA did not answer in time, its breaker is open, or a copy lags too far",
    "subzero_breaker_state{dependency=\"fga\"}; restore the store")
SZ_REASON(authz_error, 503, "The authorization question could not be answered", "authz",
    "authorize", "the store refused the question: another model, an unknown type or relation, too deep",
    "`subzero check` against the model; `fga.model_id`")
SZ_REASON(threat_challenge, 401, "A stronger authentication is required", "",
    "admit, identify", "the score reached `threat.thresholds.challenge`",
    "/threat shows the evidence; `threat.allow` for what is ours")
SZ_REASON(threat_blocked, 403, "Blocked", "",
    "admit, identify", "the score reached `threat.thresholds.block`, or a block by hand",
    "`DELETE /threat/blocks/ID` lifts it")
SZ_REASON(audit_unavailable, 503, "The decision cannot be recorded", "audit",
    "commit", "`audit.required`, and the journal cannot be written in time",
    "make room on the disk; subzero_audit_failing, subzero_audit_commit_seconds")
SZ_REASON(overloaded, 503, "Overloaded", "overload",
    "the edge; identify", "`limits.max_in_flight` requests are under way, or the queue of verifications is full",
    "more workers or instances; subzero_requests_in_progress, subzero_verifications_shed_total")
SZ_REASON(draining, 503, "Shutting down", "",
    "nowhere yet", "kept for a request that a stopping process cannot take; a drain closes its listeners instead",
    "nothing: the next instance answers")
SZ_REASON(upstream_unavailable, 502, "The upstream cannot be reached", "upstream",
    "proxy", "no url of the upstream takes connections",
    "restore it; the log names the url")
SZ_REASON(upstream_timeout, 504, "The upstream did not answer in time", "upstream",
    "proxy", "`timeouts.connect`, `timeouts.first_byte` or the request's deadline",
    "subzero_dependency_duration_seconds{dependency=\"upstream:NAME\"}; raise the timeout only for what is slow by nature")
SZ_REASON(upstream_error, 502, "The upstream's answer is invalid", "upstream",
    "proxy", "the answer is not HTTP, says two lengths, or ends before its head does",
    "the log says what was wrong with it")
SZ_REASON(rate_limited, 429, "Rate limit exceeded", "",
    "limit", "a policy of the route; `RateLimit` and `Retry-After` say when to come again",
    "nothing, or a larger policy")
SZ_REASON(fail_closed, 503, "The rate limit cannot be checked", "rate_limit",
    "limit", "Redis did not answer and the policy is `on_store_failure: closed`",
    "restore Redis")
SZ_REASON(redis_timeout, 503, "The rate limit store timed out", "rate_limit",
    "limit", "allowed without its store (`open`): the answer carries this reason, its status is the upstream's",
    "restore Redis; subzero_redis_commands_total{result=\"timeout\"}")
SZ_REASON(redis_noscript_retry, 503, "The rate limit store lost its script", "rate_limit",
    "limit", "as above: the script was still missing after it was loaded once more",
    "something flushes scripts in Redis")
SZ_REASON(redis_connection_error, 503, "The rate limit store cannot be reached", "rate_limit",
    "limit", "as above: any other failure of Redis",
    "/health says which")
SZ_REASON(emergency_local_limit, 429, "Emergency rate limit exceeded", "",
    "limit", "the store is gone and the `emergency` rate of the policy is used up",
    "restore Redis; raise `emergency` if it is too tight")
SZ_REASON(circuit_open, 503, "The rate limit store is known to be down", "rate_limit",
    "limit", "the breaker of Redis is open: `closed` refuses with it, `open` allows and says so",
    "restore Redis; the breaker tries again by itself")
/* clang-format on */
#undef SZ_REASON

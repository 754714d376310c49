/* What audit records are made of.  SZ_AUDIT_KIND(id, name, what it says): the closed list of kinds.
 * SZ_AUDIT_TEXT(id, name, bytes): the text fields, in the order of a line, each with its bound as written. */
/* clang-format off */
#ifdef SZ_AUDIT_KIND
SZ_AUDIT_KIND(DECISION,   "decision",   "a request was allowed or denied")
SZ_AUDIT_KIND(ADMIN,      "admin",      "somebody used the admin listener to change something")
SZ_AUDIT_KIND(REVOCATION, "revocation", "a token, session, subject, client, issuer or key was revoked")
SZ_AUDIT_KIND(RELOAD,     "reload",     "a configuration was loaded, or refused")
SZ_AUDIT_KIND(BLOCK,      "block",      "an address or subject was blocked")
SZ_AUDIT_KIND(UNBLOCK,    "unblock",    "a block was lifted")
SZ_AUDIT_KIND(WRITE,      "write",      "tuples, models or stores were changed over the API")
SZ_AUDIT_KIND(START,      "start",      "the journal was opened by a process")
SZ_AUDIT_KIND(STOP,       "stop",       "the process ended as it should")
SZ_AUDIT_KIND(SEGMENT,    "segment",    "first record of a segment: where the streams begin")
SZ_AUDIT_KIND(CHECKPOINT, "checkpoint", "the heads of both streams, signed when there is a key")
SZ_AUDIT_KIND(RETENTION,  "retention",  "segments were removed")
SZ_AUDIT_KIND(GAP,        "gap",        "so many records are missing, and why")
SZ_AUDIT_KIND(TORN,       "torn",       "an unfinished end was moved aside")
SZ_AUDIT_KIND(DAMAGE,     "damage",     "a segment is damaged: the journal goes on in a new one")
SZ_AUDIT_KIND(DENIALS,    "denials",    "so many unauthenticated denials of one address, counted and not listed")
#undef SZ_AUDIT_KIND
#endif
#ifdef SZ_AUDIT_TEXT
SZ_AUDIT_TEXT(REQUEST_ID, "request_id", 64)
SZ_AUDIT_TEXT(TRACE_ID,   "trace_id",   32)
SZ_AUDIT_TEXT(ROUTE,      "route",      128)
SZ_AUDIT_TEXT(METHOD,     "method",     32)
SZ_AUDIT_TEXT(PATH,       "path",       512)
SZ_AUDIT_TEXT(SUBJECT,    "subject",    256)
SZ_AUDIT_TEXT(CLIENT,     "client",     256)
SZ_AUDIT_TEXT(ISSUER,     "issuer",     128)
SZ_AUDIT_TEXT(TENANT,     "tenant",     128)
SZ_AUDIT_TEXT(ACTION,     "action",     64)
SZ_AUDIT_TEXT(OBJECT,     "object",     256)
SZ_AUDIT_TEXT(RELATION,   "relation",   320)
SZ_AUDIT_TEXT(SOURCE,     "source",     32)
SZ_AUDIT_TEXT(POLICY,     "policy",     64)
SZ_AUDIT_TEXT(RESULT,     "result",     64)
SZ_AUDIT_TEXT(DETAIL,     "detail",     512)
#undef SZ_AUDIT_TEXT
#endif
/* clang-format on */

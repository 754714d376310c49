/* What tests of revocation share: asking for one, and what a token is answered. */
#ifndef INTEGRATION_REVOKE_KIT_H
#define INTEGRATION_REVOKE_KIT_H

#include "integration/harness.h"

/* POST /revocations with this body; fields: further lines, each with its CRLF, or NULL.  The status; r may be NULL. */
int revoke_post(struct gateway *g, const char *body, const char *fields, struct http1_response *r);
/* printf for the body. */
int revoke_by(struct gateway *g, const char *fmt, ...) SZ_PRINTF(2, 3);
/* GET /x with the token: the status. */
int revoke_get(struct gateway *g, const char *token);
/* ... becomes `status` within so many ms; the time that took in us, -1: it did not. */
int64_t revoke_becomes(struct gateway *g, const char *token, int status, int ms);
/* /health says so within 10 s. */
bool revoke_health(struct gateway *g, const char *text);

#endif

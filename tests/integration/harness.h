/*
 * Everything for a test of the whole gateway: the binary under a configuration, clients, upstreams, tokens; and the
 * assertions that such tests share.  A test program that includes it runs $SUBZERO's build of the binary, SZ_BINARY.
 */
#ifndef INTEGRATION_HARNESS_H
#define INTEGRATION_HARNESS_H

#include <criterion/criterion.h>
#include <poll.h>
#include <unistd.h>

#include "fake/gateway.h"
#include "fake/http1.h"
#include "fake/http2.h"
#include "fake/issuer.h"
#include "fake/process.h"
#include "fake/upstream.h"

/* Status and, for the gateway's own problems, X-Subzero-Reason ("": not looked at). */
static inline void expect_answer(const struct http1_response *r, int status, const char *reason, const char *what)
{
    char got[64] = "";

    http1_field(r, "x-subzero-reason", got, sizeof(got));
    cr_expect(r->status == status && (reason[0] == '\0' || strcmp(got, reason) == 0),
              "%s: expected %d %s, got %d %s\n%s", what, status, reason, r->status, got,
              r->head.p != NULL ? r->head.p : "");
}

static inline void expect_h2_answer(const struct h2_response *r, int status, const char *reason, const char *what)
{
    char got[64] = "";

    cr_assert_not_null(r, "%s: the connection is gone", what);
    h2_response_field(r, "x-subzero-reason", got, sizeof(got));
    cr_expect(r->status == status && (reason[0] == '\0' || strcmp(got, reason) == 0),
              "%s: expected %d %s, got %d %s (reset %d)", what, status, reason, r->status, got, r->reset);
}

/* The gateway ends well: no leak, no sanitizer's report, exit status 0. */
static inline void stop_gateway(struct gateway *g)
{
    cr_expect(gateway_stop(g), "the gateway did not end well");
}

/*
 * The release build beside ours, for figures that a sanitizer distorts; NULL when it has not been built.  Of whatever
 * age: what must hold is asserted on SZ_BINARY as well.
 */
static inline const char *release_binary(void)
{
    static const char path[] = SZ_SOURCE_DIR "/build/release/subzero";

    return access(path, X_OK) == 0 ? path : NULL;
}

#endif

/*
 * A front proxy before a decide listener, as deploy/examples configures it: the example file itself is used, with
 * its three addresses (front, gateway, upstream) replaced by free ports.
 */
#ifndef INTEROP_FRONT_H
#define INTEROP_FRONT_H

#include "fake/echo.h"
#include "fake/gateway.h"
#include "fake/issuer.h"

struct front {
    struct gateway gateway;
    struct issuer issuer;
    struct echo upstream;
    struct proc proxy;
    uint16_t port; /* where clients go */
};

/* Skips the test when the program is not here. */
void front_start(struct front *f, const char *dialect);
void front_stop(struct front *f);

/* A token with that scope, malloc'ed. */
char *front_token(struct front *f, const char *subject, const char *scope);

/* One request through it: head lines without the last empty one, CRLF at each end; the answer is malloc'ed. */
char *front_ask(struct front *f, const char *fmt, ...) SZ_PRINTF(2, 3);

#endif

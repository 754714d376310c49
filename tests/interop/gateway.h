/* The gateway's binary under an interop test: its configuration, its keys, tokens that it accepts. */
#ifndef INTEROP_GATEWAY_H
#define INTEROP_GATEWAY_H

#include "fake/process.h"

struct gateway {
    struct proc proc;
    uint16_t port, admin;
};

/*
 * Starts it with one listener on `port` (0: a free one); `listener` is what follows the address in its flow mapping,
 * e.g. ", mode: decide, dialect: nginx".  `routes` is the YAML below "routes:", `upstream` the port behind the upstream
 * "app".  Issuer "test" takes tokens of gateway_token.  Asserts that it comes up.
 */
void gateway_start(struct gateway *g, uint16_t port, const char *listener, uint16_t upstream, const char *routes);
/* Asserts that it ends by itself, with 0, when asked to. */
void gateway_stop(struct gateway *g);

/* A token for that subject and scope, good for ten minutes; malloc'ed. */
char *gateway_token(const char *subject, const char *scope);

/* A certificate for localhost and 127.0.0.1 with its key, as ", tls: {...}" for `listener`.  Valid until
 * scratch_remove. */
const char *gateway_tls(void);

#endif

/*
 * The breakers of the process, by the name of what each guards: "redis", "fga", "issuer:NAME", "upstream:NAME".  What
 * is listed here shows in subzero_breaker_state and subzero_breaker_transitions_total.
 * Any thread; a lock that is never held for longer than one walk over the list.
 */
#ifndef SUBZERO_BREAKERS_H
#define SUBZERO_BREAKERS_H

#include "subzero/breaker.h"

#define SZ_DEPENDENCY_NAME_MAX 128 /* bytes of a name; longer ones are cut */

/* `breaker` stays the caller's and must be removed before it goes.  One of the same name is replaced. */
void sz_breakers_add(const char *dependency, const struct sz_breaker *breaker);
void sz_breakers_remove(const struct sz_breaker *breaker); /* no-op when it was replaced */

/* In the order of their names.  `see` runs under the lock: it may read what it is given, and nothing else of here. */
void sz_breakers_each(struct sz_mono now,
                      void (*see)(void *arg, const char *dependency, const struct sz_breaker_look *look), void *arg);
const char *sz_breaker_state_name(enum sz_breaker_state state); /* closed, open, half_open */

#endif

/*
 * Single flight: of all who miss the same key at the same time, anywhere in the process, one does
 * the work and all get its result (P4: 100 identical misses are exactly one call).
 *
 * A flight is not its leader's request: whoever becomes leader starts work that lives on its own, waits
 * for it like the others, and may leave like the others.  The flight ends when the work calls
 * sz_flight_finish, also when nobody waits any more, so that the cache gets filled all the same.
 *
 *     miss -> sz_flight_join -> SZ_FLIGHT_LEAD: look into the cache once more (a flight may have ended since the
 *                               miss), then start the work, which fills the cache and then finishes the flight
 *                            -> 0: somebody else does it
 *                            -> SZ_FLIGHT_FULL: refuse (503 overloaded)
 *     on_done, on the waiter's own loop
 *
 * Bounded: flights, waiters, the size of a result, the age of a flight.
 */
#ifndef SUBZERO_FLIGHT_H
#define SUBZERO_FLIGHT_H

#include "subzero/crypto.h"
#include "subzero/loop.h"

struct sz_flight;  /* one piece of work, held by whoever does it */
struct sz_flights; /* all of one kind: their keys, results and statuses mean the same */

struct sz_flights_conf {
    size_t flights;     /* at once, 1..65,536 */
    size_t waiters;     /* at once, over all flights */
    size_t result;      /* bytes a result may have */
    struct sz_span age; /* a flight older than this is given up on: the next miss starts another */
};
struct sz_flights *sz_flights_new(const struct sz_flights_conf *conf);
/* After all loops that waited have ended and no work is under way that would still finish a flight. */
void sz_flights_free(struct sz_flights **flights);

/*
 * A waiter, embedded in the request; zero-initialise, set on_done.  All of it belongs to its loop's
 * thread.  on_done runs exactly once unless the waiter leaves before, never inside sz_flight_join or sz_flight_finish:
 * status and result are what the work finished with (result borrowed for the call), or -ETIMEDOUT and
 * SZ_NONE at the waiter's own deadline; the flight goes on.
 */
struct sz_flight_wait {
    void (*on_done)(struct sz_flight_wait *wait, int status, struct sz_slice result);
    struct sz_flight_seat *seat; /* NULL: not waiting */
    struct sz_timer timer;
};

enum { SZ_FLIGHT_LEAD = 1, SZ_FLIGHT_FULL };
/*
 * On `loop`'s own thread.  0: waiting.  SZ_FLIGHT_LEAD: waiting, and *lead is to be finished by the caller's work.
 * SZ_FLIGHT_FULL: not waiting, nothing will be called; too many flights or waiters.
 */
int sz_flight_join(struct sz_flights *flights, struct sz_hash128 key, struct sz_loop *loop, struct sz_mono deadline,
                   struct sz_flight_wait *wait, struct sz_flight **lead) SZ_MUST_CHECK;
/* The waiter's thread; no-op when it does not wait.  After it, on_done will not run and `wait` may go. */
void sz_flight_leave(struct sz_flight_wait *wait);
/*
 * Any thread, once per lead, at the very end of the work: fill the cache first.  status is >= 0, or a negative errno
 * other than -ETIMEDOUT.  Copies the result; posts to the loops of all who wait.
 */
void sz_flight_finish(struct sz_flight **lead, int status, struct sz_slice result);

struct sz_flights_stats {
    uint64_t led, joined;     /* joined: calls that were saved (subzero_coalesced_total) */
    uint64_t full, late;      /* refused by a bound; waiters that met their deadline */
    uint64_t given_up;        /* flights older than `age` when another miss came */
    uint64_t flying, waiting; /* now */
};
void sz_flights_stats(struct sz_flights *flights, struct sz_flights_stats *out);

#endif

/*
 * Flights live in hash buckets under striped locks.  Inside a lock there are only list steps: no
 * allocation, no call out, no system call, so a loop thread waits for nanoseconds at most; skipping
 * (as the caches do on a busy set) is no choice here, since a miss that does not join is a second call.
 *
 *   flight ── seats: one per waiter, heap memory of ours, because a message on its way to a loop must
 *             outlive a waiter that leaves.  seat <-> wait point at each other; these two
 *             pointers belong to the waiter's thread alone, all else of a seat to the stripe's lock.
 *
 * A seat ends when its message has arrived, or at once when its waiter leaves while the flight still flies.  A
 * flight ends when nobody refers to it: the work until it has finished, each seat.
 */
#include "subzero/flight.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#define STRIPES     64
#define FLIGHTS_MAX 65536

struct sz_flight_seat {
    struct sz_flight *flight;
    struct sz_loop *loop;
    struct sz_flight_wait *wait;         /* NULL: left.  The waiter's thread alone */
    struct sz_flight_seat *next, **prev; /* of the flight */
    struct sz_flight_seat *delivery;     /* finish's own list of whom to tell */
    struct sz_msg msg;                   /* how it is told: from another thread ... */
    struct sz_defer defer;               /* ... or from its own */
};

struct sz_flight {
    struct sz_flights *flights;
    struct sz_hash128 key;
    struct sz_mono until;
    unsigned refs;
    bool joinable, ended;
    struct sz_flight *next, **prev;         /* in its bucket, while joinable */
    struct sz_flight *all_next, **all_prev; /* of its stripe, as long as it exists */
    struct sz_flight_seat *seats;
    int status;
    size_t result_n;
    char *result;
};

struct stripe {
    _Alignas(SZ_CACHE_LINE) pthread_mutex_t lock;
    struct sz_flight *all;
};

struct sz_flights {
    struct sz_flights_conf conf;
    size_t n_buckets; /* a power of two, at least STRIPES */
    struct sz_flight **buckets;
    _Atomic uint64_t led, joined, full, late, given_up, flying, waiting;
    struct stripe stripes[STRIPES];
};

static void count(_Atomic uint64_t *n)
{
    atomic_fetch_add_explicit(n, 1, memory_order_relaxed);
}

static bool take_place(_Atomic uint64_t *taken, size_t most)
{
    if (atomic_fetch_add_explicit(taken, 1, memory_order_relaxed) < most)
        return true;
    atomic_fetch_sub_explicit(taken, 1, memory_order_relaxed);
    return false;
}

static void give_place(_Atomic uint64_t *taken)
{
    atomic_fetch_sub_explicit(taken, 1, memory_order_relaxed);
}

static size_t bucket_of(const struct sz_flights *flights, struct sz_hash128 key)
{
    return key.w[0] & (flights->n_buckets - 1);
}

static struct stripe *stripe_of(struct sz_flights *flights, struct sz_hash128 key)
{
    return &flights->stripes[bucket_of(flights, key) % STRIPES];
}

struct sz_flights *sz_flights_new(const struct sz_flights_conf *conf)
{
    struct sz_flights *flights = NULL;

    SZ_ASSERT(conf->flights > 0 && conf->flights <= FLIGHTS_MAX && conf->waiters > 0 && conf->age.us > 0);
    flights = aligned_alloc(SZ_CACHE_LINE, sizeof(*flights));
    SZ_ASSERT(flights != NULL);
    memset(flights, 0, sizeof(*flights));
    flights->conf = *conf;
    for (flights->n_buckets = STRIPES; flights->n_buckets < conf->flights;)
        flights->n_buckets *= 2;
    flights->buckets = sz_xcalloc(flights->n_buckets, sizeof(*flights->buckets));
    for (size_t i = 0; i < STRIPES; i++)
        SZ_ASSERT(pthread_mutex_init(&flights->stripes[i].lock, NULL) == 0);
    return flights;
}

static void free_flight(struct sz_flight *flight)
{
    free(flight->result);
    free(flight);
}

void sz_flights_free(struct sz_flights **flights)
{
    if (*flights == NULL)
        return;
    for (size_t i = 0; i < STRIPES; i++) {
        struct stripe *stripe = &(*flights)->stripes[i];
        for (struct sz_flight *flight = stripe->all, *next; flight != NULL; flight = next) {
            for (struct sz_flight_seat *seat = flight->seats, *after; seat != NULL; seat = after) {
                after = seat->next;
                free(seat);
            }
            next = flight->all_next;
            free_flight(flight);
        }
        pthread_mutex_destroy(&stripe->lock);
    }
    free((*flights)->buckets);
    free(*flights);
    *flights = NULL;
}

/* ---- lists, all under the stripe's lock --------------------------------------------------- */

static void close_to_joiners(struct sz_flight *flight)
{
    if (!flight->joinable)
        return;
    flight->joinable = false;
    *flight->prev = flight->next;
    if (flight->next != NULL)
        flight->next->prev = flight->prev;
}

static void open_to_joiners(struct sz_flight *flight, struct stripe *stripe)
{
    struct sz_flight **bucket = &flight->flights->buckets[bucket_of(flight->flights, flight->key)];

    flight->joinable = true;
    flight->next = *bucket;
    flight->prev = bucket;
    if (flight->next != NULL)
        flight->next->prev = &flight->next;
    *bucket = flight;
    flight->all_next = stripe->all;
    flight->all_prev = &stripe->all;
    if (flight->all_next != NULL)
        flight->all_next->all_prev = &flight->all_next;
    stripe->all = flight;
}

static void add_seat(struct sz_flight *flight, struct sz_flight_seat *seat)
{
    seat->flight = flight;
    seat->next = flight->seats;
    seat->prev = &flight->seats;
    if (seat->next != NULL)
        seat->next->prev = &seat->next;
    flight->seats = seat;
    flight->refs++;
}

static void remove_seat(struct sz_flight_seat *seat)
{
    *seat->prev = seat->next;
    if (seat->next != NULL)
        seat->next->prev = seat->prev;
}

static struct sz_flight *find(struct sz_flights *flights, struct sz_hash128 key, struct sz_mono now)
{
    struct sz_flight *flight = flights->buckets[bucket_of(flights, key)];

    while (flight != NULL && !sz_hash128_eq(flight->key, key))
        flight = flight->next;
    if (flight == NULL || now.us < flight->until.us)
        return flight;
    close_to_joiners(flight); /* its work is lost or hangs; whoever still waits has a deadline */
    count(&flights->given_up);
    return NULL;
}

/* One reference less; true: it was the last, the flight is nobody's and to be freed outside the lock. */
static bool unref(struct sz_flight *flight)
{
    if (--flight->refs > 0)
        return false;
    *flight->all_prev = flight->all_next;
    if (flight->all_next != NULL)
        flight->all_next->all_prev = flight->all_prev;
    return true;
}

/* ---- waiting ------------------------------------------------------------------------------ */

/* Unless its message is on its way (`told` false and the flight has ended): then that will end it. */
static void end_seat(struct sz_flight_seat *seat, bool told)
{
    struct sz_flight *flight = seat->flight;
    struct stripe *stripe = stripe_of(flight->flights, flight->key);
    bool mine, last = false;

    pthread_mutex_lock(&stripe->lock);
    mine = told || !flight->ended;
    if (mine) {
        remove_seat(seat);
        last = unref(flight);
    }
    pthread_mutex_unlock(&stripe->lock);
    if (mine)
        free(seat);
    if (last)
        free_flight(flight);
}

/* The waiter waits no more: timer, both pointers, its place among the waiters. */
static void part(struct sz_flight_seat *seat, struct sz_flight_wait *wait)
{
    sz_timer_cancel(seat->loop, &wait->timer);
    wait->seat = NULL;
    seat->wait = NULL;
    give_place(&seat->flight->flights->waiting);
}

static void arrive(struct sz_flight_seat *seat)
{
    struct sz_flight *flight = seat->flight; /* ended: nobody changes it any more */
    struct sz_flight_wait *wait = seat->wait;

    if (wait != NULL) {
        part(seat, wait); /* before it is told: it may join again, or go */
        wait->on_done(wait, flight->status, sz_slice(flight->result, flight->result_n));
    }
    end_seat(seat, true);
}

static void on_msg(struct sz_msg *msg, struct sz_loop *loop)
{
    (void)loop;
    arrive(SZ_CONTAINER(msg, struct sz_flight_seat, msg));
}

static void on_run(struct sz_defer *defer)
{
    arrive(SZ_CONTAINER(defer, struct sz_flight_seat, defer));
}

void sz_flight_leave(struct sz_flight_wait *wait)
{
    struct sz_flight_seat *seat = wait->seat;

    if (seat == NULL)
        return;
    part(seat, wait);
    end_seat(seat, false); /* at once: clients that come and go cannot make a flight grow */
}

static void on_deadline(struct sz_timer *timer)
{
    struct sz_flight_wait *wait = SZ_CONTAINER(timer, struct sz_flight_wait, timer);

    count(&wait->seat->flight->flights->late);
    sz_flight_leave(wait);
    wait->on_done(wait, -ETIMEDOUT, SZ_NONE);
}

static void take_seat(struct sz_flight_seat *seat, struct sz_flight_wait *wait, struct sz_mono deadline)
{
    seat->wait = wait;
    wait->seat = seat;
    wait->timer.on_fire = on_deadline;
    if (deadline.us < SZ_NEVER.us)
        sz_timer_start(seat->loop, &wait->timer, deadline);
}

static struct sz_flight_seat *new_seat(struct sz_loop *loop)
{
    struct sz_flight_seat *seat = sz_xcalloc(1, sizeof(*seat));

    seat->loop = loop;
    seat->msg.on_msg = on_msg;
    seat->defer.on_run = on_run;
    return seat;
}

static struct sz_flight *new_flight(struct sz_flights *flights, struct sz_hash128 key, struct sz_mono now)
{
    struct sz_flight *flight = sz_xcalloc(1, sizeof(*flight));

    flight->flights = flights;
    flight->key = key;
    flight->until = sz_after(now, flights->conf.age);
    flight->refs = 1; /* the work's */
    return flight;
}

/* Puts the seat on the flight of this key, which is `fresh` if there was none; NULL: no room for one more flight. */
static struct sz_flight *board(struct sz_flights *flights, struct sz_flight_seat *seat, struct sz_flight *fresh,
                               struct sz_mono now)
{
    struct stripe *stripe = stripe_of(flights, fresh->key);
    struct sz_flight *flight;

    pthread_mutex_lock(&stripe->lock);
    flight = find(flights, fresh->key, now);
    if (flight == NULL && take_place(&flights->flying, flights->conf.flights)) {
        flight = fresh;
        open_to_joiners(flight, stripe);
    }
    if (flight != NULL)
        add_seat(flight, seat);
    pthread_mutex_unlock(&stripe->lock);
    return flight;
}

int sz_flight_join(struct sz_flights *flights, struct sz_hash128 key, struct sz_loop *loop, struct sz_mono deadline,
                   struct sz_flight_wait *wait, struct sz_flight **lead)
{
    struct sz_mono now = sz_loop_now(loop);
    struct sz_flight_seat *seat;
    struct sz_flight *flight, *fresh;

    SZ_ASSERT(wait->seat == NULL);
    *lead = NULL;
    if (!take_place(&flights->waiting, flights->conf.waiters)) {
        count(&flights->full);
        return SZ_FLIGHT_FULL;
    }
    seat = new_seat(loop);
    fresh = new_flight(flights, key, now);
    flight = board(flights, seat, fresh, now);
    if (flight != fresh)
        free(fresh);
    if (flight == NULL) {
        free(seat);
        give_place(&flights->waiting);
        count(&flights->full);
        return SZ_FLIGHT_FULL;
    }
    take_seat(seat, wait, deadline);
    if (flight != fresh) {
        count(&flights->joined);
        return 0;
    }
    count(&flights->led);
    *lead = fresh;
    return SZ_FLIGHT_LEAD;
}

/* ---- the end ------------------------------------------------------------------------------ */

static void deliver(struct sz_flight_seat *seat)
{
    if (sz_loop_current() == seat->loop)
        sz_defer_start(seat->loop, &seat->defer); /* no system call for the usual waiter: the one who leads */
    else
        sz_loop_post(seat->loop, &seat->msg);
}

void sz_flight_finish(struct sz_flight **lead, int status, struct sz_slice result)
{
    struct sz_flight *flight = *lead;
    struct sz_flights *flights = flight->flights;
    struct stripe *stripe = stripe_of(flights, flight->key);
    struct sz_flight_seat *deliveries = NULL;
    char *copy = sz_xmalloc(result.n + 1);
    bool last;

    SZ_ASSERT(status != -ETIMEDOUT && result.n <= flights->conf.result);
    *lead = NULL;
    if (result.n > 0)
        memcpy(copy, result.p, result.n);

    pthread_mutex_lock(&stripe->lock);
    SZ_ASSERT(!flight->ended);
    close_to_joiners(flight);
    flight->ended = true;
    flight->status = status;
    flight->result = copy;
    flight->result_n = result.n;
    for (struct sz_flight_seat *seat = flight->seats; seat != NULL; seat = seat->next) {
        seat->delivery = deliveries;
        deliveries = seat;
    }
    give_place(&flights->flying); /* inside: who finds this key free finds room for it too */
    pthread_mutex_unlock(&stripe->lock);

    for (struct sz_flight_seat *next; deliveries != NULL; deliveries = next) {
        next = deliveries->delivery; /* first: once told, the seat is its loop's */
        deliver(deliveries);
    }
    pthread_mutex_lock(&stripe->lock);
    last = unref(flight);
    pthread_mutex_unlock(&stripe->lock);
    if (last)
        free_flight(flight);
}

void sz_flights_stats(struct sz_flights *flights, struct sz_flights_stats *out)
{
    *out = (struct sz_flights_stats){
        .led = atomic_load_explicit(&flights->led, memory_order_relaxed),
        .joined = atomic_load_explicit(&flights->joined, memory_order_relaxed),
        .full = atomic_load_explicit(&flights->full, memory_order_relaxed),
        .late = atomic_load_explicit(&flights->late, memory_order_relaxed),
        .given_up = atomic_load_explicit(&flights->given_up, memory_order_relaxed),
        .flying = atomic_load_explicit(&flights->flying, memory_order_relaxed),
        .waiting = atomic_load_explicit(&flights->waiting, memory_order_relaxed),
    };
}

/*
 * One breaker, four threads, a dependency that is down half of the time.  However the steps interleave, at most one
 * probe is out at any moment, and each half-open period begins with one.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "subzero/breaker.h"

#define THREADS 4
#define ROUNDS  100000

static struct sz_breaker breaker;
static _Atomic int64_t clock_us = 1;
static _Atomic int probes_out;
static _Atomic uint64_t probes, passes, rejects;

static void call(struct sz_breaker_ticket ticket, int64_t now)
{
    bool down = now / 50000 % 2 != 0;

    if (ticket.answer == SZ_BREAKER_PROBE) {
        atomic_fetch_add(&probes, 1);
        if (atomic_fetch_add(&probes_out, 1) != 0) {
            fprintf(stderr, "tsan_breaker: two probes at once\n");
            abort();
        }
        atomic_fetch_sub(&probes_out, 1); /* before the outcome is told: from then on the next may go */
    } else {
        atomic_fetch_add(&passes, 1);
    }
    sz_breaker_tell(&breaker, ticket,
                    now % 97 == 0 ? SZ_BREAKER_UNKNOWN
                    : down        ? SZ_BREAKER_FAILURE
                                  : SZ_BREAKER_SUCCESS,
                    (struct sz_mono){now});
}

static void *run(void *arg)
{
    for (int i = 0; i < ROUNDS; i++) {
        int64_t now = atomic_fetch_add(&clock_us, 10);
        struct sz_breaker_ticket ticket = sz_breaker_ask(&breaker, (struct sz_mono){now});
        if (ticket.answer == SZ_BREAKER_REJECT)
            atomic_fetch_add(&rejects, 1);
        else
            call(ticket, now);
    }
    return arg;
}

int main(void)
{
    pthread_t threads[THREADS];
    struct sz_breaker_look look;

    sz_breaker_init(&breaker, 5, SZ_MS(2), SZ_SEC(3600), (struct sz_mono){1});
    for (int i = 0; i < THREADS; i++)
        if (pthread_create(&threads[i], NULL, run, NULL) != 0)
            return 1;
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    sz_breaker_look(&breaker, (struct sz_mono){atomic_load(&clock_us)}, &look);
    printf("tsan_breaker: %llu passes, %llu rejects, %llu probes, moved %llu/%llu/%llu\n", (unsigned long long)passes,
           (unsigned long long)rejects, (unsigned long long)probes, (unsigned long long)look.moved[SZ_BREAKER_CLOSED],
           (unsigned long long)look.moved[SZ_BREAKER_OPEN], (unsigned long long)look.moved[SZ_BREAKER_HALF_OPEN]);
    if (probes < look.moved[SZ_BREAKER_HALF_OPEN] || passes == 0 || rejects == 0)
        return 1;
    return 0;
}

/*
 * Flights between three real loops and a worker thread that does the work.  On each loop clients miss again
 * and again on few keys, some leave at once, some have hardly any patience.  Checked: never two
 * calls for one key at a time, each client told exactly once or not at all after it left, and the right
 * result.  ThreadSanitizer watches the rest.
 */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "subzero/flight.h"

#define LOOPS   3
#define CLIENTS 16
#define KEYS    3
#define ROUNDS  300

struct work {
    struct sz_flight *lead;
    uint64_t key;
    struct work *next;
};

struct client {
    struct sz_flight_wait wait;
    struct sz_defer next_round;
    struct sz_loop *loop;
    uint64_t key, random;
    int rounds;
};

struct thread {
    pthread_t thread;
    struct sz_loop *loop;
    struct sz_msg start;
    struct client clients[CLIENTS];
    int running;
};

static struct sz_flights *flights;
static struct thread threads[LOOPS];
static _Atomic int calls_at_once[KEYS];
static _Atomic uint64_t told, late, left;

static pthread_mutex_t queue_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t queue_filled = PTHREAD_COND_INITIALIZER;
static struct work *queue;
static bool no_more_work;

static void fail(const char *what)
{
    fprintf(stderr, "tsan_flight: %s\n", what);
    abort();
}

static void finish(struct sz_flight *lead, uint64_t key)
{
    atomic_fetch_sub(&calls_at_once[key], 1);
    sz_flight_finish(&lead, (int)key, sz_slice(&key, sizeof(key)));
}

static void *work(void *arg)
{
    for (;;) {
        struct work *first;
        pthread_mutex_lock(&queue_lock);
        while (queue == NULL && !no_more_work)
            pthread_cond_wait(&queue_filled, &queue_lock);
        first = queue;
        if (first != NULL)
            queue = first->next;
        pthread_mutex_unlock(&queue_lock);
        if (first == NULL)
            return arg;
        finish(first->lead, first->key);
        free(first);
    }
}

static void start_work(struct client *c, struct sz_flight *lead)
{
    struct work *w;

    if (atomic_fetch_add(&calls_at_once[c->key], 1) != 0)
        fail("two calls for one key");
    if (c->random % 4 == 0) { /* found at once: ends on the leader's own thread */
        finish(lead, c->key);
        return;
    }
    w = sz_xmalloc(sizeof(*w));
    w->lead = lead;
    w->key = c->key;
    pthread_mutex_lock(&queue_lock);
    w->next = queue;
    queue = w;
    pthread_cond_signal(&queue_filled);
    pthread_mutex_unlock(&queue_lock);
}

static void on_done(struct sz_flight_wait *wait, int status, struct sz_slice result)
{
    struct client *c = SZ_CONTAINER(wait, struct client, wait);

    if (sz_loop_current() != c->loop)
        fail("told on another thread");
    if (status == -ETIMEDOUT) {
        atomic_fetch_add(&late, 1);
    } else {
        uint64_t key;
        if (status != (int)c->key || result.n != sizeof(key))
            fail("another flight's status");
        memcpy(&key, result.p, sizeof(key));
        if (key != c->key)
            fail("another flight's result");
        atomic_fetch_add(&told, 1);
    }
    sz_defer_start(c->loop, &c->next_round);
}

static void on_round(struct sz_defer *defer)
{
    struct client *c = SZ_CONTAINER(defer, struct client, next_round);
    struct thread *t = &threads[sz_loop_index(c->loop)];
    struct sz_flight *lead;

    if (c->rounds-- == 0) {
        if (--t->running == 0)
            sz_loop_stop(c->loop);
        return;
    }
    c->random = c->random * UINT64_C(6364136223846793005) + 1442695040888963407;
    c->key = (c->random >> 40) % KEYS;
    if (sz_flight_join(flights, sz_hash128(&(struct sz_key128){{0}}, sz_slice(&c->key, sizeof(c->key))), c->loop,
                       sz_after(sz_loop_now(c->loop), c->random % 16 == 1 ? SZ_MS(0) : SZ_SEC(60)), &c->wait,
                       &lead) == SZ_FLIGHT_FULL)
        fail("full");
    if (lead != NULL)
        start_work(c, lead);
    if (c->random >> 60 == 0) { /* whether it flies still or the message is on its way */
        sz_flight_leave(&c->wait);
        atomic_fetch_add(&left, 1);
        sz_defer_start(c->loop, &c->next_round);
    }
}

static void on_start(struct sz_msg *msg, struct sz_loop *loop)
{
    struct thread *t = SZ_CONTAINER(msg, struct thread, start);

    for (int i = 0; i < CLIENTS; i++)
        sz_defer_start(loop, &t->clients[i].next_round);
}

static void *run(void *arg)
{
    struct thread *t = arg;

    sz_loop_run(t->loop);
    return NULL;
}

static void prepare(struct thread *t, unsigned index)
{
    t->loop = sz_loop_new(index);
    if (t->loop == NULL)
        fail("no loop");
    t->running = CLIENTS;
    t->start.on_msg = on_start;
    for (int i = 0; i < CLIENTS; i++)
        t->clients[i] = (struct client){.wait.on_done = on_done,
                                        .next_round.on_run = on_round,
                                        .loop = t->loop,
                                        .random = index * 1000 + (unsigned)i,
                                        .rounds = ROUNDS};
}

int main(void)
{
    const struct sz_flights_conf conf = {
        .flights = KEYS, .waiters = LOOPS * CLIENTS, .result = sizeof(uint64_t), .age = SZ_SEC(60)};
    struct sz_flights_stats stats;
    pthread_t worker;

    sz_crypto_init();
    flights = sz_flights_new(&conf);
    for (unsigned i = 0; i < LOOPS; i++)
        prepare(&threads[i], i);
    if (pthread_create(&worker, NULL, work, NULL) != 0)
        return 1;
    for (int i = 0; i < LOOPS; i++) {
        if (pthread_create(&threads[i].thread, NULL, run, &threads[i]) != 0)
            return 1;
        sz_loop_post(threads[i].loop, &threads[i].start);
    }
    for (int i = 0; i < LOOPS; i++)
        pthread_join(threads[i].thread, NULL);
    pthread_mutex_lock(&queue_lock);
    no_more_work = true;
    pthread_cond_signal(&queue_filled);
    pthread_mutex_unlock(&queue_lock);
    pthread_join(worker, NULL);
    sz_flights_stats(flights, &stats);
    printf("tsan_flight: %llu led, %llu joined, %llu told, %llu late, %llu left\n", (unsigned long long)stats.led,
           (unsigned long long)stats.joined, (unsigned long long)told, (unsigned long long)late,
           (unsigned long long)left);
    if (stats.flying != 0 || told + late + left != stats.led + stats.joined || stats.joined == 0 || left == 0)
        return 1;
    for (int i = 0; i < LOOPS; i++)
        sz_loop_free(&threads[i].loop);
    sz_flights_free(&flights);
    return 0;
}

/* What people see of it: figures, and why it cannot be reached. */
#include <sched.h>

#include "cache/redis_client.h"
#include "subzero/time.h"

static void lock(struct sz_redis_shared *shared)
{
    while (atomic_exchange_explicit(&shared->text, 1, memory_order_acquire) != 0)
        sched_yield();
}

static void unlock(struct sz_redis_shared *shared)
{
    atomic_store_explicit(&shared->text, 0, memory_order_release);
}

void sz_redis_shared_why(struct sz_redis_shared *shared, const struct sz_text *why)
{
    lock(shared);
    shared->why = *why;
    unlock(shared);
}

void sz_redis_shared_look(struct sz_redis_shared *shared, struct sz_redis_look *out)
{
    *out = (struct sz_redis_look){.connections = atomic_load(&shared->connections),
                                  .connections_max = shared->conf->max_connections,
                                  .reachable = atomic_load(&shared->up) > 0,
                                  .noeviction = !atomic_load(&shared->evicts),
                                  .reconnects = atomic_load(&shared->reconnects)};
    for (unsigned i = 0; i < shared->clients; i++) {
        out->commands += atomic_load_explicit(&shared->cells[i].commands, memory_order_relaxed);
        out->timeouts += atomic_load_explicit(&shared->cells[i].timeouts, memory_order_relaxed);
    }
    if (out->reachable)
        return;
    lock(shared);
    out->why = shared->why;
    unlock(shared);
}

struct sz_breaker_look sz_redis_breaker_look(struct sz_redis_shared *shared, enum sz_redis_use use, struct sz_mono now)
{
    struct sz_breaker_look look;
    sz_breaker_look(&shared->breakers[use], now, &look);
    return look;
}

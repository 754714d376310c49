/*
 * Races between threads are harmless here: two may eject the last two urls in the same instant, and then picking
 * falls back to ejected ones.
 */
#include "edge/upstream_health.h"

bool sz_health_usable(const struct sz_health *health, struct sz_mono now)
{
    return atomic_load_explicit(&health->until, memory_order_relaxed) <= now.us;
}

bool sz_health_failed(struct sz_health *all, size_t n, size_t at, struct sz_mono now)
{
    uint32_t failures = atomic_fetch_add_explicit(&all[at].failures, 1, memory_order_relaxed) + 1;
    size_t others = 0;

    if (failures < SZ_HEALTH_FAILURES || !sz_health_usable(&all[at], now))
        return false;
    for (size_t i = 0; i < n; i++)
        others += i != at && sz_health_usable(&all[i], now);
    if (others == 0)
        return false;
    atomic_store_explicit(&all[at].until, sz_after(now, SZ_HEALTH_EJECT).us, memory_order_relaxed);
    return true;
}

void sz_health_ok(struct sz_health *health)
{
    if (atomic_load_explicit(&health->failures, memory_order_relaxed) == 0)
        return; /* the usual case writes nothing: the line stays shared between the threads' caches */
    atomic_store_explicit(&health->failures, 0, memory_order_relaxed);
    atomic_store_explicit(&health->until, 0, memory_order_relaxed);
}

size_t sz_health_pick(const struct sz_health *all, size_t n, unsigned *turn, uint64_t tried, struct sz_mono now)
{
    size_t picked = n;

    for (size_t i = 0; i < n; i++) {
        size_t at = (*turn + i) % n;
        if ((tried >> at & 1) != 0)
            continue;
        if (picked == n)
            picked = at;
        if (sz_health_usable(&all[at], now)) {
            picked = at;
            break;
        }
    }
    if (picked < n)
        *turn = (unsigned)picked + 1; /* not one more than before: the share of one that is aside is everybody's */
    return picked;
}

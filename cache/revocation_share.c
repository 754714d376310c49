/* Revocations as a set that instances share: what one says in Redis, and how two of one are made one. */
#include "cache/share.h"

#include "cache/revocation.h"

static size_t count(void *owner)
{
    const struct sz_revocations *set = owner;
    return set->n;
}

static struct sz_share_item *item(void *owner, size_t at)
{
    struct sz_revocations *set = owner;
    return &set->v[at].share;
}

/* The seal ends with what it says, to the microsecond; INT64_MAX: never. */
static int64_t end_of(const struct sz_revocation *r)
{
    return r->expires > INT64_MAX / 1000000 - 3600 ? INT64_MAX : (r->expires + 3600) * 1000000;
}

static void encode(void *owner, size_t at, struct sz_buf *plain, int64_t *expires)
{
    const struct sz_revocations *set = owner;
    sz_revocation_encode(&set->v[at].r, 0, plain);
    plain->n = SZ_REVOCATION_PLAIN; /* without the checksum: it is sealed */
    *expires = end_of(&set->v[at].r);
}

static enum sz_share_heard hear(void *owner, struct sz_slice plain, size_t *at, bool *stands)
{
    struct sz_revocations *set = owner;
    struct sz_revocation r;
    size_t within;
    if (!sz_revocation_decode(plain, &r, &within))
        return SZ_HEARD_BAD;
    enum sz_revocation_change change = sz_revocation_apply(set, &r, at);
    if (change == SZ_CHANGE_FULL)
        return SZ_HEARD_FULL; /* /health says so */
    const struct sz_revocation *there = &set->v[*at].r;
    *stands = there->before <= r.before && there->expires <= r.expires;
    if (change == SZ_CHANGE_NONE)
        return SZ_HEARD_OLD;
    if (set->share->current) { /* else it was missed, and how long it took says nothing */
        int64_t us = sz_loop_wall(set->loop).us - r.made;
        sz_observe(sz_loop_index(set->loop), set->delay, (struct sz_span){us > 0 ? us : 0});
    }
    sz_revocation_save_kick(set);
    return SZ_HEARD_NEWS;
}

static void on_change(void *owner)
{
    sz_revocation_settle(owner);
}

static void on_deaf(void *owner, bool deaf)
{
    struct sz_revocations *set = owner;
    atomic_store(&set->news.deaf, deaf);
    if (set->on_deaf != NULL)
        set->on_deaf(set->arg, deaf);
}

static const struct sz_share_face face = {.name = "revocations",
                                          .channel = "revoked",
                                          .kind = "revocation",
                                          .component = "revocation",
                                          .what = "revocations",
                                          .sealed = SZ_REVOCATION_PLAIN + SZ_SEAL_OVERHEAD,
                                          .page = 200,
                                          .use = SZ_REDIS_REVOCATION,
                                          .events = SZ_METRIC_revocation_events,
                                          .count = count,
                                          .item = item,
                                          .encode = encode,
                                          .hear = hear,
                                          .on_change = on_change,
                                          .on_deaf = on_deaf};

void sz_revocations_follow(struct sz_revocations *set, struct sz_redis *redis, const struct sz_fleet *fleet,
                           void (*deaf)(void *arg, bool deaf), void *arg)
{
    SZ_ASSERT(set->loop != NULL && set->share == NULL);
    set->on_deaf = deaf;
    set->arg = arg;
    set->delay = sz_series(SZ_METRIC_revocation_delay, NULL);
    set->share = sz_share_new(&face, set, set->loop, redis, fleet);
}

void sz_revocation_untold(struct sz_revocations *set, size_t at)
{
    set->v[at].share.version++;
    set->v[at].share.published = set->share == NULL;
    if (set->share != NULL)
        sz_share_tell(set->share, at);
}

void sz_revocation_share_kick(struct sz_revocations *set)
{
    if (set->share != NULL)
        sz_share_kick(set->share);
}

bool sz_revocation_share_idle(const struct sz_revocations *set)
{
    return set->share == NULL || set->share->publishing == 0;
}

void sz_revocation_share_look(const struct sz_revocations *set, struct sz_revocations_look *out)
{
    out->shared = set->share != NULL;
    out->deaf = atomic_load(&set->news.deaf);
    if (set->share != NULL && set->share->fault.s[0] != '\0' && out->fault.s[0] == '\0')
        out->fault = set->share->fault;
}

/*
 * Blocks as a set that instances share.  What revocations do not need: a record may be followed by its contrary, so an
 * older one that comes back must lose, on an instance, too, that knows neither.  Hence seals that end soon, made anew
 * by whoever holds the record; an instance that is new takes what is fresh, and a copy of what was lifted is not.
 */
#include "cache/threat_store.h"

#include "subzero/crypto.h"

static struct sz_span part_of_fresh(unsigned divisor)
{
    return (struct sz_span){SZ_THREAT_FRESH.us / divisor};
}

static size_t count(void *owner)
{
    const struct sz_threat_store *store = owner;
    return store->blocks.n;
}

static struct sz_share_item *item(void *owner, size_t at)
{
    struct sz_threat_store *store = owner;
    return store->blocks.v[at].r.id == 0 ? NULL : &store->blocks.v[at].share;
}

/* The seal ends when nobody vouches for it any more, and with the record. */
static void encode(void *owner, size_t at, struct sz_buf *plain, int64_t *expires)
{
    const struct sz_threat_store *store = owner;
    const struct sz_threat_record *r = &store->blocks.v[at].r;
    int64_t fresh = sz_loop_wall(store->loop).us + SZ_THREAT_FRESH.us;
    sz_block_encode(r, plain);
    *expires = fresh < r->keep.us ? fresh : r->keep.us;
}

static void replace(struct sz_threat_store *store, struct sz_block *block, const struct sz_threat_record *r)
{
    struct sz_wall before = block->r.until;
    bool kept = !block->r.by_score || !r->by_score;
    sz_blocks_set(&store->blocks, block, r);
    block->share.version++;
    sz_threat_store_apply(store, block, before);
    if (kept)
        sz_threat_store_changed(store);
}

/* Of two about the same the later holds; what either remembers is remembered. */
static enum sz_share_heard merge(struct sz_threat_store *store, struct sz_block *block, struct sz_threat_record *r,
                                 bool *stands)
{
    struct sz_wall keep = block->r.keep.us > r->keep.us ? block->r.keep : r->keep;
    int order = sz_blocks_compare(r, &block->r);
    *stands = order >= 0 && r->keep.us == keep.us;
    r->keep = keep;
    if (order > 0) {
        replace(store, block, r);
        return SZ_HEARD_NEWS;
    }
    if (block->r.keep.us != keep.us) {
        block->r.keep = keep;
        block->share.version++;
    }
    return SZ_HEARD_OLD;
}

static enum sz_share_heard hear(void *owner, struct sz_slice plain, size_t *at, bool *stands)
{
    struct sz_threat_store *store = owner;
    struct sz_threat_record r;
    enum sz_share_heard heard = SZ_HEARD_NEWS;
    if (!sz_block_decode(plain, &r))
        return SZ_HEARD_BAD;
    struct sz_threat_key key = sz_threat_store_key(store, &r);
    struct sz_block *block = sz_blocks_find(&store->blocks, key.hash, &r);
    if (block != NULL) {
        heard = merge(store, block, &r, stands);
    } else {
        block = sz_blocks_add(&store->blocks, key.hash, &r);
        *stands = true;
        if (block == NULL) {
            sz_count(sz_loop_index(store->loop), store->found.dropped, 1);
            return SZ_HEARD_FULL;
        }
        sz_threat_store_apply(store, block, (struct sz_wall){0});
        if (!r.by_score)
            sz_threat_store_changed(store);
    }
    *at = (size_t)(block - store->blocks.v);
    return heard;
}

static void on_change(void *owner)
{
    (void)owner; /* nobody waits for Redis */
}

/* What was heard before goes on until its end. */
static void on_deaf(void *owner, bool deaf)
{
    (void)owner;
    (void)deaf;
}

static const struct sz_share_face face = {.name = "blocks",
                                          .channel = "blocked",
                                          .kind = "block",
                                          .component = "threat",
                                          .what = "blocks",
                                          .sealed = SZ_BLOCK_PLAIN + SZ_SEAL_OVERHEAD,
                                          .page = 50,
                                          .use = SZ_REDIS_THREAT,
                                          .events = SZ_METRIC_threat_blocks,
                                          .count = count,
                                          .item = item,
                                          .encode = encode,
                                          .hear = hear,
                                          .on_change = on_change,
                                          .on_deaf = on_deaf};

void sz_threat_store_share(struct sz_threat_store *store, struct sz_redis *redis, const struct sz_fleet *fleet)
{
    uint32_t random;
    SZ_ASSERT(store->share == NULL);
    sz_random(&random, sizeof(random));
    store->eagerness.us = (int64_t)((uint64_t)part_of_fresh(4).us * random >> 32);
    store->share = sz_share_new(&face, store, store->loop, redis, fleet);
}

void sz_threat_store_tell(struct sz_threat_store *store, struct sz_block *block)
{
    block->share.version++;
    if (store->share == NULL)
        return;
    sz_share_tell(store->share, (size_t)(block - store->blocks.v));
    sz_share_kick(store->share);
}

bool sz_threat_store_untell(struct sz_threat_store *store, struct sz_block *block)
{
    if (block->share.publishing)
        return false;
    if (store->share != NULL)
        sz_share_forget(store->share, &block->share);
    return true;
}

/* One of the fleet is the first: the others hear of it and need not. */
void sz_threat_store_renew(struct sz_threat_store *store, struct sz_wall now)
{
    int64_t soon = now.us + part_of_fresh(2).us + store->eagerness.us;
    if (store->share == NULL)
        return;
    for (size_t i = 0; i < store->blocks.n; i++) {
        struct sz_block *block = &store->blocks.v[i];
        if (block->r.id != 0 && block->share.published && block->share.sealed_until < soon &&
            block->share.sealed_until < block->r.keep.us)
            sz_share_tell(store->share, i);
    }
    sz_share_kick(store->share);
}

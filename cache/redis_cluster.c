/*
 * A cluster: which node holds which slot, as its nodes tell (CLUSTER SLOTS).  Every loop has a map of its own; it is
 * read again when a node sends a command elsewhere, when a command is not answered in time, when a connection is lost,
 * and every half second while a node of the map cannot be reached, since a failover may be under way; never more often
 * than each fifth of a second.
 *
 * Seeds are connected to while there is no map, or nobody in it can be reached.  Nodes that have left the map are
 * dropped by the timer: never inside a callback of one of their own connections.
 */
#include <stdlib.h>

#include "cache/redis_client.h"
#include "subzero/log.h"

enum { REDIRECTS = 5, REPLY_MAX = 1 << 20 };

#define LEAST    SZ_MS(200)
#define AGAIN    SZ_MS(500)
#define SOON     SZ_MS(5)
#define PATIENCE SZ_MS(400) /* with a node that was asked for it */

struct sz_redis_map {
    struct sz_redis *redis;
    uint8_t slots[SZ_REDIS_SLOTS]; /* index of the node + 1; 0: not known */
    bool known, stale;
    struct sz_redis_conn *asking; /* where the question is under way */
    struct sz_mono asked;
    struct sz_timer timer;
};

static struct sz_mono now_of(const struct sz_redis *redis)
{
    return sz_loop_now(redis->loop);
}

/* ---- nodes ------------------------------------------------------------------------------------------------------- */

struct sz_redis_node *sz_redis_node_get(struct sz_redis *redis, struct sz_slice host, uint16_t port)
{
    for (size_t i = 0; i < SZ_REDIS_NODES_MAX; i++) {
        struct sz_redis_node *node = redis->nodes[i];
        if (node != NULL && node->port == port && sz_eq(node->host, host))
            return node;
    }
    struct sz_redis_node *node = host.n > 0 && host.n <= SZ_HOST_MAX && memchr(host.p, '\0', host.n) == NULL
                                     ? sz_redis_node_new(redis, host, port, false)
                                     : NULL;
    if (node != NULL)
        sz_redis_conn_dial(sz_redis_conn_new(redis, node));
    return node;
}

struct sz_redis_node *sz_redis_map_node(struct sz_redis *redis, unsigned slot)
{
    unsigned at = redis->map->slots[slot];
    return at != 0 ? redis->nodes[at - 1] : sz_redis_any_node(redis);
}

static bool map_reachable(const struct sz_redis *redis)
{
    for (size_t i = 0; i < SZ_REDIS_NODES_MAX; i++)
        if (redis->nodes[i] != NULL && redis->nodes[i]->in_map && sz_redis_node_conn(redis->nodes[i]) != NULL)
            return true;
    return false;
}

bool sz_redis_map_wants(const struct sz_redis_node *node)
{
    const struct sz_redis_map *map = node->redis->map;
    return map == NULL || node->in_map || (node->seed && (!map->known || !map_reachable(node->redis)));
}

/* ---- reading the map --------------------------------------------------------------------------------------------- */

static void look_again(struct sz_redis *redis, struct sz_span in)
{
    struct sz_redis_map *map = redis->map;
    struct sz_mono at = sz_after(now_of(redis), in), least = sz_after(map->asked, LEAST);
    if (at.us < least.us)
        at = least;
    if (!sz_timer_armed(&map->timer) || map->timer.at.us > at.us)
        sz_timer_start(redis->loop, &map->timer, at);
}

void sz_redis_map_stale(struct sz_redis *redis)
{
    if (redis->map == NULL || redis->closing)
        return;
    redis->map->stale = true;
    look_again(redis, SOON);
}

void sz_redis_map_conn_lost(struct sz_redis_conn *conn)
{
    struct sz_redis_map *map = conn->redis->map;
    if (map != NULL && map->asking == conn)
        map->asking = NULL;
    sz_redis_map_stale(conn->redis);
}

void sz_redis_map_conn_up(struct sz_redis_conn *conn)
{
    if (conn->redis->map != NULL && !conn->redis->map->known)
        sz_redis_map_stale(conn->redis);
}

struct range { /* of slots, and who holds it */
    unsigned from, to;
    struct sz_redis_node *node;
};

/* [from, to, [host, port, ...], replicas ...] */
static bool read_range(struct sz_redis_conn *conn, const struct sz_redis_reply *item, struct range *out)
{
    const struct sz_redis_reply *v = item->items;
    if (item->type != SZ_REDIS_ARRAY || item->items_n < 3 || v[0].type != SZ_REDIS_INTEGER ||
        v[1].type != SZ_REDIS_INTEGER || v[2].type != SZ_REDIS_ARRAY || v[2].items_n < 2)
        return false;
    const struct sz_redis_reply *host = &v[2].items[0], *port = &v[2].items[1];
    if (v[0].integer < 0 || v[1].integer < v[0].integer || v[1].integer >= SZ_REDIS_SLOTS ||
        port->type != SZ_REDIS_INTEGER || port->integer <= 0 || port->integer > 65535)
        return false;
    /* Without a host: the one that was asked. */
    bool named = host->type == SZ_REDIS_STRING && host->text.n > 0;
    out->from = (unsigned)v[0].integer;
    out->to = (unsigned)v[1].integer;
    out->node = sz_redis_node_get(conn->redis, named ? host->text : conn->node->host, (uint16_t)port->integer);
    return out->node != NULL;
}

static void adopt(struct sz_redis *redis, const struct range *ranges, size_t n)
{
    struct sz_redis_map *map = redis->map;
    memset(map->slots, 0, sizeof(map->slots));
    for (size_t i = 0; i < SZ_REDIS_NODES_MAX; i++)
        if (redis->nodes[i] != NULL)
            redis->nodes[i]->in_map = false;
    for (size_t i = 0; i < n; i++) {
        ranges[i].node->in_map = true;
        for (unsigned s = ranges[i].from; s <= ranges[i].to; s++)
            map->slots[s] = (uint8_t)(ranges[i].node->index + 1);
    }
    map->known = true;
    map->stale = false;
}

static bool on_slots(struct sz_redis_conn *conn, struct sz_redis_pending *p, const struct sz_redis_answer *answer)
{
    struct sz_redis *redis = conn->redis;
    const struct sz_redis_reply *reply = answer->reply;
    (void)p;
    /* Perhaps another one has been asked since; what is later than SZ_REDIS_STALL is never read, so both are recent. */
    if (redis->map->asking == conn)
        redis->map->asking = NULL;
    look_again(redis, AGAIN); /* sweeps, and asks again when this was no good */
    if (reply == NULL || reply->type != SZ_REDIS_ARRAY || reply->items_n == 0 || reply->items_n > SZ_REDIS_SLOTS) {
        if (reply == NULL && !atomic_exchange(&redis->shared->cluster_said, true))
            sz_log(SZ_LOG_ERROR, "redis", "%.*s tells no map of its cluster: %s", SZ_FMT(redis->shared->conf->shown),
                   sz_redis_error_word(answer->error));
        return true;
    }
    struct range *ranges = sz_xcalloc(reply->items_n, sizeof(*ranges));
    size_t n = 0, slots = 0;
    for (size_t i = 0; i < reply->items_n && slots <= SZ_REDIS_SLOTS; i++) {
        if (!read_range(conn, &reply->items[i], &ranges[n]))
            continue;
        slots += ranges[n].to - ranges[n].from + 1;
        n++;
    }
    /* Ranges that overlap are no map, and thousands that each hold all slots would keep the loop busy. */
    if (n > 0 && slots <= SZ_REDIS_SLOTS)
        adopt(redis, ranges, n);
    free(ranges);
    return true;
}

static void ask(struct sz_redis *redis)
{
    struct sz_redis_map *map = redis->map;
    struct sz_redis_node *node = sz_redis_any_node(redis);
    struct sz_redis_conn *conn = node != NULL ? (struct sz_redis_conn *)(uintptr_t)sz_redis_node_conn(node) : NULL;
    if (conn == NULL)
        return;
    map->asked = now_of(redis);
    map->asking = conn;
    struct sz_redis_pending *p =
        sz_redis_conn_say(conn, (struct sz_slice[]){SZ_S("CLUSTER"), SZ_S("SLOTS")}, 2, on_slots);
    p->limit = REPLY_MAX;
}

/* ---- the timer --------------------------------------------------------------------------------------------------- */

static void retire(struct sz_redis *redis, struct sz_redis_node *node)
{
    if (node->seed) {
        for (struct sz_redis_conn *c = node->conns; c != NULL; c = c->next)
            if (c->state != SZ_REDIS_DOWN)
                sz_redis_conn_drop(c, "not needed any more");
        return;
    }
    if (sz_redis_listens_at(redis, node))
        return; /* it comes to another one when that is lost */
    sz_redis_node_free(&node);
}

/* True: some node of the map cannot be reached. */
static bool sweep(struct sz_redis *redis)
{
    bool lost = false;
    for (size_t i = 0; i < SZ_REDIS_NODES_MAX; i++) {
        struct sz_redis_node *node = redis->nodes[i];
        if (node == NULL)
            continue;
        if (node->in_map && sz_redis_node_conn(node) == NULL)
            lost = true;
        if (!sz_redis_map_wants(node) && redis->map->known)
            retire(redis, node);
    }
    return lost;
}

static void on_timer(struct sz_timer *timer)
{
    struct sz_redis_map *map = SZ_CONTAINER(timer, struct sz_redis_map, timer);
    struct sz_redis *redis = map->redis;
    if (sweep(redis))
        map->stale = true;
    if (map->stale && (map->asking == NULL || sz_between(map->asked, now_of(redis)).us >= PATIENCE.us))
        ask(redis);
    if (map->stale)
        look_again(redis, AGAIN);
}

/* ---- redirections ------------------------------------------------------------------------------------------------ */

bool sz_redis_map_redirect(struct sz_redis_pending *p, struct sz_slice error)
{
    struct sz_redis *redis = p->redis;
    struct sz_slice host;
    unsigned slot;
    uint16_t port;
    bool asking;
    if (sz_starts_with(error, SZ_S("CLUSTERDOWN")))
        sz_redis_map_stale(redis);
    if (!sz_redis_redirect(error, &asking, &slot, &host, &port) || p->redirects >= REDIRECTS)
        return false;
    struct sz_redis_node *node = sz_redis_node_get(redis, host.n > 0 ? host : p->node->host, port);
    if (node == NULL)
        return false;
    if (!asking) {
        redis->map->slots[slot] = (uint8_t)(node->index + 1);
        sz_redis_map_stale(redis);
    }
    node->in_map = true; /* until a map says otherwise */
    p->redirects++;
    p->asking = asking;
    p->was_sent = false;
    int rc = sz_redis_dispatch(p, node);
    if (rc != 0)
        sz_redis_fail(p, (enum sz_redis_result)rc);
    return true;
}

/* ---- life -------------------------------------------------------------------------------------------------------- */

void sz_redis_map_init(struct sz_redis *redis)
{
    const struct sz_conf_redis *conf = redis->shared->conf;
    redis->map = sz_xcalloc(1, sizeof(*redis->map));
    redis->map->redis = redis;
    redis->map->timer.on_fire = on_timer;
    redis->map->stale = true;
    sz_redis_health_start(redis);
    for (size_t i = 0; i < conf->places_n; i++) {
        struct sz_redis_node *node = sz_redis_node_get(redis, conf->places[i].host, conf->places[i].port);
        SZ_ASSERT(node != NULL);
        node->seed = true;
    }
}

void sz_redis_map_stop(struct sz_redis *redis)
{
    if (redis->map == NULL)
        return;
    sz_redis_health_stop(redis);
    sz_timer_cancel(redis->loop, &redis->map->timer);
}

void sz_redis_map_fini(struct sz_redis *redis)
{
    free(redis->map);
    redis->map = NULL;
}

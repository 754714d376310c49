/*
 * Which of a cluster's nodes answer.
 *
 * A node that hangs keeps its connections: the kernel takes what is sent to it, and opens new ones for it.  So an open
 * connection shows nothing; an answer does.  Each node is made to say something at least every half second, also where
 * nobody asks it for anything, and one that owes an answer for longer than a command may take is silent: as long as
 * there is another one it is neither asked for the map nor listened at, and what it fails to answer is not held
 * against the whole.
 */
#include "cache/redis_client.h"
#include "subzero/crypto.h"

#define BEAT  SZ_MS(500)
#define ALIVE SZ_SEC(1)

static struct sz_mono now_of(const struct sz_redis *redis)
{
    return sz_loop_now(redis->loop);
}

static bool overdue(const struct sz_redis_conn *conn)
{
    const struct sz_redis_pending *oldest = conn->sent.first;
    return oldest != NULL && sz_between(oldest->sent, now_of(conn->redis)).us > conn->redis->shared->conf->timeout.us;
}

const struct sz_redis_conn *sz_redis_node_conn(const struct sz_redis_node *node)
{
    const struct sz_redis_conn *found = NULL;
    for (const struct sz_redis_conn *c = node->conns; c != NULL; c = c->next)
        if (c->state == SZ_REDIS_UP && (found == NULL || overdue(found)))
            found = c;
    return found;
}

static bool is_good(const struct sz_redis_node *node)
{
    const struct sz_redis_conn *conn = sz_redis_node_conn(node);
    return conn != NULL && !overdue(conn) && node->good.us > now_of(node->redis).us - ALIVE.us;
}

/* ---- whom to ask ------------------------------------------------------------------------------------------------- */

static int usefulness(const struct sz_redis_node *node)
{
    const struct sz_redis_conn *conn = sz_redis_node_conn(node);
    if (is_good(node))
        return node->in_map ? 6 : 5;
    if (conn != NULL && !overdue(conn))
        return node->in_map ? 4 : 3;
    if (sz_redis_node_hopeful(node))
        return 2;
    return sz_redis_map_wants(node) ? 1 : 0;
}

/*
 * The best of all; each of equals as likely as the others, so that whoever met a bad one meets another one next.  (The
 * first after a random place would not do: of three nodes in a table of 64 that is nearly always the same.)
 */
static struct sz_redis_node *best_of(struct sz_redis *redis)
{
    struct sz_redis_node *best[SZ_REDIS_NODES_MAX];
    int best_rank = 1;
    uint32_t n = 0, random;
    for (size_t i = 0; i < SZ_REDIS_NODES_MAX; i++) {
        struct sz_redis_node *node = redis->nodes[i];
        int rank = node != NULL ? usefulness(node) : 0;
        if (rank < best_rank)
            continue;
        n = rank > best_rank ? 0 : n;
        best_rank = rank;
        best[n++] = node;
    }
    sz_random(&random, sizeof(random));
    return n > 0 ? best[random % n] : NULL;
}

struct sz_redis_node *sz_redis_any_node(struct sz_redis *redis)
{
    return redis->map == NULL ? redis->nodes[0] : best_of(redis);
}

/* ---- excuses ----------------------------------------------------------------------------------------------------- */

static bool another_is_good(const struct sz_redis *redis, const struct sz_redis_node *but)
{
    for (size_t i = 0; i < SZ_REDIS_NODES_MAX; i++) {
        const struct sz_redis_node *node = redis->nodes[i];
        if (node != NULL && node != but && is_good(node))
            return true;
    }
    return false;
}

/*
 * A node that says nothing any more while another one answers.  A slow one, or all of them, is a failure of the whole.
 * What is not ready says so at once: CLUSTERDOWN comes from all nodes for the second in which a master is chosen.
 */
bool sz_redis_health_excuses(const struct sz_redis_pending *p, enum sz_redis_result result)
{
    if (p->redis->map == NULL)
        return false;
    switch (result) {
    case SZ_REDIS_NOT_READY:
        return true;
    case SZ_REDIS_TIMEOUT:
        /* An answer to somebody before it may still have come since it was sent: half of its time is silence enough. */
        return p->node->good.us < now_of(p->redis).us - p->redis->shared->conf->timeout.us / 2 &&
               another_is_good(p->redis, p->node);
    case SZ_REDIS_CONNECTION:
        return another_is_good(p->redis, p->node);
    default:
        return false;
    }
}

/* ---- the beat ---------------------------------------------------------------------------------------------------- */

/* Whatever it says, an error too, it has answered. */
static bool on_pong(struct sz_redis_conn *conn, struct sz_redis_pending *p, const struct sz_redis_answer *answer)
{
    (void)conn;
    (void)p;
    (void)answer;
    return true;
}

/* Those that are asked something anyway show how they are by that. */
static void on_beat(struct sz_timer *timer)
{
    struct sz_redis *redis = SZ_CONTAINER(timer, struct sz_redis, beat);
    for (size_t i = 0; i < SZ_REDIS_NODES_MAX; i++) {
        if (redis->nodes[i] == NULL)
            continue;
        for (struct sz_redis_conn *c = redis->nodes[i]->conns; c != NULL; c = c->next)
            if (c->state == SZ_REDIS_UP && c->sent.n == 0)
                sz_redis_conn_say(c, &(struct sz_slice){"PING", 4}, 1, on_pong);
    }
    sz_timer_start(redis->loop, timer, sz_after(now_of(redis), BEAT));
}

void sz_redis_health_start(struct sz_redis *redis)
{
    redis->beat.on_fire = on_beat;
    sz_timer_start(redis->loop, &redis->beat, sz_after(now_of(redis), BEAT));
}

void sz_redis_health_stop(struct sz_redis *redis)
{
    sz_timer_cancel(redis->loop, &redis->beat);
}

/* A cluster of three masters with a replica each: the map, slots that move, a master that dies under load. */
#include "redis_kit.h"

#include <stdio.h>
#include <stdlib.h>

#include "cache/redis_client.h"

enum { LANES = 32, MARGIN_MS = 250 };

static struct redis_kit k;
static struct redis_cluster cluster;
static struct kit_ask ask;

static void setup(void)
{
    if (!redis_available())
        cr_skip_test("no redis-server here");
    memset(&cluster, 0, sizeof(cluster));
    cr_assert(redis_cluster_start(&cluster), "the cluster did not form");
    kit_init(&k);
    kit_at(&k, cluster.nodes[1].port); /* one seed is enough */
    k.conf.cluster = true;
    k.conf.timeout = SZ_MS(200);
    kit_start(&k);
    kit_connected(&k);
    kit_run(&k, 300);
}

static void teardown(void)
{
    kit_stop(&k);
    redis_cluster_stop(&cluster);
    scratch_remove();
}

TestSuite(redis_cluster, .init = setup, .fini = teardown, .timeout = 120);

Test(redis_cluster, keys_find_their_nodes)
{
    char words[64];
    for (int i = 0; i < 60; i++) {
        snprintf(words, sizeof(words), "SET key-%d %d", i, i);
        cr_assert_eq(kit_say(&k, &ask, words), SZ_REDIS_ANSWERED, "%s: %s %s", words, sz_redis_result_name(ask.result),
                     ask.text);
    }
    for (int i = 0; i < REDIS_CLUSTER_MASTERS; i++)
        cr_expect_gt(redis_number(&cluster.nodes[i], "DBSIZE"), 5);
    /* Each was sent to its node at once: the map had been read. */
    for (int i = 0; i < REDIS_CLUSTER_MASTERS; i++) {
        char *stats = redis_say(&cluster.nodes[i], "INFO errorstats");
        cr_expect_null(strstr(stats, "errorstat_MOVED"), "%s", stats);
        free(stats);
    }
    cr_expect_eq(kit_say(&k, &ask, "MGET {a}1 {a}2"), SZ_REDIS_ANSWERED);
    cr_expect_eq(kit_say(&k, &ask, "PING"), SZ_REDIS_ANSWERED);
}

/* A slot on its way: ASK while it moves, MOVED when it has. */
Test(redis_cluster, a_slot_that_moves)
{
    char from[48], to[48], words[128];
    unsigned slot = sz_redis_slot(SZ_S("a")), owner = slot * REDIS_CLUSTER_MASTERS / 16384, next = (owner + 1) % 3;
    struct redis_server *source = &cluster.nodes[owner], *target = &cluster.nodes[next];
    char *id = redis_say(source, "CLUSTER MYID");
    snprintf(from, sizeof(from), "%.40s", strchr(id, '\n') + 1);
    free(id);
    id = redis_say(target, "CLUSTER MYID");
    snprintf(to, sizeof(to), "%.40s", strchr(id, '\n') + 1);
    free(id);
    snprintf(words, sizeof(words), "CLUSTER SETSLOT %u IMPORTING %s", slot, from);
    cr_assert(redis_says(target, words, "+OK"));
    snprintf(words, sizeof(words), "CLUSTER SETSLOT %u MIGRATING %s", slot, to);
    cr_assert(redis_says(source, words, "+OK"));
    cr_expect_eq(kit_say(&k, &ask, "SET a there"), SZ_REDIS_ANSWERED, "%s", ask.text); /* ASK */
    char *stats = redis_say(source, "INFO errorstats");
    cr_expect_not_null(strstr(stats, "errorstat_ASK"), "%s", stats);
    free(stats);
    snprintf(words, sizeof(words), "CLUSTER SETSLOT %u NODE %s", slot, to);
    cr_assert(redis_says(target, words, "+OK"));
    cr_assert(redis_says(source, words, "+OK"));
    cr_expect_str_eq(kit_text(&k, "GET a"), "there"); /* MOVED */
    kit_run(&k, 500);
    cr_expect_str_eq(kit_text(&k, "GET a"), "there");
}

/* Maps that are none: nothing of them is believed, and the next good one is. */
Test(redis_cluster_maps, hostile_ones, .timeout = 60)
{
    static const char *const maps[] = {
        "*0\r\n",
        "*1\r\n:1\r\n",
        "*1\r\n*2\r\n:0\r\n:16383\r\n",
        "*1\r\n*3\r\n:0\r\n:16384\r\n*2\r\n$1\r\na\r\n:1\r\n",
        "*1\r\n*3\r\n:5\r\n:4\r\n*2\r\n$1\r\na\r\n:1\r\n",
        "*1\r\n*3\r\n:-1\r\n:4\r\n*2\r\n$1\r\na\r\n:1\r\n",
        "*1\r\n*3\r\n:0\r\n:4\r\n*2\r\n$1\r\na\r\n:70000\r\n",
        "*1\r\n*3\r\n:0\r\n:4\r\n*0\r\n",
        "*1\r\n*3\r\n:0\r\n:4\r\n*2\r\n*0\r\n$1\r\nx\r\n",
        "*2\r\n*3\r\n:0\r\n:16383\r\n*2\r\n$1\r\na\r\n:1\r\n*3\r\n:7\r\n:7\r\n*2\r\n$1\r\nb\r\n:1\r\n",
        "-ERR This instance has cluster support disabled\r\n",
        "$5\r\nhello\r\n",
    };
    static struct fake_redis fake;
    struct sz_buf many = {0};
    fake_redis_start(&fake);
    kit_init(&k);
    kit_at(&k, fake.port);
    k.conf.cluster = true;
    k.conf.timeout = SZ_MS(100);
    fake_redis_set(&fake, FAKE_REDIS_REPLY, sz_cstr(maps[0]), true);
    kit_start(&k);
    kit_connected(&k);
    for (size_t i = 0; i < SZ_COUNT(maps); i++) {
        fake_redis_set(&fake, FAKE_REDIS_REPLY, sz_cstr(maps[i]), true);
        kit_run(&k, 600);
        (void)kit_say(&k, &ask, "GET a"); /* goes to the seed, and ends */
    }
    /* More nodes than are followed, all of them nowhere. */
    sz_buf_printf(&many, "*200\r\n");
    for (int i = 0; i < 200; i++)
        sz_buf_printf(&many, "*3\r\n:%d\r\n:%d\r\n*2\r\n$9\r\n127.0.0.1\r\n:%d\r\n", i * 80, i * 80 + 79, 1 + i);
    fake_redis_set(&fake, FAKE_REDIS_REPLY, sz_buf_slice(&many), true);
    kit_run(&k, 1500);
    struct sz_redis_look look;
    sz_redis_shared_look(k.shared, &look);
    cr_expect_leq(look.connections, SZ_REDIS_NODES_MAX);
    /* All slots, thousands of times: were each believed, a loop would stand still for it. */
    many.n = 0;
    sz_buf_printf(&many, "*16384\r\n");
    for (int i = 0; i < 16384; i++)
        sz_buf_printf(&many, "*3\r\n:0\r\n:16383\r\n*2\r\n$9\r\n127.0.0.9\r\n:1\r\n");
    fake_redis_set(&fake, FAKE_REDIS_REPLY, sz_buf_slice(&many), true);
    kit_run(&k, 1500);
    for (size_t i = 0; i < SZ_REDIS_NODES_MAX; i++)
        cr_expect(k.redis->nodes[i] == NULL || !k.redis->nodes[i]->in_map ||
                  !sz_eq(k.redis->nodes[i]->host, SZ_S("127.0.0.9")));
    /* A good one at last. */
    many.n = 0;
    sz_buf_printf(&many, "*1\r\n*3\r\n:0\r\n:16383\r\n*2\r\n$9\r\n127.0.0.1\r\n:%u\r\n", fake.port);
    fake_redis_set(&fake, FAKE_REDIS_REPLY, sz_buf_slice(&many), true);
    kit_run(&k, 3000);
    cr_expect_eq(kit_say(&k, &ask, "GET a"), SZ_REDIS_ANSWERED, "%s", sz_redis_result_name(ask.result));
    kit_stop(&k);
    fake_redis_stop(&fake);
    sz_buf_fini(&many);
    scratch_remove();
}

/* ---- load -------------------------------------------------------------------------------------------------------- */

struct lane {
    struct sz_redis_op op;
    struct sz_timer again;
    char key[16];
    struct sz_mono begun;
    struct sz_mono answered; /* last */
};
static struct {
    struct lane lanes[LANES];
    bool ending;
    unsigned busy, ended[SZ_REDIS_RESULTS];
    int64_t longest_us;
} load;

static void begin(struct lane *lane);

static void on_again(struct sz_timer *timer)
{
    begin(SZ_CONTAINER(timer, struct lane, again));
}

static void later(struct lane *lane)
{
    lane->again.on_fire = on_again;
    if (!load.ending)
        sz_timer_start(k.loop, &lane->again, sz_after(sz_loop_now(k.loop), SZ_MS(2)));
}

static enum sz_breaker_outcome on_done(struct sz_redis_op *op, const struct sz_redis_answer *answer)
{
    struct lane *lane = SZ_CONTAINER(op, struct lane, op);
    int64_t took = sz_between(lane->begun, sz_loop_now(k.loop)).us;
    load.busy--;
    load.ended[answer->result]++;
    load.longest_us = took > load.longest_us ? took : load.longest_us;
    if (answer->result == SZ_REDIS_ANSWERED)
        lane->answered = sz_loop_now(k.loop);
    later(lane);
    return sz_redis_outcome(answer);
}

static void begin(struct lane *lane)
{
    struct sz_slice args[] = {SZ_S("INCR"), sz_cstr(lane->key)};
    struct sz_redis_command command = {.args = args, .args_n = 2, .key = 1};
    lane->op.on_done = on_done;
    lane->begun = sz_loop_now(k.loop);
    int rc = sz_redis_start(k.redis, SZ_REDIS_LIMITS, &command, &lane->op);
    load.busy += rc == 0;
    if (rc != 0) {
        load.ended[rc]++;
        later(lane);
    }
}

static void load_start(void)
{
    memset(&load, 0, sizeof(load));
    for (int i = 0; i < LANES; i++) {
        snprintf(load.lanes[i].key, sizeof(load.lanes[i].key), "lane-%d", i);
        begin(&load.lanes[i]);
    }
}

static bool idle(void *arg)
{
    (void)arg;
    return load.busy == 0;
}

static void load_stop(void)
{
    load.ending = true;
    for (int i = 0; i < LANES; i++)
        sz_timer_cancel(k.loop, &load.lanes[i].again);
    cr_expect(kit_until(&k, idle, NULL, 3000), "%u commands never ended", load.busy);
}

/* All lanes were answered since `from`. */
static struct sz_mono from;
static bool all_answered(void *arg)
{
    (void)arg;
    for (int i = 0; i < LANES; i++)
        if (load.lanes[i].answered.us <= from.us)
            return false;
    return true;
}

static void expect_failover(const char *what)
{
    struct sz_breaker_look look;
    kit_run(&k, 1000);
    from = sz_loop_now(k.loop);
    bool ok = kit_until(&k, all_answered, NULL, 20000);
    cr_expect(ok, "%s: some lanes are not answered again", what);
    cr_expect_gt(load.ended[SZ_REDIS_ANSWERED], 1000);
    cr_expect_eq(load.ended[SZ_REDIS_OPEN], 0, "%s: %u were not asked: one node is not the whole", what,
                 load.ended[SZ_REDIS_OPEN]);
    cr_expect_leq(load.longest_us, k.conf.timeout.us + MARGIN_MS * 1000, "%s: %lld us", what,
                  (long long)load.longest_us);
    look = sz_redis_breaker_look(k.shared, SZ_REDIS_LIMITS, sz_loop_now(k.loop));
    cr_expect_eq(look.moved[SZ_BREAKER_OPEN], 0);
}

Test(redis_cluster, a_master_dies_under_load)
{
    load_start();
    kit_run(&k, 500);
    redis_kill(&cluster.nodes[0]);
    expect_failover("killed");
    load_stop();
    kit_run(&k, 1000);
    struct sz_redis_look look;
    sz_redis_shared_look(k.shared, &look);
    cr_expect(look.reachable);
}

Test(redis_cluster, a_master_stands_still_under_load)
{
    load_start();
    kit_run(&k, 500);
    redis_pause(&cluster.nodes[2]);
    expect_failover("stopped");
    redis_continue(&cluster.nodes[2]); /* and finds itself a replica */
    from = sz_loop_now(k.loop);
    kit_run(&k, 2000);
    cr_expect(all_answered(NULL));
    load_stop();
}

/* Without any of its nodes it is down, and comes back. */
Test(redis_cluster, the_whole_cluster_is_gone)
{
    load_start();
    kit_run(&k, 300);
    for (size_t i = 0; i < SZ_COUNT(cluster.nodes); i++)
        redis_pause(&cluster.nodes[i]);
    kit_run(&k, 3000);
    cr_expect_gt(load.ended[SZ_REDIS_OPEN], 100);
    cr_expect_leq(load.longest_us, k.conf.timeout.us + MARGIN_MS * 1000);
    load_stop();
}

/* ---- whom to ask ------------------------------------------------------------------------------------------------- */

Test(redis_cluster, any_node_is_any_of_them)
{
    enum { TRIES = 600 };
    unsigned met[SZ_REDIS_NODES_MAX] = {0}, n = 0;
    for (int i = 0; i < TRIES; i++)
        met[sz_redis_any_node(k.redis)->index]++;
    for (size_t i = 0; i < SZ_COUNT(met); i++) {
        n += met[i] > 0;
        cr_expect(met[i] == 0 || met[i] > TRIES / 3 / 2, "node %zu: %u of %d", i, met[i], TRIES);
    }
    cr_expect_eq(n, 3);
}

static bool its_map_is_without(void *arg)
{
    const struct redis_server *gone = arg;
    for (size_t i = 0; i < SZ_REDIS_NODES_MAX; i++)
        if (k.redis->nodes[i] != NULL && k.redis->nodes[i]->in_map && k.redis->nodes[i]->port == gone->port)
            return false;
    return true;
}

/* Nothing is asked of it, so nothing fails: its connections stand and look well. */
Test(redis_cluster, an_idle_client_notices_that_a_master_stands_still)
{
    redis_pause(&cluster.nodes[1]);
    cr_expect(kit_until(&k, its_map_is_without, &cluster.nodes[1], 20000));
    for (int i = 0; i < 100; i++)
        cr_expect_neq(sz_redis_any_node(k.redis)->port, cluster.nodes[1].port);
    redis_continue(&cluster.nodes[1]);
}

/* ---- announcements ----------------------------------------------------------------------------------------------- */

static struct heard {
    struct sz_redis_listener listener;
    unsigned messages, downs;
    bool up;
} heard;

static void on_message(struct sz_redis_listener *listener, struct sz_slice channel, struct sz_slice message)
{
    (void)channel;
    (void)message;
    SZ_CONTAINER(listener, struct heard, listener)->messages++;
}

static void on_state(struct sz_redis_listener *listener, bool up)
{
    struct heard *h = SZ_CONTAINER(listener, struct heard, listener);
    h->up = up;
    h->downs += !up;
}

static bool is_up(void *arg)
{
    return ((struct heard *)arg)->up;
}

static bool is_down(void *arg)
{
    return !((struct heard *)arg)->up;
}

static bool hears(void *arg)
{
    return ((struct heard *)arg)->messages > 0;
}

/*
 * Published at `node` until it is heard: from one node to the next an announcement takes a link that a busy machine
 * lets go down for a moment, and is lost with it.
 */
static bool heard_from(const struct redis_server *node)
{
    heard.messages = 0;
    for (int i = 0; i < 50 && heard.messages == 0; i++) {
        free(redis_say(node, "PUBLISH news x"));
        (void)kit_until(&k, hears, &heard, 200);
    }
    return heard.messages > 0;
}

/* The master where it listens: the one that counts a receiver of its own. */
static unsigned listens_at(void)
{
    unsigned at = REDIS_CLUSTER_MASTERS;
    for (int tries = 0; tries < 50 && at == REDIS_CLUSTER_MASTERS; tries++) {
        for (unsigned i = 0; i < REDIS_CLUSTER_MASTERS; i++)
            if (redis_number(&cluster.nodes[i], "PUBLISH news x") == 1)
                at = i;
        kit_run(&k, 20);
    }
    cr_assert_lt(at, REDIS_CLUSTER_MASTERS);
    return at;
}

static void expect_to_hear_elsewhere(void (*befalls)(struct redis_server *server))
{
    heard = (struct heard){.listener = {.on_message = on_message, .on_state = on_state}};
    sz_redis_listen(k.redis, &(struct sz_slice){"news", 4}, 1, &heard.listener);
    cr_assert(kit_until(&k, is_up, &heard, 10000));
    for (int i = 0; i < REDIS_CLUSTER_MASTERS; i++)
        cr_expect(heard_from(&cluster.nodes[i]), "whoever publishes: %d", i);
    unsigned at = listens_at();
    befalls(&cluster.nodes[at]);
    cr_expect(kit_until(&k, is_down, &heard, 10000));
    cr_expect(kit_until(&k, is_up, &heard, 10000));
    cr_expect(heard_from(&cluster.nodes[(at + 1) % REDIS_CLUSTER_MASTERS]));
}

Test(redis_cluster, announcements_are_heard_at_another_node_when_theirs_is_gone)
{
    expect_to_hear_elsewhere(redis_kill);
}

Test(redis_cluster, announcements_are_heard_at_another_node_when_theirs_stands_still)
{
    expect_to_hear_elsewhere(redis_pause);
}

/*
 * What a Redis can do to its clients, each under load: no command ends later than its deadline, each ends once, nothing
 * grows, and once the fault is over commands are answered again.
 */
#include "redis_kit.h"

#include <malloc.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>

enum { LOAD = 64, MARGIN_MS = 250 /* of a machine that does other things, too */ };

static struct redis_kit k;
static struct redis_server server;
static struct fake_redis fake;
static bool faked;

/* ---- load: LOAD commands at any time ----------------------------------------------------------------------------- */

struct lane {
    struct sz_redis_op op;
    struct sz_timer again; /* after a refusal */
    struct sz_mono begun;
};
static struct {
    struct lane lanes[LOAD];
    bool ending;
    unsigned busy;
    unsigned ended[SZ_REDIS_RESULTS];
    int64_t longest_us;
    const char *value;
    unsigned wrong;
} load;

static void begin(struct lane *lane);

static void later(struct lane *lane)
{
    if (!load.ending)
        sz_timer_start(k.loop, &lane->again, sz_after(sz_loop_now(k.loop), SZ_MS(1)));
}

static void on_again(struct sz_timer *timer)
{
    begin(SZ_CONTAINER(timer, struct lane, again));
}

static enum sz_breaker_outcome on_done(struct sz_redis_op *op, const struct sz_redis_answer *answer)
{
    struct lane *lane = SZ_CONTAINER(op, struct lane, op);
    int64_t took = sz_between(lane->begun, sz_loop_now(k.loop)).us;
    load.busy--;
    load.ended[answer->result]++;
    load.longest_us = took > load.longest_us ? took : load.longest_us;
    if (answer->result == SZ_REDIS_ANSWERED && load.value != NULL &&
        (answer->reply->type != SZ_REDIS_STRING || !sz_eq(answer->reply->text, sz_cstr(load.value))))
        load.wrong++;
    later(lane);
    return sz_redis_outcome(answer);
}

static void begin(struct lane *lane)
{
    struct sz_slice args[] = {SZ_S("GET"), SZ_S("load")};
    struct sz_redis_command command = {.args = args, .args_n = 2, .key = 1};
    lane->op.on_done = on_done;
    lane->begun = sz_loop_now(k.loop);
    int rc = sz_redis_start(k.redis, SZ_REDIS_CACHE, &command, &lane->op);
    load.busy += rc == 0;
    if (rc != 0) {
        load.ended[rc]++;
        later(lane);
    }
}

static void load_start(const char *value)
{
    memset(&load, 0, sizeof(load));
    load.value = value;
    for (size_t i = 0; i < LOAD; i++) {
        load.lanes[i].again.on_fire = on_again;
        begin(&load.lanes[i]);
    }
}

static void load_clear(void)
{
    memset(load.ended, 0, sizeof(load.ended));
    load.longest_us = 0;
}

static bool idle(void *arg)
{
    (void)arg;
    return load.busy == 0;
}

static void load_stop(void)
{
    load.ending = true;
    for (size_t i = 0; i < LOAD; i++)
        sz_timer_cancel(k.loop, &load.lanes[i].again);
    cr_expect(kit_until(&k, idle, NULL, 3000), "%u commands never ended", load.busy);
    cr_expect_eq(load.wrong, 0);
}

/* Nothing took longer than the timeout, give or take a busy machine. */
static void expect_in_time(const char *what)
{
    int64_t most = k.conf.timeout.us + MARGIN_MS * 1000;
    cr_expect(load.longest_us <= most, "%s: %lld us, %lld us are allowed", what, (long long)load.longest_us,
              (long long)most);
}

static bool answers_again(void *arg)
{
    (void)arg;
    return load.ended[SZ_REDIS_ANSWERED] > 50;
}

static void expect_recovery(const char *what)
{
    load_clear();
    bool ok = kit_until(&k, answers_again, NULL, 8000);
    cr_expect(ok, "%s: no recovery: %u answered, %u timeouts, %u connection, %u open", what,
              load.ended[SZ_REDIS_ANSWERED], load.ended[SZ_REDIS_TIMEOUT], load.ended[SZ_REDIS_CONNECTION],
              load.ended[SZ_REDIS_OPEN]);
}

/* ---- set up ------------------------------------------------------------------------------------------------------ */

static void setup(void)
{
    if (!redis_available())
        cr_skip_test("no redis-server here");
    server = (struct redis_server){.port = 0};
    kit_init(&k);
    k.conf.timeout = SZ_MS(50);
    k.conf.breaker.open = SZ_MS(300); /* so that recovery is seen soon */
    faked = false;
}

static void start_real(void)
{
    cr_assert(redis_start(&server));
    kit_at(&k, server.port);
    kit_start(&k);
    kit_connected(&k);
    cr_assert(redis_says(&server, "SET load good", "+OK"));
    load_start("good");
    kit_run(&k, 300);
    cr_assert_gt(load.ended[SZ_REDIS_ANSWERED], 100);
    load_clear();
}

static void start_fake(void)
{
    fake_redis_start(&fake);
    faked = true;
    fake_redis_set(&fake, FAKE_REDIS_REPLY, SZ_S("$4\r\ngood\r\n"), true);
    kit_at(&k, fake.port);
    kit_start(&k);
    kit_connected(&k);
    load_start(NULL);
    cr_assert(kit_until(&k, answers_again, NULL, 5000));
    load_clear();
}

static void teardown(void)
{
    load_stop();
    kit_stop(&k);
    if (faked)
        fake_redis_stop(&fake);
    redis_kill(&server);
    scratch_remove();
}

TestSuite(redis_faults, .init = setup, .fini = teardown, .timeout = 120);

/* ---- a real server ----------------------------------------------------------------------------------------------- */

Test(redis_faults, killed_and_started_again)
{
    start_real();
    redis_kill(&server);
    kit_run(&k, 1000);
    expect_in_time("killed");
    cr_expect_gt(load.ended[SZ_REDIS_OPEN], 100); /* the breaker spares everybody the question */
    cr_expect_lt(load.ended[SZ_REDIS_CONNECTION], 200);
    load_clear();
    cr_assert(redis_start(&server));
    cr_assert(redis_says(&server, "SET load good", "+OK"));
    expect_recovery("killed");
}

Test(redis_faults, stopped_and_continued)
{
    struct sz_redis_look look;
    start_real();
    size_t before = mallinfo2().uordblks;
    redis_pause(&server);
    kit_run(&k, 30000);
    expect_in_time("stopped");
    cr_expect_gt(load.ended[SZ_REDIS_OPEN], 100);
    sz_redis_shared_look(k.shared, &look);
    cr_expect_leq(look.connections, look.connections_max);
    cr_expect_lt(mallinfo2().uordblks, before + 1024 * 1024);
    redis_continue(&server);
    expect_recovery("stopped");
}

/* The process lives, its one thread does not: what a slow script does.  After five seconds it says BUSY. */
Test(redis_faults, asleep_for_eight_seconds)
{
    struct wire w;
    start_real();
    cr_assert(wire_open(&w, NULL, server.port));
    cr_assert(
        wire_send(&w, SZ_S("EVAL \"local t=redis.call('TIME')[1] while redis.call('TIME')[1]-t<8 do end\" 0\r\n")));
    kit_run(&k, 8000);
    expect_in_time("asleep");
    expect_recovery("asleep");
    wire_close(&w);
}

Test(redis_faults, flushed_and_of_another_type)
{
    start_real();
    cr_assert(redis_says(&server, "FLUSHALL", "+OK"));
    load.value = NULL;
    kit_run(&k, 200);
    cr_expect_gt(load.ended[SZ_REDIS_ANSWERED], 50); /* nil is an answer */
    cr_assert(redis_says(&server, "LPUSH load x", ":1"));
    load_clear();
    kit_run(&k, 200);
    cr_expect(load.ended[SZ_REDIS_ERROR] >= 5 && load.ended[SZ_REDIS_OPEN] > 0);
    expect_in_time("wrong type");
    cr_assert(redis_says(&server, "DEL load", ":1"));
    expect_recovery("wrong type");
}

Test(redis_faults, memory_is_full)
{
    static struct kit_ask ask;
    static char words[20100];
    start_real();
    cr_assert(redis_says(&server, "CONFIG SET maxmemory 1mb", "+OK"));
    snprintf(words, sizeof(words), "SET other %020000d", 1);
    cr_assert_eq(kit_begin(&k, &ask, SZ_REDIS_CACHE, 1, words), 0);
    kit_run(&k, 100);
    cr_expect(ask.done == 1 && ask.result == SZ_REDIS_OOM, "%s", sz_redis_result_name(ask.result));
    cr_expect(sz_redis_cache_paused(k.redis));
    struct sz_breaker_look look = sz_redis_breaker_look(k.shared, SZ_REDIS_CACHE, sz_loop_now(k.loop));
    cr_expect_eq(look.moved[SZ_BREAKER_OPEN], 0); /* reads go on */
    cr_assert_eq(kit_begin(&k, &ask, SZ_REDIS_LIMITS, 1, words), 0);
    kit_run(&k, 100);
    cr_expect(ask.done == 1 && ask.result == SZ_REDIS_OOM);
    look = sz_redis_breaker_look(k.shared, SZ_REDIS_LIMITS, sz_loop_now(k.loop));
    cr_expect_eq(look.failures, 1); /* a limit that cannot be counted cannot be asked */
    cr_expect_eq(load.ended[SZ_REDIS_OPEN], 0);
}

Test(redis_faults, the_password_is_changed)
{
    start_real();
    cr_assert(redis_says(&server, "CONFIG SET requirepass new", "+OK"));
    server.password = "new";
    free(redis_say(&server, "CLIENT KILL TYPE normal SKIPME yes"));
    kit_run(&k, 1000);
    expect_in_time("password");
    cr_expect_gt(load.ended[SZ_REDIS_OPEN], 50);
    struct sz_redis_look look;
    sz_redis_shared_look(k.shared, &look);
    cr_expect(!look.reachable && strstr(look.why.s, "NOAUTH") != NULL, "%s", look.why.s);
    struct sz_slice none[] = {SZ_S("CONFIG"), SZ_S("SET"), SZ_S("requirepass"), SZ_S("")};
    char *reply = redis_ask(&server, none, SZ_COUNT(none), NULL);
    cr_assert(reply != NULL && reply[0] == '+');
    free(reply);
    expect_recovery("password");
}

/* Closed by the server, which lives on: one loss is one failure, and nobody is kept away for it. */
Test(redis_faults, a_connection_that_is_closed)
{
    start_real();
    kit_run(&k, 1000); /* until it counts as a good one */
    for (int i = 0; i < 3; i++) {
        free(redis_say(&server, "CLIENT KILL TYPE normal SKIPME yes"));
        kit_run(&k, 1200);
    }
    expect_in_time("closed");
    cr_expect_gt(load.ended[SZ_REDIS_ANSWERED], 1000);
    cr_expect_leq(load.ended[SZ_REDIS_CONNECTION], 3 * LOAD);
    cr_expect_eq(load.ended[SZ_REDIS_OPEN], 0);
}

/* ---- a hostile one ----------------------------------------------------------------------------------------------- */

static void fault(const char *what, enum fake_redis_mode mode, struct sz_slice reply, enum sz_redis_result result)
{
    fake_redis_set(&fake, mode, reply, true);
    kit_run(&k, 600);
    cr_expect_gt(load.ended[result], 0, "%s: none ended as %s", what, sz_redis_result_name(result));
    expect_in_time(what);
    fake_redis_set(&fake, FAKE_REDIS_REPLY, SZ_S("$4\r\ngood\r\n"), true);
    expect_recovery(what);
    load_clear();
}

Test(redis_faults, replies_that_are_none)
{
    start_fake();
    fault("silence", FAKE_REDIS_SILENT, SZ_NONE, SZ_REDIS_TIMEOUT);
    fault("cut off", FAKE_REDIS_CUT, SZ_S("$100\r\nhalf of"), SZ_REDIS_CONNECTION);
    fault("cut off at once", FAKE_REDIS_CUT, SZ_S(""), SZ_REDIS_CONNECTION);
    fault("truncated", FAKE_REDIS_REPLY, SZ_S("$60000\r\nhalf of"), SZ_REDIS_TIMEOUT);
    fault("HTTP", FAKE_REDIS_REPLY, SZ_S("HTTP/1.1 400 Bad Request\r\n\r\n"), SZ_REDIS_CONNECTION);
    fault("a negative length", FAKE_REDIS_REPLY, SZ_S("$-7\r\n"), SZ_REDIS_CONNECTION);
    fault("an endless number", FAKE_REDIS_REPLY, SZ_S(":99999999999999999999999999\r\n"), SZ_REDIS_CONNECTION);
    fault("a billion items", FAKE_REDIS_REPLY, SZ_S("*1000000000\r\n"), SZ_REDIS_CONNECTION);
    fault("promises", FAKE_REDIS_REPLY, SZ_S("*16000\r\n*16000\r\n*16000\r\n"), SZ_REDIS_CONNECTION);
    fault("too deep", FAKE_REDIS_REPLY, SZ_S("*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n:1\r\n"),
          SZ_REDIS_CONNECTION);
    fault("two for one", FAKE_REDIS_REPLY, SZ_S("$4\r\ngood\r\n$4\r\ngood\r\n"), SZ_REDIS_ANSWERED);
}

Test(redis_faults, errors_that_mean_not_now)
{
    start_fake();
    fault("loading", FAKE_REDIS_REPLY, SZ_S("-LOADING Redis is loading the dataset in memory\r\n"), SZ_REDIS_NOT_READY);
    fault("master down", FAKE_REDIS_REPLY, SZ_S("-MASTERDOWN Link with MASTER is down\r\n"), SZ_REDIS_NOT_READY);
    fault("read only", FAKE_REDIS_REPLY, SZ_S("-READONLY You can't write against a read only replica.\r\n"),
          SZ_REDIS_NOT_READY);
    fault("no login", FAKE_REDIS_REPLY, SZ_S("-NOAUTH Authentication required.\r\n"), SZ_REDIS_NOT_READY);
    fault("moved", FAKE_REDIS_REPLY, SZ_S("-MOVED 3999 127.0.0.1:6381\r\n"), SZ_REDIS_ERROR);
    fault("busy", FAKE_REDIS_REPLY, SZ_S("-BUSY Redis is busy running a script.\r\n"), SZ_REDIS_NOT_READY);
    fault("no script", FAKE_REDIS_REPLY, SZ_S("-NOSCRIPT No matching script.\r\n"), SZ_REDIS_NOSCRIPT);
}

Test(redis_faults, half_a_gigabyte_is_not_taken)
{
    start_fake();
    size_t before = mallinfo2().uordblks;
    fake_redis_set(&fake, FAKE_REDIS_FLOOD, SZ_S("$536870912\r\n"), true);
    kit_run(&k, 1500);
    cr_expect_gt(load.ended[SZ_REDIS_CONNECTION], 0);
    expect_in_time("flood");
    unsigned long long most = (unsigned long long)atomic_load(&fake.accepted) * 8 * 1024 * 1024;
    cr_expect_lt(atomic_load(&fake.flooded), most, "%llu bytes were taken", atomic_load(&fake.flooded));
    fake_redis_set(&fake, FAKE_REDIS_REPLY, SZ_S("$4\r\ngood\r\n"), true);
    expect_recovery("flood");
    cr_expect_lt(mallinfo2().uordblks, before + 4 * 1024 * 1024);
}

Test(redis_faults, who_answers_nothing_to_the_login_is_left_and_tried_again)
{
    fake_redis_start(&fake);
    faked = true;
    fake_redis_set(&fake, FAKE_REDIS_SILENT, SZ_NONE, false);
    kit_at(&k, fake.port);
    kit_start(&k);
    load_start(NULL);
    kit_run(&k, 2500);
    expect_in_time("login");
    cr_expect(atomic_load(&fake.accepted) >= 2 && atomic_load(&fake.accepted) < 10, "%u", atomic_load(&fake.accepted));
    fake_redis_set(&fake, FAKE_REDIS_REPLY, SZ_S("+PONG\r\n"), false);
    expect_recovery("login");
}

/* Nobody listens: tries are few, and further apart the longer it lasts. */
Test(redis_faults, refused_connections_are_not_hammered)
{
    struct sz_redis_look look;
    kit_at(&k, free_port());
    kit_start(&k);
    load_start(NULL);
    kit_run(&k, 2000);
    expect_in_time("refused");
    sz_redis_shared_look(k.shared, &look);
    cr_expect(!look.reachable && strstr(look.why.s, "refused") != NULL, "%s", look.why.s);
    cr_expect_gt(load.ended[SZ_REDIS_OPEN], 100);
}

/* What timed out is answered later: the late reply must not be taken for the next command's. */
Test(redis_faults, a_late_reply_belongs_to_nobody)
{
    static struct kit_ask late, next;
    start_real();
    load_stop();
    cr_assert_eq(kit_begin(&k, &late, SZ_REDIS_LIMITS, 0, "EVAL return{redis.call('TIME')} 0"), 0);
    redis_pause(&server);
    kit_run(&k, 120);
    cr_expect(late.done == 1 && late.result == SZ_REDIS_TIMEOUT);
    redis_continue(&server);
    cr_expect_eq(kit_say(&k, &next, "GET load"), SZ_REDIS_ANSWERED);
    cr_expect_str_eq(next.text, "good");
    cr_expect_eq(late.done, 1);
}

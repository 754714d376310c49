/*
 * Buckets in a real Redis: the scripts against the calculators on generated traffic, exactness when questions race,
 * names, what stands there and is no bucket, leases, and each way of not getting an answer.
 */
#include <stdio.h>
#include <stdlib.h>

#include "cache/limiter.h"
#include "redis_kit.h"

#define ASKS 64

static struct redis_kit kit;
static struct redis_server server = {.name = "limits"};
static struct sz_conf conf;
static struct sz_conf_rate_limit policy;
static struct sz_conf_route_limit limit = {.policy = &policy, .id = 4711};
static struct sz_limiter *limiter;
static char args[6][24];

static void set_args(const uint64_t *values, size_t n)
{
    policy.args_n = n;
    for (size_t i = 0; i < n; i++) {
        snprintf(args[i], sizeof(args[i]), "%llu", (unsigned long long)values[i]);
        policy.args[i] = sz_cstr(args[i]);
    }
}

static void bucket(uint64_t capacity, uint64_t tokens, struct sz_span per, uint64_t cost)
{
    cr_assert_eq(sz_limit_bucket(capacity, tokens, per, cost, &policy.rule), 0);
    const struct sz_limit_rule *r = &policy.rule;
    set_args((uint64_t[]){r->capacity, r->n, r->d, r->cost, r->fill}, 5);
}

static void window(uint64_t most, struct sz_span span, uint64_t cost)
{
    cr_assert_eq(sz_limit_window(most, span, cost, &policy.rule), 0);
    set_args((uint64_t[]){policy.rule.capacity, policy.rule.window, policy.rule.cost}, 3);
}

static void init_policy(bool open)
{
    policy = (struct sz_conf_rate_limit){.name = SZ_S("one"), .lease = 1, .version = 1, .fail_open = open};
    cr_assert_eq(sz_limit_emergency(1, SZ_SEC(1), 1, &policy.emergency), 0);
    bucket(10, 0, SZ_SEC(1), 1);
}

static void init_conf(void)
{
    static const uint8_t key[SZ_FLEET_KEY] = "the key of this fleet, 32 bytes";
    sz_crypto_init();
    conf = (struct sz_conf){.limits = {.rate_limit_keys = 4096}};
    conf.redis.on = true;
    conf.redis.key = (struct sz_secret){.value = sz_slice(key, sizeof(key)), .set = true};
    limiter = sz_limiter_new(&conf);
    cr_assert_not_null(limiter);
    init_policy(false);
}

static void open_at(uint16_t port)
{
    init_conf();
    kit_init(&kit);
    kit_at(&kit, port);
    kit_start(&kit);
}

static void setup(void)
{
    cr_assert(redis_start(&server));
    open_at(server.port);
    kit_connected(&kit);
}

static void teardown(void)
{
    sz_limiter_free(&limiter);
    kit_stop(&kit);
    redis_stop(&server);
    scratch_remove();
}

TestSuite(limiter, .init = setup, .fini = teardown, .timeout = 120);

/* ---- questions -----------------------------------------------------------------------------------------------------
 */

struct ask {
    struct sz_limit_op op;
    bool done;
};

static struct sz_limit_question question_of(const char *who)
{
    static char keys[4][64];
    static unsigned next;
    char *key = keys[next++ % 4];
    sz_limit_key_head(&limit, SZ_BY_TENANT, key);
    size_t n = strlen(who);
    memcpy(key + SZ_LIMIT_KEY_HEAD, who, n);
    return (struct sz_limit_question){
        .limit = &limit, .endpoint = SZ_S("documents.read"), .key = sz_slice(key, SZ_LIMIT_KEY_HEAD + n)};
}

static void on_done(struct sz_limit_op *op)
{
    SZ_CONTAINER(op, struct ask, op)->done = true;
}

static void begin_with(struct sz_limiter *of, struct ask *ask, const struct sz_limit_question *question)
{
    *ask = (struct ask){.op.on_done = on_done};
    struct sz_mono deadline = sz_after(sz_loop_now(kit.loop), SZ_SEC(10));
    int rc = sz_limiter_ask(of, kit.redis, kit.loop, question, deadline, &ask->op);
    cr_assert(!ask->done, "answered inside the call");
    ask->done = rc == SZ_LIMITER_ANSWERED;
}

static bool is_done(void *arg)
{
    return ((struct ask *)arg)->done;
}

static const struct sz_limit_answer *ask_of(struct sz_limiter *of, const char *who)
{
    static struct ask ask;
    struct sz_limit_question question = question_of(who);
    begin_with(of, &ask, &question);
    cr_assert(kit_until(&kit, is_done, &ask, 10000));
    return &ask.op.answer;
}

static const struct sz_limit_answer *ask(const char *who)
{
    return ask_of(limiter, who);
}

static void expect(const char *who, bool allow, enum sz_reason reason)
{
    const struct sz_limit_answer *a = ask(who);
    cr_expect(a->allow == allow && a->reason == reason, "wanted %s %s, got %s %s", allow ? "allow" : "deny",
              sz_reason_row(reason)->name, a->allow ? "allow" : "deny", sz_reason_row(a->reason)->name);
}

static unsigned count_of(unsigned n, const char *who)
{
    unsigned admitted = 0;
    for (unsigned i = 0; i < n; i++)
        admitted += ask(who)->allow;
    return admitted;
}

static void bucket_name(char out[400])
{
    char *text = redis_say(&server, "KEYS *");
    char *at = strstr(text, "subzero:");
    cr_assert_not_null(at, "%s", text);
    snprintf(out, 400, "%.*s", (int)strcspn(at, "\r"), at);
    free(text);
}

/* ---- the scripts and the calculators
 * --------------------------------------------------------------------------------- */

static uint64_t seed = 88172645463325252;

static uint64_t next(uint64_t below)
{
    seed ^= seed << 13, seed ^= seed >> 7, seed ^= seed << 17;
    return seed % below;
}

/* The script with a clock of ours. */
static char *with_clock(const char *script)
{
    static const char call[] = "redis.call('TIME')", ours[] = "{ARGV[#ARGV - 1], ARGV[#ARGV]}";
    const char *at = strstr(script, call);
    char *text = NULL;
    cr_assert_gt(asprintf(&text, "%.*s%s%s", (int)(at - script), script, ours, at + sizeof(call) - 1), 0);
    return text;
}

static size_t run_script(const char *script, const char *key, uint64_t now, uint64_t want, int64_t out[5])
{
    char texts[3][24];
    struct sz_slice words[16] = {SZ_S("EVAL"), sz_cstr(script), SZ_S("1"), sz_cstr(key)};
    size_t n = 4, got = 0, bytes;
    for (size_t i = 0; i < policy.args_n; i++)
        words[n++] = policy.args[i];
    const uint64_t numbers[] = {want, now / 1000000, now % 1000000};
    for (size_t i = 0; i < 3; i++) {
        snprintf(texts[i], sizeof(texts[i]), "%llu", (unsigned long long)numbers[i]);
        words[n++] = sz_cstr(texts[i]);
    }
    char *reply = redis_ask(&server, words, n, &bytes);
    cr_assert_not_null(reply);
    cr_assert_eq(reply[0], '*', "%s", reply);
    for (char *at = strchr(reply, ':'); at != NULL && got < 5; at = strchr(at + 1, ':'))
        out[got++] = strtoll(at + 1, NULL, 10);
    free(reply);
    return got;
}

Test(limiter, the_scripts_take_the_steps_of_the_calculators)
{
    char *scripts[] = {with_clock(sz_lua_limit_bucket), with_clock(sz_lua_limit_window)}, key[32];
    for (unsigned round = 0; round < 40; round++) {
        uint64_t now = UINT64_C(1764540000000000) + next(1000000000), capacity = 1 + next(30), cost = 1 + next(3);
        capacity = capacity < cost ? cost : capacity;
        if (round % 2 == 0)
            bucket(capacity, next(40), SZ_MS(20000 + next(1000000)), cost);
        else
            window(capacity, SZ_MS(20000 + next(100000)), cost);
        struct sz_limit_state state = sz_limit_fresh(&policy.rule, now);
        snprintf(key, sizeof(key), "k%u", round);
        for (unsigned i = 0; i < 60; i++) {
            uint64_t want = next(4) == 0 ? 1 + next(10) : 1;
            int64_t out[5];
            now += next(20) == 0 ? next(400000000) : next(8000000);
            if (next(20) == 0)
                now -= next(1000000);
            cr_assert_eq(run_script(scripts[policy.rule.kind], key, now, want, out), round % 2 == 0 ? 4 : 5);
            uint64_t took = sz_limit_take(&policy.rule, &state, now, want);
            cr_assert_eq((uint64_t)out[0], took, "round %u, step %u: %lld here, %llu there", round, i,
                         (long long)out[0], (unsigned long long)took);
            if (round % 2 == 0) {
                cr_assert_eq((uint64_t)out[1], state.a);
                cr_assert_eq(out[2], (int64_t)(now - state.b));
            } else if (took > 0) {
                cr_assert_eq((uint64_t)out[1], state.b >> 32);
                cr_assert_eq((uint64_t)out[2], state.b & UINT32_MAX);
            }
        }
    }
    free(scripts[0]);
    free(scripts[1]);
}

/* ---- what is asked -------------------------------------------------------------------------------------------------
 */

static bool all_done(void *arg)
{
    struct ask *asks = arg;
    for (unsigned i = 0; i < ASKS; i++) {
        if (!asks[i].done)
            return false;
    }
    return true;
}

/* Asked 25 times a second, whatever it says: a denial takes nothing from what comes back. */
Test(limiter, under_sustained_denial_the_script_admits_its_capacity_and_its_rate)
{
    static const uint64_t rates[] = {1, 2, 5};
    char *script = with_clock(sz_lua_limit_bucket);
    const uint64_t begin = UINT64_C(1767225600000000);
    for (size_t k = 0; k < SZ_COUNT(rates); k++) {
        char key[16];
        uint64_t admitted = 0;
        int64_t out[5];
        snprintf(key, sizeof(key), "{rate%zu}", k);
        bucket(10, rates[k], SZ_SEC(1), 1);
        for (uint64_t us = 0; us <= 12000000; us += 40000) {
            cr_assert_eq(run_script(script, key, begin + us, 1, out), 4);
            admitted += (uint64_t)out[0];
            cr_assert_leq(admitted, 10 + us * rates[k] / 1000000);
        }
        cr_expect_eq(admitted, 10 + 12 * rates[k]);
    }
    free(script);
}

Test(limiter, racing_questions_admit_exactly_the_capacity)
{
    static struct ask asks[ASKS];
    unsigned admitted = 0;
    struct sz_limit_question question = question_of("alice");
    for (unsigned i = 0; i < ASKS; i++)
        begin_with(limiter, &asks[i], &question);
    cr_assert(kit_until(&kit, all_done, asks, 10000));
    for (unsigned i = 0; i < ASKS; i++) {
        admitted += asks[i].op.answer.allow;
        cr_expect_eq(asks[i].op.answer.reason, asks[i].op.answer.allow ? SZ_REASON_allowed : SZ_REASON_rate_limited);
    }
    cr_expect_eq(admitted, 10);
}

Test(limiter, a_name_tells_the_endpoint_and_the_policy_and_nobody)
{
    char name[400];
    ask("alice");
    bucket_name(name);
    cr_expect(sz_starts_with(sz_cstr(name), SZ_S("subzero:rl:v1:{")), "%s", name);
    cr_expect_not_null(strstr(name, "}:documents.read:one.1"), "%s", name);
    cr_expect_eq(strcspn(name, "}") - strcspn(name, "{"), 44, "%s", name);
    cr_expect_null(strstr(name, "alice"));
    policy.version = 2;
    cr_expect(ask("alice")->allow);
    cr_expect_eq(redis_number(&server, "DBSIZE"), 2);
}

Test(limiter, a_denial_writes_nothing_and_says_how_long)
{
    bucket(2, 1, SZ_SEC(100), 1);
    cr_expect_eq(count_of(2, "alice"), 2);
    char name[400], *before, *after;
    bucket_name(name);
    before = redis_say(&server, "GET %s", name);
    int64_t ttl;
    for (int i = 0; i < 5; i++) {
        const struct sz_limit_answer *a = ask("alice");
        cr_expect(!a->allow && a->seen && a->reason == SZ_REASON_rate_limited);
        cr_expect(a->view.retry.us > 90000000 && a->view.retry.us <= 100000000, "%lld", (long long)a->view.retry.us);
        cr_expect_eq(a->view.left, 0);
    }
    after = redis_say(&server, "GET %s", name);
    cr_expect_str_eq(before, after);
    char command[450];
    snprintf(command, sizeof(command), "PTTL %s", name);
    ttl = redis_number(&server, command);
    cr_expect(ttl > 150000 && ttl <= 200002, "kept until it is full again: %lld", (long long)ttl);
    free(before);
    free(after);
}

Test(limiter, what_is_no_bucket_is_a_fresh_one)
{
    char name[400];
    cr_expect_eq(count_of(11, "alice"), 10);
    bucket_name(name);
    static const char *const garbage[] = {"x", "1", "-1", "1e9", "99999999999999999999999"};
    for (size_t i = 0; i < SZ_COUNT(garbage); i++) {
        free(redis_say(&server, "SET %s %s", name, garbage[i]));
        cr_expect_eq(count_of(11, "alice"), 10, "%s", garbage[i]);
    }
    free(redis_say(&server, "DEL %s", name));
    free(redis_say(&server, "LPUSH %s a b c", name));
    cr_expect_eq(count_of(11, "alice"), 10, "a list");
    window(10, SZ_SEC(3600), 1);
    cr_expect_eq(count_of(11, "alice"), 10, "the other algorithm's state");
}

Test(limiter, flushed_servers_have_fresh_buckets_and_flushed_scripts_are_loaded_again)
{
    cr_expect_eq(count_of(11, "alice"), 10);
    free(redis_say(&server, "SCRIPT FLUSH SYNC"));
    expect("alice", false, SZ_REASON_rate_limited);
    free(redis_say(&server, "FLUSHALL"));
    cr_expect_eq(count_of(11, "alice"), 10);
}

/* ---- leases --------------------------------------------------------------------------------------------------------
 */

static int64_t scripts_run(void)
{
    char *text = redis_say(&server, "INFO commandstats"), *at = strstr(text, "cmdstat_evalsha:calls=");
    int64_t n = at != NULL ? strtoll(at + 22, NULL, 10) : 0;
    free(text);
    return n;
}

Test(limiter, a_lease_spares_round_trips_and_admits_no_more)
{
    policy.lease = 10;
    bucket(100, 0, SZ_SEC(1), 1);
    int64_t before = scripts_run();
    cr_expect_eq(count_of(100, "alice"), 100);
    cr_expect_leq(scripts_run() - before, 11);
    expect("alice", false, SZ_REASON_rate_limited);
    before = scripts_run();
    cr_expect_eq(count_of(50, "alice"), 0);
    cr_expect_eq(scripts_run() - before, 0, "known to be empty");
}

Test(limiter, instances_with_leases_admit_what_there_is)
{
    struct sz_limiter *other = sz_limiter_new(&conf);
    unsigned admitted = 0;
    policy.lease = 10;
    bucket(95, 0, SZ_SEC(1), 3);
    for (unsigned i = 0; i < 60; i++) {
        admitted += ask_of(limiter, "alice")->allow;
        admitted += ask_of(other, "alice")->allow;
    }
    cr_expect_eq(admitted, 31);
    sz_limiter_free(&other);
}

/* What a process had taken and not spent is lost with it: nobody is granted it again. */
Test(limiter, a_lease_dies_with_its_process)
{
    policy.lease = 10;
    bucket(30, 0, SZ_SEC(1), 1);
    unsigned admitted = count_of(3, "alice");
    sz_limiter_free(&limiter);
    limiter = sz_limiter_new(&conf);
    admitted += count_of(100, "alice");
    cr_expect_eq(admitted, 3 + 20);
}

/* Whoever comes while a lease is being taken brings back one and not a lease of its own. */
Test(limiter, an_instance_holds_one_lease_less_one)
{
    static struct ask asks[ASKS];
    struct sz_limit_question question = question_of("alice");
    policy.lease = 50;
    bucket(1000, 0, SZ_SEC(1), 1);
    for (unsigned i = 0; i < ASKS; i++)
        begin_with(limiter, &asks[i], &question);
    cr_assert(kit_until(&kit, all_done, asks, 10000));
    char name[400], command[450];
    bucket_name(name);
    snprintf(command, sizeof(command), "GET %s", name);
    char *text = redis_say(&server, "%s", command);
    uint64_t rest = strtoull(strchr(text, '\n') + 1, NULL, 10) / SZ_LIMIT_TOKEN;
    cr_expect_leq(1000 - rest, ASKS + 49, "%llu left", (unsigned long long)rest);
    free(text);
}

Test(limiter, a_known_empty_bucket_is_asked_again_when_it_may_hold_something)
{
    policy.lease = 2;
    bucket(2, 2, SZ_SEC(1), 1);
    cr_expect_eq(count_of(2, "alice"), 2);
    expect("alice", false, SZ_REASON_rate_limited);
    kit_run(&kit, 600);
    expect("alice", true, SZ_REASON_allowed);
}

/* ---- no answer -----------------------------------------------------------------------------------------------------
 */

TestSuite(limiter_failures, .fini = teardown, .timeout = 120);

static void say_then(const char *reply, enum sz_reason open_reason)
{
    struct fake_redis fake;
    fake_redis_start(&fake);
    fake_redis_set(&fake, FAKE_REDIS_REPLY, sz_cstr(reply), true);
    open_at(fake.port);
    kit_connected(&kit);
    expect("alice", false, SZ_REASON_fail_closed);
    init_policy(true);
    expect("alice", true, open_reason);
    expect("alice", false, SZ_REASON_emergency_local_limit);
    sz_limiter_free(&limiter);
    kit_stop(&kit);
    fake_redis_stop(&fake);
}

Test(limiter_replies, each_has_its_class, .timeout = 120)
{
    static const struct {
        const char *reply;
        enum sz_reason reason;
    } cases[] = {
        {"-NOSCRIPT No matching script\r\n", SZ_REASON_redis_noscript_retry},
        {"-OOM command not allowed when used memory > 'maxmemory'.\r\n", SZ_REASON_redis_connection_error},
        {"-LOADING Redis is loading the dataset in memory\r\n", SZ_REASON_redis_connection_error},
        {"-BUSY Redis is busy running a script\r\n", SZ_REASON_redis_connection_error},
        {"-READONLY You can't write against a read only replica.\r\n", SZ_REASON_redis_connection_error},
        {"-WRONGTYPE x\r\n", SZ_REASON_redis_connection_error},
        {"-ERR x\r\n", SZ_REASON_redis_connection_error},
        {"+OK\r\n", SZ_REASON_redis_connection_error},
        {"$-1\r\n", SZ_REASON_redis_connection_error},
        {":1\r\n", SZ_REASON_redis_connection_error},
        {"*0\r\n", SZ_REASON_redis_connection_error},
        {"*4\r\n:2\r\n:0\r\n:0\r\n:0\r\n", SZ_REASON_redis_connection_error}, /* more than was asked for */
        {"*4\r\n:-1\r\n:0\r\n:0\r\n:0\r\n", SZ_REASON_redis_connection_error},
        {"*4\r\n:1\r\n:-5\r\n:0\r\n:0\r\n", SZ_REASON_redis_connection_error},
        {"*4\r\n:1\r\n:5\r\n:9223372036854775807\r\n:0\r\n", SZ_REASON_redis_connection_error},
        {"*4\r\n:1\r\n:5\r\n$1\r\n0\r\n:0\r\n", SZ_REASON_redis_connection_error},
        {"*5\r\n:1\r\n:5\r\n:0\r\n:0\r\n:0\r\n", SZ_REASON_redis_connection_error},
        {"?what\r\n", SZ_REASON_redis_connection_error},
    };
    for (size_t i = 0; i < SZ_COUNT(cases); i++)
        say_then(cases[i].reply, cases[i].reason);
}

Test(limiter_failures, a_server_that_hangs_costs_its_timeout_and_then_nothing)
{
    cr_assert(redis_start(&server));
    init_conf();
    kit_init(&kit);
    kit_at(&kit, server.port);
    kit.conf.timeout = SZ_MS(50);
    kit_start(&kit);
    kit_connected(&kit);
    init_policy(true);
    policy.emergency.capacity = 100 * SZ_LIMIT_TOKEN;
    policy.emergency.fill = 0, policy.emergency.n = 0;
    expect("alice", true, SZ_REASON_allowed);
    redis_pause(&server);
    for (int i = 0; i < 5; i++) {
        struct sz_mono before = sz_mono_read();
        expect("alice", true, SZ_REASON_redis_timeout);
        int64_t took = sz_between(before, sz_mono_read()).us;
        cr_expect(took < 500000, "%lld us", (long long)took);
    }
    for (int i = 0; i < 5; i++)
        expect("alice", true, SZ_REASON_circuit_open);
    const struct sz_limit_answer *a;
    init_policy(false);
    a = ask("alice");
    cr_expect(!a->allow && a->reason == SZ_REASON_circuit_open && a->view.retry.us > 20000000);
    redis_continue(&server);
}

Test(limiter_failures, only_answers_close_the_breaker_and_five_failures_open_it)
{
    open_at(1); /* nobody listens there */
    kit_run(&kit, 50);
    for (int i = 0; i < 5; i++)
        expect("alice", false, SZ_REASON_fail_closed);
    for (int i = 0; i < 5; i++)
        expect("alice", false, SZ_REASON_circuit_open);
}

Test(limiter_failures, a_full_server_refuses_writes_and_each_policy_gives_its_row)
{
    server.options[0] = "--maxmemory";
    server.options[1] = "3mb";
    cr_assert(redis_start(&server));
    open_at(server.port);
    kit_connected(&kit);
    cr_expect_eq(count_of(10, "alice"), 10);
    free(redis_say(&server, "CONFIG SET maxmemory 1mb"));
    expect("alice", false, SZ_REASON_rate_limited); /* a denial needs no memory */
    expect("bob", false, SZ_REASON_fail_closed);
    init_policy(true);
    expect("bob", true, SZ_REASON_redis_connection_error);
    expect("bob", false, SZ_REASON_emergency_local_limit);
}

Test(limiter_failures, a_server_that_dies_and_comes_back)
{
    cr_assert(redis_start(&server));
    init_conf();
    kit_init(&kit);
    kit_at(&kit, server.port);
    kit.conf.breaker.open = SZ_MS(300);
    kit_start(&kit);
    kit_connected(&kit);
    expect("alice", true, SZ_REASON_allowed);
    redis_kill(&server);
    unsigned closed = 0;
    for (int i = 0; i < 20; i++)
        closed += ask("alice")->reason == SZ_REASON_fail_closed;
    cr_expect_eq(closed, 5);
    cr_assert(redis_start(&server));
    for (int i = 0; i < 100 && !ask("alice")->allow; i++)
        kit_run(&kit, 50);
    expect("alice", true, SZ_REASON_allowed);
}

/*
 * What rate limits cost.  Prints one JSON object.
 *
 *   micro_limit local [REPETITIONS]             nanoseconds of CPU: a bucket and a window in the process, an address
 *   micro_limit WHAT KIND C OPERATIONS PORT [PID]
 *
 * WHAT: limiter (sz_limiter_ask through Redis), bare (the same script by the same client, nothing around it), tripped
 * (the breaker is open already), closed and open (each policy with a Redis that is dead: nobody listens on PORT, or PID
 * is stopped).  KIND: bucket or window.  C operations are under way at any time.
 *
 * Nothing is refilled, and each 100 operations have a fresh key of capacity 100: all are admitted and each one writes,
 * since a denial writes nothing and would look fast.
 */
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "cache/limiter.h"
#include "subzero/crypto.h"

enum { LANES_MAX = 64, OPERATIONS_MAX = 1000000, PER_KEY = 100, LOOKUPS = 400000, REPETITIONS_MAX = 101 };

struct lane {
    struct sz_limit_op op;
    struct sz_redis_op bare;
    double began;
    bool busy;
    char key[64];
};

static struct {
    struct sz_conf conf;
    struct sz_conf_rate_limit policy;
    struct sz_conf_route_limit limit;
    struct sz_conf_redis_place place;
    struct sz_limiter *limiter;
    struct sz_loop *loop;
    struct sz_redis_shared *shared;
    struct sz_redis *redis;
    struct sz_timer next;
    struct sz_defer free; /* with a dead Redis: the breaker is told of a failure behind its callback */
    struct lane lanes[LANES_MAX];
    char args[6][24];
    double *latency;
    unsigned lanes_n, operations, started, done, waited;
    uint64_t salt;
    unsigned reasons[2][SZ_REASON_COUNT];
    double began, cpu, cpu_end;
    const char *what;
    pid_t pid;
    bool bare, dead, tripped;
} m = {.limit = {.id = 4711}};

static double seconds(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static _Noreturn void give_up(const char *why)
{
    fprintf(stderr, "micro_limit: %s\n", why);
    exit(1);
}

/* ---- in the process ------------------------------------------------------------------------------------------------
 */

struct figure {
    const char *name;
    double value[REPETITIONS_MAX];
};

static double each_key(struct sz_limit_table *table, const struct sz_limit_rule *rule, size_t keys)
{
    struct sz_limit_view view;
    char key[48] = "0123456 https://tenant.example.com/ auth0|user01";
    uint64_t admitted = 0;
    double from = seconds(CLOCK_THREAD_CPUTIME_ID);
    for (uint32_t i = 0; i < LOOKUPS; i++) {
        uint32_t n = i * UINT32_C(2654435761) % (uint32_t)keys;
        memcpy(key + 40, &n, sizeof(n));
        admitted += sz_limit_table_take(table, sz_slice(key, sizeof(key)), rule, 1000000 + i / 4, 1, &view);
    }
    double took = seconds(CLOCK_THREAD_CPUTIME_ID) - from;
    if (admitted == 0)
        give_up("nothing was admitted");
    return took / LOOKUPS * 1e9;
}

static double each_address(struct sz_limiter *limiter, bool v6)
{
    struct sz_addr addr;
    struct sz_span retry;
    if (sz_addr_parse(v6 ? SZ_S("2001:db8::1") : SZ_S("198.51.100.1"), &addr) != 0)
        give_up("no address");
    double from = seconds(CLOCK_THREAD_CPUTIME_ID);
    for (uint32_t i = 0; i < LOOKUPS; i++) {
        addr.b[v6 ? 5 : 14] = (uint8_t)i;
        addr.b[v6 ? 7 : 15] = (uint8_t)(i >> 8 & 15);
        (void)sz_limiter_address(limiter, &m.conf.limits, addr, (struct sz_mono){1000000 + i}, &retry);
    }
    return (seconds(CLOCK_THREAD_CPUTIME_ID) - from) / LOOKUPS * 1e9;
}

static int local(int repetitions)
{
    static struct figure figures[] = {{.name = "bucket_hot"},
                                      {.name = "bucket_cold"},
                                      {.name = "window_hot"},
                                      {.name = "address_v4"},
                                      {.name = "address_v6"}};
    struct sz_limit_rule bucket, window;
    struct sz_limit_table *table = sz_limit_table_new(500000), *windows = sz_limit_table_new(500000);
    m.conf.limits.rate_limit_keys = m.conf.limits.per_address.keys = 65536;
    m.limiter = sz_limiter_new(&m.conf);
    if (table == NULL || windows == NULL || m.limiter == NULL ||
        sz_limit_bucket(1000000, 1000000, SZ_SEC(1), 1, &bucket) != 0 ||
        sz_limit_window(1000000, SZ_SEC(60), 1, &window) != 0 ||
        sz_limit_bucket(1000, 1000, SZ_SEC(1), 1, &m.conf.limits.per_address.rule) != 0 ||
        sz_limit_bucket(16000, 16000, SZ_SEC(1), 1, &m.conf.limits.per_address.wide) != 0)
        give_up("cannot set up");
    for (int i = 0; i < repetitions; i++) {
        figures[0].value[i] = each_key(table, &bucket, 64);
        figures[1].value[i] = each_key(table, &bucket, 300000);
        figures[2].value[i] = each_key(windows, &window, 64);
        figures[3].value[i] = each_address(m.limiter, false);
        figures[4].value[i] = each_address(m.limiter, true);
    }
    printf("{\"figures\": [");
    for (size_t i = 0; i < SZ_COUNT(figures); i++) {
        qsort(figures[i].value, (size_t)repetitions, sizeof(double), by_value);
        printf("%s\n  {\"name\": \"%s\", \"unit\": \"ns\", \"median\": %.1f, \"min\": %.1f, \"max\": %.1f, \"n\": %d}",
               i > 0 ? "," : "", figures[i].name, figures[i].value[repetitions / 2], figures[i].value[0],
               figures[i].value[repetitions - 1], repetitions);
    }
    printf("]}\n");
    return 0;
}

/* ---- through Redis --------------------------------------------------------------------------------------------------
 */

static bool begin(struct lane *lane);

static void finished(struct lane *lane, bool allow, enum sz_reason reason)
{
    m.latency[m.done++] = seconds(CLOCK_MONOTONIC) - lane->began;
    m.reasons[allow][reason]++;
    if (m.done < m.operations)
        return;
    m.cpu_end = seconds(CLOCK_THREAD_CPUTIME_ID);
    m.began = seconds(CLOCK_MONOTONIC) - m.began;
    sz_loop_stop(m.loop);
}

static void go_on(struct lane *lane)
{
    while (m.started < m.operations && begin(lane))
        ;
}

static void on_limit(struct sz_limit_op *op)
{
    struct lane *lane = SZ_CONTAINER(op, struct lane, op);
    finished(lane, op->answer.allow, op->answer.reason);
    lane->busy = false;
    if (m.dead)
        sz_defer_start(m.loop, &m.free);
    else
        go_on(lane);
}

static void on_free(struct sz_defer *defer)
{
    (void)defer;
    for (unsigned i = 0; i < m.lanes_n; i++) {
        if (!m.lanes[i].busy)
            go_on(&m.lanes[i]);
    }
}

static enum sz_breaker_outcome on_bare(struct sz_redis_op *op, const struct sz_redis_answer *answer)
{
    struct lane *lane = SZ_CONTAINER(op, struct lane, bare);
    bool good = answer->result == SZ_REDIS_ANSWERED && answer->reply->type == SZ_REDIS_ARRAY &&
                answer->reply->items_n > 0 && answer->reply->items[0].integer == 1;
    finished(lane, good, good ? SZ_REASON_allowed : SZ_REASON_rate_limited);
    go_on(lane);
    return sz_redis_outcome(answer);
}

static bool begin_bare(struct lane *lane, uint64_t number)
{
    struct sz_slice args[SZ_COUNT(m.policy.args) + 1];
    int n = snprintf(lane->key, sizeof(lane->key), "subzero:rl:bench:{%016" PRIx64 "}", number);
    memcpy(args, m.policy.args, sizeof(m.policy.args));
    args[m.policy.args_n] = SZ_S("1");
    lane->bare = (struct sz_redis_op){.on_done = on_bare};
    int rc =
        sz_redis_eval(m.redis, SZ_REDIS_LIMITS, &m.limiter->scripts[m.policy.rule.kind], sz_slice(lane->key, (size_t)n),
                      args, m.policy.args_n + 1, sz_after(sz_loop_now(m.loop), SZ_SEC(5)), &lane->bare);
    if (rc != 0)
        give_up(sz_redis_result_name((enum sz_redis_result)rc));
    return false;
}

/* True: answered at once, and the lane is free again. */
static bool begin(struct lane *lane)
{
    uint64_t number = m.salt + m.started++ / PER_KEY;
    lane->began = seconds(CLOCK_MONOTONIC);
    if (m.bare)
        return begin_bare(lane, number);
    sz_limit_key_head(&m.limit, SZ_BY_TENANT, lane->key);
    memcpy(lane->key + SZ_LIMIT_KEY_HEAD, "0123456789https://tenant/auth0|", 31);
    memcpy(lane->key + SZ_LIMIT_KEY_HEAD + 31, &number, sizeof(number));
    struct sz_limit_question question = {.limit = &m.limit,
                                         .endpoint = SZ_S("documents.read"),
                                         .key = sz_slice(lane->key, SZ_LIMIT_KEY_HEAD + 31 + sizeof(number))};
    lane->op = (struct sz_limit_op){.on_done = on_limit};
    lane->busy = true;
    if (sz_limiter_ask(m.limiter, m.redis, m.loop, &question, sz_after(sz_loop_now(m.loop), SZ_SEC(5)), &lane->op) == 0)
        return false;
    lane->busy = false;
    finished(lane, lane->op.answer.allow, lane->op.answer.reason);
    return true;
}

static void again(struct sz_span in)
{
    sz_timer_start(m.loop, &m.next, sz_after(sz_loop_now(m.loop), in));
}

static void run(struct sz_timer *timer)
{
    struct sz_redis_look look;
    (void)timer;
    sz_redis_shared_look(m.shared, &look);
    if (!look.reachable && (!m.dead || m.pid != 0)) {
        if (++m.waited > 1000)
            give_up(look.why.s);
        again(SZ_MS(5));
        return;
    }
    if (m.tripped && sz_redis_breaker_look(m.shared, SZ_REDIS_LIMITS, sz_loop_now(m.loop)).state != SZ_BREAKER_OPEN) {
        m.started = m.operations - 1;
        m.done = 0;
        (void)begin(&m.lanes[0]);
        again(SZ_MS(30));
        return;
    }
    if (m.pid != 0 && m.dead)
        kill(m.pid, SIGSTOP);
    m.started = m.done = 0;
    memset(m.reasons, 0, sizeof(m.reasons));
    m.began = seconds(CLOCK_MONOTONIC);
    m.cpu = seconds(CLOCK_THREAD_CPUTIME_ID);
    for (unsigned i = 0; i < m.lanes_n; i++)
        go_on(&m.lanes[i]);
}

static void set_policy(const char *kind)
{
    bool window = strcmp(kind, "window") == 0;
    m.policy = (struct sz_conf_rate_limit){.name = SZ_S("standard"), .lease = 1, .version = 1};
    m.policy.fail_open = strcmp(m.what, "open") == 0;
    m.limit.policy = &m.policy;
    int rc = window ? sz_limit_window(PER_KEY, SZ_SEC(86400), 1, &m.policy.rule)
                    : sz_limit_bucket(PER_KEY, 0, SZ_SEC(1), 1, &m.policy.rule);
    const struct sz_limit_rule *r = &m.policy.rule;
    const uint64_t args[] = {r->capacity, window ? r->window : r->n, window ? r->cost : r->d, r->cost, r->fill};
    if (rc != 0 || sz_limit_emergency(1, SZ_SEC(1), 1, &m.policy.emergency) != 0)
        give_up("cannot set up");
    m.policy.args_n = window ? 3 : 5;
    for (size_t i = 0; i < m.policy.args_n; i++) {
        snprintf(m.args[i], sizeof(m.args[i]), "%" PRIu64, args[i]);
        m.policy.args[i] = sz_cstr(m.args[i]);
    }
}

static void set_up(uint16_t port)
{
    static const uint8_t key[SZ_FLEET_KEY] = {1};
    struct sz_text why = {""};
    m.place = (struct sz_conf_redis_place){.host = SZ_S("127.0.0.1"), .port = port};
    m.conf.redis = (struct sz_conf_redis){.on = true,
                                          .places = &m.place,
                                          .places_n = 1,
                                          .max_connections = 3,
                                          .timeout = m.dead ? SZ_MS(20) : SZ_SEC(1),
                                          .shown = SZ_S("redis"),
                                          .key = {.value = sz_slice(key, sizeof(key)), .set = true},
                                          .breaker = {.failures = 5, .open = SZ_SEC(600)}};
    m.conf.limits.rate_limit_keys = 65536;
    m.limiter = sz_limiter_new(&m.conf);
    m.loop = sz_loop_new(0);
    m.shared = sz_redis_shared_new(&m.conf.redis, 1u << SZ_REDIS_LIMITS, 1, &why);
    m.redis = m.shared != NULL && m.loop != NULL ? sz_redis_new(m.shared, m.loop) : NULL;
    m.latency = calloc(m.operations, sizeof(double));
    if (m.limiter == NULL || m.redis == NULL || m.latency == NULL)
        give_up("cannot set up");
    sz_random(&m.salt, sizeof(m.salt));
}

static double at(double share)
{
    return m.latency[(size_t)(share * (double)(m.operations - 1))] * 1e6;
}

static void report(void)
{
    bool first = true;
    qsort(m.latency, m.operations, sizeof(double), by_value);
    printf("{\"what\": \"%s\", \"c\": %u, \"operations\": %u, \"ops_s\": %.0f, \"p50_us\": %.2f, \"p95_us\": %.2f, "
           "\"p99_us\": %.2f, \"max_us\": %.2f, \"cpu_us\": %.3f, \"reasons\": {",
           m.what, m.lanes_n, m.operations, m.operations / m.began, at(0.5), at(0.95), at(0.99), at(1),
           (m.cpu_end - m.cpu) * 1e6 / m.operations);
    for (int allow = 0; allow < 2; allow++) {
        for (int i = 0; i < SZ_REASON_COUNT; i++) {
            if (m.reasons[allow][i] == 0)
                continue;
            printf("%s\"%s %s\": %u", first ? "" : ", ", allow ? "allow" : "deny",
                   sz_reason_row((enum sz_reason)i)->name, m.reasons[allow][i]);
            first = false;
        }
    }
    printf("}}\n");
}

int main(int argc, char **argv)
{
    sz_crypto_init();
    sz_metrics_init(1);
    if (argc >= 2 && strcmp(argv[1], "local") == 0) {
        int repetitions = argc > 2 ? (int)strtol(argv[2], NULL, 10) : 15;
        return repetitions >= 1 && repetitions <= REPETITIONS_MAX ? local(repetitions) : 2;
    }
    if (argc < 6) {
        fputs("usage: micro_limit local [N] | WHAT KIND C OPERATIONS PORT [PID]\n", stderr);
        return 2;
    }
    m.what = argv[1];
    m.bare = strcmp(m.what, "bare") == 0;
    m.tripped = strcmp(m.what, "tripped") == 0;
    m.dead = m.tripped || strcmp(m.what, "closed") == 0 || strcmp(m.what, "open") == 0;
    m.lanes_n = (unsigned)strtoul(argv[3], NULL, 10);
    m.operations = (unsigned)strtoul(argv[4], NULL, 10);
    m.pid = argc > 6 ? (pid_t)strtol(argv[6], NULL, 10) : 0;
    if (m.lanes_n < 1 || m.lanes_n > LANES_MAX || m.operations < 1 || m.operations > OPERATIONS_MAX)
        give_up("C: 1 to 64, OPERATIONS: 1 to 1000000");
    set_policy(argv[2]);
    set_up((uint16_t)strtoul(argv[5], NULL, 10));
    m.next.on_fire = run;
    m.free.on_run = on_free;
    again(SZ_MS(1));
    sz_loop_run(m.loop);
    if (m.pid != 0 && m.dead)
        kill(m.pid, SIGCONT);
    report();
    sz_redis_free(&m.redis);
    sz_redis_shared_free(&m.shared);
    sz_loop_free(&m.loop);
    sz_limiter_free(&m.limiter);
    free(m.latency);
    return 0;
}

/*
 * What a command costs that is not asked, because its breaker is open (P7): with Redis dead, this is all that its
 * absence adds to a request.  With a port as second argument also what a GET of 300 bytes costs this thread, one at a
 * time and with 64 under way.  Prints one JSON object; medians of the repetitions.
 *
 *   micro_redis [repetitions [port]]
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "subzero/crypto.h"
#include "subzero/metrics.h"
#include "subzero/redis.h"

enum { REPETITIONS_MAX = 1001, BATCH = 1000, LANES = 64, GETS = 20000 };

static struct {
    struct sz_loop *loop;
    struct sz_redis_shared *shared;
    struct sz_redis *redis;
    struct sz_timer next;
    struct sz_redis_op ops[LANES];
    struct sz_slice get[2];
    unsigned lanes, left, flying, repetitions, done;
    double samples[REPETITIONS_MAX], nothing[REPETITIONS_MAX];
    double began;
    bool opened;
} m;

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

static double median(double *v, unsigned n)
{
    qsort(v, n, sizeof(*v), by_value);
    return v[n / 2];
}

static int start(struct sz_redis_op *op)
{
    struct sz_redis_command command = {.args = m.get, .args_n = 2, .key = 1};
    return sz_redis_start(m.redis, SZ_REDIS_CACHE, &command, op);
}

static void again(struct sz_span in)
{
    sz_timer_start(m.loop, &m.next, sz_after(sz_loop_now(m.loop), in));
}

/* ---- not asked --------------------------------------------------------------------------------------------------- */

static enum sz_breaker_outcome on_nothing(struct sz_redis_op *op, const struct sz_redis_answer *answer)
{
    (void)op;
    return sz_redis_outcome(answer);
}

static __attribute__((noinline)) int no_start(struct sz_redis_op *op)
{
    return op->pending != NULL ? 0 : SZ_REDIS_OPEN;
}

static double each(int (*what)(struct sz_redis_op *op))
{
    double from = seconds(CLOCK_MONOTONIC);
    for (int i = 0; i < BATCH; i++) {
        int rc = what(&m.ops[0]);
        if (rc != SZ_REDIS_OPEN) {
            fprintf(stderr, "micro_redis: the breaker is not open: %s\n",
                    sz_redis_result_name((enum sz_redis_result)rc));
            exit(1);
        }
    }
    return (seconds(CLOCK_MONOTONIC) - from) / BATCH;
}

static void measure_open(struct sz_timer *timer)
{
    (void)timer;
    if (!m.opened) { /* nobody listens: a few failures open it */
        m.opened = m.ops[0].pending == NULL && start(&m.ops[0]) == SZ_REDIS_OPEN;
        again(SZ_MS(5));
        return;
    }
    m.nothing[m.done] = each(no_start);
    m.samples[m.done] = each(start);
    if (++m.done == m.repetitions)
        sz_loop_stop(m.loop);
    else
        again(SZ_MS(1));
}

/* ---- asked ------------------------------------------------------------------------------------------------------- */

static enum sz_breaker_outcome on_got(struct sz_redis_op *op, const struct sz_redis_answer *answer)
{
    if (answer->result != SZ_REDIS_ANSWERED || answer->reply->text.n != 300) {
        fprintf(stderr, "micro_redis: %s\n", sz_redis_result_name(answer->result));
        exit(1);
    }
    m.flying--;
    if (m.left > 0 && start(op) == 0) {
        m.left--;
        m.flying++;
    }
    if (m.flying == 0)
        sz_loop_stop(m.loop);
    return SZ_BREAKER_SUCCESS;
}

static void measure_gets(struct sz_timer *timer)
{
    struct sz_redis_look look;
    (void)timer;
    sz_redis_shared_look(m.shared, &look);
    if (!look.reachable) {
        again(SZ_MS(5));
        return;
    }
    m.began = seconds(CLOCK_THREAD_CPUTIME_ID);
    for (unsigned i = 0; i < m.lanes; i++) {
        m.ops[i] = (struct sz_redis_op){.on_done = on_got};
        m.flying += start(&m.ops[i]) == 0;
    }
    m.left = GETS - m.lanes;
}

/* ---- runs -------------------------------------------------------------------------------------------------------- */

static void run(uint16_t port, void (*what)(struct sz_timer *timer))
{
    struct sz_conf_redis_place place = {.host = SZ_S("127.0.0.1"), .port = port};
    struct sz_conf_redis conf = {.on = true,
                                 .places = &place,
                                 .places_n = 1,
                                 .max_connections = 2,
                                 .timeout = SZ_SEC(5),
                                 .shown = SZ_S("redis"),
                                 .breaker = {.failures = 5, .open = SZ_SEC(3000)}};
    struct sz_text why;
    m.loop = sz_loop_new(0);
    m.shared = sz_redis_shared_new(&conf, SZ_REDIS_ALL_USES, 1, &why);
    m.redis = sz_redis_new(m.shared, m.loop);
    m.next.on_fire = what;
    again(SZ_MS(1));
    sz_loop_run(m.loop);
    sz_redis_free(&m.redis);
    sz_redis_shared_free(&m.shared);
    sz_loop_free(&m.loop);
}

static double cpu_of_gets(uint16_t port, unsigned lanes)
{
    m.lanes = lanes;
    m.flying = 0;
    run(port, measure_gets);
    return (seconds(CLOCK_THREAD_CPUTIME_ID) - m.began) / GETS;
}

static void figure(const char *name, double median, double min, double max, unsigned n, const char *after)
{
    printf("{\"name\": \"%s\", \"median\": %.4f, \"min\": %.4f, \"max\": %.4f, \"n\": %u}%s", name, median * 1e6,
           min * 1e6, max * 1e6, n, after);
}

int main(int argc, char **argv)
{
    unsigned long repetitions = argc > 1 ? strtoul(argv[1], NULL, 10) : 201;
    unsigned long port = argc > 2 ? strtoul(argv[2], NULL, 10) : 0;
    sz_crypto_init();
    sz_metrics_init(1);
    m.repetitions = repetitions > 0 && repetitions <= REPETITIONS_MAX ? (unsigned)repetitions : REPETITIONS_MAX;
    m.get[0] = SZ_S("GET");
    m.get[1] = SZ_S("micro");
    m.ops[0].on_done = on_nothing;
    run(1, measure_open);
    for (unsigned i = 0; i < m.done; i++)
        m.samples[i] -= m.nothing[i];
    double open = median(m.samples, m.done);
    printf("{\"figures\": [");
    figure("open_added_us", open, m.samples[0], m.samples[m.done - 1], m.done, port != 0 ? ", " : "");
    if (port != 0) {
        double one = cpu_of_gets((uint16_t)port, 1), many = cpu_of_gets((uint16_t)port, LANES);
        figure("get_one_cpu_us", one, one, one, 1, ", ");
        figure("get_64_cpu_us", many, many, many, 1, "");
    }
    printf("]}\n");
    sz_metrics_fini();
    return 0;
}

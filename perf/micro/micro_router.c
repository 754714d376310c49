/*
 * What it costs to find the route of a request, with 10, 1,000 and 10,000 routes: the walk itself must not
 * grow with their number; only the memory that it touches does.  Prints one JSON object: per figure the
 * median of the repetitions, their spread, and how many there were.
 *
 *   micro_router [repetitions]
 *
 * "hot" asks for 64 targets again and again, "cold" for every route in random order (at 10,000 routes the table
 * is larger than the L2 cache here), "miss" for a target that leaves the trie late.  Times are CPU time of the
 * measuring thread.  "load" is reading, checking and compiling the whole configuration, in milliseconds.
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "subzero/conf.h"
#include "subzero/router.h"

#define REPETITIONS_MAX 101
#define MATCHES         200000
#define ROUTES_MAX      10000

struct table {
    struct sz_conf *conf;
    struct sz_slice *targets; /* one per route, shuffled */
    size_t n;
    double load_ms;
};

struct figure {
    const char *name, *unit;
    double value[REPETITIONS_MAX];
    int n;
};

static double cpu_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static uint64_t random64(uint64_t *state) /* splitmix64 */
{
    uint64_t z = (*state += UINT64_C(0x9e3779b97f4a7c15));

    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

/* ---- tables --------------------------------------------------------------------------- */

/* Four shapes per service, as an API gateway has them: the literal beside the parameter makes the walk turn back. */
static void write_route(struct sz_buf *yaml, size_t i)
{
    static const char *const shapes[] = {"items", "items/{id}", "items/latest/{part}", "files/*"};

    sz_buf_printf(yaml, "  - {id: r%zu, match: {path: \"/v1/service-%zu/%s\"}, public: true, upstream: u}\n", i, i / 4,
                  shapes[i % 4]);
}

static void write_target(struct sz_buf *target, size_t i)
{
    static const char *const shapes[] = {"items", "items/4711", "items/latest/cover", "files/2024/06/report.pdf"};

    sz_buf_printf(target, "/v1/service-%zu/%s", i / 4, shapes[i % 4]);
}

static void load(struct table *t)
{
    struct sz_buf yaml = {0};
    struct sz_mistakes m;
    double start;

    sz_buf_adds(&yaml, SZ_S("listen: [{address: 127.0.0.1:8080}]\nupstreams: {u: {urls: [\"http://h\"]}}\nroutes:\n"));
    for (size_t i = 0; i < t->n; i++)
        write_route(&yaml, i);
    sz_mistakes_init(&m);
    start = cpu_ns();
    t->conf = sz_conf_load_text(sz_buf_slice(&yaml), "micro", &m);
    t->load_ms = (cpu_ns() - start) / 1e6;
    if (t->conf == NULL)
        fprintf(stderr, "micro_router: %.*s\n", SZ_FMT(m.v[0].message));
    if (t->conf == NULL)
        exit(1);
    sz_mistakes_fini(&m);
    sz_buf_fini(&yaml);
}

static void fill(struct table *t, size_t n)
{
    uint64_t seed = n;

    t->n = n;
    load(t);
    t->targets = sz_xcalloc(n, sizeof(*t->targets));
    for (size_t i = 0; i < n; i++) {
        struct sz_buf target = {0};
        write_target(&target, i);
        t->targets[i] = sz_buf_slice(&target); /* lives as long as the process */
    }
    for (size_t i = n - 1; i > 0; i--) {
        size_t k = random64(&seed) % (i + 1);
        struct sz_slice swap = t->targets[i];
        t->targets[i] = t->targets[k];
        t->targets[k] = swap;
    }
}

/* ---- figures -------------------------------------------------------------------------- */

static double matches(const struct table *t, size_t over)
{
    struct sz_route_match m;
    double start = cpu_ns();
    size_t at = 0;

    for (size_t i = 0; i < MATCHES; i++) {
        if (!sz_router_match(t->conf->router, SZ_S("api.example.com"), t->targets[at], SZ_S("GET"), &m))
            abort();
        if (++at == over)
            at = 0;
    }
    return (cpu_ns() - start) / MATCHES;
}

static double misses(const struct table *t)
{
    struct sz_route_match m;
    double start = cpu_ns();

    for (size_t i = 0; i < MATCHES; i++) {
        if (sz_router_match(t->conf->router, SZ_S("api.example.com"), SZ_S("/v1/service-1/items/latest/cover/back"),
                            SZ_S("GET"), &m))
            abort();
    }
    return (cpu_ns() - start) / MATCHES;
}

#define FIGURES(X)          \
    X(hit_hot_10, "ns")     \
    X(hit_hot_1000, "ns")   \
    X(hit_hot_10000, "ns")  \
    X(hit_cold_1000, "ns")  \
    X(hit_cold_10000, "ns") \
    X(miss_10, "ns")        \
    X(miss_10000, "ns")     \
    X(load_10000, "ms")

#define AS_ENUM(name, unit) name,
#define AS_ROW(name, unit)  [name] = {#name, unit, {0}, 0},
enum { FIGURES(AS_ENUM) COUNT };
static struct figure figures[] = {FIGURES(AS_ROW)};

static void add(int figure, double value)
{
    struct figure *f = &figures[figure];

    f->value[f->n++] = value;
}

static void measure(const struct table t[3])
{
    add(hit_hot_10, matches(&t[0], t[0].n));
    add(hit_hot_1000, matches(&t[1], 64));
    add(hit_hot_10000, matches(&t[2], 64));
    add(hit_cold_1000, matches(&t[1], t[1].n));
    add(hit_cold_10000, matches(&t[2], t[2].n));
    add(miss_10, misses(&t[0]));
    add(miss_10000, misses(&t[2]));
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return x < y ? -1 : x > y;
}

static void print_figure(struct figure *f, bool last)
{
    qsort(f->value, (size_t)f->n, sizeof(double), by_value);
    printf("    {\"name\": \"%s\", \"unit\": \"%s\", \"median\": %.2f, \"min\": %.2f, \"max\": %.2f, \"n\": %d}%s\n",
           f->name, f->unit, f->value[f->n / 2], f->value[0], f->value[f->n - 1], f->n, last ? "" : ",");
}

int main(int argc, char **argv)
{
    int repetitions = argc > 1 ? (int)strtol(argv[1], NULL, 10) : 15;
    struct table tables[3] = {0};

    if (repetitions < 1 || repetitions > REPETITIONS_MAX) {
        fprintf(stderr, "micro_router: repetitions: 1 to %d\n", REPETITIONS_MAX);
        return 2;
    }
    sz_crypto_init();
    fill(&tables[0], 10);
    fill(&tables[1], 1000);
    fill(&tables[2], ROUTES_MAX);
    add(load_10000, tables[2].load_ms);
    for (int i = 0; i < repetitions; i++)
        measure(tables);
    printf("{\n  \"benchmark\": \"router\",\n  \"matches\": %d,\n  \"figures\": [\n", MATCHES);
    for (int i = 0; i < COUNT; i++)
        print_figure(&figures[i], i + 1 == COUNT);
    printf("  ]\n}\n");
    for (int i = 0; i < 3; i++)
        sz_conf_free(&tables[i].conf);
    return 0;
}

/*
 * P6, the part inside the process: the embedded engine on a graph of 9.08 M tuples, asked with strings.
 * Prints one JSON object; times are CPU time of the measuring thread, medians of the repetitions.
 *
 *   micro_engine [repetitions] [scale]     scale 1000 = the whole graph, 10 = a hundredth
 *
 * The graph (seeded): a tree of folders, ten in each, six levels above every document; ten documents in each folder of
 * the lowest level; two groups may view each folder (one the root), so eleven on the way up; 10,000 groups of 75
 * users; seven direct viewers per document; one million users.
 *
 * "hot" asks for 1,000 documents and 200 users again and again, "cold" for random ones.  "walk" is a denied check: all
 * seven levels and eleven groups are looked at; "root" is allowed by a group on the root alone.
 */
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "fga/engine/engine.h"
#include "subzero/crypto.h"

enum {
    QUERIES = 100000,
    HOT_QUERIES = 4000,
    REPETITIONS_MAX = 51,
    HOT_DOCS = 1000,
    HOT_USERS = 200,
    VIEWERS = 7,
    MEMBERS = 75
};

static const char model_text[] = "model\n"
                                 "  schema 1.1\n"
                                 "type user\n"
                                 "type group\n"
                                 "  relations\n"
                                 "    define member: [user]\n"
                                 "type folder\n"
                                 "  relations\n"
                                 "    define parent: [folder]\n"
                                 "    define viewer: [user, group#member] or viewer from parent\n"
                                 "type document\n"
                                 "  relations\n"
                                 "    define parent: [folder]\n"
                                 "    define viewer: [user, group#member] or viewer from parent\n";

static unsigned n_docs, n_leaves, n_folders, n_groups, n_users;
static size_t name_bytes;

static uint64_t state = UINT64_C(0x9e3779b97f4a7c15);

static uint64_t rnd(uint64_t n)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (state >> 11) % n;
}

/* The same for the same question: who views a document, who is in a group. */
static unsigned mix(unsigned a, unsigned b, unsigned n)
{
    uint64_t h = ((uint64_t)a << 32 | b) * UINT64_C(0x9e3779b97f4a7c15);
    h = (h ^ h >> 29) * UINT64_C(0xbf58476d1ce4e5b9);
    return (unsigned)((h ^ h >> 32) % n);
}

struct name {
    char s[24];
    unsigned n;
};

static struct name name(const char *type, unsigned i)
{
    struct name v;
    v.n = (unsigned)snprintf(v.s, sizeof(v.s), "%s:%0*u", type, 21 - (int)strlen(type), i);
    return v;
}

static struct sz_slice slice(const struct name *v)
{
    return sz_slice(v->s, v->n);
}

/* ---- the graph --------------------------------------------------------------------------------------------------- */

static void add(struct sz_loader *l, struct sz_slice object, const char *relation, struct sz_slice user)
{
    struct sz_tuple_key k = {.object = object, .relation = sz_cstr(relation), .user = user};
    struct sz_fault fault;
    if (sz_loader_add(l, &k, &fault) != 0) {
        fprintf(stderr, "%s\n", fault.message.s);
        exit(1);
    }
}

/* Folders are numbered level by level from the root, 0; the leaves come last. */
static unsigned parent_of(unsigned folder)
{
    return (folder - 1) / 10;
}

static unsigned leaf_of(unsigned doc)
{
    return n_folders - n_leaves + doc % n_leaves;
}

static void load_folder(struct sz_loader *l, unsigned f)
{
    struct name folder = name("folder", f), parent = name("folder", f == 0 ? 0 : parent_of(f));
    if (f > 0)
        add(l, slice(&folder), "parent", slice(&parent));
    for (unsigned i = 0; i < (f == 0 ? 1U : 2U); i++) {
        char userset[40];
        struct name group = name("group", mix(f, 1000 + i, n_groups));
        int n = snprintf(userset, sizeof(userset), "%s#member", group.s);
        add(l, slice(&folder), "viewer", sz_slice(userset, (size_t)n));
    }
}

static void load_graph(struct sz_loader *l)
{
    for (unsigned g = 0; g < n_groups; g++) {
        for (unsigned i = 0; i < MEMBERS; i++) {
            struct name group = name("group", g), user = name("user", mix(g, i, n_users));
            add(l, slice(&group), "member", slice(&user));
        }
    }
    for (unsigned f = 0; f < n_folders; f++)
        load_folder(l, f);
    for (unsigned d = 0; d < n_docs; d++) {
        struct name doc = name("document", d), folder = name("folder", leaf_of(d));
        add(l, slice(&doc), "parent", slice(&folder));
        for (unsigned i = 0; i < VIEWERS; i++) {
            struct name user = name("user", mix(d, 100 + i, n_users));
            add(l, slice(&doc), "viewer", slice(&user));
        }
    }
}

/* ---- measuring --------------------------------------------------------------------------------------------------- */

static double cpu_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

struct query {
    struct name doc, user;
};

/* A document and a user that: views it directly / is in no way related / is in a group of the root. */
static struct query make(const char *kind, bool hot)
{
    unsigned doc = hot ? (unsigned)rnd(HOT_DOCS) * (n_docs / HOT_DOCS) : (unsigned)rnd(n_docs), user;
    if (strcmp(kind, "direct") == 0)
        user = mix(doc, 100 + (hot ? 3 : (unsigned)rnd(VIEWERS)), n_users);
    else if (strcmp(kind, "root") == 0)
        user = mix(mix(0, 1000, n_groups), (unsigned)rnd(MEMBERS), n_users);
    else
        user = hot ? (unsigned)rnd(HOT_USERS) * (n_users / HOT_USERS) : (unsigned)rnd(n_users);
    return (struct query){name("document", doc), name("user", user)};
}

static double measure(struct sz_engine *e, const struct sz_program *p, const char *kind, bool hot, int repetitions,
                      unsigned *allowed)
{
    static struct query queries[QUERIES];
    double times[REPETITIONS_MAX];
    size_t distinct = hot ? HOT_QUERIES : QUERIES;
    for (size_t i = 0; i < distinct; i++)
        queries[i] = make(kind, hot);
    for (int r = 0; r < repetitions; r++) {
        struct sz_fault fault;
        *allowed = 0;
        if (!hot) { /* as many questions as were never asked before */
            for (size_t i = 0; i < QUERIES; i++)
                queries[i] = make(kind, false);
        }
        double start = cpu_now();
        for (size_t i = 0; i < QUERIES; i++) {
            const struct query *q = &queries[i % distinct];
            struct sz_check c = {
                .key = {.object = slice(&q->doc), .relation = SZ_S("viewer"), .user = slice(&q->user)}};
            uint64_t steps = 20000;
            *allowed += sz_engine_check(e, p, &c, &steps, &fault) == SZ_ENGINE_YES;
        }
        times[r] = (cpu_now() - start) / QUERIES;
    }
    qsort(times, (size_t)repetitions, sizeof(*times), by_value);
    return times[repetitions / 2];
}

static void report(struct sz_engine *e, const struct sz_program *p, const char *kind, bool hot, int repetitions)
{
    unsigned allowed;
    double ns = measure(e, p, kind, hot, repetitions, &allowed);
    printf(", \"%s_%s_ns\": %.1f, \"%s_%s_allowed\": %.3f", kind, hot ? "hot" : "cold", ns, kind, hot ? "hot" : "cold",
           (double)allowed / QUERIES);
}

static size_t resident_bytes(void)
{
    unsigned long size = 0, resident = 0;
    malloc_trim(0);
    FILE *f = fopen("/proc/self/statm", "r");
    if (f == NULL || fscanf(f, "%lu %lu", &size, &resident) != 2)
        exit(1);
    fclose(f);
    return resident * 4096;
}

static int count(void *arg, struct sz_slice object)
{
    (void)object;
    ++*(size_t *)arg;
    return 0;
}

/* ListObjects of users in one group: a document for each folder below it, up to 1,000. */
static void report_list(struct sz_engine *e, const struct sz_program *p, int repetitions)
{
    double times[REPETITIONS_MAX];
    size_t found = 0;
    struct name user = name("user", mix(mix(0, 1000, n_groups), 5, n_users));
    for (int r = 0; r < repetitions; r++) {
        struct sz_fault fault;
        struct sz_list_options o = {.max = 1000};
        found = 0;
        double start = cpu_now();
        if (sz_engine_list_objects(e, p, SZ_S("document"), SZ_S("viewer"), slice(&user), &o, count, &found, &fault) !=
            0)
            exit(1);
        times[r] = (cpu_now() - start) / 1000;
    }
    qsort(times, (size_t)repetitions, sizeof(*times), by_value);
    printf(", \"list_objects_us\": %.1f, \"list_objects_found\": %zu", times[repetitions / 2], found);
}

static void count_names(const char *type, unsigned n)
{
    name_bytes += (size_t)n * name(type, 0).n;
}

int main(int argc, char **argv)
{
    int repetitions = argc > 1 ? (int)strtol(argv[1], NULL, 10) : 7;
    unsigned scale = argc > 2 ? (unsigned)strtoul(argv[2], NULL, 10) : 1000;
    if (repetitions < 1 || repetitions > REPETITIONS_MAX || scale < 10 || scale > 1000) {
        fprintf(stderr, "usage: micro_engine [repetitions 1-%d] [scale 10|100|1000]\n", REPETITIONS_MAX);
        return 2;
    }
    sz_crypto_init();
    n_leaves = scale * 100;
    n_folders = 0;
    for (unsigned level = 1; level <= n_leaves; level *= 10)
        n_folders += level;
    n_docs = n_leaves * 10;
    n_groups = scale * 10;
    n_users = scale * 1000;
    count_names("document", n_docs);
    count_names("folder", n_folders);
    count_names("group", n_groups);
    count_names("user", n_users);
    struct sz_problems problems;
    struct sz_fault fault;
    sz_problems_init(&problems);
    struct sz_model *m = sz_dsl_parse(sz_cstr(model_text), &problems);
    struct sz_engine *e = sz_engine_new();
    const struct sz_program *p = sz_engine_add_model(e, m, &fault);
    size_t before = resident_bytes();
    double start = cpu_now();
    struct sz_loader *l = sz_loader_begin(e, p, (struct sz_wall){0});
    load_graph(l);
    sz_loader_end(l);
    double seconds = (cpu_now() - start) / 1e9;
    struct sz_engine_stats stats;
    sz_engine_stats(e, &stats);
    size_t bytes = resident_bytes() - before;
    printf("{\"tuples\": %zu, \"objects\": %zu, \"load_tuples_per_s\": %.0f, \"bytes_per_tuple\": %.1f, "
           "\"bytes_per_tuple_without_names\": %.1f",
           stats.tuples, stats.objects, (double)stats.tuples / seconds, (double)bytes / (double)stats.tuples,
           ((double)bytes - (double)name_bytes) / (double)stats.tuples);
    report(e, p, "direct", true, repetitions);
    report(e, p, "direct", false, repetitions);
    report(e, p, "walk", true, repetitions);
    report(e, p, "walk", false, repetitions);
    report(e, p, "root", true, repetitions);
    report(e, p, "root", false, repetitions);
    report_list(e, p, repetitions);
    printf("}\n");
    sz_engine_free(e);
    sz_model_free(m);
    sz_problems_fini(&problems);
    return 0;
}

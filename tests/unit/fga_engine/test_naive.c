/*
 * Random models, tuples and questions: the engine and the naive evaluator must agree, and so must the engine's checks
 * with its own lists.  The seed is fixed; SZ_NAIVE_SEED and SZ_NAIVE_ROUNDS ask for other and longer runs.
 */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>

#include "fga/engine/engine.h"
#include "naive.h"

enum { IDS = 2, RELATIONS = 4, TUPLES_MAX = 40, CONTEXTUAL_MAX = 3 };

static const char *const types[] = {"user", "group", "folder", "doc"};

struct world {
    uint64_t random;
    struct sz_engine *e;
    const struct sz_program *p;
    struct sz_model *m;
    char text[8192];
    struct naive_tuple tuples[TUPLES_MAX + CONTEXTUAL_MAX];
    size_t n, n_contextual; /* the last ones are contextual */
    struct naive_values request;
    unsigned long asked, yes, errors, cycles, lists;
};

static uint64_t rnd(struct world *w, uint64_t n)
{
    w->random ^= w->random << 13;
    w->random ^= w->random >> 7;
    w->random ^= w->random << 17;
    return (w->random >> 11) % n;
}

/* ---- random models ---- */

static void put(struct world *w, const char *fmt, ...) SZ_PRINTF(2, 3);
static void put(struct world *w, const char *fmt, ...)
{
    size_t n = strlen(w->text);
    va_list args;
    va_start(args, fmt);
    vsnprintf(w->text + n, sizeof(w->text) - n, fmt, args);
    va_end(args);
}

static void put_restrictions(struct world *w)
{
    static const char *const conditions[] = {"", "", "", " with c1", " with c2"};
    size_t n = 1 + rnd(w, 3);
    put(w, "[");
    for (size_t i = 0; i < n; i++) {
        const char *condition = conditions[rnd(w, SZ_COUNT(conditions))];
        put(w, "%s", i == 0 ? "" : ", ");
        switch (rnd(w, 5)) {
        case 0:
            put(w, "user:*%s", condition);
            break;
        case 1:
        case 2:
            put(w, "%s#r%d%s", types[1 + rnd(w, 3)], (int)rnd(w, RELATIONS), condition);
            break;
        default:
            put(w, "%s%s", types[rnd(w, 2)], condition);
        }
    }
    put(w, "]");
}

static void put_operand(struct world *w, unsigned depth, bool first)
{
    uint64_t kind = rnd(w, depth > 1 ? 3 : 5);
    if (first && kind < 2) {
        put_restrictions(w);
        return;
    }
    if (kind == 0 || (depth == 0 && rnd(w, 4) == 0)) {
        put(w, "r%d from p", (int)rnd(w, RELATIONS));
    } else if (kind < 3) {
        put(w, "r%d", (int)rnd(w, RELATIONS));
    } else {
        static const char *const ops[] = {" or ", " and ", " but not ", " or "};
        const char *op = ops[rnd(w, SZ_COUNT(ops))];
        size_t n = op[1] == 'b' ? 2 : 2 + rnd(w, 2);
        if (depth > 0)
            put(w, "(");
        for (size_t i = 0; i < n; i++) {
            put(w, "%s", i == 0 ? "" : op);
            put_operand(w, depth + 1, first && i == 0);
        }
        if (depth > 0)
            put(w, ")");
    }
}

static bool make_model(struct world *w)
{
    w->text[0] = '\0';
    put(w, "model\n  schema 1.1\ntype user\n");
    for (size_t t = 1; t < SZ_COUNT(types); t++) {
        put(w, "type %s\n  relations\n    define p: [%s, %s%s]\n", types[t], types[1 + rnd(w, 3)], types[1 + rnd(w, 3)],
            rnd(w, 4) == 0 ? " with c1" : "");
        for (int r = 0; r < RELATIONS; r++) {
            put(w, "    define r%d: ", r);
            if (r == 0 && rnd(w, 4) != 0)
                put(w, "[user, user:*%s, group#r0, group#r1]", rnd(w, 3) == 0 ? " with c1" : "");
            else if (r == 0)
                put_restrictions(w);
            else
                put_operand(w, 0, true);
            put(w, "\n");
        }
    }
    put(w, "condition c1(x: int) {\n  x > 1\n}\ncondition c2(y: bool) {\n  y\n}\n");
    struct sz_problems problems;
    struct sz_fault fault;
    sz_problems_init(&problems);
    struct sz_model *m = sz_dsl_parse(sz_cstr(w->text), &problems);
    sz_problems_fini(&problems);
    const struct sz_program *p = m != NULL ? sz_engine_add_model(w->e, m, &fault) : NULL;
    if (p == NULL) {
        sz_model_free(m);
        return false;
    }
    sz_model_free(w->m);
    w->m = m;
    w->p = p;
    return true;
}

/* ---- random tuples ---- */

static void random_object(struct world *w, char *out, size_t size, size_t first_type)
{
    snprintf(out, size, "%s:%d", types[first_type + rnd(w, SZ_COUNT(types) - first_type)], (int)rnd(w, IDS));
}

static void random_user(struct world *w, char *out, size_t size)
{
    size_t n;
    switch (rnd(w, 6)) {
    case 0:
        snprintf(out, size, "user:*");
        break;
    case 1:
    case 2:
        random_object(w, out, size, 1);
        n = strlen(out);
        snprintf(out + n, size - n, "#r%d", (int)rnd(w, RELATIONS));
        break;
    case 3:
        random_object(w, out, size, 1);
        break;
    default:
        snprintf(out, size, "user:%d", (int)rnd(w, IDS));
    }
}

static int maybe(struct world *w, int below)
{
    return rnd(w, 2) == 0 ? ABSENT : (int)rnd(w, (uint64_t)below);
}

static struct naive_tuple random_tuple(struct world *w)
{
    struct naive_tuple t = {.condition = rnd(w, 3) == 0 ? 1 + (int)rnd(w, 2) : 0, .values = {ABSENT, ABSENT}};
    random_object(w, t.object, sizeof(t.object), 1);
    if (rnd(w, 3) == 0) {
        snprintf(t.relation, sizeof(t.relation), "p");
        random_object(w, t.user, sizeof(t.user), 1);
    } else {
        snprintf(t.relation, sizeof(t.relation), "r%d", (int)rnd(w, RELATIONS));
        random_user(w, t.user, sizeof(t.user));
    }
    if (t.condition == 1)
        t.values.x = maybe(w, 4);
    if (t.condition == 2)
        t.values.y = maybe(w, 2);
    return t;
}

static void context_text(const struct naive_values *v, char *out, size_t size)
{
    int n = snprintf(out, size, "{");
    if (v->x != ABSENT)
        n += snprintf(out + n, size - (size_t)n, "\"x\":%d", v->x);
    if (v->y != ABSENT)
        n += snprintf(out + n, size - (size_t)n, "%s\"y\":%s", v->x != ABSENT ? "," : "", v->y ? "true" : "false");
    snprintf(out + n, size - (size_t)n, "}");
}

static struct sz_tuple_key key_of(const struct naive_tuple *t, char context[64])
{
    struct sz_tuple_key k = {.object = sz_cstr(t->object), .relation = sz_cstr(t->relation), .user = sz_cstr(t->user)};
    if (t->condition != 0) {
        context_text(&t->values, context, 64);
        k.condition = t->condition == 1 ? SZ_S("c1") : SZ_S("c2");
        k.condition_context = sz_cstr(context);
    }
    return k;
}

static void write_tuples(struct world *w, size_t wanted)
{
    char context[64];
    for (size_t tries = 0; tries < wanted * 6 && w->n < wanted; tries++) {
        struct naive_tuple t = random_tuple(w);
        struct sz_tuple_key k = key_of(&t, context);
        struct sz_write write = {.writes = &k, .writes_n = 1};
        struct sz_fault fault;
        if (sz_engine_write(w->e, w->p, &write, (struct sz_wall){0}, &fault) == 0)
            w->tuples[w->n++] = t;
    }
}

/* Some go again, so that blocks are made in both directions. */
static void delete_some(struct world *w)
{
    char context[64];
    for (size_t i = 0; i < w->n;) {
        if (rnd(w, 8) != 0) {
            i++;
            continue;
        }
        struct sz_tuple_key k = key_of(&w->tuples[i], context);
        struct sz_write write = {.deletes = &k, .deletes_n = 1};
        struct sz_fault fault;
        cr_assert_eq(sz_engine_write(w->e, w->p, &write, (struct sz_wall){0}, &fault), 0, "%s", fault.message.s);
        w->tuples[i] = w->tuples[--w->n];
    }
}

/* ---- questions ---- */

struct contextual {
    struct sz_tuple_key keys[CONTEXTUAL_MAX];
    char contexts[CONTEXTUAL_MAX][64], request[64];
};

static struct sz_check make_check(const struct world *w, struct contextual *c, const char *object, const char *relation,
                                  const char *user)
{
    for (size_t i = 0; i < w->n_contextual; i++)
        c->keys[i] = key_of(&w->tuples[w->n - w->n_contextual + i], c->contexts[i]);
    context_text(&w->request, c->request, sizeof(c->request));
    return (struct sz_check){.key = {.object = sz_cstr(object), .relation = sz_cstr(relation), .user = sz_cstr(user)},
                             .context = sz_cstr(c->request),
                             .contextual = c->keys,
                             .contextual_n = w->n_contextual};
}

/* Contextual tuples that the model admits; what it does not is refused by the engine and dropped here. */
static void add_contextual(struct world *w)
{
    struct contextual c;
    size_t wanted = rnd(w, CONTEXTUAL_MAX + 1);
    for (size_t tries = 0; tries < 20 && w->n_contextual < wanted; tries++) {
        w->tuples[w->n] = random_tuple(w);
        w->tuples[w->n++].contextual = true;
        w->n_contextual++;
        struct sz_check check = make_check(w, &c, "doc:0", "r0", "user:0");
        struct sz_fault fault = {0};
        uint64_t steps = 0;
        if (sz_engine_check(w->e, w->p, &check, &steps, &fault) < 0) {
            w->n--;
            w->n_contextual--;
        }
    }
}

static void describe(const struct world *w)
{
    fprintf(stderr, "%s", w->text);
    for (size_t i = 0; i < w->n; i++)
        fprintf(stderr, "%s%s#%s@%s c%d x=%d y=%d\n", w->tuples[i].contextual ? "contextual " : "", w->tuples[i].object,
                w->tuples[i].relation, w->tuples[i].user, w->tuples[i].condition, w->tuples[i].values.x,
                w->tuples[i].values.y);
    fprintf(stderr, "request x=%d y=%d\n", w->request.x, w->request.y);
}

static enum naive_answer naive(struct world *w, const char *object, const char *relation, const char *user, bool *cycle)
{
    struct naive v = {.m = w->m, .tuples = w->tuples, .n = w->n, .request = w->request, .steps = 3000};
    enum naive_answer answer = naive_check(&v, object, relation, user);
    if (cycle != NULL)
        *cycle |= v.met_cycle;
    return answer;
}

static void compare_check(struct world *w, const char *object, const char *relation, const char *user)
{
    struct contextual c;
    bool cycle = false;
    enum naive_answer want = naive(w, object, relation, user, &cycle);
    if (want == N_GAVE_UP)
        return;
    struct sz_check check = make_check(w, &c, object, relation, user);
    struct sz_fault fault = {0};
    uint64_t steps = 10000000;
    int got = sz_engine_check(w->e, w->p, &check, &steps, &fault);
    w->asked++;
    w->yes += want == N_YES;
    w->errors += want == N_ERROR;
    w->cycles += cycle;
    bool same = want == N_ERROR ? got < 0 : got == (want == N_YES);
    if (!same)
        describe(w);
    cr_assert(same, "check %s %s %s: engine %d (%s), naive %d", object, relation, user, got, fault.message.s, want);
}

/* ---- lists ---- */

struct names {
    char v[64][32];
    size_t n;
};

static int collect(void *arg, struct sz_slice name)
{
    struct names *names = arg;
    if (names->n < SZ_COUNT(names->v))
        snprintf(names->v[names->n++], sizeof(names->v[0]), "%.*s", SZ_FMT(name));
    return 0;
}

static bool has(const struct names *names, const char *name)
{
    for (size_t i = 0; i < names->n; i++)
        if (strcmp(names->v[i], name) == 0)
            return true;
    return false;
}

/* Every object that checks is listed and no other; an error only where some check is one. */
static void compare_objects(struct world *w, const char *type, const char *relation, const char *user)
{
    struct contextual c;
    struct names got = {0};
    struct sz_check check = make_check(w, &c, "", relation, user);
    struct sz_list_options o = {
        .context = check.context, .contextual = check.contextual, .contextual_n = check.contextual_n};
    struct sz_fault fault = {0};
    int err =
        sz_engine_list_objects(w->e, w->p, sz_cstr(type), sz_cstr(relation), sz_cstr(user), &o, collect, &got, &fault);
    bool any_error = false;
    w->lists++;
    for (int id = 0; id < IDS; id++) {
        char object[16];
        snprintf(object, sizeof(object), "%s:%d", type, id);
        enum naive_answer want = naive(w, object, relation, user, NULL);
        any_error |= want == N_ERROR || want == N_GAVE_UP;
        if (err == 0 && want != N_GAVE_UP && has(&got, object) != (want == N_YES)) {
            describe(w);
            cr_assert_fail("list objects %s %s %s: %s is %s", type, relation, user, object,
                           want == N_YES ? "missing" : "too many");
        }
    }
    if (err != 0 && !any_error)
        describe(w);
    cr_assert(err == 0 || any_error, "list objects %s %s %s: %s", type, relation, user, fault.message.s);
}

/* A contextual tuple hides the stored one from a check, not from a list. */
static bool hides(const struct world *w)
{
    for (size_t i = w->n - w->n_contextual; i < w->n; i++)
        for (size_t k = 0; k < i; k++)
            if (strcmp(w->tuples[i].object, w->tuples[k].object) == 0 &&
                strcmp(w->tuples[i].relation, w->tuples[k].relation) == 0 &&
                strcmp(w->tuples[i].user, w->tuples[k].user) == 0)
                return true;
    return false;
}

/* Without cycles: who is listed checks, who checks is listed or covered by everybody. */
static void compare_users(struct world *w, const char *object, const char *relation)
{
    struct contextual c;
    struct names got = {0};
    struct sz_check check = make_check(w, &c, object, relation, "");
    struct sz_list_options o = {
        .context = check.context, .contextual = check.contextual, .contextual_n = check.contextual_n};
    struct sz_fault fault = {0};
    int err = sz_engine_list_users(w->e, w->p, sz_cstr(object), sz_cstr(relation), SZ_S("user"), SZ_NONE, &o, collect,
                                   &got, &fault);
    bool cycle = false, any_error = false;
    enum naive_answer want[IDS + 1];
    for (int id = 0; id <= IDS; id++) {
        char user[16];
        snprintf(user, sizeof(user), id < IDS ? "user:%d" : "user:*", id);
        want[id] = naive(w, object, relation, user, &cycle);
        any_error |= want[id] == N_ERROR || want[id] == N_GAVE_UP;
    }
    if (err != 0 || any_error || cycle || hides(w))
        return; /* lists read branches that a check never opens */
    w->lists++;
    for (int id = 0; id <= IDS; id++) {
        char user[16];
        snprintf(user, sizeof(user), id < IDS ? "user:%d" : "user:*", id);
        bool listed = has(&got, user), covered = listed || (id < IDS && has(&got, "user:*"));
        bool same = want[id] == N_YES ? covered : !listed;
        if (!same)
            describe(w);
        cr_assert(same, "list users %s %s: %s is %s", object, relation, user,
                  want[id] == N_YES ? "missing" : "too many");
    }
}

static void ask_around(struct world *w)
{
    char object[16], relation[8], user[24];
    for (int i = 0; i < 60; i++) {
        random_object(w, object, sizeof(object), 1);
        snprintf(relation, sizeof(relation), "r%d", (int)rnd(w, RELATIONS));
        random_user(w, user, sizeof(user));
        compare_check(w, object, relation, user);
        if (i % 4 == 0)
            compare_objects(w, types[1 + rnd(w, 3)], relation, user);
        if (i % 4 == 1)
            compare_users(w, object, relation);
    }
}

static void round_of(struct world *w)
{
    w->e = sz_engine_new();
    w->n = w->n_contextual = 0;
    unsigned models = 1 + (rnd(w, 3) == 0);
    for (unsigned i = 0; i < models; i++) { /* tuples of an older model stay and are no longer admitted */
        int tries = 0;
        while (!make_model(w) && ++tries < 200)
            ;
        if (tries == 200)
            break;
        write_tuples(w, 8 + rnd(w, (i + 1) * TUPLES_MAX / 2 - 8));
        delete_some(w);
    }
    for (int i = 0; i < 3 && w->p != NULL; i++) {
        w->request = (struct naive_values){maybe(w, 4), maybe(w, 2)};
        add_contextual(w);
        ask_around(w);
        w->n -= w->n_contextual;
        w->n_contextual = 0;
    }
    sz_model_free(w->m);
    w->m = NULL;
    w->p = NULL;
    sz_engine_free(w->e);
}

Test(engine, agrees_with_the_naive_evaluator, .timeout = 600)
{
    const char *seed = getenv("SZ_NAIVE_SEED"), *rounds = getenv("SZ_NAIVE_ROUNDS");
    struct world *w = calloc(1, sizeof(*w));
    w->random = seed != NULL ? strtoull(seed, NULL, 10) : UINT64_C(0x5eed0f5eed0f5eed);
    long n = rounds != NULL ? strtol(rounds, NULL, 10) : 60;
    for (long i = 0; i < n; i++)
        round_of(w);
    cr_log_info("%lu checks: %lu yes, %lu errors, %lu met a cycle; %lu lists", w->asked, w->yes, w->errors, w->cycles,
                w->lists);
    free(w);
}

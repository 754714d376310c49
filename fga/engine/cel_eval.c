/*
 * The stack machine.  Straight down the code; only a loop calls itself, for its predicate.
 */
#include <errno.h>

#include "fga/engine/cel_tree.h"

struct machine {
    const struct sz_cel *cel;
    struct sz_cv *slots, *stack;
    struct sz_pool *pool;
    uint64_t cost;
};

static struct sz_cv field(const struct sz_cv *on, const struct sz_cv *name, bool has)
{
    if (on->kind == CV_ERROR)
        return *on;
    struct sz_cv args[2] = {*on, *name};
    if (on->kind != CV_MAP)
        return sz_cv_error("no such field");
    if (has)
        return sz_fn_call(FN_IN, (struct sz_cv[]){*name, *on}, 2, NULL);
    return sz_fn_call(FN_INDEX, args, 2, NULL);
}

/* Both are needed; an error gives way only to the value that decides. */
static struct sz_cv both(const struct sz_cv *a, const struct sz_cv *b, bool decides)
{
    if ((a->kind == CV_BOOL && a->b == decides) || (b->kind == CV_BOOL && b->b == decides))
        return sz_cv_bool(decides);
    if (a->kind == CV_BOOL && b->kind == CV_BOOL)
        return sz_cv_bool(!decides);
    if (a->kind == CV_ERROR)
        return *a;
    return b->kind == CV_ERROR ? *b : sz_cv_error("no such overload");
}

static struct sz_cv call(struct machine *m, const struct sz_ins *ins, const struct sz_cv *args)
{
    for (size_t i = 0; i < ins->n; i++)
        if (args[i].kind == CV_ERROR)
            return args[i];
    m->cost += sz_fn_cost((enum sz_fn)ins->a, args, ins->n);
    return sz_fn_call((enum sz_fn)ins->a, args, ins->n, m->pool);
}

static struct sz_cv match(struct machine *m, const struct sz_ins *ins, const struct sz_cv *text)
{
    if (text->kind != CV_STRING)
        return text->kind == CV_ERROR ? *text : sz_cv_error("no such overload");
    struct sz_cv args[2] = {*text, sz_cv_int(0)};
    m->cost += (sz_fn_cost(FN_ENDS_WITH, (struct sz_cv[]){args[1], *text}, 2) + 1) * ((ins->a + 3U) / 4);
    return m->cost > SZ_CEL_COST_MAX ? sz_cv_bool(false)
                                     : sz_cv_bool(sz_regex_search(m->cel->regexes[ins->b], text->s));
}

static struct sz_cv make_list(struct machine *m, const struct sz_cv *items, size_t n)
{
    struct sz_cv_list *list = sz_pool_alloc(m->pool, sizeof(*list));
    struct sz_cv *v = sz_pool_alloc(m->pool, (n + 1) * sizeof(*v));
    m->cost += 10;
    for (size_t i = 0; i < n; i++) {
        if (items[i].kind == CV_ERROR)
            return items[i];
        v[i] = items[i];
    }
    *list = (struct sz_cv_list){n, v};
    return (struct sz_cv){.kind = CV_LIST, .list = list};
}

static struct sz_cv make_map(struct machine *m, const struct sz_cv *items, size_t n)
{
    struct sz_cv_map *map = sz_pool_alloc(m->pool, sizeof(*map));
    struct sz_cv *v = sz_pool_alloc(m->pool, (n + 1) * sizeof(*v));
    m->cost += 30;
    for (size_t i = 0; i < n; i++) {
        if (items[i].kind == CV_ERROR)
            return items[i];
        v[i % 2 == 0 ? i / 2 : n / 2 + i / 2] = items[i];
        for (size_t k = 0; i % 2 == 0 && k < i / 2; k++)
            if (sz_cv_equal(&v[k], &v[i / 2]))
                return sz_cv_error("a map has a key twice");
    }
    *map = (struct sz_cv_map){n / 2, v, v + n / 2};
    return (struct sz_cv){.kind = CV_MAP, .map = map};
}

static struct sz_cv run(struct machine *m, size_t from, size_t to, size_t sp);

/* all: && over the elements, exists: ||, exists_one: exactly one, where an error decides at once. */
static struct sz_cv fold(struct machine *m, size_t pc, const struct sz_cv *range, size_t sp)
{
    const struct sz_ins *ins = &m->cel->code[pc];
    const struct sz_cv *v = range->kind == CV_LIST ? range->list->v : range->kind == CV_MAP ? range->map->keys : NULL;
    size_t n = range->kind == CV_LIST ? range->list->n : range->kind == CV_MAP ? range->map->n : 0, ones = 0;
    bool exists = ins->n == EX_EXISTS;
    struct sz_cv all = sz_cv_bool(!exists);
    if (range->kind != CV_LIST && range->kind != CV_MAP)
        return range->kind == CV_ERROR ? *range : sz_cv_error("no such overload");
    for (size_t i = 0; i < n && m->cost <= SZ_CEL_COST_MAX; i++) {
        m->slots[ins->a] = v[i];
        struct sz_cv one = run(m, pc + 1, pc + 1 + ins->b, sp);
        m->cost += exists ? 4 : 3; /* what the loop itself counts for */
        if (ins->n == EX_EXISTS_ONE) {
            if (one.kind != CV_BOOL)
                return one.kind == CV_ERROR ? one : sz_cv_error("no such overload");
            ones += one.b;
            continue;
        }
        all = both(&all, &one, exists);
        if (all.kind == CV_BOOL && all.b == exists)
            return all;
    }
    return ins->n == EX_EXISTS_ONE ? sz_cv_bool(ones == 1) : all;
}

/* One instruction that takes n values and leaves one. */
static struct sz_cv reduce(struct machine *m, const struct sz_ins *ins, const struct sz_cv *args)
{
    switch ((enum sz_op)ins->op) {
    case OP_CALL:
        return call(m, ins, args);
    case OP_MATCH:
        return match(m, ins, args);
    case OP_LIST:
        return make_list(m, args, ins->n);
    case OP_MAP:
        return make_map(m, args, ins->n);
    case OP_AND:
        return both(&args[0], &args[1], false);
    case OP_OR:
        return both(&args[0], &args[1], true);
    default: /* OP_SELECT, OP_HAS */
        m->cost++;
        return field(&args[0], &m->cel->consts[ins->b], ins->op == OP_HAS);
    }
}

static struct sz_cv run(struct machine *m, size_t from, size_t to, size_t sp)
{
    struct sz_cv *st = m->stack;
    for (size_t pc = from; pc < to;) {
        const struct sz_ins *ins = &m->cel->code[pc++];
        switch ((enum sz_op)ins->op) {
        case OP_CONST:
            st[sp++] = m->cel->consts[ins->b];
            break;
        case OP_VAR:
            m->cost++;
            st[sp++] = m->slots[ins->b];
            break;
        case OP_JUMP:
            pc = ins->b;
            break;
        case OP_AND_JUMP:
        case OP_OR_JUMP:
            if (st[sp - 1].kind == CV_BOOL && st[sp - 1].b == (ins->op == OP_OR_JUMP))
                pc = ins->b;
            break;
        case OP_COND:
            sp--;
            if (st[sp].kind != CV_BOOL) {
                if (st[sp].kind != CV_ERROR)
                    st[sp] = sz_cv_error("no such overload");
                sp++;
                pc = ins->a;
            } else if (!st[sp].b) {
                pc = ins->b;
            }
            break;
        case OP_FOLD:
            st[sp - 1] = fold(m, pc - 1, &st[sp - 1], sp);
            pc += ins->b;
            break;
        case OP_CALL:
        case OP_LIST:
        case OP_MAP:
            sp -= ins->n;
            st[sp] = reduce(m, ins, &st[sp]);
            sp++;
            break;
        case OP_AND:
        case OP_OR:
            sp--;
            st[sp - 1] = reduce(m, ins, &st[sp - 1]);
            break;
        case OP_MATCH:
        case OP_SELECT:
        case OP_HAS:
            st[sp - 1] = reduce(m, ins, &st[sp - 1]);
            break;
        }
    }
    return st[sp - 1];
}

int sz_cel_eval(const struct sz_cel *cel, const struct sz_cv *vars, struct sz_pool *scratch, struct sz_text *why)
{
    struct sz_cv stack[64], slots[48];
    struct machine m = {.cel = cel, .slots = slots, .stack = stack, .pool = scratch};
    if (cel->max_stack + 1 > SZ_COUNT(stack))
        m.stack = sz_pool_alloc(scratch, (cel->max_stack + 1) * sizeof(*stack));
    if (cel->n_slots > SZ_COUNT(slots))
        m.slots = sz_pool_alloc(scratch, cel->n_slots * sizeof(*slots));
    if (cel->n_params > 0)
        memcpy(m.slots, vars, cel->n_params * sizeof(*vars));
    struct sz_cv result = run(&m, 0, cel->n, 0);
    if (m.cost > SZ_CEL_COST_MAX)
        sz_text_set(why, "the condition costs more than %d to evaluate", SZ_CEL_COST_MAX);
    else if (result.kind == CV_ERROR)
        sz_text_set(why, "%.*s", SZ_FMT(result.s));
    else if (result.kind != CV_BOOL)
        sz_text_set(why, "the condition is no bool");
    else
        return result.b;
    return -EINVAL;
}

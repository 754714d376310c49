/*
 * Checked tree -> bytecode for a stack machine.  Calls with nothing but constants are done here, once, unless
 * they fail; constant patterns are compiled here.
 */
#include <stdlib.h>

#include "fga/engine/cel_tree.h"

struct emitter {
    struct sz_celc *c;
    struct sz_cel *cel;
    size_t cap, cap_consts, depth;
};

enum { MAX_CODE = 8192, MAX_STACK = 512 };

static size_t emit(struct emitter *e, enum sz_op op, size_t n, size_t a, size_t b)
{
    struct sz_cel *cel = e->cel;
    if (cel->n >= MAX_CODE) {
        sz_celc_fail(e->c, 0, "the expression is too large");
        return 0;
    }
    if (cel->n == e->cap) {
        e->cap = e->cap == 0 ? 16 : e->cap * 2;
        cel->code = sz_xrealloc(cel->code, e->cap * sizeof(*cel->code));
    }
    cel->code[cel->n] = (struct sz_ins){(uint8_t)op, (uint8_t)n, (uint16_t)a, (uint32_t)b};
    return cel->n++;
}

/* The stack grows by one. */
static void grows(struct emitter *e)
{
    if (++e->depth > e->cel->max_stack)
        e->cel->max_stack = e->depth;
    if (e->depth > MAX_STACK)
        sz_celc_fail(e->c, 0, "the expression is too deep");
}

static size_t add_const(struct emitter *e, struct sz_cv v)
{
    if (e->cel->n_consts == e->cap_consts) {
        e->cap_consts = e->cap_consts == 0 ? 8 : e->cap_consts * 2;
        e->cel->consts = sz_xrealloc(e->cel->consts, e->cap_consts * sizeof(*e->cel->consts));
    }
    e->cel->consts[e->cel->n_consts] = v;
    return e->cel->n_consts++;
}

/* The tree's value when it depends on nothing; an error or anything else: not folded. */
static bool folded(struct emitter *e, const struct sz_ex *x, struct sz_cv *out)
{
    struct sz_cv args[3];
    if (x->kind == EX_CONST) {
        *out = x->value;
        return true;
    }
    if (x->kind != EX_CALL || x->n > SZ_COUNT(args) || x->fn == FN_MATCHES || x->fn == FN_MATCHES_FN)
        return false;
    for (size_t i = 0; i < x->n; i++)
        if (!folded(e, x->args[i], &args[i]))
            return false;
    *out = sz_fn_call(x->fn, args, x->n, &e->c->arena.pool);
    return out->kind != CV_ERROR;
}

static void emit_node(struct emitter *e, const struct sz_ex *x);

static void emit_logic(struct emitter *e, const struct sz_ex *x)
{
    bool and = x->kind == EX_AND;
    emit_node(e, x->args[0]);
    size_t jump = emit(e, and? OP_AND_JUMP : OP_OR_JUMP, 0, 0, 0);
    emit_node(e, x->args[1]);
    emit(e, and? OP_AND : OP_OR, 0, 0, 0);
    e->depth--;
    e->cel->code[jump].b = (uint32_t)e->cel->n;
}

static void emit_cond(struct emitter *e, const struct sz_ex *x)
{
    emit_node(e, x->args[0]);
    size_t test = emit(e, OP_COND, 0, 0, 0);
    e->depth--;
    emit_node(e, x->args[1]);
    size_t jump = emit(e, OP_JUMP, 0, 0, 0);
    e->depth--;
    e->cel->code[test].b = (uint32_t)e->cel->n;
    emit_node(e, x->args[2]);
    e->cel->code[jump].b = (uint32_t)e->cel->n;
    e->cel->code[test].a = (uint16_t)e->cel->n;
}

static void emit_fold(struct emitter *e, const struct sz_ex *x)
{
    emit_node(e, x->args[0]);
    size_t loop = emit(e, OP_FOLD, x->kind, x->slot, 0);
    emit_node(e, x->args[1]);
    e->depth--;
    if (!e->c->failed)
        e->cel->code[loop].b = (uint32_t)(e->cel->n - loop - 1);
}

/* x.matches("constant"): the pattern is compiled now, so a bad one is a bad model. */
static bool emit_match(struct emitter *e, const struct sz_ex *x)
{
    if ((x->fn != FN_MATCHES && x->fn != FN_MATCHES_FN) || x->n != 2 || x->args[1]->kind != EX_CONST)
        return false;
    struct sz_text why;
    struct sz_regex *re = sz_regex_compile(x->args[1]->value.s, &why);
    if (re == NULL) {
        sz_celc_fail(e->c, x->at, "%s", why.s);
        return true;
    }
    emit_node(e, x->args[0]);
    e->cel->regexes = sz_xrealloc(e->cel->regexes, (e->cel->n_regexes + 1) * sizeof(struct sz_regex *));
    e->cel->regexes[e->cel->n_regexes] = re;
    emit(e, OP_MATCH, 0, x->args[1]->value.s.n, e->cel->n_regexes++);
    return true;
}

static void emit_args(struct emitter *e, const struct sz_ex *x, enum sz_op op, size_t a, size_t b)
{
    for (size_t i = 0; i < x->n; i++)
        emit_node(e, x->args[i]);
    emit(e, op, x->n, a, b);
    e->depth -= x->n;
    grows(e);
}

static void emit_node(struct emitter *e, const struct sz_ex *x)
{
    struct sz_cv value;
    if (e->c->failed)
        return;
    if (folded(e, x, &value)) {
        emit(e, OP_CONST, 0, 0, add_const(e, value));
        grows(e);
        return;
    }
    switch (x->kind) {
    case EX_CONST:
        return; /* folded above */
    case EX_VAR:
        emit(e, OP_VAR, 0, 0, x->slot);
        grows(e);
        return;
    case EX_CALL:
        if (!emit_match(e, x))
            emit_args(e, x, OP_CALL, x->fn, 0);
        return;
    case EX_AND:
    case EX_OR:
        emit_logic(e, x);
        return;
    case EX_COND:
        emit_cond(e, x);
        return;
    case EX_SELECT:
    case EX_HAS:
        emit_args(e, x, x->kind == EX_HAS ? OP_HAS : OP_SELECT, 0, add_const(e, sz_cv_string(x->name)));
        return;
    case EX_LIST:
        emit_args(e, x, OP_LIST, 0, 0);
        return;
    case EX_MAP:
        emit_args(e, x, OP_MAP, 0, 0);
        return;
    case EX_ALL:
    case EX_EXISTS:
    case EX_EXISTS_ONE:
        emit_fold(e, x);
        return;
    }
}

struct sz_cel *sz_celc_emit(struct sz_celc *c, const struct sz_ex *root)
{
    struct emitter e = {.c = c, .cel = sz_xcalloc(1, sizeof(struct sz_cel))};
    e.cel->n_params = c->n_params;
    e.cel->n_slots = c->n_params + c->max_loop_vars;
    emit_node(&e, root);
    e.cel->arena = c->arena; /* constants live there */
    sz_arena_init(&c->arena);
    if (!c->failed)
        return e.cel;
    sz_cel_free(e.cel);
    return NULL;
}

void sz_cel_free(struct sz_cel *cel)
{
    if (cel == NULL)
        return;
    for (size_t i = 0; i < cel->n_regexes; i++)
        sz_regex_free(cel->regexes[i]);
    free(cel->regexes);
    free(cel->consts);
    free(cel->code);
    sz_arena_fini(&cel->arena);
    free(cel);
}

struct sz_cel *sz_cel_compile(struct sz_slice expression, const struct sz_param *params, size_t n, struct sz_text *why)
{
    struct sz_celc c = {.why = why, .params = params, .n_params = n};
    struct sz_cel *cel = NULL;
    sz_arena_init(&c.arena);
    c.text = sz_pool_dup(&c.arena.pool, expression); /* names and constants may point into it */
    struct sz_ex *root = sz_celc_parse(&c);
    if (root != NULL) {
        sz_celc_check(&c, root);
        if (!c.failed && root->type->kind != TY_BOOL)
            sz_celc_fail(&c, 0, "the expression must be a bool");
        if (!c.failed)
            cel = sz_celc_emit(&c, root);
    }
    sz_arena_fini(&c.arena);
    return cel;
}

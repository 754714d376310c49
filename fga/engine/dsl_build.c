/*
 * Parse tree -> model, with the mistakes that only show here: things defined twice, `extend` outside
 * of a module.  Trees of wrong input have holes; every child may be missing.
 */
#include "fga/engine/dsl.h"

struct build {
    struct sz_model *m;
    struct sz_problems *problems;
    struct sz_type *type;
    struct sz_rel *rel;
};

static bool is_rule(const struct sz_node *node, enum sz_rule rule)
{
    return !node->is_token && node->rule == rule;
}

/* The nth part of that rule: for the few fixed places; lists are walked. */
static struct sz_node *child(const struct sz_node *node, enum sz_rule rule, size_t nth)
{
    for (size_t i = 0; node != NULL && i < node->n; i++)
        if (is_rule(node->child[i], rule) && nth-- == 0)
            return node->child[i];
    return NULL;
}

static const struct sz_token *token(const struct sz_node *node, enum sz_tok type)
{
    for (size_t i = 0; node != NULL && i < node->n; i++)
        if (node->child[i]->is_token && node->child[i]->token->type == type)
            return node->child[i]->token;
    return NULL;
}

/* The first token below a node, NULL when there is none. */
static const struct sz_token *leaf(const struct sz_node *node)
{
    while (node != NULL && !node->is_token)
        node = node->n > 0 ? node->child[0] : NULL;
    return node != NULL ? node->token : NULL;
}

static struct sz_slice name_of(struct build *b, const struct sz_node *node)
{
    const struct sz_token *t = leaf(node);
    return t == NULL ? SZ_S("") : sz_pool_dup(&b->m->arena.pool, t->text);
}

static void problem_at(struct build *b, const struct sz_token *t, struct sz_slice message)
{
    struct sz_problem *p = sz_problems_add(b->problems, "syntax", "%.*s", SZ_FMT(message));
    if (p == NULL || t == NULL)
        return;
    p->symbol = sz_pool_dup(&b->problems->arena.pool, t->text);
    sz_problem_place(p, t->line, t->column, t->column + t->text.n);
}

static void add_restriction(struct build *b, const struct sz_node *restr)
{
    const struct sz_node *base = child(restr, R_restr_base, 0);
    if (base == NULL)
        return;
    struct sz_ref *ref = sz_model_add_ref(b->m, b->rel);
    ref->type = name_of(b, child(base, R_long_name, 0));
    ref->wildcard = token(base, T_STAR) != NULL;
    if (child(base, R_long_name, 1) != NULL)
        ref->relation = name_of(b, child(base, R_long_name, 1));
    if (child(restr, R_cond_name, 0) != NULL)
        ref->condition = name_of(b, child(restr, R_cond_name, 0));
}

static struct sz_rw *build_expr(struct build *b, const struct sz_node *node, unsigned depth);

/* An operand: direct, group, paren or paren_nd.  NULL: a hole. */
static struct sz_rw *build_operand(struct build *b, const struct sz_node *node, unsigned depth)
{
    if (node == NULL || node->is_token)
        return NULL;
    switch (node->rule) {
    case R_direct:
        for (size_t i = 0; i < node->n && b->rel->n_refs <= SZ_MODEL_LIST_MAX; i++)
            if (is_rule(node->child[i], R_restr))
                add_restriction(b, node->child[i]);
        return sz_model_rw(b->m, SZ_RW_THIS);
    case R_group: {
        const struct sz_node *rewrite = child(node, R_rewrite, 0);
        if (child(rewrite, R_long_name, 0) == NULL)
            return NULL;
        bool ttu = child(rewrite, R_long_name, 1) != NULL;
        struct sz_rw *rw = sz_model_rw(b->m, ttu ? SZ_RW_TTU : SZ_RW_COMPUTED);
        rw->relation = name_of(b, child(rewrite, R_long_name, 0));
        if (ttu)
            rw->tupleset = name_of(b, child(rewrite, R_long_name, 1));
        return rw;
    }
    case R_paren:
    case R_paren_nd:
        for (size_t i = 0; i < node->n; i++)
            if (!node->child[i]->is_token)
                return build_expr(b, node->child[i], depth + 1);
        return NULL;
    default:
        return NULL;
    }
}

/* expr, expr_nd, paren or paren_nd. */
static struct sz_rw *build_expr(struct build *b, const struct sz_node *node, unsigned depth)
{
    if (depth > SZ_MODEL_NEST) {
        problem_at(b, leaf(node), SZ_S("parentheses are nested too deeply"));
        return NULL;
    }
    if (node->rule == R_paren || node->rule == R_paren_nd)
        return build_operand(b, node, depth);
    struct sz_rw *first = build_operand(b, node->n > 0 ? node->child[0] : NULL, depth);
    const struct sz_node *partials = child(node, R_partials, 0);
    if (partials == NULL || first == NULL)
        return first;
    enum sz_rw_op op = token(partials, T_OR) != NULL    ? SZ_RW_UNION
                       : token(partials, T_AND) != NULL ? SZ_RW_INTERSECTION
                                                        : SZ_RW_DIFFERENCE;
    struct sz_rw *rw = sz_model_rw(b->m, op);
    sz_model_rw_add(b->m, rw, first);
    for (size_t i = 0; i < partials->n; i++) {
        struct sz_rw *operand = build_operand(b, partials->child[i], depth);
        if (operand != NULL)
            sz_model_rw_add(b->m, rw, operand);
    }
    return rw->n == 1 ? first : rw;
}

static void build_relation(struct build *b, const struct sz_node *node)
{
    const struct sz_node *name_node = child(node, R_rel_name, 0), *expr = child(node, R_expr, 0);
    if (leaf(name_node) == NULL || expr == NULL)
        return;
    struct sz_slice name = name_of(b, name_node);
    if (sz_type_rel(b->type, name) != NULL)
        problem_at(b, leaf(name_node),
                   sz_pool_printf(&b->m->arena.pool, "'%.*s' is already defined in '%.*s'", SZ_FMT(name),
                                  SZ_FMT(b->type->name)));
    b->rel = sz_model_add_rel(b->m, b->type, name);
    b->rel->described = true;
    b->rel->rw = build_expr(b, expr, 0);
    if (b->rel->rw == NULL) { /* a hole: no relation at all */
        b->type->n_rels--;
        memset(b->rel, 0, sizeof(*b->rel));
    } else if (b->type->extends) {
        b->rel->module = b->m->module;
    }
}

static bool extended_before(const struct build *b, struct sz_slice name)
{
    for (size_t i = 0; i < b->m->n_types; i++)
        if (b->m->types[i].extends && sz_eq(b->m->types[i].name, name))
            return true;
    return false;
}

static void build_type(struct build *b, const struct sz_node *node)
{
    const struct sz_node *name_node = child(node, R_long_name, 0);
    if (leaf(name_node) == NULL)
        return;
    bool extends = token(node, T_EXTEND) != NULL, modular = b->m->module.p != NULL;
    if (extends && !modular)
        problem_at(b, leaf(name_node), SZ_S("extend can only be used in a modular model"));
    struct sz_slice name = name_of(b, name_node);
    bool again = extends && modular && extended_before(b, name);
    b->type = sz_model_add_type(b->m, name);
    b->type->extends = extends && modular;
    b->type->module = b->m->module;
    for (size_t i = 0; i < node->n && b->type->n_rels <= SZ_MODEL_RELATIONS_MAX; i++)
        if (is_rule(node->child[i], R_relation))
            build_relation(b, node->child[i]);
    b->type->has_metadata = modular || b->type->n_rels > 0;
    if (again)
        problem_at(b, leaf(name_node),
                   sz_pool_printf(&b->m->arena.pool, "'%.*s' is already extended in file.", SZ_FMT(name)));
}

static void build_param(struct build *b, struct sz_cond *c, const struct sz_node *node)
{
    const struct sz_node *name_node = child(node, R_param_name, 0), *type = child(node, R_param_type, 0);
    if (leaf(name_node) == NULL || leaf(type) == NULL)
        return;
    struct sz_slice name = name_of(b, name_node);
    for (size_t i = 0; i < c->n_params; i++)
        if (sz_eq(c->params[i].name, name))
            problem_at(b, leaf(name_node),
                       sz_pool_printf(&b->m->arena.pool, "parameter '%.*s' is already defined in the condition '%.*s'",
                                      SZ_FMT(name), SZ_FMT(c->name)));
    struct sz_param *p = sz_model_add_param(b->m, c, name);
    const struct sz_token *container = token(type, T_CONTAINER), *plain = token(type, T_PTYPE);
    const struct sz_token *outer = container != NULL ? container : plain;
    if (outer == NULL)
        return;
    p->type = sz_ptype_parse(outer->text);
    if (container != NULL && plain != NULL)
        p->element = sz_ptype_parse(plain->text);
}

static struct sz_slice js_trim(struct sz_slice s)
{
    while (s.n > 0 && strchr(" \t\n\r\f\v", s.p[0]) != NULL)
        s = sz_from(s, 1);
    while (s.n > 0 && strchr(" \t\n\r\f\v", s.p[s.n - 1]) != NULL)
        s.n--;
    return s;
}

static void build_condition(struct build *b, const struct sz_node *node)
{
    const struct sz_node *name_node = child(node, R_cond_name, 0), *cel = child(node, R_cel, 0);
    if (leaf(name_node) == NULL)
        return;
    struct sz_slice name = name_of(b, name_node);
    if (sz_model_cond(b->m, name) != NULL)
        problem_at(b, leaf(name_node),
                   sz_pool_printf(&b->m->arena.pool, "condition '%.*s' is already defined in the model", SZ_FMT(name)));
    struct sz_cond *c = sz_model_add_cond(b->m, name);
    c->module = b->m->module;
    for (size_t i = 0; i < node->n && c->n_params <= SZ_MODEL_LIST_MAX; i++)
        if (is_rule(node->child[i], R_param))
            build_param(b, c, node->child[i]);
    struct sz_buf text = {0};
    for (size_t i = 0; cel != NULL && i < cel->n; i++)
        if (cel->child[i]->is_token)
            sz_buf_adds(&text, cel->child[i]->token->text);
    c->expression = sz_pool_dup(&b->m->arena.pool, js_trim(sz_buf_slice(&text)));
    sz_buf_fini(&text);
}

static void build_model(struct build *b, const struct sz_node *root)
{
    const struct sz_token *version = token(child(root, R_model_head, 0), T_VERSION);
    if (version != NULL)
        b->m->schema = sz_pool_dup(&b->m->arena.pool, version->text);
    const struct sz_node *module = child(child(root, R_module_head, 0), R_name, 0);
    if (leaf(module) != NULL)
        b->m->module = name_of(b, module);
    const struct sz_node *types = child(root, R_types, 0), *conds = child(root, R_conditions, 0);
    for (size_t i = 0; types != NULL && i < types->n && b->m->n_types <= SZ_MODEL_TYPES_MAX; i++)
        if (!types->child[i]->is_token)
            build_type(b, types->child[i]);
    for (size_t i = 0; conds != NULL && i < conds->n && b->m->n_conds <= SZ_MODEL_LIST_MAX; i++)
        if (!conds->child[i]->is_token)
            build_condition(b, conds->child[i]);
}

/* Comments and trailing blanks go before the lexer sees them; lines keep their numbers. */
static struct sz_slice clean(struct sz_slice text, struct sz_pool *pool)
{
    char *out = sz_pool_alloc(pool, text.n + 1);
    size_t n = 0;
    struct sz_slice line;
    for (bool first = true; sz_split(&text, '\n', &line); first = false) {
        if (!first)
            out[n++] = '\n';
        size_t i = 0;
        while (i < line.n && strchr(" \t\r\f\v", line.p[i]) != NULL)
            i++;
        if (i < line.n && line.p[i] == '#')
            continue;
        size_t end = line.n;
        for (i = 0; i + 1 < line.n; i++)
            if (line.p[i] == ' ' && line.p[i + 1] == '#') {
                end = i;
                break;
            }
        while (end > 0 && strchr(" \t\r\f\v", line.p[end - 1]) != NULL)
            end--;
        memcpy(out + n, line.p, end);
        n += end;
    }
    return sz_slice(out, n);
}

struct sz_model *sz_dsl_parse(struct sz_slice text, struct sz_problems *problems)
{
    struct sz_arena scratch;
    struct sz_tokens tokens;
    size_t before = problems->n;
    if (text.n > SZ_MODEL_TEXT_MAX) {
        sz_problems_add(problems, "limit", "a model may have at most %d bytes", SZ_MODEL_TEXT_MAX);
        return NULL;
    }
    sz_arena_init(&scratch);
    sz_dsl_lex(clean(text, &scratch.pool), &scratch.pool, &tokens, problems);
    struct sz_node *root = sz_dsl_tree(&tokens, &scratch.pool, problems);
    struct build b = {.m = sz_model_new(), .problems = problems};
    build_model(&b, root);
    sz_arena_fini(&scratch);
    if (problems->n == before && sz_model_within_bounds(b.m, problems))
        return b.m;
    sz_model_free(b.m);
    return NULL;
}

/*
 * Walks the grammar over the tokens, makes the tree, and goes on after mistakes: a token too many is
 * dropped, a missing one imagined, otherwise the rule is left and tokens are skipped until something that one of
 * the rules around it can continue with.  After a mistake nothing more is said until a token fits again.
 */
#include "fga/engine/dsl.h"

struct parser {
    const struct sz_atn *atn;
    const struct sz_tokens *tokens;
    struct sz_pool *pool;
    struct sz_problems *problems;
    struct sz_predict *predict;
    size_t at;
    uint16_t state;
    const struct sz_frame *frame;
    struct sz_node *node;
    bool recovering;
    size_t last_error_at; /* where the last recovery began; SIZE_MAX when a token fitted since */
    uint16_t error_states[64];
    size_t n_error_states;
    unsigned depth, parens;
    bool stopped;
};

enum { OK, THROWN };
enum { DEPTH_MAX = 400, PARENS_MAX = 32 }; /* rules inside rules */

static const char *const shown[] = {
#define X(name, text) text,
    SZ_DSL_TOKENS(X)
#undef X
};

static enum sz_tok look(const struct parser *p, size_t ahead)
{
    size_t i = p->at + ahead;
    return p->tokens->v[i < p->tokens->n ? i : p->tokens->n - 1].type;
}

static const struct sz_token *current(const struct parser *p)
{
    return &p->tokens->v[p->at];
}

static bool has(sz_tokset set, enum sz_tok t)
{
    return (set & SZ_TOKSET(t)) != 0;
}

struct sz_slice sz_dsl_quote(struct sz_pool *pool, struct sz_slice text)
{
    struct sz_buf b = {0};
    sz_buf_add(&b, "'", 1);
    for (size_t i = 0; i < text.n; i++) {
        char c = text.p[i];
        const char *escaped = c == '\n' ? "\\n" : c == '\r' ? "\\r" : c == '\t' ? "\\t" : NULL;
        sz_buf_add(&b, escaped != NULL ? escaped : &c, escaped != NULL ? 2 : 1);
    }
    sz_buf_add(&b, "'", 1);
    struct sz_slice out = sz_pool_dup(pool, sz_buf_slice(&b));
    sz_buf_fini(&b);
    return out;
}

static struct sz_slice quote_token(struct parser *p, const struct sz_token *t)
{
    return sz_dsl_quote(p->pool, t->text);
}

static struct sz_slice show_set(struct parser *p, sz_tokset set)
{
    struct sz_buf b = {0};
    size_t n = 0;
    for (size_t t = 0; t < T_COUNT; t++) {
        if (!has(set, (enum sz_tok)t))
            continue;
        sz_buf_printf(&b, "%s%s", n++ == 0 ? "" : ", ", shown[t]);
    }
    struct sz_slice out =
        n == 1 ? sz_pool_dup(p->pool, sz_buf_slice(&b)) : sz_pool_printf(p->pool, "{%.*s}", SZ_FMT(sz_buf_slice(&b)));
    sz_buf_fini(&b);
    return out;
}

/* Records a problem at a token and keeps quiet until a token fits. */
static void report(struct parser *p, const struct sz_token *t, struct sz_slice message)
{
    if (p->recovering || p->stopped)
        return;
    p->recovering = true;
    struct sz_problem *problem = sz_problems_add(p->problems, "syntax", "%.*s", SZ_FMT(message));
    if (problem == NULL)
        return;
    problem->symbol = sz_pool_dup(&p->problems->arena.pool, t->text);
    size_t wide = 0;
    for (size_t i = 0; i < t->text.n; i++)
        wide += ((unsigned char)t->text.p[i] & 0xc0) != 0x80;
    sz_problem_place(problem, t->line, t->column, t->column + wide);
}

static void token_fitted(struct parser *p)
{
    p->recovering = false;
    p->n_error_states = 0;
    p->last_error_at = SIZE_MAX;
}

static void add_child(struct parser *p, struct sz_node *child)
{
    struct sz_node *node = p->node;
    if (node->n == 0 || (node->n & (node->n - 1)) == 0) {
        struct sz_node **bigger = sz_pool_alloc(p->pool, (node->n == 0 ? 1 : node->n * 2) * sizeof(*bigger));
        if (node->n > 0)
            memcpy(bigger, node->child, node->n * sizeof(*bigger));
        node->child = bigger;
    }
    node->child[node->n++] = child;
}

static void consume(struct parser *p)
{
    if (!p->recovering) {
        struct sz_node *leaf = sz_pool_zalloc(p->pool, sizeof(*leaf));
        leaf->is_token = true;
        leaf->token = current(p);
        add_child(p, leaf);
    }
    if (p->at + 1 < p->tokens->n)
        p->at++;
}

static uint16_t follow_of(const struct parser *p, const struct sz_frame *f)
{
    return p->atn->states[f->invoked_from].edges[0].follow;
}

/* Tokens that could come at the current state, looking out of the rules that may end here. */
static sz_tokset expected(const struct parser *p, uint16_t state)
{
    sz_tokset set = p->atn->next[state];
    const struct sz_frame *f = p->frame;
    while ((set & SZ_TOKSET_END) != 0 && f->invoked_from != 0xffff) {
        set = (set & ~SZ_TOKSET_END) | p->atn->next[follow_of(p, f)];
        f = f->parent;
    }
    if ((set & SZ_TOKSET_END) != 0)
        set = (set & ~SZ_TOKSET_END) | SZ_TOKSET(T_EOF);
    return set;
}

/* Tokens that any rule around this one could go on with. */
static sz_tokset recovery_set(const struct parser *p)
{
    sz_tokset set = 0;
    for (const struct sz_frame *f = p->frame; f->invoked_from != 0xffff; f = f->parent)
        set |= p->atn->next[follow_of(p, f)];
    return set & ~SZ_TOKSET_END;
}

static void skip_until(struct parser *p, sz_tokset set)
{
    while (look(p, 0) != T_EOF && !has(set, look(p, 0)))
        consume(p);
}

static void report_unwanted(struct parser *p)
{
    report(p, current(p),
           sz_pool_printf(p->pool, "extraneous input %.*s expecting %.*s", SZ_FMT(quote_token(p, current(p))),
                          SZ_FMT(show_set(p, expected(p, p->state)))));
}

/* Is the token after this one what we want?  Then this one is too many. */
static bool drop_one(struct parser *p)
{
    if (!has(expected(p, p->state), look(p, 1)))
        return false;
    report_unwanted(p);
    consume(p);
    token_fitted(p);
    return true;
}

static int mismatch(struct parser *p)
{
    report(p, current(p),
           sz_pool_printf(p->pool, "mismatched input %.*s expecting %.*s", SZ_FMT(quote_token(p, current(p))),
                          SZ_FMT(show_set(p, expected(p, p->state)))));
    return THROWN;
}

static int no_alternative(struct parser *p, size_t from, size_t to)
{
    const struct sz_token *first = &p->tokens->v[from], *last = &p->tokens->v[to];
    struct sz_slice text = first->text;
    if (to > from && last->type == T_EOF)
        last--;
    if (first->type != T_EOF) /* tokens are neighbours in the text */
        text.n = (size_t)(last->text.p - text.p) + last->text.n;
    report(p, &p->tokens->v[to],
           sz_pool_printf(p->pool, "no viable alternative at input %.*s", SZ_FMT(sz_dsl_quote(p->pool, text))));
    return THROWN;
}

/* Before a decision or after a turn of a loop: is the token one that can come here at all? */
static int sync(struct parser *p)
{
    sz_tokset next = p->atn->next[p->state];
    if (p->recovering || has(next, look(p, 0)) || (next & SZ_TOKSET_END) != 0)
        return OK;
    switch (p->atn->states[p->state].kind) {
    case ST_BLOCK_START:
    case ST_PLUS_START:
    case ST_STAR_ENTRY:
        return drop_one(p) ? OK : mismatch(p);
    case ST_LOOP_BACK:
        report_unwanted(p);
        skip_until(p, expected(p, p->state) | recovery_set(p));
        return OK;
    case ST_BASIC:
    case ST_STOP:
        break;
    }
    return OK;
}

static int match_set(struct parser *p, const struct sz_el *el)
{
    p->state = el->state;
    if (has(el->set, look(p, 0))) {
        token_fitted(p);
        consume(p);
        return OK;
    }
    if (drop_one(p)) {
        consume(p);
        return OK;
    }
    uint16_t after = p->atn->states[p->state].edges[0].target;
    if (!has(expected(p, after), look(p, 0)))
        return mismatch(p);
    report(p, current(p),
           sz_pool_printf(p->pool, "missing %.*s at %.*s", SZ_FMT(show_set(p, expected(p, p->state))),
                          SZ_FMT(quote_token(p, current(p)))));
    return OK;
}

static int run_alt(struct parser *p, const struct sz_alt *alt);
static void run_rule(struct parser *p, enum sz_rule rule);

/* Nothing after this is looked at. */
static int stop(struct parser *p, struct sz_slice why)
{
    p->recovering = false;
    report(p, current(p), why);
    p->at = p->tokens->n - 1;
    p->stopped = true;
    return THROWN;
}

/* The alternative (from 1), 0: none, with THROWN when that is an error. */
static int choose(struct parser *p, const struct sz_el *el, uint16_t decision, unsigned *alt)
{
    if (el->ll1) {
        *alt = 0;
        size_t edges = p->atn->states[decision].n_edges;
        for (unsigned i = 0; i < edges && *alt == 0; i++)
            if (has(el->look[i], look(p, 0)))
                *alt = i + 1;
        return *alt == 0 && el->kind == EL_BLOCK ? no_alternative(p, p->at, p->at) : OK;
    }
    size_t failed_at = p->at;
    *alt = sz_predict(p->predict, decision, p->frame, p->at, &failed_at);
    if (*alt == SZ_PREDICT_GAVE_UP)
        return stop(p, SZ_S("the text is too complex"));
    return *alt == 0 ? no_alternative(p, p->at, failed_at) : OK;
}

static int run_choice(struct parser *p, const struct sz_el *el)
{
    unsigned alt = 1;
    if (el->kind == EL_BLOCK && el->n_alts == 1) /* plain parentheses */
        return run_alt(p, &el->alts[0]);
    p->state = el->state;
    if (sync(p) != OK || choose(p, el, el->state, &alt) != OK)
        return THROWN;
    return alt >= 1 && alt <= el->n_alts ? run_alt(p, &el->alts[alt - 1]) : OK;
}

static int run_loop(struct parser *p, const struct sz_el *el)
{
    bool plus = el->kind == EL_PLUS;
    uint16_t decision = plus ? el->loop_state : el->state;
    unsigned alt = 1;
    p->state = el->state;
    if (sync(p) != OK)
        return THROWN;
    if (!plus && choose(p, el, decision, &alt) != OK)
        return THROWN;
    while (alt == 1) {
        if (run_alt(p, &el->alts[0]) != OK)
            return THROWN;
        p->state = el->loop_state;
        if (sync(p) != OK || choose(p, el, decision, &alt) != OK)
            return THROWN;
    }
    return OK;
}

static int run_alt(struct parser *p, const struct sz_alt *alt)
{
    for (size_t i = 0; i < alt->n; i++) {
        const struct sz_el *el = &alt->els[i];
        int err = OK;
        switch (el->kind) {
        case EL_TOKEN:
        case EL_SET:
            err = match_set(p, el);
            break;
        case EL_RULE:
            p->state = el->state;
            run_rule(p, el->rule);
            break;
        case EL_BLOCK:
        case EL_OPT:
            err = run_choice(p, el);
            break;
        case EL_STAR:
        case EL_PLUS:
            err = run_loop(p, el);
            break;
        }
        if (err != OK)
            return err;
    }
    return OK;
}

/* A rule failed: skip to something that fits around it.  Twice at one place in one state: skip at least one token. */
static void recover(struct parser *p)
{
    if (p->last_error_at == p->at)
        for (size_t i = 0; i < p->n_error_states; i++)
            if (p->error_states[i] == p->state) {
                consume(p);
                break;
            }
    p->last_error_at = p->at;
    if (p->n_error_states < SZ_COUNT(p->error_states))
        p->error_states[p->n_error_states++] = p->state;
    skip_until(p, recovery_set(p));
}

static void run_rule(struct parser *p, enum sz_rule rule)
{
    struct sz_frame frame = {p->frame, p->state};
    struct sz_node *node = sz_pool_zalloc(p->pool, sizeof(*node)), *outer = p->node;
    node->rule = rule;
    if (outer != NULL)
        add_child(p, node);
    else
        frame.invoked_from = 0xffff;
    p->frame = &frame;
    p->node = node;
    p->state = p->atn->start[rule];
    bool paren = rule == R_paren || rule == R_paren_nd;
    p->parens += paren;
    if (++p->depth > DEPTH_MAX || p->parens > PARENS_MAX) {
        stop(p, SZ_S("parentheses are nested too deeply"));
    } else if (run_alt(p, &p->atn->rules[rule]) != OK) {
        recover(p);
    }
    p->depth--;
    p->parens -= paren;
    p->state = frame.invoked_from;
    p->frame = frame.parent;
    if (outer != NULL)
        p->node = outer;
}

struct sz_node *sz_dsl_tree(const struct sz_tokens *tokens, struct sz_pool *pool, struct sz_problems *problems)
{
    struct parser p = {
        .atn = sz_dsl_atn(), .tokens = tokens, .pool = pool, .problems = problems, .last_error_at = SIZE_MAX};
    p.predict = sz_predict_new(p.atn, tokens);
    run_rule(&p, R_main);
    sz_predict_free(p.predict);
    return p.node;
}

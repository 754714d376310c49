/*
 * The grammar's text rows as a state graph, and what can come next at each state.
 *
 *   a?   start -> a -> end      a*   entry -> start -> a -> back -> entry      a+   start -> a -> back
 *          \----------^                \------------------> end                      ^--------/  \-> end
 */
#include "fga/engine/dsl.h"

#include <ctype.h>
#include <pthread.h>

static const char *const bodies[] = {
#define X(id, body) body,
#include "fga/engine/dsl_rules.h"
#undef X
};
static const char *const rule_names[] = {
#define X(id, body) #id,
#include "fga/engine/dsl_rules.h"
#undef X
};
static const char *const token_names[] = {
#define X(name, shown) #name,
    SZ_DSL_TOKENS(X)
#undef X
};

enum { MAX_STATES = 1000, MAX_EDGES = 40 };

struct builder {
    struct sz_atn *atn;
    enum sz_rule rule;
    const char *p;
};

static uint16_t new_state(struct builder *b, enum sz_state_kind kind)
{
    SZ_ASSERT(b->atn->n_states < MAX_STATES);
    struct sz_state *s = &b->atn->states[b->atn->n_states];
    s->kind = kind;
    s->rule = b->rule;
    s->edges = sz_pool_zalloc(&b->atn->arena.pool, MAX_EDGES * sizeof(*s->edges));
    return (uint16_t)b->atn->n_states++;
}

static struct sz_edge *edge(struct builder *b, uint16_t from, uint16_t to)
{
    struct sz_state *s = &b->atn->states[from];
    SZ_ASSERT(s->n_edges < MAX_EDGES);
    struct sz_edge *e = &s->edges[s->n_edges++];
    e->target = to;
    return e;
}

static struct sz_slice word(struct builder *b)
{
    const char *start = b->p;
    while (isalnum((unsigned char)*b->p) || *b->p == '_')
        b->p++;
    return sz_slice(start, (size_t)(b->p - start));
}

static int find(const char *const *names, size_t n, struct sz_slice s)
{
    for (size_t i = 0; i < n; i++)
        if (sz_eq(s, sz_cstr(names[i])))
            return (int)i;
    return -1;
}

static sz_tokset token_set(struct builder *b)
{
    sz_tokset set = 0;
    for (b->p++; *b->p != ']'; b->p += *b->p == ' ') {
        int t = find(token_names, SZ_COUNT(token_names), word(b));
        SZ_ASSERT(t >= 0);
        set |= SZ_TOKSET(t);
    }
    b->p++;
    return set;
}

static uint16_t build_alts(struct builder *b, struct sz_el *el, uint16_t from);

/* A leaf: from -> to over a set or a rule; returns `to`. */
static uint16_t build_leaf(struct builder *b, struct sz_el *el, uint16_t from)
{
    uint16_t to = new_state(b, ST_BASIC);
    struct sz_edge *e = edge(b, from, to);
    el->state = from;
    if (el->kind == EL_RULE) {
        e->kind = EDGE_RULE;
        e->target = b->atn->start[el->rule];
        e->follow = to;
    } else {
        e->kind = EDGE_SET;
        e->set = el->set;
    }
    return to;
}

static void parse_leaf(struct builder *b, struct sz_el *el)
{
    if (*b->p == '[') {
        el->kind = EL_SET;
        el->set = token_set(b);
        return;
    }
    if (*b->p == '~') {
        b->p++;
        el->kind = EL_SET;
        int t = find(token_names, SZ_COUNT(token_names), word(b));
        SZ_ASSERT(t >= 0);
        el->set = SZ_TOKSET_ALL & ~SZ_TOKSET(t) & ~SZ_TOKSET(T_EOF);
        return;
    }
    struct sz_slice name = word(b);
    int t = find(token_names, SZ_COUNT(token_names), name);
    if (t >= 0) {
        el->kind = EL_TOKEN;
        el->set = SZ_TOKSET(t);
        return;
    }
    t = find(rule_names, SZ_COUNT(rule_names), name);
    SZ_ASSERT(t >= 0);
    el->kind = EL_RULE;
    el->rule = (enum sz_rule)t;
}

/* The suffix after the group that starts at p: needed before its states are made. */
static char suffix_of(const char *p)
{
    int depth = 0;
    if (*p == '(' || *p == '[') {
        do {
            depth += (*p == '(' || *p == '[') - (*p == ')' || *p == ']');
            p++;
        } while (depth > 0);
    } else {
        p += *p == '~';
        while (isalnum((unsigned char)*p) || *p == '_')
            p++;
    }
    return *p;
}

/* One element with its suffix; returns the state behind it. */
static uint16_t build_element(struct builder *b, struct sz_el *el, uint16_t from)
{
    char suffix = suffix_of(b->p);
    bool looped = suffix == '?' || suffix == '*' || suffix == '+';
    if (!looped && *b->p != '(') {
        parse_leaf(b, el);
        return build_leaf(b, el, from);
    }
    el->kind = suffix == '?' ? EL_OPT : suffix == '*' ? EL_STAR : suffix == '+' ? EL_PLUS : EL_BLOCK;
    uint16_t to = build_alts(b, el, from);
    b->p += looped;
    return to;
}

static void build_sequence(struct builder *b, struct sz_alt *alt, uint16_t from, uint16_t to)
{
    alt->els = sz_pool_zalloc(&b->atn->arena.pool, 32 * sizeof(*alt->els));
    while (*b->p != '\0' && *b->p != ')' && *b->p != '|') {
        if (*b->p == ' ') {
            b->p++;
            continue;
        }
        SZ_ASSERT(alt->n < 32);
        uint16_t before = new_state(b, ST_BASIC);
        edge(b, from, before);
        from = build_element(b, &alt->els[alt->n++], before);
    }
    edge(b, from, to);
}

/* The alternatives of a group between `start` and `end`. */
static void build_group(struct builder *b, struct sz_el *el, uint16_t start, uint16_t end)
{
    el->alts = sz_pool_zalloc(&b->atn->arena.pool, 4 * sizeof(*el->alts));
    bool parens = *b->p == '(';
    if (!parens) { /* a lone leaf with a suffix */
        struct sz_alt *alt = &el->alts[el->n_alts++];
        alt->els = sz_pool_zalloc(&b->atn->arena.pool, sizeof(*alt->els));
        alt->n = 1;
        uint16_t before = new_state(b, ST_BASIC);
        edge(b, start, before);
        parse_leaf(b, &alt->els[0]);
        edge(b, build_leaf(b, &alt->els[0], before), end);
        return;
    }
    do {
        b->p++; /* ( or | */
        SZ_ASSERT(el->n_alts < 4);
        uint16_t before = new_state(b, ST_BASIC);
        edge(b, start, before);
        build_sequence(b, &el->alts[el->n_alts++], before, end);
    } while (*b->p == '|');
    b->p++;
}

static uint16_t build_alts(struct builder *b, struct sz_el *el, uint16_t from)
{
    uint16_t start = new_state(b, el->kind == EL_PLUS ? ST_PLUS_START : ST_BLOCK_START);
    uint16_t end = new_state(b, ST_BASIC);
    uint16_t after = end;
    el->state = start;
    if (el->kind == EL_STAR) {
        uint16_t entry = new_state(b, ST_STAR_ENTRY);
        uint16_t back = new_state(b, ST_LOOP_BACK);
        after = new_state(b, ST_BASIC);
        edge(b, from, entry);
        edge(b, entry, start);
        edge(b, entry, after);
        edge(b, end, back);
        edge(b, back, entry);
        el->state = entry;
        el->loop_state = back;
    } else {
        edge(b, from, start);
    }
    build_group(b, el, start, end);
    if (el->kind == EL_OPT)
        edge(b, start, end);
    if (el->kind == EL_PLUS) {
        uint16_t back = new_state(b, ST_LOOP_BACK);
        after = new_state(b, ST_BASIC);
        edge(b, end, back);
        edge(b, back, start);
        edge(b, back, after);
        el->loop_state = back;
    }
    if ((el->kind == EL_STAR || el->kind == EL_PLUS) && el->n_alts > 1) {
        /* Which alternative of the turn is a choice of its own, inside the loop. */
        struct sz_el *inner = sz_pool_zalloc(&b->atn->arena.pool, sizeof(*inner));
        *inner = (struct sz_el){.kind = EL_BLOCK, .state = start, .alts = el->alts, .n_alts = el->n_alts};
        el->alts = sz_pool_zalloc(&b->atn->arena.pool, sizeof(*el->alts));
        el->alts[0] = (struct sz_alt){inner, 1};
        el->n_alts = 1;
    }
    return after;
}

/* What can come next within the rule, for every state: the least fixpoint. */
static void compute_next(struct sz_atn *atn)
{
    bool changed = true;
    while (changed) {
        changed = false;
        for (size_t i = 0; i < atn->n_states; i++) {
            const struct sz_state *s = &atn->states[i];
            sz_tokset set = s->kind == ST_STOP ? SZ_TOKSET_END : 0;
            for (size_t k = 0; s->kind != ST_STOP && k < s->n_edges; k++) {
                const struct sz_edge *e = &s->edges[k];
                sz_tokset first = e->kind == EDGE_SET ? e->set : atn->next[e->target];
                if (e->kind == EDGE_RULE && (first & SZ_TOKSET_END) != 0)
                    first = (first & ~SZ_TOKSET_END) | atn->next[e->follow];
                set |= first;
            }
            changed |= set != atn->next[i];
            atn->next[i] = set;
        }
    }
}

/* What can come after each rule, wherever it is used. */
static void compute_follow(const struct sz_atn *atn, sz_tokset follow[R_COUNT])
{
    memset(follow, 0, R_COUNT * sizeof(*follow));
    bool changed = true;
    while (changed) {
        changed = false;
        for (size_t r = 0; r < R_COUNT; r++) {
            const struct sz_state *stop = &atn->states[atn->stop[r]];
            sz_tokset set = follow[r];
            for (size_t k = 0; k < stop->n_edges; k++) {
                sz_tokset next = atn->next[stop->edges[k].target];
                set |= next & ~SZ_TOKSET_END;
                if ((next & SZ_TOKSET_END) != 0)
                    set |= follow[atn->states[stop->edges[k].target].rule];
            }
            changed |= set != follow[r];
            follow[r] = set;
        }
    }
}

static void mark_alt(const struct sz_atn *atn, const sz_tokset *follow, struct sz_alt *alt);

/* Whether one token decides: the first tokens of the alternatives do not overlap. */
static void mark_element(const struct sz_atn *atn, const sz_tokset *follow, struct sz_el *el)
{
    if (el->kind < EL_BLOCK)
        return;
    for (size_t i = 0; i < el->n_alts; i++)
        mark_alt(atn, follow, &el->alts[i]);
    const struct sz_state *s = &atn->states[el->kind == EL_PLUS ? el->loop_state : el->state];
    sz_tokset seen = 0;
    el->ll1 = true;
    for (size_t i = 0; i < s->n_edges; i++) {
        sz_tokset look = atn->next[s->edges[i].target];
        if ((look & SZ_TOKSET_END) != 0)
            look = (look & ~SZ_TOKSET_END) | follow[s->rule];
        if (look == 0 || (look & seen) != 0)
            el->ll1 = false;
        seen |= look;
        SZ_ASSERT(i < SZ_COUNT(el->look));
        el->look[i] = look;
    }
}

static void mark_alt(const struct sz_atn *atn, const sz_tokset *follow, struct sz_alt *alt)
{
    for (size_t i = 0; i < alt->n; i++)
        mark_element(atn, follow, &alt->els[i]);
}

static struct sz_atn atn_storage;
static pthread_once_t atn_once = PTHREAD_ONCE_INIT;

static void build(void)
{
    struct sz_atn *atn = &atn_storage;
    sz_arena_init(&atn->arena);
    atn->states = sz_pool_zalloc(&atn->arena.pool, MAX_STATES * sizeof(*atn->states));
    atn->next = sz_pool_zalloc(&atn->arena.pool, MAX_STATES * sizeof(*atn->next));
    atn->rules = sz_pool_zalloc(&atn->arena.pool, R_COUNT * sizeof(*atn->rules));
    struct builder b = {.atn = atn};
    for (size_t r = 0; r < R_COUNT; r++) {
        b.rule = (enum sz_rule)r;
        atn->start[r] = new_state(&b, ST_BASIC);
        atn->stop[r] = new_state(&b, ST_STOP);
    }
    for (size_t r = 0; r < R_COUNT; r++) {
        b.rule = (enum sz_rule)r;
        b.p = bodies[r];
        build_sequence(&b, &atn->rules[r], atn->start[r], atn->stop[r]);
    }
    size_t n = atn->n_states; /* leaving a rule: an edge to each place that may have called it */
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < atn->states[i].n_edges; k++) {
            const struct sz_edge *e = &atn->states[i].edges[k];
            if (atn->states[i].kind != ST_STOP && e->kind == EDGE_RULE)
                edge(&b, atn->stop[atn->states[e->target].rule], e->follow);
        }
    compute_next(atn);
    sz_tokset follow[R_COUNT];
    compute_follow(atn, follow);
    for (size_t r = 0; r < R_COUNT; r++)
        mark_alt(atn, follow, &atn->rules[r]);
}

const struct sz_atn *sz_dsl_atn(void)
{
    pthread_once(&atn_once, build);
    return &atn_storage;
}

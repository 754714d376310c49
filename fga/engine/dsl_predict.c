/*
 * Which alternative of a decision fits the tokens ahead: all of them are followed at once.
 *
 * First without knowing who called the rule (every caller is possible), then, when that leaves
 * several alternatives in the same place with the same way back, once more with the real callers.  If even
 * that cannot tell them apart the first alternative wins.  An alternative that could end the rule before the
 * tokens stopped fitting is preferred to giving up, which moves an error to where the rule is left.
 */
#include "fga/engine/dsl.h"
#include "fga/engine/dsl_stack.h"

#include <stdlib.h>

struct config {
    uint16_t state;
    uint8_t alt;
    bool outer; /* left the rule that the decision is in */
    uint32_t ways;
};
struct configs {
    struct config *v;
    size_t n, cap;
};

struct sz_predict {
    const struct sz_atn *atn;
    const struct sz_tokens *tokens;
    struct sz_ways ways;
    struct configs now, moved, reach, busy;
    bool full;
    uint64_t work; /* comparisons so far */
};

/* About a second; an ordinary model of 256 KiB takes a tenth of it. */
enum { WORK_MAX = 400000000 };

struct sz_predict *sz_predict_new(const struct sz_atn *atn, const struct sz_tokens *tokens)
{
    struct sz_predict *p = sz_xcalloc(1, sizeof(*p));
    p->atn = atn;
    p->tokens = tokens;
    return p;
}

void sz_predict_free(struct sz_predict *p)
{
    sz_ways_fini(&p->ways);
    free(p->now.v);
    free(p->moved.v);
    free(p->reach.v);
    free(p->busy.v);
    free(p);
}

static void append(struct configs *set, struct config c)
{
    if (set->n == set->cap) {
        set->cap = set->cap == 0 ? 64 : set->cap * 2;
        set->v = sz_xrealloc(set->v, set->cap * sizeof(*set->v));
    }
    set->v[set->n++] = c;
}

/* One entry per state and alternative; its ways back are merged. */
static void add(struct sz_predict *p, struct configs *set, struct config c)
{
    p->work += set->n + 1;
    for (size_t i = 0; i < set->n; i++) {
        struct config *at = &set->v[i];
        if (at->state != c.state || at->alt != c.alt)
            continue;
        at->ways = sz_ways_merge(&p->ways, at->ways, c.ways, !p->full);
        at->outer |= c.outer;
        return;
    }
    append(set, c);
}

/* False: exactly this was followed already. */
static bool fresh(struct sz_predict *p, struct config c)
{
    p->work += p->busy.n + 1;
    for (size_t i = 0; i < p->busy.n; i++) {
        const struct config *at = &p->busy.v[i];
        if (at->state == c.state && at->alt == c.alt && at->ways == c.ways && at->outer == c.outer)
            return false;
    }
    append(&p->busy, c);
    return true;
}

static void closure(struct sz_predict *p, struct config c, struct configs *out, bool at_end);

/* The end of a rule: back to each place that is known to have called it; false: also on to wherever it is used. */
static bool leave(struct sz_predict *p, struct config c, struct configs *out, bool at_end)
{
    struct sz_way way;
    bool all_known = true;
    for (size_t i = 0; sz_ways_at(&p->ways, c.ways, i, &way); i++) {
        if (way.ret != SZ_WAY_END)
            closure(p, (struct config){way.ret, c.alt, c.outer, way.parent}, out, at_end);
        else if (p->full || p->atn->states[c.state].n_edges == 0)
            add(p, out, (struct config){c.state, c.alt, c.outer, SZ_WAY_NONE});
        else
            all_known = false;
    }
    return all_known;
}

/* Everything reachable from c without a token. */
static void closure(struct sz_predict *p, struct config c, struct configs *out, bool at_end)
{
    if (p->work > WORK_MAX || !fresh(p, c))
        return;
    const struct sz_state *s = &p->atn->states[c.state];
    bool stop = s->kind == ST_STOP, kept = false;
    if (stop && leave(p, c, out, at_end))
        return;
    for (size_t i = 0; i < s->n_edges; i++) {
        const struct sz_edge *e = &s->edges[i];
        struct config next = {e->target, c.alt, c.outer || stop, stop ? SZ_WAY_NONE : c.ways};
        if (e->kind == EDGE_SET) {
            if (!kept)
                add(p, out, c);
            kept = true;
            if (!at_end || (e->set & SZ_TOKSET(T_EOF)) == 0)
                continue;
        } else if (e->kind == EDGE_RULE) {
            next.ways = sz_ways_push(&p->ways, e->follow, c.ways);
        }
        closure(p, next, out, at_end);
    }
}

/* The only alternative left, 0 when there are several. */
static unsigned unique(const struct configs *set)
{
    for (size_t i = 1; i < set->n; i++)
        if (set->v[i].alt != set->v[0].alt)
            return 0;
    return set->n == 0 ? 0 : set->v[0].alt;
}

static bool stopped(const struct sz_predict *p, const struct config *c)
{
    return p->atn->states[c->state].kind == ST_STOP;
}

/* p->reach = where p->now gets with token t; false when nowhere. */
static bool move(struct sz_predict *p, enum sz_tok t)
{
    struct configs *reach = &p->reach;
    bool skipped = false;
    p->moved.n = reach->n = p->busy.n = 0;
    for (size_t i = 0; i < p->now.n; i++) {
        const struct config *c = &p->now.v[i];
        if (stopped(p, c)) {
            skipped |= p->full || t == T_EOF;
            continue;
        }
        const struct sz_state *s = &p->atn->states[c->state];
        for (size_t k = 0; k < s->n_edges; k++)
            if (s->edges[k].kind == EDGE_SET && (s->edges[k].set & SZ_TOKSET(t)) != 0)
                add(p, &p->moved, (struct config){s->edges[k].target, c->alt, c->outer, c->ways});
    }
    if (!skipped && t != T_EOF && unique(&p->moved) != 0) {
        for (size_t i = 0; i < p->moved.n; i++)
            add(p, reach, p->moved.v[i]);
    } else {
        for (size_t i = 0; i < p->moved.n; i++)
            closure(p, p->moved.v[i], reach, t == T_EOF);
    }
    bool any_stopped = false;
    size_t kept = 0;
    for (size_t i = 0; i < reach->n; i++) {
        any_stopped |= stopped(p, &reach->v[i]);
        if (t != T_EOF || stopped(p, &reach->v[i]))
            reach->v[kept++] = reach->v[i];
    }
    reach->n = kept;
    for (size_t i = 0; skipped && (!p->full || !any_stopped) && i < p->now.n; i++)
        if (stopped(p, &p->now.v[i]))
            add(p, reach, p->now.v[i]);
    return reach->n > 0;
}

/* More tokens cannot help without callers: some state has several alternatives with the same ways back, none has one
 * alone. */
static bool conflict(const struct sz_predict *p)
{
    const struct configs *set = &p->reach;
    bool all_stopped = true, clash = false;
    for (size_t i = 0; i < set->n; i++)
        all_stopped &= stopped(p, &set->v[i]);
    if (all_stopped)
        return true;
    for (size_t i = 0; i < set->n; i++) {
        bool alone = true;
        for (size_t k = 0; k < set->n; k++) {
            if (set->v[k].state != set->v[i].state || set->v[k].alt == set->v[i].alt)
                continue;
            alone = false;
            clash |= set->v[i].ways == set->v[k].ways;
        }
        if (alone)
            return false;
    }
    return clash;
}

/* With callers known: the alternative that is the smallest in every group that cannot be told apart; 0 when they
 * differ. */
static unsigned settled(const struct sz_predict *p)
{
    const struct configs *set = &p->reach;
    unsigned answer = 0;
    for (size_t i = 0; i < set->n; i++) {
        unsigned least = set->v[i].alt;
        for (size_t k = 0; k < set->n; k++)
            if (set->v[k].state == set->v[i].state && set->v[k].ways == set->v[i].ways && set->v[k].alt < least)
                least = set->v[k].alt;
        if (answer != 0 && least != answer)
            return 0;
        answer = least;
    }
    return answer;
}

/* The tokens stopped fitting: an alternative that may end the rule before them. */
static unsigned finished(const struct sz_predict *p)
{
    unsigned least = 0;
    for (size_t i = 0; i < p->now.n; i++) {
        const struct config *c = &p->now.v[i];
        if ((c->outer || stopped(p, c)) && (least == 0 || c->alt < least))
            least = c->alt;
    }
    return least;
}

static void start(struct sz_predict *p, uint16_t state, uint32_t ways)
{
    const struct sz_state *s = &p->atn->states[state];
    p->now.n = 0;
    for (size_t i = 0; i < s->n_edges; i++) {
        p->busy.n = 0;
        closure(p, (struct config){s->edges[i].target, (uint8_t)(i + 1), false, ways}, &p->now, false);
    }
}

static uint32_t callers(struct sz_predict *p, const struct sz_frame *frame)
{
    if (frame == NULL || frame->invoked_from == 0xffff)
        return SZ_WAY_NONE;
    uint32_t parent = callers(p, frame->parent);
    return sz_ways_push(&p->ways, p->atn->states[frame->invoked_from].edges[0].follow, parent);
}

unsigned sz_predict(struct sz_predict *p, uint16_t state, const struct sz_frame *frame, size_t at, size_t *failed_at)
{
    p->work += p->ways.work;
    p->ways.work = 0;
    sz_ways_reset(&p->ways);
    p->full = false;
    start(p, state, SZ_WAY_NONE);
    for (size_t i = at;; i += i + 1 < p->tokens->n) {
        if (p->work > WORK_MAX)
            return SZ_PREDICT_GAVE_UP;
        if (!move(p, p->tokens->v[i].type)) {
            *failed_at = i;
            return finished(p);
        }
        unsigned alt = unique(&p->reach);
        if (alt == 0 && p->full)
            alt = settled(p);
        if (alt != 0)
            return alt;
        if (!p->full && conflict(p)) {
            p->full = true;
            start(p, state, callers(p, frame));
            i = at - 1;
            continue;
        }
        struct configs t = p->now;
        p->now = p->reach;
        p->reach = t;
    }
}

/*
 * Which alternative of a decision fits the tokens ahead: all of them are followed at once.
 *
 * First without knowing who called the rule (every caller is possible), then, when that leaves
 * several alternatives in the same place with the same way back, once more with the real callers.  If even
 * that cannot tell them apart the first alternative wins.  An alternative that could end the rule before the
 * tokens stopped fitting is preferred to giving up, which moves an error to where the rule is left.
 */
#include "fga/engine/dsl.h"

#include <stdlib.h>

struct frame { /* a way back: go on at `ret`, then at `parent`; 0 is the end of what is known */
    uint16_t ret;
    uint32_t parent;
};
struct config {
    uint16_t state;
    uint8_t alt;
    bool outer; /* left the rule that the decision is in */
    uint32_t stack;
};
struct configs {
    struct config *v;
    size_t n, cap;
};

struct sz_predict {
    const struct sz_atn *atn;
    const struct sz_tokens *tokens;
    struct frame *frames;
    size_t n_frames, cap_frames;
    struct configs now, moved, reach, busy;
    bool full;
};

struct sz_predict *sz_predict_new(const struct sz_atn *atn, const struct sz_tokens *tokens)
{
    struct sz_predict *p = sz_xcalloc(1, sizeof(*p));
    p->atn = atn;
    p->tokens = tokens;
    return p;
}

void sz_predict_free(struct sz_predict *p)
{
    free(p->frames);
    free(p->now.v);
    free(p->moved.v);
    free(p->reach.v);
    free(p->busy.v);
    free(p);
}

/* The one frame with these contents, so that equal stacks have equal numbers. */
static uint32_t push(struct sz_predict *p, uint16_t ret, uint32_t parent)
{
    for (size_t i = 0; i < p->n_frames; i++)
        if (p->frames[i].ret == ret && p->frames[i].parent == parent)
            return (uint32_t)i + 1;
    if (p->n_frames == p->cap_frames) {
        p->cap_frames = p->cap_frames == 0 ? 64 : p->cap_frames * 2;
        p->frames = sz_xrealloc(p->frames, p->cap_frames * sizeof(*p->frames));
    }
    p->frames[p->n_frames] = (struct frame){ret, parent};
    return (uint32_t)++p->n_frames;
}

static bool same(const struct config *a, const struct config *b)
{
    return a->state == b->state && a->alt == b->alt && a->stack == b->stack;
}

/* False when it was there already (then only `outer` is taken over). */
static bool add(struct configs *set, struct config c, bool outer_counts)
{
    for (size_t i = 0; i < set->n; i++) {
        if (!same(&set->v[i], &c) || (outer_counts && set->v[i].outer != c.outer))
            continue;
        set->v[i].outer |= c.outer;
        return false;
    }
    if (set->n == set->cap) {
        set->cap = set->cap == 0 ? 64 : set->cap * 2;
        set->v = sz_xrealloc(set->v, set->cap * sizeof(*set->v));
    }
    set->v[set->n++] = c;
    return true;
}

/* Everything reachable from c without a token. */
static void closure(struct sz_predict *p, struct config c, struct configs *out, bool at_end)
{
    if (!add(&p->busy, c, true))
        return;
    const struct sz_state *s = &p->atn->states[c.state];
    if (s->kind == ST_STOP && c.stack != 0) {
        struct frame f = p->frames[c.stack - 1];
        closure(p, (struct config){f.ret, c.alt, c.outer, f.parent}, out, at_end);
        return;
    }
    if (s->kind == ST_STOP && (p->full || s->n_edges == 0)) {
        add(out, c, false);
        return;
    }
    bool kept = false;
    for (size_t i = 0; i < s->n_edges; i++) {
        const struct sz_edge *e = &s->edges[i];
        struct config next = {e->target, c.alt, c.outer || s->kind == ST_STOP, c.stack};
        if (e->kind == EDGE_SET) {
            if (!kept)
                add(out, c, false);
            kept = true;
            if (!at_end || (e->set & SZ_TOKSET(T_EOF)) == 0)
                continue;
        } else if (e->kind == EDGE_RULE) {
            next.stack = push(p, e->follow, c.stack);
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
                add(&p->moved, (struct config){s->edges[k].target, c->alt, c->outer, c->stack}, false);
    }
    if (!skipped && t != T_EOF && unique(&p->moved) != 0) {
        for (size_t i = 0; i < p->moved.n; i++)
            add(reach, p->moved.v[i], false);
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
            add(reach, p->now.v[i], false);
    return reach->n > 0;
}

/* Without callers an empty stack stands for all of them, so it covers every longer one with the same beginning. */
static bool covers(const struct sz_predict *p, uint32_t general, uint32_t special)
{
    while (general != 0 && special != 0) {
        if (p->frames[general - 1].ret != p->frames[special - 1].ret)
            return false;
        general = p->frames[general - 1].parent;
        special = p->frames[special - 1].parent;
    }
    return general == 0 && (special == 0 || !p->full);
}

/* Every way back that `alt` has at this state is one that `other` has there as well. */
static bool ways_within(const struct sz_predict *p, uint16_t state, uint8_t alt, uint8_t other)
{
    const struct configs *set = &p->reach;
    for (size_t i = 0; i < set->n; i++) {
        const struct config *c = &set->v[i];
        if (c->state != state || c->alt != alt)
            continue;
        bool found = false;
        for (size_t k = 0; k < set->n && !found; k++)
            found = set->v[k].state == state && set->v[k].alt == other && covers(p, set->v[k].stack, c->stack);
        if (!found)
            return false;
    }
    return true;
}

static bool same_ways(const struct sz_predict *p, uint16_t state, uint8_t a, uint8_t b)
{
    return ways_within(p, state, a, b) && ways_within(p, state, b, a);
}

static bool first_of_its_kind(const struct configs *set, size_t at)
{
    for (size_t i = 0; i < at; i++)
        if (set->v[i].state == set->v[at].state && set->v[i].alt == set->v[at].alt)
            return false;
    return true;
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
        if (!first_of_its_kind(set, i))
            continue;
        bool alone = true;
        for (size_t k = 0; k < set->n; k++) {
            if (set->v[k].state != set->v[i].state || set->v[k].alt == set->v[i].alt)
                continue;
            alone = false;
            clash |= same_ways(p, set->v[i].state, set->v[i].alt, set->v[k].alt);
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
            if (set->v[k].state == set->v[i].state && set->v[k].alt < least &&
                same_ways(p, set->v[i].state, set->v[i].alt, set->v[k].alt))
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
        if ((c->outer || (stopped(p, c) && c->stack == 0)) && (least == 0 || c->alt < least))
            least = c->alt;
    }
    return least;
}

static void start(struct sz_predict *p, uint16_t state, uint32_t stack)
{
    const struct sz_state *s = &p->atn->states[state];
    p->now.n = 0;
    for (size_t i = 0; i < s->n_edges; i++) {
        p->busy.n = 0;
        closure(p, (struct config){s->edges[i].target, (uint8_t)(i + 1), false, stack}, &p->now, false);
    }
}

static uint32_t callers(struct sz_predict *p, const struct sz_frame *frame)
{
    if (frame == NULL || frame->invoked_from == 0xffff)
        return 0;
    uint32_t parent = callers(p, frame->parent);
    return push(p, p->atn->states[frame->invoked_from].edges[0].follow, parent);
}

unsigned sz_predict(struct sz_predict *p, uint16_t state, const struct sz_frame *frame, size_t at, size_t *failed_at)
{
    p->n_frames = 0;
    p->full = false;
    start(p, state, 0);
    for (size_t i = at;; i += i + 1 < p->tokens->n) {
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

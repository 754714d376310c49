/*
 * Regular expressions that cannot blow up: every state that the text so far could be in is followed at once
 * (Thompson's construction), so a search costs at most program size x text length, whatever the pattern.
 * Here the tree becomes the program; repeats are unrolled within a bound on the program's size.
 */
#include "fga/engine/regex.h"

#include <stdlib.h>

enum { MAX_PROGRAM = 4000, MAX_STEPS = 100000 };

static uint16_t emit(struct sz_re_parser *p, struct sz_regex *re, enum sz_regex_op op)
{
    if (re->n >= MAX_PROGRAM) {
        sz_re_fail(p, "too large");
        return 0;
    }
    re->prog[re->n] = (struct sz_regex_ins){.op = (uint8_t)op, .x = (uint16_t)(re->n + 1)};
    return (uint16_t)re->n++;
}

static void compile(struct sz_re_parser *p, struct sz_regex *re, const struct sz_re_node *n);

static void compile_class(struct sz_re_parser *p, struct sz_regex *re, const struct sz_re_node *n)
{
    uint16_t at = emit(p, re, RE_CLASS);
    if (p->failed)
        return;
    struct sz_regex_class *c = &re->classes[re->n_classes];
    c->n = n->class->n;
    c->v = sz_xmalloc((c->n + 1) * sizeof(*c->v));
    if (c->n > 0)
        memcpy(c->v, n->class->v, c->n * sizeof(*c->v));
    re->prog[at].y = (uint16_t)re->n_classes++;
}

static void compile_repeat(struct sz_re_parser *p, struct sz_regex *re, const struct sz_re_node *n)
{
    for (int i = 0; i < n->min && !p->failed; i++)
        compile(p, re, n->a);
    if (n->max < 0) {
        uint16_t split = emit(p, re, RE_SPLIT);
        compile(p, re, n->a);
        uint16_t jump = emit(p, re, RE_JUMP);
        re->prog[jump].x = split;
        re->prog[split].y = (uint16_t)re->n;
        return;
    }
    uint16_t first = (uint16_t)re->n;
    for (int i = n->min; i < n->max && !p->failed; i++) {
        emit(p, re, RE_SPLIT); /* each further turn may be left out, and then all after it */
        compile(p, re, n->a);
    }
    uint16_t turn = (uint16_t)((re->n - first) / (size_t)(n->max > n->min ? n->max - n->min : 1));
    for (int i = n->min; i < n->max && !p->failed; i++)
        re->prog[first + turn * (i - n->min)].y = (uint16_t)re->n;
}

static void compile(struct sz_re_parser *p, struct sz_regex *re, const struct sz_re_node *n)
{
    if (++p->steps > MAX_STEPS) /* repeats of nothing add no instruction */
        sz_re_fail(p, "too large");
    if (p->failed)
        return;
    switch (n->kind) {
    case N_EMPTY:
        return;
    case N_CLASS:
        compile_class(p, re, n);
        return;
    case N_ASSERT:
        emit(p, re, n->assert);
        return;
    case N_CAT:
        compile(p, re, n->a);
        compile(p, re, n->b);
        return;
    case N_ALT: {
        uint16_t split = emit(p, re, RE_SPLIT);
        compile(p, re, n->a);
        uint16_t jump = emit(p, re, RE_JUMP);
        re->prog[split].y = (uint16_t)re->n;
        compile(p, re, n->b);
        re->prog[jump].x = (uint16_t)re->n;
        return;
    }
    case N_REPEAT:
        compile_repeat(p, re, n);
        return;
    }
}

void sz_regex_free(struct sz_regex *re)
{
    if (re == NULL)
        return;
    for (size_t i = 0; i < re->n_classes; i++)
        free(re->classes[i].v);
    free(re->classes);
    free(re->prog);
    free(re);
}

struct sz_regex *sz_regex_compile(struct sz_slice pattern, struct sz_text *why)
{
    struct sz_re_parser p = {.s = pattern, .why = why};
    struct sz_regex *re = sz_xcalloc(1, sizeof(*re));
    re->prog = sz_xcalloc(MAX_PROGRAM + 1, sizeof(*re->prog));
    re->classes = sz_xcalloc(MAX_PROGRAM + 1, sizeof(*re->classes));
    sz_arena_init(&p.arena);
    struct sz_re_node *root = sz_re_parse(&p);
    if (root != NULL && !p.failed) {
        compile(&p, re, root);
        emit(&p, re, RE_MATCH);
    }
    sz_arena_fini(&p.arena);
    if (!p.failed) {
        re->prog = sz_xrealloc(re->prog, (re->n + 1) * sizeof(*re->prog));
        return re;
    }
    sz_regex_free(re);
    return NULL;
}

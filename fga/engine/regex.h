/*
 * Inside the regular expressions: pattern -> tree (regex_parse.c) -> program (regex.c) -> search (regex_run.c).
 */
#ifndef SZ_ENGINE_REGEX_H
#define SZ_ENGINE_REGEX_H

#include "fga/engine/cel.h"

enum sz_regex_op {
    RE_CLASS, /* a character of class y, then x */
    RE_JUMP,  /* x */
    RE_SPLIT, /* x and y */
    RE_TEXT_START,
    RE_TEXT_END,
    RE_LINE_START,
    RE_LINE_END,
    RE_WORD,
    RE_NOT_WORD,
    RE_MATCH,
};
struct sz_regex_ins {
    uint8_t op;
    uint16_t x, y;
};
struct sz_regex_range {
    uint32_t lo, hi;
};
struct sz_regex_class {
    struct sz_regex_range *v;
    size_t n, cap;
};
struct sz_regex {
    struct sz_regex_ins *prog;
    size_t n;
    struct sz_regex_class *classes;
    size_t n_classes;
};

/* ---- the tree ---- */

enum sz_re_kind { N_EMPTY, N_CLASS, N_ASSERT, N_CAT, N_ALT, N_REPEAT };
struct sz_re_node {
    enum sz_re_kind kind;
    struct sz_regex_class *class;
    enum sz_regex_op assert;
    struct sz_re_node *a, *b;
    int min, max; /* max -1: no bound */
};
struct sz_re_parser {
    struct sz_slice s;
    size_t at;
    struct sz_arena arena; /* the tree */
    struct sz_text *why;
    bool failed, fold, multiline, dot_all;
    unsigned depth, steps;
};
void *sz_re_fail(struct sz_re_parser *p, const char *what); /* returns NULL */
struct sz_re_node *sz_re_parse(struct sz_re_parser *p);     /* the whole pattern; NULL: failed */

/* The code point at *at, which moves behind it; a byte that is no UTF-8 counts as U+FFFD. */
uint32_t sz_regex_rune(struct sz_slice s, size_t *at);

#endif

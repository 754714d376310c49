/*
 * Follows a program over a text: the set of states before each character, computed once per character.
 */
#include "fga/engine/regex.h"

#include <stdlib.h>

uint32_t sz_regex_rune(struct sz_slice s, size_t *at)
{
    unsigned char c = (unsigned char)s.p[(*at)++];
    size_t more = c >= 0xf0 ? 3 : c >= 0xe0 ? 2 : c >= 0xc0 ? 1 : 0;
    if (c < 0x80)
        return c;
    if (more == 0 || *at + more > s.n)
        return 0xfffd;
    uint32_t r = c & (0x3fU >> more);
    for (size_t i = 0; i < more; i++) {
        unsigned char next = (unsigned char)s.p[*at + i];
        if ((next & 0xc0) != 0x80)
            return 0xfffd;
        r = r << 6 | (next & 0x3f);
    }
    *at += more;
    return r;
}

struct run {
    const struct sz_regex *re;
    struct sz_slice text;
    uint32_t *mark; /* per instruction: the position + 1 at which it was added last */
    uint16_t *now, *next, *stack;
    size_t n_now, n_next;
};

static bool word_at(struct sz_slice s, size_t i)
{
    if (i >= s.n)
        return false;
    char c = s.p[i];
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static bool holds(const struct run *r, uint8_t op, size_t at)
{
    bool edge = (at > 0 && word_at(r->text, at - 1)) != word_at(r->text, at);
    switch (op) {
    case RE_TEXT_START:
        return at == 0;
    case RE_TEXT_END:
        return at == r->text.n;
    case RE_LINE_START:
        return at == 0 || r->text.p[at - 1] == '\n';
    case RE_LINE_END:
        return at == r->text.n || r->text.p[at] == '\n';
    case RE_WORD:
        return edge;
    default: /* RE_NOT_WORD */
        return !edge;
    }
}

/* Adds a state and all that it leads to without a character; true when a match is among them. */
static bool add(struct run *r, uint16_t pc, size_t at, uint16_t *set, size_t *n)
{
    size_t depth = 0;
    r->stack[depth++] = pc;
    while (depth > 0) {
        pc = r->stack[--depth];
        if (r->mark[pc] == at + 1)
            continue;
        r->mark[pc] = (uint32_t)at + 1;
        const struct sz_regex_ins *ins = &r->re->prog[pc];
        switch (ins->op) {
        case RE_MATCH:
            return true;
        case RE_CLASS:
            set[(*n)++] = pc;
            break;
        case RE_SPLIT:
            r->stack[depth++] = ins->y;
            r->stack[depth++] = ins->x;
            break;
        case RE_JUMP:
            r->stack[depth++] = ins->x;
            break;
        default:
            if (holds(r, ins->op, at))
                r->stack[depth++] = ins->x;
        }
    }
    return false;
}

static bool in_class(const struct sz_regex_class *c, uint32_t rune)
{
    for (size_t i = 0; i < c->n; i++)
        if (rune >= c->v[i].lo && rune <= c->v[i].hi)
            return true;
    return false;
}

static bool run(struct run *r)
{
    for (size_t at = 0;;) {
        if (add(r, 0, at, r->now, &r->n_now))
            return true;
        if (at >= r->text.n)
            return false;
        uint32_t rune = sz_regex_rune(r->text, &at);
        r->n_next = 0;
        for (size_t i = 0; i < r->n_now; i++) {
            const struct sz_regex_ins *ins = &r->re->prog[r->now[i]];
            if (in_class(&r->re->classes[ins->y], rune) && add(r, ins->x, at, r->next, &r->n_next))
                return true;
        }
        uint16_t *swap = r->now;
        r->now = r->next;
        r->next = swap;
        r->n_now = r->n_next;
    }
}

bool sz_regex_search(const struct sz_regex *re, struct sz_slice text)
{
    size_t n = re->n + 1;
    struct run r = {.re = re, .text = text};
    char *memory = sz_xcalloc(n, sizeof(*r.mark) + 5 * sizeof(uint16_t));
    r.mark = (uint32_t *)(void *)memory;
    r.now = (uint16_t *)(void *)(memory + n * sizeof(*r.mark));
    r.next = r.now + n;
    r.stack = r.next + n; /* each state pushes at most two: 2n + 1 */
    bool found = run(&r);
    free(memory);
    return found;
}

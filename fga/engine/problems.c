/*
 * The list of problems.  Texts are copied into the list's own arena, so a problem outlives the
 * input that it speaks of.
 */
#include "fga/engine/problems.h"

#include <stdio.h>
#include <stdlib.h>

void sz_problems_init(struct sz_problems *list)
{
    memset(list, 0, sizeof(*list));
    sz_arena_init(&list->arena);
}

void sz_problems_fini(struct sz_problems *list)
{
    free(list->v);
    sz_arena_fini(&list->arena);
    memset(list, 0, sizeof(*list));
}

struct sz_problem *sz_problems_add(struct sz_problems *list, const char *kind, const char *fmt, ...)
{
    if (list->n >= SZ_PROBLEMS_MAX)
        return NULL;
    if (list->n == list->cap) {
        list->cap = list->cap == 0 ? 8 : list->cap * 2;
        list->v = sz_xrealloc(list->v, list->cap * sizeof(*list->v));
    }
    struct sz_problem *p = &list->v[list->n++];
    memset(p, 0, sizeof(*p));
    p->kind = kind;
    va_list args;
    va_start(args, fmt);
    p->message = sz_pool_vprintf(&list->arena.pool, fmt, args);
    va_end(args);
    return p;
}

void sz_problems_first(const struct sz_problems *list, struct sz_text *out)
{
    out->s[0] = '\0';
    if (list->n == 0)
        return;
    const struct sz_problem *p = &list->v[0];
    if (p->file.n > 0)
        sz_text_add(out, "%.*s: ", SZ_FMT(p->file));
    if (p->placed)
        sz_text_add(out, "line %u, column %u: ", p->line + 1, p->column + 1);
    sz_text_add(out, "%.*s", SZ_FMT(p->message));
    if (list->n > 1)
        sz_text_add(out, " (and %zu more)", list->n - 1);
}

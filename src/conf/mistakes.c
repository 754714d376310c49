/*
 * Mistakes are collected, never thrown: the reader of a configuration wants all of them in one
 * run, in the order of the file.  Bounded, because a generated file can be wrong a million times.
 */
#include <stdlib.h>

#include "conf/loader.h"
#include "conf/node.h"

#define MISTAKES_MAX 1000

void sz_mistakes_init(struct sz_mistakes *m)
{
    memset(m, 0, sizeof(*m));
    sz_arena_init(&m->arena);
}

void sz_mistakes_fini(struct sz_mistakes *m)
{
    free(m->v);
    sz_arena_fini(&m->arena);
    memset(m, 0, sizeof(*m));
}

static void SZ_PRINTF(6, 0) add(struct sz_mistakes *m, bool warning, struct sz_slice file, unsigned line,
                                unsigned column, const char *fmt, va_list args)
{
    if (!warning)
        m->errors++;
    if (m->n == MISTAKES_MAX)
        return;
    if (m->n == m->cap) {
        m->cap = m->cap == 0 ? 16 : m->cap * 2;
        m->v = sz_xrealloc(m->v, m->cap * sizeof(*m->v));
    }
    m->v[m->n++] = (struct sz_mistake){
        .file = sz_pool_dup(&m->arena.pool, file),
        .line = line,
        .column = column,
        .warning = warning,
        .message = sz_pool_vprintf(&m->arena.pool, fmt, args),
    };
}

void sz_mistakes_add(struct sz_mistakes *m, struct sz_slice file, unsigned line, unsigned column, bool warning,
                     const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    add(m, warning, file, line, column, fmt, args);
    va_end(args);
}

void sz_conf_mistake(const struct sz_conf *conf, const char *path, struct sz_mistakes *m, const char *fmt, ...)
{
    unsigned line, column;
    va_list args;
    sz_conf_where(conf, path, &line, &column);
    va_start(args, fmt);
    add(m, false, conf->source, line, column, fmt, args);
    va_end(args);
}

void sz_mistake_format(const struct sz_mistake *mistake, struct sz_buf *out)
{
    if (mistake->file.n > 0)
        sz_buf_printf(out, "%.*s:", SZ_FMT(mistake->file));
    if (mistake->line > 0)
        sz_buf_printf(out, "%u:%u:", mistake->line, mistake->column);
    sz_buf_printf(out, "%s%s%.*s", mistake->file.n > 0 || mistake->line > 0 ? " " : "",
                  mistake->warning ? "warning: " : "", SZ_FMT(mistake->message));
}

void sz_mistake(struct sz_loader *l, const struct sz_node *at, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    add(l->m, false, l->file, at == NULL ? 0 : at->line, at == NULL ? 0 : at->column, fmt, args);
    va_end(args);
}

void sz_warning(struct sz_loader *l, const struct sz_node *at, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    add(l->m, true, l->file, at == NULL ? 0 : at->line, at == NULL ? 0 : at->column, fmt, args);
    va_end(args);
}

static int by_position(const void *pa, const void *pb)
{
    const struct sz_mistake *a = pa, *b = pb;
    int file = sz_cmp(a->file, b->file);
    if (file != 0)
        return file;
    if (a->line != b->line)
        return a->line < b->line ? -1 : 1;
    if (a->column != b->column)
        return a->column < b->column ? -1 : 1;
    return sz_cmp(a->message, b->message);
}

void sz_mistakes_sort(struct sz_mistakes *m)
{
    if (m->n < 2)
        return;
    qsort(m->v, m->n, sizeof(*m->v), by_position);
    size_t kept = 1;
    for (size_t i = 1; i < m->n; i++) {
        if (by_position(&m->v[kept - 1], &m->v[i]) != 0)
            m->v[kept++] = m->v[i];
        else if (!m->v[i].warning)
            m->errors--;
    }
    m->n = kept;
}

/*
 * The two ways Subzero ends itself: a broken invariant of our own, and memory that
 * is gone.  Both abort, so that a core or a supervisor sees the place; neither is
 * ever reached by bytes from outside, whose sizes are bounded before allocation.
 */
#include "subzero/base.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

void sz_assert_failed(const char *cond, const char *file, int line)
{
    dprintf(STDERR_FILENO, "subzero: %s:%d: broken invariant: %s\n", file, line, cond);
    abort();
}

static void *checked(void *p, size_t size)
{
    if (SZ_UNLIKELY(p == NULL)) {
        dprintf(STDERR_FILENO, "subzero: out of memory (%zu bytes wanted)\n", size);
        abort();
    }
    return p;
}

/* A zero size gives a real, freeable pointer: callers need no special case for empty tables. */
void *sz_xmalloc(size_t size)
{
    return checked(malloc(size != 0 ? size : 1), size);
}

void *sz_xcalloc(size_t n, size_t size)
{
    return checked(calloc(n != 0 ? n : 1, size != 0 ? size : 1), size);
}

void *sz_xrealloc(void *p, size_t size)
{
    return checked(realloc(p, size != 0 ? size : 1), size);
}

char *sz_xstrdup(const char *s)
{
    size_t n = strlen(s) + 1;
    return memcpy(sz_xmalloc(n), s, n);
}

/*
 * Memory that dies together.  A pool is one function pointer, so that a request's h2o
 * pool, a configuration and a test look alike to the code that fills them.  The arena
 * is ours: chunks from malloc, handed out front to back, freed all at once.
 *
 *   chunks ──▶ [next | size | bytes ......used......room ] ──▶ [ ... ] ──▶ NULL
 */
#include "subzero/base.h"

#include <stdio.h>
#include <stdlib.h>

enum { ALIGN = 16, CHUNK = 4096 };

struct sz_arena_chunk {
    struct sz_arena_chunk *next;
    size_t size;
    _Alignas(ALIGN) char bytes[];
};

void *sz_pool_zalloc(struct sz_pool *pool, size_t size)
{
    return memset(sz_pool_alloc(pool, size), 0, size);
}

struct sz_slice sz_pool_dup(struct sz_pool *pool, struct sz_slice s)
{
    if (s.p == NULL)
        return SZ_NONE; /* absent stays absent */
    char *p = sz_pool_alloc(pool, s.n);
    memcpy(p, s.p, s.n);
    return sz_slice(p, s.n);
}

char *sz_pool_strdup(struct sz_pool *pool, struct sz_slice s)
{
    char *p = sz_pool_alloc(pool, s.n + 1);
    if (s.n != 0)
        memcpy(p, s.p, s.n);
    p[s.n] = '\0';
    return p;
}

struct sz_slice sz_pool_lower(struct sz_pool *pool, struct sz_slice s)
{
    char *copy = sz_pool_strdup(pool, s);
    for (size_t i = 0; i < s.n; i++)
        copy[i] = (char)(copy[i] >= 'A' && copy[i] <= 'Z' ? copy[i] | 0x20 : copy[i]);
    return sz_slice(copy, s.n);
}

struct sz_slice sz_pool_vprintf(struct sz_pool *pool, const char *fmt, va_list args)
{
    va_list again;
    va_copy(again, args);
    int n = vsnprintf(NULL, 0, fmt, args);
    SZ_ASSERT(n >= 0);
    char *p = sz_pool_alloc(pool, (size_t)n + 1);
    vsnprintf(p, (size_t)n + 1, fmt, again);
    va_end(again);
    return sz_slice(p, (size_t)n);
}

struct sz_slice sz_pool_printf(struct sz_pool *pool, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    struct sz_slice s = sz_pool_vprintf(pool, fmt, args);
    va_end(args);
    return s;
}

static struct sz_arena_chunk *chunk_new(size_t room)
{
    struct sz_arena_chunk *chunk = sz_xmalloc(sizeof(*chunk) + room);
    chunk->size = room;
    return chunk;
}

static void *arena_alloc(struct sz_pool *pool, size_t size)
{
    struct sz_arena *arena = SZ_CONTAINER(pool, struct sz_arena, pool);
    SZ_ASSERT(size <= SIZE_MAX / 2);
    size_t want = (size + ALIGN - 1) / ALIGN * ALIGN;
    if (want == 0)
        want = ALIGN;
    if (want > CHUNK / 4 && want > arena->room - arena->used) {
        /* Large: a chunk of its own behind the current one, whose rest stays usable. */
        struct sz_arena_chunk *own = chunk_new(want);
        own->next = arena->chunks != NULL ? arena->chunks->next : NULL;
        if (arena->chunks != NULL) {
            arena->chunks->next = own;
        } else {
            arena->chunks = own;
            arena->used = arena->room = want;
        }
        return own->bytes;
    }
    if (want > arena->room - arena->used) {
        struct sz_arena_chunk *chunk = chunk_new(CHUNK);
        chunk->next = arena->chunks;
        arena->chunks = chunk;
        arena->used = 0;
        arena->room = CHUNK;
    }
    void *p = arena->chunks->bytes + arena->used;
    arena->used += want;
    return p;
}

void sz_arena_init(struct sz_arena *arena)
{
    *arena = (struct sz_arena){.pool = {.alloc = arena_alloc}};
}

void sz_arena_fini(struct sz_arena *arena)
{
    struct sz_arena_chunk *chunk = arena->chunks;
    while (chunk != NULL) {
        struct sz_arena_chunk *next = chunk->next;
        free(chunk);
        chunk = next;
    }
    sz_arena_init(arena); /* empty and usable again */
}

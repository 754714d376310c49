/*
 * The words everything else is written in: byte slices, bounded text for
 * messages, request memory.
 *
 * Results, everywhere in Subzero: 0 is success; a negative value is an errno
 * (-ENOMEM, -EINVAL ...) and means something broke, pass it up untouched; a
 * positive value is a condition that the function's own header names and that
 * the direct caller handles.  Every such result must be looked at.
 */
#ifndef SUBZERO_BASE_H
#define SUBZERO_BASE_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define SZ_MUST_CHECK                   __attribute__((warn_unused_result))
#define SZ_PRINTF(fmt, args)            __attribute__((format(printf, fmt, args)))
#define SZ_COLD                         __attribute__((cold))
#define SZ_LIKELY(x)                    __builtin_expect(!!(x), 1)
#define SZ_UNLIKELY(x)                  __builtin_expect(!!(x), 0)
#define SZ_COUNT(array)                 (sizeof(array) / sizeof((array)[0]))
#define SZ_CONTAINER(ptr, type, member) ((type *)(void *)((char *)(ptr)-offsetof(type, member)))
#define SZ_CACHE_LINE                   64

/* Invariants of our own: stays on in release builds, aborts with the place.  Never for data from outside. */
#define SZ_ASSERT(cond)                                  \
    do {                                                 \
        if (SZ_UNLIKELY(!(cond)))                        \
            sz_assert_failed(#cond, __FILE__, __LINE__); \
    } while (0)
_Noreturn void sz_assert_failed(const char *cond, const char *file, int line) SZ_COLD;

/*
 * A borrowed run of bytes.  Not NUL-terminated, may hold NULs; the owner is
 * named where the slice is handed over.  {NULL, 0} is "absent"; an empty but
 * present value has a non-NULL p.
 */
struct sz_slice {
    const char *p;
    size_t n;
};

#define SZ_S(literal) ((struct sz_slice){(literal), sizeof(literal) - 1})
#define SZ_NONE       ((struct sz_slice){NULL, 0})
#define SZ_FMT(slice) (int)(slice).n, ((slice).p != NULL ? (slice).p : "") /* for "%.*s" */

static inline struct sz_slice sz_slice(const void *p, size_t n)
{
    return (struct sz_slice){(const char *)p, n};
}

static inline struct sz_slice sz_cstr(const char *s)
{
    return s == NULL ? SZ_NONE : sz_slice(s, strlen(s));
}

/* Bytes equal.  Not for secrets: see sz_secret_eq in subzero/crypto.h. */
static inline bool sz_eq(struct sz_slice a, struct sz_slice b)
{
    return a.n == b.n && (a.n == 0 || memcmp(a.p, b.p, a.n) == 0);
}

static inline bool sz_starts_with(struct sz_slice s, struct sz_slice prefix)
{
    return s.n >= prefix.n && (prefix.n == 0 || memcmp(s.p, prefix.p, prefix.n) == 0);
}

static inline struct sz_slice sz_from(struct sz_slice s, size_t at)
{
    return at >= s.n ? sz_slice(s.p == NULL ? "" : s.p + s.n, 0) : sz_slice(s.p + at, s.n - at);
}

static inline struct sz_slice sz_sub(struct sz_slice s, size_t at, size_t n)
{
    struct sz_slice rest = sz_from(s, at);
    return rest.n <= n ? rest : sz_slice(rest.p, n);
}

/* Equal under ASCII case folding (field names, schemes, hosts); other bytes compare as they are. */
bool sz_ieq(struct sz_slice a, struct sz_slice b);
/* memcmp order, shorter first on a common prefix. */
int sz_cmp(struct sz_slice a, struct sz_slice b);
/* Index of the byte or -1. */
ptrdiff_t sz_find_byte(struct sz_slice s, char byte);
/* Removes SP and HTAB at both ends (RFC 9110 OWS). */
struct sz_slice sz_trim(struct sz_slice s);
/*
 * Takes the next field up to `sep` off the front of *rest; false when *rest was
 * exhausted.  "a,,b" gives "a", "", "b"; "" gives one empty field.
 * Start with rest = whole; the iterator marks exhaustion with rest->p == NULL.
 */
bool sz_split(struct sz_slice *rest, char sep, struct sz_slice *field);
/* Whole slice as a decimal without sign, leading zeros allowed.  -EINVAL: not digits; -ERANGE: above max. */
int sz_parse_u64(struct sz_slice s, uint64_t max, uint64_t *out) SZ_MUST_CHECK;
/* Strict UTF-8 (RFC 3629: no overlong forms, no surrogates, <= U+10FFFF). */
bool sz_utf8_valid(struct sz_slice s);

/* A message of bounded length, e.g. why a call failed.  Always NUL-terminated, cut with "..." when too long. */
struct sz_text {
    char s[256];
};
void sz_text_set(struct sz_text *t, const char *fmt, ...) SZ_PRINTF(2, 3);
void sz_text_add(struct sz_text *t, const char *fmt, ...) SZ_PRINTF(2, 3);

/*
 * Where memory that dies together comes from: a request's pool (h2o's, behind
 * this face), a configuration, a test's arena.  Never returns NULL (a failed
 * small allocation aborts, as h2o's does); sizes that a peer chooses are bounded
 * by the caller before.  Memory is 16-byte aligned and NOT cleared.
 * One thread at a time.
 */
struct sz_pool {
    void *(*alloc)(struct sz_pool *pool, size_t size);
};

static inline void *sz_pool_alloc(struct sz_pool *pool, size_t size)
{
    return pool->alloc(pool, size);
}
void *sz_pool_zalloc(struct sz_pool *pool, size_t size);
struct sz_slice sz_pool_dup(struct sz_pool *pool, struct sz_slice s);
/* NUL-terminated copies; the second with its ASCII letters in lower case. */
char *sz_pool_strdup(struct sz_pool *pool, struct sz_slice s);
struct sz_slice sz_pool_lower(struct sz_pool *pool, struct sz_slice s);
struct sz_slice sz_pool_printf(struct sz_pool *pool, const char *fmt, ...) SZ_PRINTF(2, 3);
struct sz_slice sz_pool_vprintf(struct sz_pool *pool, const char *fmt, va_list args) SZ_PRINTF(2, 0);

/* A pool of our own: chunks from malloc, all freed at once.  `pool` is the first member. */
struct sz_arena {
    struct sz_pool pool;
    struct sz_arena_chunk *chunks;
    size_t used, room;
};
void sz_arena_init(struct sz_arena *arena);
void sz_arena_fini(struct sz_arena *arena); /* frees everything; wipes nothing */

/* malloc family that aborts on exhaustion: for start-up and small fixed sizes. */
void *sz_xmalloc(size_t size);
void *sz_xcalloc(size_t n, size_t size);
void *sz_xrealloc(void *p, size_t size);
char *sz_xstrdup(const char *s);

/*
 * A growing byte buffer (heap).  Zero-initialise; sz_buf_fini frees and clears.
 * Growth past `limit` (0: none) sets `overflow`, keeps what was there and ignores
 * further appends, so that a builder checks once, at its end.  One with a limit may stand on memory of its caller
 * (SZ_BUF_ON): it never grows beyond that, and is not given to sz_buf_fini.
 */
struct sz_buf {
    char *p;
    size_t n, cap, limit;
    bool overflow;
};
#define SZ_BUF_ON(array) ((struct sz_buf){.p = (array), .cap = sizeof(array), .limit = sizeof(array) - 1})
void sz_buf_add(struct sz_buf *b, const void *bytes, size_t n);
void sz_buf_adds(struct sz_buf *b, struct sz_slice s);
/* n bytes more, for the caller to fill in; NULL: over the limit (overflow). */
void *sz_buf_room(struct sz_buf *b, size_t n);
void sz_buf_printf(struct sz_buf *b, const char *fmt, ...) SZ_PRINTF(2, 3);
void sz_buf_u64(struct sz_buf *b, uint64_t value); /* decimal */
/* s as a JSON string literal, quotes included; controls and invalid UTF-8 escaped (\ufffd). */
void sz_buf_json(struct sz_buf *b, struct sz_slice s);
/* The same with at most `max` (>= 3) bytes between the quotes: a longer text is cut at a character and marked "…". */
void sz_buf_json_cut(struct sz_buf *b, struct sz_slice s, size_t max);
static inline struct sz_slice sz_buf_slice(const struct sz_buf *b)
{
    return sz_slice(b->p != NULL ? b->p : "", b->n);
}
void sz_buf_fini(struct sz_buf *b);

#endif

/*
 * Byte classes.  Names are short: a table.  Values and tokens are long: whole vectors through the compiler's own
 * vector types, which every target has; the end of a run is seen again with what stands before it.
 */
#include "subzero/scan.h"

enum { WIDTH = 16 };

typedef uint8_t bytes16 __attribute__((vector_size(WIDTH)));
typedef uint64_t words2 __attribute__((vector_size(WIDTH)));

/* Vector comparisons give 0xff for true. */
static inline bool all_set(bytes16 v)
{
    words2 w = (words2)v;
    return (w[0] & w[1]) == UINT64_MAX;
}

static inline bytes16 field_value_bytes(bytes16 v)
{
    return (bytes16)((v >= 0x20) | (v == '\t')) & (bytes16)(v != 0x7f);
}

static inline bytes16 target_bytes(bytes16 v)
{
    return (bytes16)(v > 0x20) & (bytes16)(v != 0x7f);
}

/* "-./0123456789" is one run of ASCII. */
static inline bytes16 b64token_bytes(bytes16 v)
{
    bytes16 lower = v | 0x20;
    return (bytes16)((lower >= 'a') & (lower <= 'z')) | (bytes16)((v >= '-') & (v <= '9')) | (bytes16)(v == '+') |
           (bytes16)(v == '_') | (bytes16)(v == '~');
}

static inline bytes16 printable_bytes(bytes16 v)
{
    return (bytes16)((v >= 0x20) & (v <= 0x7e));
}

static inline bytes16 json_plain_bytes(bytes16 v)
{
    return printable_bytes(v) & (bytes16)((v != '"') & (v != '\\'));
}

static inline uint64_t load(const char *p, size_t n)
{
    uint64_t w = 0;
    memcpy(&w, p, n);
    return w;
}

/* Fewer bytes than a vector holds, at least one: some of them twice, so that nothing else has to fill it. */
static inline bytes16 short_run(const char *p, size_t n)
{
    if (n >= 8)
        return (bytes16)(words2){load(p, 8), load(p + n - 8, 8)};
    if (n >= 4)
        return (bytes16)((words2){0} + (load(p, 4) | load(p + n - 4, 4) << 32));
    bytes16 v = (bytes16){0} + (uint8_t)p[0];
    v[1] = (uint8_t)p[n / 2];
    v[2] = (uint8_t)p[n - 1];
    return v;
}

/* No way out before the end: runs are mostly good, and a branch for each block costs more than it saves. */
#define DEFINE_SCAN(name, test)                                    \
    static bool name(struct sz_slice s)                            \
    {                                                              \
        bytes16 v, good = ~(bytes16){0};                           \
        if (s.n < WIDTH)                                           \
            return s.n == 0 || all_set(test(short_run(s.p, s.n))); \
        for (size_t at = 0; at < s.n - WIDTH; at += WIDTH) {       \
            memcpy(&v, s.p + at, WIDTH);                           \
            good &= test(v);                                       \
        }                                                          \
        memcpy(&v, s.p + s.n - WIDTH, WIDTH);                      \
        return all_set(good & test(v));                            \
    }

DEFINE_SCAN(all_printable, printable_bytes)
DEFINE_SCAN(all_field_value, field_value_bytes)
DEFINE_SCAN(all_target, target_bytes)
DEFINE_SCAN(all_b64token, b64token_bytes)
DEFINE_SCAN(all_json_plain, json_plain_bytes)

static const bool tchar[256] = {
    ['0' ... '9'] = true, ['a' ... 'z'] = true, ['A' ... 'Z'] = true, ['!'] = true, ['#'] = true, ['$'] = true,
    ['%'] = true,         ['&'] = true,         ['\''] = true,        ['*'] = true, ['+'] = true, ['-'] = true,
    ['.'] = true,         ['^'] = true,         ['_'] = true,         ['`'] = true, ['|'] = true, ['~'] = true,
};

bool sz_scan_token(struct sz_slice s)
{
    for (size_t i = 0; i < s.n; i++) {
        if (!tchar[(uint8_t)s.p[i]])
            return false;
    }
    return s.n > 0;
}

bool sz_scan_printable(struct sz_slice s)
{
    return all_printable(s);
}

bool sz_scan_json_plain(struct sz_slice s)
{
    return all_json_plain(s);
}

bool sz_scan_field_value(struct sz_slice s)
{
    return all_field_value(s);
}

bool sz_scan_target(struct sz_slice s)
{
    return s.n > 0 && all_target(s);
}

bool sz_scan_b64token(struct sz_slice s)
{
    while (s.n > 0 && s.p[s.n - 1] == '=')
        s.n--;
    return s.n > 0 && all_b64token(s);
}

/* Values of header fields. */
#include "pipeline/header_value.h"

#include "subzero/scan.h"

static bool is_control(uint8_t c)
{
    return c < 0x20 || c == 0x7f;
}

bool sz_header_value(struct sz_slice raw, struct sz_pool *pool, struct sz_slice *out)
{
    size_t grow = 0;
    *out = raw.p != NULL ? raw : sz_slice("", 0);
    if (sz_scan_printable(raw) && (raw.n == 0 || (raw.p[0] != ' ' && raw.p[raw.n - 1] != ' ')))
        return true; /* nearly all of them */
    for (size_t i = 0; i < raw.n; i++) {
        uint8_t c = (uint8_t)raw.p[i];
        if (is_control(c))
            return false;
        grow += c > 0x7e || (c == ' ' && (i == 0 || i + 1 == raw.n));
    }
    static const char digits[] = "0123456789ABCDEF";
    char *p = sz_pool_alloc(pool, raw.n + 2 * grow);
    size_t n = 0;
    for (size_t i = 0; i < raw.n; i++) {
        uint8_t c = (uint8_t)raw.p[i];
        if (c > 0x7e || (c == ' ' && (i == 0 || i + 1 == raw.n))) {
            p[n++] = '%';
            p[n++] = digits[c >> 4];
            p[n++] = digits[c & 15];
        } else {
            p[n++] = (char)c;
        }
    }
    *out = sz_slice(p, n);
    return true;
}

struct sz_slice sz_header_list(const struct sz_strings *strings, const char *between, struct sz_pool *pool)
{
    struct sz_buf buf = {0};
    for (size_t i = 0; i < strings->n; i++)
        sz_buf_printf(&buf, "%s%.*s", i > 0 ? between : "", SZ_FMT(strings->v[i]));
    struct sz_slice list = sz_pool_dup(pool, sz_buf_slice(&buf));
    sz_buf_fini(&buf);
    return list;
}

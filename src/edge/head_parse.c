/*
 * A head that h2o's parser gives up on is reported to it as a whole request of everything that has been read, so that
 * it comes to our handler as any other does; the handler asks and refuses it.  This thread's flag carries the news: h2o
 * calls the handler from within the same read, since such a request has no body.
 */
#include "edge/head_parse.h"

#include <dlfcn.h>
#include <h2o.h>
#include <h2o/http1.h>
#include <stdatomic.h>

#include "edge/overrides.h"

#define OVERRIDE __attribute__((visibility("default"), used))

static __thread bool unparsed, ours;
static __thread const char *known_at; /* whose head `known` is; NULL: nobody's */
static __thread struct sz_head known;

void sz_head_parse_ours(bool are_ours)
{
    ours = are_ours;
}

bool sz_head_parse_failed(void)
{
    bool is = unparsed;
    unparsed = false;
    return is;
}

/* Whoever owns the buffer at that address has been read at it last: a buffer that moved is somewhere else. */
const struct sz_head *sz_head_parse_known(const char *bytes)
{
    if (bytes != known_at || known.has_length || known.chunked)
        return NULL;
    known_at = NULL;
    return &known;
}

/* The preface of HTTP/2, and a client's parting line break: h2o knows what to do. */
static bool is_h2os_affair(struct sz_slice bytes)
{
    if (sz_starts_with(bytes, SZ_S("PRI * HTTP/2")))
        return true;
    for (size_t i = 0; i < bytes.n; i++) {
        if (i == 4 || (bytes.p[i] != '\r' && bytes.p[i] != '\n'))
            return false;
    }
    return true;
}

struct phr_header { /* picohttpparser's, as h2o uses it */
    const char *name;
    size_t name_len;
    const char *value;
    size_t value_len;
};
typedef int parse_request_fn(const char *buf, size_t len, const char **method, size_t *method_len, const char **path,
                             size_t *path_len, int *minor_version, struct phr_header *headers, size_t *num_headers,
                             size_t last_len);
parse_request_fn phr_parse_request; /* its header is not part of libh2o's */

static parse_request_fn *h2os(void)
{
    static parse_request_fn *_Atomic found;
    parse_request_fn *parse = atomic_load_explicit(&found, memory_order_relaxed);
    if (parse == NULL) {
        *(void **)&parse = dlsym(RTLD_NEXT, "phr_parse_request");
        SZ_ASSERT(parse != NULL);
        atomic_store_explicit(&found, parse, memory_order_relaxed);
    }
    return parse;
}

/* The fields that decide over framing and the connection, by length: h2o looks at no others. */
static bool h2o_needs(struct sz_slice name)
{
    switch (name.n) {
    case 4:
        return sz_eq(name, SZ_S("host"));
    case 6:
        return sz_eq(name, SZ_S("expect"));
    case 7:
        return sz_eq(name, SZ_S("upgrade"));
    case 10:
        return sz_eq(name, SZ_S("connection"));
    case 14:
        return sz_eq(name, SZ_S("content-length"));
    case 17:
        return sz_eq(name, SZ_S("transfer-encoding"));
    default:
        return false;
    }
}

/* In place, as h2o does it: the buffer is the connection's own. */
static void to_lower(struct sz_slice name)
{
    char *p = (char *)(uintptr_t)name.p;
    for (size_t i = 0; i < name.n; i++)
        p[i] = (char)(p[i] | ((unsigned char)(p[i] - 'A') < 26) << 5);
}

static size_t fields_for_h2o(struct phr_header *headers)
{
    size_t n = 0;
    for (size_t i = 0; i < known.fields_n; i++) {
        struct sz_header *field = &known.fields[i];
        to_lower(field->name);
        if (h2o_needs(field->name))
            headers[n++] = (struct phr_header){field->name.p, field->name.n, field->value.p, field->value.n};
    }
    return n;
}

/* Slowly arriving heads are looked at by h2o, which remembers how far it came. */
static bool read_ours(struct sz_slice bytes, size_t last_len)
{
    static const struct sz_head_limits most = {.bytes = H2O_MAX_REQLEN, .fields = SZ_HEAD_HEADERS_MAX};
    const char *why;
    known_at = NULL;
    if (!ours || last_len != 0 || sz_head_check(bytes, &most, &known, &why) != 0)
        return false;
    known_at = bytes.p;
    return true;
}

OVERRIDE int phr_parse_request(const char *buf, size_t len, const char **method, size_t *method_len, const char **path,
                               size_t *path_len, int *minor_version, struct phr_header *headers, size_t *num_headers,
                               size_t last_len)
{
    sz_overrides_seen.parse++;
    unparsed = false; /* whoever did not ask must not leave it to the next */
    if (read_ours(sz_slice(buf, len), last_len)) {
        *method = known.method.p;
        *method_len = known.method.n;
        *path = "/"; /* the target is read by the pipeline alone */
        *path_len = 1;
        *minor_version = !known.http_1_0;
        *num_headers = fields_for_h2o(headers);
        return (int)known.length;
    }
    int rc = h2os()(buf, len, method, method_len, path, path_len, minor_version, headers, num_headers, last_len);
    if (rc >= 0 || (rc == -2 && len < H2O_MAX_REQLEN) || is_h2os_affair(sz_slice(buf, len)))
        return rc;
    unparsed = true;
    *method = "GET";
    *method_len = 3;
    *path = "/";
    *path_len = 1;
    *minor_version = 1;
    *num_headers = 0;
    return (int)len;
}

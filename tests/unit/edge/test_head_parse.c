/*
 * head_parse.c: what h2o is told of a head, against what its own parser tells it; and whom the reading belongs to.
 */
#include <criterion/criterion.h>

#include "edge/head_parse.h"

struct phr_header {
    const char *name;
    size_t name_len;
    const char *value;
    size_t value_len;
};
int phr_parse_request(const char *buf, size_t len, const char **method, size_t *method_len, const char **path,
                      size_t *path_len, int *minor_version, struct phr_header *headers, size_t *num_headers,
                      size_t last_len);

struct parsed {
    int rc, minor;
    struct sz_slice method;
    struct phr_header fields[100];
    size_t fields_n;
};

static struct parsed parse(char *bytes, size_t n, bool ours, size_t last)
{
    struct parsed p = {.fields_n = SZ_COUNT(p.fields)};
    const char *path;
    size_t path_n;
    sz_head_parse_ours(ours);
    p.rc = phr_parse_request(bytes, n, &p.method.p, &p.method.n, &path, &path_n, &p.minor, p.fields, &p.fields_n, last);
    sz_head_parse_ours(false);
    return p;
}

static const char *const heads[] = {
    "GET / HTTP/1.1\r\nHost: a\r\n\r\n",
    "GET /x?y HTTP/1.0\r\n\r\n",
    "POST /x HTTP/1.1\r\nHOST: a\r\nContent-LENGTH: 5\r\n\r\nhello",
    "PUT /x HTTP/1.1\r\nhost:a\r\nTransfer-Encoding: \tchunked \r\nExpect: 100-continue\r\n\r\n0\r\n\r\n",
    "GET /x HTTP/1.1\r\nHost: a\r\nConnection: Upgrade, close\r\nUpgrade: websocket\r\nX-Other: y\r\nCookie: "
    "a=b\r\n\r\n",
    "OPTIONS * HTTP/1.1\r\nHost: a\r\nConnection: close\r\nConnection: keep-alive\r\n\r\nGET / HTTP/1.1\r\n",
    "GET http://b/x HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer x\r\n\r\n",
};

/* The value that h2o would act on: its own parser's last field of that name. */
static struct sz_slice value_of(const struct parsed *p, const char *name)
{
    struct sz_slice found = SZ_NONE;
    for (size_t i = 0; i < p->fields_n; i++) {
        if (sz_ieq(sz_slice(p->fields[i].name, p->fields[i].name_len), sz_cstr(name)))
            found = sz_trim(sz_slice(p->fields[i].value, p->fields[i].value_len));
    }
    return found;
}

Test(head_parse, h2o_learns_what_its_own_parser_would_have_told)
{
    static const char *const names[] = {"host",   "content-length", "transfer-encoding",
                                        "expect", "upgrade",        "connection"};
    for (size_t i = 0; i < SZ_COUNT(heads); i++) {
        char mine[512], theirs[512];
        size_t n = strlen(heads[i]);
        memcpy(mine, heads[i], n);
        memcpy(theirs, heads[i], n);
        struct parsed a = parse(mine, n, true, 0), b = parse(theirs, n, false, 0);
        cr_assert_gt(b.rc, 0, "head %zu", i);
        cr_assert_eq(a.rc, b.rc, "head %zu: %d, %d", i, a.rc, b.rc);
        cr_assert_eq(a.minor, b.minor, "head %zu", i);
        cr_assert(sz_eq(a.method, b.method), "head %zu", i);
        for (size_t k = 0; k < SZ_COUNT(names); k++)
            cr_assert(sz_eq(value_of(&a, names[k]), value_of(&b, names[k])), "head %zu: %s", i, names[k]);
        cr_assert_not(sz_head_parse_failed());
    }
}

Test(head_parse, belongs_to_the_buffer_that_was_read_last)
{
    char a[] = "GET /a HTTP/1.1\r\nHOST: a\r\nX-Ab: C\r\n\r\n", b[] = "GET /b HTTP/1.1\r\nHost: b\r\n\r\n";
    char body[] = "POST /c HTTP/1.1\r\nHost: c\r\nContent-Length: 1\r\n\r\nx";

    (void)parse(a, strlen(a), true, 0);
    const struct sz_head *head = sz_head_parse_known(a);
    cr_assert_not_null(head);
    cr_assert(sz_eq(head->target, SZ_S("/a")));
    cr_assert(sz_eq(head->fields[1].name, SZ_S("x-ab")), "names are lower-case");
    cr_assert(sz_eq(head->fields[1].value, SZ_S("C")));
    cr_assert_null(sz_head_parse_known(a), "once");
    (void)parse(a, strlen(a), true, 0);
    (void)parse(b, strlen(b), true, 0);
    cr_assert_null(sz_head_parse_known(a), "another was read since");
    (void)parse(a, strlen(a), false, 0);
    cr_assert_null(sz_head_parse_known(a), "h2o read it");
    cr_assert_null(sz_head_parse_known(b), "h2o read another since");
    (void)parse(body, strlen(body), true, 0);
    cr_assert_null(sz_head_parse_known(body), "a body may move it");
}

/* What our reading refuses is h2o's to parse, or to give up on; what is not whole is waited for. */
Test(head_parse, leaves_the_rest_to_h2o)
{
    static const struct {
        const char *bytes;
        int rc; /* 1: more than 0 */
        bool failed;
    } rows[] = {
        {"GET / HTTP/1.1\r\nHost: a\r\n", -2, false},    {"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", 1, false},
        {"GET / HTTP/1.1\nHost: a\n\n", 1, false},       {"GET / HTTP/1.1\r\nHost : a\r\n\r\n", 1, true},
        {"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", -1, false}, {"\r\n\r\n", -1, false},
    };
    for (size_t i = 0; i < SZ_COUNT(rows); i++) {
        char bytes[128];
        size_t n = strlen(rows[i].bytes);
        memcpy(bytes, rows[i].bytes, n);
        struct parsed p = parse(bytes, n, true, 0);
        cr_assert(rows[i].rc == 1 ? p.rc > 0 : p.rc == rows[i].rc, "row %zu: %d", i, p.rc);
        cr_assert_eq(sz_head_parse_failed(), rows[i].failed, "row %zu", i);
        cr_assert_null(sz_head_parse_known(bytes), "row %zu", i);
    }
}

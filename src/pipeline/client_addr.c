/*
 * Each trusted proxy appends the address it was called from, so only the right end of the list
 * can be believed: the walk goes leftwards while the address it stands on is a trusted proxy's, and ends at
 * the first that is not, or at an entry it cannot read.  Everything further left is the client's own story.
 */
#include "pipeline/client_addr.h"

#define HOPS_MAX 32 /* trusted hops that are followed and passed on */

/* "192.0.2.1", "192.0.2.1:4711", "2001:db8::1", "[2001:db8::1]:4711". */
static bool parse_entry(struct sz_slice entry, struct sz_addr *addr)
{
    if (entry.n > 0 && entry.p[0] == '[') {
        ptrdiff_t close = sz_find_byte(entry, ']');
        return close > 1 && sz_addr_parse(sz_sub(entry, 1, (size_t)close - 1), addr) == 0;
    }
    if (sz_addr_parse(entry, addr) == 0)
        return true;
    ptrdiff_t colon = sz_find_byte(entry, ':');
    return colon > 0 && sz_addr_parse(sz_sub(entry, 0, (size_t)colon), addr) == 0;
}

/* The rightmost not yet visited entry of all X-Forwarded-For lines; false when there is none. */
static bool take_last(const struct sz_headers *headers, size_t *line, struct sz_slice *rest, struct sz_slice *entry)
{
    while (rest->p == NULL) {
        if (*line == 0)
            return false;
        const struct sz_header *h = &headers->v[--*line];
        if (sz_eq(h->name, SZ_S("x-forwarded-for")))
            *rest = h->value.p != NULL ? h->value : sz_slice("", 0);
    }
    size_t at = rest->n;
    while (at > 0 && rest->p[at - 1] != ',')
        at--;
    *entry = sz_trim(sz_from(*rest, at));
    *rest = at == 0 ? SZ_NONE : sz_sub(*rest, 0, at - 1);
    return true;
}

/* The peer first, the client last. */
static size_t walk(const struct sz_request *req, const struct sz_cidrs *trusted, struct sz_addr hops[HOPS_MAX])
{
    size_t n = 1, line = req->headers.n;
    struct sz_slice rest = SZ_NONE, entry;
    hops[0] = req->peer;
    while (n < HOPS_MAX && sz_cidrs_contain(trusted, hops[n - 1])) {
        if (!take_last(&req->headers, &line, &rest, &entry) || !parse_entry(entry, &hops[n]))
            break;
        n++;
    }
    return n;
}

void sz_client_addr(const struct sz_request *req, const struct sz_cidrs *trusted, struct sz_client_addr *out)
{
    struct sz_addr hops[HOPS_MAX];
    out->peer_trusted = sz_cidrs_contain(trusted, req->peer);
    out->client = hops[walk(req, trusted, hops) - 1];
    out->is_proxy = out->peer_trusted && sz_cidrs_contain(trusted, out->client);
}

struct sz_slice sz_client_chain(const struct sz_request *req, const struct sz_cidrs *trusted, struct sz_pool *pool)
{
    struct sz_addr hops[HOPS_MAX];
    size_t n = walk(req, trusted, hops), at = 0;
    char *text = sz_pool_alloc(pool, n * (SZ_ADDR_TEXT + 2));
    for (size_t i = n; i-- > 0;) {
        at += sz_addr_format(hops[i], text + at);
        if (i > 0) {
            text[at++] = ',';
            text[at++] = ' ';
        }
    }
    return sz_slice(text, at);
}

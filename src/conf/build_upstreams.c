/* Upstreams: their urls, and the pieces of TLS that belong together. */
#include "conf/build.h"

static bool host_ok(struct sz_slice host)
{
    for (size_t i = 0; i < host.n; i++) {
        char c = host.p[i];
        if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_' ||
              c == '.'))
            return false;
    }
    return host.n > 0 && host.n <= 253;
}

/* host[:port] with IPv6 in brackets. */
static bool parse_authority(struct sz_slice s, struct sz_conf_url *out)
{
    struct sz_slice port = SZ_NONE;
    struct sz_addr ip;
    uint64_t number = out->tls ? 443 : 80;
    out->authority = s;
    if (s.n > 0 && s.p[0] == '[') {
        ptrdiff_t end = sz_find_byte(s, ']');
        if (end < 0 || sz_addr_parse(sz_sub(s, 1, (size_t)end - 1), &ip) != 0)
            return false;
        out->host = sz_sub(s, 1, (size_t)end - 1);
        s = sz_from(s, (size_t)end + 1);
        if (s.n > 0 && s.p[0] != ':')
            return false;
        port = s.n > 0 ? sz_from(s, 1) : SZ_NONE;
    } else {
        ptrdiff_t colon = sz_find_byte(s, ':');
        out->host = colon < 0 ? s : sz_sub(s, 0, (size_t)colon);
        port = colon < 0 ? SZ_NONE : sz_from(s, (size_t)colon + 1);
        if (!host_ok(out->host))
            return false;
    }
    if (port.p != NULL && (sz_parse_u64(port, 65535, &number) != 0 || number == 0))
        return false;
    out->port = (uint16_t)number;
    return true;
}

static bool parse_url(struct sz_builder *b, const struct sz_node *at, struct sz_slice s, struct sz_conf_url *out)
{
    struct sz_slice rest = s;
    out->tls = sz_starts_with(s, SZ_S("https://"));
    bool ok = out->tls || sz_starts_with(s, SZ_S("http://"));
    if (ok) {
        rest = sz_from(s, out->tls ? 8 : 7);
        if (rest.n > 0 && rest.p[rest.n - 1] == '/')
            rest.n--;
        ok = parse_authority(rest, out);
    }
    if (ok) {
        out->host = sz_slice(sz_pool_strdup(b->l->pool, out->host), out->host.n);
        out->authority = sz_slice(sz_pool_strdup(b->l->pool, out->authority), out->authority.n);
        return true;
    }
    ptrdiff_t slash = rest.p == s.p ? -1 : sz_find_byte(rest, '/');
    if (sz_find_byte(rest, '@') >= 0)
        sz_mistake(b->l, at, "an upstream's url holds no user or password; use 'set_headers'");
    else if (slash >= 0)
        sz_mistake(b->l, at, "an upstream's url has no path, the request's own is sent; end it before '%.*s'",
                   SZ_FMT(sz_from(rest, (size_t)slash)));
    else
        sz_mistake(b->l, at, "'%.*s' is no upstream url; write http://host:port or https://host:port", SZ_FMT(s));
    return false;
}

static void urls(struct sz_builder *b, const struct sz_raw_upstream *raw, struct sz_conf_upstream *out)
{
    const struct sz_node *list = sz_node_get(raw->head.node, "urls");
    struct sz_conf_url *v = sz_pool_zalloc(b->l->pool, raw->urls.n * sizeof(*v));
    size_t n = 0;
    for (size_t i = 0; i < raw->urls.n; i++)
        n += parse_url(b, sz_node_item(raw->head.node, "urls", i), raw->urls.v[i], &v[n]);
    for (size_t i = 1; i < n; i++) {
        if (v[i].tls != v[0].tls)
            sz_mistake(b->l, list, "http and https urls in one upstream; make two");
    }
    out->urls = v;
    out->urls_n = n;
}

static void tls(struct sz_builder *b, const struct sz_raw_upstream *raw, struct sz_conf_upstream *out)
{
    const struct sz_raw_upstream_tls *t = &raw->tls;
    const struct sz_node *node = t->head.node;
    if (node == NULL)
        return;
    if (out->urls_n > 0 && !out->urls[0].tls)
        sz_mistake(b->l, sz_node_key(raw->head.node, "tls"),
                   "'tls' of an upstream with http urls; write https:// or remove it");
    if ((sz_node_get(node, "certificate") == NULL) != (sz_node_get(node, "key") == NULL))
        sz_mistake(b->l, node, "a client certificate needs both 'certificate' and 'key'");
    out->tls.ca_file = t->ca_file;
    out->tls.certificate = t->certificate;
    out->tls.key = t->key;
    out->tls.server_name = t->server_name;
    if (t->server_name.p != NULL && !host_ok(t->server_name))
        sz_mistake(b->l, sz_node_get(node, "server_name"), "'%.*s' is no host name", SZ_FMT(t->server_name));
}

void sz_build_upstreams(struct sz_builder *b)
{
    const struct sz_raw_upstream *raw = b->raw->upstreams.v;
    size_t n = b->raw->upstreams.n;
    struct sz_conf_upstream *v = sz_pool_zalloc(b->l->pool, n * sizeof(*v));
    for (size_t i = 0; i < n; i++) {
        v[i].name = raw[i].head.name;
        if (raw[i].head.node == NULL)
            continue;
        v[i].connect = raw[i].timeouts.connect;
        v[i].first_byte = raw[i].timeouts.first_byte;
        v[i].idle = raw[i].timeouts.idle;
        v[i].keepalive = raw[i].keepalive;
        v[i].max_idle = raw[i].max_idle;
        v[i].reuse = (enum sz_reuse)raw[i].reuse;
        v[i].preserve_host = raw[i].preserve_host;
        if (raw[i].urls.n > 0)
            urls(b, &raw[i], &v[i]);
        tls(b, &raw[i], &v[i]);
    }
    b->conf->upstreams = v;
    b->conf->upstreams_n = n;
}

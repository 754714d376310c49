/* Listeners and the admin listener: addresses, modes and what each mode needs. */

#include "conf/build.h"

bool sz_parse_listen(struct sz_loader *l, const struct sz_node *at, struct sz_slice s, struct sz_addr *ip,
                     uint16_t *port)
{
    ptrdiff_t colon = -1;
    for (size_t i = 0; i < s.n; i++)
        colon = s.p[i] == ':' ? (ptrdiff_t)i : colon;
    struct sz_slice host = colon < 0 ? s : sz_sub(s, 0, (size_t)colon);
    uint64_t number = 0;
    bool brackets = host.n > 2 && host.p[0] == '[' && host.p[host.n - 1] == ']';
    if (brackets)
        host = sz_sub(host, 1, host.n - 2);
    bool ok = colon >= 0 && sz_parse_u64(sz_from(s, (size_t)colon + 1), 65535, &number) == 0 &&
              sz_addr_parse(host, ip) == 0 && (brackets || sz_find_byte(host, ':') < 0);
    if (!ok) {
        sz_mistake(l, at, "'%.*s' is no address with a port; write 127.0.0.1:8080, 0.0.0.0:8080 or [::1]:8080",
                   SZ_FMT(s));
        return false;
    }
    *port = (uint16_t)number;
    return true;
}

static void certificates(struct sz_builder *b, const struct sz_raw_tls *raw, struct sz_conf_tls *out)
{
    const struct sz_node *node = raw->head.node;
    bool cert = sz_node_get(node, "certificate") != NULL, key = sz_node_get(node, "key") != NULL;
    bool list = sz_node_get(node, "certificates") != NULL;
    if (cert != key)
        sz_mistake(b->l, node, "tls needs both 'certificate' and 'key'");
    else if (list && cert)
        sz_mistake(b->l, sz_node_key(node, "certificates"),
                   "'certificates' beside 'certificate'; put them all into the list");
    else if (!list && !cert)
        sz_mistake(b->l, node, "tls needs 'certificate' and 'key', or 'certificates'");
    size_t n = list ? raw->certificates.n : cert;
    struct sz_conf_cert *certs = sz_pool_zalloc(b->l->pool, n * sizeof(*certs));
    for (size_t i = 0; i < n; i++)
        certs[i] = list ? ((const struct sz_raw_cert *)raw->certificates.v)[i].out : raw->single;
    out->certs = certs;
    out->certs_n = n;
}

void sz_build_tls(struct sz_builder *b, const struct sz_raw_tls *raw, struct sz_conf_tls *out)
{
    const struct sz_node *node = raw->head.node;
    if (node == NULL)
        return;
    out->on = true;
    out->client_ca = raw->client_ca;
    out->crl = raw->crl;
    out->watch = raw->watch;
    certificates(b, raw, out);
    bool ca = sz_node_get(node, "client_ca") != NULL;
    if (ca)
        out->client_auth = raw->client_auth == 0 ? SZ_CLIENT_AUTH_REQUIRE : (enum sz_client_auth)raw->client_auth;
    if (!ca && sz_node_get(node, "client_auth") != NULL)
        sz_mistake(b->l, sz_node_key(node, "client_auth"),
                   "'client_auth' without 'client_ca': nothing to check certificates against");
    if (!ca && sz_node_get(node, "crl") != NULL)
        sz_mistake(b->l, sz_node_key(node, "crl"), "'crl' without 'client_ca': no client certificate is asked for");
}

static void check_mode(struct sz_builder *b, const struct sz_raw_listener *raw)
{
    const struct sz_node *node = raw->head.node;
    bool trusted = b->raw->trusted_proxies.n > 0;
    if (raw->mode == SZ_MODE_DECIDE && sz_node_get(node, "dialect") == NULL)
        sz_mistake(b->l, node, "a listener in mode 'decide' needs 'dialect': whose question it answers");
    if (raw->mode != SZ_MODE_DECIDE && sz_node_get(node, "dialect") != NULL)
        sz_mistake(b->l, sz_node_key(node, "dialect"),
                   "'dialect' belongs to mode 'decide'; add 'mode: decide' or remove it");
    if (raw->mode == SZ_MODE_DECIDE && !trusted)
        sz_mistake(b->l, node,
                   "a listener in mode 'decide' answers 'trusted_proxies' alone; name the front proxy's address there");
    if (raw->proxy_protocol && !trusted)
        sz_mistake(b->l, sz_node_key(node, "proxy_protocol"),
                   "'proxy_protocol' is taken from 'trusted_proxies' alone; name the proxy's address there");
    if (raw->protocol == SZ_PROTOCOL_H2C && raw->tls.head.node != NULL)
        sz_mistake(b->l, sz_node_key(node, "protocol"),
                   "'h2c' is HTTP/2 without TLS; remove it or 'tls' (TLS offers HTTP/2 by itself)");
}

static void check_body(struct sz_builder *b, const struct sz_node *node, uint64_t bytes)
{
    if (bytes > b->raw->limits.out.request_body)
        sz_mistake(b->l, sz_node_get(node, "request_body"),
                   "'request_body' is larger than 'limits.request_body'; raise that one");
}

static void listener(struct sz_builder *b, const struct sz_raw_listener *raw, struct sz_conf_listener *out)
{
    const struct sz_node *node = raw->head.node;
    if (node == NULL)
        return;
    out->address = raw->address;
    if (raw->address.p != NULL)
        sz_parse_listen(b->l, sz_node_get(node, "address"), raw->address, &out->ip, &out->port);
    out->mode = (enum sz_listen_mode)raw->mode;
    out->dialect = (enum sz_dialect)raw->dialect;
    out->h2c = raw->protocol == SZ_PROTOCOL_H2C;
    out->proxy_protocol = raw->proxy_protocol;
    sz_build_tls(b, &raw->tls, &out->tls);
    bool own = sz_node_get(node, "request_body") != NULL;
    out->request_body = own ? raw->request_body : b->raw->limits.out.request_body;
    if (own)
        check_body(b, node, raw->request_body);
    check_mode(b, raw);
    sz_build_api(b, raw, out);
}

bool sz_listeners_collide(const struct sz_conf_listener *a, const struct sz_conf_listener *c)
{
    static const struct sz_addr any4 = {{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff}}, any6 = {{0}};
    if (a->port != c->port || a->port == 0 || sz_addr_is_v4(a->ip) != sz_addr_is_v4(c->ip))
        return false;
    const struct sz_addr any = sz_addr_is_v4(a->ip) ? any4 : any6;
    return sz_addr_eq(a->ip, c->ip) || sz_addr_eq(a->ip, any) || sz_addr_eq(c->ip, any);
}

void sz_build_listeners(struct sz_builder *b)
{
    const struct sz_raw_listener *raw = b->raw->listen.v;
    size_t n = b->raw->listen.n;
    struct sz_conf_listener *v = sz_pool_zalloc(b->l->pool, n * sizeof(*v));
    for (size_t i = 0; i < n; i++) {
        listener(b, &raw[i], &v[i]);
        for (size_t k = 0; k < i; k++) {
            if (sz_listeners_collide(&v[i], &v[k]))
                sz_mistake(b->l, sz_node_get(raw[i].head.node, "address"),
                           "'%.*s' and '%.*s' are the same place; keep one", SZ_FMT(v[k].address),
                           SZ_FMT(v[i].address));
        }
    }
    b->conf->listeners = v;
    b->conf->listeners_n = n;
}

void sz_build_admin(struct sz_builder *b)
{
    const struct sz_raw_admin *raw = &b->raw->admin;
    struct sz_conf_admin *out = &b->conf->admin;
    const struct sz_node *node = raw->head.node;
    if (node == NULL)
        return;
    out->on = true;
    out->address = raw->address;
    out->token = raw->token.secret;
    out->open_metrics = raw->open_metrics;
    out->hosts = raw->hosts;
    if (raw->address.p == NULL ||
        !sz_parse_listen(b->l, sz_node_get(node, "address"), raw->address, &out->ip, &out->port))
        return;
    if (!sz_addr_is_loopback(out->ip) && sz_node_get(node, "token_file") == NULL)
        sz_mistake(b->l, sz_node_get(node, "address"), "an admin address that is not loopback needs 'token_file'");
    for (size_t i = 0; i < b->conf->listeners_n; i++) {
        struct sz_conf_listener own = {.ip = out->ip, .port = out->port};
        if (sz_listeners_collide(&own, &b->conf->listeners[i]))
            sz_mistake(b->l, sz_node_get(node, "address"), "'%.*s' is also a listener; give admin a port of its own",
                       SZ_FMT(raw->address));
    }
}

/*
 * Redis: where it is, how to log in, the fleet's key.  A url may hold a user and a password; they are taken out here
 * and stand in no message, log or dump.
 */
#include "conf/build.h"
#include "subzero/fleet.h"

enum { PORT = 6379, DATABASES = 65535 };

struct parts { /* of one url */
    bool unix_socket, tls;
    struct sz_conf_redis_place place;
    struct sz_slice user, password;
    uint64_t database;
};

/* %41 and such; false: what follows a % is no byte.  What comes out may be a password: it is wiped with the rest. */
static bool unescape(struct sz_builder *b, struct sz_slice s, struct sz_slice *out)
{
    char *p = sz_pool_alloc(b->l->pool, s.n + 1);
    size_t n = 0;
    for (size_t i = 0; i < s.n; i++) {
        p[n] = s.p[i];
        if (s.p[i] == '%') {
            int high = i + 2 < s.n ? sz_hex_digit(s.p[i + 1]) : -1, low = high < 0 ? -1 : sz_hex_digit(s.p[i + 2]);
            if (low < 0)
                return false;
            p[n] = (char)(high * 16 + low);
            i += 2;
        }
        n++;
    }
    p[n] = '\0';
    *out = sz_slice(p, n);
    sz_secret_note(b->l, *out);
    return true;
}

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

/* host[:port], IPv6 in brackets. */
static bool parse_authority(struct sz_builder *b, struct sz_slice s, struct sz_conf_redis_place *out)
{
    struct sz_slice host = s, port = SZ_NONE;
    struct sz_addr ip;
    uint64_t number = PORT;
    ptrdiff_t end = s.n > 0 && s.p[0] == '[' ? sz_find_byte(s, ']') : -1;
    if (end > 0) {
        host = sz_sub(s, 1, (size_t)end - 1);
        struct sz_slice rest = sz_from(s, (size_t)end + 1);
        if (sz_addr_parse(host, &ip) != 0 || (rest.n > 0 && rest.p[0] != ':'))
            return false;
        port = rest.n > 0 ? sz_from(rest, 1) : SZ_NONE;
    } else {
        ptrdiff_t colon = sz_find_byte(s, ':');
        host = colon < 0 ? s : sz_sub(s, 0, (size_t)colon);
        port = colon < 0 ? SZ_NONE : sz_from(s, (size_t)colon + 1);
        if (!host_ok(host))
            return false;
    }
    if (port.p != NULL && (sz_parse_u64(port, 65535, &number) != 0 || number == 0))
        return false;
    out->host = sz_slice(sz_pool_strdup(b->l->pool, host), host.n);
    out->port = (uint16_t)number;
    return true;
}

/* user:password@ off the front of *rest. */
static bool take_login(struct sz_builder *b, struct sz_slice *rest, struct parts *out)
{
    const char *at = rest->n > 0 ? memrchr(rest->p, '@', rest->n) : NULL;
    if (at == NULL)
        return true;
    struct sz_slice login = sz_slice(rest->p, (size_t)(at - rest->p));
    *rest = sz_from(*rest, login.n + 1);
    ptrdiff_t colon = sz_find_byte(login, ':');
    if (colon < 0)
        return false; /* a user alone, or a password alone?  Nobody should have to guess */
    return unescape(b, sz_sub(login, 0, (size_t)colon), &out->user) &&
           unescape(b, sz_from(login, (size_t)colon + 1), &out->password) && out->password.n > 0;
}

static bool parse_unix(struct sz_builder *b, struct sz_slice rest, struct parts *out)
{
    ptrdiff_t query = sz_find_byte(rest, '?');
    struct sz_slice path = query < 0 ? rest : sz_sub(rest, 0, (size_t)query);
    struct sz_slice db = query < 0 ? SZ_NONE : sz_from(rest, (size_t)query + 1);
    if (path.n < 2 || path.p[0] != '/' || path.n > 107)
        return false;
    if (db.p != NULL &&
        (!sz_starts_with(db, SZ_S("db=")) || db.n == 3 || sz_parse_u64(sz_from(db, 3), DATABASES, &out->database) != 0))
        return false;
    out->unix_socket = true;
    out->place.path = sz_slice(sz_pool_strdup(b->l->pool, path), path.n);
    return true;
}

static bool parse_url(struct sz_builder *b, struct sz_slice url, struct parts *out)
{
    static const struct sz_slice schemes[] = {SZ_S("redis://"), SZ_S("rediss://"), SZ_S("unix://")};
    size_t i = 0;
    *out = (struct parts){.user = SZ_NONE};
    while (i < SZ_COUNT(schemes) && !sz_starts_with(url, schemes[i]))
        i++;
    if (i == SZ_COUNT(schemes))
        return false;
    struct sz_slice rest = sz_from(url, schemes[i].n);
    if (!take_login(b, &rest, out))
        return false;
    if (i == 2)
        return parse_unix(b, rest, out);
    out->tls = i == 1;
    ptrdiff_t slash = sz_find_byte(rest, '/');
    struct sz_slice db = slash < 0 ? SZ_NONE : sz_from(rest, (size_t)slash + 1);
    if (db.n > 0 && sz_parse_u64(db, DATABASES, &out->database) != 0)
        return false;
    return parse_authority(b, slash < 0 ? rest : sz_sub(rest, 0, (size_t)slash), &out->place);
}

static struct sz_slice shown(struct sz_builder *b, const struct parts *p)
{
    if (p->unix_socket)
        return sz_pool_printf(b->l->pool, "unix://%.*s", SZ_FMT(p->place.path));
    bool v6 = sz_find_byte(p->place.host, ':') >= 0;
    return sz_pool_printf(b->l->pool, "redis%s://%s%.*s%s:%u", p->tls ? "s" : "", v6 ? "[" : "", SZ_FMT(p->place.host),
                          v6 ? "]" : "", p->place.port);
}

/* The url itself is not repeated: it may hold a password. */
static void server(struct sz_builder *b, const struct sz_raw_redis *raw, struct sz_conf_redis *out)
{
    const struct sz_node *at = sz_node_get(raw->head.node, "url");
    struct sz_conf_redis_place *place = sz_pool_zalloc(b->l->pool, sizeof(*place));
    struct parts p;
    if (sz_find_byte(raw->url, '@') >= 0)
        sz_secret_note(b->l, raw->url);
    if (!parse_url(b, raw->url, &p)) {
        sz_mistake(b->l, at,
                   "'url' is no Redis url; write redis://[user:password@]host:6379/0, rediss:// for TLS, or "
                   "unix:///path?db=0, and %%40 for an @ in a password (':password@' where there is no user)");
        return;
    }
    *place = p.place;
    out->places = place;
    out->places_n = 1;
    out->tls = p.tls;
    out->shown = shown(b, &p);
    out->database = (uint32_t)p.database;
    if (p.password.p == NULL)
        return;
    if (raw->username.p != NULL || raw->password.path.p != NULL)
        sz_mistake(b->l, at, "'url' holds a user and a password, and so do 'username' or 'password_file'; keep one");
    out->username = p.user.n > 0 ? p.user : SZ_NONE;
    out->password = (struct sz_secret){.value = p.password, .set = true};
}

static void cluster(struct sz_builder *b, const struct sz_raw_redis *raw, struct sz_conf_redis *out)
{
    struct sz_conf_redis_place *places = sz_pool_zalloc(b->l->pool, raw->cluster.n * sizeof(*places));
    out->cluster = true;
    for (size_t i = 0; i < raw->cluster.n; i++) {
        const struct sz_node *at = sz_node_item(raw->head.node, "cluster", i);
        struct parts p;
        if (!parse_url(b, raw->cluster.v[i], &p) || p.unix_socket || p.database != 0 || p.password.p != NULL) {
            sz_mistake(b->l, at,
                       "a node of 'cluster' is redis://host:port or rediss://host:port, without user, password and "
                       "database (a cluster has one); use 'username' and 'password_file'");
            continue;
        }
        if (out->places_n > 0 && p.tls != out->tls)
            sz_mistake(b->l, at, "redis:// and rediss:// in one cluster; write all nodes alike");
        out->tls = p.tls;
        if (out->places_n == 0)
            out->shown = shown(b, &p);
        places[out->places_n++] = p.place;
    }
    out->places = places;
}

/* The key as bytes: base64 of exactly SZ_FLEET_KEY of them. */
static void key(struct sz_builder *b, const struct sz_raw_redis *raw, struct sz_conf_redis *out)
{
    struct sz_slice text = sz_trim(raw->key.secret.value);
    size_t n = 0;
    if (!raw->key.secret.set)
        return; /* said already */
    uint8_t *bytes = sz_pool_zalloc(b->l->pool, text.n + 4);
    sz_secret_note(b->l, sz_slice(bytes, text.n + 4));
    if (sz_b64_decode(text, bytes, &n) != 0 || n != SZ_FLEET_KEY)
        sz_mistake(b->l, sz_node_get(raw->head.node, "key_file"),
                   "'key_file' holds no key: %d bytes in base64, as 'subzero key new' prints them", SZ_FLEET_KEY);
    else
        out->key = (struct sz_secret){.value = sz_slice(bytes, n), .set = true};
}

static void connections(struct sz_builder *b, const struct sz_raw_redis *raw, struct sz_conf_redis *out)
{
    out->max_connections = raw->max_connections;
    if (raw->max_connections == 0)
        out->max_connections = b->conf->workers + 2 > 8 ? b->conf->workers + 2 : 8;
    else if (raw->max_connections < b->conf->workers)
        sz_mistake(b->l, sz_node_get(raw->head.node, "max_connections"),
                   "fewer 'max_connections' (%u) than workers (%u): each needs a connection of its own; raise it or "
                   "lower 'workers'",
                   raw->max_connections, b->conf->workers);
}

void sz_build_redis_server(struct sz_builder *b, const struct sz_raw_redis *raw, struct sz_conf_redis *out)
{
    const struct sz_node *node = raw->head.node;
    *out = (struct sz_conf_redis){.on = true,
                                  .username = raw->username,
                                  .password = raw->password.secret,
                                  .timeout = raw->timeout,
                                  .ca_file = raw->ca_file,
                                  .breaker = raw->breaker.out};
    bool one = sz_node_get(node, "url") != NULL, many = sz_node_get(node, "cluster") != NULL;
    if (one == many)
        sz_mistake(b->l, one ? sz_node_key(node, "cluster") : node,
                   one ? "'url' beside 'cluster': a server or a cluster; remove one"
                       : "redis needs 'url', or 'cluster' with some of its nodes");
    else if (raw->url.p != NULL)
        server(b, raw, out);
    else if (raw->cluster.n > 0)
        cluster(b, raw, out);
    if (raw->username.p != NULL && raw->password.path.p == NULL)
        sz_mistake(b->l, sz_node_key(node, "username"), "'username' needs 'password_file'");
    if (raw->ca_file.p != NULL && out->places_n > 0 && !out->tls)
        sz_mistake(b->l, sz_node_key(node, "ca_file"), "'ca_file' without TLS: write rediss://, or remove it");
    connections(b, raw, out);
}

void sz_build_redis(struct sz_builder *b)
{
    if (b->raw->redis.head.node == NULL)
        return;
    sz_build_redis_server(b, &b->raw->redis, &b->conf->redis);
    key(b, &b->raw->redis, &b->conf->redis);
}

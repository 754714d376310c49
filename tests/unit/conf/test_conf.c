/* Good configurations: that what was written arrives where the rest of Subzero reads it. */
#include "conf_test.h"

#include "subzero/identity.h"
#include "subzero/log.h"
#include "subzero/router.h"

static const char full[] =
    "listen:\n"
    "  - address: 127.0.0.1:8080\n"
    "  - {address: \"[::1]:8081\", mode: decide, dialect: haproxy, request_body: 10kB}\n"
    "  - {address: 0.0.0.0:8443, proxy_protocol: true,\n"
    "     tls: {certificate: cert.pem, key: key.pem, client_ca: cert.pem, watch: true}}\n"
    "  - {address: 127.0.0.1:8444, protocol: h2c}\n"
    "admin: {address: 0.0.0.0:9901, token_file: secret, open_metrics: true, hosts: [gw.internal]}\n"
    "workers: 3\n"
    "user: nobody\n"
    "trusted_proxies: [127.0.0.1, 10.0.0.0/8, \"fd00::/8\"]\n"
    "limits: {max_in_flight: 7, request_body: 2MB, drain: 5s}\n"
    "issuers:\n"
    "  rsa: {issuer: https://rsa/, audiences: [api], algorithms: [RS256, PS512], jwks_file: keys.json, leeway: 3s}\n"
    "  hmac: {issuer: https://hmac/, audiences: [api, other], secret_file: secret, tenant_claim: org}\n"
    "cache: {l1: {capacity: 10, ttl: 2s}, negative: {ttl: 1s}}\n"
    "fga:\n"
    "  model: |\n"
    "    model\n"
    "      schema 1.1\n"
    "  tuples: keys.json\n"
    "assertion: {key_file: secret}\n"
    "log: {access: sampled, sample: 10, level: warn}\n"
    "upstreams:\n"
    "  plain: {urls: [\"http://127.0.0.1:9000\", \"http://[::1]\"], timeouts: {connect: 20ms}, reuse: never}\n"
    "  tls: {urls: [\"https://Api.example.com/\"], preserve_host: false, tls: {server_name: other.example.com}}\n"
    "routes:\n"
    "  - id: one\n"
    "    match: {methods: [GET, PUT], path: \"/a/{x}/{y}\", host: \"*.Example.com\"}\n"
    "    auth: {issuers: [hmac, rsa], scopes: [s1, s2], any_scope: [s2, s3], audiences: [api],\n"
    "           claims: {sub: alice, role: [admin, 7], client: web}, cookie: session}\n"
    "    authorize:\n"
    "      any:\n"
    "        - {user: \"user:{issuer}|{claims.sub}\", relation: viewer, object: \"doc:{path.y}\"}\n"
    "        - {user: \"group:{issuer}-{claims.dept}#member\", relation: viewer, object: \"doc:{query.q}\"}\n"
    "    set_headers: {X-Who: \"{{{claims.role}}}-{header.X-Foo}-{method}-{client.ip}-{now}-{issuer}\"}\n"
    "    strip_request_headers: [X-Old]\n"
    "    authorization: keep\n"
    "    websocket: true\n"
    "    max_lifetime: 1h\n"
    "    request_body: 5kB\n"
    "    timeout: 1s\n"
    "    assertion: {}\n"
    "    cors: {origins: [\"https://App.example.com\"], headers: [X-A], credentials: true, max_age: 1m}\n"
    "    upstream: plain\n"
    "  - {id: two, match: {path: /*}, public: true, covers_guarded: true, upstream: tls}\n";

static void load(struct conf_try *t)
{
    conf_write("secret", "0123456789abcdef0123456789abcdef\r\n", 0600);
    conf_write("keys.json", "{}", 0644);
    conf_write("cert.pem", "x", 0644);
    conf_write("key.pem", "x", 0600);
    conf_try(t, full);
    cr_assert_not_null(t->conf, "%s", conf_messages(t));
}

Test(conf, listeners_and_admin)
{
    struct conf_try t;
    load(&t);
    const struct sz_conf_listener *l = t.conf->listeners;
    cr_assert_eq(t.conf->listeners_n, 4);
    cr_expect_eq(l[0].mode, SZ_MODE_PROXY);
    cr_expect_eq(l[0].port, 8080);
    cr_expect_eq(l[0].request_body, 2000000);
    cr_expect_eq(l[1].mode, SZ_MODE_DECIDE);
    cr_expect_eq(l[1].dialect, SZ_DIALECT_HAPROXY);
    cr_expect_eq(l[1].request_body, 10000);
    cr_expect(!sz_addr_is_v4(l[1].ip) && sz_addr_is_loopback(l[1].ip));
    cr_expect(l[2].tls.on && l[2].tls.watch && l[2].proxy_protocol && l[2].tls.certs_n == 1);
    cr_expect_eq(l[2].tls.client_auth, SZ_CLIENT_AUTH_REQUIRE);
    cr_expect_eq(l[2].tls.certs[0].key.p[0], '/', "relative paths start at the file's directory");
    cr_expect(l[3].h2c);
    cr_expect(t.conf->admin.on && t.conf->admin.open_metrics && t.conf->admin.hosts.n == 1);
    cr_expect(sz_eq(t.conf->admin.token.value, SZ_S("0123456789abcdef0123456789abcdef")),
              "the line's end is not part of it");
    conf_done(&t);
}

Test(conf, process)
{
    struct conf_try t;
    load(&t);
    cr_expect_eq(t.conf->workers, 3);
    cr_expect(sz_eq(t.conf->user, SZ_S("nobody")));
    cr_expect_eq(t.conf->trusted_proxies.n, 3);
    cr_expect_eq(t.conf->limits.max_in_flight, 7);
    cr_expect_eq(t.conf->limits.headers, 100);
    cr_expect_eq(t.conf->limits.drain.us, 5000000);
    cr_expect_eq(t.conf->cache.capacity, 10);
    cr_expect_eq(t.conf->cache.ttl.us, 2000000);
    cr_expect_eq(t.conf->cache.negative_ttl.us, 1000000);
    cr_expect_eq(t.conf->cache.negative_capacity, 8192);
    cr_expect(t.conf->fga.on && t.conf->fga.model.p == NULL && t.conf->fga.tuples_text.p == NULL);
    cr_expect(sz_eq(t.conf->fga.model_text, SZ_S("model\n  schema 1.1\n")));
    cr_expect_eq(t.conf->fga.tuples.p[0], '/');
    cr_expect(t.conf->assertion.on && t.conf->assertion.key.set && t.conf->assertion.ttl.us == 30000000);
    cr_expect_eq(t.conf->log.access, SZ_ACCESS_SAMPLED);
    cr_expect_eq(t.conf->log.sample, 10);
    cr_expect_eq(t.conf->log.level, SZ_LOG_WARN);
    conf_done(&t);
}

Test(conf, issuers)
{
    struct conf_try t;
    load(&t);
    const struct sz_conf_issuer *rsa = &t.conf->issuers[0], *hmac = &t.conf->issuers[1];
    cr_expect_eq(rsa->algorithms, 1u << SZ_ALG_RS256 | 1u << SZ_ALG_PS512);
    cr_expect_eq(rsa->leeway.us, 3000000);
    cr_expect_not(rsa->secret.set);
    cr_expect_eq(hmac->algorithms, 1u << SZ_ALG_HS256, "a secret alone means HS256");
    cr_expect(hmac->secret.set && hmac->secret.value.n == 32);
    cr_expect(sz_eq(hmac->tenant_claim, SZ_S("org")));
    cr_expect_eq(hmac->leeway.us, 10000000);
    cr_expect_neq(hmac->settings, rsa->settings);
    conf_done(&t);
}

Test(conf, upstreams)
{
    struct conf_try t;
    load(&t);
    const struct sz_conf_upstream *plain = &t.conf->upstreams[0], *tls = &t.conf->upstreams[1];
    cr_assert_eq(plain->urls_n, 2);
    cr_expect_eq(plain->urls[0].port, 9000);
    cr_expect(sz_eq(plain->urls[0].authority, SZ_S("127.0.0.1:9000")));
    cr_expect(sz_eq(plain->urls[1].host, SZ_S("::1")) && plain->urls[1].port == 80);
    cr_expect(sz_eq(plain->urls[1].authority, SZ_S("[::1]")));
    cr_expect_eq(plain->connect.us, 20000);
    cr_expect_eq(plain->idle.us, 60000000);
    cr_expect_eq(plain->reuse, SZ_REUSE_NEVER);
    cr_expect(plain->preserve_host && !tls->preserve_host);
    cr_expect(tls->urls[0].tls && tls->urls[0].port == 443 && sz_eq(tls->urls[0].host, SZ_S("Api.example.com")));
    cr_expect(sz_eq(tls->tls.server_name, SZ_S("other.example.com")));
    conf_done(&t);
}

Test(conf, routes_and_vocabulary)
{
    struct conf_try t;
    load(&t);
    const struct sz_conf_route *one = &t.conf->routes[0], *two = &t.conf->routes[1];
    const struct sz_vocabulary *v = &t.conf->vocabulary;
    cr_expect(sz_eq(one->match.host, SZ_S("*.example.com")));
    cr_assert_eq(one->issuers_n, 2);
    cr_expect_eq(one->issuers[0], 1, "in the route's order");
    cr_assert_eq(v->scopes.n, 3);
    cr_expect(sz_eq(v->scopes.v[0], SZ_S("s1")) && sz_eq(v->scopes.v[2], SZ_S("s3")));
    cr_expect_eq(one->scopes[0], 3);
    cr_expect_eq(one->any_scope[0], 6);
    cr_expect(one->has_any_scope && one->scope_names.n == 4);
    cr_assert_eq(v->claims.n, 2);
    cr_expect(sz_eq(v->claims.v[0], SZ_S("role")) && sz_eq(v->claims.v[1], SZ_S("dept")));
    cr_assert_eq(one->claims_n, 3);
    cr_expect_eq(one->claims[0].slot, SZ_SLOT_SUB);
    cr_expect_eq(one->claims[1].slot, 0);
    cr_expect(one->claims[1].values.n == 2 && sz_eq(one->claims[1].values.v[1], SZ_S("7")));
    cr_expect_eq(one->claims[2].slot, SZ_SLOT_CLIENT);
    cr_expect_eq(one->token_from, SZ_FROM_COOKIE);
    cr_expect(one->keep_authorization && one->websocket && one->assertion);
    cr_expect(sz_eq(one->assertion_audience, SZ_S("plain")));
    cr_expect_eq(one->max_lifetime.us, 3600000000);
    cr_expect_eq(one->timeout.us, 1000000);
    cr_expect_eq(two->timeout.us, 10000000);
    cr_expect_eq(one->request_body, 5000);
    cr_expect_eq(two->request_body, 2000000);
    cr_expect(one->upstream == &t.conf->upstreams[0] && two->upstream == &t.conf->upstreams[1]);
    cr_expect(two->is_public && two->issuers_n == 0 && two->authorize == SZ_AUTHORIZE_NONE);
    cr_expect(sz_eq(one->strip_headers.v[0], SZ_S("x-old")));
    conf_done(&t);
}

Test(conf, templates)
{
    static const enum sz_var vars[] = {SZ_VAR_LITERAL, SZ_VAR_CLAIM,  SZ_VAR_LITERAL, SZ_VAR_HEADER,
                                       SZ_VAR_LITERAL, SZ_VAR_METHOD, SZ_VAR_LITERAL, SZ_VAR_CLIENT_IP,
                                       SZ_VAR_LITERAL, SZ_VAR_NOW,    SZ_VAR_LITERAL, SZ_VAR_ISSUER};
    struct conf_try t;
    load(&t);
    const struct sz_conf_route *one = &t.conf->routes[0];
    cr_assert_eq(one->authorize, SZ_AUTHORIZE_ANY);
    cr_assert_eq(one->checks_n, 2);
    const struct sz_template *user = &one->checks[0].user, *object = &one->checks[0].object;
    cr_assert_eq(user->n, 4);
    cr_expect(sz_eq(user->parts[0].text, SZ_S("user:")) && user->parts[1].var == SZ_VAR_ISSUER);
    cr_expect(user->parts[3].var == SZ_VAR_CLAIM && user->parts[3].slot == SZ_SLOT_SUB);
    cr_expect(object->parts[1].var == SZ_VAR_PATH && object->parts[1].slot == 1);
    cr_expect(sz_eq(one->checks[1].object.parts[1].text, SZ_S("q")));
    const struct sz_template *value = &one->headers[0].value;
    cr_expect(sz_eq(one->headers[0].name, SZ_S("x-who")));
    cr_assert_eq(value->n, SZ_COUNT(vars));
    for (size_t i = 0; i < value->n; i++)
        cr_expect_eq(value->parts[i].var, vars[i], "part %zu", i);
    cr_expect(sz_eq(value->parts[0].text, SZ_S("{")) && sz_eq(value->parts[2].text, SZ_S("}-")));
    cr_expect(sz_eq(value->parts[3].text, SZ_S("x-foo")));
    conf_done(&t);
}

Test(conf, cors_and_router)
{
    struct conf_try t;
    struct sz_route_match m;
    load(&t);
    const struct sz_conf_cors *cors = &t.conf->routes[0].cors;
    cr_expect(cors->on && cors->credentials && !cors->any_origin && cors->max_age.us == 60000000);
    cr_expect(sz_eq(cors->origins.v[0], SZ_S("https://app.example.com")) && sz_eq(cors->headers.v[0], SZ_S("x-a")));
    cr_expect(cors->methods.n == 2 && sz_eq(cors->methods.v[1], SZ_S("PUT")), "the route's own");
    cr_expect(sz_router_match(t.conf->router, SZ_S("w.example.com"), SZ_S("/a/1/2"), SZ_S("GET"), &m));
    cr_expect_eq(m.route, &t.conf->routes[0]);
    cr_expect_not(sz_router_match(t.conf->router, SZ_S("w.example.com"), SZ_S("/a/1/2"), SZ_S("POST"), &m));
    cr_expect(sz_router_match(t.conf->router, SZ_S("example.org"), SZ_S("/a/1/2"), SZ_S("POST"), &m));
    cr_expect_eq(m.route, &t.conf->routes[1]);
    conf_done(&t);
}

/* ---- dump, version, restart ------------------------------------------------------------------------------------ */

static char *dump(const struct sz_conf *conf)
{
    struct sz_buf out = {0};
    sz_conf_dump(conf, &out);
    sz_buf_add(&out, "", 1);
    return out.p;
}

Test(conf, the_dump_reads_back_to_the_same_version)
{
    struct conf_try t, again;
    load(&t);
    char *text = dump(t.conf);
    cr_expect_null(strstr(text, "0123456789abcdef"), "a secret in the dump");
    conf_try(&again, text);
    cr_assert_not_null(again.conf, "%s\n%s", conf_messages(&again), text);
    cr_expect_eq(again.conf->version, t.conf->version);
    char *twice = dump(again.conf);
    cr_expect_str_eq(text, twice);
    cr_expect_eq(again.conf->vocabulary.hash, t.conf->vocabulary.hash);
    cr_expect_eq(again.conf->issuers[0].settings, t.conf->issuers[0].settings);
    free(text);
    free(twice);
    conf_done(&again);
    conf_done(&t);
}

/* Text that looks like something else survives: variables, quotes, numbers, line ends. */
Test(conf, odd_text_survives_the_dump)
{
    static const char *const odd[] = {"$${{HOME}}", "true", "0x10", "~x", "a: b # c", "\\\"q\\\"",
                                      "\\u00e9",    "- x",  "{{",   "%",  "\\\\"};
    for (size_t i = 0; i < SZ_COUNT(odd); i++) {
        struct conf_try t, again;
        char extra[128];
        snprintf(extra, sizeof(extra),
                 "  - {id: r, match: {path: /}, public: true, upstream: up, set_headers: {X: \"%s\"}}\n", odd[i]);
        char *yaml = conf_base("", extra);
        conf_try(&t, yaml);
        cr_assert_not_null(t.conf, "%s: %s", odd[i], conf_messages(&t));
        char *text = dump(t.conf);
        conf_try(&again, text);
        cr_assert_not_null(again.conf, "%s: %s", odd[i], conf_messages(&again));
        cr_expect_eq(again.conf->version, t.conf->version, "%s", odd[i]);
        cr_expect(sz_eq(again.conf->routes[0].headers[0].value.source, t.conf->routes[0].headers[0].value.source), "%s",
                  odd[i]);
        free(text);
        free(yaml);
        conf_done(&again);
        conf_done(&t);
    }
}

/* A header's value from the environment may be a key: it counts for the version and is not shown. */
Test(conf, the_dump_keeps_values_from_the_environment_back)
{
    uint64_t version = 0;
    for (unsigned i = 0; i < 2; i++) {
        struct conf_try t;
        setenv("SZ_KEY", i == 0 ? "open sesame" : "closed sesame", 1);
        char *yaml = conf_base(
            "", "  - {id: r, match: {path: /}, public: true, upstream: up, set_headers: {X-Key: \"k ${SZ_KEY}\"}}\n");
        conf_try(&t, yaml);
        cr_assert_not_null(t.conf, "%s", conf_messages(&t));
        char *text = dump(t.conf);
        cr_expect_null(strstr(text, "sesame"));
        cr_expect_not_null(strstr(text, "\"X-Key\": \"***\""), "%s", text);
        cr_expect_neq(t.conf->version, version);
        version = t.conf->version;
        free(text);
        free(yaml);
        conf_done(&t);
    }
}

Test(conf, a_user_from_the_request_is_warned_about)
{
    struct conf_try t;
    char *yaml = conf_base("fga:\n  model: |\n    model\n      schema 1.1\n",
                           "  - id: r\n    match: {path: \"/{who}\"}\n    auth: {issuers: [main]}\n    upstream: up\n"
                           "    authorize: {user: \"user:{path.who}\", relation: v, object: \"d:x\"}\n");
    conf_try(&t, yaml);
    cr_assert_not_null(t.conf, "%s", conf_messages(&t));
    cr_assert_eq(t.m.n, 1);
    cr_expect(t.m.v[0].warning && conf_has(&t, 15, 23, "any caller can name any user"), "%s", conf_messages(&t));
    conf_done(&t);
    free(yaml);
}

static void load_with(struct conf_try *t, const char *extra)
{
    char *yaml = conf_base(extra, "  - {id: r, match: {path: /}, auth: {issuers: [main]}, upstream: up}\n");
    conf_try(t, yaml);
    cr_assert_not_null(t->conf, "%s", conf_messages(t));
    free(yaml);
}

Test(conf, versions_differ_when_anything_does)
{
    static const char *const extras[] = {"", "workers: 2\n", "log: {level: debug}\n", "cache: {l1: {ttl: 31s}}\n"};
    uint64_t versions[SZ_COUNT(extras)];
    for (size_t i = 0; i < SZ_COUNT(extras); i++) {
        struct conf_try t;
        load_with(&t, extras[i]);
        versions[i] = t.conf->version;
        for (size_t k = 0; k < i; k++)
            cr_expect_neq(versions[i], versions[k]);
        conf_done(&t);
    }
}

/* Comments, order of keys and defaults written out change nothing. */
Test(conf, versions_are_of_the_meaning)
{
    struct conf_try a, b;
    load_with(&a, "");
    load_with(&b, "# a word\nlog: {level: info, access: all}\nlimits: {request_timeout: 10000ms}\n");
    cr_expect_eq(a.conf->version, b.conf->version);
    conf_done(&a);
    conf_done(&b);
}

Test(conf, restart_needed)
{
    static const struct {
        const char *extra, *says;
    } cases[] = {
        {"log: {access: off}\n", ""},
        {"log: {level: debug}\n", "'log.level' changed\n"},
        {"limits: {drain: 1s}\n", ""},
        {"limits: {max_connections: 9}\n", "'limits.max_connections' changed\n"},
        {"workers: 7\n", "'workers' changed\n"},
        {"user: nobody\n", "'user' changed\n"},
        {"admin: {address: 127.0.0.1:9901}\n", "'admin' changed\n"},
        {"cache: {l1: {capacity: 9, ttl: 1s}}\n", "'cache.l1.capacity' changed\n"},
        /* An object that was not there before: what it says that only a start can do, and nothing else. */
        {"fga: {model: \"model\\n  schema 1.1\\n\"}\n", ""},
        {"fga: {listen: \"127.0.0.1:9\"}\n", "'fga.listen' changed\n"},
        {"fga: {listen: \"127.0.0.1:9\", tls: {certificate: cert.pem, key: key.pem}}\n",
         "'fga.listen' changed\n'fga.tls' changed\n"},
        {"threat: {mode: enforce}\n", ""},
    };
    for (size_t i = 0; i < SZ_COUNT(cases); i++) {
        struct conf_try a, b;
        struct sz_buf out = {0};
        conf_write("cert.pem", "x", 0644);
        conf_write("key.pem", "x", 0600);
        load_with(&a, "");
        load_with(&b, cases[i].extra);
        sz_conf_restart_needed(a.conf, b.conf, &out);
        cr_expect(sz_eq(sz_buf_slice(&out), sz_cstr(cases[i].says)), "%s: %.*s", cases[i].extra,
                  SZ_FMT(sz_buf_slice(&out)));
        sz_buf_fini(&out);
        conf_done(&a);
        conf_done(&b);
    }
}

/* ---- settings, positions, secrets ------------------------------------------------------------------------------- */

Test(conf, issuer_settings_leave_keys_out)
{
    static const struct {
        const char *keys;
        bool same;
    } cases[] = {{"jwks_file: keys.json", true},
                 {"jwks_file: cert.pem", true},
                 {"jwks_file: keys.json, leeway: 11s", false},
                 {"jwks_file: keys.json, required_claims: [jti]", false},
                 {"jwks_file: keys.json, types: [JWT]", false}};
    uint64_t first = 0;
    conf_write("keys.json", "{}", 0644);
    conf_write("cert.pem", "x", 0644);
    for (size_t i = 0; i < SZ_COUNT(cases); i++) {
        char text[512];
        struct conf_try t;
        snprintf(
            text, sizeof(text),
            "listen: [{address: 127.0.0.1:80}]\nissuers: {a: {issuer: x, audiences: [y], %s}}\nupstreams: {u: {urls: "
            "[\"http://h\"]}}\nroutes: [{id: r, match: {path: /}, auth: {issuers: [a]}, upstream: u}]\n",
            cases[i].keys);
        conf_try(&t, text);
        cr_assert_not_null(t.conf, "%s", conf_messages(&t));
        first = i == 0 ? t.conf->issuers[0].settings : first;
        cr_expect_eq(t.conf->issuers[0].settings == first, cases[i].same, "%s", cases[i].keys);
        conf_done(&t);
    }
}

Test(conf, where)
{
    static const struct {
        const char *path;
        unsigned line, column;
    } cases[] = {{"issuers.rsa.jwks_file", 13, 88},
                 {"listen.1.dialect", 3, 52},
                 {"listen.2.tls.key", 5, 40},
                 {"issuers.none.jwks_file", 13, 3},
                 {"limits.request_body.deeper", 11, 42},
                 {"nothing", 0, 0},
                 {"listen.9", 2, 3}};
    struct conf_try t;
    load(&t);
    for (size_t i = 0; i < SZ_COUNT(cases); i++) {
        unsigned line, column;
        sz_conf_where(t.conf, cases[i].path, &line, &column);
        cr_expect_eq(line, cases[i].line, "%s: %u:%u", cases[i].path, line, column);
        cr_expect_eq(column, cases[i].column, "%s: %u:%u", cases[i].path, line, column);
    }
    conf_done(&t);
}

/* What is found after loading names the line; what has no place says so by silence. */
Test(conf, later_mistakes)
{
    struct conf_try t;
    struct sz_buf text = {0};
    load(&t);
    sz_conf_mistake(t.conf, "listen.1.dialect", &t.m, "%s", "wrong");
    sz_mistakes_add(&t.m, SZ_NONE, 0, 0, true, "odd");
    for (size_t i = t.m.n - 2; i < t.m.n; i++) {
        sz_mistake_format(&t.m.v[i], &text);
        sz_buf_adds(&text, SZ_S("\n"));
    }
    struct sz_slice all = sz_buf_slice(&text), line;
    cr_assert(sz_split(&all, '\n', &line));
    cr_expect(sz_starts_with(line, t.conf->source), "%.*s", SZ_FMT(line));
    cr_expect(sz_eq(sz_from(line, t.conf->source.n), SZ_S(":3:52: wrong")), "%.*s", SZ_FMT(line));
    cr_expect(sz_eq(all, SZ_S("warning: odd\n")), "%.*s", SZ_FMT(all));
    sz_buf_fini(&text);
    conf_done(&t);
}

Test(conf, secrets)
{
    static const struct {
        const char *content, *says;
        unsigned mode;
    } cases[] = {{"", "is empty", 0600},
                 {"\n", "empty secret", 0600},
                 {"\r\n", "empty secret", 0600},
                 {"s\n", "can be read by everybody", 0644}};
    for (size_t i = 0; i < SZ_COUNT(cases); i++) {
        struct conf_try t;
        conf_write("token", cases[i].content, cases[i].mode);
        conf_try(&t, "admin: {address: 127.0.0.1:1, token_file: token}\n");
        cr_expect(conf_has(&t, 1, 43, cases[i].says), "%s", conf_messages(&t));
        conf_done(&t);
    }
    char *big = malloc(65538);
    memset(big, 'x', 65537);
    big[65537] = '\0';
    struct conf_try t;
    conf_write("token", big, 0600);
    conf_try(&t, "admin: {address: 127.0.0.1:1, token_file: token}\n");
    cr_expect(conf_has(&t, 1, 43, "larger than 65536 bytes"));
    conf_done(&t);
    free(big);
}

Test(conf, a_file_that_is_not_there)
{
    struct sz_mistakes m;
    sz_mistakes_init(&m);
    cr_expect_null(sz_conf_load_file("/no/such/file.yaml", &m));
    cr_assert_eq(m.errors, 1);
    cr_expect(sz_starts_with(m.v[0].message, SZ_S("cannot read '/no/such/file.yaml': No such file")));
    sz_mistakes_fini(&m);
}

/*
 * Bad configurations: each with the line, the column and a part of the message that it must give.  Line 1 is the
 * first of the text; where a case is a route, it is put behind conf_base() and lines are counted from there.
 */
#include "conf_test.h"

struct bad {
    const char *text;
    unsigned line, column;
    const char *message;
};

#define FGA_REMOTE                                                                                           \
    "fga:\n  mode: remote\n  store_id: 01ARZ3NDEKTSV4RRFFQ69G5FAV\n  model_id: 01ARZ3NDEKTSV4RRFFQ69G5FAV\n" \
    "  "

static void check(const char *yaml, const struct bad *bad, unsigned shift)
{
    struct conf_try t;
    conf_try(&t, yaml);
    cr_expect_null(t.conf, "accepted: %s", bad->text);
    cr_expect(conf_has(&t, bad->line == 0 ? 0 : bad->line + shift, bad->column, bad->message),
              "%s\nwanted %u:%u: %s\ngot%s", bad->text, bad->line + shift, bad->column, bad->message,
              conf_messages(&t));
    conf_done(&t);
}

/* ---- the text itself --------------------------------------------------------------------------------- */

Test(mistakes, yaml)
{
    static const struct bad cases[] = {
        {"", 0, 0, "the file is empty"},
        {"# nothing\n", 0, 0, "the file is empty"},
        {"just words\n", 1, 1, "is a mapping"},
        {"[a]\n", 1, 1, "is a mapping"},
        {"listen: [\n", 2, 1, "not YAML"},
        {"a: b: c\n", 1, 5, "not YAML"},
        {"listen:\n\t- x\n", 2, 1, "tab"},
        {"a: {b: /c/{d}}\n", 1, 11, "put the value in quotes"},
        {"a: &x 1\nb: *x\n", 1, 4, "anchors (&x)"},
        {"a: *x\n", 1, 4, "aliases (*x)"},
        {"a: !!str 1\n", 1, 4, "tags"},
        {"a: 1\n---\nb: 2\n", 2, 1, "a second document"},
        {"? [a]\n: 1\n", 1, 3, "a key must be a word"},
        {"a: \"x\\0y\"\n", 1, 4, "NUL"},
        {"a: x\x01y\n", 1, 5, "UTF-8"},
        {"a: x\xffy\n", 1, 5, "UTF-8"},
        {"<<: {a: b}\n", 1, 1, "unknown key '<<'"},
        {"a: [[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]]\n", 1, 0, "nested deeper than 16"},
        {"workers: 1\nworkers: 2\n", 2, 1, "'workers' is written twice, first in line 1"},
        {"log: {level: info, access: all, level: warn}\n", 1, 33, "'level' is written twice"},
    };
    for (size_t i = 0; i < SZ_COUNT(cases); i++)
        check(cases[i].text, &cases[i], 0);
}

/* A kilobyte that would unfold to a billion nodes. */
Test(mistakes, billion_laughs)
{
    struct sz_buf text = {0};
    struct conf_try t;
    sz_buf_adds(&text, SZ_S("a0: &a0 [x, x, x, x, x, x, x, x, x]\n"));
    for (unsigned i = 1; i < 10; i++)
        sz_buf_printf(&text, "a%u: &a%u [*a%u, *a%u, *a%u, *a%u, *a%u, *a%u]\n", i, i, i - 1, i - 1, i - 1, i - 1,
                      i - 1, i - 1);
    sz_buf_add(&text, "", 1);
    conf_try(&t, text.p);
    cr_assert(conf_has(&t, 1, 5, "anchors"));
    conf_done(&t);
    sz_buf_fini(&text);
}

Test(mistakes, keys)
{
    static const struct bad cases[] = {
        {"lisen: []\n", 1, 1, "unknown key 'lisen' in the configuration; did you mean 'listen'?"},
        {"limits: {max_conections: 5}\n", 1, 10, "did you mean 'max_connections'?"},
        {"log: {colour: red}\n", 1, 7, "unknown key 'colour' in log; remove it"},
        {"workers: 2\n", 1, 1, "needs 'listen'"},
        {"workers: 2\n", 1, 1, "needs 'routes'"},
        {"listen: [{mode: proxy}]\n", 1, 10, "a listener needs 'address'"},
        {"issuers: {x: }\n", 1, 14, "an issuer is a mapping"},
        {"issuers: {\"a b\": {issuer: x}}\n", 1, 11, "letters, digits"},
        {"rate_limits: {}\n", 1, 14, "is empty"},
        {"tracing: {paths: true}\n", 1, 11, "nothing is traced"},
        {"anonymous: {}\n", 1, 12, "is empty"},
        {"audit: {path: /j, allowed: some}\n", 1, 19, "write all, none or 1/N"},
        {"audit: {path: /j, allowed: 1/0}\n", 1, 19, "write all, none or 1/N"},
        {"audit: {path: /j, allowed: none, required: true}\n", 1, 34, "write 'allowed: all'"},
        {"audit: {path: /j, pseudonyms: true}\n", 1, 19, "go together"},
        {"audit: {required: true}\n", 1, 9, "there is no journal"},
        {"audit: {path: /j, retain: {size: 1MB}}\n", 1, 19, "less than one segment"},
        {"tracing: {endpoint: \"http://192.0.2.1:4318\"}\n", 1, 21, "is not https"},
        {"tracing: {endpoint: \"collector:4318\"}\n", 1, 21, "write a url"},
        {"tracing: {endpoint: \"https://c\", sample: some}\n", 1, 34, "a share between 0 and 1"},
        {"tracing: {endpoint: \"https://c\", sample: \"1.5\"}\n", 1, 34, "a share between 0 and 1"},
        {"tracing: {endpoint: \"https://c\", resource: {service.name: x}}\n", 1, 34, "say 'service_name'"},
        {"fga: {mode: remote}\n", 1, 6, "this mode needs 'model_id'"},
        {"fga: {mode: remote}\n", 1, 6, "this mode needs 'api_url'"},
        {"fga: {mode: embedded, model: /m, tls: {certificate: /c, key: /k}}\n", 1, 34, "'tls' belongs to 'listen'"},
        {"fga: {listen: \"127.0.0.1:9\", tls: {certificate: /c}}\n", 1, 35, "needs both 'certificate' and 'key'"},
        {"fga: {mode: remote, tls: {certificate: /c, key: /k}}\n", 1, 21, "'tls' is for 'mode: embedded'"},
        {"fga: {mode: embedded, api_url: x}\n", 1, 23, "'api_url' is for 'mode: remote'"},
        {"fga: {mode: embedded}\n", 1, 6, "'fga' needs 'model'"},
        {FGA_REMOTE "tuples: |\n    x\n", 5, 3, "'tuples' is for 'mode: embedded'"},
        {FGA_REMOTE "api_url: http://fga.example\n", 5, 12, "'api_url' is not https"},
        {FGA_REMOTE "api_url: ftp://x\n", 5, 12, "write a url"},
        {"fga: {mode: remote, store_id: 01arz}\n", 1, 31, "an id is 26 digits and capital letters"},
        {FGA_REMOTE "client_id: a\n", 5, 3, "'client_id' needs 'client_secret_file' and 'token_issuer'"},
        {FGA_REMOTE "audience: a\n", 5, 3, "'audience' without 'client_id'"},
        {FGA_REMOTE "client_id: a\n  token_file: /dev/null\n", 6, 3, "'token_file' beside 'client_id'"},
        {FGA_REMOTE "changes: {poll: 20s}\n", 5, 3, "'max_lag' is shorter than 'poll'"},
        {"cache: {l2: {jwt: true}}\n", 1, 13, "needs 'redis'"},
    };
    for (size_t i = 0; i < SZ_COUNT(cases); i++)
        check(cases[i].text, &cases[i], 0);
}

Test(mistakes, api_keys)
{
    static const struct {
        const char *keys, *message; /* NULL: none */
    } cases[] = {
        {"a-key-of-many-characters\n", NULL},
        {"# ours\n\na-key-of-many-characters billing\r\nanother-key-of-many shop", NULL},
        {"\n# none\n", "has no key"},
        {"short\n", "line 1: a key of less than 16 bytes"},
        {"a-key-of-many-characters\na-key-of-many-characters x\n", "line 2: its key or its name is there already"},
        {"a-key-of-many-characters x\nanother-key-of-many x\n", "line 2: its key or its name is there already"},
        {"a-key-of-many-characters two names\n", "line 1: a line is a key"},
        {"a-key-\xc3\xa4of-many-characters\n", "line 1: a line is a key"},
    };
    for (size_t i = 0; i < SZ_COUNT(cases); i++) {
        struct conf_try t;
        struct sz_buf text = {0};
        sz_buf_printf(&text,
                      "fga: {model: \"model\\n  schema 1.1\\ntype user\\n\"}\n"
                      "listen: [{address: 127.0.0.1:80, mode: api, keys_file: %s}]\n%c",
                      conf_write("keys", cases[i].keys, 0600), '\0');
        conf_try(&t, text.p);
        cr_expect_eq(conf_has(&t, 2, 56, cases[i].message != NULL ? cases[i].message : "'keys_file'"),
                     cases[i].message != NULL, "case %zu: %s", i, conf_messages(&t));
        cr_expect_eq(strstr(conf_messages(&t), "many"), NULL, "a key is in the message: %s", conf_messages(&t));
        cr_expect(t.conf != NULL || cases[i].message != NULL, "an api listener needs no route: %s", conf_messages(&t));
        conf_done(&t);
        sz_buf_fini(&text);
    }
}

/* ---- process, listeners --------------------------------------------------------------------------------- */

Test(mistakes, process_and_listeners)
{
    static const struct bad cases[] = {
        {"workers: 0\n", 1, 10, "write auto or a number from 1 to 256"},
        {"workers: many\n", 1, 10, "'many'"},
        {"workers: 257\n", 1, 10, "'257'"},
        {"user: no-such-user-here\n", 1, 7, "no user 'no-such-user-here'"},
        {"user: root\n", 1, 7, "stop being root"},
        {"trusted_proxies: [0.0.0.0/0]\n", 1, 19, "wider than /7"},
        {"trusted_proxies: [10.0.0.0/8, 0.0.0.0/6]\n", 1, 31, "wider than /7"},
        {"trusted_proxies: [\"::/0\"]\n", 1, 19, "wider than /7"},
        {"trusted_proxies: [\"fc00::/6\"]\n", 1, 19, "wider than /7"},
        {"trusted_proxies: [\"::ffff:0.0.0.0/96\"]\n", 1, 19, "wider than /7"},
        {"trusted_proxies: [nonsense]\n", 1, 19, "'nonsense'"},
        {"trusted_proxies: []\n", 1, 18, "is empty"},
        {"limits: {request_body: 128MB}\n", 1, 10, "larger than 'buffered_bodies'"},
        {"listen: [{address: 8080}]\n", 1, 20, "no address with a port"},
        {"listen: [{address: localhost:8080}]\n", 1, 20, "no address with a port"},
        {"listen: [{address: 127.0.0.1:65536}]\n", 1, 20, "no address with a port"},
        {"listen: [{address: \"::1:8080\"}]\n", 1, 20, "no address with a port"},
        {"listen: [{address: 127.0.0.1:80}, {address: 0.0.0.0:80}]\n", 1, 45, "the same place"},
        {"listen: [{address: 127.0.0.1:80, mode: decide}]\n", 1, 10, "needs 'dialect'"},
        {"listen: [{address: 127.0.0.1:80, mode: decide, dialect: nginx}]\n", 1, 10, "'trusted_proxies' alone"},
        {"listen: [{address: 127.0.0.1:80, dialect: nginx}]\n", 1, 34, "belongs to mode 'decide'"},
        {"listen: [{address: 127.0.0.1:80, mode: decide, dialect: ngnix}]\n", 1, 57, "did you mean 'nginx'?"},
        {"listen: [{address: 127.0.0.1:80, mode: api}]\n", 1, 34, "needs 'fga'"},
        {"fga: {model: /none}\nlisten: [{address: 127.0.0.2:80, mode: api}]\nworkers: 0\n", 3, 10, "write auto"},
        {"listen: [{address: 0.0.0.0:80, mode: api}]\n", 1, 20, "not loopback needs 'keys_file'"},
        {"listen: [{address: 127.0.0.1:80, keys_file: /none}]\n", 1, 34, "belongs to mode 'api'"},
        {"listen: [{address: 127.0.0.1:80, mode: api, keys_file: /none}]\n", 1, 56, "No such file"},
        {"listen: [{address: 127.0.0.1:80, mode: api, dialect: nginx}]\n", 1, 45, "belongs to mode 'decide'"},
        {"listen: [{address: 127.0.0.1:80}]\n", 1, 1, "needs 'routes'"},
        {"listen: [{address: 127.0.0.1:80, proxy_protocol: true}]\n", 1, 34, "'trusted_proxies' alone"},
        {"listen: [{address: 127.0.0.1:80, protocol: h2c, tls: {watch: true}}]\n", 1, 34, "without TLS"},
        {"listen: [{address: 127.0.0.1:80, tls: {}}]\n", 1, 39, "'tls' is empty"},
        {"listen: [{address: 127.0.0.1:80, tls: {watch: true}}]\n", 1, 39, "needs 'certificate' and 'key'"},
        {"listen: [{address: 127.0.0.1:80, tls: {certificate: /none}}]\n", 1, 39, "both 'certificate' and 'key'"},
        {"listen: [{address: 127.0.0.1:80, tls: {certificate: /none}}]\n", 1, 53, "No such file"},
        {"listen: [{address: 127.0.0.1:80, tls: {certificate: /dev/zero}}]\n", 1, 53, "no regular file"},
        {"listen: [{address: 127.0.0.1:80, tls: {client_auth: optional}}]\n", 1, 40, "without 'client_ca'"},
        {"listen: [{address: 127.0.0.1:80, tls: {crl: /none}}]\n", 1, 40, "without 'client_ca'"},
        {"listen: [{address: 127.0.0.1:80, request_body: 2MB}]\n", 1, 48, "larger than 'limits.request_body'"},
        {"admin: {address: 0.0.0.0:9901}\n", 1, 18, "not loopback needs 'token_file'"},
        {"listen: [{address: 127.0.0.1:80}]\nadmin: {address: 127.0.0.1:80}\n", 2, 18, "also a listener"},
        {"admin: {address: 127.0.0.1:9901, token_file: /dev/zero}\n", 1, 46, "no regular file"},
    };
    for (size_t i = 0; i < SZ_COUNT(cases); i++)
        check(cases[i].text, &cases[i], 0);
}

/* ---- issuers, upstreams ------------------------------------------------------------------------------------ */

Test(mistakes, issuers_and_upstreams)
{
    static const struct bad cases[] = {
        {"issuers: {a: {audiences: [x]}}\n", 1, 11, "an issuer needs 'issuer'"},
        {"issuers: {a: {issuer: x}}\n", 1, 11, "an issuer needs 'audiences'"},
        {"issuers: {a: {issuer: x, audiences: [x]}}\n", 1, 15, "has no keys"},
        {"issuers: {a: {issuer: \"https://x\", audiences: [x], backchannel_logout: {path: logout}}}\n", 1, 0,
         "'path' is 'logout'"},
        {"issuers: {a: {issuer: \"https://x\", audiences: [x], backchannel_logout: {path: /a?b}}}\n", 1, 0,
         "'path' is '/a?b'"},
        {"issuers: {a: {issuer: \"https://x\", audiences: [\"*\"], backchannel_logout: {path: /out}}}\n", 1, 0,
         "add 'client_ids'"},
        {"revocation: {capacity: 0}\n", 1, 24, "'capacity' is"},
        {"revocation: {on_store_failure: ignore}\n", 1, 32, "open"},
        {"issuers: {a: {issuer: \"\", audiences: [x]}}\n", 1, 23, "'issuer' is empty"},
        {"issuers: {a: {issuer: x, audiences: []}}\n", 1, 37, "'audiences' is empty"},
        {"issuers: {a: {issuer: x, audiences: }}\n", 1, 37, "'audiences' is empty"},
        {"issuers: {a: {issuer: x, audiences: [\"\"]}}\n", 1, 38, "'audiences' is empty"},
        {"issuers: {a: {issuer: x, audiences: api}}\n", 1, 37, "takes a list"},
        {"issuers: {a: {issuer: x, audiences: [a, \"*\"]}}\n", 1, 26, "stands alone"},
        {"issuers: {a: {issuer: x, audiences: [a, a]}}\n", 1, 41, "twice"},
        {"issuers: {a: {issuer: x, algorithms: [none]}}\n", 1, 39, "no accepted algorithm"},
        {"issuers: {a: {issuer: x, algorithms: [rs256]}}\n", 1, 39, "no accepted algorithm"},
        {"issuers: {a: {issuer: x, algorithms: []}}\n", 1, 38, "is empty"},
        {"issuers: {a: {issuer: x, algorithms: [HS256], jwks_file: /none}}\n", 1, 26, "need 'secret_file'"},
        {"issuers: {a: {issuer: x, algorithms: [ES256], secret_file: /none}}\n", 1, 26, "need 'jwks_file'"},
        {"issuers: {a: {issuer: x, jwks_file: /none, secret_file: /none}}\n", 1, 44, "without an HS algorithm"},
        {"issuers: {a: {issuer: x, algorithms: [HS256], jwks_file: /none, secret_file: /none}}\n", 1, 47,
         "no algorithm uses"},
        {"issuers: {a: {issuer: x}, b: {issuer: x}}\n", 1, 39, "same 'issuer'"},
        {"issuers: {a: {max_lifetime: 0s}}\n", 1, 29, "the least is 1s"},
        {"upstreams: {u: {urls: [\"ftp://x\"]}}\n", 1, 24, "no upstream url"},
        {"upstreams: {u: {urls: [\"http://\"]}}\n", 1, 24, "no upstream url"},
        {"upstreams: {u: {urls: [\"http://h:0\"]}}\n", 1, 24, "no upstream url"},
        {"upstreams: {u: {urls: [\"http://[::1\"]}}\n", 1, 24, "no upstream url"},
        {"upstreams: {u: {urls: [\"http://a:b@h\"]}}\n", 1, 24, "no user or password"},
        {"upstreams: {u: {urls: [\"http://h/base\"]}}\n", 1, 24, "end it before '/base'"},
        {"upstreams: {u: {urls: [\"http://h\", \"https://h\"]}}\n", 1, 23, "make two"},
        {"upstreams: {u: {urls: [\"http://h\"], tls: {server_name: x}}}\n", 1, 37, "http urls"},
        {"upstreams: {u: {urls: [\"https://h\"], tls: {certificate: /none}}}\n", 1, 43, "both 'certificate' and 'key'"},
        {"upstreams: {u: {timeouts: {connect: 0ms}}}\n", 1, 37, "the least is 1ms"},
    };
    for (size_t i = 0; i < SZ_COUNT(cases); i++)
        check(cases[i].text, &cases[i], 0);
}

Test(mistakes, providers)
{
#define A "issuers: {a: {issuer: https://a/, audiences: [x], "
    static const struct bad cases[] = {
        {"issuers: {a: {issuer: http://idp.test/, audiences: [x]}}\n", 1, 23, "'issuer' is not https"},
        {"issuers: {a: {issuer: https://u@a/, audiences: [x]}}\n", 1, 23, "without user and fragment"},
        {A "jwks_uri: \"ftp://a/\"}}\n", 1, 61, "write a url"},
        {A "jwks_uri: \"http://a/\"}}\n", 1, 61, "insecure_http"},
        {A "jwks_uri: \"https://a/#x\"}}\n", 1, 61, "write a url"},
        {A "jwks_uri: \"https:///x\"}}\n", 1, 61, "write a url"},
        {A "jwks_uri: \"http://127.evil.test/\"}}\n", 1, 61, "insecure_http"},
        {A "jwks_uri: \"http://localhost.evil.test/\"}}\n", 1, 61, "insecure_http"},
        {A "jwks_uri: \"https://a/k\", jwks_file: /none}}\n", 1, 51, "one source of keys"},
        {A "discovery: auto, jwks_file: /none}}\n", 1, 51, "one source of keys"},
        {A "discovery: oidc}}\n", 1, 62, "write a url"},
        {A "discovery: auto, algorithms: [HS256], secret_file: /none}}\n", 1, 89, "one way or the other"},
        {A "userinfo: {endpoint: https://a/u}}}\n", 1, 51, "accept_any_audience: true"},
        {A "userinfo: {endpoint: http://a/u, accept_any_audience: true}}}\n", 1, 72, "insecure_http"},
        {A "token_prefix: x}}\n", 1, 51, "without 'introspection'"},
        {A "introspection: {endpoint: https://a/i}}}\n", 1, 66, "needs 'client_id'"},
        {A "introspection: {client_id: c}}}\n", 1, 66, "needs 'endpoint'"},
        {A "introspection: {endpoint: http://a/i, client_id: c}}}\n", 1, 77, "insecure_http"},
        {A "introspection: {endpoint: https://a/i, client_id: c}}}\n", 1, 66, "'client_secret_file'"},
        {A "introspection: {endpoint: https://a/i, client_id: c, auth: private_key_jwt}}}\n", 1, 104, "'key_file'"},
        {A "introspection: {endpoint: https://a/i, client_id: c, key_file: /none}}}\n", 1, 104, "belong together"},
        {A "breaker: {failures: 0}}}\n", 1, 71, "the least is 1"},
    };
#undef A
    for (size_t i = 0; i < SZ_COUNT(cases); i++)
        check(cases[i].text, &cases[i], 0);
}

/* ---- routes --------------------------------------------------------------------------------------------------- */

#define FGA "fga:\n  model: |\n    model\n      schema 1.1\n"
#define ISSUERS                                                                                                \
    "  second: {issuer: https://second/, audiences: [api, other], algorithms: [HS256], secret_file: secret}\n" \
    "  any: {issuer: https://any/, audiences: [\"*\"], algorithms: [HS256], secret_file: secret}\n"            \
    "  user: {issuer: https://user/, audiences: [api], userinfo: {accept_any_audience: true}}\n"               \
    "  ask: {issuer: https://ask/, audiences: [api], introspection: {endpoint: https://ask/i, client_id: c, "  \
    "client_secret_file: secret}}\n"                                                                           \
    "  abc: {issuer: https://abc/, audiences: [api], token_prefix: abc, introspection: {endpoint: "            \
    "https://abc/i, client_id: c, client_secret_file: secret}}\n"                                              \
    "  ab: {issuer: https://ab/, audiences: [api], token_prefix: ab, introspection: {endpoint: "               \
    "https://ab/i, client_id: c, client_secret_file: secret}}\n"

/* Two more issuers and an engine before the route. */
static struct sz_buf with_route(const char *route)
{
    struct sz_buf text = {0};
    conf_write("secret", "a secret of enough bytes for HS256\n", 0600);
    char *base = conf_base(FGA, route);
    const char *upstreams = strstr(base, "upstreams:");
    sz_buf_add(&text, base, (size_t)(upstreams - base));
    sz_buf_adds(&text, SZ_S(ISSUERS));
    sz_buf_adds(&text, sz_cstr(upstreams));
    sz_buf_add(&text, "", 1);
    free(base);
    return text;
}

static void check_route(const struct bad *bad)
{
    struct sz_buf text = with_route(bad->text);
    check(text.p, bad, 16);
    sz_buf_fini(&text);
}

#define TAIL ", auth: {issuers: [main]}, upstream: up}\n"
#define HEAD "  - {id: r, match: {path: /r}, "
#define MAIN HEAD "upstream: up, auth: {issuers: [main], "

Test(mistakes, routes)
{
    static const struct bad cases[] = {
        {HEAD "upstream: up}\n", 1, 6, "has no 'auth'; add it, or say 'public: true'"},
        {HEAD "public: false, upstream: up}\n", 1, 6, "has no 'auth'"},
        {HEAD "public: true" TAIL, 1, 32, "beside 'auth'"},
        {HEAD "public: yes, upstream: up}\n", 1, 40, "write true or false"},
        {HEAD "public: \"true\", upstream: up}\n", 1, 40, "without quotes"},
        {HEAD "covers_guarded: true" TAIL, 1, 32, "for public routes"},
        {HEAD "shared_subjects: true" TAIL, 1, 32, "several issuers"},
        {HEAD "auth: {issuers: [main]}}\n", 1, 6, "needs 'upstream'"},
        {HEAD "auth: {issuers: [main]}, upstream: upp}\n", 1, 67, "did you mean 'up'?"},
        {"  - {id: none, match: {path: /r}" TAIL, 1, 10, "unmatched"},
        {"  - {id: \"a b\", match: {path: /r}" TAIL, 1, 10, "letters, digits"},
        {"  - {match: {path: /r}" TAIL, 1, 5, "a route needs 'id'"},
        {"  - {id: r" TAIL, 1, 5, "a route needs 'match'"},
        {"  - {id: r, match: {}" TAIL, 1, 20, "'match' is empty"},
        {"  - {id: r, match: {methods: [GET]}" TAIL, 1, 20, "match needs 'path'"},
        {"  - {id: r, match: {path: r}" TAIL, 1, 27, "begins with '/'"},
        {"  - {id: r, match: {path: /a//b}" TAIL, 1, 27, "'//'"},
        {"  - {id: r, match: {path: /a/../b}" TAIL, 1, 27, "'.' and '..'"},
        {"  - {id: r, match: {path: /a*}" TAIL, 1, 27, "'*' stands alone"},
        {"  - {id: r, match: {path: /a/*/b}" TAIL, 1, 27, "'*' stands alone"},
        {"  - {id: r, match: {path: \"/a/{x}y\"}" TAIL, 1, 27, "whole segment"},
        {"  - {id: r, match: {path: \"/a/{}\"}" TAIL, 1, 27, "parameter's name"},
        {"  - {id: r, match: {path: \"/{x}/{x}\"}" TAIL, 1, 27, "appears twice"},
        {"  - {id: r, match: {path: /a%2fb}" TAIL, 1, 27, "upper-case hex"},
        {"  - {id: r, match: {path: /a%2Fb}" TAIL, 1, 27, "never match"},
        {"  - {id: r, match: {path: /a%41}" TAIL, 1, 27, "write 'A'"},
        {"  - {id: r, match: {path: /a%3Ab}" TAIL, 1, 27, "write ':'"},
        {"  - {id: r, match: {path: /a%40b}" TAIL, 1, 27, "write '@'"},
        {"  - {id: r, match: {path: /a;b}" TAIL, 1, 27, "path parameters"},
        {"  - {id: r, match: {path: /a%3Bb}" TAIL, 1, 27, "path parameters"},
        {"  - {id: r, match: {path: \"/a b\"}" TAIL, 1, 27, "%20"},
        {"  - {id: r, match: {path: \"/a?x\"}" TAIL, 1, 27, "%3F"},
        {"  - {id: r, match: {path: /r, host: \"a:80\"}" TAIL, 1, 37, "without a port"},
        {"  - {id: r, match: {path: /r, host: \"a.*.b\"}" TAIL, 1, 37, "no host"},
        {"  - {id: r, match: {path: /r, methods: [get]}" TAIL, 1, 41, "no method"},
        {"  - {id: r, match: {path: /r, methods: [GET, TRACE]}" TAIL, 1, 46, "never let through"},
        {"  - {id: r, match: {path: /r, methods: []}" TAIL, 1, 40, "is empty"},
        {HEAD "request_body: 2MB" TAIL, 1, 46, "larger than 'limits.request_body'"},
        {HEAD "rate_limit: standard" TAIL, 1, 44, "no rate limit 'standard'"},
        {HEAD "rate_limit: [a, a]" TAIL, 1, 48, "twice"},
        {HEAD "rate_limit: []" TAIL, 1, 44, "is empty"},
        {HEAD "authorization: pass" TAIL, 1, 47, "it takes strip, keep"},
        {HEAD "assertion: {}" TAIL, 1, 32, "at the top"},
    };
    for (size_t i = 0; i < SZ_COUNT(cases); i++)
        check_route(&cases[i]);
}

Test(mistakes, auth)
{
    static const struct bad cases[] = {
        {HEAD "upstream: up, auth: {}}\n", 1, 52, "'auth' is empty"},
        {HEAD "upstream: up, auth: {scopes: [a]}}\n", 1, 52, "auth needs 'issuers'"},
        {HEAD "upstream: up, auth: {issuers: []}}\n", 1, 62, "'issuers' is empty"},
        {HEAD "upstream: up, auth: {issuers: [mian]}}\n", 1, 63, "did you mean 'main'?"},
        {MAIN "scopes: []}}\n", 1, 78, "'scopes' is empty"},
        {MAIN "scopes: [\"a b\"]}}\n", 1, 79, "no scope"},
        {MAIN "scopes: [\"\"]}}\n", 1, 79, "'scopes' is empty"},
        {MAIN "any_scope: }}\n", 1, 81, "'any_scope' is empty"},
        {MAIN "claims: {}}}\n", 1, 78, "'claims' is empty"},
        {MAIN "claims: {a: []}}}\n", 1, 82, "'a' is empty"},
        {MAIN "claims: {a: \"\"}}}\n", 1, 82, "'a' is empty"},
        {MAIN "claims: {a: {b: c}}}}\n", 1, 82, "takes one value"},
        {MAIN "audiences: [nope]}}\n", 1, 82, "does not accept audience 'nope'"},
        {MAIN "cookie: \"a b\"}}\n", 1, 78, "cookie's name"},
        {MAIN "query: \"a=b\"}}\n", 1, 77, "parameter's name"},
        {HEAD "upstream: up, auth: {issuers: [second]}}\n", 1, 52, "has several audiences"},
        {HEAD "upstream: up, auth: {issuers: [any], audiences: [api]}}\n", 1, 69, "does not check audiences"},
        {HEAD "upstream: up, auth: {issuers: [user], scopes: [a]}}\n", 1, 63, "tells no scopes"},
        {HEAD "upstream: up, auth: {issuers: [main, user], any_scope: [a]}}\n", 1, 69, "tells no scopes"},
        {HEAD "upstream: up, auth: {issuers: [user], audiences: [api]}}\n", 1, 63, "tells no audience"},
        {HEAD "upstream: up, auth: {issuers: [user, ask]}}\n", 1, 69, "opaque token could belong"},
        {HEAD "upstream: up, auth: {issuers: [ab, main, abc]}}\n", 1, 73, "opaque token could belong"},
    };
    for (size_t i = 0; i < SZ_COUNT(cases); i++)
        check_route(&cases[i]);
}

#define CHECK(user, relation, object) \
    MAIN "scopes: [a]}, authorize: {user: " user ", relation: " relation ", object: " object "}}\n"
#define BOTH HEAD "upstream: up, auth: {issuers: [main, second], audiences: [api]}, "

Test(mistakes, authorize)
{
    static const struct bad cases[] = {
        {CHECK("\"{claims.sub}\"", "v", "\"d:{path.id}\""), 1, 0, "begins with a literal type"},
        {CHECK("\"user:{claims.sub}\"", "v", "\"{claims.t}:x\""), 1, 0, "begins with a literal type"},
        {CHECK("\"user:{claims.sub}\"", "v", "\"d:{path.id}\""), 1, 0, "has no {id}"},
        {CHECK("\"user:{claim.sub}\"", "v", "\"d:x\""), 1, 0, "{claim.sub} is no variable"},
        {CHECK("\"user:{claims.sub\"", "v", "\"d:x\""), 1, 0, "without its partner"},
        {CHECK("\"user:{claims.sub}\"", "\"{claims.r}\"", "\"d:x\""), 1, 0, "one literal word"},
        {CHECK("\"user:{claims.sub}\"", "\"a b\"", "\"d:x\""), 1, 0, "one literal word"},
        {CHECK("\"user:{claims.sub}\"", "v", "\"d:\""), 1, 0, "has no id"},
        {CHECK("\"user:{claims.sub}\"", "v", "\"d:*\""), 1, 0, "'*'"},
        {CHECK("\"user:{claims.sub}\"", "v", "\"d:x y\""), 1, 0, "a blank"},
        {CHECK("\"user:{claims.sub}\"", "v", "\"d:x:y\""), 1, 0, "second ':'"},
        {CHECK("\"user:{claims.sub}\"", "v", "\"d:x#y\""), 1, 0, "'#'"},
        {CHECK("\"user:{claims.sub}\"", "\"\"", "\"d:x\""), 1, 0, "'relation' is empty"},
        {MAIN "scopes: [a]}, authorize: {}}\n", 1, 0, "'authorize' is empty"},
        {MAIN "scopes: [a]}, authorize: {user: \"user:x\"}}\n", 1, 0, "needs 'user', 'relation' and 'object'"},
        {MAIN "scopes: [a]}, authorize: {all: []}}\n", 1, 0, "'all' is empty"},
        {MAIN "scopes: [a]}, authorize: {all: [{user: \"user:x\"}]}}\n", 1, 0, "a check needs 'relation'"},
        {MAIN "scopes: [a]}, authorize: {user: \"user:x\", any: [{user: \"user:x\"}]}}\n", 1, 0,
         "one check, or 'all', or 'any'"},
        {HEAD "public: true, upstream: up, authorize: {user: \"user:x\"}}\n", 1, 60, "nobody is known there"},
        {BOTH "authorize: {user: \"user:{claims.sub}\", relation: v, object: \"d:x\"}}\n", 1, 0,
         "put {issuer} into 'user'"},
        {CHECK("\"user:{claims.a}{claims.b}\"", "v", "\"d:x\""), 1, 0, "variables in 'user' run together"},
        {CHECK("\"user:{claims.a}|{claims.b}\"", "v", "\"d:x\""), 1, 0, "run together"},
        {CHECK("\"user:{claims.a}/{claims.b}\"", "v", "\"d:x\""), 1, 0, "run together"},
        {CHECK("\"user:{claims.a}\"", "v", "\"d:{claims.b}-{claims.c}\""), 1, 0, "run together"},
        {CHECK("\"user:{claims.a}\"", "v", "\"d:{method}A{claims.c}\""), 1, 0, "run together"},
        {CHECK("\"user:{claims.a}\"", "v", "\"d:{issuer}ain{claims.c}\""), 1, 0, "run together"},
    };
    for (size_t i = 0; i < SZ_COUNT(cases); i++)
        check_route(&cases[i]);
}

#define WITH(more) CHECK("\"user:{claims.sub}\"", "v", "\"d:x\", " more)
#define TUPLE(user, relation, object) \
    WITH("contextual_tuples: [{user: " user ", relation: " relation ", object: " object "}]")

Test(mistakes, authorize_context_and_tuples)
{
    static const struct bad cases[] = {
        {WITH("context: {}"), 1, 0, "'context' is empty"},
        {WITH("context: {\"a b\": x}"), 1, 0, "letters, digits and '_'"},
        {WITH("context: {1a: x}"), 1, 0, "letters, digits and '_'"},
        {WITH("context: {a: \"{path.id}\"}"), 1, 0, "has no {id}"},
        {WITH("context: {a: \"{clams.x}\"}"), 1, 0, "is no variable"},
        {WITH("context: {a: \"{claims.groups[]}\"}"), 1, 0, "only 'contextual_tuples' take the items"},
        {WITH("context: {a: \"{header.authorization}\"}"), 1, 0, "holds credentials"},
        {WITH("context: {a: [b]}"), 1, 0, "takes one value"},
        {CHECK("\"user:{claims.groups[]}\"", "v", "\"d:x\""), 1, 0, "only 'contextual_tuples' take the items"},
        {WITH("contextual_tuples: []"), 1, 0, "'contextual_tuples' is empty"},
        {WITH("contextual_tuples: [{user: \"user:x\"}]"), 1, 0, "a contextual tuple needs 'relation'"},
        {TUPLE("\"{claims.sub}\"", "v", "\"g:x\""), 1, 0, "begins with a literal type"},
        {TUPLE("\"user:{claims.sub}\"", "v", "\"{claims.groups[]}\""), 1, 0, "begins with a literal type"},
        {TUPLE("\"user:{claims.sub}\"", "v", "\"{claims.t}:x\""), 1, 0, "begins with a literal type"},
        {TUPLE("\"user:{claims.sub}\"", "\"{claims.r}\"", "\"g:x\""), 1, 0, "one literal word"},
        {TUPLE("\"group:{claims.g}#{claims.r}\"", "v", "\"g:x\""), 1, 0, "behind '#' stands a relation, literally"},
        {TUPLE("\"group:{claims.g}#a{claims.r}\"", "v", "\"g:x\""), 1, 0, "behind '#' stands a relation, literally"},
        {TUPLE("\"group:{claims.g}#\"", "v", "\"g:x\""), 1, 0, "behind '#' stands a relation, literally"},
        {TUPLE("\"group:{claims.g}#a#b\"", "v", "\"g:x\""), 1, 0, "behind '#' stands a relation, literally"},
        {CHECK("\"group:x#{claims.r}\"", "v", "\"d:x\""), 1, 0, "behind '#' stands a relation, literally"},
        {TUPLE("\"user:{claims.sub}\"", "v", "\"g:{claims.a[]}{claims.b}\""), 1, 0, "run together"},
        {TUPLE("\"user:{claims.a[]}\"", "v", "\"g:{claims.b[]}\""), 1, 0, "one list at a time"},
        {WITH("consistency: strong"), 1, 0, "it takes minimize_latency, higher_consistency"},
        {BOTH
         "authorize: {user: \"user:{issuer}@{claims.sub}\", relation: v, object: \"d:x\", contextual_tuples: [{user: "
         "\"user:{claims.sub}\", relation: m, object: \"g:{issuer}@{claims.g[]}\"}]}}\n",
         1, 0, "put {issuer} into 'user'"},
        {MAIN
         "scopes: [a]}, authorize: {all: [{user: \"user:{claims.sub}\", relation: v, object: \"d:x\"}], context: {a: "
         "b}}}\n",
         1, 0, "nothing but 'consistency' beside these"},
    };
    for (size_t i = 0; i < SZ_COUNT(cases); i++)
        check_route(&cases[i]);
}

/* What may be meant, and mostly is not. */
Test(mistakes, contextual_tuples_that_are_warned_about)
{
    static const struct bad cases[] = {
        {TUPLE("\"user:{claims.sub}\"", "v", "\"g:{query.g}\""), 0, 0, "the client writes what it is granted"},
        {TUPLE("\"user:{header.x-u}\"", "v", "\"g:{claims.g}\""), 0, 0, "the client writes what it is granted"},
        {BOTH
         "authorize: {user: \"user:{issuer}@{claims.sub}\", relation: v, object: \"d:x\", contextual_tuples: [{user: "
         "\"user:{issuer}@{claims.sub}\", relation: m, object: \"g:{claims.g[]}\"}]}}\n",
         0, 0, "put {issuer} into 'object'"},
    };
    for (size_t i = 0; i < SZ_COUNT(cases); i++) {
        struct conf_try t;
        struct sz_buf text = with_route(cases[i].text);
        conf_try(&t, text.p);
        cr_expect(t.conf != NULL && conf_has(&t, 0, 0, cases[i].message), "%s: %s", cases[i].text, conf_messages(&t));
        conf_done(&t);
        sz_buf_fini(&text);
    }
}

Test(mistakes, headers_and_cors)
{
    static const struct bad cases[] = {
        {MAIN "scopes: [a]}, set_headers: {X_User: a}}\n", 1, 0, "letters, digits and '-' alone"},
        {MAIN "scopes: [a]}, set_headers: {\"X User\": a}}\n", 1, 0, "letters, digits and '-' alone"},
        {MAIN "scopes: [a]}, set_headers: {Host: a}}\n", 1, 0, "belongs to the connection"},
        {MAIN "scopes: [a]}, set_headers: {content-length: \"1\"}}\n", 1, 0, "belongs to the connection"},
        {MAIN "scopes: [a]}, set_headers: {Transfer-Encoding: chunked}}\n", 1, 0, "belongs to the connection"},
        {MAIN "scopes: [a]}, set_headers: {Connection: x}}\n", 1, 0, "belongs to the connection"},
        {MAIN "scopes: [a]}, set_headers: {X-Subzero-Subject: x}}\n", 1, 0, "the gateway writes it"},
        {MAIN "scopes: [a]}, set_headers: {X-Forwarded-For: x}}\n", 1, 0, "the gateway writes it"},
        {MAIN "scopes: [a]}, set_headers: {X-A: a, x-a: b}}\n", 1, 0, "set twice"},
        {MAIN "scopes: [a]}, set_headers: {X-A: \"{path.id}\"}}\n", 1, 0, "has no {id}"},
        {MAIN "scopes: [a]}, set_headers: {X-A: [a]}}\n", 1, 0, "takes one value"},
        {MAIN "scopes: [a]}, set_headers: {X-A: \"***\"}}\n", 1, 0, "write the value"},
        {MAIN "scopes: [a]}, set_headers: {X-A: \"{header.Authorization}\"}}\n", 1, 0, "holds credentials"},
        {MAIN "scopes: [a]}, set_headers: {X-A: \"{header.cookie}\"}}\n", 1, 0, "holds credentials"},
        {MAIN "scopes: [a]}, strip_request_headers: [\"a b\"]}\n", 1, 0, "letters, digits and '-' alone"},
        {HEAD "public: true, upstream: up, set_headers: {X-A: \"{claims.sub}\"}}\n", 1, 0, "nobody is known there"},
        {BOTH "set_headers: {X-A: \"{claims.sub}\"}}\n", 1, 0, "put {issuer} into the value"},
        {MAIN "scopes: [a]}, cors: {}}\n", 1, 0, "'cors' is empty"},
        {MAIN "scopes: [a]}, cors: {credentials: true}}\n", 1, 0, "cors needs 'origins'"},
        {MAIN "scopes: [a]}, cors: {origins: [\"*\"], credentials: true}}\n", 1, 0, "name the origins"},
        {MAIN "scopes: [a]}, cors: {origins: [\"*\", \"https://a\"]}}\n", 1, 0, "already means every origin"},
        {MAIN "scopes: [a]}, cors: {origins: [\"https://a/\"]}}\n", 1, 0, "no origin"},
        {MAIN "scopes: [a]}, cors: {origins: [\"null\"]}}\n", 1, 0, "no origin"},
        {MAIN "scopes: [a]}, cors: {origins: [\"https://a\"], methods: [get]}}\n", 1, 0, "no method"},
        {MAIN "scopes: [a]}, cors: {origins: [\"https://a\"], headers: [\"a b\"]}}\n", 1, 0, "no header name"},
    };
    for (size_t i = 0; i < SZ_COUNT(cases); i++)
        check_route(&cases[i]);
}

/* ---- between routes ---------------------------------------------------------------------------------------------- */

#define R(id, match, rest) "  - {id: " id ", match: {" match "}, " rest ", upstream: up}\n"
#define OPEN               "public: true"
#define SHUT               "auth: {issuers: [main]}"

Test(mistakes, between_routes)
{
    static const struct bad cases[] = {
        {R("a", "path: /a", OPEN) R("a", "path: /b", OPEN), 2, 10, "route id 'a' is taken in line 17"},
        {R("a", "path: /a", OPEN) R("b", "path: /a", OPEN), 2, 13, "match the same requests (every method /a)"},
        {R("a", "path: /a, methods: [GET]", OPEN) R("b", "path: /a", OPEN), 2, 13, "(GET /a)"},
        {R("a", "path: /a, methods: [GET]", OPEN) R("b", "path: /a, methods: [HEAD]", OPEN), 2, 13, "(HEAD /a)"},
        {R("a", "path: \"/{x}\"", OPEN) R("b", "path: \"/{y}\"", OPEN), 2, 13, "match the same requests"},
        {R("a", "path: /a, host: A.b", OPEN) R("b", "path: /a, host: a.B", OPEN), 2, 13, "match the same requests"},
        {R("a", "path: /*", OPEN) R("b", "path: /b", SHUT), 1, 13, "covers the guarded 'b' (/b)"},
        {R("b", "path: \"/x/{y}\", host: h.x", SHUT) R("a", "path: /x/*, host: \"*.x\"", OPEN), 2, 13,
         "covers the guarded 'b'"},
        {R("a", "path: /*, methods: [GET]", OPEN) R("b", "path: /b, methods: [POST]", SHUT), 1, 13,
         "covers the guarded"},
        {R("a", "path: /*, host: h.x", OPEN) R("b", "path: /b", SHUT), 1, 13, "comes before the guarded 'b' (/b)"},
        {R("b", "path: /b, host: \"*.x\"", SHUT) R("a", "path: /*, host: h.x", OPEN), 2, 13, "comes before"},
        {R("b", "path: /b", SHUT) R("a", "path: \"/{x}\", host: \"*.x\"", OPEN), 2, 13, "comes before"},
        {R("b", "path: /b/*", SHUT) R("a", "path: \"/{x}/c\", host: h.x", OPEN), 2, 13, "comes before"},
    };
    for (size_t i = 0; i < SZ_COUNT(cases); i++)
        check_route(&cases[i]);
}

/* A header that one route sets is removed from every client's request, so no other route can let it through. */
Test(mistakes, authorization_is_either_kept_or_set)
{
    static const struct bad cases[] = {
        {R("a", "path: /a", SHUT ", authorization: keep") R("b", "path: /b", SHUT ", set_headers: {authorization: x}"),
         1, 57, "route 'b' sets that header"},
    };
    for (size_t i = 0; i < SZ_COUNT(cases); i++)
        check_route(&cases[i]);
}

/* What stands between the braces of a value from the environment is part of that value. */
Test(mistakes, no_message_holds_a_value_from_the_environment)
{
    static const char *const values[] = {"pa{s3cr3t}ss", "pa{path.s3cr3t}", "{header.cookie}s3cr3t", "{s3cr3t",
                                         "s3cr3t}"};
    struct conf_try t;
    for (size_t i = 0; i < SZ_COUNT(values); i++) {
        setenv("SZ_TEST_KEY", values[i], 1);
        char *text = conf_base("", R("a", "path: /a", SHUT ", set_headers: {X-Key: \"${SZ_TEST_KEY}\"}"));
        conf_try(&t, text);
        cr_expect_null(t.conf, "%s", values[i]);
        cr_expect(!conf_has(&t, 0, 0, "s3cr3t"), "%s: %s", values[i], conf_messages(&t));
        conf_done(&t);
        free(text);
    }
    unsetenv("SZ_TEST_KEY");
}

/* An identity has room for so many scopes and claims; one more than fits is named. */
Test(mistakes, the_vocabulary_is_bounded)
{
    struct sz_buf routes = {0};
    struct conf_try t;
    for (unsigned r = 0; r < 9; r++) {
        sz_buf_printf(&routes, "  - {id: r%u, match: {path: /r%u}, upstream: up, auth: {issuers: [main], scopes: [", r,
                      r);
        for (unsigned i = 0; i < 32; i++)
            sz_buf_printf(&routes, "%ss%u", i == 0 ? "" : ", ", r * 32 + i);
        sz_buf_adds(&routes, SZ_S("], claims: {"));
        for (unsigned i = 0; i < 4; i++)
            sz_buf_printf(&routes, "%sc%u: x", i == 0 ? "" : ", ", r * 4 + i);
        sz_buf_adds(&routes, SZ_S("}}}\n"));
    }
    sz_buf_add(&routes, "", 1);
    char *yaml = conf_base("", routes.p);
    conf_try(&t, yaml);
    cr_assert(conf_has(&t, 15, 0, "more than 256 different scopes are mentioned; 's256' is one too many"), "%s",
              conf_messages(&t));
    cr_assert(conf_has(&t, 15, 0, "more than 32 different claims are mentioned; 'c32' is one too many"));
    cr_assert(!conf_has(&t, 14, 0, "different"));
    conf_done(&t);
    free(yaml);
    sz_buf_fini(&routes);
}

Test(mistakes, all_at_once_in_order)
{
    struct conf_try t;
    conf_try(&t, "listen: [{address: nowhere}]\nworkers: none\nlog: {level: loud}\nroutes:\n  - {id: a}\n");
    cr_assert_null(t.conf);
    cr_assert(conf_has(&t, 1, 20, "no address"));
    cr_assert(conf_has(&t, 2, 10, "'workers'"));
    cr_assert(conf_has(&t, 3, 14, "'level' is 'loud'"));
    cr_assert(conf_has(&t, 5, 5, "needs 'match'"));
    for (size_t i = 1; i < t.m.n; i++)
        cr_assert_leq(t.m.v[i - 1].line, t.m.v[i].line);
    conf_done(&t);
}

/* A thousand are enough to read; the count goes on. */
Test(mistakes, are_bounded)
{
    struct sz_buf text = {0};
    struct conf_try t;
    for (unsigned i = 0; i < 5000; i++)
        sz_buf_printf(&text, "key%u: 1\n", i);
    sz_buf_add(&text, "", 1);
    conf_try(&t, text.p);
    cr_assert_eq(t.m.n, 1000);
    cr_assert_geq(t.m.errors, 5000);
    conf_done(&t);
    sz_buf_fini(&text);
}

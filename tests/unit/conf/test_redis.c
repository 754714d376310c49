/* The redis section: urls, seeds, the fleet's key, connections; and that no password is ever shown. */
#include "conf_test.h"

#include "subzero/fleet.h"

#define KEY "MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE="

static struct conf_try t;

/* `fields` of the section; a %s is the file with a good key. */
static void load(const char *fields)
{
    char extra[2048], section[1024];
    const char *key = conf_write("fleet.key", KEY "\n", 0600);
    snprintf(section, sizeof(section), "%s", fields);
    snprintf(extra, sizeof(extra), "workers: 2\nredis: {%s, key_file: %s}\n", section, key);
    char *yaml = conf_base(extra, "  - {id: all, match: {path: /*}, public: true, upstream: up}\n");
    conf_try(&t, yaml);
    free(yaml);
}

static const struct sz_conf_redis *loaded(const char *fields)
{
    load(fields);
    cr_assert_not_null(t.conf, "%s: %s", fields, conf_messages(&t));
    return &t.conf->redis;
}

Test(conf_redis, urls)
{
    static const struct {
        const char *url, *host, *path, *user, *password, *shown;
        unsigned port, database;
        bool tls;
    } cases[] = {
        {"redis://localhost", "localhost", "", "", "", "redis://localhost:6379", 6379, 0, false},
        {"redis://10.0.0.1:7000/3", "10.0.0.1", "", "", "", "redis://10.0.0.1:7000", 7000, 3, false},
        {"redis://h/", "h", "", "", "", "redis://h:6379", 6379, 0, false},
        {"rediss://[2001:db8::1]:6380/1", "2001:db8::1", "", "", "", "rediss://[2001:db8::1]:6380", 6380, 1, true},
        {"redis://:secret@h", "h", "", "", "secret", "redis://h:6379", 6379, 0, false},
        {"redis://me:p%40s%3a@h:1", "h", "", "me", "p@s:", "redis://h:1", 1, 0, false},
        {"redis://me:a@b@h:1", "h", "", "me", "a@b", "redis://h:1", 1, 0, false},
        {"unix:///run/redis.sock", "", "/run/redis.sock", "", "", "unix:///run/redis.sock", 0, 0, false},
        {"unix://me:pw@/run/r.sock?db=4", "", "/run/r.sock", "me", "pw", "unix:///run/r.sock", 0, 4, false},
    };
    for (size_t i = 0; i < SZ_COUNT(cases); i++) {
        char fields[256];
        snprintf(fields, sizeof(fields), "url: \"%s\"", cases[i].url);
        const struct sz_conf_redis *r = loaded(fields);
        const struct sz_conf_redis_place *at = &r->places[0];
        cr_expect(r->on && !r->cluster && r->places_n == 1 && r->tls == cases[i].tls, "%s", cases[i].url);
        cr_expect(sz_eq(at->host, sz_cstr(cases[i].host)) && sz_eq(at->path, sz_cstr(cases[i].path)), "%s",
                  cases[i].url);
        cr_expect(at->port == cases[i].port && r->database == cases[i].database, "%s", cases[i].url);
        cr_expect(sz_eq(r->username, sz_cstr(cases[i].user)), "%s: %.*s", cases[i].url, SZ_FMT(r->username));
        cr_expect(sz_eq(r->password.value, sz_cstr(cases[i].password)), "%s", cases[i].url);
        cr_expect_eq(r->password.set, cases[i].password[0] != '\0');
        cr_expect(sz_eq(r->shown, sz_cstr(cases[i].shown)), "%s: %.*s", cases[i].url, SZ_FMT(r->shown));
        conf_done(&t);
    }
}

Test(conf_redis, no_urls)
{
    static const char *const urls[] = {
        "http://h",      "redis:/h",        "redis://",        "redis://h:0",      "redis://h:65536", "redis://h:x",
        "redis://h/x",   "redis://h/1/2",   "redis://me@h",    "redis://me:@h",    "redis://:%4@h",   "redis://:%zz@h",
        "redis://h h",   "redis://[::1",    "redis://[::g]:1", "unix://relative",  "unix:///",        "unix:///a?db=",
        "unix:///a?x=1", "redis://h/65536", "redis://h?db=1",  "redis://[::1]x:1", "rediss://h:-1",
    };
    for (size_t i = 0; i < SZ_COUNT(urls); i++) {
        char fields[256];
        snprintf(fields, sizeof(fields), "url: \"%s\"", urls[i]);
        load(fields);
        cr_expect(conf_has(&t, 0, 0, "'url' is no Redis url"), "%s: %s", urls[i], conf_messages(&t));
        conf_done(&t);
    }
}

Test(conf_redis, what_does_not_go_together)
{
    static const struct {
        const char *fields, *says;
    } cases[] = {
        {"timeout: 5ms", "redis needs 'url', or 'cluster'"},
        {"url: redis://h, cluster: [\"redis://h\"]", "a server or a cluster; remove one"},
        {"cluster: [\"unix:///a\"]", "a node of 'cluster' is redis://host:port"},
        {"cluster: [\"redis://:p@h\"]", "use 'username' and 'password_file'"},
        {"cluster: [\"redis://h/1\"]", "a cluster has one"},
        {"cluster: [\"redis://h\", \"rediss://i\"]", "redis:// and rediss:// in one cluster"},
        {"url: redis://h, username: me", "'username' needs 'password_file'"},
        {"url: redis://h, ca_file: /etc/hostname", "'ca_file' without TLS"},
        {"url: redis://h, max_connections: 1", "fewer 'max_connections' (1) than workers (2)"},
    };
    for (size_t i = 0; i < SZ_COUNT(cases); i++) {
        load(cases[i].fields);
        cr_expect(conf_has(&t, 0, 0, cases[i].says), "%s: %s", cases[i].fields, conf_messages(&t));
        conf_done(&t);
    }
}

Test(conf_redis, a_cluster_and_its_defaults)
{
    const struct sz_conf_redis *r = loaded("cluster: [\"rediss://a\", \"rediss://b:7001\"]");
    cr_expect(r->cluster && r->tls && r->places_n == 2 && r->places[1].port == 7001);
    cr_expect(r->timeout.us == 20000 && r->breaker.failures == 5 && r->breaker.open.us == 30000000);
    cr_expect_eq(r->max_connections, 8);
    conf_done(&t);
}

Test(conf_redis, keys)
{
    static const char *const bad[] = {"x", "MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MA==", KEY "MDEy",
                                      "0123456789012345678901234567890101234567890123456789012345678901"};
    const struct sz_conf_redis *r = loaded("url: redis://h");
    cr_expect(sz_eq(r->key.value, SZ_S("01234567890123456789012345678901")));
    cr_expect_eq(r->key.value.n, SZ_FLEET_KEY);
    conf_done(&t);
    for (size_t i = 0; i < SZ_COUNT(bad); i++) {
        char extra[1024];
        snprintf(extra, sizeof(extra), "redis: {url: redis://h, key_file: %s}\n", conf_write("bad.key", bad[i], 0600));
        char *yaml = conf_base(extra, "  - {id: all, match: {path: /*}, public: true, upstream: up}\n");
        conf_try(&t, yaml);
        free(yaml);
        cr_expect(conf_has(&t, 0, 0, "'key_file' holds no key"), "%s: %s", bad[i], conf_messages(&t));
        cr_expect(!conf_has(&t, 0, 0, bad[i]), "a message shows the key");
        conf_done(&t);
    }
    char *yaml =
        conf_base("redis: {url: redis://h}\n", "  - {id: all, match: {path: /*}, public: true, upstream: up}\n");
    conf_try(&t, yaml);
    free(yaml);
    cr_expect(conf_has(&t, 0, 0, "redis needs 'key_file'"), "%s", conf_messages(&t));
    conf_done(&t);
}

Test(conf_redis, no_password_in_a_dump_or_a_message)
{
    struct sz_buf dump = {0};
    loaded("url: \"redis://me:hunter2@h/1\"");
    sz_conf_dump(t.conf, &dump);
    sz_buf_add(&dump, "", 1);
    cr_expect_null(strstr(dump.p, "hunter2"));
    cr_expect_not_null(strstr(dump.p, "redis://***@h/1"), "%s", dump.p);
    conf_done(&t);
    sz_buf_fini(&dump);
    static const char *const wrong[] = {"url: \"redis://me:hunter2@h:port\"", "cluster: [\"redis://me:hunter2@h\"]",
                                        "url: \"redis://me:hunter2@h\", cluster: [\"redis://h\"]"};
    for (size_t i = 0; i < SZ_COUNT(wrong); i++) {
        load(wrong[i]);
        cr_expect(t.conf == NULL && !conf_has(&t, 0, 0, "hunter2"), "%s", conf_messages(&t));
        conf_done(&t);
    }
}

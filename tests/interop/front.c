/* See front.h. */
#include "interop/front.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char configuration[] =
    "listen: [{address: \"127.0.0.1:{port}\", mode: decide, dialect: DIALECT}]\n"
    "admin: {address: \"127.0.0.1:{admin}\"}\n"
    "trusted_proxies: [127.0.0.1/32]\n" ISSUER_YAML "upstreams:\n"
    "  app: {urls: [\"http://127.0.0.1:{upstream}\"]}\n"
    "routes:\n"
    "  - {id: anyone, match: {path: /public/*}, public: true, upstream: app}\n"
    "  - id: documents\n"
    "    match: {methods: [GET], path: \"/documents/{id}\"}\n"
    "    auth: {issuers: [test], scopes: [\"read:documents\"]}\n"
    "    upstream: app\n"
    "  - id: admin\n"
    "    match: {path: /admin/*}\n"
    "    auth: {issuers: [test], scopes: [admin]}\n"
    "    upstream: app\n"
    "  - {id: rest, match: {path: \"/*\"}, public: true, covers_guarded: true, upstream: app}\n";

/* text with every `from` replaced; frees text. */
static char *replaced(char *text, const char *from, const char *to)
{
    struct sz_buf out = {0};
    const char *at = text, *hit;

    while ((hit = strstr(at, from)) != NULL) {
        sz_buf_add(&out, at, (size_t)(hit - at));
        sz_buf_adds(&out, sz_cstr(to));
        at = hit + strlen(from);
    }
    sz_buf_add(&out, at, strlen(at) + 1);
    free(text);
    return out.p;
}

static char *readdressed(char *text, unsigned port, unsigned real)
{
    char from[32], to[32];

    snprintf(from, sizeof(from), "127.0.0.1:%u", port);
    snprintf(to, sizeof(to), "127.0.0.1:%u", real);
    return replaced(text, from, to);
}

/* An example with this test's ports and places, in the scratch folder. */
static const char *example(struct front *f, const char *name)
{
    char path[512], places[1024];
    const char *at = scratch_path();

    snprintf(path, sizeof(path), "%s/deploy/examples/%s", SZ_SOURCE_DIR, name);
    char *text = file_read(path, NULL);
    cr_assert(strlen(text) > 0, "%s is not there", path);
    text = readdressed(text, 8000, f->port);
    snprintf(places, sizeof(places), "http://:%u", (unsigned)f->port);
    text = replaced(text, "http://:8000", places); /* Caddy's way to name a port */
    text = readdressed(text, 8081, f->gateway.port);
    text = readdressed(text, 9000, f->upstream.port);
    snprintf(places, sizeof(places),
             "http {\n  access_log off;\n  client_body_temp_path %s/body;\n  proxy_temp_path %s/proxy;\n"
             "  fastcgi_temp_path %s/fastcgi;\n  uwsgi_temp_path %s/uwsgi;\n  scgi_temp_path %s/scgi;\n",
             at, at, at, at, at);
    text = replaced(text, "http {\n", places);
    snprintf(places, sizeof(places), "%s/nginx.pid", at);
    text = replaced(text, "/run/nginx.pid", places);
    snprintf(places, sizeof(places), "%s/", at);
    text = replaced(text, "/etc/haproxy/", places);
    const char *copy = scratch_write(name, sz_cstr(text));
    free(text);
    return copy;
}

static void start_nginx(struct front *f, const char *program)
{
    char errors[256];

    snprintf(errors, sizeof(errors), "%s/nginx-error.log", scratch_path());
    const char *const argv[] = {program, "-e", errors, "-c", example(f, "nginx.conf"), "-g", "daemon off;", NULL};
    cr_assert(proc_start(&f->proxy, "nginx", f->port, argv));
}

static void start_haproxy(struct front *f, const char *program)
{
    example(f, "haproxy.lua");
    const char *const argv[] = {program, "-db", "-f", example(f, "haproxy.cfg"), NULL};
    cr_assert(proc_start(&f->proxy, "haproxy", f->port, argv));
}

static void start_caddy(struct front *f, const char *program)
{
    /* Caddy keeps its state in the home folder. */
    setenv("HOME", scratch_path(), 1);
    setenv("XDG_DATA_HOME", scratch_path(), 1);
    setenv("XDG_CONFIG_HOME", scratch_path(), 1);
    const char *const argv[] = {program, "run", "--adapter", "caddyfile", "--config", example(f, "Caddyfile"), NULL};
    cr_assert(proc_start(&f->proxy, "caddy", f->port, argv));
}

static const struct {
    const char *dialect;
    void (*start)(struct front *f, const char *program);
} fronts[] = {
    {"nginx", start_nginx},
    {"haproxy", start_haproxy},
    {"caddy", start_caddy},
};

void front_start(struct front *f, const char *dialect)
{
    const char *found = program_find(dialect);

    if (found == NULL)
        cr_skip_test("no %s here", dialect);
    char *program = strdup(found), *yaml = replaced(strdup(configuration), "DIALECT", dialect);
    *f = (struct front){.port = free_port()};
    issuer_init(&f->issuer);
    echo_start(&f->upstream, 0);
    cr_assert(gateway_start(&f->gateway, yaml, f->upstream.port));
    for (size_t i = 0; i < SZ_COUNT(fronts); i++) {
        if (strcmp(fronts[i].dialect, dialect) == 0)
            fronts[i].start(f, program);
    }
    free(yaml);
    free(program);
}

void front_stop(struct front *f)
{
    proc_stop(&f->proxy);
    cr_expect(gateway_stop(&f->gateway));
    sz_signer_free(&f->issuer.signer);
}

char *front_token(struct front *f, const char *subject, const char *scope)
{
    char claims[256];

    snprintf(claims, sizeof(claims), "\"scope\":\"%s\"", scope);
    return issuer_token(&f->issuer, subject, 600, claims);
}

char *front_ask(struct front *f, const char *fmt, ...)
{
    struct sz_buf request = {0};
    char *text = NULL;
    va_list args;

    va_start(args, fmt);
    cr_assert(vasprintf(&text, fmt, args) >= 0);
    va_end(args);
    sz_buf_printf(&request, "%sHost: app.test\r\nConnection: close\r\n\r\n", text);
    char *answer = raw_exchange(f->port, sz_buf_slice(&request), NULL);
    cr_assert_not_null(answer, "nobody accepts on %u", (unsigned)f->port);
    sz_buf_fini(&request);
    free(text);
    return answer;
}

/* The shared part of the configuration's tests. */
#include "conf_test.h"

#include <ftw.h>
#include <sys/stat.h>
#include <unistd.h>

static char dir[64];

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *ftw)
{
    (void)st, (void)kind, (void)ftw;
    return remove(path);
}

static void remove_dir(void)
{
    nftw(dir, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

const char *conf_dir(void)
{
    if (dir[0] == '\0') {
        snprintf(dir, sizeof(dir), "/tmp/subzero-conf-XXXXXX");
        cr_assert_not_null(mkdtemp(dir));
        atexit(remove_dir);
    }
    return dir;
}

const char *conf_write(const char *name, const char *content, unsigned mode)
{
    static char path[256];
    snprintf(path, sizeof(path), "%s/%s", conf_dir(), name);
    FILE *f = fopen(path, "w");
    cr_assert_not_null(f);
    fputs(content, f);
    fclose(f);
    cr_assert_eq(chmod(path, mode), 0);
    return path;
}

char *conf_base(const char *extra, const char *routes)
{
    char *text = NULL;
    const char *jwks = conf_write("jwks.json", "{\"keys\": []}\n", 0644);
    int n = asprintf(&text,
                     "listen: [{address: 127.0.0.1:8080}]\n"
                     "issuers:\n"
                     "  main: {issuer: https://main/, audiences: [api], algorithms: [RS256], jwks_file: %s}\n"
                     "upstreams:\n"
                     "  up: {urls: [\"http://127.0.0.1:9000\"]}\n"
                     "%s"
                     "routes:\n"
                     "%s",
                     jwks, extra, routes);
    cr_assert_gt(n, 0);
    return text;
}

void conf_try(struct conf_try *t, const char *yaml)
{
    char name[128];
    snprintf(name, sizeof(name), "%s/subzero.yaml", conf_dir());
    sz_mistakes_init(&t->m);
    t->conf = sz_conf_load_text(sz_cstr(yaml), name, &t->m);
    cr_assert_eq(t->conf == NULL, t->m.errors > 0);
}

void conf_done(struct conf_try *t)
{
    sz_conf_free(&t->conf);
    sz_mistakes_fini(&t->m);
}

bool conf_has(const struct conf_try *t, unsigned line, unsigned column, const char *text)
{
    for (size_t i = 0; i < t->m.n; i++) {
        const struct sz_mistake *at = &t->m.v[i];
        if ((line == 0 || at->line == line) && (column == 0 || at->column == column) &&
            memmem(at->message.p, at->message.n, text, strlen(text)) != NULL)
            return true;
    }
    return false;
}

const char *conf_messages(const struct conf_try *t)
{
    static char text[8192];
    size_t n = 0;
    text[0] = '\0';
    for (size_t i = 0; i < t->m.n && n < sizeof(text); i++)
        n += (size_t)snprintf(text + n, sizeof(text) - n, "\n  %u:%u: %.*s", t->m.v[i].line, t->m.v[i].column,
                              SZ_FMT(t->m.v[i].message));
    return text;
}

/*
 * Which form a model file has is told by its name.  Modules are read from beside the fga.mod.
 */
#include "fga/engine/model_file.h"

#include <errno.h>
#include <stdio.h>

enum { FILE_MAX = 1 << 30 };

int sz_input_read(const char *path, struct sz_pool *pool, struct sz_slice *out, struct sz_text *why)
{
    FILE *f = fopen(path, "rbe");
    int err = f == NULL ? -errno : 0;
    struct sz_buf b = {.limit = FILE_MAX};
    char chunk[65536];
    size_t n;
    while (err == 0 && (n = fread(chunk, 1, sizeof(chunk), f)) > 0)
        sz_buf_add(&b, chunk, n);
    if (err == 0 && ferror(f))
        err = -EIO;
    if (err == 0 && b.overflow)
        err = -EFBIG;
    if (f != NULL)
        fclose(f);
    if (err != 0)
        sz_text_set(why, "%s: %s", path, strerror(-err));
    else
        *out = sz_pool_dup(pool, sz_buf_slice(&b));
    sz_buf_fini(&b);
    return err;
}

static bool ends_with(const char *path, const char *end)
{
    size_t n = strlen(path), m = strlen(end);
    return n >= m && strcmp(path + n - m, end) == 0;
}

static struct sz_model *load_modules(const char *path, struct sz_slice text, struct sz_problems *problems)
{
    struct sz_pool *pool = &problems->arena.pool;
    struct sz_module_file *files;
    size_t n;
    if (sz_fga_mod_parse(text, pool, &files, &n, problems) != 0)
        return NULL;
    const char *slash = strrchr(path, '/');
    int dir = slash == NULL ? 0 : (int)(slash - path) + 1;
    for (size_t i = 0; i < n; i++) {
        struct sz_text why;
        struct sz_slice full = sz_pool_printf(pool, "%.*s%.*s", dir, path, SZ_FMT(files[i].name));
        if (sz_input_read(sz_pool_strdup(pool, full), pool, &files[i].text, &why) != 0)
            sz_problems_add(problems, "file", "%s", why.s);
    }
    return problems->n > 0 ? NULL : sz_modules_merge(files, n, SZ_S("1.2"), problems);
}

struct sz_model *sz_model_load_file(const char *path, struct sz_problems *problems, struct sz_slice *text)
{
    struct sz_text why;
    struct sz_slice all;
    *text = SZ_NONE;
    if (sz_input_read(path, &problems->arena.pool, &all, &why) != 0) {
        sz_problems_add(problems, "file", "%s", why.s);
        return NULL;
    }
    if (ends_with(path, ".json"))
        return sz_model_json_parse(all, problems);
    if (ends_with(path, "fga.mod"))
        return load_modules(path, all, problems);
    *text = all;
    return sz_dsl_parse(all, problems);
}

struct sz_model *sz_model_load(const char *path, struct sz_text *why)
{
    struct sz_problems problems;
    struct sz_slice text;
    struct sz_text first;
    sz_problems_init(&problems);
    struct sz_model *m = sz_model_load_file(path, &problems, &text);
    sz_problems_first(&problems, &first);
    if (m == NULL)
        sz_text_set(why, "%s: %s", path, first.s);
    sz_problems_fini(&problems);
    return m;
}

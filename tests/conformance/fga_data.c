/* Reading the conformance folder. */
#include "fga_data.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>

#include "fga/engine/yaml.h"

void fga_path(char *out, size_t size, const char *fmt, ...)
{
    const char *root = getenv("SUBZERO_CONFORMANCE");
    char tail[512];
    va_list args;
    va_start(args, fmt);
    vsnprintf(tail, sizeof(tail), fmt, args);
    va_end(args);
    if (root != NULL && *root != '\0')
        snprintf(out, size, "%s/fga/%s", root, tail);
    else
        snprintf(out, size, "%s/../shared/conformance/fga/%s", SZ_SOURCE_DIR, tail);
}

struct sz_slice fga_read(const char *path)
{
    FILE *f = fopen(path, "rb");
    if (f == NULL)
        return SZ_NONE;
    struct sz_buf b = {0};
    char chunk[65536];
    size_t n;
    while ((n = fread(chunk, 1, sizeof(chunk), f)) > 0)
        sz_buf_add(&b, chunk, n);
    fclose(f);
    size_t size = b.n;
    sz_buf_add(&b, "", 1);
    return sz_slice(b.p, size);
}

json_t *fga_yaml(const char *path)
{
    struct sz_slice text = fga_read(path);
    if (text.p == NULL)
        return NULL;
    struct sz_text why;
    json_t *v = sz_yaml_json(text, 10000000, &why);
    cr_assert(v != NULL, "%s: %s", path, why.s);
    free((char *)text.p);
    return v;
}

const char *fga_str(const json_t *o, const char *key)
{
    const char *s = json_string_value(json_object_get(o, key));
    return s != NULL ? s : "";
}

/*
 * ${NAME} and ${NAME:-default} inside values.  Replaced after the YAML was parsed, so that the
 * content of a variable is always one value and can never add a key or end a quote.  A variable that is
 * unset, or set to nothing, takes the default; without one it is a mistake, since an
 * empty issuer or audience would switch a check off.
 */
#include <ctype.h>
#include <stdlib.h>

#include "conf/node.h"

#define EXPANDED_MAX 65536

static bool name_ok(struct sz_slice name)
{
    if (name.n == 0 || isdigit((unsigned char)name.p[0]))
        return false;
    for (size_t i = 0; i < name.n; i++) {
        if (!isalnum((unsigned char)name.p[i]) && name.p[i] != '_')
            return false;
    }
    return true;
}

/* The inside of one ${...}; false after a mistake. */
static bool expand_one(struct sz_loader *l, const struct sz_node *node, struct sz_slice inside, struct sz_buf *out)
{
    struct sz_slice name = inside, fallback = SZ_NONE;
    ptrdiff_t colon = sz_find_byte(inside, ':');
    if (colon >= 0) {
        name = sz_sub(inside, 0, (size_t)colon);
        fallback = sz_from(inside, (size_t)colon + 2);
        if ((size_t)colon + 1 >= inside.n || inside.p[colon + 1] != '-')
            name = SZ_NONE;
    }
    if (!name_ok(name)) {
        sz_mistake(l, node, "'${%.*s}' is not understood; write ${NAME} or ${NAME:-default}, and $${ for a literal ${",
                   SZ_FMT(inside));
        return false;
    }
    const char *value = getenv(sz_pool_strdup(l->pool, name));
    if (value != NULL && *value != '\0') {
        sz_buf_adds(out, sz_cstr(value));
    } else if (colon >= 0) {
        sz_buf_adds(out, fallback);
    } else {
        sz_mistake(l, node, "the environment variable %.*s is not set; set it, or write ${%.*s:-default}", SZ_FMT(name),
                   SZ_FMT(name));
        return false;
    }
    return true;
}

static void expand_text(struct sz_loader *l, struct sz_node *node)
{
    if (memmem(node->text.p, node->text.n, "${", 2) == NULL)
        return;
    struct sz_buf out = {.limit = EXPANDED_MAX};
    struct sz_slice s = node->text;
    bool ok = true;
    for (size_t i = 0; i < s.n && ok;) {
        if (sz_starts_with(sz_from(s, i), SZ_S("$${"))) {
            sz_buf_adds(&out, SZ_S("${"));
            i += 3;
        } else if (sz_starts_with(sz_from(s, i), SZ_S("${"))) {
            ptrdiff_t end = sz_find_byte(sz_from(s, i), '}');
            ok = end >= 0;
            if (ok)
                ok = expand_one(l, node, sz_sub(s, i + 2, (size_t)end - 2), &out);
            else
                sz_mistake(l, node, "'${' without its '}'; write $${ for a literal ${");
            i += ok ? (size_t)end + 1 : 0;
            node->expanded = true;
        } else {
            sz_buf_add(&out, s.p + i++, 1);
        }
    }
    if (out.overflow)
        sz_mistake(l, node, "longer than %d bytes after its variables were filled in", EXPANDED_MAX);
    node->broken = !ok || out.overflow;
    if (!node->broken)
        node->text = sz_slice(sz_pool_strdup(l->pool, sz_buf_slice(&out)), out.n);
    sz_buf_fini(&out);
}

void sz_env_expand(struct sz_loader *l, struct sz_node *node)
{
    switch (node->kind) {
    case SZ_NODE_TEXT:
        expand_text(l, node);
        break;
    case SZ_NODE_LIST:
        for (size_t i = 0; i < node->n; i++)
            sz_env_expand(l, node->items[i]);
        break;
    case SZ_NODE_MAP:
        for (size_t i = 0; i < node->n; i++)
            sz_env_expand(l, node->pairs[i].value);
        break;
    }
}

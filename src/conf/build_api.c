/*
 * The keys of an api listener: one a line, `KEY` or `KEY NAME`.  Empty lines and those that begin with '#' say
 * nothing.  Messages name the line, never what stands in it.
 */
#include "conf/build.h"

enum { KEYS_MAX = 256, KEY_GUESSABLE = 16 };

static bool printable(struct sz_slice s)
{
    for (size_t i = 0; i < s.n; i++) {
        unsigned char c = (unsigned char)s.p[i];
        if (c <= 0x20 || c >= 0x7f)
            return false;
    }
    return s.n > 0;
}

/* False: the line is no key, and *why says what it should be. */
static bool parse(struct sz_slice line, struct sz_api_key *key, const char **why)
{
    size_t end = 0;
    while (end < line.n && line.p[end] != ' ' && line.p[end] != '\t')
        end++;
    key->key = sz_sub(line, 0, end);
    struct sz_slice name = sz_trim(sz_from(line, end));
    key->name = name.n > 0 ? name : SZ_NONE;
    *why = "a line is a key of printable ASCII, then perhaps a blank and a name of up to 64 bytes";
    return printable(key->key) && (name.n == 0 || printable(name)) && name.n <= 64;
}

static bool known(const struct sz_api_key *keys, size_t n, const struct sz_api_key *key)
{
    for (size_t i = 0; i < n; i++) {
        if (sz_secret_eq(keys[i].key, key->key) || (key->name.n > 0 && sz_eq(keys[i].name, key->name)))
            return true;
    }
    return false;
}

static void read_keys(struct sz_builder *b, const struct sz_node *at, struct sz_slice text,
                      struct sz_conf_listener *out)
{
    struct sz_api_key *keys = sz_pool_zalloc(b->l->pool, KEYS_MAX * sizeof(*keys));
    struct sz_slice line;
    size_t n = 0;
    for (unsigned number = 1; sz_split(&text, '\n', &line); number++) {
        const char *why;
        if (line.n > 0 && line.p[line.n - 1] == '\r')
            line.n--;
        line = sz_trim(line);
        if (line.n == 0 || line.p[0] == '#')
            continue;
        if (n == KEYS_MAX) {
            sz_mistake(b->l, at, "'keys_file' has more than %d keys", KEYS_MAX);
            break;
        }
        if (!parse(line, &keys[n], &why))
            sz_mistake(b->l, at, "'keys_file' line %u: %s", number, why);
        else if (known(keys, n, &keys[n]))
            sz_mistake(b->l, at, "'keys_file' line %u: its key or its name is there already; keep one", number);
        else if (keys[n++].key.n < KEY_GUESSABLE)
            sz_warning(b->l, at,
                       "'keys_file' line %u: a key of less than %d bytes can be guessed; 'subzero key new' "
                       "makes a good one",
                       number, KEY_GUESSABLE);
    }
    if (n == 0)
        sz_mistake(b->l, at, "'keys_file' has no key; one a line, or remove it on a loopback address");
    out->keys = keys;
    out->keys_n = n;
}

void sz_build_api(struct sz_builder *b, const struct sz_raw_listener *raw, struct sz_conf_listener *out)
{
    const struct sz_node *node = raw->head.node, *file = sz_node_get(node, "keys_file");
    if (raw->mode != SZ_MODE_API) {
        if (file != NULL)
            sz_mistake(b->l, sz_node_key(node, "keys_file"),
                       "'keys_file' belongs to mode 'api'; add 'mode: api' or remove it");
        return;
    }
    if (b->raw->fga.head.node == NULL)
        sz_mistake(b->l, sz_node_key(node, "mode"), "a listener in mode 'api' needs 'fga': where to ask");
    if (file == NULL && raw->address.p != NULL && !sz_addr_is_loopback(out->ip))
        sz_mistake(b->l, sz_node_get(node, "address"),
                   "a listener in mode 'api' whose address is not loopback needs 'keys_file'");
    if (raw->keys.secret.set)
        read_keys(b, file, raw->keys.secret.value, out);
}

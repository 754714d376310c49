/* The API's keys: who may read, who may write. */
#include <stdlib.h>

#include "fga/api/keys.h"
#include "subzero/crypto.h"

enum { KEY_MIN = 16, KEY_MAX = 512, KEYS_MAX = 1000 };

struct key {
    struct sz_slice secret, name; /* in the text */
    bool writes;
};

struct sz_fga_keys {
    char *text; /* our own copy, wiped at the end */
    size_t text_n, n;
    struct key *v;
};

static bool next_word(struct sz_slice *rest, struct sz_slice *word)
{
    *rest = sz_trim(*rest);
    size_t n = 0;
    while (n < rest->n && rest->p[n] != ' ' && rest->p[n] != '\t')
        n++;
    *word = sz_sub(*rest, 0, n);
    *rest = sz_from(*rest, n);
    return n > 0;
}

static const char *read_line(struct sz_slice line, struct key *key)
{
    struct sz_slice right, rest = line;
    *key = (struct key){.name = SZ_NONE};
    next_word(&rest, &right);
    key->writes = sz_eq(right, SZ_S("write"));
    if (!key->writes && !sz_eq(right, SZ_S("read")))
        return "begins with neither 'read' nor 'write'";
    if (!next_word(&rest, &key->secret))
        return "has no key behind the right";
    if (key->secret.n < KEY_MIN || key->secret.n > KEY_MAX)
        return "has a key of fewer than 16 or more than 512 bytes";
    next_word(&rest, &key->name);
    return sz_trim(rest).n > 0 ? "has more than a right, a key and a name" : NULL;
}

struct sz_fga_keys *sz_fga_keys_parse(struct sz_slice text, struct sz_text *why)
{
    struct sz_fga_keys *keys = sz_xcalloc(1, sizeof(*keys));
    struct sz_slice rest, line;
    size_t number = 0;
    keys->text = sz_xmalloc(text.n + 1);
    memcpy(keys->text, text.p != NULL ? text.p : "", text.n);
    keys->text_n = text.n;
    keys->v = sz_xcalloc(KEYS_MAX, sizeof(*keys->v));
    rest = sz_slice(keys->text, text.n);
    while (sz_split(&rest, '\n', &line)) {
        number++;
        if (line.n > 0 && line.p[line.n - 1] == '\r')
            line.n--;
        line = sz_trim(line);
        if (line.n == 0 || line.p[0] == '#')
            continue;
        const char *wrong = keys->n == KEYS_MAX ? "is beyond the thousandth key" : read_line(line, &keys->v[keys->n]);
        if (wrong != NULL) {
            sz_text_set(why, "line %zu %s; a line is 'read KEY' or 'write KEY', and perhaps a name", number, wrong);
            sz_fga_keys_free(&keys);
            return NULL;
        }
        keys->n++;
    }
    if (keys->n > 0)
        return keys;
    sz_text_set(why, "there is no key in it; a line is 'read KEY' or 'write KEY', and perhaps a name");
    sz_fga_keys_free(&keys);
    return NULL;
}

void sz_fga_keys_free(struct sz_fga_keys **keysp)
{
    struct sz_fga_keys *keys = *keysp;
    *keysp = NULL;
    if (keys == NULL)
        return;
    sz_wipe(keys->text, keys->text_n);
    free(keys->text);
    free(keys->v);
    free(keys);
}

/* All of them are looked at: which one fits does not show in the time. */
enum sz_key_right sz_keys_right(const struct sz_fga_keys *keys, struct sz_slice authorization, struct sz_slice *name)
{
    static const char scheme[] = "Bearer ";
    const size_t scheme_n = sizeof(scheme) - 1;
    enum sz_key_right right = SZ_KEY_UNKNOWN;
    *name = SZ_NONE;
    if (authorization.p == NULL)
        return SZ_KEY_MISSING;
    if (!sz_ieq(sz_sub(authorization, 0, scheme_n), sz_slice(scheme, scheme_n)))
        return SZ_KEY_MISSING;
    struct sz_slice shown = sz_trim(sz_from(authorization, scheme_n));
    for (size_t i = 0; i < keys->n; i++) {
        if (sz_secret_eq(shown, keys->v[i].secret)) {
            right = keys->v[i].writes ? SZ_KEY_WRITES : SZ_KEY_READS;
            *name = keys->v[i].name;
        }
    }
    return right;
}

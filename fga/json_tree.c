/*
 * Reading in two passes: sz_json_check says whether the text is strict JSON, then one walk notes where each value lies
 * and decodes escapes in place (a decoded string is never longer than its literal).
 * The walk trusts the check for grammar only; every step still looks for the end of the text.
 *
 *   {"a":[1,"x"]}   ->   0 OBJECT next=5 | 1 STRING a | 2 ARRAY next=5 | 3 NUMBER 1 | 4 STRING x
 *
 * Names are unique per object: compared pairwise while there are few, through a small hash table beyond.
 */
#include "fga/json_tree.h"

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>

#include "subzero/crypto.h"

enum { PAIRWISE_MAX = 16, TABLE = 8192 /* twice the names of the longest text: five bytes each */, NUMBER_MAX = 64 };

struct walk {
    struct sz_json_tree *tree;
    char *text, *p, *end;
    unsigned depth;
    uint16_t open[SZ_JSON_TREE_DEPTH]; /* the containers around here */
};

/* ---- strings --------------------------------------------------------------------------------------------------- */

static unsigned hex4(const char *p)
{
    unsigned v = 0;
    for (size_t i = 0; i < 4; i++)
        v = v << 4 | (unsigned)(p[i] <= '9' ? p[i] - '0' : (p[i] | 0x20) - 'a' + 10);
    return v & 0xffff;
}

static char *put_utf8(char *out, unsigned c)
{
    if (c < 0x80) {
        *out++ = (char)c;
        return out;
    }
    if (c < 0x800) {
        *out++ = (char)(0xc0 | c >> 6);
    } else {
        if (c < 0x10000) {
            *out++ = (char)(0xe0 | c >> 12);
        } else {
            *out++ = (char)(0xf0 | c >> 18);
            *out++ = (char)(0x80 | (c >> 12 & 0x3f));
        }
        *out++ = (char)(0x80 | (c >> 6 & 0x3f));
    }
    *out++ = (char)(0x80 | (c & 0x3f));
    return out;
}

/* p is behind a backslash.  Moves it behind the escape; NULL: the text ends inside. */
static char *decode_escape(struct walk *w, char *out)
{
    static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
    if (w->p == w->end)
        return NULL;
    const char *simple = strchr(from, *w->p);
    if (simple != NULL && *w->p != '\0') {
        *out = to[simple - from];
        w->p++;
        return out + 1;
    }
    if (w->end - w->p < 5)
        return NULL;
    unsigned c = hex4(w->p + 1);
    w->p += 5;
    if (c >= 0xd800 && c <= 0xdbff) { /* its other half follows: checked */
        if (w->end - w->p < 6)
            return NULL;
        c = 0x10000 + ((c & 0x3ff) << 10) + (hex4(w->p + 2) & 0x3ff);
        w->p += 6;
    }
    return put_utf8(out, c);
}

/* p is behind the opening quote and moves behind the closing one. */
static int read_string(struct walk *w, struct sz_json_node *node)
{
    char *start = w->p;
    while (w->p < w->end && *w->p != '"' && *w->p != '\\')
        w->p++;
    char *out = w->p;
    while (w->p < w->end && *w->p != '"') {
        if (*w->p != '\\') {
            *out++ = *w->p++;
            continue;
        }
        w->p++;
        out = decode_escape(w, out);
        if (out == NULL)
            return -EINVAL;
    }
    if (w->p == w->end)
        return -EINVAL;
    w->p++;
    node->type = SZ_JSON_STRING;
    node->at = (uint16_t)(start - w->text);
    node->n = (uint16_t)(out - start);
    return 0;
}

/* ---- unique names ---------------------------------------------------------------------------------------------- */

static bool same(const struct sz_json_tree *tree, uint16_t a, uint16_t b)
{
    return sz_eq(sz_json_slice(tree, &tree->v[a]), sz_json_slice(tree, &tree->v[b]));
}

static bool unique_pairwise(const struct sz_json_tree *tree, uint16_t first, uint16_t end)
{
    for (uint16_t a = first; a < end; a = tree->v[a + 1].next) {
        for (uint16_t b = first; b < a; b = tree->v[b + 1].next) {
            if (same(tree, a, b))
                return false;
        }
    }
    return true;
}

static pthread_once_t once = PTHREAD_ONCE_INIT;
static struct sz_key128 name_key; /* of the process: nobody outside can make the names of a token meet in one slot */

static void init_once(void)
{
    sz_random(&name_key, sizeof(name_key));
}

static bool unique_hashed(const struct sz_json_tree *tree, uint16_t first, uint16_t end, size_t count)
{
    uint16_t table[TABLE]; /* node of a name; 0 is the root, so it can mean free */
    size_t size = TABLE;
    while (size / 4 >= count) /* no larger than it takes to stay half empty */
        size /= 2;
    pthread_once(&once, init_once);
    memset(table, 0, size * sizeof(table[0]));
    for (uint16_t a = first; a < end; a = tree->v[a + 1].next) {
        size_t slot = sz_hash64(&name_key, sz_json_slice(tree, &tree->v[a])) % size;
        for (; table[slot] != 0; slot = (slot + 1) % size) {
            if (same(tree, a, table[slot]))
                return false;
        }
        table[slot] = a;
    }
    return true;
}

/* ---- the walk -------------------------------------------------------------------------------------------------- */

static void skip_blanks(struct walk *w)
{
    while (w->p < w->end && (*w->p == ' ' || *w->p == '\t' || *w->p == '\n' || *w->p == '\r'))
        w->p++;
}

static bool take(struct walk *w, char c)
{
    skip_blanks(w);
    if (w->p == w->end || *w->p != c)
        return false;
    w->p++;
    return true;
}

static struct sz_json_node *add(struct walk *w)
{
    struct sz_json_tree *tree = w->tree;
    SZ_ASSERT(tree->n < SZ_JSON_NODES_MAX);
    struct sz_json_node *node = &tree->v[tree->n++];
    node->next = tree->n;
    return node;
}

static int read_name(struct walk *w)
{
    struct sz_json_node *node = add(w);
    return take(w, '"') && read_string(w, node) == 0 && take(w, ':') ? 0 : -EINVAL;
}

static void read_literal(struct walk *w, struct sz_json_node *node)
{
    const char *start = w->p;
    while (w->p < w->end && (unsigned char)*w->p > ' ' && *w->p != ',' && *w->p != ']' && *w->p != '}')
        w->p++;
    node->at = (uint16_t)(start - w->text);
    node->n = (uint16_t)(w->p - start);
    node->type = *start == 't'   ? SZ_JSON_TRUE
                 : *start == 'f' ? SZ_JSON_FALSE
                 : *start == 'n' ? SZ_JSON_NULL
                                 : SZ_JSON_NUMBER;
}

static int close_container(struct walk *w)
{
    struct sz_json_tree *tree = w->tree;
    struct sz_json_node *self = &tree->v[w->open[--w->depth]];
    self->next = tree->n;
    if (self->type == SZ_JSON_ARRAY)
        return 0;
    uint16_t first = (uint16_t)(self - tree->v + 1);
    size_t count = sz_json_members(tree, self);
    bool unique =
        count <= PAIRWISE_MAX ? unique_pairwise(tree, first, tree->n) : unique_hashed(tree, first, tree->n, count);
    return unique ? 0 : -EINVAL;
}

/* One value: a scalar, or the opening of a container.  *opened: its first item comes next. */
static int read_value(struct walk *w, bool *opened)
{
    *opened = false;
    skip_blanks(w);
    if (w->p == w->end)
        return -EINVAL;
    struct sz_json_node *node = add(w);
    if (*w->p == '"') {
        w->p++;
        return read_string(w, node);
    }
    bool object = *w->p == '{';
    if (!object && *w->p != '[') {
        read_literal(w, node);
        return 0;
    }
    SZ_ASSERT(w->depth < SZ_JSON_TREE_DEPTH); /* checked */
    node->type = object ? SZ_JSON_OBJECT : SZ_JSON_ARRAY;
    w->open[w->depth++] = (uint16_t)(node - w->tree->v);
    w->p++;
    if (take(w, object ? '}' : ']'))
        return close_container(w);
    *opened = true;
    return object ? read_name(w) : 0;
}

/* After a value: closes what ends here.  *more: another value follows. */
static int read_follow(struct walk *w, bool *more)
{
    while (w->depth != 0) {
        bool object = w->tree->v[w->open[w->depth - 1]].type == SZ_JSON_OBJECT;
        if (take(w, ',')) {
            *more = true;
            return object ? read_name(w) : 0;
        }
        if (!take(w, object ? '}' : ']'))
            return -EINVAL;
        int rc = close_container(w);
        if (rc != 0)
            return rc;
    }
    *more = false;
    return 0;
}

int sz_json_read(struct sz_json_tree *tree, char *text, size_t n)
{
    struct walk w = {.tree = tree, .text = text, .p = text, .end = text + n};
    size_t at;
    tree->text = text;
    tree->n = 0;
    if (n > SZ_JSON_TEXT_MAX)
        return -E2BIG;
    if (sz_json_check(sz_slice(text, n), SZ_JSON_TREE_DEPTH, &at) != 0)
        return -EINVAL;
    bool more = true;
    int rc = 0;
    while (rc == 0 && more) {
        bool opened;
        rc = read_value(&w, &opened);
        if (rc == 0 && !opened)
            rc = read_follow(&w, &more);
    }
    return rc;
}

/* ---- looking --------------------------------------------------------------------------------------------------- */

const struct sz_json_node *sz_json_get(const struct sz_json_tree *tree, const struct sz_json_node *object,
                                       struct sz_slice name)
{
    if (!sz_json_is(object, SZ_JSON_OBJECT))
        return NULL;
    uint16_t at = (uint16_t)(object - tree->v + 1);
    for (; at < object->next; at = tree->v[at + 1].next) {
        if (tree->v[at].n == name.n && sz_eq(sz_json_slice(tree, &tree->v[at]), name))
            return &tree->v[at + 1];
    }
    return NULL;
}

struct sz_slice sz_json_get_string(const struct sz_json_tree *tree, const struct sz_json_node *object,
                                   struct sz_slice name)
{
    const struct sz_json_node *node = sz_json_get(tree, object, name);
    return sz_json_is(node, SZ_JSON_STRING) ? sz_json_slice(tree, node) : SZ_NONE;
}

const struct sz_json_node *sz_json_next(const struct sz_json_tree *tree, const struct sz_json_node *array,
                                        const struct sz_json_node *item)
{
    uint16_t at = item == NULL ? (uint16_t)(array - tree->v + 1) : item->next;
    return at < array->next ? &tree->v[at] : NULL;
}

size_t sz_json_members(const struct sz_json_tree *tree, const struct sz_json_node *object)
{
    size_t n = 0;
    for (uint16_t at = (uint16_t)(object - tree->v + 1); at < object->next; at = tree->v[at + 1].next)
        n++;
    return n;
}

int sz_json_integer(const struct sz_json_tree *tree, const struct sz_json_node *number, int64_t *out)
{
    struct sz_slice s = sz_json_slice(tree, number);
    bool negative = s.n != 0 && s.p[0] == '-';
    int64_t value = 0;
    for (size_t i = negative; i < s.n; i++) {
        if (s.p[i] < '0' || s.p[i] > '9')
            return -EINVAL;
        if (__builtin_mul_overflow(value, 10, &value) ||
            __builtin_sub_overflow(value, s.p[i] - '0', &value)) /* below zero, where there is one more */
            return -ERANGE;
    }
    if (!negative && value == INT64_MIN)
        return -ERANGE;
    *out = negative ? value : -value;
    return 0;
}

int sz_json_real(const struct sz_json_tree *tree, const struct sz_json_node *number, double *out)
{
    struct sz_slice s = sz_json_slice(tree, number);
    char literal[NUMBER_MAX];
    if (s.n >= sizeof(literal))
        return -ERANGE;
    memcpy(literal, s.p, s.n);
    literal[s.n] = '\0';
    *out = strtod(literal, NULL); /* the process keeps the C locale */
    return isfinite(*out) ? 0 : -ERANGE;
}

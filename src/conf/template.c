/*
 * Templates: literal text and {variables}.  Parsed once, with every name resolved to a slot, so that a
 * request only copies; a name that does not exist is found here and not by the first request.
 */
#include "conf/build.h"

#define PARTS_MAX 32

struct scan {
    struct sz_builder *b;
    const struct sz_node *at;
    const struct sz_pattern *pattern;
    bool each; /* {claims.x[]} may stand in it */
    struct sz_template_part parts[PARTS_MAX];
    size_t n;
    struct sz_buf literal;
};

static bool add_part(struct scan *s, struct sz_template_part part)
{
    if (s->n == PARTS_MAX) {
        sz_mistake(s->b->l, s->at, "a template has at most %d parts", PARTS_MAX);
        return false;
    }
    s->parts[s->n++] = part;
    return true;
}

static bool flush_literal(struct scan *s)
{
    if (s->literal.n == 0)
        return true;
    struct sz_slice text = sz_slice(sz_pool_strdup(s->b->l->pool, sz_buf_slice(&s->literal)), s->literal.n);
    s->literal.n = 0;
    return add_part(s, (struct sz_template_part){.var = SZ_VAR_LITERAL, .text = text});
}

static struct sz_slice copy_name(struct scan *s, struct sz_slice name, bool lower)
{
    struct sz_pool *pool = s->b->l->pool;
    return lower ? sz_pool_lower(pool, name) : sz_slice(sz_pool_strdup(pool, name), name.n);
}

/* What a message may repeat: a value from the environment may be a secret. */
static struct sz_slice shown(const struct scan *s, struct sz_slice name)
{
    return s->at->expanded ? SZ_S("...") : name;
}

static bool claim_part(struct scan *s, struct sz_slice name)
{
    bool each = name.n > 2 && name.p[name.n - 2] == '[' && name.p[name.n - 1] == ']';
    if (each && !s->each) {
        sz_mistake(s->b->l, s->at, "{claims.%.*s}: only 'contextual_tuples' take the items of a list one by one",
                   SZ_FMT(shown(s, name)));
        return false;
    }
    name.n -= each ? 2 : 0;
    int slot = sz_claim_slot(s->b, s->at, name);
    return slot >= 0 &&
           add_part(s,
                    (struct sz_template_part){
                        .var = SZ_VAR_CLAIM, .text = copy_name(s, name, false), .slot = (unsigned)slot, .each = each});
}

static bool path_part(struct scan *s, struct sz_slice name)
{
    int index = sz_pattern_param(s->pattern, name);
    if (index < 0) {
        name = shown(s, name);
        sz_mistake(s->b->l, s->at, "{path.%.*s}: the route's path has no {%.*s}", SZ_FMT(name), SZ_FMT(name));
        return false;
    }
    return add_part(
        s, (struct sz_template_part){.var = SZ_VAR_PATH, .text = copy_name(s, name, false), .slot = (unsigned)index});
}

/* A credential must not travel on in a header of another name, nor into an authorization question or its log. */
static bool header_part(struct scan *s, struct sz_slice name)
{
    static const char *const secret[] = {"authorization", "proxy-authorization", "cookie"};
    struct sz_slice lower = copy_name(s, name, true);
    for (size_t i = 0; i < SZ_COUNT(secret); i++) {
        if (sz_eq(lower, sz_cstr(secret[i]))) {
            sz_mistake(s->b->l, s->at, "{header.%s} holds credentials; no template may copy them", secret[i]);
            return false;
        }
    }
    return add_part(s, (struct sz_template_part){.var = SZ_VAR_HEADER, .text = lower});
}

static bool variable(struct scan *s, struct sz_slice name)
{
    static const struct {
        struct sz_slice name;
        enum sz_var var;
    } simple[] = {{{"method", 6}, SZ_VAR_METHOD},
                  {{"client.ip", 9}, SZ_VAR_CLIENT_IP},
                  {{"now", 3}, SZ_VAR_NOW},
                  {{"issuer", 6}, SZ_VAR_ISSUER}};
    for (size_t i = 0; i < SZ_COUNT(simple); i++) {
        if (sz_eq(name, simple[i].name))
            return add_part(s, (struct sz_template_part){.var = simple[i].var, .text = simple[i].name});
    }
    if (sz_starts_with(name, SZ_S("claims.")) && name.n > 7)
        return claim_part(s, sz_from(name, 7));
    if (sz_starts_with(name, SZ_S("path.")) && name.n > 5)
        return path_part(s, sz_from(name, 5));
    if (sz_starts_with(name, SZ_S("query.")) && name.n > 6)
        return add_part(s,
                        (struct sz_template_part){.var = SZ_VAR_QUERY, .text = copy_name(s, sz_from(name, 6), false)});
    if (sz_starts_with(name, SZ_S("header.")) && name.n > 7)
        return header_part(s, sz_from(name, 7));
    sz_mistake(s->b->l, s->at,
               "{%.*s} is no variable; there are {claims.NAME} {path.NAME} {query.NAME} {header.NAME} {method} "
               "{client.ip} {now} {issuer}, and {{ for a brace",
               SZ_FMT(shown(s, name)));
    return false;
}

/* One step from offset i: a doubled brace, a variable or a byte.  Returns the next offset, 0 after a mistake. */
static size_t step(struct scan *s, struct sz_slice source, size_t i)
{
    struct sz_slice rest = sz_from(source, i);
    if (sz_starts_with(rest, SZ_S("{{")) || sz_starts_with(rest, SZ_S("}}"))) {
        sz_buf_add(&s->literal, rest.p, 1);
        return i + 2;
    }
    if (rest.p[0] == '{') {
        ptrdiff_t end = sz_find_byte(rest, '}');
        if (end > 0)
            return flush_literal(s) && variable(s, sz_sub(rest, 1, (size_t)end - 1)) ? i + (size_t)end + 1 : 0;
    }
    if (rest.p[0] == '{' || rest.p[0] == '}') {
        sz_mistake(s->b->l, s->at, "'%c' without its partner; write %c%c for a brace", rest.p[0], rest.p[0], rest.p[0]);
        return 0;
    }
    sz_buf_add(&s->literal, rest.p, 1);
    return i + 1;
}

static bool parse(struct scan *s, struct sz_slice source, struct sz_template *out)
{
    bool ok = true;
    for (size_t i = 0; i < source.n && ok;) {
        i = step(s, source, i);
        ok = i != 0;
    }
    ok = ok && flush_literal(s);
    sz_buf_fini(&s->literal);
    if (!ok)
        return false;
    struct sz_template_part *parts = sz_pool_alloc(s->b->l->pool, s->n * sizeof(*parts));
    memcpy(parts, s->parts, s->n * sizeof(*parts));
    *out = (struct sz_template){parts, s->n, source};
    return true;
}

bool sz_template_parse(struct sz_builder *b, const struct sz_node *at, const struct sz_pattern *pattern,
                       struct sz_slice source, struct sz_template *out)
{
    struct scan s = {.b = b, .at = at, .pattern = pattern};
    return parse(&s, source, out);
}

bool sz_template_parse_each(struct sz_builder *b, const struct sz_node *at, const struct sz_pattern *pattern,
                            struct sz_slice source, struct sz_template *out)
{
    struct scan s = {.b = b, .at = at, .pattern = pattern, .each = true};
    return parse(&s, source, out);
}

bool sz_template_uses(const struct sz_template *t, enum sz_var var, unsigned slot)
{
    for (size_t i = 0; i < t->n; i++) {
        if (t->parts[i].var == var && (var != SZ_VAR_CLAIM || t->parts[i].slot == slot))
            return true;
    }
    return false;
}

/*
 * A route's relation checks.  The type of an object or user and the relation are literal: a
 * claim may fill in an id and never choose what kind of thing it is the id of.
 */
#include "conf/build.h"

/* Literal text that may stand in an id: FGA ids hold no blanks and no '#'; ':' only ends the type. */
static const char *bad_id_byte(struct sz_slice s, bool user)
{
    for (size_t i = 0; i < s.n; i++) {
        unsigned char c = (unsigned char)s.p[i];
        if (c <= 0x20 || c == 0x7f)
            return "a blank";
        if (c == ':')
            return "a second ':'";
        if (c == '#' && !user)
            return "'#'";
        if (c == '*' && !(user && s.n == 1))
            return "'*'";
    }
    return NULL;
}

static bool type_ok(struct sz_slice type)
{
    for (size_t i = 0; i < type.n; i++) {
        unsigned char c = (unsigned char)type.p[i];
        if (c <= 0x20 || c == 0x7f || c == '#' || c == '@' || c == '*')
            return false;
    }
    return type.n > 0 && type.n <= 254;
}

/* "group:x#member": the relation behind '#' is literal to its end. */
static bool userset_ok(const struct sz_template *t)
{
    for (size_t i = 0; i < t->n; i++) {
        struct sz_slice text = t->parts[i].text;
        ptrdiff_t hash = t->parts[i].var == SZ_VAR_LITERAL ? sz_find_byte(text, '#') : -1;
        if (hash >= 0)
            return i + 1 == t->n && (size_t)hash + 1 < text.n && sz_find_byte(sz_from(text, (size_t)hash + 1), '#') < 0;
    }
    return true;
}

static void check_form(struct sz_builder *b, const struct sz_node *at, const char *name, const struct sz_template *t)
{
    bool user = *name == 'u';
    struct sz_slice first = t->parts[0].var == SZ_VAR_LITERAL ? t->parts[0].text : SZ_NONE;
    ptrdiff_t colon = sz_find_byte(first, ':');
    if (colon < 0 || !type_ok(sz_sub(first, 0, (size_t)colon))) {
        sz_mistake(b->l, at, "'%s' begins with a literal type and ':', such as %s", name,
                   user ? "user:{claims.sub}" : "document:{path.id}");
        return;
    }
    if (t->n == 1 && (size_t)colon + 1 == first.n) {
        sz_mistake(b->l, at, "'%s' has no id behind '%.*s'", name, SZ_FMT(first));
        return;
    }
    for (size_t i = 0; i < t->n; i++) {
        if (t->parts[i].var != SZ_VAR_LITERAL)
            continue;
        const char *bad = bad_id_byte(i == 0 ? sz_from(first, (size_t)colon + 1) : t->parts[i].text, user);
        if (bad != NULL) {
            sz_mistake(b->l, at, "'%s' holds %s, which no id may", name, bad);
            return;
        }
    }
    if (user && !userset_ok(t))
        sz_mistake(b->l, at, "behind '#' stands a relation, literally and last: group:{claims.team}#member");
}

static bool in_issuer_name(const struct sz_builder *b, char c)
{
    for (size_t i = 0; i < b->conf->issuers_n; i++) {
        if (sz_find_byte(b->conf->issuers[i].name, c) >= 0)
            return true;
    }
    return false;
}

/* No value of this variable brings the byte into an id, where pipeline/template.c writes some bytes as %XX. */
static bool cannot_hold(const struct sz_builder *b, enum sz_var var, char c)
{
    if (strchr(":#@*", c) != NULL)
        return true;
    switch (var) {
    case SZ_VAR_PATH:
        return c == '/';
    case SZ_VAR_ISSUER:
        return !in_issuer_name(b, c);
    case SZ_VAR_METHOD:
        return c != '-' && !(c >= 'A' && c <= 'Z');
    case SZ_VAR_NOW:
        return !(c >= '0' && c <= '9');
    default:
        return false;
    }
}

/* With "{a}-{b}", x-y and z give the same id as x and y-z: whoever may see the one would see the other. */
static void check_apart(struct sz_builder *b, const struct sz_node *at, const char *name, const struct sz_template *t)
{
    for (size_t i = 0; i + 1 < t->n; i++) {
        enum sz_var var = t->parts[i].var;
        const struct sz_template_part *next = &t->parts[i + 1];
        bool apart = var == SZ_VAR_LITERAL || (next->var == SZ_VAR_LITERAL && i + 2 == t->n);
        for (size_t k = 0; next->var == SZ_VAR_LITERAL && k < next->text.n; k++)
            apart |= cannot_hold(b, var, next->text.p[k]);
        if (!apart)
            sz_mistake(b->l, at,
                       "variables in '%s' run together: different values would give one id; put '@' between them",
                       name);
    }
}

void sz_check_entity(struct sz_builder *b, const struct sz_node *at, const char *name, const struct sz_template *t)
{
    check_form(b, at, name, t);
    check_apart(b, at, name, t);
}

void sz_check_relation(struct sz_builder *b, const struct sz_node *at, const struct sz_template *t)
{
    bool ok = t->n == 1 && t->parts[0].var == SZ_VAR_LITERAL && t->parts[0].text.n <= 50;
    for (size_t i = 0; ok && i < t->parts[0].text.n; i++) {
        unsigned char c = (unsigned char)t->parts[0].text.p[i];
        ok = c > 0x20 && c != 0x7f && c != ':' && c != '#' && c != '@';
    }
    if (!ok)
        sz_mistake(b->l, at, "'relation' is one literal word of up to 50 bytes without ':', '#', '@' or variables");
}

/* A question about whoever the client says it is: legitimate now and then, a hole mostly. */
static void check_who(struct sz_builder *b, const struct sz_node *at, const struct sz_template *t)
{
    bool claimed = false, chosen = false;
    for (size_t i = 0; i < t->n; i++) {
        enum sz_var var = t->parts[i].var;
        claimed = claimed || var == SZ_VAR_CLAIM;
        chosen = chosen || var == SZ_VAR_PATH || var == SZ_VAR_QUERY || var == SZ_VAR_HEADER;
    }
    if (chosen && !claimed)
        sz_warning(b->l, at,
                   "'user' comes from the request, not from the token: any caller can name any user; {claims.sub} is "
                   "who asks");
}

void sz_check_whose(struct sz_builder *b, const struct sz_node *at, const struct sz_conf_route *route,
                    const struct sz_template *user)
{
    if (route->issuers_n > 1 && !route->shared_subjects && !sz_template_uses(user, SZ_VAR_ISSUER, 0) && user->n > 1)
        sz_mistake(b->l, at,
                   "several issuers, and the same 'sub' of two is two people: put {issuer} into 'user', or say "
                   "'shared_subjects: true'");
}

static void one(struct sz_builder *b, const struct sz_node *node, const struct sz_raw_check *raw,
                const struct sz_pattern *pattern, const struct sz_conf_route *route, struct sz_conf_check *out)
{
    const struct sz_node *user = sz_node_get(node, "user");
    if (raw->user.p != NULL && sz_template_parse(b, user, pattern, raw->user, &out->user)) {
        sz_check_entity(b, user, "user", &out->user);
        check_who(b, user, &out->user);
        sz_check_whose(b, user, route, &out->user);
    }
    if (raw->relation.p != NULL &&
        sz_template_parse(b, sz_node_get(node, "relation"), pattern, raw->relation, &out->relation))
        sz_check_relation(b, sz_node_get(node, "relation"), &out->relation);
    const struct sz_node *object = sz_node_get(node, "object");
    if (raw->object.p != NULL && sz_template_parse(b, object, pattern, raw->object, &out->object)) {
        sz_check_entity(b, object, "object", &out->object);
    }
    sz_build_question(b, node, &raw->context, &raw->tuples, pattern, route, out);
}

/* The three forms: one check in place, `all` or `any`. */
static const struct sz_raw_check *checks_of(struct sz_builder *b, const struct sz_raw_authorize *raw,
                                            struct sz_raw_check *single, size_t *n)
{
    const struct sz_node *node = raw->head.node;
    bool all = sz_node_get(node, "all") != NULL, any = sz_node_get(node, "any") != NULL;
    bool place = sz_node_get(node, "user") != NULL || sz_node_get(node, "relation") != NULL ||
                 sz_node_get(node, "object") != NULL || sz_node_get(node, "context") != NULL ||
                 sz_node_get(node, "contextual_tuples") != NULL;
    *n = 0;
    if (all + any + place > 1) {
        sz_mistake(b->l, node, "'authorize' is one check, or 'all', or 'any'; nothing but 'consistency' beside these");
        return NULL;
    }
    if (all || any) {
        *n = all ? raw->all.n : raw->any.n;
        return all ? raw->all.v : raw->any.v;
    }
    if (raw->user.p == NULL || raw->relation.p == NULL || raw->object.p == NULL)
        sz_mistake(b->l, node, "'authorize' needs 'user', 'relation' and 'object'");
    *single = (struct sz_raw_check){.head = raw->head,
                                    .user = raw->user,
                                    .relation = raw->relation,
                                    .object = raw->object,
                                    .context = raw->context,
                                    .tuples = raw->tuples};
    *n = 1;
    return single;
}

static const char *where(const struct sz_builder *b, const struct sz_conf_route *route, const char *list, size_t i)
{
    size_t index = (size_t)(route - b->conf->routes);
    return list == NULL ? sz_pool_printf(b->l->pool, "routes.%zu.authorize", index).p
                        : sz_pool_printf(b->l->pool, "routes.%zu.authorize.%s.%zu", index, list, i).p;
}

void sz_build_authorize(struct sz_builder *b, const struct sz_raw_route *route, const struct sz_pattern *pattern,
                        struct sz_conf_route *out)
{
    const struct sz_raw_authorize *raw = &route->authorize;
    struct sz_raw_check single;
    if (raw->head.node == NULL)
        return;
    if (b->raw->fga.head.node == NULL)
        sz_mistake(b->l, sz_node_key(route->head.node, "authorize"), "'authorize' needs 'fga': where to ask");
    size_t n;
    const struct sz_raw_check *checks = checks_of(b, raw, &single, &n);
    struct sz_conf_check *v = sz_pool_zalloc(b->l->pool, n * sizeof(*v));
    for (size_t i = 0; i < n; i++) {
        v[i].where = where(b, out, checks == &single ? NULL : raw->any.n > 0 ? "any" : "all", i);
        if (checks[i].head.node != NULL)
            one(b, checks[i].head.node, &checks[i], pattern, out, &v[i]);
    }
    out->consistency = (enum sz_consistency)raw->consistency;
    out->checks = v;
    out->checks_n = n;
    out->authorize = raw->any.n > 0 ? SZ_AUTHORIZE_ANY : SZ_AUTHORIZE_ALL;
}

/*
 * What a check brings along: values for the model's conditions, and tuples that hold for the one question.
 *
 * A contextual tuple grants something, so what it says comes from the token and from the configuration; a part that the
 * client writes freely is warned about.  As everywhere, types and relations are literal.
 */
#include <stdlib.h>

#include "conf/build.h"

/* ---- context ---------------------------------------------------------------------------------------------------- */

static bool name_ok(struct sz_slice name)
{
    for (size_t i = 0; i < name.n; i++) {
        char c = name.p[i];
        bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
        if (!letter && (i == 0 || c < '0' || c > '9'))
            return false;
    }
    return name.n > 0;
}

static struct sz_slice json_name(struct sz_builder *b, struct sz_slice name)
{
    return sz_pool_printf(b->l->pool, "\"%.*s\":", SZ_FMT(name));
}

static int by_name(const void *a, const void *c)
{
    const struct sz_conf_context *one = a, *other = c;
    return sz_cmp(sz_from(one->name, 1), sz_from(other->name, 1)); /* the quote behind it is below every letter */
}

/* Sorted, so that the same values are the same bytes, by which decisions are kept. */
static void build_context(struct sz_builder *b, const struct sz_node *node, const struct sz_raw_list *raw,
                          const struct sz_pattern *pattern, struct sz_conf_check *out)
{
    const struct sz_raw_entry *entries = raw->v;
    struct sz_conf_context *v = sz_pool_zalloc(b->l->pool, raw->n * sizeof(*v));
    size_t n = 0;
    for (size_t i = 0; i < raw->n; i++) {
        const struct sz_node *at = sz_node_get(node, entries[i].head.name.p);
        if (!name_ok(entries[i].head.name)) {
            sz_mistake(b->l, entries[i].head.node, "a condition's parameter has letters, digits and '_'");
            continue;
        }
        v[n].name = json_name(b, entries[i].head.name);
        if (entries[i].plain)
            v[n].json = entries[i].values.v[0];
        else if (!sz_template_parse(b, at, pattern, entries[i].values.v[0], &v[n].value))
            continue;
        n++;
    }
    if (n > 0)
        qsort(v, n, sizeof(*v), by_name);
    out->context = v;
    out->context_n = n;
}

/* ---- contextual tuples ------------------------------------------------------------------------------------------ */

/* The one claim that the tuple is written out for; a second one would multiply. */
static const struct sz_template_part *each_of(struct sz_builder *b, const struct sz_node *at,
                                              const struct sz_conf_tuple *tuple)
{
    const struct sz_template *both[] = {&tuple->user, &tuple->object};
    const struct sz_template_part *found = NULL;
    for (size_t k = 0; k < SZ_COUNT(both); k++) {
        for (size_t i = 0; i < both[k]->n; i++) {
            const struct sz_template_part *part = &both[k]->parts[i];
            if (part->each && found != NULL && found->slot != part->slot)
                sz_mistake(b->l, at, "one list at a time: a contextual tuple with the items of two would be all pairs");
            found = part->each ? part : found;
        }
    }
    return found;
}

static bool client_writes(const struct sz_template *t)
{
    return sz_template_uses(t, SZ_VAR_QUERY, 0) || sz_template_uses(t, SZ_VAR_HEADER, 0);
}

static bool has_claims(const struct sz_template *t)
{
    for (size_t i = 0; i < t->n; i++) {
        if (t->parts[i].var == SZ_VAR_CLAIM)
            return true;
    }
    return false;
}

static void check_tuple(struct sz_builder *b, const struct sz_node *node, const struct sz_conf_route *route,
                        struct sz_conf_tuple *tuple)
{
    const struct sz_node *user = sz_node_get(node, "user"), *object = sz_node_get(node, "object");
    sz_check_entity(b, user, "user", &tuple->user);
    sz_check_entity(b, object, "object", &tuple->object);
    sz_check_whose(b, user, route, &tuple->user);
    if (client_writes(&tuple->user) || client_writes(&tuple->object))
        sz_warning(b->l, node,
                   "{query...} and {header...} in a contextual tuple: the client writes what it is granted; claims are "
                   "what the token's issuer says");
    if (route->issuers_n > 1 && !route->shared_subjects && has_claims(&tuple->object) &&
        !sz_template_uses(&tuple->object, SZ_VAR_ISSUER, 0))
        sz_warning(b->l, object,
                   "several issuers: what each of them calls by the same name is one object here; put {issuer} into "
                   "'object' to keep them apart");
    tuple->each = each_of(b, node, tuple);
}

static void one(struct sz_builder *b, const struct sz_raw_tuple *raw, const struct sz_pattern *pattern,
                const struct sz_conf_route *route, struct sz_conf_tuple *out)
{
    const struct sz_node *node = raw->head.node;
    struct sz_template relation;
    if (raw->user.p == NULL || raw->relation.p == NULL || raw->object.p == NULL)
        return;
    out->relation = raw->relation;
    out->condition = raw->condition;
    if (sz_template_parse(b, sz_node_get(node, "relation"), pattern, raw->relation, &relation))
        sz_check_relation(b, sz_node_get(node, "relation"), &relation);
    if (sz_template_parse_each(b, sz_node_get(node, "user"), pattern, raw->user, &out->user) &&
        sz_template_parse_each(b, sz_node_get(node, "object"), pattern, raw->object, &out->object))
        check_tuple(b, node, route, out);
}

void sz_build_question(struct sz_builder *b, const struct sz_node *node, const struct sz_raw_list *context,
                       const struct sz_raw_list *tuples, const struct sz_pattern *pattern,
                       const struct sz_conf_route *route, struct sz_conf_check *out)
{
    const struct sz_raw_tuple *raw = tuples->v;
    struct sz_conf_tuple *v = sz_pool_zalloc(b->l->pool, tuples->n * sizeof(*v));
    build_context(b, sz_node_get(node, "context"), context, pattern, out);
    for (size_t i = 0; i < tuples->n; i++) {
        if (raw[i].head.node != NULL)
            one(b, &raw[i], pattern, route, &v[i]);
    }
    out->tuples = v;
    out->tuples_n = tuples->n;
}

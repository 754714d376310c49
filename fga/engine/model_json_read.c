/*
 * The API's JSON form -> model.  Shape only: what it means is checked by the validators.  Unknown
 * members are ignored, as the API does; both spellings of member names (camel and snake) are read.
 */
#include "fga/engine/model.h"

#include <jansson.h>

struct reader {
    struct sz_model *m;
    struct sz_problems *problems;
};

static void fail(struct reader *r, const char *where, const char *what)
{
    sz_problems_add(r->problems, "json", "%s: %s", where, what);
}

static const json_t *member(const json_t *o, const char *camel, const char *snake)
{
    const json_t *v = json_object_get(o, camel);
    if (v == NULL && snake != NULL)
        v = json_object_get(o, snake);
    return json_is_null(v) ? NULL : v;
}

/* A copied string; SZ_NONE when absent.  Anything but a string is a problem. */
static struct sz_slice text(struct reader *r, const json_t *v, const char *where)
{
    if (v == NULL || json_is_null(v))
        return SZ_NONE;
    if (!json_is_string(v)) {
        fail(r, where, "must be a string");
        return SZ_NONE;
    }
    return sz_pool_dup(&r->m->arena.pool, sz_slice(json_string_value(v), json_string_length(v)));
}

static struct sz_slice source_file(struct reader *r, const json_t *meta)
{
    return text(r, json_object_get(member(meta, "source_info", "sourceInfo"), "file"), "source_info.file");
}

static struct sz_slice relation_in(struct reader *r, const json_t *o)
{
    struct sz_slice s = text(r, json_object_get(o, "relation"), "relation");
    return s.p != NULL ? s : SZ_S("");
}

static struct sz_rw *read_rewrite(struct reader *r, const json_t *o, unsigned depth);

static struct sz_rw *read_children(struct reader *r, enum sz_rw_op op, const json_t *list, unsigned depth)
{
    struct sz_rw *rw = sz_model_rw(r->m, op);
    size_t i;
    json_t *v;
    json_array_foreach((json_t *)list, i, v)
    {
        struct sz_rw *child = read_rewrite(r, v, depth + 1);
        if (child == NULL)
            return NULL;
        sz_model_rw_add(r->m, rw, child);
    }
    return rw;
}

static struct sz_rw *read_difference(struct reader *r, const json_t *o, unsigned depth)
{
    struct sz_rw *base = read_rewrite(r, json_object_get(o, "base"), depth + 1);
    struct sz_rw *subtract = read_rewrite(r, json_object_get(o, "subtract"), depth + 1);
    if (base == NULL || subtract == NULL)
        return NULL;
    struct sz_rw *rw = sz_model_rw(r->m, SZ_RW_DIFFERENCE);
    sz_model_rw_add(r->m, rw, base);
    sz_model_rw_add(r->m, rw, subtract);
    return rw;
}

/* NULL: nothing known in it (a problem was added). */
static struct sz_rw *read_rewrite(struct reader *r, const json_t *o, unsigned depth)
{
    const json_t *v;
    if (depth > SZ_MODEL_NEST) {
        fail(r, "relations", "rewrites are nested too deeply");
        return NULL;
    }
    if (member(o, "this", NULL) != NULL)
        return sz_model_rw(r->m, SZ_RW_THIS);
    if ((v = member(o, "computedUserset", "computed_userset")) != NULL) {
        struct sz_rw *rw = sz_model_rw(r->m, SZ_RW_COMPUTED);
        rw->relation = relation_in(r, v);
        return rw;
    }
    if ((v = member(o, "tupleToUserset", "tuple_to_userset")) != NULL) {
        struct sz_rw *rw = sz_model_rw(r->m, SZ_RW_TTU);
        rw->tupleset = relation_in(r, json_object_get(v, "tupleset"));
        rw->relation = relation_in(r, member(v, "computedUserset", "computed_userset"));
        return rw;
    }
    if ((v = member(o, "union", NULL)) != NULL)
        return read_children(r, SZ_RW_UNION, json_object_get(v, "child"), depth);
    if ((v = member(o, "intersection", NULL)) != NULL)
        return read_children(r, SZ_RW_INTERSECTION, json_object_get(v, "child"), depth);
    if ((v = member(o, "difference", NULL)) != NULL)
        return read_difference(r, v, depth);
    fail(r, "relations",
         "a rewrite must be one of this, computedUserset, tupleToUserset, union, intersection, difference");
    return NULL;
}

static void read_refs(struct reader *r, struct sz_rel *rel, const json_t *list)
{
    size_t i;
    json_t *v;
    json_array_foreach((json_t *)list, i, v)
    {
        struct sz_ref *ref = sz_model_add_ref(r->m, rel);
        ref->type = text(r, json_object_get(v, "type"), "directly_related_user_types.type");
        if (ref->type.p == NULL)
            ref->type = SZ_S("");
        ref->relation = text(r, json_object_get(v, "relation"), "directly_related_user_types.relation");
        ref->condition = text(r, json_object_get(v, "condition"), "directly_related_user_types.condition");
        if (ref->relation.n == 0)
            ref->relation = SZ_NONE;
        if (ref->condition.n == 0)
            ref->condition = SZ_NONE;
        ref->wildcard = member(v, "wildcard", NULL) != NULL;
    }
}

static void read_type(struct reader *r, const json_t *o)
{
    struct sz_slice name = text(r, json_object_get(o, "type"), "type_definitions.type");
    if (name.p == NULL)
        name = SZ_S("");
    struct sz_type *t = sz_model_add_type(r->m, name);
    const json_t *meta = member(o, "metadata", NULL);
    t->has_metadata = meta != NULL;
    t->module = text(r, json_object_get(meta, "module"), "metadata.module");
    t->file = source_file(r, meta);
    const char *key;
    json_t *v;
    json_object_foreach((json_t *)member(o, "relations", NULL), key, v)
    {
        struct sz_rel *rel = sz_model_add_rel(r->m, t, sz_pool_dup(&r->m->arena.pool, sz_cstr(key)));
        rel->rw = read_rewrite(r, v, 0);
        const json_t *about = json_object_get(json_object_get(meta, "relations"), key);
        rel->described = about != NULL;
        rel->module = text(r, json_object_get(about, "module"), "metadata.relations.module");
        rel->file = source_file(r, about);
        read_refs(r, rel, member(about, "directly_related_user_types", "directlyRelatedUserTypes"));
    }
}

static enum sz_ptype type_name(const json_t *v)
{
    static const char prefix[] = "TYPE_NAME_";
    const char *s = json_string_value(v);
    char word[16] = "";
    if (s == NULL || strncmp(s, prefix, sizeof(prefix) - 1) != 0)
        return SZ_P_NONE;
    s += sizeof(prefix) - 1;
    size_t n = strlen(s);
    for (size_t i = 0; i < n && i + 1 < sizeof(word); i++)
        word[i] = (char)(s[i] >= 'A' && s[i] <= 'Z' ? s[i] + 32 : s[i]);
    return n < sizeof(word) ? sz_ptype_parse(sz_slice(word, n)) : SZ_P_NONE;
}

static void read_condition(struct reader *r, struct sz_slice key, const json_t *o)
{
    struct sz_cond *c = sz_model_add_cond(r->m, key);
    c->name = text(r, json_object_get(o, "name"), "conditions.name");
    c->expression = text(r, json_object_get(o, "expression"), "conditions.expression");
    if (c->name.p == NULL)
        c->name = SZ_S("");
    if (c->expression.p == NULL)
        c->expression = SZ_S("");
    const json_t *meta = member(o, "metadata", NULL);
    c->module = text(r, json_object_get(meta, "module"), "metadata.module");
    c->file = source_file(r, meta);
    const char *name;
    json_t *v;
    json_object_foreach((json_t *)member(o, "parameters", NULL), name, v)
    {
        struct sz_param *p = sz_model_add_param(r->m, c, sz_pool_dup(&r->m->arena.pool, sz_cstr(name)));
        p->type = type_name(member(v, "type_name", "typeName"));
        const json_t *generic = json_array_get(member(v, "generic_types", "genericTypes"), 0);
        p->element = type_name(member(generic, "type_name", "typeName"));
    }
}

struct sz_model *sz_model_json_read(const void *json, struct sz_problems *problems)
{
    struct reader r = {sz_model_new(), problems};
    const json_t *o = json;
    size_t before = problems->n, i;
    json_t *v;
    const char *key;
    if (!json_is_object(o))
        fail(&r, "model", "must be a JSON object");
    r.m->schema = text(&r, member(o, "schema_version", "schemaVersion"), "schema_version");
    json_array_foreach((json_t *)member(o, "type_definitions", "typeDefinitions"), i, v) read_type(&r, v);
    json_object_foreach((json_t *)member(o, "conditions", NULL), key, v)
        read_condition(&r, sz_pool_dup(&r.m->arena.pool, sz_cstr(key)), v);
    if (problems->n == before && sz_model_within_bounds(r.m, problems))
        return r.m;
    sz_model_free(r.m);
    return NULL;
}

struct sz_model *sz_model_json_parse(struct sz_slice s, struct sz_problems *problems)
{
    json_error_t err;
    json_t *o = json_loadb(s.p, s.n, JSON_REJECT_DUPLICATES, &err);
    if (o == NULL) {
        struct sz_problem *p = sz_problems_add(problems, "json", "%s", err.text);
        sz_problem_place(p, err.line > 0 ? (size_t)err.line - 1 : 0, err.column > 0 ? (size_t)err.column - 1 : 0,
                         err.column > 0 ? (size_t)err.column : 0);
        return NULL;
    }
    struct sz_model *m = sz_model_json_read(o, problems);
    json_decref(o);
    return m;
}

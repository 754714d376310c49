/*
 * Model -> the API's JSON form, exactly as the ecosystem's own tools write it: a relation's metadata
 * is there even when its list is empty, a type without relations says `metadata: null` unless it belongs to a module.
 */
#include "fga/engine/model.h"

#include <jansson.h>

static json_t *str(struct sz_slice s)
{
    return json_stringn(s.p != NULL ? s.p : "", s.n);
}

static void set(json_t *o, struct sz_slice key, json_t *v)
{
    json_object_setn_new(o, key.p, key.n, v);
}

static void set_source(json_t *meta, struct sz_slice module, struct sz_slice file)
{
    if (module.p != NULL)
        json_object_set_new(meta, "module", str(module));
    if (file.p != NULL)
        json_object_set_new(meta, "source_info", json_pack("{s:o}", "file", str(file)));
}

static json_t *relation(struct sz_slice name)
{
    return json_pack("{s:o}", "relation", str(name));
}

static json_t *rewrite(const struct sz_rw *rw);

static json_t *children(const struct sz_rw *rw)
{
    json_t *list = json_array();
    for (size_t i = 0; i < rw->n; i++)
        json_array_append_new(list, rewrite(rw->child[i]));
    return json_pack("{s:o}", "child", list);
}

static json_t *rewrite(const struct sz_rw *rw)
{
    switch (rw->op) {
    case SZ_RW_THIS:
        return json_pack("{s:{}}", "this");
    case SZ_RW_COMPUTED:
        return json_pack("{s:o}", "computedUserset", relation(rw->relation));
    case SZ_RW_TTU:
        return json_pack("{s:{s:o, s:o}}", "tupleToUserset", "computedUserset", relation(rw->relation), "tupleset",
                         relation(rw->tupleset));
    case SZ_RW_UNION:
        return json_pack("{s:o}", "union", children(rw));
    case SZ_RW_INTERSECTION:
        return json_pack("{s:o}", "intersection", children(rw));
    case SZ_RW_DIFFERENCE:
        return json_pack("{s:{s:o, s:o}}", "difference", "base", rewrite(rw->child[0]), "subtract",
                         rewrite(rw->child[1]));
    }
    return json_object();
}

static json_t *refs(const struct sz_rel *r)
{
    json_t *list = json_array();
    for (size_t i = 0; i < r->n_refs; i++) {
        json_t *o = json_pack("{s:o}", "type", str(r->refs[i].type));
        if (r->refs[i].relation.p != NULL)
            json_object_set_new(o, "relation", str(r->refs[i].relation));
        if (r->refs[i].wildcard)
            json_object_set_new(o, "wildcard", json_object());
        if (r->refs[i].condition.p != NULL)
            json_object_set_new(o, "condition", str(r->refs[i].condition));
        json_array_append_new(list, o);
    }
    return list;
}

static json_t *type_definition(const struct sz_type *t)
{
    json_t *relations = json_object(), *about = json_object();
    for (size_t i = 0; i < t->n_rels; i++) {
        const struct sz_rel *r = &t->rels[i];
        if (r->rw != NULL)
            set(relations, r->name, rewrite(r->rw));
        if (!r->described)
            continue;
        json_t *meta = json_pack("{s:o}", "directly_related_user_types", refs(r));
        set_source(meta, r->module, r->file);
        set(about, r->name, meta);
    }
    json_t *meta = t->has_metadata ? json_object() : json_null();
    if (t->has_metadata && json_object_size(about) > 0)
        json_object_set(meta, "relations", about);
    json_decref(about);
    if (t->has_metadata)
        set_source(meta, t->module, t->file);
    return json_pack("{s:o, s:o, s:o}", "type", str(t->name), "relations", relations, "metadata", meta);
}

static json_t *type_name(enum sz_ptype t)
{
    char name[32] = "TYPE_NAME_";
    size_t n = strlen(name);
    for (const char *s = sz_ptype_word(t); *s != '\0'; s++)
        name[n++] = (char)(*s >= 'a' && *s <= 'z' ? *s - 32 : *s);
    return json_stringn(name, n);
}

static json_t *condition(const struct sz_cond *c)
{
    json_t *params = json_object();
    for (size_t i = 0; i < c->n_params; i++) {
        json_t *p = json_pack("{s:o}", "type_name", type_name(c->params[i].type));
        if (c->params[i].element != SZ_P_NONE)
            json_object_set_new(p, "generic_types", json_pack("[{s:o}]", "type_name", type_name(c->params[i].element)));
        set(params, c->params[i].name, p);
    }
    json_t *o =
        json_pack("{s:o, s:o, s:o}", "name", str(c->name), "expression", str(c->expression), "parameters", params);
    if (c->module.p != NULL || c->file.p != NULL) {
        json_t *meta = json_object();
        set_source(meta, c->module, c->file);
        json_object_set_new(o, "metadata", meta);
    }
    return o;
}

void *sz_model_json_write(const struct sz_model *m)
{
    json_t *o = json_object();
    if (m->schema.p != NULL)
        json_object_set_new(o, "schema_version", str(m->schema));
    if (m->n_types > 0) {
        json_t *types = json_array();
        for (size_t i = 0; i < m->n_types; i++)
            json_array_append_new(types, type_definition(&m->types[i]));
        json_object_set_new(o, "type_definitions", types);
    }
    if (m->n_conds > 0) {
        json_t *conds = json_object();
        for (size_t i = 0; i < m->n_conds; i++)
            set(conds, m->conds[i].key, condition(&m->conds[i]));
        json_object_set_new(o, "conditions", conds);
    }
    return o;
}

void sz_json_free(void *json)
{
    json_decref(json);
}

/*
 * The rules of identifiers and of what may be written, in the order in which the API applies them.
 */
#include "fga/engine/validate.h"

#include <errno.h>
#include <jansson.h>

#include "subzero/crypto.h"

enum { OBJECT_MAX = 256, RELATION_MAX = 50, TYPE_MAX = 254, USER_MAX = 512, CONTEXT_MAX = 32768, CONTEXT_DEPTH = 64 };

/* Neither blank nor control character (C0, DEL, and C1 as UTF-8). */
static bool plain(struct sz_slice s)
{
    for (size_t i = 0; i < s.n; i++) {
        unsigned char c = (unsigned char)s.p[i];
        if (c <= ' ' || c == 0x7f)
            return false;
        if (c == 0xc2 && i + 1 < s.n && (unsigned char)s.p[i + 1] >= 0x80 && (unsigned char)s.p[i + 1] <= 0x9f)
            return false;
    }
    return true;
}

bool sz_object_valid(struct sz_slice object, struct sz_slice *type)
{
    ptrdiff_t colon = sz_find_byte(object, ':');
    if (colon < 1 || (size_t)colon + 1 >= object.n || (size_t)colon > TYPE_MAX || !plain(object) ||
        sz_find_byte(object, '#') >= 0 || sz_find_byte(sz_from(object, (size_t)colon + 1), ':') >= 0)
        return false;
    *type = sz_sub(object, 0, (size_t)colon);
    return true;
}

bool sz_relation_valid(struct sz_slice relation)
{
    return relation.n >= 1 && relation.n <= RELATION_MAX && plain(relation) && sz_find_byte(relation, ':') < 0 &&
           sz_find_byte(relation, '#') < 0 && sz_find_byte(relation, '@') < 0;
}

bool sz_user_split(struct sz_slice user, struct sz_user_parts *out)
{
    memset(out, 0, sizeof(*out));
    out->object = user;
    if (user.n > USER_MAX)
        return false;
    ptrdiff_t hash = sz_find_byte(user, '#');
    if (hash >= 0) {
        out->object = sz_sub(user, 0, (size_t)hash);
        out->relation = sz_from(user, (size_t)hash + 1);
        if (out->relation.n == 0 || !plain(out->relation) || sz_find_byte(out->relation, '#') >= 0 ||
            sz_find_byte(out->relation, ':') >= 0 || sz_find_byte(out->relation, '*') >= 0)
            return false;
    }
    if (!sz_object_valid(out->object, &out->type))
        return false;
    out->id = sz_from(out->object, out->type.n + 1);
    out->wild = sz_eq(out->id, SZ_S("*"));
    return out->relation.p == NULL || sz_find_byte(out->id, '*') < 0;
}

int sz_user_check(const struct sz_program *p, struct sz_slice user, struct sz_user_ids *out, struct sz_text *why)
{
    if (!sz_user_split(user, &out->parts)) {
        sz_text_set(why, "the 'user' field is malformed");
        return -EINVAL;
    }
    out->type = sz_program_type(p, out->parts.type);
    if (out->type == 0) {
        sz_text_set(why, "type '%.*s' not found", SZ_FMT(out->parts.type));
        return -EINVAL;
    }
    out->relation = out->parts.wild ? SZ_WILD : 0;
    if (out->parts.relation.p == NULL)
        return 0;
    uint16_t rel = sz_program_rel(p, out->type, out->parts.relation);
    if (rel == SZ_NO_REL) {
        sz_text_set(why, "relation '%.*s#%.*s' not found", SZ_FMT(out->parts.type), SZ_FMT(out->parts.relation));
        return -EINVAL;
    }
    out->relation = p->rels[rel].relation;
    return 0;
}

#define REFUSE(kind, ...) (sz_text_set(why, __VA_ARGS__), kind)

enum sz_tuple_fault sz_key_check(const struct sz_program *p, const struct sz_tuple_key *k, struct sz_tuple_ids *out,
                                 struct sz_text *why)
{
    struct sz_slice type;
    if (sz_user_check(p, k->user, &out->user, why) != 0)
        return SZ_TUPLE_INVALID;
    if (k->object.n > OBJECT_MAX * 4 || !sz_object_valid(k->object, &type))
        return REFUSE(SZ_TUPLE_INVALID, "invalid 'object' field format");
    if (sz_eq(sz_from(k->object, type.n + 1), SZ_S("*")))
        return REFUSE(SZ_TUPLE_INVALID, "the 'object' field cannot reference a typed wildcard");
    out->type = sz_program_type(p, type);
    if (out->type == 0)
        return REFUSE(SZ_TUPLE_INVALID, "type '%.*s' not found", SZ_FMT(type));
    if (!sz_relation_valid(k->relation))
        return REFUSE(SZ_TUPLE_INVALID, "the 'relation' field is malformed");
    out->rel = sz_program_rel(p, out->type, k->relation);
    if (out->rel == SZ_NO_REL)
        return REFUSE(SZ_TUPLE_INVALID, "relation '%.*s#%.*s' not found", SZ_FMT(type), SZ_FMT(k->relation));
    return SZ_TUPLE_OK;
}

static enum sz_tuple_fault check_restrictions(const struct sz_program *p, const struct sz_tuple_key *k,
                                              struct sz_tuple_ids *t, struct sz_text *why)
{
    const struct sz_crel *r = &p->rels[t->rel];
    if (r->tupleset && t->user.relation != 0)
        return REFUSE(SZ_TUPLE_INVALID, "unexpected user '%.*s' with tupleset relation '%.*s'", SZ_FMT(k->user),
                      SZ_FMT(k->relation));
    t->direct = sz_direct_find(r, sz_program_form(p, t->user.type, t->user.relation));
    if (!r->assignable || t->direct == NULL)
        return REFUSE(SZ_TUPLE_INVALID, "'%.*s%s%.*s' is not an allowed type restriction for '%.*s#%.*s'",
                      SZ_FMT(t->user.parts.type),
                      t->user.relation == SZ_WILD ? ":*"
                      : t->user.relation != 0     ? "#"
                                                  : "",
                      SZ_FMT(t->user.parts.relation), SZ_FMT(p->type_names[t->type]), SZ_FMT(k->relation));
    return SZ_TUPLE_OK;
}

bool sz_tuple_is_implicit(const struct sz_program *p, const struct sz_tuple_key *k, const struct sz_tuple_ids *t,
                          struct sz_text *why)
{
    if (t->user.relation == 0 || !sz_eq(t->user.parts.object, k->object) ||
        t->user.relation != p->rels[t->rel].relation)
        return false;
    sz_text_set(why, "cannot write a tuple that is implicit");
    return true;
}

static enum sz_tuple_fault check_condition(const struct sz_program *p, const struct sz_tuple_key *k,
                                           const struct sz_tuple_ids *t, void **context, struct sz_text *why)
{
    if (k->condition.n == 0)
        return t->direct->bare ? SZ_TUPLE_OK : REFUSE(SZ_TUPLE_CONDITION, "condition is missing");
    const struct sz_ccond *c = NULL;
    for (size_t i = 0; i < p->n_conds && c == NULL; i++)
        c = sz_eq(p->conds[i].text, k->condition) ? &p->conds[i] : NULL;
    if (c == NULL)
        return REFUSE(SZ_TUPLE_CONDITION, "undefined condition");
    bool listed = false;
    for (uint16_t i = 0; i < t->direct->n_conds; i++)
        listed |= t->direct->conds[i] == c->name;
    if (!listed)
        return REFUSE(SZ_TUPLE_CONDITION, "invalid condition for type restriction");
    if (k->condition_context.n > CONTEXT_MAX)
        return REFUSE(SZ_TUPLE_CONDITION, "condition context size limit exceeded: at most %d bytes", CONTEXT_MAX);
    *context = sz_context_parse(k->condition_context, why);
    if (*context == NULL)
        return k->condition_context.n == 0 ? SZ_TUPLE_OK : SZ_TUPLE_CONDITION;
    struct sz_arena scratch;
    sz_arena_init(&scratch);
    bool valid = sz_typed_context_make(p, c, *context, &scratch.pool, why)->valid;
    sz_arena_fini(&scratch);
    return valid ? SZ_TUPLE_OK : SZ_TUPLE_CONDITION;
}

enum sz_tuple_fault sz_tuple_check(const struct sz_program *p, const struct sz_tuple_key *k, struct sz_tuple_ids *out,
                                   void **context, struct sz_text *why)
{
    *context = NULL;
    enum sz_tuple_fault fault = sz_key_check(p, k, out, why);
    if (fault == SZ_TUPLE_OK)
        fault = check_restrictions(p, k, out, why);
    if (fault == SZ_TUPLE_OK)
        fault = check_condition(p, k, out, context, why);
    if (fault != SZ_TUPLE_OK) {
        json_decref(*context);
        *context = NULL;
    }
    return fault;
}

void *sz_context_parse(struct sz_slice text, struct sz_text *why)
{
    size_t at;
    json_error_t err;
    why->s[0] = '\0';
    if (text.n == 0)
        return NULL;
    if (sz_json_check(text, CONTEXT_DEPTH, &at) != 0) {
        sz_text_set(why, "the context is no JSON object (offset %zu)", at);
        return NULL;
    }
    json_t *v = json_loadb(text.p, text.n, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &err);
    if (json_is_object(v))
        return v;
    sz_text_set(why, "the context is no JSON object%s%s", v == NULL ? ": " : "", v == NULL ? err.text : "");
    json_decref(v);
    return NULL;
}

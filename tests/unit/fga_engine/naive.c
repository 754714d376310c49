/*
 * The rules, one after the other:
 * depth 25 is an error; a question on the way to itself is a CYCLE; a userset is a member of itself; without a way in
 * the type graph the answer is no and nothing is read; else the rewrite decides.
 */
#include "naive.h"

#include <stdio.h>
#include <string.h>

struct step {
    const char *object, *relation;
    const struct step *before;
};

static enum naive_answer ask(struct naive *v, const char *object, const char *relation, const char *user,
                             unsigned depth, const struct step *path);

/* ---- strings ---- */

static struct sz_slice type_of(const char *name)
{
    return sz_slice(name, strcspn(name, ":"));
}

static const char *relation_of(const char *user) /* NULL: no userset */
{
    const char *hash = strchr(user, '#');
    return hash == NULL ? NULL : hash + 1;
}

static bool is_wild(const char *user)
{
    size_t n = strlen(user);
    return n > 2 && strcmp(user + n - 2, ":*") == 0;
}

static const struct sz_rel *find_relation(const struct sz_model *m, struct sz_slice type, struct sz_slice relation)
{
    const struct sz_type *t = sz_model_type(m, type);
    return t == NULL ? NULL : sz_type_rel(t, relation);
}

/* ---- the type graph ---- */

static bool ref_is(const struct sz_ref *ref, const char *user, bool as_everybody)
{
    const char *relation = relation_of(user);
    if (!sz_eq(ref->type, type_of(user)))
        return false;
    if (as_everybody || is_wild(user))
        return ref->wildcard;
    return !ref->wildcard && sz_eq(ref->relation, sz_cstr(relation));
}

static bool leads(const struct sz_model *m, struct sz_slice type, const struct sz_rel *r, const char *user,
                  const struct sz_rel **seen, size_t n_seen);

static bool rewrite_leads(const struct sz_model *m, struct sz_slice type, const struct sz_rel *r,
                          const struct sz_rw *rw, const char *user, const struct sz_rel **seen, size_t n)
{
    switch (rw->op) {
    case SZ_RW_THIS:
        for (size_t i = 0; i < r->n_refs; i++) {
            const struct sz_ref *ref = &r->refs[i];
            if (ref_is(ref, user, false) || (relation_of(user) == NULL && ref_is(ref, user, true)) ||
                (is_wild(user) && ref->relation.p == NULL && sz_eq(ref->type, type_of(user)) && ref->wildcard))
                return true;
            if (ref->relation.p != NULL &&
                leads(m, ref->type, find_relation(m, ref->type, ref->relation), user, seen, n))
                return true;
        }
        return false;
    case SZ_RW_COMPUTED:
        return leads(m, type, find_relation(m, type, rw->relation), user, seen, n);
    case SZ_RW_TTU: {
        const struct sz_rel *tupleset = find_relation(m, type, rw->tupleset);
        for (size_t i = 0; tupleset != NULL && i < tupleset->n_refs; i++)
            if (leads(m, tupleset->refs[i].type, find_relation(m, tupleset->refs[i].type, rw->relation), user, seen, n))
                return true;
        return false;
    }
    default:
        for (size_t i = 0; i < rw->n; i++)
            if (rewrite_leads(m, type, r, rw->child[i], user, seen, n))
                return true;
        return false;
    }
}

static bool leads(const struct sz_model *m, struct sz_slice type, const struct sz_rel *r, const char *user,
                  const struct sz_rel **seen, size_t n)
{
    const char *relation = relation_of(user);
    if (r == NULL)
        return false;
    for (size_t i = 0; i < n; i++)
        if (seen[i] == r)
            return false;
    if (relation != NULL && sz_eq(type, type_of(user)) && sz_eq(r->name, sz_cstr(relation)))
        return true;
    seen[n] = r;
    return rewrite_leads(m, type, r, r->rw, user, seen, n + 1);
}

/* ---- tuples ---- */

static bool admits(const struct sz_rel *r, const struct naive_tuple *t)
{
    static const char *const names[] = {NULL, "c1", "c2"};
    for (size_t i = 0; i < r->n_refs; i++)
        if (ref_is(&r->refs[i], t->user, false) && sz_eq(r->refs[i].condition, sz_cstr(names[t->condition])))
            return true;
    return false;
}

/* Variables: the request's, overlaid by the tuple's own; one that is nowhere is an error. */
static enum naive_answer holds(const struct naive *v, const struct naive_tuple *t)
{
    int x = t->values.x != ABSENT ? t->values.x : v->request.x, y = t->values.y != ABSENT ? t->values.y : v->request.y;
    if (t->condition == 0)
        return N_YES;
    if (t->condition == 1)
        return x == ABSENT ? N_ERROR : x > 1 ? N_YES : N_NO;
    return y == ABSENT ? N_ERROR : y != 0 ? N_YES : N_NO;
}

static bool on(const struct naive_tuple *t, const char *object, struct sz_slice relation)
{
    return strcmp(t->object, object) == 0 && sz_eq(sz_cstr(t->relation), relation);
}

/* ---- rewrites ---- */

static enum naive_answer add_up(bool error, bool cycle)
{
    return error ? N_ERROR : cycle ? N_CYCLE : N_NO;
}

static enum naive_answer exact(const struct naive *v, const char *object, const struct sz_rel *r, const char *user)
{
    const struct naive_tuple *found = NULL;
    for (size_t i = 0; i < v->n; i++)
        if (on(&v->tuples[i], object, r->name) && strcmp(v->tuples[i].user, user) == 0 &&
            (found == NULL || (v->tuples[i].contextual && !found->contextual)))
            found = &v->tuples[i];
    return found == NULL || !admits(r, found) ? N_NO : holds(v, found);
}

static enum naive_answer everybody(const struct naive *v, const char *object, const struct sz_rel *r, const char *user)
{
    bool error = false;
    if (relation_of(user) != NULL)
        return N_NO;
    for (size_t i = 0; i < v->n; i++) {
        const struct naive_tuple *t = &v->tuples[i];
        if (!on(t, object, r->name) || !is_wild(t->user) || !sz_eq(type_of(t->user), type_of(user)) || !admits(r, t))
            continue;
        enum naive_answer one = holds(v, t);
        if (one == N_YES)
            return N_YES;
        error |= one == N_ERROR;
    }
    return error ? N_ERROR : N_NO;
}

static enum naive_answer usersets(struct naive *v, const char *object, const struct sz_rel *r, const char *user,
                                  unsigned depth, const struct step *path)
{
    bool error = false, cycle = false, held_back = false, passed = false;
    for (size_t i = 0; i < v->n; i++) {
        const struct naive_tuple *t = &v->tuples[i];
        if (!on(t, object, r->name) || relation_of(t->user) == NULL || !admits(r, t))
            continue;
        enum naive_answer one = holds(v, t);
        held_back |= one == N_ERROR;
        if (one != N_YES)
            continue;
        passed = true;
        char group[24];
        snprintf(group, sizeof(group), "%.*s", (int)strcspn(t->user, "#"), t->user);
        one = ask(v, group, relation_of(t->user), user, depth + 1, path);
        if (one == N_YES || one == N_GAVE_UP)
            return one;
        error |= one == N_ERROR;
        cycle |= one == N_CYCLE;
    }
    return add_up(error || (held_back && !passed), cycle);
}

static enum naive_answer direct(struct naive *v, const char *object, const struct sz_rel *r, const char *user,
                                unsigned depth, const struct step *path)
{
    bool error = false, cycle = false;
    for (int part = 0; part < 3; part++) {
        enum naive_answer one = part == 0   ? exact(v, object, r, user)
                                : part == 1 ? everybody(v, object, r, user)
                                            : usersets(v, object, r, user, depth, path);
        if (one == N_YES || one == N_GAVE_UP)
            return one;
        error |= one == N_ERROR;
        cycle |= one == N_CYCLE;
    }
    return add_up(error, cycle);
}

static enum naive_answer parents(struct naive *v, const char *object, const struct sz_rw *rw, const char *user,
                                 unsigned depth, const struct step *path)
{
    const struct sz_rel *tupleset = find_relation(v->m, type_of(object), rw->tupleset);
    bool error = false, cycle = false, held_back = false, passed = false;
    for (size_t i = 0; tupleset != NULL && i < v->n; i++) {
        const struct naive_tuple *t = &v->tuples[i];
        if (!on(t, object, tupleset->name) || !admits(tupleset, t))
            continue;
        enum naive_answer one = holds(v, t);
        held_back |= one == N_ERROR;
        if (one != N_YES)
            continue;
        passed = true;
        char relation[16];
        snprintf(relation, sizeof(relation), "%.*s", SZ_FMT(rw->relation));
        if (find_relation(v->m, type_of(t->user), rw->relation) == NULL)
            continue;
        one = ask(v, t->user, relation, user, depth + 1, path);
        if (one == N_YES || one == N_GAVE_UP)
            return one;
        error |= one == N_ERROR;
        cycle |= one == N_CYCLE;
    }
    return add_up(error || (held_back && !passed), cycle);
}

static enum naive_answer rewrite(struct naive *v, const char *object, const struct sz_rel *r, const struct sz_rw *rw,
                                 const char *user, unsigned depth, const struct step *path)
{
    bool error = false, cycle = false;
    char relation[16];
    switch (rw->op) {
    case SZ_RW_THIS:
        return direct(v, object, r, user, depth, path);
    case SZ_RW_COMPUTED:
        snprintf(relation, sizeof(relation), "%.*s", SZ_FMT(rw->relation));
        return ask(v, object, relation, user, depth, path);
    case SZ_RW_TTU:
        return parents(v, object, rw, user, depth, path);
    case SZ_RW_UNION:
        for (size_t i = 0; i < rw->n; i++) {
            enum naive_answer one = rewrite(v, object, r, rw->child[i], user, depth, path);
            if (one == N_YES || one == N_GAVE_UP)
                return one;
            error |= one == N_ERROR;
            cycle |= one == N_CYCLE;
        }
        return add_up(error, cycle);
    case SZ_RW_INTERSECTION:
        for (size_t i = 0; i < rw->n; i++) {
            enum naive_answer one = rewrite(v, object, r, rw->child[i], user, depth, path);
            if (one == N_NO || one == N_CYCLE || one == N_GAVE_UP)
                return one;
            error |= one == N_ERROR;
        }
        return error ? N_ERROR : N_YES;
    case SZ_RW_DIFFERENCE: {
        enum naive_answer base = rewrite(v, object, r, rw->child[0], user, depth, path);
        if (base != N_YES && base != N_ERROR)
            return base;
        enum naive_answer subtract = rewrite(v, object, r, rw->child[1], user, depth, path);
        if (subtract == N_YES)
            return N_NO;
        if (subtract == N_CYCLE || subtract == N_GAVE_UP)
            return subtract;
        return base == N_ERROR || subtract == N_ERROR ? N_ERROR : N_YES;
    }
    }
    return N_NO;
}

static enum naive_answer ask(struct naive *v, const char *object, const char *relation, const char *user,
                             unsigned depth, const struct step *path)
{
    const struct sz_rel *seen[64];
    char itself[48];
    if (v->steps == 0)
        return N_GAVE_UP;
    v->steps--;
    if (depth == 25)
        return N_ERROR;
    for (const struct step *s = path; s != NULL; s = s->before)
        if (strcmp(s->object, object) == 0 && strcmp(s->relation, relation) == 0) {
            v->met_cycle = true;
            return N_CYCLE;
        }
    snprintf(itself, sizeof(itself), "%s#%s", object, relation);
    if (strcmp(itself, user) == 0)
        return N_YES;
    const struct sz_rel *r = find_relation(v->m, type_of(object), sz_cstr(relation));
    if (r == NULL || !leads(v->m, type_of(object), r, user, seen, 0))
        return N_NO;
    struct step here = {object, relation, path};
    return rewrite(v, object, r, r->rw, user, depth, &here);
}

enum naive_answer naive_check(struct naive *v, const char *object, const char *relation, const char *user)
{
    return ask(v, object, relation, user, 0, NULL);
}

/*
 * Writes: checked whole, then applied under the mutex, then published by one store of the sequence number.  A reader
 * sees all of a write or nothing of it.
 */
#include <errno.h>
#include <jansson.h>
#include <stdlib.h>

#include "fga/engine/engine_impl.h"
#include "fga/engine/validate.h"

enum { OPS_MAX = 100, ROWS_MAX = 60000 };

struct op { /* a tuple as numbers; node numbers are SZ_NO_NODE when the store does not know the name */
    const struct sz_tuple_key *key;
    uint32_t object, subject, cond;
    uint16_t relation, user_form, object_form; /* object_form: (type of the object, relation of the user) */
    bool skip;
    bool replace; /* the one that is there goes first */
};

static int refuse(struct sz_fault *fault, int code, const struct sz_tuple_key *k, const char *why)
{
    sz_fault_set(fault, code, "Invalid tuple '%.*s#%.*s@%.*s'. Reason: %s", SZ_FMT(k->object), SZ_FMT(k->relation),
                 SZ_FMT(k->user), why);
    return -EINVAL;
}

/* The context in one spelling, so that equal contexts are kept once; heap, free with free(). */
static char *canonical(void *context)
{
    return context == NULL ? NULL : json_dumps(context, JSON_COMPACT | JSON_SORT_KEYS);
}

static uint16_t reverse_form(struct sz_engine *e, uint16_t object_type, uint16_t user_relation)
{
    return sz_form_add(&e->store, object_type, user_relation == SZ_WILD ? 0 : user_relation);
}

/* A tuple that was checked, with all its names made known. */
static int make_op(struct sz_engine *e, const struct sz_program *p, const struct sz_tuple_key *k,
                   const struct sz_tuple_ids *ids, void *context, struct op *op, struct sz_fault *fault)
{
    *op = (struct op){.key = k, .relation = p->rels[ids->rel].relation, .user_form = ids->direct->form};
    op->object = sz_name_add(&e->store, k->object, ids->type, false);
    op->subject = sz_name_add(&e->store, ids->user.parts.object, ids->user.type, ids->user.parts.wild);
    op->object_form = reverse_form(e, ids->type, ids->user.relation);
    if (op->object == SZ_NO_NODE || op->subject == SZ_NO_NODE || op->object_form == 0)
        return refuse(fault, 2053, k, "the store is full");
    if (k->condition.n == 0)
        return 0;
    char *text = canonical(context);
    op->cond = sz_cinst_add(&e->store, sz_symbol_find(&e->store.conditions, k->condition), sz_cstr(text));
    free(text);
    return 0;
}

static int check_write(struct sz_engine *e, const struct sz_program *p, const struct sz_tuple_key *k, struct op *op,
                       struct sz_fault *fault)
{
    struct sz_tuple_ids ids;
    struct sz_text why;
    void *context;
    if (sz_tuple_check(p, k, &ids, &context, &why) != SZ_TUPLE_OK)
        return refuse(fault, 2000, k, why.s);
    int err = sz_tuple_is_implicit(p, k, &ids, &why) ? refuse(fault, 2000, k, why.s) : 0;
    if (err == 0)
        err = make_op(e, p, k, &ids, context, op, fault);
    json_decref(context);
    return err;
}

static uint32_t known(struct sz_engine *e, struct sz_slice name)
{
    return sz_name_find(&e->store, atomic_load_explicit(&e->store.names, memory_order_relaxed), name,
                        sz_name_hash(&e->store, name));
}

static uint16_t known_form(const struct sz_store *s, uint16_t type, uint16_t relation)
{
    for (size_t i = 1; i < s->n_forms; i++)
        if (s->forms[i].type == type && s->forms[i].relation == relation)
            return (uint16_t)i;
    return 0;
}

/* Deletes ignore the model: only the form of the user is checked, so that what an older model left can go. */
static int check_delete(struct sz_engine *e, const struct sz_tuple_key *k, struct op *op, struct sz_fault *fault)
{
    struct sz_user_parts user;
    struct sz_slice type;
    const struct sz_store *s = &e->store;
    if (!sz_user_split(k->user, &user))
        return refuse(fault, 2000, k, "the 'user' field is malformed");
    *op = (struct op){.key = k, .object = SZ_NO_NODE, .subject = SZ_NO_NODE};
    op->relation = sz_symbol_find(&s->relations, k->relation);
    uint16_t user_relation = user.wild                 ? SZ_WILD
                             : user.relation.p == NULL ? 0
                                                       : sz_symbol_find(&s->relations, user.relation);
    if (op->relation == 0 || !sz_object_valid(k->object, &type) || (user.relation.p != NULL && user_relation == 0))
        return 0; /* there can be no such tuple */
    uint16_t object_type = sz_symbol_find(&s->types, type);
    op->user_form = known_form(s, sz_symbol_find(&s->types, user.type), user_relation);
    op->object_form = known_form(s, object_type, user_relation == SZ_WILD ? 0 : user_relation);
    op->object = known(e, k->object);
    op->subject = known(e, user.object);
    return 0;
}

static struct sz_block *head(_Atomic(struct sz_block *) *p)
{
    return atomic_load_explicit(p, memory_order_relaxed);
}

/* Whether the tuple is stored now, and its condition. */
static bool stored(struct sz_engine *e, const struct op *op, uint32_t *cond)
{
    if (op->object == SZ_NO_NODE || op->subject == SZ_NO_NODE || op->user_form == 0)
        return false;
    struct sz_rowref row;
    sz_block_row(head(&sz_node(&e->store, op->object)->fwd), sz_row_key(op->relation, op->user_form), &row);
    return sz_row_has(&row, op->subject, cond);
}

static bool same_key(const struct sz_tuple_key *a, const struct sz_tuple_key *b)
{
    return sz_eq(a->object, b->object) && sz_eq(a->relation, b->relation) && sz_eq(a->user, b->user);
}

static int check_twice(const struct op *ops, size_t n, struct sz_fault *fault)
{
    for (size_t i = 1; i < n; i++)
        for (size_t k = 0; k < i; k++)
            if (same_key(ops[i].key, ops[k].key)) {
                sz_fault_set(fault, 2004, "duplicate tuple in write: user: '%.*s', relation: '%.*s', object: '%.*s'",
                             SZ_FMT(ops[i].key->user), SZ_FMT(ops[i].key->relation), SZ_FMT(ops[i].key->object));
                return -EINVAL;
            }
    return 0;
}

/* Against what is stored: a missing delete, an existing write, too many rows. */
static int check_stored(struct sz_engine *e, const struct sz_write *w, struct op *ops, struct sz_fault *fault)
{
    for (size_t i = 0; i < w->deletes_n + w->writes_n; i++) {
        bool deletes = i < w->deletes_n;
        uint32_t cond = 0;
        bool there = stored(e, &ops[i], &cond);
        if (deletes ? there : !there) {
            const struct sz_block *b = deletes ? NULL : head(&sz_node(&e->store, ops[i].object)->fwd);
            if (b != NULL && b->n_rows > ROWS_MAX)
                return refuse(fault, 2053, ops[i].key, "the object has too many kinds of relations");
            continue;
        }
        if (deletes ? !w->ignore_missing : !w->ignore_duplicates) {
            sz_fault_set(
                fault, 2017,
                deletes ? "cannot delete a tuple which does not exist: user: '%.*s', relation: '%.*s', object: '%.*s'"
                        : "cannot write a tuple which already exists: user: '%.*s', relation: '%.*s', object: '%.*s'",
                SZ_FMT(ops[i].key->user), SZ_FMT(ops[i].key->relation), SZ_FMT(ops[i].key->object));
            return -EINVAL;
        }
        if (!deletes && cond != ops[i].cond && w->replace) {
            ops[i].replace = true;
            continue;
        }
        if (!deletes && cond != ops[i].cond) {
            sz_fault_set(fault, 409, "the tuple exists with another condition: '%.*s#%.*s@%.*s'",
                         SZ_FMT(ops[i].key->object), SZ_FMT(ops[i].key->relation), SZ_FMT(ops[i].key->user));
            return -EINVAL;
        }
        ops[i].skip = true;
    }
    return 0;
}

void sz_engine_log(struct sz_engine *e, struct sz_change c)
{
    uint64_t at = e->n_changes++ - e->first_change;
    if (at == e->cap_changes && e->cap_changes < SZ_CHANGES_KEPT) {
        e->cap_changes = e->cap_changes == 0 ? 64 : e->cap_changes * 2;
        e->changes = sz_xrealloc(e->changes, e->cap_changes * sizeof(*e->changes));
    }
    e->changes[at % e->cap_changes] = c;
}

static void put(struct sz_engine *e, const struct op *op, bool remove, uint32_t seconds, uint64_t seq)
{
    struct sz_node_info *object = sz_node(&e->store, op->object), *subject = sz_node(&e->store, op->subject);
    struct sz_entry_value fwd = {sz_row_key(op->relation, op->user_form), op->subject, op->cond, seconds};
    struct sz_entry_value rev = {sz_row_key(op->relation, op->object_form), op->object, op->cond, seconds};
    struct sz_block *f = head(&object->fwd), *r = head(&subject->rev);
    f = remove ? sz_block_remove(&e->store, f, fwd, seq) : sz_block_add(&e->store, f, fwd, seq);
    atomic_store_explicit(&object->fwd, f, memory_order_release);
    r = remove ? sz_block_remove(&e->store, r, rev, seq) : sz_block_add(&e->store, r, rev, seq);
    atomic_store_explicit(&subject->rev, r, memory_order_release);
    e->store.n_tuples += remove ? SIZE_MAX : 1; /* -1 */
}

static void apply(struct sz_engine *e, const struct op *op, bool remove, uint32_t seconds, uint64_t seq, unsigned what)
{
    if ((what & SZ_RESTORE_TUPLES) != 0)
        put(e, op, remove, seconds, seq);
    if ((what & SZ_RESTORE_CHANGES) != 0)
        sz_engine_log(
            e, (struct sz_change){op->object, op->subject, op->cond, seconds, op->relation, op->user_form, remove});
}

/* Prepared operations, deletes first. */
static int prepare(struct sz_engine *e, const struct sz_program *p, const struct sz_write *w, struct op *ops,
                   struct sz_fault *fault)
{
    for (size_t i = 0; i < w->deletes_n; i++)
        if (check_delete(e, &w->deletes[i], &ops[i], fault) != 0)
            return -EINVAL;
    for (size_t i = 0; i < w->writes_n; i++)
        if (check_write(e, p, &w->writes[i], &ops[w->deletes_n + i], fault) != 0)
            return -EINVAL;
    int err = check_twice(ops, w->deletes_n + w->writes_n, fault);
    return err != 0 ? err : check_stored(e, w, ops, fault);
}

/* What will really change, to whoever must know it first. */
static int commit(struct sz_engine *e, const struct sz_write *w, const struct op *ops, size_t n, struct sz_wall now,
                  struct sz_fault *fault)
{
    struct sz_tuple_change v[OPS_MAX];
    size_t changes = 0;
    if (w->commit == NULL)
        return 0;
    for (size_t i = 0; i < n; i++) {
        if (ops[i].skip)
            continue;
        v[changes] = (struct sz_tuple_change){*ops[i].key, i < w->deletes_n};
        v[changes].key.condition_context = ops[i].cond != 0 ? sz_cinst(&e->store, ops[i].cond)->context : SZ_NONE;
        if (v[changes].deleted)
            v[changes].key.condition = SZ_NONE;
        changes++;
    }
    if (changes == 0 || w->commit(w->commit_arg, v, changes, now) == 0)
        return 0;
    sz_fault_set(fault, 4000, "the write could not be stored");
    return -EINVAL;
}

/* Under the mutex. */
static void publish(struct sz_engine *e)
{
    uint64_t seq = atomic_load_explicit(&e->store.seq, memory_order_relaxed) + 1;
    e->n_published = e->n_changes;
    atomic_store_explicit(&e->store.seq, seq, memory_order_seq_cst);
    sz_reclaim(&e->store);
}

void sz_engine_publish(struct sz_engine *e)
{
    pthread_mutex_lock(&e->writer);
    publish(e);
    pthread_mutex_unlock(&e->writer);
}

int sz_engine_write(struct sz_engine *e, const struct sz_program *p, const struct sz_write *w, struct sz_wall now,
                    struct sz_fault *fault)
{
    size_t n = w->writes_n + w->deletes_n;
    if (n == 0) {
        sz_fault_set(fault, 2003, "a write needs writes or deletes");
        return -EINVAL;
    }
    if (n > OPS_MAX) {
        sz_fault_set(fault, 2053, "the number of write operations exceeds the allowed limit of %d", OPS_MAX);
        return -EINVAL;
    }
    struct op *ops = sz_xcalloc(n, sizeof(*ops));
    pthread_mutex_lock(&e->writer);
    int err = prepare(e, p, w, ops, fault);
    if (err == 0)
        err = commit(e, w, ops, n, now, fault);
    if (err == 0) {
        uint64_t seq = atomic_load_explicit(&e->store.seq, memory_order_relaxed) + 1;
        for (size_t i = 0; i < n; i++)
            if (ops[i].replace)
                put(e, &ops[i], true, (uint32_t)sz_wall_seconds(now), seq);
        for (size_t i = 0; i < n; i++)
            if (!ops[i].skip)
                apply(e, &ops[i], i < w->deletes_n, (uint32_t)sz_wall_seconds(now), seq,
                      SZ_RESTORE_TUPLES | SZ_RESTORE_CHANGES);
        if (!w->hold)
            publish(e);
    } else {
        sz_reclaim(&e->store);
    }
    pthread_mutex_unlock(&e->writer);
    free(ops);
    return err;
}

/* ---- bringing back ---- */

/* As make_op, but whatever the models say: names of types and relations may be of an older one. */
static int raw_op(struct sz_engine *e, const struct sz_tuple_change *c, struct op *op)
{
    const struct sz_tuple_key *k = &c->key;
    struct sz_store *s = &e->store;
    struct sz_user_parts user;
    struct sz_slice type;
    if (!sz_user_split(k->user, &user) || !sz_object_valid(k->object, &type) || !sz_relation_valid(k->relation))
        return -EINVAL;
    uint16_t object_type = sz_symbol_add(&s->types, type), user_type = sz_symbol_add(&s->types, user.type);
    uint16_t user_relation = user.wild                 ? SZ_WILD
                             : user.relation.p == NULL ? 0
                                                       : sz_symbol_add(&s->relations, user.relation);
    *op = (struct op){.key = k, .relation = sz_symbol_add(&s->relations, k->relation)};
    op->user_form = sz_form_add(s, user_type, user_relation);
    op->object_form = reverse_form(e, object_type, user_relation);
    op->object = sz_name_add(s, k->object, object_type, false);
    op->subject = sz_name_add(s, user.object, user_type, user.wild);
    if (op->relation == 0 || op->user_form == 0 || op->object_form == 0 || op->object == SZ_NO_NODE ||
        op->subject == SZ_NO_NODE)
        return -EINVAL;
    if (k->condition.n > 0)
        op->cond = sz_cinst_add(s, sz_symbol_add(&s->conditions, k->condition), k->condition_context);
    return 0;
}

static int restore_one(struct sz_engine *e, const struct sz_tuple_change *c, unsigned what, uint32_t seconds)
{
    struct op op;
    if (raw_op(e, c, &op) != 0)
        return -EINVAL;
    if ((what & SZ_RESTORE_TUPLES) != 0 && stored(e, &op, &(uint32_t){0}) != c->deleted)
        return -EINVAL;
    apply(e, &op, c->deleted, seconds, atomic_load_explicit(&e->store.seq, memory_order_relaxed) + 1, what);
    return 0;
}

int sz_engine_restore(struct sz_engine *e, const struct sz_tuple_change *v, size_t n, unsigned what,
                      struct sz_wall when, struct sz_fault *fault)
{
    int err = 0;
    pthread_mutex_lock(&e->writer);
    for (size_t i = 0; i < n && err == 0; i++) {
        err = restore_one(e, &v[i], what, (uint32_t)sz_wall_seconds(when));
        if (err != 0)
            sz_fault_set(fault, 4000, "%s of %.*s#%.*s@%.*s cannot follow what is there",
                         v[i].deleted ? "the deletion" : "the writing", SZ_FMT(v[i].key.object),
                         SZ_FMT(v[i].key.relation), SZ_FMT(v[i].key.user));
    }
    pthread_mutex_unlock(&e->writer);
    return err;
}

void sz_engine_restore_first(struct sz_engine *e, uint64_t first)
{
    pthread_mutex_lock(&e->writer);
    e->n_changes = e->n_published = e->first_change = first;
    pthread_mutex_unlock(&e->writer);
}

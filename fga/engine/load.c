/*
 * Loading many tuples at once: each is checked and numbered as it comes, all are sorted at the end and become blocks
 * in two passes, one by object and one by subject.  Where a node has a block already the tuples are added to it
 * one by one.
 */
#include <errno.h>
#include <jansson.h>
#include <stdlib.h>

#include "fga/engine/engine_impl.h"
#include "fga/engine/validate.h"

struct pending {
    uint32_t object, subject, cond;
    uint16_t relation, user_form, object_form;
};

struct sz_loader {
    struct sz_engine *e;
    const struct sz_program *p;
    uint32_t seconds;
    struct pending *v;
    size_t n, cap;
};

struct sz_loader *sz_loader_begin(struct sz_engine *e, const struct sz_program *p, struct sz_wall now)
{
    struct sz_loader *l = sz_xcalloc(1, sizeof(*l));
    pthread_mutex_lock(&e->writer);
    l->e = e;
    l->p = p;
    l->seconds = (uint32_t)sz_wall_seconds(now);
    return l;
}

static int refuse(struct sz_fault *fault, int code, const struct sz_tuple_key *k, const char *why)
{
    sz_fault_set(fault, code, "Invalid tuple '%.*s#%.*s@%.*s'. Reason: %s", SZ_FMT(k->object), SZ_FMT(k->relation),
                 SZ_FMT(k->user), why);
    return -EINVAL;
}

static uint32_t condition_of(struct sz_loader *l, const struct sz_tuple_key *k, void *context)
{
    if (k->condition.n == 0)
        return 0;
    char *text = context == NULL ? NULL : json_dumps(context, JSON_COMPACT | JSON_SORT_KEYS);
    uint32_t cond = sz_cinst_add(&l->e->store, sz_symbol_find(&l->e->store.conditions, k->condition), sz_cstr(text));
    free(text);
    return cond;
}

int sz_loader_add(struct sz_loader *l, const struct sz_tuple_key *k, struct sz_fault *fault)
{
    struct sz_tuple_ids ids;
    struct sz_text why;
    void *context;
    struct sz_store *s = &l->e->store;
    if (sz_tuple_check(l->p, k, &ids, &context, &why) != SZ_TUPLE_OK)
        return refuse(fault, 2000, k, why.s);
    if (sz_tuple_is_implicit(l->p, k, &ids, &why)) {
        json_decref(context);
        return refuse(fault, 2000, k, why.s);
    }
    if (l->n == l->cap) {
        l->cap = l->cap == 0 ? 1024 : l->cap * 2;
        l->v = sz_xrealloc(l->v, l->cap * sizeof(*l->v));
    }
    struct pending *t = &l->v[l->n];
    *t = (struct pending){.relation = l->p->rels[ids.rel].relation, .user_form = ids.direct->form};
    t->object = sz_name_add(s, k->object, ids.type, false);
    t->subject = sz_name_add(s, ids.user.parts.object, ids.user.type, ids.user.parts.wild);
    t->object_form = sz_form_add(s, ids.type, ids.user.relation == SZ_WILD ? 0 : ids.user.relation);
    t->cond = condition_of(l, k, context);
    json_decref(context);
    if (t->object == SZ_NO_NODE || t->subject == SZ_NO_NODE || t->object_form == 0)
        return refuse(fault, 2053, k, "the store is full");
    l->n++;
    return 0;
}

static int by_entry(const void *a, const void *b)
{
    const struct sz_entry_value *x = a, *y = b;
    if (x->key != y->key)
        return x->key > y->key ? 1 : -1;
    return (x->subject > y->subject) - (x->subject < y->subject);
}

/* Sorts one node's entries and drops those that are there twice. */
static size_t tidy(struct sz_entry_value *v, size_t n)
{
    size_t kept = 0;
    qsort(v, n, sizeof(*v), by_entry);
    for (size_t i = 0; i < n; i++)
        if (kept == 0 || v[kept - 1].key != v[i].key || v[kept - 1].subject != v[i].subject)
            v[kept++] = v[i];
    return kept;
}

static size_t place(struct sz_loader *l, _Atomic(struct sz_block *) *head, const struct sz_entry_value *v, size_t n,
                    uint64_t seq)
{
    struct sz_block *b = atomic_load_explicit(head, memory_order_relaxed);
    size_t added = 0;
    if (b == NULL) {
        b = sz_block_build(&l->e->store, v, n);
        b->seq = seq;
        added = n;
    } else {
        for (size_t i = 0; i < n; i++) {
            struct sz_rowref row;
            sz_block_row(b, v[i].key, &row);
            if (sz_row_has(&row, v[i].subject, NULL))
                continue;
            b = sz_block_add(&l->e->store, b, v[i], seq);
            added++;
        }
    }
    atomic_store_explicit(head, b, memory_order_release);
    return added;
}

/* One direction: entries grouped by node (counting sort), then a block for each. */
static size_t build(struct sz_loader *l, bool forward, uint64_t seq)
{
    size_t nodes = l->e->store.n_nodes, added = 0;
    size_t *start = sz_xcalloc(nodes + 2, sizeof(*start));
    struct sz_entry_value *v = sz_xmalloc((l->n + 1) * sizeof(*v));
    for (size_t i = 0; i < l->n; i++)
        start[(forward ? l->v[i].object : l->v[i].subject) + 2]++;
    for (size_t i = 2; i < nodes + 2; i++)
        start[i] += start[i - 1];
    for (size_t i = 0; i < l->n; i++) {
        const struct pending *t = &l->v[i];
        uint32_t node = forward ? t->object : t->subject;
        uint32_t key = sz_row_key(t->relation, forward ? t->user_form : t->object_form);
        v[start[node + 1]++] = (struct sz_entry_value){key, forward ? t->subject : t->object, t->cond, l->seconds};
    }
    for (size_t node = 0; node < nodes; node++) {
        size_t n = start[node + 1] - start[node];
        if (n == 0)
            continue;
        struct sz_node_info *info = sz_node(&l->e->store, (uint32_t)node);
        n = tidy(v + start[node], n);
        added += place(l, forward ? &info->fwd : &info->rev, v + start[node], n, seq);
    }
    free(start);
    free(v);
    return added;
}

void sz_loader_end(struct sz_loader *l)
{
    struct sz_engine *e = l->e;
    uint64_t seq = atomic_load_explicit(&e->store.seq, memory_order_relaxed) + 1;
    if (l->n > 0) {
        e->store.n_tuples += build(l, true, seq);
        build(l, false, seq);
    }
    atomic_store_explicit(&e->store.seq, seq, memory_order_seq_cst);
    sz_reclaim(&e->store);
    pthread_mutex_unlock(&e->writer);
    free(l->v);
    free(l);
}

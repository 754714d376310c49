/*
 * The engine's life, and check and batch check as calls.
 */
#include <errno.h>
#include <stdlib.h>

#include "fga/engine/engine_impl.h"
#include "fga/engine/validate.h"

struct sz_engine *sz_engine_new(void)
{
    struct sz_engine *e = sz_xcalloc(1, sizeof(*e));
    sz_store_init(&e->store);
    pthread_mutex_init(&e->writer, NULL);
    return e;
}

void sz_engine_free(struct sz_engine *e)
{
    if (e == NULL)
        return;
    sz_store_fini(&e->store);
    while (e->programs != NULL) {
        struct sz_program *next = e->programs->next;
        sz_program_free(e->programs);
        e->programs = next;
    }
    pthread_mutex_destroy(&e->writer);
    free(e->changes);
    free(e);
}

const struct sz_program *sz_engine_add_model(struct sz_engine *e, const struct sz_model *m, struct sz_fault *fault)
{
    pthread_mutex_lock(&e->writer);
    struct sz_program *p = sz_program_new(&e->store, m, fault);
    if (p != NULL) {
        p->next = e->programs;
        e->programs = p;
    }
    pthread_mutex_unlock(&e->writer);
    return p;
}

void sz_engine_stats(struct sz_engine *e, struct sz_engine_stats *out)
{
    pthread_mutex_lock(&e->writer);
    *out = (struct sz_engine_stats){.tuples = e->store.n_tuples,
                                    .objects = e->store.n_nodes,
                                    .changes = e->n_published - sz_engine_oldest_change(e),
                                    .sequence = atomic_load(&e->store.seq)};
    pthread_mutex_unlock(&e->writer);
}

uint64_t sz_engine_sequence(struct sz_engine *e)
{
    return atomic_load(&e->store.seq);
}

/* ---- check ---- */

struct names { /* a key whose strings the store knows: well-formed, since they were checked when they came in */
    uint32_t object, user;
    uint16_t user_relation;
};

/* Both strings are hashed before either is looked for, so that the memory is on its way. */
static bool find_names(struct sz_ask *a, const struct sz_tuple_key *k, struct names *out)
{
    const struct sz_store *s = a->view.store;
    ptrdiff_t hash = k->user.n > 0 ? sz_find_byte(k->user, '#') : -1;
    struct sz_slice user = hash < 0 ? k->user : sz_sub(k->user, 0, (size_t)hash);
    uint64_t ho = sz_name_hash(s, k->object);
    sz_name_prefetch(a->view.names, ho);
    uint64_t hu = sz_name_hash(s, user);
    sz_name_prefetch(a->view.names, hu);
    sz_name_prefetch_entry(s, a->view.names, ho);
    sz_name_prefetch_entry(s, a->view.names, hu);
    out->object = sz_name_find(s, a->view.names, k->object, ho);
    out->user = sz_name_find(s, a->view.names, user, hu);
    if (out->object == SZ_NO_NODE || out->user == SZ_NO_NODE || hash >= 0)
        return false;
    const struct sz_node_info *o = sz_node(s, out->object), *u = sz_node(s, out->user);
    out->user_relation = u->wild ? SZ_WILD : 0;
    return !o->wild && sz_program_has_type(a->p, o->type) && sz_program_has_type(a->p, u->type);
}

int sz_ask_key(struct sz_ask *a, const struct sz_tuple_key *k, uint32_t *object, uint16_t *rel)
{
    struct names names;
    if (find_names(a, k, &names)) {
        *rel = sz_program_rel(a->p, sz_node(a->view.store, names.object)->type, k->relation);
        if (*rel != SZ_NO_REL) {
            *object = names.object;
            sz_ask_user_node(a, names.user, sz_node(a->view.store, names.user)->type, names.user_relation);
            return 0;
        }
    }
    struct sz_tuple_ids ids;
    struct sz_text why;
    if (sz_key_check(a->p, k, &ids, &why) != SZ_TUPLE_OK)
        return sz_ask_fail(a, 2000, "%s", why.s);
    *rel = ids.rel;
    *object = sz_ask_node(a, k->object, ids.type, false);
    uint32_t user = sz_ask_node(a, ids.user.parts.object, ids.user.type, ids.user.parts.wild);
    sz_ask_user_node(a, user, ids.user.type, ids.user.relation);
    return 0;
}

static int outcome(enum sz_answer answer)
{
    switch (answer) {
    case SZ_YES:
        return SZ_ENGINE_YES;
    case SZ_OUT_OF_STEPS:
        return SZ_ENGINE_BUDGET;
    case SZ_ERROR:
        return -EINVAL;
    case SZ_NO:
    case SZ_CYCLE:
        break;
    }
    return SZ_ENGINE_NO;
}

int sz_engine_check(struct sz_engine *e, const struct sz_program *p, const struct sz_check *check, uint64_t *steps,
                    struct sz_fault *fault)
{
    struct sz_ask a;
    uint32_t object;
    uint16_t rel;
    sz_ask_begin(&a, e, p, *steps, fault);
    int result = sz_ask_key(&a, &check->key, &object, &rel);
    if (result == 0 && (check->context.n > 0 || check->contextual_n > 0))
        result = sz_ask_context(&a, check->context, check->contextual, check->contextual_n);
    if (result == 0)
        result = outcome(sz_ask_relation(&a, object, rel, 0));
    *steps = a.steps;
    fault->cycle = a.cycle;
    sz_ask_end(&a);
    return result;
}

void sz_engine_batch_check(struct sz_engine *e, const struct sz_program *p, const struct sz_check *checks, size_t n,
                           uint64_t *steps, struct sz_batch_answer *answers)
{
    struct sz_view view; /* all of them see one state */
    sz_view_begin(&e->store, &view);
    for (size_t i = 0; i < n; i++)
        answers[i].result = sz_engine_check(e, p, &checks[i], steps, &answers[i].fault);
    sz_view_end(&view);
}

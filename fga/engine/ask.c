/*
 * Setting a question up and taking it down: the user, the request's context, contextual tuples.
 */
#include "fga/engine/ask.h"

#include <errno.h>
#include <jansson.h>
#include <stdarg.h>
#include <stdio.h>

#include "fga/engine/engine_impl.h"
#include "fga/engine/validate.h"

void sz_fault_set(struct sz_fault *f, int code, const char *fmt, ...)
{
    char text[sizeof(f->message.s) * 2];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    f->code = code;
    sz_text_set(&f->message, "%s", text);
}

int sz_ask_fail(struct sz_ask *a, int code, const char *fmt, ...)
{
    char text[sizeof(a->fault->message.s) * 2];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    sz_fault_set(a->fault, code, "%s", text);
    return -EINVAL;
}

static _Thread_local const struct sz_patience *patience;

void sz_engine_patience(const struct sz_patience *p)
{
    patience = p;
}

bool sz_ask_more(struct sz_ask *a, uint64_t n)
{
    while (a->steps < n) {
        if (a->patience == NULL || !a->patience->more(a->patience->arg))
            return false;
        a->steps += SZ_PATIENCE_STEPS;
    }
    a->steps -= n;
    return true;
}

void sz_ask_begin(struct sz_ask *a, struct sz_engine *e, const struct sz_program *p, uint64_t steps,
                  struct sz_fault *fault)
{
    sz_view_begin(&e->store, &a->view);
    a->p = p;
    a->steps = steps;
    a->patience = patience;
    a->ctuples = NULL;
    a->n_ctuples = 0;
    a->own = NULL;
    a->n_own = a->cap_own = 0;
    a->context = NULL;
    a->vars = NULL;
    a->arena_used = false;
    a->path = a->path_room;
    a->cap_path = SZ_COUNT(a->path_room);
    a->n_path = 0;
    a->cycle = false;
    a->condition_fault = 2027;
    a->groups_key = 0;
    a->fault = fault;
}

void sz_ask_end(struct sz_ask *a)
{
    sz_view_end(&a->view);
    if (!a->arena_used)
        return;
    for (size_t i = 0; i < a->n_ctuples; i++)
        if (a->ctuples[i].cond != NULL)
            json_decref(a->ctuples[i].cond->json);
    json_decref((json_t *)a->context);
    sz_arena_fini(&a->arena);
}

struct sz_pool *sz_ask_pool(struct sz_ask *a)
{
    if (!a->arena_used)
        sz_arena_init(&a->arena);
    a->arena_used = true;
    return &a->arena.pool;
}

uint32_t sz_ask_node(struct sz_ask *a, struct sz_slice name, uint16_t type, bool wild)
{
    uint32_t id = sz_name_find(a->view.store, a->view.names, name, sz_name_hash(a->view.store, name));
    if (id != SZ_NO_NODE)
        return id;
    for (size_t i = 0; i < a->n_own; i++)
        if (sz_eq(a->own[i].name, name))
            return SZ_OWN_NODE + (uint32_t)i;
    if (a->n_own == a->cap_own) {
        size_t cap = a->cap_own == 0 ? 4 : a->cap_own * 2;
        struct sz_own_node *more = sz_pool_alloc(sz_ask_pool(a), cap * sizeof(*more));
        if (a->n_own > 0)
            memcpy(more, a->own, a->n_own * sizeof(*more));
        a->own = more;
        a->cap_own = cap;
    }
    a->own[a->n_own] = (struct sz_own_node){name, type, wild};
    return SZ_OWN_NODE + (uint32_t)a->n_own++;
}

struct sz_slice sz_ask_name(const struct sz_ask *a, uint32_t node)
{
    return node >= SZ_OWN_NODE ? a->own[node - SZ_OWN_NODE].name : sz_node_name(a->view.store, node);
}

uint16_t sz_ask_type(const struct sz_ask *a, uint32_t node)
{
    return node >= SZ_OWN_NODE ? a->own[node - SZ_OWN_NODE].type : sz_node(a->view.store, node)->type;
}

void sz_ask_user_node(struct sz_ask *a, uint32_t node, uint16_t type, uint16_t relation)
{
    a->user = node;
    a->user_type = type;
    a->user_relation = relation;
    a->wild_form = relation == 0 || relation == SZ_WILD ? a->p->wild_form[type] : 0;
    a->user_form = relation == 0         ? a->p->plain_form[type]
                   : relation == SZ_WILD ? a->wild_form
                                         : sz_program_form(a->p, type, relation);
    a->reach[0] = a->p->reach + a->user_form * a->p->reach_words;
    a->reach[1] = a->p->reach + a->wild_form * a->p->reach_words; /* row 0, of no form, is empty */
    a->groups_key = 0;
}

/* One contextual tuple into the question's own world. */
static int add_contextual(struct sz_ask *a, const struct sz_tuple_key *k)
{
    struct sz_tuple_ids ids;
    struct sz_text why;
    void *context;
    enum sz_tuple_fault fault = sz_tuple_check(a->p, k, &ids, &context, &why);
    if (fault != SZ_TUPLE_OK)
        return sz_ask_fail(a, fault == SZ_TUPLE_CONDITION ? a->condition_fault : 2027,
                           "Invalid tuple '%.*s#%.*s@%.*s'. Reason: %s", SZ_FMT(k->object), SZ_FMT(k->relation),
                           SZ_FMT(k->user), why.s);
    struct sz_ctuple *t = &a->ctuples[a->n_ctuples];
    t->object = sz_ask_node(a, k->object, ids.type, false);
    t->subject = sz_ask_node(a, ids.user.parts.object, ids.user.type, ids.user.parts.wild);
    t->relation = a->p->rels[ids.rel].relation;
    t->form = ids.direct->form;
    t->cond = NULL;
    a->n_ctuples++;
    if (k->condition.n == 0)
        return 0;
    struct sz_cinst *c = sz_pool_zalloc(sz_ask_pool(a), sizeof(*c));
    for (size_t i = 0; i < a->p->n_conds; i++)
        if (sz_eq(a->p->conds[i].text, k->condition)) {
            c->name = a->p->conds[i].name;
            c->json = context;
            atomic_init(&c->typed, sz_typed_context_make(a->p, &a->p->conds[i], context, sz_ask_pool(a), &why));
        }
    t->cond = c;
    return 0;
}

int sz_ask_context(struct sz_ask *a, struct sz_slice context, const struct sz_tuple_key *tuples, size_t n)
{
    struct sz_text why;
    if (context.n > 0) {
        a->context = sz_context_parse(context, &why);
        if (a->context == NULL)
            return sz_ask_fail(a, 2000, "%s", why.s);
        sz_ask_pool(a); /* so that the end frees it */
    }
    if (n > SZ_CONTEXTUAL_MAX)
        return sz_ask_fail(a, 2000, "at most %d contextual tuples are allowed", SZ_CONTEXTUAL_MAX);
    if (n == 0)
        return 0;
    a->ctuples = sz_pool_alloc(sz_ask_pool(a), n * sizeof(*a->ctuples));
    for (size_t i = 0; i < n; i++)
        if (add_contextual(a, &tuples[i]) != 0)
            return -EINVAL;
    return 0;
}

bool sz_tuples_next(const struct sz_ask *a, struct sz_tupleiter *it)
{
    if (sz_row_next(&it->stored)) {
        it->subject = it->stored.subject;
        it->cond_id = it->stored.cond;
        it->cond = NULL;
        return true;
    }
    while (it->contextual < a->n_ctuples) {
        const struct sz_ctuple *t = &a->ctuples[it->contextual++];
        if (t->object != it->object || t->relation != it->relation || t->form != it->form)
            continue;
        it->subject = t->subject;
        it->cond_id = 0;
        it->cond = t->cond;
        return true;
    }
    return false;
}

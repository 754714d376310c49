/*
 * Read and ReadChanges.  Tuples come in the order of their numbers: object, row, subject; a token names the last one
 * given, so pages stay true to what is stored whatever is written in between.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "fga/engine/engine_impl.h"
#include "fga/engine/validate.h"

struct position { /* the last tuple given */
    uint32_t object, key, subject;
    bool set;
};

struct reader {
    struct sz_engine *e;
    struct sz_view view;
    struct position after, last;
    /* the filter as numbers; SZ_NO_NODE, 0: any */
    uint32_t object, subject;
    uint16_t object_type, relation;
    int user_relation; /* with a subject: 0 plain or type:*, else the userset's; -1: any */
    bool nothing;      /* the filter names something that is not there */
    const struct sz_form *forms;
    const struct sz_symbols *types, *relations, *conditions;
    size_t left;
    sz_read_fn *fn;
    void *arg;
    bool stop;
    struct sz_buf user;
};

static bool parse_token(struct sz_slice token, struct position *out)
{
    unsigned object, key, subject;
    char text[64], end;
    if (token.n == 0)
        return true;
    if (token.n >= sizeof(text))
        return false;
    memcpy(text, token.p, token.n);
    text[token.n] = '\0';
    if (sscanf(text, "r%8x-%8x-%8x%c", &object, &key, &subject, &end) != 3)
        return false;
    *out = (struct position){object, key, subject, true};
    return true;
}

static int by_subject(const void *a, const void *b)
{
    const struct sz_entry_value *x = a, *y = b;
    return (x->subject > y->subject) - (x->subject < y->subject);
}

static int give(struct reader *r, uint32_t object, struct sz_entry_value v)
{
    struct sz_form form = r->forms[v.key & 0xffff];
    struct sz_slice name = sz_node_name(&r->e->store, v.subject);
    struct sz_tuple_key k = {.object = sz_node_name(&r->e->store, object), .relation = r->relations->v[v.key >> 16]};
    r->user.n = 0;
    sz_buf_adds(&r->user, name);
    if (form.relation != 0 && form.relation != SZ_WILD)
        sz_buf_printf(&r->user, "#%.*s", SZ_FMT(r->relations->v[form.relation]));
    k.user = sz_buf_slice(&r->user);
    if (v.cond != 0) {
        const struct sz_cinst *c = sz_cinst(&r->e->store, v.cond);
        k.condition = r->conditions->v[c->name];
        k.condition_context = c->context.n > 0 ? c->context : SZ_NONE;
    }
    r->last = (struct position){object, v.key, v.subject, true};
    r->left--;
    return r->fn(r->arg, &k, (struct sz_wall){(int64_t)v.time * 1000000});
}

static bool row_wanted(const struct reader *r, uint32_t key)
{
    uint16_t user_relation = r->forms[key & 0xffff].relation;
    if (r->relation != 0 && key >> 16 != r->relation)
        return false;
    return r->user_relation < 0 || (user_relation == SZ_WILD ? 0 : user_relation) == r->user_relation;
}

static void read_row(struct reader *r, uint32_t object, const struct sz_block *b, size_t i)
{
    uint32_t key = b->rows[i].key, time = b->time;
    bool resumed = r->after.set && r->after.object == object;
    if (!row_wanted(r, key) || (resumed && key < r->after.key))
        return;
    struct sz_rowref row = sz_block_at(b, i);
    struct sz_entry_value *v = sz_xmalloc((row.n + 1) * sizeof(*v));
    struct sz_rowiter it = {.row = row};
    size_t n = 0;
    while (sz_row_next(&it))
        if ((r->subject == SZ_NO_NODE || it.subject == r->subject) &&
            !(resumed && key == r->after.key && it.subject <= r->after.subject))
            v[n++] = (struct sz_entry_value){key, it.subject, it.cond, it.time != 0 ? it.time : time};
    qsort(v, n, sizeof(*v), by_subject);
    for (size_t k = 0; k < n && !r->stop && r->left > 0; k++)
        r->stop = give(r, object, v[k]) != 0;
    free(v);
}

static void read_object(struct reader *r, uint32_t object)
{
    const struct sz_block *b = sz_view_block(&r->view, &sz_node(&r->e->store, object)->fwd);
    for (size_t i = 0; b != NULL && i < b->n_rows && !r->stop && r->left > 0; i++)
        read_row(r, object, b, i);
}

static uint32_t known(const struct reader *r, struct sz_slice name)
{
    return sz_name_find(&r->e->store, r->view.names, name, sz_name_hash(&r->e->store, name));
}

/* The filter's texts as numbers. */
static int set_filter(struct reader *r, const struct sz_read_filter *f, struct sz_fault *fault)
{
    struct sz_slice type;
    struct sz_user_parts user;
    r->object = r->subject = SZ_NO_NODE;
    r->user_relation = -1;
    if (f->object.n > 0 && f->object.p[f->object.n - 1] == ':') {
        r->object_type = sz_symbol_find(r->types, sz_sub(f->object, 0, f->object.n - 1));
        r->nothing |= r->object_type == 0;
    } else if (f->object.n > 0) {
        if (!sz_object_valid(f->object, &type)) {
            sz_fault_set(fault, 2000, "invalid 'object' field format");
            return -EINVAL;
        }
        r->object = known(r, f->object);
        r->nothing |= r->object == SZ_NO_NODE;
    }
    if (f->relation.n > 0) {
        r->relation = sz_symbol_find(r->relations, f->relation);
        r->nothing |= r->relation == 0;
    }
    if (f->user.n == 0)
        return 0;
    if (!sz_user_split(f->user, &user)) {
        sz_fault_set(fault, 2000, "the 'user' field is malformed");
        return -EINVAL;
    }
    r->subject = known(r, user.object);
    r->user_relation = user.relation.p == NULL ? 0 : sz_symbol_find(r->relations, user.relation);
    r->nothing |= r->subject == SZ_NO_NODE || (user.relation.p != NULL && r->user_relation == 0);
    return 0;
}

/* Names may be added while we read: take what is there now, under the writer's lock, and read without it. */
struct names_now {
    struct sz_form *forms;
    struct sz_symbols types, relations, conditions;
    uint32_t nodes;
};

static struct sz_slice *copy_names(const struct sz_symbols *t)
{
    struct sz_slice *v = sz_xcalloc(t->n + 1, sizeof(*v));
    if (t->n > 0)
        memcpy(v, t->v, t->n * sizeof(*v));
    return v;
}

static void take_names(struct sz_engine *e, struct names_now *now)
{
    pthread_mutex_lock(&e->writer);
    now->forms = sz_xcalloc(e->store.n_forms + 1, sizeof(*now->forms));
    if (e->store.n_forms > 0)
        memcpy(now->forms, e->store.forms, e->store.n_forms * sizeof(*now->forms));
    now->types = (struct sz_symbols){.v = copy_names(&e->store.types), .n = e->store.types.n};
    now->relations = (struct sz_symbols){.v = copy_names(&e->store.relations), .n = e->store.relations.n};
    now->conditions = (struct sz_symbols){.v = copy_names(&e->store.conditions), .n = e->store.conditions.n};
    now->nodes = e->store.n_nodes;
    pthread_mutex_unlock(&e->writer);
}

static void drop_names(struct names_now *now)
{
    free(now->forms);
    free(now->types.v);
    free(now->relations.v);
    free(now->conditions.v);
}

int sz_engine_read(struct sz_engine *e, const struct sz_read_filter *filter, struct sz_slice token, size_t n,
                   sz_read_fn *fn, void *arg, char room[SZ_TOKEN_ROOM], struct sz_slice *next, struct sz_fault *fault)
{
    struct reader r = {.e = e, .left = n, .fn = fn, .arg = arg};
    struct names_now now;
    *next = SZ_S("");
    if (!parse_token(token, &r.after)) {
        sz_fault_set(fault, 2007, "invalid continuation token");
        return -EINVAL;
    }
    sz_view_begin(&e->store, &r.view);
    take_names(e, &now); /* after the view: everything that it shows is named */
    r.forms = now.forms;
    r.types = &now.types;
    r.relations = &now.relations;
    r.conditions = &now.conditions;
    int err = set_filter(&r, filter, fault);
    uint32_t from = r.after.set ? r.after.object : 0, to = now.nodes;
    if (err == 0 && r.object != SZ_NO_NODE) {
        from = r.object;
        to = from + 1;
    }
    for (uint32_t id = from; err == 0 && !r.nothing && id < to && !r.stop && r.left > 0; id++)
        if (r.object_type == 0 || sz_node(&e->store, id)->type == r.object_type)
            read_object(&r, id);
    if (err == 0 && r.left == 0 && r.last.set)
        *next = sz_slice(
            room, (size_t)snprintf(room, SZ_TOKEN_ROOM, "r%08x-%08x-%08x", r.last.object, r.last.key, r.last.subject));
    sz_view_end(&r.view);
    drop_names(&now);
    sz_buf_fini(&r.user);
    return err;
}

/* ---- changes ---- */

static int give_change(struct sz_engine *e, const struct sz_change *c, struct sz_buf *user, sz_change_fn *fn, void *arg)
{
    const struct sz_store *s = &e->store;
    struct sz_form form = s->forms[c->form];
    struct sz_tuple_key k = {.object = sz_node_name(s, c->object), .relation = s->relations.v[c->relation]};
    user->n = 0;
    sz_buf_adds(user, sz_node_name(s, c->subject));
    if (form.relation != 0 && form.relation != SZ_WILD)
        sz_buf_printf(user, "#%.*s", SZ_FMT(s->relations.v[form.relation]));
    k.user = sz_buf_slice(user);
    if (c->cond != 0 && !c->deleted) {
        const struct sz_cinst *inst = sz_cinst(s, c->cond);
        k.condition = s->conditions.v[inst->name];
        k.condition_context = inst->context.n > 0 ? inst->context : SZ_NONE;
    }
    return fn(arg, &k, c->deleted, (struct sz_wall){(int64_t)c->seconds * 1000000});
}

/* "N" or "N|type": a token made for one type is not good for another. */
static int parse_change_token(struct sz_slice token, struct sz_slice type, uint64_t *at, struct sz_fault *fault)
{
    struct sz_slice number, of = SZ_NONE;
    *at = 0;
    if (token.n == 0)
        return 0;
    struct sz_slice rest = token;
    sz_split(&rest, '|', &number);
    if (rest.p != NULL)
        of = rest;
    if (number.n == 0 || sz_parse_u64(number, UINT64_MAX, at) != 0) {
        sz_fault_set(fault, 2007, "invalid continuation token");
        return -EINVAL;
    }
    if (!sz_eq(of, type)) {
        sz_fault_set(fault, 2052, "the type in the query string and the continuation token do not match");
        return -EINVAL;
    }
    return 0;
}

static struct sz_slice change_token(uint64_t at, struct sz_slice type, char room[SZ_TOKEN_ROOM])
{
    return sz_slice(room, (size_t)snprintf(room, SZ_TOKEN_ROOM, "%" PRIu64 "%s%.*s", at, type.p != NULL ? "|" : "",
                                           SZ_FMT(sz_sub(type, 0, 254))));
}

uint64_t sz_engine_oldest_change(const struct sz_engine *e)
{
    uint64_t n = e->n_changes > SZ_CHANGES_KEPT ? e->n_changes - SZ_CHANGES_KEPT : 0;
    return n > e->first_change ? n : e->first_change;
}

uint64_t sz_engine_first_change(struct sz_engine *e)
{
    pthread_mutex_lock(&e->writer);
    uint64_t n = sz_engine_oldest_change(e);
    pthread_mutex_unlock(&e->writer);
    return n;
}

struct sz_slice sz_engine_changes_since(struct sz_engine *e, struct sz_slice type, int64_t seconds,
                                        char room[SZ_TOKEN_ROOM])
{
    pthread_mutex_lock(&e->writer);
    uint64_t from = sz_engine_oldest_change(e), to = e->n_published;
    while (from < to) {
        uint64_t middle = from + (to - from) / 2;
        if (e->changes[(middle - e->first_change) % e->cap_changes].seconds < seconds)
            from = middle + 1;
        else
            to = middle;
    }
    pthread_mutex_unlock(&e->writer);
    return change_token(from, type, room);
}

int sz_engine_changes(struct sz_engine *e, struct sz_slice type, struct sz_slice token, size_t n, sz_change_fn *fn,
                      void *arg, char room[SZ_TOKEN_ROOM], struct sz_slice *next, struct sz_fault *fault)
{
    uint64_t at;
    struct sz_buf user = {0};
    int err = parse_change_token(token, type, &at, fault);
    if (err != 0)
        return err;
    pthread_mutex_lock(&e->writer); /* a page is short, and the log is the writer's */
    if (at > e->n_published || (token.n > 0 && at < sz_engine_oldest_change(e))) {
        sz_fault_set(fault, 2007, "the changes after this token are no longer kept: read all tuples again");
        err = -EINVAL;
    }
    if (token.n == 0)
        at = sz_engine_oldest_change(e);
    uint16_t wanted = type.p == NULL ? 0 : sz_symbol_find(&e->store.types, type);
    for (bool stop = false; err == 0 && !stop && n > 0 && at < e->n_published; at++) {
        const struct sz_change *c = &e->changes[(at - e->first_change) % e->cap_changes];
        if (type.p != NULL && sz_node(&e->store, c->object)->type != wanted)
            continue;
        n--;
        stop = give_change(e, c, &user, fn, arg) != 0;
    }
    pthread_mutex_unlock(&e->writer);
    sz_buf_fini(&user);
    if (err == 0)
        *next = change_token(at, type, room);
    return err;
}

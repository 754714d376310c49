/*
 * Pages of a store that is followed.  A page of changes becomes one write of the engine: of each tuple its last change
 * counts, a tuple that is written again replaces the one that is there, and what the pinned model does not admit counts
 * as not there, as it does where checks are answered there.
 */
#include <errno.h>
#include <jansson.h>
#include <stdlib.h>

#include "fga/engine/validate.h"
#include "fga/follow.h"

#define PAGE_MAX 100

struct change {
    struct sz_tuple_key key;
    char *context; /* heap, what key.condition_context points to */
    bool deleted, superseded;
};

static struct sz_slice text_of(const json_t *object, const char *name)
{
    const json_t *s = json_object_get(object, name);
    return json_is_string(s) ? sz_slice(json_string_value(s), json_string_length(s)) : SZ_NONE;
}

static bool read_key(const json_t *o, struct sz_tuple_key *key, char **context)
{
    const json_t *condition = json_object_get(o, "condition");
    *context = NULL;
    *key = (struct sz_tuple_key){text_of(o, "user"), text_of(o, "relation"), text_of(o, "object"), SZ_NONE, SZ_NONE};
    if (key->user.p == NULL || key->relation.p == NULL || key->object.p == NULL)
        return false;
    if (!json_is_object(condition) || text_of(condition, "name").n == 0)
        return condition == NULL || json_is_null(condition) || json_is_object(condition);
    key->condition = text_of(condition, "name");
    const json_t *given = json_object_get(condition, "context");
    if (!json_is_object(given))
        return given == NULL || json_is_null(given);
    *context = json_dumps(given, JSON_COMPACT);
    key->condition_context = sz_cstr(*context);
    return *context != NULL;
}

static bool admitted(const struct sz_program *p, const struct sz_tuple_key *key)
{
    struct sz_tuple_ids ids;
    struct sz_text why;
    void *context = NULL;
    bool good = sz_tuple_check(p, key, &ids, &context, &why) == SZ_TUPLE_OK;
    if (good)
        json_decref(context);
    return good;
}

static int take_token(const json_t *page, struct sz_buf *next)
{
    struct sz_slice token = text_of(page, "continuation_token");
    sz_buf_adds(next, token);
    return token.p != NULL ? 0 : -EPROTO;
}

/* ---- tuples ------------------------------------------------------------------------------------------------------ */

int sz_follower_read_page(struct sz_follower *f, struct sz_slice body, struct sz_buf *next)
{
    json_t *page = sz_fga_read_object(body);
    const json_t *tuples = json_object_get(page, "tuples"), *one;
    size_t i;
    int rc = json_is_array(tuples) ? take_token(page, next) : -EPROTO;
    json_array_foreach(tuples, i, one)
    {
        struct sz_tuple_key key;
        char *context = NULL;
        if (rc == 0)
            rc = read_key(json_object_get(one, "key"), &key, &context) ? sz_fga_load_add(f->load, &key) : -EPROTO;
        free(context);
    }
    json_decref(page);
    return rc;
}

/* ---- changes ----------------------------------------------------------------------------------------------------- */

static int read_change(const json_t *o, struct change *c)
{
    struct sz_slice operation = text_of(o, "operation");
    c->deleted = sz_eq(operation, SZ_S("TUPLE_OPERATION_DELETE"));
    if (!c->deleted && !sz_eq(operation, SZ_S("TUPLE_OPERATION_WRITE")))
        return -EPROTO;
    return read_key(json_object_get(o, "tuple_key"), &c->key, &c->context) ? 0 : -EPROTO;
}

static bool same_key(const struct sz_tuple_key *a, const struct sz_tuple_key *b)
{
    return sz_eq(a->object, b->object) && sz_eq(a->relation, b->relation) && sz_eq(a->user, b->user);
}

static void supersede(struct change *v, size_t n)
{
    for (size_t i = 1; i < n; i++) {
        for (size_t k = 0; k < i; k++) {
            if (same_key(&v[i].key, &v[k].key))
                v[k].superseded = true;
        }
    }
}

static int apply(struct sz_follower *f, struct sz_fga_copy *copy, const struct change *v, size_t n)
{
    struct sz_tuple_key writes[PAGE_MAX], deletes[PAGE_MAX];
    struct sz_write w = {
        .writes = writes, .deletes = deletes, .ignore_duplicates = true, .ignore_missing = true, .replace = true};
    struct sz_fault fault;
    for (size_t i = 0; i < n; i++) {
        struct sz_user_parts user;
        if (v[i].superseded || !sz_user_split(v[i].key.user, &user))
            continue; /* a user of an older kind: no model that can be pinned admits it */
        bool gone = v[i].deleted || !admitted(copy->program, &v[i].key);
        f->ignored += gone && !v[i].deleted;
        if (gone)
            deletes[w.deletes_n++] = v[i].key;
        else
            writes[w.writes_n++] = v[i].key;
    }
    if (w.writes_n + w.deletes_n == 0)
        return 0;
    return sz_engine_write(copy->engine, copy->program, &w, sz_loop_wall(f->all->loop), &fault);
}

int sz_follower_changes_page(struct sz_follower *f, struct sz_slice body, size_t *n, struct sz_buf *next)
{
    json_t *page = sz_fga_read_object(body);
    const json_t *changes = json_object_get(page, "changes"), *one;
    struct change *v = sz_xcalloc(PAGE_MAX, sizeof(*v));
    struct sz_fga_copy *copy = f->fresh != NULL ? f->fresh : atomic_load(&f->news->copy);
    size_t i;
    int rc = json_is_array(changes) && json_array_size(changes) <= PAGE_MAX ? take_token(page, next) : -EPROTO;
    *n = 0;
    if (rc == 0) {
        json_array_foreach(changes, i, one)
        {
            if (rc == 0)
                rc = read_change(one, &v[i]);
        }
        *n = json_array_size(changes);
        supersede(v, *n);
    }
    if (rc == 0 && copy != NULL)
        rc = apply(f, copy, v, *n);
    for (i = 0; i < PAGE_MAX; i++)
        free(v[i].context);
    free(v);
    json_decref(page);
    return rc;
}

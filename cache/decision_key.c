/* See cache/decision_key.h. */
#include "cache/decision_key.h"

#include <jansson.h>
#include <stdlib.h>

#include "subzero/crypto.h"

#define CONTEXT_DEPTH  64
#define CONTEXTUAL_MAX 100 /* of a check; whatever else is there is refused by the source */

enum field { EPOCH = 1, USER, RELATION, OBJECT, CONTEXT, TUPLES, CONDITION, CONDITION_CONTEXT };
enum { FIELD_HEAD = 5 };

/*
 * Equal objects give equal bytes: members sorted, no blanks, one spelling of each number and character.  What is not
 * strict JSON goes in as it is: the source will say what it thinks of it, and errors are not kept.
 */
static void add_json(struct sz_buf *b, uint8_t type, struct sz_slice text)
{
    size_t at;
    json_t *json = text.n == 0 || sz_json_check(text, CONTEXT_DEPTH, &at) != 0
                       ? NULL
                       : json_loadb(text.p, text.n, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, NULL);
    char *canonical = json == NULL ? NULL : json_dumps(json, JSON_SORT_KEYS | JSON_COMPACT);
    sz_key_field(b, type, canonical == NULL ? text : sz_cstr(canonical));
    free(canonical);
    json_decref(json);
}

static int compare_keys(const struct sz_tuple_key *a, const struct sz_tuple_key *b)
{
    int rc = sz_cmp(a->object, b->object);
    if (rc == 0)
        rc = sz_cmp(a->relation, b->relation);
    return rc != 0 ? rc : sz_cmp(a->user, b->user);
}

/* Insertion: stable, and a handful of them is the usual case. */
static void sort(const struct sz_tuple_key **v, size_t n)
{
    for (size_t i = 1; i < n; i++) {
        const struct sz_tuple_key *one = v[i];
        size_t at = i;
        for (; at > 0 && compare_keys(v[at - 1], one) > 0; at--)
            v[at] = v[at - 1];
        v[at] = one;
    }
}

static void add_key(struct sz_buf *b, const struct sz_tuple_key *key)
{
    sz_key_field(b, USER, key->user);
    sz_key_field(b, RELATION, key->relation);
    sz_key_field(b, OBJECT, key->object);
}

static void add_tuples(struct sz_buf *b, const struct sz_tuple_key *tuples, size_t n)
{
    const struct sz_tuple_key *v[CONTEXTUAL_MAX];
    bool sorted = n <= CONTEXTUAL_MAX;
    uint64_t number = n;
    sz_key_field(b, TUPLES, sz_slice(&number, sizeof(number)));
    for (size_t i = 0; i < n && sorted; i++)
        v[i] = &tuples[i];
    if (sorted)
        sort(v, n);
    for (size_t i = 0; i < n; i++) {
        const struct sz_tuple_key *one = sorted ? v[i] : &tuples[i];
        add_key(b, one);
        sz_key_field(b, CONDITION, one->condition);
        add_json(b, CONDITION_CONTEXT, one->condition_context);
    }
}

void sz_decision_fields_init(struct sz_decision_fields *f, uint64_t epoch, const struct sz_check *check)
{
    size_t plain = 4 * FIELD_HEAD + sizeof(epoch) + check->key.user.n + check->key.relation.n + check->key.object.n;
    f->b = (struct sz_buf){0};
    if (check->context.p == NULL && check->contextual_n == 0 && plain < sizeof(f->room))
        f->b = (struct sz_buf){.p = f->room, .cap = sizeof(f->room)}; /* it will not grow */
    sz_key_field(&f->b, EPOCH, sz_slice(&epoch, sizeof(epoch)));
    add_key(&f->b, &check->key);
    if (check->context.p != NULL)
        add_json(&f->b, CONTEXT, check->context);
    if (check->contextual_n > 0)
        add_tuples(&f->b, check->contextual, check->contextual_n);
}

void sz_decision_fields_fini(struct sz_decision_fields *f)
{
    if (f->b.p != f->room)
        sz_buf_fini(&f->b);
}

/*
 * From a route's rule to a question: the key, the values for conditions, the tuples that hold for it alone.
 *
 * A question that cannot be put has one of two answers.  What the request wrote twice, not at all or not as text is the
 * client's mistake (400).  What the token lacks, or has too much of, is a denial: nobody is let through by a claim that
 * is not there, and asking again with the same token changes nothing, so it is no outage (503) either.  Nothing is ever
 * left out of a question: a tuple fewer can turn an exclusion into a yes.
 */
#include "pipeline/stages.h"
#include "pipeline/template.h"

enum { USER_MAX = 512, OBJECT_MAX = 256, RELATION_MAX = 50, CONTEXT_MAX = 32 * 1024, TUPLES_MAX = 100 };

static enum sz_reason reason_of(enum sz_render rc)
{
    switch (rc) {
    case SZ_RENDER_OK:
        return SZ_REASON_allowed;
    case SZ_RENDER_MISSING:
    case SZ_RENDER_AMBIGUOUS:
    case SZ_RENDER_BAD_TEXT:
        return SZ_REASON_bad_request;
    case SZ_RENDER_ABSENT:
    case SZ_RENDER_TOO_LONG:
        break;
    }
    return SZ_REASON_not_permitted; /* a question about nobody or nothing has one answer */
}

/* ---- key -------------------------------------------------------------------------------------------------------- */

static enum sz_reason add_key(struct sz_txn *txn, const struct sz_conf_check *conf, struct sz_tuple_key *key)
{
    enum sz_render rc = sz_template_id(txn, &conf->user, USER_MAX, &key->user);
    if (rc == SZ_RENDER_OK)
        rc = sz_template_id(txn, &conf->relation, RELATION_MAX, &key->relation);
    if (rc == SZ_RENDER_OK)
        rc = sz_template_id(txn, &conf->object, OBJECT_MAX, &key->object);
    return reason_of(rc);
}

/* ---- context ---------------------------------------------------------------------------------------------------- */

static enum sz_reason add_context(struct sz_txn *txn, const struct sz_conf_check *conf, struct sz_slice *context)
{
    struct sz_buf json = {.limit = CONTEXT_MAX};
    enum sz_render rc = SZ_RENDER_OK;
    if (conf->context_n == 0)
        return SZ_REASON_allowed;
    for (size_t i = 0; i < conf->context_n && rc == SZ_RENDER_OK; i++) {
        const struct sz_conf_context *value = &conf->context[i];
        sz_buf_adds(&json, i == 0 ? SZ_S("{") : SZ_S(","));
        sz_buf_adds(&json, value->name);
        if (value->json.p != NULL)
            sz_buf_adds(&json, value->json);
        else
            rc = sz_template_json(txn, &value->value, &json);
    }
    sz_buf_adds(&json, SZ_S("}"));
    if (rc == SZ_RENDER_OK && json.overflow)
        rc = SZ_RENDER_TOO_LONG;
    if (rc == SZ_RENDER_OK)
        *context = sz_pool_dup(txn->pool, sz_buf_slice(&json));
    sz_buf_fini(&json);
    return reason_of(rc);
}

/* ---- contextual tuples ------------------------------------------------------------------------------------------ */

struct tuples { /* sorted, each once: the same token gives the same question whatever the order of its lists */
    struct sz_tuple_key *v;
    size_t n;
};

static int compare(const struct sz_tuple_key *a, const struct sz_tuple_key *b)
{
    int c = sz_cmp(a->object, b->object);
    if (c == 0)
        c = sz_cmp(a->relation, b->relation);
    if (c == 0)
        c = sz_cmp(a->user, b->user);
    return c != 0 ? c : sz_cmp(a->condition, b->condition);
}

static enum sz_reason insert(struct sz_txn *txn, struct tuples *tuples, const struct sz_tuple_key *key)
{
    size_t at = tuples->n;
    while (at > 0 && compare(&tuples->v[at - 1], key) > 0)
        at--;
    if (at > 0 && compare(&tuples->v[at - 1], key) == 0)
        return SZ_REASON_allowed;
    if (tuples->n == TUPLES_MAX) {
        txn->detail = "the token's lists give more than 100 contextual tuples";
        return SZ_REASON_not_permitted;
    }
    memmove(&tuples->v[at + 1], &tuples->v[at], (tuples->n - at) * sizeof(*key));
    tuples->v[at] = *key;
    tuples->n++;
    return SZ_REASON_allowed;
}

static enum sz_reason add_tuple(struct sz_txn *txn, const struct sz_conf_tuple *conf, struct sz_slice item,
                                struct tuples *tuples)
{
    struct sz_tuple_key key = {.relation = conf->relation, .condition = conf->condition, .condition_context = SZ_NONE};
    enum sz_render rc = sz_template_item(txn, &conf->user, item, USER_MAX, &key.user);
    if (rc == SZ_RENDER_OK)
        rc = sz_template_item(txn, &conf->object, item, OBJECT_MAX, &key.object);
    return rc == SZ_RENDER_OK ? insert(txn, tuples, &key) : reason_of(rc);
}

/*
 * One for each item of the claim.  A claim that is not there, or an empty list, gives none: whoever is in no group is
 * in no group.  One value counts as a list of it; anything else is no list of names.
 */
static enum sz_reason add_each(struct sz_txn *txn, const struct sz_conf_tuple *conf, struct tuples *tuples)
{
    enum sz_reason reason = SZ_REASON_allowed;
    struct sz_slice rest, item;
    switch (sz_template_list(txn, conf->each, &rest, &item)) {
    case SZ_LIST_NONE:
        return SZ_REASON_allowed;
    case SZ_LIST_ONE:
        return add_tuple(txn, conf, item, tuples);
    case SZ_LIST_MANY:
        while (reason == SZ_REASON_allowed && sz_claim_next(&rest, &item))
            reason = add_tuple(txn, conf, item, tuples);
        return reason;
    case SZ_LIST_BAD:
        break;
    }
    txn->detail = "a claim that should be a list of names is none";
    return SZ_REASON_not_permitted;
}

static enum sz_reason add_tuples(struct sz_txn *txn, const struct sz_conf_check *conf, struct sz_check *check)
{
    struct tuples tuples = {.n = 0};
    enum sz_reason reason = SZ_REASON_allowed;
    if (conf->tuples_n == 0)
        return SZ_REASON_allowed;
    tuples.v = sz_pool_alloc(txn->pool, TUPLES_MAX * sizeof(*tuples.v));
    for (size_t i = 0; i < conf->tuples_n && reason == SZ_REASON_allowed; i++) {
        const struct sz_conf_tuple *tuple = &conf->tuples[i];
        reason = tuple->each != NULL ? add_each(txn, tuple, &tuples) : add_tuple(txn, tuple, SZ_NONE, &tuples);
    }
    check->contextual = tuples.v;
    check->contextual_n = tuples.n;
    return reason;
}

enum sz_reason sz_question(struct sz_txn *txn, const struct sz_conf_check *conf, struct sz_check *check)
{
    *check = (struct sz_check){.key = {.condition = SZ_NONE, .condition_context = SZ_NONE},
                               .context = SZ_NONE,
                               .consistency = txn->match.route->consistency};
    enum sz_reason reason = add_key(txn, conf, &check->key);
    if (reason == SZ_REASON_allowed)
        reason = add_context(txn, conf, &check->context);
    return reason == SZ_REASON_allowed ? add_tuples(txn, conf, check) : reason;
}

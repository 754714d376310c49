/*
 * Explain: the way that allowed, or every way that did not, as indented text.  The same evaluation as a check, asked
 * again part by part, so what is printed is what decided.
 */
#include <errno.h>

#include "fga/engine/engine_impl.h"
#include "fga/engine/validate.h"

enum { LINES_MAX = 200 };

struct explainer {
    struct sz_ask *a;
    struct sz_buf *out;
    unsigned lines;
};

static void explain(struct explainer *x, uint32_t object, const struct sz_crel *r, const struct sz_cex *e,
                    unsigned depth, unsigned indent);

static bool line(struct explainer *x, unsigned indent, struct sz_slice text)
{
    if (x->lines++ == LINES_MAX)
        sz_buf_printf(x->out, "...\n");
    if (x->lines > LINES_MAX)
        return false;
    sz_buf_printf(x->out, "%*s%.*s\n", (int)indent * 2, "", SZ_FMT(text));
    return true;
}

#define SAY(x, indent, ...) line(x, indent, sz_pool_printf(sz_ask_pool((x)->a), __VA_ARGS__))

static const char *word(enum sz_answer answer)
{
    switch (answer) {
    case SZ_YES:
        return "yes";
    case SZ_NO:
        return "no";
    case SZ_CYCLE:
        return "no, it leads back to itself";
    case SZ_ERROR:
        return "error";
    case SZ_OUT_OF_STEPS:
        return "not decided: too many steps";
    }
    return "";
}

static struct sz_slice relation_name(const struct explainer *x, uint16_t relation)
{
    return x->a->p->relation_names[relation];
}

/* A question about another object or relation. */
static void explain_relation(struct explainer *x, uint32_t object, uint16_t rel, unsigned depth, unsigned indent)
{
    const struct sz_crel *r = &x->a->p->rels[rel];
    enum sz_answer answer = sz_ask_relation(x->a, object, rel, depth);
    if (!SAY(x, indent, "%.*s#%.*s: %s%s%s", SZ_FMT(sz_ask_name(x->a, object)), SZ_FMT(relation_name(x, r->relation)),
             word(answer), answer == SZ_ERROR ? ": " : "", answer == SZ_ERROR ? x->a->fault->message.s : ""))
        return;
    if (answer == SZ_CYCLE || depth >= SZ_DEPTH_MAX || (x->a->user == object && x->a->user_relation == r->relation))
        return;
    if (!sz_ask_reaches(x->a, rel)) {
        SAY(x, indent + 1, "no user of this type can have it");
        return;
    }
    sz_ask_enter(x->a, object, rel);
    explain(x, object, r, r->root, depth, indent + 1);
    sz_ask_leave(x->a, rel);
}

static struct sz_slice tuple_text(struct explainer *x, uint32_t object, uint16_t relation, uint32_t subject,
                                  uint16_t subject_relation)
{
    bool userset = subject_relation != 0 && subject_relation != SZ_WILD;
    return sz_pool_printf(sz_ask_pool(x->a), "%.*s#%.*s@%.*s%s%.*s", SZ_FMT(sz_ask_name(x->a, object)),
                          SZ_FMT(relation_name(x, relation)), SZ_FMT(sz_ask_name(x->a, subject)), userset ? "#" : "",
                          SZ_FMT(userset ? relation_name(x, subject_relation) : SZ_S("")));
}

/* One tuple: does it say something about the user, and does that decide? */
static bool explain_tuple(struct explainer *x, uint32_t object, const struct sz_crel *r, const struct sz_direct *d,
                          const struct sz_tupleiter *it, uint16_t follow, bool only_yes, unsigned depth,
                          unsigned indent)
{
    bool names_user = follow == SZ_NO_REL && (it->subject == x->a->user || d->form == x->a->wild_form);
    enum sz_answer held = sz_tuples_admits(x->a, d, it), then = SZ_NO;
    if (!names_user && follow == SZ_NO_REL)
        return false;
    if (held == SZ_YES)
        then = names_user ? SZ_YES : sz_ask_relation(x->a, it->subject, follow, depth + 1);
    if (only_yes && then != SZ_YES)
        return false;
    struct sz_slice text = tuple_text(x, object, r->relation, it->subject, d->relation);
    SAY(x, indent, "tuple %.*s%s", SZ_FMT(text),
        held == SZ_ERROR ? ", its condition cannot be told"
        : held == SZ_NO  ? ", its condition does not hold"
                         : "");
    if (held == SZ_YES && follow != SZ_NO_REL)
        explain_relation(x, it->subject, follow, depth + 1, indent + 1);
    return then == SZ_YES;
}

/* The tuples of a relation: those that name the user, everybody, usersets; or, with `ttu`, parents. */
static void explain_tuples(struct explainer *x, uint32_t object, const struct sz_crel *r, const struct sz_cex *ttu,
                           enum sz_answer answer, unsigned depth, unsigned indent)
{
    const struct sz_block *b = sz_ask_block(x->a, object);
    unsigned before = x->lines;
    for (uint16_t i = 0; i < r->n_direct; i++) {
        const struct sz_direct *d = &r->direct[i];
        uint16_t follow = ttu != NULL ? ttu->parents[i] : d->target;
        struct sz_tupleiter it;
        sz_tuples_begin(&it, b, object, r->relation, d->form);
        while ((ttu == NULL || follow != SZ_NO_REL) && x->lines < LINES_MAX && sz_tuples_next(x->a, &it))
            if (explain_tuple(x, object, r, d, &it, follow, answer == SZ_YES, depth, indent) && answer == SZ_YES)
                return;
    }
    if (x->lines == before && ttu != NULL)
        SAY(x, indent, "%.*s has no %.*s", SZ_FMT(sz_ask_name(x->a, object)), SZ_FMT(relation_name(x, r->relation)));
    else if (x->lines == before)
        SAY(x, indent, "no tuple about this user");
}

static void explain_operator(struct explainer *x, uint32_t object, const struct sz_crel *r, const struct sz_cex *e,
                             enum sz_answer answer, unsigned depth, unsigned indent)
{
    static const char *const names[] = {
        [SZ_C_UNION] = "any of", [SZ_C_INTERSECTION] = "all of", [SZ_C_DIFFERENCE] = "the first but not the second of"};
    if (!SAY(x, indent, "%s: %s", names[e->op], word(answer)))
        return;
    for (uint16_t i = 0; i < e->n; i++) {
        enum sz_answer one = sz_ask_rewrite(x->a, object, r, e->child[i], depth);
        bool decides = (e->op == SZ_C_UNION && answer == SZ_YES && one != SZ_YES) ||
                       (e->op == SZ_C_INTERSECTION && answer != SZ_YES && one == SZ_YES);
        if (!decides) /* what did not matter is left out */
            explain(x, object, r, e->child[i], depth, indent + 1);
        if (e->op == SZ_C_UNION && one == SZ_YES)
            return;
    }
}

static void explain(struct explainer *x, uint32_t object, const struct sz_crel *r, const struct sz_cex *e,
                    unsigned depth, unsigned indent)
{
    enum sz_answer answer = sz_ask_rewrite(x->a, object, r, e, depth);
    if (x->lines > LINES_MAX)
        return;
    switch (e->op) {
    case SZ_C_DIRECT:
        explain_tuples(x, object, r, NULL, answer, depth, indent);
        return;
    case SZ_C_COMPUTED:
        explain_relation(x, object, e->target, depth, indent);
        return;
    case SZ_C_TTU:
        SAY(x, indent, "%.*s from %.*s: %s", SZ_FMT(relation_name(x, e->relation)),
            SZ_FMT(relation_name(x, x->a->p->rels[e->tupleset].relation)), word(answer));
        explain_tuples(x, object, &x->a->p->rels[e->tupleset], e, answer, depth, indent + 1);
        return;
    case SZ_C_UNION:
    case SZ_C_INTERSECTION:
    case SZ_C_DIFFERENCE:
        explain_operator(x, object, r, e, answer, depth, indent);
        return;
    }
}

void sz_engine_explain(struct sz_engine *e, const struct sz_program *p, const struct sz_check *check,
                       struct sz_buf *out)
{
    struct sz_ask a;
    struct sz_fault fault = {0};
    struct explainer x = {.a = &a, .out = out};
    uint32_t object;
    uint16_t rel;
    sz_ask_begin(&a, e, p, UINT64_MAX, &fault);
    if (sz_ask_key(&a, &check->key, &object, &rel) == 0 &&
        sz_ask_context(&a, check->context, check->contextual, check->contextual_n) == 0)
        explain_relation(&x, object, rel, 0, 0);
    else
        sz_buf_printf(out, "%s\n", fault.message.s);
    sz_ask_end(&a);
}

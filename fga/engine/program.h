/*
 * A model made ready to run: every name a number, every restriction list sorted by form, and for each kind of
 * user which relations it can have at all.
 */
#ifndef SZ_ENGINE_PROGRAM_H
#define SZ_ENGINE_PROGRAM_H

#include "fga/engine/cel.h"
#include "fga/engine/engine.h"
#include "fga/engine/store.h"

#define SZ_NO_REL 0xffff

struct sz_direct { /* one user form that a relation admits */
    uint16_t form, type;
    uint16_t relation; /* 0 plain, SZ_WILD, else the userset's */
    uint16_t target;   /* userset: its relation, as an index into rels; else SZ_NO_REL */
    bool bare;         /* admitted without a condition */
    uint16_t n_conds;
    const uint16_t *conds; /* names of conditions it is admitted with */
};

enum sz_cop { SZ_C_DIRECT, SZ_C_COMPUTED, SZ_C_TTU, SZ_C_UNION, SZ_C_INTERSECTION, SZ_C_DIFFERENCE };

struct sz_cex { /* one node of a rewrite */
    enum sz_cop op;
    uint16_t target;         /* COMPUTED */
    uint16_t tupleset;       /* TTU: the relation that holds the parents, as an index into rels */
    uint16_t relation;       /* TTU: name of the relation looked up on the parents */
    const uint16_t *parents; /* TTU: for each admitted form of the tupleset, the parent's relation or SZ_NO_REL */
    const struct sz_cex *const *child;
    uint16_t n;
};

struct sz_crel {
    uint16_t type, relation; /* names, as the store numbers them */
    const struct sz_cex *root;
    const struct sz_direct *direct;
    uint16_t n_direct;
    uint32_t parent_key; /* row of the first parents it looks through, 0: none; fetched ahead of need */
    bool assignable;     /* has a direct part */
    bool tupleset;       /* some relation of the type looks through it */
    bool recursive;      /* can come to itself again through tuples: cycles have to be looked for */
    bool members_only;   /* nothing but plain users and type:*, without conditions: one lookup answers it */
    bool listable;       /* its direct part is where lists look: not behind an `and` or in what is taken away */
    bool pure;           /* unions only and no conditions, all the way down: who is found by walking back has it */
};

/* Where a list goes on from "the user has this relation on an object". */
struct sz_back {
    enum sz_cop op;        /* DIRECT: by userset tuples, COMPUTED: on the same object, TTU: to its children */
    uint16_t rel;          /* the relation that it then has, as an index */
    uint16_t row_relation; /* DIRECT, TTU: key of the reverse row */
    uint16_t row_form;
};

struct sz_ccond {
    uint16_t name; /* number in the store */
    struct sz_slice text;
    struct sz_cel *cel;
    const struct sz_param *params;
    size_t n_params;
};

struct sz_program {
    struct sz_arena arena; /* owns all but the compiled conditions */
    struct sz_crel *rels;
    size_t n_rels;
    struct sz_ccond *conds;
    size_t n_conds;
    const struct sz_slice *type_names, *relation_names; /* by the store's numbers, as they were; names are shared */
    size_t n_type_names, n_relation_names;
    uint8_t *has_type;                /* by the store's number of the type */
    uint16_t *plain_form, *wild_form; /* by type */
    uint16_t *rel_table;              /* open addressing: hash of (type, relation name) -> index into rels */
    uint32_t rel_mask;
    uint16_t *cond_index; /* by the store's number of the condition's name -> index into conds + 1 */
    size_t n_cond_index;
    const struct sz_form *forms;
    size_t n_forms;
    uint64_t *reach; /* n_forms rows of reach_words: which relations users of the form can have */
    size_t reach_words;
    uint32_t *back_first; /* n_rels + 1: each relation's part of `back` */
    struct sz_back *back;
    struct sz_program *next;
};

/* Calls fn for each leaf of a rewrite that lists follow: all of `or`, the first of `and`, the base of `but not`. */
typedef void sz_leaf_fn(void *arg, const struct sz_crel *r, const struct sz_cex *leaf);
void sz_followed(const struct sz_crel *r, const struct sz_cex *x, sz_leaf_fn *fn, void *arg);
void sz_program_index_back(struct sz_program *p);

/* Under the engine's mutex. */
struct sz_program *sz_program_new(struct sz_store *s, const struct sz_model *m, struct sz_fault *fault);
void sz_program_free(struct sz_program *p);

/* What the API refuses in a model (2056); not the same set as sz_model_lint. */
int sz_model_check(const struct sz_model *m, struct sz_fault *fault);

uint16_t sz_program_rel(const struct sz_program *p, uint16_t type, struct sz_slice relation); /* SZ_NO_REL: none */
uint16_t sz_program_type(const struct sz_program *p, struct sz_slice name);                   /* 0: none */
uint16_t sz_program_relation(const struct sz_program *p, struct sz_slice name); /* number of the name, 0: none */
uint16_t sz_program_form(const struct sz_program *p, uint16_t type, uint16_t relation); /* 0: none */

static inline bool sz_program_has_type(const struct sz_program *p, uint16_t type)
{
    return type < p->n_type_names && p->has_type[type];
}
static inline const struct sz_direct *sz_direct_find(const struct sz_crel *r, uint16_t form)
{
    for (uint16_t i = 0; i < r->n_direct; i++)
        if (r->direct[i].form == form)
            return &r->direct[i];
    return NULL;
}

#endif

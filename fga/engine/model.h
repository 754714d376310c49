/*
 * An authorization model as data: what the DSL and the JSON form both say.  Plain trees, no
 * numbers assigned yet; compile.h turns it into what a check runs on.
 */
#ifndef SZ_ENGINE_MODEL_H
#define SZ_ENGINE_MODEL_H

#include "fga/engine/problems.h"

enum sz_rw_op { SZ_RW_THIS, SZ_RW_COMPUTED, SZ_RW_TTU, SZ_RW_UNION, SZ_RW_INTERSECTION, SZ_RW_DIFFERENCE };

/* One rewrite.  COMPUTED: relation.  TTU: relation from tupleset.  Operators: children (difference: base, subtract). */
struct sz_rw {
    enum sz_rw_op op;
    struct sz_slice relation, tupleset;
    struct sz_rw **child;
    size_t n;
};

/* One entry of a restriction list: type | type:* | type#relation, each maybe "with condition". */
struct sz_ref {
    struct sz_slice type, relation, condition;
    bool wildcard;
};

struct sz_rel {
    struct sz_slice name;
    struct sz_rw *rw; /* NULL: the JSON had no known rewrite */
    struct sz_ref *refs;
    size_t n_refs;
    bool described; /* metadata has an entry for it */
    struct sz_slice module, file;
};

struct sz_type {
    struct sz_slice name;
    struct sz_rel *rels;
    size_t n_rels;
    bool extends; /* "extend type": only in a module's own tree, never in a whole model */
    bool has_metadata;
    struct sz_slice module, file;
};

enum sz_ptype {
    SZ_P_NONE,
    SZ_P_ANY,
    SZ_P_BOOL,
    SZ_P_STRING,
    SZ_P_INT,
    SZ_P_UINT,
    SZ_P_DOUBLE,
    SZ_P_DURATION,
    SZ_P_TIMESTAMP,
    SZ_P_MAP,
    SZ_P_LIST,
    SZ_P_IPADDRESS,
};

struct sz_param {
    struct sz_slice name;
    enum sz_ptype type, element; /* element: of a list or map, else SZ_P_NONE */
};

struct sz_cond {
    struct sz_slice key, name, expression; /* key: under which it is listed; must equal name */
    struct sz_param *params;
    size_t n_params;
    struct sz_slice module, file;
};

struct sz_model {
    struct sz_arena arena;  /* owns all of it, names included */
    struct sz_slice schema; /* SZ_NONE: not given */
    struct sz_slice module; /* a module's own tree: its name */
    struct sz_type *types;
    size_t n_types;
    struct sz_cond *conds;
    size_t n_conds;
};

/* Heap; free with sz_model_free (NULL is fine). */
struct sz_model *sz_model_new(void);
void sz_model_free(struct sz_model *m);

/* Appending; growth comes from the model's arena.  The entry is zeroed and valid until the next append to the same
 * list. */
struct sz_type *sz_model_add_type(struct sz_model *m, struct sz_slice name);
struct sz_rel *sz_model_add_rel(struct sz_model *m, struct sz_type *t, struct sz_slice name);
struct sz_ref *sz_model_add_ref(struct sz_model *m, struct sz_rel *r);
struct sz_cond *sz_model_add_cond(struct sz_model *m, struct sz_slice name);
struct sz_param *sz_model_add_param(struct sz_model *m, struct sz_cond *c, struct sz_slice name);
struct sz_rw *sz_model_rw(struct sz_model *m, enum sz_rw_op op);
void sz_model_rw_add(struct sz_model *m, struct sz_rw *parent, struct sz_rw *child);

/* By name, NULL when absent.  Linear: models hold at most a few hundred names. */
struct sz_type *sz_model_type(const struct sz_model *m, struct sz_slice name);
struct sz_rel *sz_type_rel(const struct sz_type *t, struct sz_slice name);
struct sz_cond *sz_model_cond(const struct sz_model *m, struct sz_slice name);

/* "string", "TYPE_NAME_STRING" and back. */
enum sz_ptype sz_ptype_parse(struct sz_slice lower_case_word);
const char *sz_ptype_word(enum sz_ptype t);

/* Operators nested deeper than this are refused: every walk over a rewrite is recursive. */
#define SZ_MODEL_NEST 64

/* Bounds on what is read, far above what a server takes (256 KiB, 100 types, 25 conditions). */
enum {
    SZ_MODEL_TEXT_MAX = 1 << 20,
    SZ_MODEL_TYPES_MAX = 4096,
    SZ_MODEL_RELATIONS_MAX = 8192, /* of all types together */
    SZ_MODEL_LIST_MAX = 1024,      /* restrictions of a relation, operands of an operator, parameters; conditions */
};
/* The first bound that the model exceeds, as a problem; true: none. */
bool sz_model_within_bounds(const struct sz_model *m, struct sz_problems *problems);

/* ---- text forms ---- */

/* .fga text.  NULL with at least one problem, or the tree (which may still be semantically wrong: see sz_model_lint).
 */
struct sz_model *sz_dsl_parse(struct sz_slice text, struct sz_problems *problems);
/* The model as .fga text into `out`; `sources` adds the module comments.  -EINVAL: not expressible, *why says what. */
int sz_dsl_write(const struct sz_model *m, bool sources, struct sz_buf *out, struct sz_text *why) SZ_MUST_CHECK;

/* The API's JSON, from text or an already parsed value (json_t *). */
struct sz_model *sz_model_json_parse(struct sz_slice text, struct sz_problems *problems);
struct sz_model *sz_model_json_read(const void *json, struct sz_problems *problems);
/* A new json_t * reference. */
void *sz_model_json_write(const struct sz_model *m);
void sz_json_free(void *json); /* json_decref, for those who do not include jansson */

/* ---- modules ---- */

struct sz_module_file {
    struct sz_slice name, text;
};
/* fga.mod: names of the files it lists, into problems->arena-independent memory of `pool`.  -EINVAL: see problems. */
int sz_fga_mod_parse(struct sz_slice text, struct sz_pool *pool, struct sz_module_file **files, size_t *n,
                     struct sz_problems *problems) SZ_MUST_CHECK;
/* Merges module files into one model of the given schema version; NULL with problems. */
struct sz_model *sz_modules_merge(const struct sz_module_file *files, size_t n, struct sz_slice schema,
                                  struct sz_problems *problems);

/*
 * The language's own validation, as `fga model validate` has it: every problem, with its place when
 * `text` (the DSL it came from) is given.  0: none; positive: their number.
 */
size_t sz_model_lint(const struct sz_model *m, struct sz_slice text, struct sz_problems *problems);

#endif

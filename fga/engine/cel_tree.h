/* Inside the CEL compiler: the tree, its types, and the code made of it. */
#ifndef SZ_ENGINE_CEL_TREE_H
#define SZ_ENGINE_CEL_TREE_H

#include "fga/engine/cel.h"

/* Functions and operators.  Name as written; `receiver`: called as x.name(...). */
#define SZ_CEL_FUNCTIONS(X)                \
    X(NOT, "!", false)                     \
    X(NEGATE, "-", false)                  \
    X(ADD, "+", false)                     \
    X(SUB, "-", false)                     \
    X(MUL, "*", false)                     \
    X(DIV, "/", false)                     \
    X(MOD, "%", false)                     \
    X(EQ, "==", false)                     \
    X(NE, "!=", false)                     \
    X(LT, "<", false)                      \
    X(LE, "<=", false)                     \
    X(GT, ">", false)                      \
    X(GE, ">=", false)                     \
    X(IN, "in", false)                     \
    X(INDEX, "[]", false)                  \
    X(SIZE, "size", false)                 \
    X(SIZE_OF, "size", true)               \
    X(STARTS_WITH, "startsWith", true)     \
    X(ENDS_WITH, "endsWith", true)         \
    X(CONTAINS, "contains", true)          \
    X(MATCHES, "matches", true)            \
    X(MATCHES_FN, "matches", false)        \
    X(IN_CIDR, "in_cidr", true)            \
    X(TO_DURATION, "duration", false)      \
    X(TO_TIMESTAMP, "timestamp", false)    \
    X(TO_IP, "ipaddress", false)           \
    X(TO_INT, "int", false)                \
    X(TO_UINT, "uint", false)              \
    X(TO_DOUBLE, "double", false)          \
    X(TO_STRING, "string", false)          \
    X(TO_BOOL, "bool", false)              \
    X(TO_DYN, "dyn", false)                \
    X(FULL_YEAR, "getFullYear", true)      \
    X(MONTH, "getMonth", true)             \
    X(DATE, "getDate", true)               \
    X(DAY_OF_MONTH, "getDayOfMonth", true) \
    X(DAY_OF_WEEK, "getDayOfWeek", true)   \
    X(DAY_OF_YEAR, "getDayOfYear", true)   \
    X(HOURS, "getHours", true)             \
    X(MINUTES, "getMinutes", true)         \
    X(SECONDS, "getSeconds", true)         \
    X(MILLISECONDS, "getMilliseconds", true)

enum sz_fn {
#define X(id, name, receiver) FN_##id,
    SZ_CEL_FUNCTIONS(X)
#undef X
        FN_COUNT
};

enum sz_ty_kind {
    TY_DYN,
    TY_NULL,
    TY_BOOL,
    TY_INT,
    TY_UINT,
    TY_DOUBLE,
    TY_STRING,
    TY_TIMESTAMP,
    TY_DURATION,
    TY_IP,
    TY_LIST,
    TY_MAP,
};
struct sz_ty {
    enum sz_ty_kind kind;
    const struct sz_ty *key, *element; /* map key; list element or map value */
};

enum sz_ex_kind {
    EX_CONST,
    EX_VAR,  /* slot */
    EX_CALL, /* fn, args */
    EX_AND,
    EX_OR,
    EX_COND,   /* args: condition, then, else */
    EX_SELECT, /* args[0].name */
    EX_HAS,    /* has(args[0].name) */
    EX_LIST,   /* args */
    EX_MAP,    /* args: key, value, key, value ... */
    EX_ALL,    /* args: range, predicate; slot: the loop variable */
    EX_EXISTS,
    EX_EXISTS_ONE,
};
struct sz_ex {
    enum sz_ex_kind kind;
    enum sz_fn fn;
    struct sz_slice name; /* EX_VAR before resolving, EX_SELECT, EX_HAS */
    struct sz_cv value;
    struct sz_ex **args;
    size_t n;
    uint16_t slot;
    size_t at; /* offset in the text */
    const struct sz_ty *type;
};

struct sz_celc { /* one compilation */
    struct sz_slice text;
    struct sz_arena arena;
    struct sz_text *why;
    bool failed;
    const struct sz_param *params;
    size_t n_params;
    struct sz_slice loop_vars[16]; /* in scope, innermost last; slot = n_params + index */
    const struct sz_ty *loop_types[16];
    size_t n_loop_vars, max_loop_vars;
};

void *sz_celc_fail(struct sz_celc *c, size_t at, const char *fmt, ...) SZ_PRINTF(3, 4); /* returns NULL */
struct sz_ex *sz_celc_parse(struct sz_celc *c); /* names of functions resolved, variables not */
void sz_celc_check(struct sz_celc *c, struct sz_ex *root);
const char *sz_fn_name(enum sz_fn fn);
int sz_fn_find(struct sz_slice name, bool receiver); /* -1: unknown */

/* The function on values, none of which is an error; the result may be one. */
struct sz_cv sz_fn_call(enum sz_fn fn, const struct sz_cv *args, size_t n, struct sz_pool *pool);
/* What it costs, as CEL counts (strings by tenths of their length). */
uint64_t sz_fn_cost(enum sz_fn fn, const struct sz_cv *args, size_t n);

/* ---- code ---- */

enum sz_op {
    OP_CONST,    /* push consts[b] */
    OP_VAR,      /* push variable b */
    OP_CALL,     /* fn a, n arguments */
    OP_MATCH,    /* pop a string, search with regexes[b] */
    OP_JUMP,     /* to b */
    OP_AND_JUMP, /* top is false: to b, keeping it */
    OP_OR_JUMP,  /* top is true: to b, keeping it */
    OP_AND,      /* two -> one, absorbing errors */
    OP_OR,
    OP_COND,   /* pop: false -> b; not a bool -> push the error, to a */
    OP_SELECT, /* field consts[b] of top */
    OP_HAS,    /* has top a field consts[b] */
    OP_LIST,   /* n items -> one */
    OP_MAP,    /* n keys and values, alternating -> one */
    OP_FOLD,   /* pop a range; the next b instructions are the predicate; kind n, slot a */
};
struct sz_ins {
    uint8_t op, n;
    uint16_t a;
    uint32_t b;
};
struct sz_cel {
    struct sz_arena arena; /* owns constants */
    struct sz_ins *code;
    size_t n;
    struct sz_cv *consts;
    size_t n_consts;
    struct sz_regex **regexes;
    size_t n_regexes;
    size_t n_params, n_slots, max_stack;
};
/* Emits the checked tree; takes over c's arena.  NULL on failure. */
struct sz_cel *sz_celc_emit(struct sz_celc *c, const struct sz_ex *root);

#endif

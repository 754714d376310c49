/*
 * Inside the DSL reader: cleaned text -> tokens -> parse tree -> model.
 *
 * The parser is a table-driven LL parser that follows the same prediction and recovery rules as the
 * ecosystem's reference parser, so that a mistake is reported at the same place with the same words
 * and the mistakes after it as well.  dsl_grammar.c holds the rules as text, dsl_atn.c turns them into
 * a state graph, dsl_predict.c chooses alternatives, dsl_parse.c walks and recovers, dsl_build.c makes the model.
 */
#ifndef SZ_ENGINE_DSL_H
#define SZ_ENGINE_DSL_H

#include "fga/engine/model.h"

/* Token types, in the order in which messages list them.  Name in messages; literal for the lexer or NULL. */
#define SZ_DSL_TOKENS(X)                      \
    X(EOF, "<EOF>")                           \
    X(COLON, "':'")                           \
    X(COMMA, "','")                           \
    X(LESS, "'<'")                            \
    X(GREATER, "'>'")                         \
    X(LBRACKET, "'['")                        \
    X(LPAREN, "'('")                          \
    X(RPAREN, "')'")                          \
    X(WS, "WHITESPACE")                       \
    X(IDENT, "IDENTIFIER")                    \
    X(HASH, "'#'")                            \
    X(AND, "'and'")                           \
    X(OR, "'or'")                             \
    X(BUT_NOT, "'but not'")                   \
    X(FROM, "'from'")                         \
    X(MODULE, "'module'")                     \
    X(MODEL, "'model'")                       \
    X(SCHEMA, "'schema'")                     \
    X(VERSION, "SCHEMA_VERSION")              \
    X(EXTEND, "'extend'")                     \
    X(TYPE, "'type'")                         \
    X(CONDITION, "'condition'")               \
    X(RELATIONS, "'relations'")               \
    X(RELATION, "'relation'")                 \
    X(DEFINE, "'define'")                     \
    X(WITH, "'with'")                         \
    X(EQ, "'=='")                             \
    X(NE, "'!='")                             \
    X(IN, "'in'")                             \
    X(LE, "'<='")                             \
    X(GE, "'>='")                             \
    X(LAND, "'&&'")                           \
    X(LOR, "'||'")                            \
    X(RBRACKET, "']'")                        \
    X(LBRACE, "'{'")                          \
    X(RBRACE, "'}'")                          \
    X(DOT, "'.'")                             \
    X(MINUS, "'-'")                           \
    X(EXCLAM, "'!'")                          \
    X(QUESTION, "'?'")                        \
    X(PLUS, "'+'")                            \
    X(STAR, "'*'")                            \
    X(SLASH, "'/'")                           \
    X(PERCENT, "'%'")                         \
    X(TRUE, "'true'")                         \
    X(FALSE, "'false'")                       \
    X(NUL, "'null'")                          \
    X(COMMENT, "CEL_COMMENT")                 \
    X(FLOAT, "NUM_FLOAT")                     \
    X(INT, "NUM_INT")                         \
    X(UINT, "NUM_UINT")                       \
    X(STRING, "STRING")                       \
    X(BYTES, "BYTES")                         \
    X(EXT_IDENT, "EXTENDED_IDENTIFIER")       \
    X(NL, "NEWLINE")                          \
    X(CONTAINER, "CONDITION_PARAM_CONTAINER") \
    X(PTYPE, "CONDITION_PARAM_TYPE")

enum sz_tok {
#define X(name, shown) T_##name,
    SZ_DSL_TOKENS(X)
#undef X
        T_COUNT
};

typedef uint64_t sz_tokset; /* bit t: token type t; bit 63: the end of the rule can be reached */
#define SZ_TOKSET(t)  ((sz_tokset)1 << (t))
#define SZ_TOKSET_END ((sz_tokset)1 << 63)
#define SZ_TOKSET_ALL (SZ_TOKSET(T_COUNT) - 1)

struct sz_token {
    enum sz_tok type;
    struct sz_slice text;
    unsigned line, column;
};
struct sz_tokens {
    struct sz_token *v; /* the last is T_EOF */
    size_t n;
};

/* Tokens of the cleaned text, from `pool`; characters that fit no token become problems. */
void sz_dsl_lex(struct sz_slice text, struct sz_pool *pool, struct sz_tokens *out, struct sz_problems *problems);

/* ---- grammar ---- */

enum sz_rule {
#define X(id, body) R_##id,
#include "fga/engine/dsl_rules.h"
#undef X
    R_COUNT
};

enum sz_el_kind { EL_TOKEN, EL_SET, EL_RULE, EL_BLOCK, EL_OPT, EL_STAR, EL_PLUS };

/* An element of a rule: what the walker executes. */
struct sz_el {
    enum sz_el_kind kind;
    enum sz_rule rule;
    sz_tokset set;
    uint16_t state;      /* the state before it; decision state of a block, entry of a loop, start of a plus loop */
    uint16_t loop_state; /* loops: the state after a turn */
    bool ll1;            /* one token decides */
    sz_tokset look[4];   /* ll1: first tokens of each alternative */
    struct sz_alt *alts;
    uint8_t n_alts;
};
struct sz_alt {
    struct sz_el *els;
    size_t n;
};

enum sz_state_kind { ST_BASIC, ST_STOP, ST_BLOCK_START, ST_PLUS_START, ST_STAR_ENTRY, ST_LOOP_BACK };

struct sz_edge {
    enum { EDGE_EPSILON, EDGE_SET, EDGE_RULE } kind;
    uint16_t target; /* RULE: the start of the rule */
    uint16_t follow; /* RULE: where to go on after it */
    sz_tokset set;
};
struct sz_state {
    enum sz_state_kind kind;
    enum sz_rule rule;
    struct sz_edge *edges; /* a decision's alternatives in order */
    uint16_t n_edges;
};
struct sz_atn {
    struct sz_arena arena;
    struct sz_state *states;
    size_t n_states;
    struct sz_alt *rules; /* R_COUNT bodies */
    uint16_t start[R_COUNT], stop[R_COUNT];
    sz_tokset *next; /* per state: what can come within its rule; SZ_TOKSET_END when the rule can end */
};

/* Built once per process, never freed. */
const struct sz_atn *sz_dsl_atn(void);

/* ---- parse ---- */

struct sz_node { /* rule application or token */
    bool is_token;
    enum sz_rule rule;
    const struct sz_token *token;
    struct sz_node **child;
    size_t n;
};

/* One rule that is being parsed; the chain is what may follow. */
struct sz_frame {
    const struct sz_frame *parent;
    uint16_t invoked_from; /* the state with the rule edge; 0xffff at the top */
};

struct sz_predict; /* workspace of predictions, dsl_predict.c */
struct sz_predict *sz_predict_new(const struct sz_atn *atn, const struct sz_tokens *tokens);
void sz_predict_free(struct sz_predict *p);
/*
 * The alternative (from 1) of the decision at `state` for the tokens from `at`; 0: none fits, and
 * *failed_at is the index of the token that ended the search.
 */
#define SZ_PREDICT_GAVE_UP 99 /* all predictions of this text together took too much work: parse no further */
unsigned sz_predict(struct sz_predict *p, uint16_t state, const struct sz_frame *frame, size_t at, size_t *failed_at);

/* The whole file; the tree lives in `pool` and may be incomplete when problems were found. */
struct sz_node *sz_dsl_tree(const struct sz_tokens *tokens, struct sz_pool *pool, struct sz_problems *problems);

/* Token text as messages quote it. */
struct sz_slice sz_dsl_quote(struct sz_pool *pool, struct sz_slice text);

#endif

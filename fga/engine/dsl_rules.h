/*
 * The grammar of .fga files.  One row per rule: name, body.
 *
 *   name      token type or rule       a b       sequence
 *   (a|b)     alternatives             x? x* x+  optional, repeated
 *   ~T        any token but T          .         any token
 *
 * The order of alternatives and the places of optional blanks are part of the language: they decide
 * which message a mistake gets.
 */
/* clang-format off */
X(main,        "WS? NL? (model_head|module_head) NL? types NL? conditions NL? EOF")
X(model_head,  "(comment NL)? MODEL NL SCHEMA WS VERSION WS?")
X(module_head, "(comment NL)? MODULE WS name WS?")
X(types,       "type*")
X(type,        "(NL comment)? NL (EXTEND WS)? TYPE WS long_name (NL RELATIONS relation+)?")
X(relation,    "(NL comment)? NL DEFINE WS rel_name WS? COLON WS? expr")
X(rel_name,    "long_name")
X(expr,        "(direct|group|paren) partials?")
X(expr_nd,     "(group|paren_nd) partials?")
X(partials,    "((WS OR WS (group|paren_nd))+|(WS AND WS (group|paren_nd))+|(WS BUT_NOT WS (group|paren_nd)))")
X(group,       "rewrite")
X(paren,       "LPAREN WS* (expr|paren_nd) WS* RPAREN")
X(paren_nd,    "LPAREN WS* (expr_nd|paren_nd) WS* RPAREN")
X(direct,      "LBRACKET WS? restr WS? (COMMA WS? restr WS?)* RBRACKET")
X(rewrite,     "long_name (WS FROM WS long_name)?")
X(restr,       "NL? (restr_base|(restr_base WS WITH WS cond_name)) NL?")
X(restr_base,  "long_name ((COLON STAR)|(HASH long_name))?")
X(conditions,  "condition*")
X(condition,   "(NL comment)? NL CONDITION WS cond_name WS? LPAREN WS? param WS? (COMMA WS? param WS?)* NL? RPAREN WS? LBRACE NL? WS? cel NL? RBRACE")
X(cond_name,   "IDENT")
X(param,       "NL? param_name WS? COLON WS? param_type")
X(param_name,  "IDENT")
X(param_type,  "(PTYPE|(CONTAINER LESS PTYPE GREATER))")
X(comment,     "HASH ~NL* (NL comment)?")
X(name,        "[MODEL SCHEMA TYPE RELATION IDENT MODULE EXTEND]")
X(long_name,   "(name|EXT_IDENT)")
X(cel,         "([IDENT EQ NE IN LESS LE GE GREATER LAND LOR LBRACKET RBRACKET LBRACE LPAREN RPAREN DOT MINUS EXCLAM QUESTION PLUS STAR SLASH PERCENT TRUE FALSE NUL WS COMMENT FLOAT INT UINT STRING BYTES NL]|~RBRACE)*")
/* clang-format on */

/*
 * Types: every call must have an overload for its arguments, as CEL demands; `dyn` fits everywhere and is
 * then looked at when the value is there.
 */
#include <stdarg.h>
#include <stdio.h>

#include "fga/engine/cel_tree.h"

static const struct sz_ty dyn = {TY_DYN, NULL, NULL}, null_type = {TY_NULL, NULL, NULL},
                          boolean = {TY_BOOL, NULL, NULL}, integer = {TY_INT, NULL, NULL},
                          uinteger = {TY_UINT, NULL, NULL}, real = {TY_DOUBLE, NULL, NULL},
                          string = {TY_STRING, NULL, NULL}, timestamp = {TY_TIMESTAMP, NULL, NULL},
                          duration = {TY_DURATION, NULL, NULL}, ip = {TY_IP, NULL, NULL},
                          any_list = {TY_LIST, NULL, &dyn}, any_map = {TY_MAP, &dyn, &dyn};

/* Overloads: argument letters, '>' and the result.  i u d s b T(imestamp) D(uration) I(p) L(ist) M(ap) */
static const struct {
    enum sz_fn fn;
    const char *types;
} overloads[] = {
    {FN_NOT, "b>b"},           {FN_NEGATE, "i>i"},        {FN_NEGATE, "d>d"},       {FN_ADD, "ii>i"},
    {FN_ADD, "uu>u"},          {FN_ADD, "dd>d"},          {FN_ADD, "ss>s"},         {FN_ADD, "TD>T"},
    {FN_ADD, "DT>T"},          {FN_ADD, "DD>D"},          {FN_ADD, "LL>L"},         {FN_SUB, "ii>i"},
    {FN_SUB, "uu>u"},          {FN_SUB, "dd>d"},          {FN_SUB, "TD>T"},         {FN_SUB, "TT>D"},
    {FN_SUB, "DD>D"},          {FN_MUL, "ii>i"},          {FN_MUL, "uu>u"},         {FN_MUL, "dd>d"},
    {FN_DIV, "ii>i"},          {FN_DIV, "uu>u"},          {FN_DIV, "dd>d"},         {FN_MOD, "ii>i"},
    {FN_MOD, "uu>u"},          {FN_LT, "bb>b"},           {FN_LT, "ii>b"},          {FN_LT, "uu>b"},
    {FN_LT, "dd>b"},           {FN_LT, "ss>b"},           {FN_LT, "TT>b"},          {FN_LT, "DD>b"},
    {FN_SIZE, "s>i"},          {FN_SIZE, "L>i"},          {FN_SIZE, "M>i"},         {FN_SIZE_OF, "s>i"},
    {FN_SIZE_OF, "L>i"},       {FN_SIZE_OF, "M>i"},       {FN_STARTS_WITH, "ss>b"}, {FN_ENDS_WITH, "ss>b"},
    {FN_CONTAINS, "ss>b"},     {FN_MATCHES, "ss>b"},      {FN_MATCHES_FN, "ss>b"},  {FN_IN_CIDR, "Is>b"},
    {FN_TO_DURATION, "s>D"},   {FN_TO_DURATION, "D>D"},   {FN_TO_DURATION, "i>D"},  {FN_TO_TIMESTAMP, "s>T"},
    {FN_TO_TIMESTAMP, "T>T"},  {FN_TO_TIMESTAMP, "i>T"},  {FN_TO_IP, "s>I"},        {FN_TO_INT, "i>i"},
    {FN_TO_INT, "u>i"},        {FN_TO_INT, "d>i"},        {FN_TO_INT, "s>i"},       {FN_TO_INT, "T>i"},
    {FN_TO_INT, "D>i"},        {FN_TO_UINT, "u>u"},       {FN_TO_UINT, "i>u"},      {FN_TO_UINT, "d>u"},
    {FN_TO_UINT, "s>u"},       {FN_TO_DOUBLE, "d>d"},     {FN_TO_DOUBLE, "i>d"},    {FN_TO_DOUBLE, "u>d"},
    {FN_TO_DOUBLE, "s>d"},     {FN_TO_STRING, "s>s"},     {FN_TO_STRING, "b>s"},    {FN_TO_STRING, "i>s"},
    {FN_TO_STRING, "u>s"},     {FN_TO_STRING, "d>s"},     {FN_TO_STRING, "T>s"},    {FN_TO_STRING, "D>s"},
    {FN_TO_BOOL, "b>b"},       {FN_TO_BOOL, "s>b"},       {FN_FULL_YEAR, "T>i"},    {FN_FULL_YEAR, "Ts>i"},
    {FN_MONTH, "T>i"},         {FN_MONTH, "Ts>i"},        {FN_DATE, "T>i"},         {FN_DATE, "Ts>i"},
    {FN_DAY_OF_MONTH, "T>i"},  {FN_DAY_OF_MONTH, "Ts>i"}, {FN_DAY_OF_WEEK, "T>i"},  {FN_DAY_OF_WEEK, "Ts>i"},
    {FN_DAY_OF_YEAR, "T>i"},   {FN_DAY_OF_YEAR, "Ts>i"},  {FN_HOURS, "T>i"},        {FN_HOURS, "Ts>i"},
    {FN_HOURS, "D>i"},         {FN_MINUTES, "T>i"},       {FN_MINUTES, "Ts>i"},     {FN_MINUTES, "D>i"},
    {FN_SECONDS, "T>i"},       {FN_SECONDS, "Ts>i"},      {FN_SECONDS, "D>i"},      {FN_MILLISECONDS, "T>i"},
    {FN_MILLISECONDS, "Ts>i"}, {FN_MILLISECONDS, "D>i"},
};

void *sz_celc_fail(struct sz_celc *c, size_t at, const char *fmt, ...)
{
    if (c->failed)
        return NULL;
    c->failed = true;
    char text[160];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    sz_text_set(c->why, "offset %zu: %s", at, text);
    return NULL;
}

static const struct sz_ty *by_letter(char letter)
{
    switch (letter) {
    case 'i':
        return &integer;
    case 'u':
        return &uinteger;
    case 'd':
        return &real;
    case 's':
        return &string;
    case 'b':
        return &boolean;
    case 'T':
        return &timestamp;
    case 'D':
        return &duration;
    case 'I':
        return &ip;
    case 'L':
        return &any_list;
    default:
        return &any_map;
    }
}

static const char *type_name(const struct sz_ty *t)
{
    static const char *const names[] = {"dyn",    "null",      "bool",     "int",       "uint", "double",
                                        "string", "timestamp", "duration", "ipaddress", "list", "map"};
    return names[t->kind];
}

/* Could a value of one be a value of the other?  null also stands for an absent timestamp, duration or address. */
static bool fits(const struct sz_ty *a, const struct sz_ty *b)
{
    if (a->kind == TY_DYN || b->kind == TY_DYN)
        return true;
    if (a->kind == TY_NULL || b->kind == TY_NULL) {
        const struct sz_ty *other = a->kind == TY_NULL ? b : a;
        return other->kind == TY_NULL || (other->kind >= TY_TIMESTAMP && other->kind <= TY_IP);
    }
    if (a->kind != b->kind)
        return false;
    if (a->kind == TY_LIST)
        return fits(a->element, b->element);
    return a->kind != TY_MAP || (fits(a->key, b->key) && fits(a->element, b->element));
}

static const struct sz_ty *compound(struct sz_celc *c, enum sz_ty_kind kind, const struct sz_ty *key,
                                    const struct sz_ty *element)
{
    struct sz_ty *t = sz_pool_alloc(&c->arena.pool, sizeof(*t));
    *t = (struct sz_ty){kind, key, element};
    return t;
}

static const struct sz_ty *param_type(struct sz_celc *c, enum sz_ptype type, enum sz_ptype element)
{
    static const char letters[] = {
        [SZ_P_BOOL] = 'b',   [SZ_P_STRING] = 's',   [SZ_P_INT] = 'i',       [SZ_P_UINT] = 'u',
        [SZ_P_DOUBLE] = 'd', [SZ_P_DURATION] = 'D', [SZ_P_TIMESTAMP] = 'T', [SZ_P_IPADDRESS] = 'I'};
    if (type == SZ_P_ANY || type == SZ_P_NONE)
        return &dyn;
    if (type == SZ_P_LIST)
        return compound(c, TY_LIST, NULL, param_type(c, element, SZ_P_NONE));
    if (type == SZ_P_MAP)
        return compound(c, TY_MAP, &string, param_type(c, element, SZ_P_NONE));
    return by_letter(letters[type]);
}

static const struct sz_ty *const_type(const struct sz_cv *v)
{
    switch (v->kind) {
    case CV_NULL:
        return &null_type;
    case CV_BOOL:
        return &boolean;
    case CV_INT:
        return &integer;
    case CV_UINT:
        return &uinteger;
    case CV_DOUBLE:
        return &real;
    default:
        return &string;
    }
}

/* The common type of two elements. */
static const struct sz_ty *join(const struct sz_ty *a, const struct sz_ty *b)
{
    return a == NULL ? b : a->kind == b->kind && fits(a, b) ? a : &dyn;
}

static const struct sz_ty *no_overload(struct sz_celc *c, const struct sz_ex *e)
{
    struct sz_text list = {""};
    for (size_t i = 0; i < e->n; i++)
        sz_text_add(&list, "%s%s", i == 0 ? "" : ", ", type_name(e->args[i]->type));
    sz_celc_fail(c, e->at, "no '%s' for (%s)", sz_fn_name(e->fn), list.s);
    return &dyn;
}

static const struct sz_ty *check_overloads(struct sz_celc *c, const struct sz_ex *e)
{
    enum sz_fn fn = e->fn == FN_LE || e->fn == FN_GT || e->fn == FN_GE ? FN_LT : e->fn;
    const struct sz_ty *result = NULL;
    for (size_t i = 0; i < SZ_COUNT(overloads); i++) {
        const char *types = overloads[i].types;
        size_t n = strchr(types, '>') == NULL ? 0 : (size_t)(strchr(types, '>') - types), k = 0;
        if (overloads[i].fn != fn || n != e->n)
            continue;
        while (k < n && fits(e->args[k]->type, by_letter(types[k])))
            k++;
        if (k < n)
            continue;
        const struct sz_ty *t =
            types[n + 1] == 'L' ? join(e->args[0]->type, e->args[1]->type) : by_letter(types[n + 1]);
        result = result == NULL || result->kind == t->kind ? t : &dyn;
    }
    return result != NULL ? result : no_overload(c, e);
}

static const struct sz_ty *check_index(struct sz_celc *c, const struct sz_ex *e)
{
    const struct sz_ty *t = e->args[0]->type, *key = e->args[1]->type;
    if (t->kind == TY_DYN)
        return &dyn;
    if (t->kind == TY_LIST && fits(key, &integer))
        return t->element;
    return t->kind == TY_MAP && fits(key, t->key) ? t->element : no_overload(c, e);
}

static const struct sz_ty *check_call(struct sz_celc *c, const struct sz_ex *e)
{
    const struct sz_ty *a = e->n > 0 ? e->args[0]->type : NULL, *b = e->n > 1 ? e->args[1]->type : NULL;
    switch (e->fn) {
    case FN_EQ:
    case FN_NE:
        return fits(a, b) ? &boolean : no_overload(c, e);
    case FN_IN:
        if (b->kind == TY_DYN || (b->kind == TY_LIST && fits(a, b->element)) || (b->kind == TY_MAP && fits(a, b->key)))
            return &boolean;
        return no_overload(c, e);
    case FN_INDEX:
        return check_index(c, e);
    case FN_TO_DYN:
        return e->n == 1 ? &dyn : no_overload(c, e);
    default:
        return check_overloads(c, e);
    }
}

static const struct sz_ty *check_var(struct sz_celc *c, struct sz_ex *e)
{
    for (size_t i = c->n_loop_vars; i-- > 0;)
        if (sz_eq(c->loop_vars[i], e->name)) {
            e->slot = (uint16_t)(c->n_params + i);
            return c->loop_types[i];
        }
    for (size_t i = 0; i < c->n_params; i++)
        if (sz_eq(c->params[i].name, e->name)) {
            e->slot = (uint16_t)i;
            return param_type(c, c->params[i].type, c->params[i].element);
        }
    sz_celc_fail(c, e->at, "undeclared reference to '%.*s'", SZ_FMT(e->name));
    return &dyn;
}

static const struct sz_ty *check_select(struct sz_celc *c, const struct sz_ex *e)
{
    const struct sz_ty *t = e->args[0]->type;
    if (t->kind != TY_DYN && t->kind != TY_MAP)
        sz_celc_fail(c, e->at, "a %s has no field '%.*s'", type_name(t), SZ_FMT(e->name));
    if (e->kind == EX_HAS)
        return &boolean;
    return t->kind == TY_MAP ? t->element : &dyn;
}

static void need_bool(struct sz_celc *c, const struct sz_ex *e)
{
    if (!fits(e->type, &boolean))
        sz_celc_fail(c, e->at, "expected a bool, not a %s", type_name(e->type));
}

static const struct sz_ty *check_fold(struct sz_celc *c, struct sz_ex *e)
{
    sz_celc_check(c, e->args[0]);
    const struct sz_ty *t = e->args[0]->type;
    if (t->kind != TY_DYN && t->kind != TY_LIST && t->kind != TY_MAP)
        sz_celc_fail(c, e->at, "cannot loop over a %s", type_name(t));
    if (c->n_loop_vars == SZ_COUNT(c->loop_vars))
        sz_celc_fail(c, e->at, "loops are nested too deeply");
    if (c->failed)
        return &boolean;
    e->slot = (uint16_t)(c->n_params + c->n_loop_vars);
    c->loop_vars[c->n_loop_vars] = e->name;
    c->loop_types[c->n_loop_vars++] = t->kind == TY_DYN ? &dyn : t->kind == TY_LIST ? t->element : t->key;
    if (c->n_loop_vars > c->max_loop_vars)
        c->max_loop_vars = c->n_loop_vars;
    sz_celc_check(c, e->args[1]);
    need_bool(c, e->args[1]);
    c->n_loop_vars--;
    return &boolean;
}

static const struct sz_ty *check_elements(const struct sz_ex *e, size_t from, size_t step)
{
    const struct sz_ty *t = NULL;
    for (size_t i = from; i < e->n; i += step)
        t = join(t, e->args[i]->type);
    return t == NULL ? &dyn : t;
}

static const struct sz_ty *check_node(struct sz_celc *c, struct sz_ex *e)
{
    switch (e->kind) {
    case EX_CONST:
        return const_type(&e->value);
    case EX_VAR:
        return check_var(c, e);
    case EX_CALL:
        return check_call(c, e);
    case EX_AND:
    case EX_OR:
        need_bool(c, e->args[0]);
        need_bool(c, e->args[1]);
        return &boolean;
    case EX_COND:
        need_bool(c, e->args[0]);
        if (!fits(e->args[1]->type, e->args[2]->type))
            sz_celc_fail(c, e->at, "the two results have different types");
        return join(e->args[1]->type, e->args[2]->type);
    case EX_SELECT:
    case EX_HAS:
        return check_select(c, e);
    case EX_LIST:
        return compound(c, TY_LIST, NULL, check_elements(e, 0, 1));
    case EX_MAP:
        return compound(c, TY_MAP, check_elements(e, 0, 2), check_elements(e, 1, 2));
    case EX_ALL:
    case EX_EXISTS:
    case EX_EXISTS_ONE:
        break;
    }
    return &dyn;
}

void sz_celc_check(struct sz_celc *c, struct sz_ex *e)
{
    e->type = &dyn;
    if (c->failed)
        return;
    if (e->kind >= EX_ALL) {
        e->type = check_fold(c, e);
        return;
    }
    for (size_t i = 0; i < e->n; i++)
        sz_celc_check(c, e->args[i]);
    if (!c->failed)
        e->type = check_node(c, e);
}

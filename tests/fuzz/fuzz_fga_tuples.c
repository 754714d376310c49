/* Tuple files: the first byte chooses the form; what parses is loaded, asked for and deleted again. */
#include <errno.h>
#include <stdint.h>

#include "fga/engine/engine.h"
#include "subzero/crypto.h"

static const char model_text[] =
    "model\n  schema 1.1\ntype user\ntype group\n  relations\n    define member: [user, user:*, "
    "group#member, user with c]\ntype doc\n  relations\n    define parent: [doc]\n    define "
    "viewer: [user, group#member with c] or viewer from parent\n    define blocked: [user]\n"
    "    define reader: viewer but not blocked\ncondition c(x: int, s: list<string>) {\n  x > 1 "
    "|| \"a\" in s\n}\n";

struct loaded {
    struct sz_engine *e;
    const struct sz_program *p;
    size_t n;
};

static int take(void *arg, const struct sz_tuple_key *k, size_t line)
{
    struct loaded *l = arg;
    struct sz_fault fault;
    struct sz_write w = {.writes = k, .writes_n = 1}, d = {.deletes = k, .deletes_n = 1};
    (void)line;
    if (++l->n > 200)
        return -E2BIG;
    if (sz_engine_write(l->e, l->p, &w, (struct sz_wall){0}, &fault) == 0) {
        struct sz_check c = {.key = *k, .context = SZ_S("{\"x\":2,\"s\":[]}")};
        uint64_t steps = 1000;
        if (sz_engine_check(l->e, l->p, &c, &steps, &fault) == SZ_ENGINE_NO && k->condition.p == NULL)
            __builtin_trap(); /* what was just written without a condition must be found */
        if (l->n % 3 == 0 && sz_engine_write(l->e, l->p, &d, (struct sz_wall){0}, &fault) != 0)
            __builtin_trap();
    }
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    static struct sz_model *m;
    struct sz_fault fault;
    struct sz_text why;
    if (m == NULL) {
        struct sz_problems problems;
        sz_crypto_init();
        sz_problems_init(&problems);
        m = sz_dsl_parse(sz_cstr(model_text), &problems);
        sz_problems_fini(&problems);
    }
    if (n < 1 || n > 8192)
        return 0;
    struct loaded l = {.e = sz_engine_new()};
    l.p = sz_engine_add_model(l.e, m, &fault);
    if (l.p == NULL)
        __builtin_trap();
    int ignored = sz_tuples_parse(sz_slice(data + 1, n - 1), (enum sz_tuple_format)(data[0] % 4), take, &l, &why);
    (void)ignored;
    sz_engine_free(l.e);
    return 0;
}

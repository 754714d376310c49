/* JSON models: read, validate both ways, compile, ask. */
#include <stdint.h>

#include "fga/engine/engine.h"
#include "subzero/crypto.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    static bool ready;
    struct sz_problems problems;
    struct sz_fault fault;
    if (!ready)
        sz_crypto_init();
    ready = true;
    if (n > 16384)
        return 0;
    sz_problems_init(&problems);
    struct sz_model *m = sz_model_json_parse(sz_slice(data, n), &problems);
    if (m != NULL) {
        sz_model_lint(m, SZ_NONE, &problems);
        struct sz_engine *e = sz_engine_new();
        const struct sz_program *p = sz_engine_add_model(e, m, &fault);
        for (size_t i = 0; p != NULL && i < m->n_types && i < 4; i++)
            for (size_t k = 0; k < m->types[i].n_rels && k < 8; k++) {
                struct sz_buf object = {0};
                sz_buf_printf(&object, "%.*s:1", SZ_FMT(m->types[i].name));
                struct sz_check c = {
                    .key = {sz_buf_slice(&object), m->types[i].rels[k].name, sz_buf_slice(&object), SZ_NONE, SZ_NONE}};
                uint64_t steps = 1000;
                int ignored = sz_engine_check(e, p, &c, &steps, &fault);
                (void)ignored;
                sz_buf_fini(&object);
            }
        sz_engine_free(e);
    }
    sz_model_free(m);
    sz_problems_fini(&problems);
    return 0;
}

/* The DSL: parse, validate, write, parse again; the second tree must mean the same. */
#include <jansson.h>
#include <stdint.h>
#include <stdlib.h>

#include "fga/engine/model.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct sz_problems problems;
    struct sz_text why;
    struct sz_buf out = {0};
    struct sz_slice text = sz_slice(data, n);
    if (n > 4096)
        return 0;
    sz_problems_init(&problems);
    struct sz_model *m = sz_dsl_parse(text, &problems);
    if (m != NULL && sz_utf8_valid(text)) {
        sz_model_lint(m, text, &problems);
        if (sz_dsl_write(m, false, &out, &why) == 0) {
            struct sz_problems again;
            sz_problems_init(&again);
            struct sz_model *copy = sz_dsl_parse(sz_buf_slice(&out), &again);
            json_t *a = sz_model_json_write(m), *b = copy != NULL ? sz_model_json_write(copy) : NULL;
            /* Modules lose their name, conditions may hold what only a comment ended: then nothing is compared. */
            if (b != NULL && m->module.p == NULL && m->n_conds == 0 && !json_equal(a, b))
                abort();
            json_decref(a);
            json_decref(b);
            sz_model_free(copy);
            sz_problems_fini(&again);
        }
    }
    sz_buf_fini(&out);
    sz_model_free(m);
    sz_problems_fini(&problems);
    return 0;
}

/* Bodies of api calls: whatever comes, each question that is read is well-formed and of bounded size. */
#include <stdlib.h>

#include "edge/api_body.h"
#include "subzero/crypto.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void expect_good(const struct sz_check *check)
{
    size_t at;
    if (check->key.user.n == 0 || check->key.user.n > 512 || sz_find_byte(check->key.user, ':') < 0 ||
        check->key.object.n == 0 || check->key.object.n > 256 || sz_find_byte(check->key.object, '#') >= 0 ||
        sz_find_byte(check->key.object, ' ') >= 0 || check->key.relation.n == 0 || check->key.relation.n > 50)
        abort();
    if (check->context.p != NULL && sz_json_check(check->context, 40, &at) != 0)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct sz_slice body = sz_slice(data, size);
    struct sz_api_evaluations evaluations;
    struct sz_check check;
    struct sz_arena arena;
    const char *why;

    sz_arena_init(&arena);
    if (sz_api_read_check(body, &arena.pool, &check, &why))
        expect_good(&check);
    for (int several = 0; several < 2; several++) {
        if (!sz_api_read_evaluations(body, several != 0, &arena.pool, &evaluations, &why))
            continue;
        if (evaluations.n == 0 || evaluations.n > SZ_API_EVALUATIONS_MAX)
            abort();
        for (size_t i = 0; i < evaluations.n; i++) {
            if (evaluations.items[i].wrong == NULL)
                expect_good(&evaluations.items[i].check);
        }
    }
    sz_arena_fini(&arena);
    return 0;
}

/* CEL: compile with parameters of every type; what compiles is evaluated. */
#include <jansson.h>
#include <stdint.h>

#include "fga/engine/cel.h"

static struct sz_param params[] = {
    {{"a", 1}, SZ_P_ANY, SZ_P_NONE},       {{"b", 1}, SZ_P_BOOL, SZ_P_NONE},     {{"i", 1}, SZ_P_INT, SZ_P_NONE},
    {{"u", 1}, SZ_P_UINT, SZ_P_NONE},      {{"d", 1}, SZ_P_DOUBLE, SZ_P_NONE},   {{"s", 1}, SZ_P_STRING, SZ_P_NONE},
    {{"t", 1}, SZ_P_TIMESTAMP, SZ_P_NONE}, {{"h", 1}, SZ_P_DURATION, SZ_P_NONE}, {{"ip", 2}, SZ_P_IPADDRESS, SZ_P_NONE},
    {{"l", 1}, SZ_P_LIST, SZ_P_STRING},    {{"m", 1}, SZ_P_MAP, SZ_P_INT},
};
static const char *const values[] = {"{\"k\":[1,\"x\",null,{\"z\":2.5}]}",
                                     "true",
                                     "\"-9223372036854775808\"",
                                     "7",
                                     "1.5",
                                     "\"h\\u00e4llo 10.0.0.1\"",
                                     "\"2024-02-29T23:59:59.5+02:00\"",
                                     "\"-1h30m\"",
                                     "\"::ffff:10.0.0.1\"",
                                     "[\"a\",\"b\",\"\"]",
                                     "{\"x\":1,\"y\":-2}"};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct sz_text why;
    struct sz_cv vars[SZ_COUNT(params)];
    json_t *json[SZ_COUNT(params)];
    struct sz_arena arena;
    if (n > 2048)
        return 0;
    struct sz_cel *cel = sz_cel_compile(sz_slice(data, n), params, SZ_COUNT(params), &why);
    if (cel == NULL)
        return 0;
    sz_arena_init(&arena);
    for (size_t i = 0; i < SZ_COUNT(params); i++) {
        json[i] = json_loads(values[i], JSON_DECODE_ANY, NULL);
        if (sz_cv_from_json(json[i], params[i].type, params[i].element, &arena.pool, &vars[i], &why) != 0)
            __builtin_trap();
    }
    int ignored = sz_cel_eval(cel, vars, &arena.pool, &why);
    (void)ignored;
    for (size_t i = 0; i < SZ_COUNT(params); i++)
        json_decref(json[i]);
    sz_arena_fini(&arena);
    sz_cel_free(cel);
    return 0;
}

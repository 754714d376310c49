/*
 * sz_json_check against jansson: what jansson takes, the check takes (depth and NUL bytes aside, which end a text
 * for jansson); what the check takes,
 * jansson takes or refuses for a duplicate name or a number out of range alone.  Any bytes at all become one
 * JSON string by sz_buf_json, whole or cut.
 */
#include <jansson.h>

#include "subzero/crypto.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { FLAGS = JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL | JSON_DECODE_ANY };

static void compare(struct sz_slice text)
{
    size_t at = SIZE_MAX;
    json_error_t error;
    bool ours = sz_json_check(text, 2048, &at) == 0;
    json_t *value = json_loadb(text.p, text.n, FLAGS, &error);
    SZ_ASSERT(at <= text.n);
    if (value != NULL && !ours)
        SZ_ASSERT(at < text.n && (text.p[at] == '[' || text.p[at] == '{' || text.p[at] == '\0'));
    if (value == NULL && ours) {
        enum json_error_code code = json_error_code(&error);
        SZ_ASSERT(code == json_error_duplicate_key || code == json_error_numeric_overflow);
    }
    json_decref(value);
}

static void quote(struct sz_slice bytes, size_t max)
{
    struct sz_buf b = {0};
    if (max == 0)
        sz_buf_json(&b, bytes);
    else
        sz_buf_json_cut(&b, bytes, max);
    SZ_ASSERT(max == 0 || b.n <= max + 2);
    size_t at;
    SZ_ASSERT(sz_json_check(sz_buf_slice(&b), 1, &at) == 0);
    json_t *value = json_loadb(b.p, b.n, FLAGS, NULL);
    SZ_ASSERT(json_is_string(value));
    if (max == 0 && sz_utf8_valid(bytes))
        SZ_ASSERT(sz_eq(sz_slice(json_string_value(value), json_string_length(value)), bytes));
    json_decref(value);
    sz_buf_fini(&b);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct sz_slice text = sz_slice(data, size);
    compare(text);
    quote(text, 0);
    quote(text, 3 + size % 64);
    return 0;
}

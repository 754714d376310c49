/*
 * The strict reading of a request head.  Whatever comes in, an accepted head must be one that cannot be read in
 * two ways: its slices lie inside the input, its lines hold no control character, its framing is one.
 */
#include "edge/head_check.h"
#include "subzero/scan.h"

static void inside(const uint8_t *data, size_t size, struct sz_slice s)
{
    const char *p = (const char *)data;
    /* Literals stand for what an absolute-form leaves out. */
    SZ_ASSERT(s.n <= 1 || (s.p >= p && s.p + s.n <= p + size));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct sz_head_limits limits = {.bytes = 4096, .fields = 64};
    struct sz_head head;
    const char *why = NULL;
    int rc = sz_head_check(sz_slice(data, size), &limits, &head, &why);
    if (rc != 0) {
        SZ_ASSERT(why != NULL);
        return 0;
    }
    SZ_ASSERT(head.length <= size && head.length <= limits.bytes && head.fields_n <= limits.fields);
    SZ_ASSERT(!(head.chunked && head.has_length) && !(head.chunked && head.http_1_0));
    SZ_ASSERT(sz_scan_token(head.method) && sz_scan_target(head.target));
    SZ_ASSERT(head.http_1_0 || sz_head_authority(head.authority));
    inside(data, size, head.method);
    inside(data, size, head.target);
    inside(data, size, head.authority);
    for (size_t i = 0; i < head.fields_n; i++) {
        inside(data, size, head.fields[i].name);
        inside(data, size, head.fields[i].value);
        SZ_ASSERT(sz_scan_token(head.fields[i].name) && sz_scan_field_value(head.fields[i].value));
    }
    (void)sz_head_is_websocket(&head);
    return 0;
}

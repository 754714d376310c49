/* traceparent and tracestate: what is taken is written again as it was read, and nothing else counts as one. */
#include "subzero/trace_context.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct sz_slice text = sz_slice(data, size), first = text, rest = SZ_NONE;
    struct sz_trace_parent parent, again;
    char written[SZ_TRACEPARENT];
    if (sz_traceparent_parse(text, &parent)) {
        sz_traceparent_write(&parent, written);
        SZ_ASSERT(sz_traceparent_parse(sz_slice(written, sizeof(written)), &again) && !again.later_version);
        SZ_ASSERT(memcmp(written + 2, data + 2, 51) == 0); /* the ids stand as they came */
        SZ_ASSERT((again.flags & SZ_TRACE_SAMPLED) == (parent.flags & SZ_TRACE_SAMPLED));
    }
    /* Two fields are the list that they make together. */
    ptrdiff_t cut = sz_find_byte(text, ',');
    if (cut >= 0) {
        first = sz_sub(text, 0, (size_t)cut);
        rest = sz_from(text, (size_t)cut + 1);
    }
    struct sz_tracestate whole = {.n = 0}, parts = {.n = 0};
    bool one = sz_tracestate_add(&whole, text);
    bool two = sz_tracestate_add(&parts, first) && sz_tracestate_add(&parts, rest);
    SZ_ASSERT(one == two && (!one || whole.n == parts.n));
    SZ_ASSERT(whole.n <= SZ_COUNT(whole.keys));
    return 0;
}

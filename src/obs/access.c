/*
 * The access line.  Thirteen texts of at most 256 bytes each, as written and not as sent, and
 * a few numbers: that alone keeps a line below its bound, so nothing is ever cut in the
 * middle of an escape or of a quote.
 */
#include "subzero/access.h"

static void add_text(struct sz_buf *out, struct sz_slice name, struct sz_slice value)
{
    if (value.p == NULL)
        return;
    sz_buf_adds(out, name);
    sz_buf_json_cut(out, value, SZ_ACCESS_FIELD_MAX);
}

static void add_number(struct sz_buf *out, struct sz_slice name, uint64_t value)
{
    sz_buf_adds(out, name);
    sz_buf_u64(out, value);
}

void sz_access_line(struct sz_buf *out, const struct sz_access *access)
{
    char time[32];
    int n = sz_wall_format(access->time, 6, time);
    sz_buf_adds(out, SZ_S("{\"time\":\""));
    sz_buf_add(out, time, (size_t)n);
    sz_buf_adds(out, SZ_S("\",\"kind\":\"access\""));
    add_text(out, SZ_S(",\"request_id\":"), access->request_id);
    add_text(out, SZ_S(",\"trace_id\":"), access->trace_id);
    add_text(out, SZ_S(",\"method\":"), access->method);
    add_text(out, SZ_S(",\"path\":"), access->path);
    add_text(out, SZ_S(",\"route\":"), access->route);
    add_text(out, SZ_S(",\"decision\":"), access->decision);
    add_text(out, SZ_S(",\"reason\":"), access->reason);
    add_number(out, SZ_S(",\"status\":"), access->status);
    add_number(out, SZ_S(",\"duration_us\":"), access->duration.us > 0 ? (uint64_t)access->duration.us : 0);
    add_number(out, SZ_S(",\"bytes\":"), access->bytes);
    add_text(out, SZ_S(",\"subject\":"), access->subject);
    add_text(out, SZ_S(",\"client\":"), access->client);
    add_text(out, SZ_S(",\"issuer\":"), access->issuer);
    add_text(out, SZ_S(",\"address\":"), access->address);
    add_text(out, SZ_S(",\"protocol\":"), access->protocol);
    add_text(out, SZ_S(",\"listener\":"), access->listener);
    sz_buf_add(out, "}", 1);
}

/* See fake/otlp.h. */
#include "fake/otlp.h"

#include <stdio.h>
#include <stdlib.h>

struct field {
    uint64_t number, value;
    unsigned wire;
    struct sz_slice bytes;
};

static bool varint(struct sz_slice *s, uint64_t *v)
{
    *v = 0;
    for (unsigned shift = 0; shift < 64 && s->n > 0; shift += 7) {
        uint8_t byte = (uint8_t)s->p[0];
        *s = sz_from(*s, 1);
        *v |= (uint64_t)(byte & 127) << shift;
        if (byte < 128)
            return true;
    }
    return false;
}

static bool next(struct sz_slice *s, struct field *f)
{
    uint64_t tag, n;
    if (!varint(s, &tag))
        return false;
    *f = (struct field){.number = tag >> 3, .wire = tag & 7};
    if (f->wire == 0)
        return varint(s, &f->value);
    if (f->wire == 2 && !varint(s, &n))
        return false;
    if (f->wire == 1)
        n = 8;
    if (f->wire == 5)
        n = 4;
    if (f->wire != 1 && f->wire != 2 && f->wire != 5)
        return false;
    if (n > s->n)
        return false;
    f->bytes = sz_sub(*s, 0, (size_t)n);
    for (size_t i = n; f->wire != 2 && i-- > 0;)
        f->value = f->value << 8 | (uint8_t)f->bytes.p[i];
    *s = sz_from(*s, (size_t)n);
    return true;
}

static bool hex(struct sz_slice bytes, char *out, size_t size)
{
    if (bytes.n * 2 + 1 != size)
        return false;
    for (size_t i = 0; i < bytes.n; i++)
        snprintf(out + 2 * i, 3, "%02x", (uint8_t)bytes.p[i]);
    return true;
}

static bool attribute(struct sz_slice pair, struct sz_buf *out)
{
    struct field f, value;
    bool key = false, any = false;
    while (pair.n > 0) {
        if (!next(&pair, &f))
            return false;
        if (f.number == 1 && f.wire == 2) {
            sz_buf_printf(out, "%.*s=", SZ_FMT(f.bytes));
            key = true;
        } else if (f.number == 2 && f.wire == 2) {
            if (!next(&f.bytes, &value) || f.bytes.n != 0)
                return false;
            if (value.number == 1 && value.wire == 2)
                sz_buf_printf(out, "%.*s\n", SZ_FMT(value.bytes));
            else if (value.number == 3 && value.wire == 0)
                sz_buf_printf(out, "%llu\n", (unsigned long long)value.value);
            else
                return false;
            any = true;
        } else {
            return false;
        }
    }
    return key && any;
}

static bool read_status(struct sz_slice s, unsigned *code)
{
    struct field f;
    while (s.n > 0) {
        if (!next(&s, &f))
            return false;
        if (f.number == 3 && f.wire == 0)
            *code = (unsigned)f.value;
    }
    return true;
}

static bool span_field(const struct field *f, struct otlp_span *span)
{
    switch (f->number << 3 | f->wire) {
    case 1 << 3 | 2:
        return hex(f->bytes, span->trace_id, sizeof(span->trace_id));
    case 2 << 3 | 2:
        return hex(f->bytes, span->id, sizeof(span->id));
    case 4 << 3 | 2:
        return hex(f->bytes, span->parent, sizeof(span->parent));
    case 5 << 3 | 2:
        snprintf(span->name, sizeof(span->name), "%.*s", SZ_FMT(f->bytes));
        return true;
    case 6 << 3:
        span->kind = (unsigned)f->value;
        return true;
    case 7 << 3 | 1:
        span->start = f->value;
        return true;
    case 8 << 3 | 1:
        span->end = f->value;
        return true;
    case 9 << 3 | 2:
        return attribute(f->bytes, &span->attributes);
    case 15 << 3 | 2:
        return read_status(f->bytes, &span->status);
    case 16 << 3 | 5:
        span->remote = (f->value & 0x200) != 0;
        return (f->value & 0x101) == 0x101;
    default:
        return false;
    }
}

static bool read_span(struct otlp *out, struct sz_slice s)
{
    struct field f;
    out->v = realloc(out->v, (out->n + 1) * sizeof(*out->v));
    SZ_ASSERT(out->v != NULL);
    struct otlp_span *span = &out->v[out->n++];
    *span = (struct otlp_span){.kind = 0};
    while (s.n > 0) {
        if (!next(&s, &f) || !span_field(&f, span))
            return false;
    }
    return span->trace_id[0] != '\0' && span->id[0] != '\0' && span->name[0] != '\0' && span->kind != 0 &&
           span->end >= span->start && span->start > 0;
}

static bool read_scope(struct otlp *out, struct sz_slice s)
{
    struct field f;
    while (s.n > 0) {
        if (!next(&s, &f) || f.wire != 2 || f.number > 2 || (f.number == 2 && !read_span(out, f.bytes)))
            return false;
    }
    return true;
}

static bool read_resource(struct otlp *out, struct sz_slice s)
{
    struct field f;
    out->resource.n = 0;
    while (s.n > 0) {
        if (!next(&s, &f) || f.wire != 2 || f.number != 1 || !attribute(f.bytes, &out->resource))
            return false;
    }
    return true;
}

bool otlp_read(struct otlp *out, struct sz_slice request)
{
    struct field f, g;
    while (request.n > 0) {
        if (!next(&request, &f) || f.number != 1 || f.wire != 2)
            return false;
        while (f.bytes.n > 0) {
            if (!next(&f.bytes, &g) || g.wire != 2)
                return false;
            if (g.number == 1 ? !read_resource(out, g.bytes) : g.number != 2 || !read_scope(out, g.bytes))
                return false;
        }
    }
    return true;
}

void otlp_free(struct otlp *out)
{
    for (size_t i = 0; i < out->n; i++)
        sz_buf_fini(&out->v[i].attributes);
    free(out->v);
    sz_buf_fini(&out->resource);
    *out = (struct otlp){.n = 0};
}

const struct otlp_span *otlp_find(const struct otlp *o, const char *name)
{
    for (size_t i = 0; i < o->n; i++) {
        if (strcmp(o->v[i].name, name) == 0)
            return &o->v[i];
    }
    return NULL;
}

bool otlp_has(const struct otlp_span *span, const char *wanted)
{
    struct sz_slice rest = sz_buf_slice(&span->attributes), line;
    while (rest.n > 0 && sz_split(&rest, '\n', &line)) {
        if (sz_eq(line, sz_cstr(wanted)))
            return true;
    }
    return false;
}

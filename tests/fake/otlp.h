/* A reader of OTLP trace requests, for tests: as much of the protobuf as is asked about, strictly. */
#ifndef FAKE_OTLP_H
#define FAKE_OTLP_H

#include "subzero/base.h"

struct otlp_span {
    char trace_id[33], id[17], parent[17]; /* hex; parent "": none */
    char name[256];
    unsigned kind, status;    /* status: 2 error */
    bool remote;              /* its parent */
    uint64_t start, end;      /* ns */
    struct sz_buf attributes; /* "key=value\n" each, in order */
};
struct otlp {
    struct sz_buf resource; /* as attributes */
    struct otlp_span *v;
    size_t n;
};

/* Appends what the request holds; false: not as the protocol has it. */
bool otlp_read(struct otlp *out, struct sz_slice request);
void otlp_free(struct otlp *out);
/* The first span of that name; NULL: none. */
const struct otlp_span *otlp_find(const struct otlp *o, const char *name);
bool otlp_has(const struct otlp_span *span, const char *attribute); /* "key=value" */

#endif

/* One field, or everything, as YAML: for the dump, the version and for comparing two configurations. */
#ifndef SZ_CONF_DUMP_H
#define SZ_CONF_DUMP_H

#include "conf/schema.h"

struct sz_raw_conf;

struct sz_dump {
    struct sz_buf *out;
    bool whole; /* also what people should not see */
};
void sz_dump_field(const struct sz_dump *d, const struct sz_field *field, const void *object, unsigned indent);
void sz_dump_conf(const struct sz_dump *d, const struct sz_raw_conf *raw);
/* A double-quoted YAML scalar that reads back to the same bytes, ${ and all. */
void sz_dump_text(struct sz_slice s, struct sz_buf *out);

#endif

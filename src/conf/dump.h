/* One field, or one object, as YAML: for the dump and for comparing two configurations. */
#ifndef SZ_CONF_DUMP_H
#define SZ_CONF_DUMP_H

#include "conf/schema.h"

void sz_dump_field(const struct sz_field *field, const void *object, unsigned indent, struct sz_buf *out);
/* A double-quoted YAML scalar that reads back to the same bytes, ${ and all. */
void sz_dump_text(struct sz_slice s, struct sz_buf *out);

#endif

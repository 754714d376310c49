/*
 * One scalar and its unit.  Pure functions from text to number and back; the callers know
 * where the text stands.
 */
#ifndef SZ_CONF_VALUE_H
#define SZ_CONF_VALUE_H

#include "subzero/base.h"

/*
 * 0, or -EINVAL with *why = what is wrong and what to write.
 * span: "10s", "20ms", "1h", "2d" -> microseconds.  size: "4MB", "1MiB" -> bytes.  count: digits alone.
 */
int sz_value_span(struct sz_slice s, uint64_t *out, struct sz_text *why) SZ_MUST_CHECK;
int sz_value_size(struct sz_slice s, uint64_t *out, struct sz_text *why) SZ_MUST_CHECK;
int sz_value_count(struct sz_slice s, uint64_t *out, struct sz_text *why) SZ_MUST_CHECK;

/* The shortest text that reads back to the same number. */
void sz_value_print_span(struct sz_buf *out, uint64_t us);
void sz_value_print_size(struct sz_buf *out, uint64_t bytes);

#endif

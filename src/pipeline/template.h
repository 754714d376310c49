/*
 * Templates: "user:{claims.sub}", "document:{path.id}".  Parsed and checked when the configuration is
 * loaded; rendered here per request.
 */
#ifndef SZ_PIPELINE_TEMPLATE_H
#define SZ_PIPELINE_TEMPLATE_H

#include "pipeline/txn.h"

enum sz_render {
    SZ_RENDER_OK,
    SZ_RENDER_ABSENT,    /* a claim, parameter or header that is not there; a claim neither string nor integer */
    SZ_RENDER_AMBIGUOUS, /* a query parameter or header that occurs more than once, or depends on what ';' means */
    SZ_RENDER_TOO_LONG,
};

/*
 * As part of a relationship id: what would break an id (":" "#" "@" "*" "%", blanks, controls) is percent-encoded,
 * so that a value can never choose a type, a relation or a wildcard, and two values never give one id.
 * Result in request memory, at most `max` bytes.
 */
enum sz_render sz_template_id(struct sz_txn *txn, const struct sz_template *tpl, size_t max, struct sz_slice *out);
/* The same writing of a value from elsewhere. */
void sz_id_add(struct sz_buf *buf, struct sz_slice value);
/* As it is, for a header value (which is encoded afterwards). */
enum sz_render sz_template_text(struct sz_txn *txn, const struct sz_template *tpl, size_t max, struct sz_slice *out);

#endif

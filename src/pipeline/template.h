/*
 * Templates: "user:{claims.sub}", "document:{path.id}".  Parsed and checked when the configuration is
 * loaded; rendered here per request.
 */
#ifndef SZ_PIPELINE_TEMPLATE_H
#define SZ_PIPELINE_TEMPLATE_H

#include "pipeline/txn.h"

enum sz_render {
    SZ_RENDER_OK,
    SZ_RENDER_ABSENT,    /* a claim that is not there, or is neither string nor integer; nothing where an id is due */
    SZ_RENDER_MISSING,   /* a query parameter or header that is not there */
    SZ_RENDER_AMBIGUOUS, /* a query parameter or header that occurs more than once, or depends on what ';' means */
    SZ_RENDER_BAD_TEXT,  /* a value of the request that no JSON text can be: not UTF-8, or with a NUL */
    SZ_RENDER_TOO_LONG,
};

/*
 * As part of a relationship id: what would break an id (":" "#" "@" "*" "%", blanks, controls) is percent-encoded,
 * so that a value can never choose a type, a relation or a wildcard, and two values never give one id.
 * Result in request memory, at most `max` bytes.
 */
enum sz_render sz_template_id(struct sz_txn *txn, const struct sz_template *tpl, size_t max, struct sz_slice *out);
/* The same with `item` in place of {claims.x[]}. */
enum sz_render sz_template_item(struct sz_txn *txn, const struct sz_template *tpl, struct sz_slice item, size_t max,
                                struct sz_slice *out);
/*
 * As a JSON value, appended: a lone variable keeps its type (a claim that of the token, {now} an RFC 3339 timestamp,
 * the rest strings); anything longer is a string.
 */
enum sz_render sz_template_json(struct sz_txn *txn, const struct sz_template *tpl, struct sz_buf *out);
/* What {claims.x[]} goes through: for MANY `rest` is walked with sz_claim_next, ONE is in *item. */
enum sz_list { SZ_LIST_NONE, SZ_LIST_ONE, SZ_LIST_MANY, SZ_LIST_BAD };
enum sz_list sz_template_list(struct sz_txn *txn, const struct sz_template_part *part, struct sz_slice *rest,
                              struct sz_slice *item);
/* The same writing of a value from elsewhere. */
void sz_id_add(struct sz_buf *buf, struct sz_slice value);
/* As it is, for a header value (which is encoded afterwards). */
enum sz_render sz_template_text(struct sz_txn *txn, const struct sz_template *tpl, size_t max, struct sz_slice *out);

#endif

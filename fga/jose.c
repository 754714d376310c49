/*
 * The protected header (RFC 7515 section 4).  What it says is the attacker's word until the signature
 * has been checked, and the signature cannot be checked without it; so it chooses among what is
 * configured and brings nothing of its own: no keys, no urls, no critical extensions.
 *
 * Headers that were on good tokens are remembered by their exact bytes.  Only those: garbage
 * would otherwise push the honest ones out.
 */
#include <errno.h>

#include "fga/verify_thread.h"
#include "subzero/crypto.h"
#include "subzero/issuers.h"

enum { HEADER_MAX = SZ_B64_BYTES(SZ_TOKEN_MAX) };

/* Each of these changes what the other parts mean; none is implemented, so none may be passed over. */
static const struct sz_slice refused[] = {{"crit", 4}, {"b64", 3}, {"enc", 3}, {"zip", 3}};

static int keep_string(struct sz_jose *jose, const struct sz_json_tree *tree, const struct sz_json_node *value,
                       struct sz_slice *out)
{
    if (!sz_json_is(value, SZ_JSON_STRING) || value->n > sizeof(jose->text) - jose->text_n)
        return -EINVAL;
    char *copy = jose->text + jose->text_n;
    memcpy(copy, tree->text + value->at, value->n);
    jose->text_n = (uint16_t)(jose->text_n + value->n);
    *out = sz_slice(copy, value->n);
    return 0;
}

static int read_alg(struct sz_jose *jose, const struct sz_json_tree *tree, struct sz_text *why)
{
    struct sz_slice alg = sz_json_get_string(tree, tree->v, SZ_S("alg"));
    if (alg.p == NULL) {
        sz_text_set(why, "the header has no string 'alg'");
        return -EINVAL;
    }
    jose->alg = sz_alg_from(alg);
    jose->alg_known = jose->alg != SZ_ALG_COUNT;
    return 0;
}

static int read_names(struct sz_jose *jose, const struct sz_json_tree *tree, struct sz_text *why)
{
    const struct sz_json_node *kid = sz_json_get(tree, tree->v, SZ_S("kid"));
    const struct sz_json_node *typ = sz_json_get(tree, tree->v, SZ_S("typ"));
    const struct sz_json_node *cty = sz_json_get(tree, tree->v, SZ_S("cty"));
    if (kid != NULL && (keep_string(jose, tree, kid, &jose->kid) != 0 || jose->kid.n == 0)) {
        sz_text_set(why, "'kid' is not a string, empty or too long");
        return -EINVAL;
    }
    if (typ != NULL && keep_string(jose, tree, typ, &jose->typ) != 0) {
        sz_text_set(why, "'typ' is not a string, or too long");
        return -EINVAL;
    }
    if (cty != NULL && cty->type != SZ_JSON_STRING) {
        sz_text_set(why, "'cty' is not a string");
        return -EINVAL;
    }
    jose->nested = cty != NULL && sz_ieq(sz_json_slice(tree, cty), SZ_S("JWT"));
    return 0;
}

static int read_header(struct sz_jose *jose, const struct sz_json_tree *tree, struct sz_text *why)
{
    if (tree->v[0].type != SZ_JSON_OBJECT) {
        sz_text_set(why, "the header is not a JSON object");
        return -EINVAL;
    }
    for (size_t i = 0; i < SZ_COUNT(refused); i++) {
        if (sz_json_get(tree, tree->v, refused[i]) != NULL) {
            sz_text_set(why, "the header has '%s', which is not supported", refused[i].p);
            return -EINVAL;
        }
    }
    int rc = read_alg(jose, tree, why);
    return rc != 0 ? rc : read_names(jose, tree, why);
}

int sz_jose_parse(struct sz_slice encoded, struct sz_jose *jose, struct sz_text *why)
{
    char text[HEADER_MAX];
    struct sz_json_tree *tree = &sz_verify_thread()->tree;
    size_t n;
    memset(jose, 0, offsetof(struct sz_jose, text));
    if (encoded.n == 0 || SZ_B64_BYTES(encoded.n) > sizeof(text) || sz_b64url_decode(encoded, text, &n) != 0) {
        sz_text_set(why, "the header is empty, too long, or not base64url without padding");
        return -EINVAL;
    }
    if (sz_json_read(tree, text, n) != 0) {
        sz_text_set(why, "the header is not strict JSON, or has a name twice");
        return -EINVAL;
    }
    return read_header(jose, tree, why);
}

static const struct sz_jose *kept(struct sz_verify_thread *t, struct sz_slice encoded)
{
    for (size_t i = 0; i < SZ_HEADERS_KEPT; i++) {
        const struct sz_header_kept *one = &t->headers[i];
        if (one->n != 0 && sz_eq(sz_slice(one->encoded, one->n), encoded))
            return &one->jose;
    }
    return NULL;
}

int sz_jose_get(struct sz_slice encoded, const struct sz_jose **jose, struct sz_text *why)
{
    struct sz_verify_thread *t = sz_verify_thread();
    *jose = kept(t, encoded);
    if (*jose != NULL)
        return 0;
    *jose = &t->parsed;
    return sz_jose_parse(encoded, &t->parsed, why);
}

bool sz_jose_is_object(struct sz_slice encoded)
{
    char text[HEADER_MAX];
    size_t n, at;
    if (kept(sz_verify_thread(), encoded) != NULL)
        return true;
    if (SZ_B64_BYTES(encoded.n) > sizeof(text) || sz_b64url_decode(encoded, text, &n) != 0)
        return false;
    return sz_starts_with(sz_trim(sz_slice(text, n)), SZ_S("{")) &&
           sz_json_check(sz_slice(text, n), SZ_JSON_TREE_DEPTH, &at) == 0;
}

static void move_slice(struct sz_slice *s, const char *from, const char *to)
{
    if (s->p != NULL)
        s->p = to + (s->p - from);
}

void sz_jose_keep(struct sz_slice encoded, const struct sz_jose *jose)
{
    struct sz_verify_thread *t = sz_verify_thread();
    if (jose != &t->parsed || encoded.n > SZ_HEADER_KEPT_BYTES)
        return; /* it is kept already, or too long to be worth it */
    struct sz_header_kept *slot = &t->headers[t->next_header++ % SZ_HEADERS_KEPT];
    memcpy(slot->encoded, encoded.p, encoded.n);
    slot->n = (uint16_t)encoded.n;
    memcpy(&slot->jose, jose, offsetof(struct sz_jose, text) + jose->text_n);
    move_slice(&slot->jose.kid, jose->text, slot->jose.text);
    move_slice(&slot->jose.typ, jose->text, slot->jose.text);
}

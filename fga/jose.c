/*
 * The protected header (RFC 7515 section 4).  What it says is the attacker's word until the signature
 * has been checked, and the signature cannot be checked without it; so it chooses among what is
 * configured and brings nothing of its own: no keys, no urls, no critical extensions.
 *
 * Headers that were on good tokens are remembered by their exact bytes.  Only those: garbage
 * would otherwise push the honest ones out.
 */
#include <errno.h>
#include <jansson.h>

#include "fga/verify_thread.h"
#include "subzero/crypto.h"

enum { DEPTH = 16, HEADER_MAX = 8 * 1024 /* decoded; x5c makes some long */ };

/* Each of these changes what the other parts mean; none is implemented, so none may be passed over. */
static const char *const refused[] = {"crit", "b64", "enc", "zip"};

static int keep_string(struct sz_jose *jose, const json_t *value, struct sz_slice *out)
{
    size_t n = json_string_length(value);
    if (!json_is_string(value) || n > sizeof(jose->text) - jose->text_n)
        return -EINVAL;
    char *copy = jose->text + jose->text_n;
    memcpy(copy, json_string_value(value), n);
    jose->text_n = (uint16_t)(jose->text_n + n);
    *out = sz_slice(copy, n);
    return 0;
}

static int read_alg(struct sz_jose *jose, const json_t *header, struct sz_text *why)
{
    const json_t *alg = json_object_get(header, "alg");
    if (!json_is_string(alg)) {
        sz_text_set(why, "the header has no string 'alg'");
        return -EINVAL;
    }
    jose->alg = sz_alg_from(sz_slice(json_string_value(alg), json_string_length(alg)));
    jose->alg_known = jose->alg != SZ_ALG_COUNT;
    return 0;
}

static int read_names(struct sz_jose *jose, const json_t *header, struct sz_text *why)
{
    const json_t *kid = json_object_get(header, "kid"), *typ = json_object_get(header, "typ");
    const json_t *cty = json_object_get(header, "cty");
    if (kid != NULL && (keep_string(jose, kid, &jose->kid) != 0 || jose->kid.n == 0 || jose->kid.n > SZ_KID_MAX)) {
        sz_text_set(why, "'kid' is not a string of 1 to %d octets", SZ_KID_MAX);
        return -EINVAL;
    }
    if (typ != NULL && keep_string(jose, typ, &jose->typ) != 0) {
        sz_text_set(why, "'typ' is not a string, or too long");
        return -EINVAL;
    }
    if (cty != NULL && !json_is_string(cty)) {
        sz_text_set(why, "'cty' is not a string");
        return -EINVAL;
    }
    jose->nested = cty != NULL && sz_ieq(sz_slice(json_string_value(cty), json_string_length(cty)), SZ_S("JWT"));
    return 0;
}

static int read_header(struct sz_jose *jose, const json_t *header, struct sz_text *why)
{
    if (!json_is_object(header)) {
        sz_text_set(why, "the header is not a JSON object");
        return -EINVAL;
    }
    for (size_t i = 0; i < SZ_COUNT(refused); i++) {
        if (json_object_get(header, refused[i]) != NULL) {
            sz_text_set(why, "the header has '%s', which is not supported", refused[i]);
            return -EINVAL;
        }
    }
    int rc = read_alg(jose, header, why);
    return rc != 0 ? rc : read_names(jose, header, why);
}

int sz_jose_parse(struct sz_slice encoded, struct sz_jose *jose, struct sz_text *why)
{
    char text[HEADER_MAX];
    size_t n, at;
    memset(jose, 0, offsetof(struct sz_jose, text));
    if (encoded.n == 0 || SZ_B64_BYTES(encoded.n) > sizeof(text) || sz_b64url_decode(encoded, text, &n) != 0) {
        sz_text_set(why, "the header is empty, too long, or not base64url without padding");
        return -EINVAL;
    }
    if (sz_json_check(sz_slice(text, n), DEPTH, &at) != 0) {
        sz_text_set(why, "the header is not strict JSON at byte %zu", at);
        return -EINVAL;
    }
    json_t *header = json_loadb(text, n, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, NULL);
    if (header == NULL) {
        sz_text_set(why, "the header has a name twice, or a number out of range");
        return -EINVAL;
    }
    int rc = read_header(jose, header, why);
    json_decref(header);
    return rc;
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
    return sz_starts_with(sz_trim(sz_slice(text, n)), SZ_S("{")) && sz_json_check(sz_slice(text, n), DEPTH, &at) == 0;
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

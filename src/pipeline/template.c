/* Rendering templates: each variable is looked up strictly, then written raw or as part of an id. */
#include "pipeline/template.h"

#include "pipeline/stages.h"

enum { CONTEXT_TEXT_MAX = 8192 }; /* bytes of one value */

struct value {
    enum sz_render rc;
    struct sz_slice text;
};

/* What a template is rendered for. */
enum form { FORM_ID, FORM_TEXT, FORM_JSON };
struct render {
    struct sz_txn *txn;
    enum form form;
    struct sz_slice item; /* {claims.x[]} */
};

static struct value some(struct sz_slice text)
{
    return (struct value){text.p == NULL ? SZ_RENDER_ABSENT : SZ_RENDER_OK, text};
}

static struct value integer(struct sz_txn *txn, int64_t n)
{
    return some(sz_pool_printf(txn->pool, "%lld", (long long)n));
}

static struct value claim_value(struct sz_txn *txn, unsigned slot)
{
    const struct sz_identity *id = txn->identity;
    if (id == NULL)
        return (struct value){SZ_RENDER_ABSENT, SZ_NONE};
    switch (slot) {
    case SZ_SLOT_SUB:
        return some(sz_identity_text(id, id->subject));
    case SZ_SLOT_CLIENT:
        return some(sz_identity_text(id, id->client));
    case SZ_SLOT_TENANT:
        return some(sz_identity_text(id, id->tenant));
    case SZ_SLOT_ISS:
        return some(sz_txn_issuer(txn)->issuer);
    default:
        break;
    }
    struct sz_claim claim = sz_identity_claim(id, slot);
    if (claim.type == SZ_CLAIM_STRING)
        return some(claim.text);
    if (claim.type == SZ_CLAIM_INTEGER)
        return integer(txn, claim.integer);
    return (struct value){SZ_RENDER_ABSENT, SZ_NONE};
}

/* A path segment or query value without its escapes; the canonical path holds whole ones only, a query perhaps not. */
static struct sz_slice unescape(struct sz_txn *txn, struct sz_slice s, bool plus)
{
    if (sz_find_byte(s, '%') < 0 && (!plus || sz_find_byte(s, '+') < 0))
        return s;
    char *out = sz_pool_alloc(txn->pool, s.n);
    size_t n = 0;
    for (size_t i = 0; i < s.n; i++) {
        int high = s.p[i] == '%' && i + 2 < s.n ? sz_hex_digit(s.p[i + 1]) : -1;
        int low = high >= 0 ? sz_hex_digit(s.p[i + 2]) : -1;
        bool escape = low >= 0;
        out[n++] = escape ? (char)(high << 4 | low) : plus && s.p[i] == '+' ? ' ' : s.p[i];
        i += escape ? 2 : 0;
    }
    return sz_slice(out, n);
}

/* Is this "name=value" of the query about `name`?  "x[]" counts as x, since some upstreams read it so. */
static bool is_about(struct sz_txn *txn, struct sz_slice pair, struct sz_slice name, struct sz_slice *value)
{
    ptrdiff_t eq = sz_find_byte(pair, '=');
    struct sz_slice key = unescape(txn, eq < 0 ? pair : sz_sub(pair, 0, (size_t)eq), true);
    if (key.n > 2 && key.p[key.n - 1] == ']' && key.p[key.n - 2] == '[')
        key.n -= 2;
    *value = eq < 0 ? sz_slice("", 0) : sz_from(pair, (size_t)eq + 1);
    return sz_eq(key, name);
}

/* Exactly one occurrence, and the same one whether or not ';' separates parameters as '&' does. */
static struct value query_value(struct sz_txn *txn, struct sz_slice name)
{
    struct sz_slice rest = txn->target.query, pair, piece, value, found = SZ_NONE;
    unsigned count = 0;
    while (rest.p != NULL && sz_split(&rest, '&', &pair)) {
        bool one = sz_find_byte(pair, ';') < 0;
        while (sz_split(&pair, ';', &piece)) {
            if (!is_about(txn, piece, name, &value))
                continue;
            found = value;
            count += one ? 1 : 2;
        }
    }
    if (count != 1)
        return (struct value){count == 0 ? SZ_RENDER_MISSING : SZ_RENDER_AMBIGUOUS, SZ_NONE};
    return some(unescape(txn, found, true));
}

/* Path parameters (";x") are part of the name to some upstreams and not to others. */
static struct value path_value(struct sz_txn *txn, struct sz_slice segment)
{
    if (sz_find_byte(segment, ';') >= 0)
        return (struct value){SZ_RENDER_AMBIGUOUS, SZ_NONE};
    return some(unescape(txn, segment, false));
}

static struct value header_value(struct sz_txn *txn, struct sz_slice name)
{
    unsigned count;
    struct sz_slice found = sz_headers_get(&txn->req.headers, name, &count);
    if (count != 1)
        return (struct value){count == 0 ? SZ_RENDER_MISSING : SZ_RENDER_AMBIGUOUS, SZ_NONE};
    return some(found);
}

static struct value issuer_value(struct sz_txn *txn)
{
    const struct sz_conf_issuer *issuer = sz_txn_issuer(txn);
    return some(issuer == NULL ? SZ_NONE : issuer->name);
}

/* Seconds are what a header or an id gets; conditions compare timestamps.  Whole seconds: a decision is kept that long.
 */
static struct value now_value(struct sz_txn *txn, enum form form)
{
    struct sz_wall wall = sz_loop_wall(txn->worker->loop);
    char text[32];
    if (form != FORM_JSON)
        return integer(txn, sz_wall_seconds(wall));
    int n = sz_wall_format(wall, 0, text);
    return some(sz_pool_dup(txn->pool, sz_slice(text, (size_t)n)));
}

static struct value look_up(const struct render *r, const struct sz_template_part *part)
{
    struct sz_txn *txn = r->txn;
    char text[SZ_ADDR_TEXT];
    switch (part->var) {
    case SZ_VAR_LITERAL:
        return some(part->text);
    case SZ_VAR_CLAIM:
        return part->each ? some(r->item) : claim_value(txn, part->slot);
    case SZ_VAR_PATH:
        return path_value(txn, txn->match.params[part->slot]);
    case SZ_VAR_QUERY:
        return query_value(txn, part->text);
    case SZ_VAR_HEADER:
        return header_value(txn, part->text);
    case SZ_VAR_METHOD:
        return some(txn->req.method);
    case SZ_VAR_CLIENT_IP:
        sz_addr_format(txn->from.client, text);
        return some(sz_pool_dup(txn->pool, sz_cstr(text)));
    case SZ_VAR_NOW:
        return now_value(txn, r->form);
    case SZ_VAR_ISSUER:
        return issuer_value(txn);
    }
    return (struct value){SZ_RENDER_ABSENT, SZ_NONE};
}

static bool breaks_id(uint8_t c)
{
    return c <= 0x20 || c == 0x7f || c == ':' || c == '#' || c == '@' || c == '*' || c == '%';
}

void sz_id_add(struct sz_buf *buf, struct sz_slice value)
{
    for (size_t i = 0; i < value.n; i++) {
        if (breaks_id((uint8_t)value.p[i]))
            sz_buf_printf(buf, "%%%02X", (unsigned)(uint8_t)value.p[i]);
        else
            sz_buf_add(buf, value.p + i, 1);
    }
}

static enum sz_render add_part(const struct render *r, const struct sz_template_part *part, struct sz_buf *buf)
{
    struct value value = look_up(r, part);
    bool literal = part->var == SZ_VAR_LITERAL;
    if (value.rc != SZ_RENDER_OK)
        return value.rc;
    if (r->form == FORM_ID && !literal && value.text.n == 0)
        return SZ_RENDER_ABSENT; /* "document:" names nothing */
    if (r->form == FORM_JSON && (!sz_utf8_valid(value.text) || sz_find_byte(value.text, '\0') >= 0))
        return SZ_RENDER_BAD_TEXT;
    if (r->form == FORM_ID && !literal)
        sz_id_add(buf, value.text);
    else
        sz_buf_adds(buf, value.text);
    return SZ_RENDER_OK;
}

static enum sz_render render(const struct render *r, const struct sz_template *tpl, size_t max, struct sz_slice *out)
{
    struct sz_buf buf = {.limit = max};
    enum sz_render rc = SZ_RENDER_OK;
    for (size_t i = 0; i < tpl->n && rc == SZ_RENDER_OK; i++)
        rc = add_part(r, &tpl->parts[i], &buf);
    if (rc == SZ_RENDER_OK && buf.overflow)
        rc = SZ_RENDER_TOO_LONG;
    if (rc == SZ_RENDER_OK)
        *out = sz_pool_dup(r->txn->pool, sz_buf_slice(&buf));
    sz_buf_fini(&buf);
    return rc;
}

enum sz_render sz_template_id(struct sz_txn *txn, const struct sz_template *tpl, size_t max, struct sz_slice *out)
{
    return render(&(struct render){txn, FORM_ID, SZ_NONE}, tpl, max, out);
}

enum sz_render sz_template_item(struct sz_txn *txn, const struct sz_template *tpl, struct sz_slice item, size_t max,
                                struct sz_slice *out)
{
    return render(&(struct render){txn, FORM_ID, item}, tpl, max, out);
}

enum sz_render sz_template_text(struct sz_txn *txn, const struct sz_template *tpl, size_t max, struct sz_slice *out)
{
    return render(&(struct render){txn, FORM_TEXT, SZ_NONE}, tpl, max, out);
}

enum sz_list sz_template_list(struct sz_txn *txn, const struct sz_template_part *part, struct sz_slice *rest,
                              struct sz_slice *item)
{
    struct sz_claim claim = {.type = SZ_CLAIM_ABSENT};
    if (txn->identity != NULL && part->slot < SZ_SLOT_SUB)
        claim = sz_identity_claim(txn->identity, part->slot);
    *rest = claim.text;
    if (claim.type == SZ_CLAIM_STRINGS)
        return SZ_LIST_MANY;
    if (claim.type == SZ_CLAIM_BOOL || claim.type == SZ_CLAIM_OTHER)
        return SZ_LIST_BAD;
    struct value one = claim_value(txn, part->slot);
    *item = one.text;
    return one.rc == SZ_RENDER_OK ? SZ_LIST_ONE : SZ_LIST_NONE;
}

/* ---- as JSON ---------------------------------------------------------------------------------------------------- */

static void add_list(struct sz_slice items, struct sz_buf *out)
{
    struct sz_slice item;
    char before = '[';
    if (items.n == 0)
        sz_buf_adds(out, SZ_S("["));
    while (sz_claim_next(&items, &item)) {
        sz_buf_add(out, &before, 1);
        sz_buf_json(out, item);
        before = ',';
    }
    sz_buf_adds(out, SZ_S("]"));
}

/* A claim that is no text: with the type that the token gave it.  False: it is one. */
static bool add_typed(struct sz_txn *txn, unsigned slot, struct sz_buf *out)
{
    if (txn->identity == NULL || slot >= SZ_SLOT_SUB)
        return false;
    struct sz_claim claim = sz_identity_claim(txn->identity, slot);
    switch (claim.type) {
    case SZ_CLAIM_INTEGER:
        sz_buf_printf(out, "%lld", (long long)claim.integer);
        return true;
    case SZ_CLAIM_BOOL:
        sz_buf_adds(out, claim.integer != 0 ? SZ_S("true") : SZ_S("false"));
        return true;
    case SZ_CLAIM_STRINGS:
        add_list(claim.text, out);
        return true;
    case SZ_CLAIM_OTHER:
        sz_buf_adds(out, claim.text);
        return claim.text.n > 0;
    case SZ_CLAIM_STRING:
    case SZ_CLAIM_ABSENT:
        break;
    }
    return false;
}

enum sz_render sz_template_json(struct sz_txn *txn, const struct sz_template *tpl, struct sz_buf *out)
{
    struct sz_slice text;
    bool lone = tpl->n == 1 && tpl->parts[0].var == SZ_VAR_CLAIM;
    if (lone && add_typed(txn, tpl->parts[0].slot, out))
        return SZ_RENDER_OK;
    enum sz_render rc = render(&(struct render){txn, FORM_JSON, SZ_NONE}, tpl, CONTEXT_TEXT_MAX, &text);
    if (rc == SZ_RENDER_OK)
        sz_buf_json(out, text);
    return rc;
}

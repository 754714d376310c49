/*
 * Whose bucket.  Always something that was verified, or the address that the socket or a trusted proxy names; the
 * fields are typed and carry their lengths, so that no two identities give one key.  Built once, in request memory.
 */
#include "pipeline/limit.h"

#include "pipeline/template.h"

#define TEMPLATE_MAX 2048

enum { FIELD_ISSUER = 1, FIELD_SUBJECT, FIELD_CLIENT, FIELD_TENANT, FIELD_ADDRESS, FIELD_TEMPLATE, FIELD_VISITOR };

struct field {
    uint8_t type;
    struct sz_slice value;
};

/* As sz_key_field writes them, behind the head. */
static struct sz_slice pack(struct sz_txn *txn, const struct sz_conf_route_limit *limit, enum sz_limit_by kind,
                            const struct field *fields, size_t n)
{
    size_t size = SZ_LIMIT_KEY_HEAD, at = SZ_LIMIT_KEY_HEAD;
    for (size_t i = 0; i < n; i++)
        size += 5 + fields[i].value.n;
    char *out = sz_pool_alloc(txn->pool, size);
    sz_limit_key_head(limit, kind, out);
    for (size_t i = 0; i < n; i++) {
        uint32_t length = fields[i].value.p == NULL ? UINT32_MAX : (uint32_t)fields[i].value.n;
        out[at++] = (char)fields[i].type;
        for (unsigned k = 0; k < 4; k++)
            out[at++] = (char)(length >> (8 * k));
        if (fields[i].value.n > 0)
            memcpy(out + at, fields[i].value.p, fields[i].value.n);
        at += fields[i].value.n;
    }
    return sz_slice(out, size);
}

static struct sz_slice person(struct sz_txn *txn, const struct sz_conf_route_limit *limit, enum sz_limit_by kind)
{
    const struct sz_identity *id = txn->identity;
    struct field fields[] = {{FIELD_ISSUER, sz_txn_issuer(txn)->issuer}, {FIELD_SUBJECT, SZ_NONE}};
    struct sz_slice of = sz_identity_text(id, kind == SZ_BY_TENANT ? id->tenant : id->client);
    if (of.p != NULL)
        fields[1] = (struct field){kind == SZ_BY_TENANT ? FIELD_TENANT : FIELD_CLIENT, of};
    else
        fields[1].value = sz_identity_text(id, id->subject);
    return pack(txn, limit, kind, fields, SZ_COUNT(fields));
}

static struct sz_slice address(struct sz_txn *txn, const struct sz_conf_route_limit *limit)
{
    struct sz_addr client = txn->from.client;
    struct sz_addr net = sz_addr_is_v4(client) ? client : sz_addr_prefix(client, 64);
    struct field field = {FIELD_ADDRESS, sz_slice(net.b, sizeof(net.b))};
    return pack(txn, limit, SZ_BY_ADDRESS, &field, 1);
}

static struct sz_slice visitor(struct sz_txn *txn, const struct sz_conf_route_limit *limit)
{
    sz_limit_visitor(txn);
    struct field field = {FIELD_VISITOR, sz_slice(txn->limits->visitor, sizeof(txn->limits->visitor))};
    return pack(txn, limit, SZ_BY_COOKIE, &field, 1);
}

/* Whatever has no value has one bucket for all who have none. */
static enum sz_reason by_template(struct sz_txn *txn, const struct sz_conf_route_limit *limit, struct sz_slice *key)
{
    struct field field = {FIELD_TEMPLATE, SZ_NONE};
    switch (sz_template_id(txn, &limit->key, TEMPLATE_MAX, &field.value)) {
    case SZ_RENDER_OK:
    case SZ_RENDER_ABSENT:
    case SZ_RENDER_MISSING:
        *key = pack(txn, limit, SZ_BY_TEMPLATE, &field, 1);
        return SZ_REASON_allowed;
    case SZ_RENDER_AMBIGUOUS:
    case SZ_RENDER_BAD_TEXT:
    case SZ_RENDER_TOO_LONG:
        break;
    }
    return SZ_REASON_bad_request;
}

enum sz_reason sz_limit_key(struct sz_txn *txn, const struct sz_conf_route_limit *limit, enum sz_limit_by kind,
                            struct sz_slice *key)
{
    switch (kind) {
    case SZ_BY_TENANT:
    case SZ_BY_CLIENT:
        *key = person(txn, limit, kind);
        break;
    case SZ_BY_ADDRESS:
        *key = address(txn, limit);
        break;
    case SZ_BY_COOKIE:
        *key = visitor(txn, limit);
        break;
    case SZ_BY_TEMPLATE:
        return by_template(txn, limit, key);
    }
    return SZ_REASON_allowed;
}

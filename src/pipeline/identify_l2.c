#include "pipeline/identify_l2.h"

#define KIND "identity"

enum { FIELD_KIND = 1, FIELD_ISSUER, FIELD_TOKEN };

void sz_l2_identity_name(const struct sz_gate *gate, const struct sz_snapshot *snapshot, int issuer,
                         struct sz_slice token, struct sz_l2_name *out)
{
    uint8_t heads[3][SZ_KEY_HEAD];
    struct sz_slice fields[6], kind = issuer < 0 ? SZ_S("jwt") : SZ_S("opaque");
    size_t n = 0;
    fields[n++] = sz_key_head(FIELD_KIND, kind, heads[0]);
    fields[n++] = kind;
    if (issuer >= 0) {
        fields[n++] = sz_key_head(FIELD_ISSUER, snapshot->conf->issuers[issuer].issuer, heads[1]);
        fields[n++] = snapshot->conf->issuers[issuer].issuer;
    }
    fields[n++] = sz_key_head(FIELD_TOKEN, token, heads[2]);
    fields[n++] = token; /* as it is: copied, it would have to be wiped */
    sz_l2_name(gate->l2, KIND, fields, n, out);
}

/* A generation is of one issuer's settings, its `iss` among them. */
static bool adopt_issuer(const struct sz_snapshot *snapshot, int issuer, struct sz_identity *id)
{
    for (size_t i = 0; i < snapshot->conf->issuers_n; i++) {
        unsigned registry = sz_issuer_id(snapshot->issuers, i);
        if ((issuer >= 0 && i != (size_t)issuer) || sz_issuer_generation(snapshot->issuers, registry) != id->generation)
            continue;
        id->issuer = (uint16_t)registry;
        return true;
    }
    return false;
}

bool sz_l2_identity(const struct sz_snapshot *snapshot, struct sz_slice plain, int issuer, struct sz_wall wall,
                    struct sz_identity *id)
{
    uint8_t thumbprint[32];
    if (plain.p == NULL || !sz_l2_unpack(plain, id, thumbprint) || id->exp <= sz_wall_seconds(wall) ||
        (id->kind == SZ_CREDENTIAL_OPAQUE) != (issuer >= 0) || !adopt_issuer(snapshot, issuer, id))
        return false;
    if (id->kind == SZ_CREDENTIAL_OPAQUE)
        return true;
    id->key_id = sz_issuer_key_by_thumbprint(snapshot->issuers, id->issuer, thumbprint);
    return id->key_id != 0 && sz_issuer_key_alive(snapshot->issuers, id->issuer, id->key_id);
}

void sz_l2_identity_put(const struct sz_gate *gate, const struct sz_snapshot *snapshot, struct sz_redis *redis,
                        struct sz_loop *loop, const struct sz_l2_name *name, const struct sz_identity *id)
{
    struct sz_buf plain = {0};
    uint8_t thumbprint[32] = {0};
    struct sz_wall expires = {id->exp < INT64_MAX / 1000000 ? id->exp * 1000000 : INT64_MAX};
    if (id->kind == SZ_CREDENTIAL_JWT &&
        !sz_issuer_key_thumbprint(snapshot->issuers, id->issuer, id->key_id, thumbprint))
        return; /* the key went while this was verified */
    sz_l2_pack(id, thumbprint, &plain);
    sz_l2_put(gate->l2, redis, loop, KIND, name, sz_buf_slice(&plain), expires);
    sz_wipe(plain.p, plain.n);
    sz_buf_fini(&plain);
}

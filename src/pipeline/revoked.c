/* One look for each kind of which there is something newer: names are worked out for those alone. */
#include "pipeline/revoked.h"

uint64_t sz_token_name(struct sz_slice token)
{
    return sz_revocation_name(SZ_REVOKE_TOKEN, SZ_NONE, sz_token_signed(token));
}

struct looking {
    const struct sz_gate *gate;
    const struct sz_identity *id;
    const struct sz_conf_issuer *issuer;
    uint32_t kinds;
    struct sz_issued issued;
};

static bool covered(const struct looking *l, uint64_t name)
{
    return name != 0 && sz_revocations_cover(l->gate->revocations, name, &l->issued);
}

static bool wanted(const struct looking *l, enum sz_revocation_kind kind)
{
    return (l->kinds >> kind & 1) != 0;
}

static bool covered_text(const struct looking *l, enum sz_revocation_kind kind, struct sz_text_ref ref)
{
    struct sz_slice value = sz_identity_text(l->id, ref);
    return wanted(l, kind) && value.p != NULL && covered(l, sz_revocation_name(kind, l->issuer->issuer, value));
}

static uint64_t key_name_of(const struct sz_snapshot *snapshot, const struct sz_identity *id)
{
    return id->kind == SZ_CREDENTIAL_JWT ? sz_issuer_key_name(snapshot->issuers, id->issuer, id->key_id) : 0;
}

struct sz_revoked_names sz_revoked_remember(const struct sz_snapshot *snapshot, const struct sz_identity *id,
                                            struct sz_slice token)
{
    struct sz_revoked_names names = {.token_name = sz_token_name(token), .key_name = key_name_of(snapshot, id)};
    names.key_lost = id->kind == SZ_CREDENTIAL_JWT && names.key_name == 0 &&
                     !sz_issuer_key_alive(snapshot->issuers, id->issuer, id->key_id);
    return names;
}

static bool covered_key(const struct looking *l, const struct sz_snapshot *snapshot,
                        const struct sz_revoked_names *names)
{
    return wanted(l, SZ_REVOKE_KID) &&
           (names->key_lost || covered(l, names->key_name != 0 ? names->key_name : key_name_of(snapshot, l->id)));
}

bool sz_identity_revoked(const struct sz_gate *gate, const struct sz_snapshot *snapshot, const struct sz_identity *id,
                         uint64_t since, const struct sz_revoked_names *names)
{
    uint64_t token_name = names->token_name;
    int index = sz_issuer_index(snapshot->issuers, id->issuer);
    struct looking l = {.gate = gate, .id = id, .kinds = sz_revocation_kinds(gate->news, since)};
    if (l.kinds == 0)
        return false;
    if (index < 0)
        return true; /* of nobody's: not to be believed any more */
    l.issuer = &snapshot->conf->issuers[index];
    l.issued = (struct sz_issued){
        .known = (id->flags & SZ_ID_HAS_IAT) != 0, .iat = id->iat, .leeway = l.issuer->leeway.us / 1000000};
    if (wanted(&l, SZ_REVOKE_TOKEN) && token_name == 0)
        token_name = sz_token_name(names->token);
    return (wanted(&l, SZ_REVOKE_TOKEN) && covered(&l, token_name)) ||
           (wanted(&l, SZ_REVOKE_JTI) && (id->flags & SZ_ID_HAS_JTI) != 0 && covered(&l, id->jti)) ||
           (wanted(&l, SZ_REVOKE_SID) && (id->flags & SZ_ID_HAS_SID) != 0 && covered(&l, id->sid)) ||
           covered_text(&l, SZ_REVOKE_SUBJECT, id->subject) || covered_text(&l, SZ_REVOKE_CLIENT, id->client) ||
           (wanted(&l, SZ_REVOKE_ISSUER) &&
            covered(&l, sz_revocation_name(SZ_REVOKE_ISSUER, l.issuer->issuer, SZ_NONE))) ||
           covered_key(&l, snapshot, names);
}

struct sz_span sz_fact_ttl(const struct sz_gate *gate, const struct sz_conf_cache *conf, enum sz_credential_kind kind)
{
    struct sz_span ttl = kind == SZ_CREDENTIAL_OPAQUE ? conf->ttl_opaque : conf->ttl;
    return sz_revocation_deaf(gate->news) && conf->ttl_degraded.us < ttl.us ? conf->ttl_degraded : ttl;
}

enum sz_reason sz_revoked(struct sz_txn *txn)
{
    const struct sz_gate *gate = txn->worker->gate;
    const struct sz_identity *id = txn->identity;
    if (SZ_UNLIKELY(sz_revocation_deaf(gate->news)) && txn->snapshot->conf->revocation.closed)
        return SZ_REASON_revocation_unavailable;
    if (SZ_LIKELY(!sz_revocation_newer(gate->news, id->revocation)))
        return SZ_REASON_allowed;
    return sz_identity_revoked(gate, txn->snapshot, id, id->revocation, &(struct sz_revoked_names){.token = txn->token})
               ? SZ_REASON_revoked_token
               : SZ_REASON_allowed;
}

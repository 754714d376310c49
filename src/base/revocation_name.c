/*
 * What revocations are known by.  Unkeyed on purpose: the digest has to be the same on every instance, also on one that
 * gets its key or its Redis tomorrow, and a revocation that is kept for years must not depend on a key that rotates.
 * Where digests leave the host they are sealed.
 */
#include "subzero/crypto.h"
#include "subzero/revocation.h"

static const char *const names[SZ_REVOKE_KINDS] = {
    [SZ_REVOKE_TOKEN] = "token",     [SZ_REVOKE_JTI] = "jti",       [SZ_REVOKE_SID] = "sid",
    [SZ_REVOKE_SUBJECT] = "subject", [SZ_REVOKE_CLIENT] = "client", [SZ_REVOKE_ISSUER] = "issuer",
    [SZ_REVOKE_KID] = "kid",
};

const char *sz_revocation_kind_name(enum sz_revocation_kind kind)
{
    return names[kind];
}

bool sz_revocation_kind_from(struct sz_slice s, enum sz_revocation_kind *kind)
{
    for (size_t i = 0; i < SZ_COUNT(names); i++) {
        if (sz_eq(s, sz_cstr(names[i]))) {
            *kind = (enum sz_revocation_kind)i;
            return true;
        }
    }
    return false;
}

/* Length-prefixed as sz_key_field does it, on the stack: a token is checked on a loop. */
static void add_field(char **at, uint8_t type, struct sz_slice value)
{
    uint32_t n = value.p == NULL ? UINT32_MAX : (uint32_t)value.n;
    const uint8_t head[5] = {type, (uint8_t)n, (uint8_t)(n >> 8), (uint8_t)(n >> 16), (uint8_t)(n >> 24)};
    memcpy(*at, head, sizeof(head));
    *at += sizeof(head);
    if (value.n != 0)
        memcpy(*at, value.p, value.n);
    *at += value.n;
}

void sz_revocation_digest(enum sz_revocation_kind kind, struct sz_slice iss, struct sz_slice value, uint8_t out[32])
{
    char text[3 * 5 + 16 + 2048];
    uint8_t hash[32];
    char *at = text;
    if (iss.n + value.n >
        2048) { /* long values by their hash; which is 32 bytes long, as no field of another type is */
        sz_sha256(value, hash);
        value = sz_slice(hash, sizeof(hash));
    }
    SZ_ASSERT(iss.n + value.n <= 2048);
    add_field(&at, 'k', sz_cstr(names[kind]));
    add_field(&at, 'i', iss);
    add_field(&at, value.p == (const char *)hash ? 'h' : 'v', value);
    sz_sha256(sz_slice(text, (size_t)(at - text)), out);
    sz_wipe(text, (size_t)(at - text));
}

uint64_t sz_revocation_name(enum sz_revocation_kind kind, struct sz_slice iss, struct sz_slice value)
{
    uint8_t digest[32];
    sz_revocation_digest(kind, iss, value, digest);
    return sz_revocation_name_of(digest);
}

/*
 * An identity as bytes.  Little-endian, no padding, a version in front; only what is set is written:
 *
 *   version 1 │ kind 1 │ flags 2 │ audiences 1 │ scope words 1 │ generation 8 │ exp 8 │ iat 8 │ thumbprint 32
 *   │ scopes 8 each │ jti 8? │ sid 8? │ x5t 32? │ subject, client, tenant, claims: at 2, n 2 each │ text n 2, bytes
 */
#include "subzero/l2.h"

enum { VERSION = 1, KNOWN_FLAGS = SZ_ID_CNF_OTHER * 2 - 1 };

static void put(struct sz_buf *out, uint64_t value, size_t bytes)
{
    uint8_t le[8];
    for (size_t i = 0; i < bytes; i++)
        le[i] = (uint8_t)(value >> 8 * i);
    sz_buf_add(out, le, bytes);
}

static void put_ref(struct sz_buf *out, struct sz_text_ref ref)
{
    put(out, ref.at, 2);
    put(out, ref.n, 2);
}

static unsigned scope_words(const struct sz_identity *id)
{
    unsigned n = SZ_COUNT(id->scopes);
    while (n > 0 && id->scopes[n - 1] == 0)
        n--;
    return n;
}

void sz_l2_pack(const struct sz_identity *id, const uint8_t thumbprint[32], struct sz_buf *out)
{
    unsigned words = scope_words(id);
    put(out, VERSION, 1);
    put(out, id->kind, 1);
    put(out, id->flags, 2);
    put(out, id->audiences, 1);
    put(out, words, 1);
    put(out, id->generation, 8);
    put(out, (uint64_t)id->exp, 8);
    put(out, (uint64_t)id->iat, 8);
    sz_buf_add(out, thumbprint, 32);
    for (unsigned i = 0; i < words; i++)
        put(out, id->scopes[i], 8);
    if ((id->flags & SZ_ID_HAS_JTI) != 0)
        put(out, id->jti, 8);
    if ((id->flags & SZ_ID_HAS_SID) != 0)
        put(out, id->sid, 8);
    if ((id->flags & SZ_ID_HAS_X5T) != 0)
        sz_buf_add(out, id->x5t, sizeof(id->x5t));
    put_ref(out, id->subject);
    put_ref(out, id->client);
    put_ref(out, id->tenant);
    put_ref(out, id->claims);
    put(out, id->text_n, 2);
    sz_buf_add(out, id->text, id->text_n);
}

/* A reader that remembers that it ran out, so that the caller asks once. */
struct reader {
    struct sz_slice rest;
    bool bad;
};

static uint64_t get(struct reader *r, size_t bytes)
{
    uint64_t value = 0;
    if (r->rest.n < bytes) {
        r->bad = true;
        return 0;
    }
    for (size_t i = 0; i < bytes; i++)
        value |= (uint64_t)(uint8_t)r->rest.p[i] << 8 * i;
    r->rest = sz_from(r->rest, bytes);
    return value;
}

static void get_bytes(struct reader *r, void *out, size_t n)
{
    if (r->rest.n < n) {
        r->bad = true;
        return;
    }
    if (n > 0)
        memcpy(out, r->rest.p, n);
    r->rest = sz_from(r->rest, n);
}

static struct sz_text_ref get_ref(struct reader *r)
{
    struct sz_text_ref ref = {(uint16_t)get(r, 2), (uint16_t)get(r, 2)};
    return ref;
}

static bool ref_fits(const struct sz_identity *id, struct sz_text_ref ref)
{
    return ref.at + ref.n <= id->text_n;
}

/* The encoded claims end where they say: what reads them trusts their lengths. */
static bool claims_fit(const struct sz_identity *id)
{
    struct sz_slice rest = sz_identity_text(id, id->claims);
    while (rest.n > 0) {
        if (rest.n < 4)
            return false;
        size_t n = (uint8_t)rest.p[2] | (size_t)(uint8_t)rest.p[3] << 8;
        if ((uint8_t)rest.p[0] >= SZ_CLAIMS_MAX || (uint8_t)rest.p[1] > SZ_CLAIM_OTHER || rest.n < 4 + n)
            return false;
        rest = sz_from(rest, 4 + n);
    }
    return true;
}

bool sz_l2_unpack(struct sz_slice bytes, struct sz_identity *id, uint8_t thumbprint[32])
{
    struct reader r = {bytes, false};
    sz_identity_init(id);
    if (get(&r, 1) != VERSION)
        return false;
    id->kind = (uint8_t)get(&r, 1);
    id->flags = (uint16_t)get(&r, 2);
    id->audiences = (uint8_t)get(&r, 1);
    size_t words = (size_t)get(&r, 1);
    id->generation = get(&r, 8);
    id->exp = (int64_t)get(&r, 8);
    id->iat = (int64_t)get(&r, 8);
    get_bytes(&r, thumbprint, 32);
    if (r.bad || words > SZ_COUNT(id->scopes) || (id->flags & ~KNOWN_FLAGS) != 0)
        return false;
    for (size_t i = 0; i < words; i++)
        id->scopes[i] = get(&r, 8);
    if ((id->flags & SZ_ID_HAS_JTI) != 0)
        id->jti = get(&r, 8);
    if ((id->flags & SZ_ID_HAS_SID) != 0)
        id->sid = get(&r, 8);
    if ((id->flags & SZ_ID_HAS_X5T) != 0)
        get_bytes(&r, id->x5t, sizeof(id->x5t));
    id->subject = get_ref(&r);
    id->client = get_ref(&r);
    id->tenant = get_ref(&r);
    id->claims = get_ref(&r);
    id->text_n = (uint16_t)get(&r, 2);
    if (r.bad || id->text_n > SZ_IDENTITY_TEXT || r.rest.n != id->text_n)
        return false;
    get_bytes(&r, id->text, id->text_n);
    return ref_fits(id, id->subject) && ref_fits(id, id->client) && ref_fits(id, id->tenant) &&
           ref_fits(id, id->claims) && claims_fit(id) &&
           (id->kind == SZ_CREDENTIAL_JWT || id->kind == SZ_CREDENTIAL_OPAQUE);
}

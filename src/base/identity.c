/*
 * Building and reading the compact identity.  Its text area is a bump allocator whose
 * offset 0 is never handed out, so that a {0, 0} reference can mean "absent".  Claims
 * follow each other as
 *
 *   u8 slot | u8 type | u16 length (little-endian) | bytes
 *
 * and are searched from the front: a configuration mentions a handful of claims, and a
 * handful of bytes is faster to walk than to index.  Reading stops at anything that does
 * not fit the area, so a damaged record yields absent claims, never foreign memory.
 */
#include "subzero/identity.h"

#include <errno.h>

enum { CLAIM_HEAD = 4, ITEM_HEAD = 2 };

void sz_identity_init(struct sz_identity *id)
{
    memset(id, 0, offsetof(struct sz_identity, text));
    id->text[0] = '\0';
    id->text_n = 1;
}

static char *grow(struct sz_identity *id, size_t n)
{
    SZ_ASSERT(id->text_n >= 1); /* sz_identity_init was forgotten */
    if (n > SZ_IDENTITY_TEXT - (size_t)id->text_n)
        return NULL;
    char *p = id->text + id->text_n;
    id->text_n = (uint16_t)(id->text_n + n);
    return p;
}

int sz_identity_add_text(struct sz_identity *id, struct sz_slice s, struct sz_text_ref *ref)
{
    if (s.p == NULL) {
        *ref = (struct sz_text_ref){0, 0};
        return 0;
    }
    uint16_t at = id->text_n;
    char *p = grow(id, s.n);
    if (p == NULL)
        return -E2BIG;
    memcpy(p, s.p, s.n);
    *ref = (struct sz_text_ref){at, (uint16_t)s.n};
    return 0;
}

static void put_u16(char *p, size_t v)
{
    p[0] = (char)(v & 0xFF);
    p[1] = (char)(v >> 8 & 0xFF);
}

static size_t get_u16(const char *p)
{
    return (size_t)(unsigned char)p[0] | (size_t)(unsigned char)p[1] << 8;
}

int sz_identity_add_claim(struct sz_identity *id, unsigned slot, enum sz_claim_type type, struct sz_slice value)
{
    SZ_ASSERT(slot < SZ_CLAIMS_MAX);
    SZ_ASSERT(type != SZ_CLAIM_INTEGER || value.n == 8);
    SZ_ASSERT(type != SZ_CLAIM_BOOL || value.n == 1);
    SZ_ASSERT(id->claims.n == 0 || id->claims.at + id->claims.n == id->text_n); /* one run, nothing between */
    if (value.n > SZ_IDENTITY_TEXT)
        return -E2BIG;
    uint16_t at = id->text_n;
    char *p = grow(id, CLAIM_HEAD + value.n);
    if (p == NULL)
        return -E2BIG;
    p[0] = (char)slot;
    p[1] = (char)type;
    put_u16(p + 2, value.n);
    if (value.n != 0)
        memcpy(p + CLAIM_HEAD, value.p, value.n);
    if (id->claims.n == 0)
        id->claims.at = at;
    id->claims.n = (uint16_t)(id->text_n - id->claims.at);
    return 0;
}

static struct sz_claim read_claim(unsigned type, struct sz_slice value)
{
    struct sz_claim claim = {.type = SZ_CLAIM_ABSENT};
    switch (type) {
    case SZ_CLAIM_STRING:
    case SZ_CLAIM_STRINGS:
    case SZ_CLAIM_OTHER:
        claim.text = value;
        break;
    case SZ_CLAIM_INTEGER: {
        uint64_t bits = 0;
        for (size_t i = 0; i < 8 && i < value.n; i++)
            bits |= (uint64_t)(unsigned char)value.p[i] << (8 * i);
        claim.integer = (int64_t)bits;
        break;
    }
    case SZ_CLAIM_BOOL:
        claim.integer = value.n == 1 && value.p[0] != 0;
        break;
    default:
        return claim;
    }
    claim.type = (enum sz_claim_type)type;
    return claim;
}

struct sz_claim sz_identity_claim(const struct sz_identity *id, unsigned slot)
{
    struct sz_slice rest = sz_identity_text(id, id->claims);
    if ((size_t)id->claims.at + id->claims.n > id->text_n || id->text_n > SZ_IDENTITY_TEXT)
        rest = SZ_NONE;
    while (rest.n >= CLAIM_HEAD) {
        size_t n = get_u16(rest.p + 2);
        if (n > rest.n - CLAIM_HEAD)
            break;
        if ((unsigned char)rest.p[0] == slot)
            return read_claim((unsigned char)rest.p[1], sz_slice(rest.p + CLAIM_HEAD, n));
        rest = sz_from(rest, CLAIM_HEAD + n);
    }
    return (struct sz_claim){.type = SZ_CLAIM_ABSENT};
}

bool sz_claim_next(struct sz_slice *rest, struct sz_slice *item)
{
    *item = SZ_NONE;
    if (rest->n < ITEM_HEAD)
        return false;
    size_t n = get_u16(rest->p);
    if (n > rest->n - ITEM_HEAD)
        return false;
    *item = sz_slice(rest->p + ITEM_HEAD, n);
    *rest = sz_from(*rest, ITEM_HEAD + n);
    return true;
}

void sz_claim_pack(struct sz_buf *buf, struct sz_slice item)
{
    if (item.n > UINT16_MAX) {
        buf->overflow = true; /* cannot be an identity's anyway: its whole text is smaller */
        return;
    }
    char head[ITEM_HEAD];
    put_u16(head, item.n);
    sz_buf_add(buf, head, sizeof(head));
    sz_buf_adds(buf, item);
}

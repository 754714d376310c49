/*
 * The compact identity: what was learned by verifying a credential, as a fact.
 * It is what L1 stores and what the route's checks read; it is never a verdict.
 * One fixed head, then a text area of which only `text_n` bytes are in use, so that
 * a copy costs what it holds: sz_identity_size().
 *
 * Scopes and claims are projected onto the *vocabulary*: the scopes and claim names
 * that the configuration mentions anywhere, in configuration order.  A new vocabulary
 * is a new generation (see sz_vocabulary in subzero/conf.h): a record made under
 * another one is a miss, so that cache on equals cache off.
 */
#ifndef SUBZERO_IDENTITY_H
#define SUBZERO_IDENTITY_H

#include "subzero/base.h"

#define SZ_SCOPES_MAX    256  /* scopes a configuration may mention */
#define SZ_CLAIMS_MAX    32   /* claim names a configuration may mention */
#define SZ_IDENTITY_TEXT 2048 /* text area of the working form; larger identities are refused (malformed_token) */

enum sz_credential_kind { SZ_CREDENTIAL_NONE, SZ_CREDENTIAL_JWT, SZ_CREDENTIAL_OPAQUE };

enum {
    SZ_ID_HAS_IAT = 1 << 0,
    SZ_ID_HAS_JTI = 1 << 1,
    SZ_ID_HAS_SID = 1 << 2,
    SZ_ID_HAS_X5T = 1 << 3,      /* cnf.x5t#S256: thumbprint in x5t */
    SZ_ID_SENDER_BOUND = 1 << 4, /* has a cnf or DPoP type of any kind: must be proven in this request */
    SZ_ID_CNF_OTHER = 1 << 5,    /* ... and (also) by a method we cannot verify: always refused unless ignore_cnf */
};

struct sz_text_ref { /* a run of the text area; n == 0 and at == 0: absent */
    uint16_t at, n;
};

enum sz_claim_type {
    SZ_CLAIM_ABSENT,
    SZ_CLAIM_STRING,
    SZ_CLAIM_INTEGER,
    SZ_CLAIM_BOOL,
    SZ_CLAIM_STRINGS,
    SZ_CLAIM_OTHER /* an object, a fraction, a list of more than strings */
};

struct sz_identity {
    uint64_t generation; /* issuer's verification settings + vocabulary; must equal the current one of that issuer */
    int64_t exp, iat;    /* unix seconds; exp always set; fractions floored; iat valid with SZ_ID_HAS_IAT */
    uint64_t jti, sid;   /* sz_revocation_name of the claims, the same on every instance */
    uint64_t revocation; /* judged by all revocations of this process up to here: sz_revocation_sequence; 0: by none */
    uint32_t key_id;     /* process-wide id of the verifying key: sz_issuer_key_alive() */
    uint16_t issuer;     /* index into the process-wide issuer registry (stable over reloads) */
    uint16_t flags;      /* SZ_ID_* */
    uint64_t scopes[SZ_SCOPES_MAX / 64];
    uint8_t x5t[32];
    struct sz_text_ref subject, client, tenant;
    struct sz_text_ref claims; /* encoded claim values: see sz_identity_claim */
    uint8_t kind;              /* enum sz_credential_kind */
    uint8_t audiences;         /* bit i: the issuer's configured audiences[i] was in `aud` (at most 8) */
    uint16_t text_n;
    char text[SZ_IDENTITY_TEXT];
};

static inline size_t sz_identity_size(const struct sz_identity *id)
{
    return offsetof(struct sz_identity, text) + id->text_n;
}
static inline struct sz_slice sz_identity_text(const struct sz_identity *id, struct sz_text_ref ref)
{
    return ref.at == 0 && ref.n == 0 ? SZ_NONE : sz_slice(id->text + ref.at, ref.n);
}
static inline bool sz_identity_has_scope(const struct sz_identity *id, unsigned bit)
{
    return (id->scopes[bit / 64] >> (bit % 64) & 1) != 0;
}

/*
 * Building: zero the head, then add.  A text_n of 1 is reserved by sz_identity_init so that
 * {0,0} can mean absent.  -E2BIG: does not fit.
 */
void sz_identity_init(struct sz_identity *id);
int sz_identity_add_text(struct sz_identity *id, struct sz_slice s, struct sz_text_ref *ref) SZ_MUST_CHECK;
/*
 * Adds one claim value under its vocabulary slot; all claims must be added in one run, slot
 * order, nothing between.  A STRINGS value is packed with sz_claim_pack first.
 * Encoding: u8 slot, u8 type, u16 length, bytes (INTEGER: 8 bytes little-endian i64; BOOL: 1 byte;
 * STRINGS: items each u16 length, bytes).
 */
int sz_identity_add_claim(struct sz_identity *id, unsigned slot, enum sz_claim_type type,
                          struct sz_slice value) SZ_MUST_CHECK;

#define SZ_CLAIM_JSON_MAX 512

struct sz_claim {
    enum sz_claim_type type;
    struct sz_slice text; /* STRING: the value; STRINGS: the encoded items, for sz_claim_next; OTHER: its JSON, members
                             sorted, empty when it is longer than SZ_CLAIM_JSON_MAX */
    int64_t integer;      /* INTEGER, BOOL */
};
/* The value of a vocabulary claim; type ABSENT when the token lacks it.  Borrowed from id. */
struct sz_claim sz_identity_claim(const struct sz_identity *id, unsigned slot);
/* Next item of a STRINGS claim; start with rest = claim.text. */
bool sz_claim_next(struct sz_slice *rest, struct sz_slice *item);
/* Encodes items for a STRINGS claim value into buf. */
void sz_claim_pack(struct sz_buf *buf, struct sz_slice item);

#endif

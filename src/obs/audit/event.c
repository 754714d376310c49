/*
 * Packing is what a loop pays for a record: a fixed head and the texts that are there, each cut at its bound.  One byte
 * more than the bound is kept of a longer one, so that the line shows that it was cut.
 */
#include "obs/audit/event.h"

struct head {
    int64_t time;
    int64_t auth, authz, total;
    uint64_t config;
    struct sz_addr address;
    uint32_t port;
    uint32_t present; /* a bit for each text */
    uint16_t reason, status;
    uint8_t kind, effect, allow, authenticated, has_address;
    uint16_t n[SZ_AUDIT_TEXTS];
};

static const uint16_t bounds[SZ_AUDIT_TEXTS] = {
#define SZ_AUDIT_TEXT(id, name, bytes) [SZ_AUDIT_##id] = bytes,
#include "subzero/tbl/audit.h"
};

enum {
    BOUNDS = 0
#define SZ_AUDIT_TEXT(id, name, bytes) +(bytes) + 4
#include "subzero/tbl/audit.h"
};
_Static_assert(sizeof(struct head) + BOUNDS <= SZ_AUDIT_EVENT_MAX, "an event fits its bound");

const char *sz_audit_kind_name(enum sz_audit_kind kind)
{
    static const char *const names[SZ_AUDIT_KINDS] = {
#define SZ_AUDIT_KIND(id, name, help) [SZ_AUDIT_##id] = name,
#include "subzero/tbl/audit.h"
    };
    SZ_ASSERT(kind < SZ_AUDIT_KINDS);
    return names[kind];
}

struct sz_slice sz_audit_text_name(enum sz_audit_text text)
{
    static const struct sz_slice names[SZ_AUDIT_TEXTS] = {
#define SZ_AUDIT_TEXT(id, name, bytes) [SZ_AUDIT_##id] = {name, sizeof(name) - 1},
#include "subzero/tbl/audit.h"
    };
    return names[text];
}

size_t sz_audit_text_max(enum sz_audit_text text)
{
    return bounds[text];
}

size_t sz_audit_event_pack(const struct sz_audit_event *e, uint32_t port, char out[SZ_AUDIT_EVENT_MAX])
{
    struct head head = {
        .time = e->time.us,
        .auth = e->auth.us,
        .authz = e->authz.us,
        .total = e->total.us,
        .config = e->config,
        .address = e->address,
        .port = port,
        .reason = (uint16_t)e->reason,
        .status = e->status,
        .kind = (uint8_t)e->kind,
        .effect = (uint8_t)e->effect,
        .allow = e->allow,
        .authenticated = e->authenticated,
        .has_address = e->has_address,
    };
    size_t at = sizeof(head);
    for (unsigned i = 0; i < SZ_AUDIT_TEXTS; i++) {
        if (e->text[i].p == NULL)
            continue;
        size_t n = e->text[i].n <= bounds[i] ? e->text[i].n : bounds[i] + 4u;
        n = n < e->text[i].n ? n : e->text[i].n;
        head.present |= 1u << i;
        head.n[i] = (uint16_t)n;
        memcpy(out + at, e->text[i].p, n);
        at += n;
    }
    memcpy(out, &head, sizeof(head));
    return at;
}

void sz_audit_event_unpack(struct sz_slice bytes, struct sz_audit_event *e, uint32_t *port)
{
    struct head head;
    SZ_ASSERT(bytes.n >= sizeof(head));
    memcpy(&head, bytes.p, sizeof(head));
    *e = (struct sz_audit_event){
        .kind = (enum sz_audit_kind)head.kind,
        .effect = (enum sz_audit_effect)head.effect,
        .time = {head.time},
        .allow = head.allow != 0,
        .authenticated = head.authenticated != 0,
        .reason = (enum sz_reason)head.reason,
        .status = head.status,
        .config = head.config,
        .auth = {head.auth},
        .authz = {head.authz},
        .total = {head.total},
        .has_address = head.has_address != 0,
        .address = head.address,
    };
    *port = head.port;
    size_t at = sizeof(head);
    for (unsigned i = 0; i < SZ_AUDIT_TEXTS; i++) {
        if ((head.present & 1u << i) == 0)
            continue;
        e->text[i] = sz_slice(bytes.p + at, head.n[i]);
        at += head.n[i];
    }
    SZ_ASSERT(at == bytes.n);
}

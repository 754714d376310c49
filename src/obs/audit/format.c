/*
 * The line of a record.  Fixed beginning, then the members that apply in a fixed order, then (chain.c) the tail.  Every
 * text has a bound as written, so that a line never grows beyond its own; `"cut":true` marks one where a bound was met.
 */
#include "obs/audit/event.h"

#include "obs/audit/chain.h"
#include "subzero/conf.h"
#include "subzero/crypto.h"

static void add_number(struct sz_buf *out, struct sz_slice name, uint64_t value)
{
    sz_buf_adds(out, name);
    sz_buf_u64(out, value);
}

static void add_span(struct sz_buf *out, struct sz_slice name, struct sz_span span)
{
    if (span.us > 0)
        add_number(out, name, (uint64_t)span.us);
}

void sz_audit_pseudonym(const struct sz_secret *key, char kind, struct sz_slice name, char out[34])
{
    struct sz_buf text = {0};
    uint8_t mac[32];
    sz_key_field(&text, (uint8_t)kind, name);
    sz_hmac_sha256(key->value, sz_buf_slice(&text), mac);
    memcpy(out, "p-", 2);
    sz_hex_encode(mac, 16, out + 2);
    sz_wipe(mac, sizeof(mac));
    sz_buf_fini(&text);
}

/* True: it was cut. */
static bool add_text(struct sz_buf *out, enum sz_audit_text which, struct sz_slice value)
{
    static const struct sz_slice ellipsis = {"\xE2\x80\xA6\"", 4};
    struct sz_slice name = sz_audit_text_name(which);
    sz_buf_add(out, ",\"", 2);
    sz_buf_adds(out, name);
    sz_buf_add(out, "\":", 2);
    sz_buf_json_cut(out, value, sz_audit_text_max(which));
    bool marked = out->n >= 4 && sz_eq(sz_slice(out->p + out->n - 4, 4), ellipsis);
    return marked && !(value.n >= 3 && sz_eq(sz_from(value, value.n - 3), sz_sub(ellipsis, 0, 3)));
}

static void add_address(struct sz_buf *out, const struct sz_audit_event *e, const struct sz_secret *key)
{
    char text[SZ_ADDR_TEXT], pseudonym[34];
    struct sz_slice address = sz_slice(text, sz_addr_format(e->address, text));
    if (key != NULL) {
        sz_audit_pseudonym(key, 'a', address, pseudonym);
        address = sz_slice(pseudonym, sizeof(pseudonym));
    }
    sz_buf_adds(out, SZ_S(",\"address\":\""));
    sz_buf_adds(out, address);
    sz_buf_add(out, "\"", 1);
}

static void add_decision(struct sz_buf *out, const struct sz_audit_event *e)
{
    sz_buf_adds(out, e->allow ? SZ_S(",\"decision\":\"allow\",\"reason\":\"")
                              : SZ_S(",\"decision\":\"deny\",\"reason\":\""));
    sz_buf_adds(out, sz_cstr(sz_reason_row(e->reason)->name));
    add_number(out, SZ_S("\",\"status\":"), e->status);
}

static void add_effect(struct sz_buf *out, enum sz_audit_effect effect)
{
    static const char *const names[] = {
        [SZ_EFFECT_NONE] = "",           [SZ_EFFECT_CREATED] = "created", [SZ_EFFECT_UNCHANGED] = "unchanged",
        [SZ_EFFECT_DELETED] = "deleted", [SZ_EFFECT_REFUSED] = "refused",
    };
    if (effect == SZ_EFFECT_NONE)
        return;
    sz_buf_adds(out, SZ_S(",\"effect\":\""));
    sz_buf_adds(out, sz_cstr(names[effect]));
    sz_buf_add(out, "\"", 1);
}

static void add_begin(struct sz_buf *out, const struct sz_audit_event *e, const struct sz_audit_stamp *stamp)
{
    char time[32], id[32];
    uint8_t raw[16];
    sz_wall_format(e->time, 9, time);
    for (int i = 0; i < 8; i++) {
        raw[i] = (uint8_t)(stamp->boot >> (56 - 8 * i));
        raw[8 + i] = (uint8_t)(stamp->seq >> (56 - 8 * i));
    }
    sz_hex_encode(raw, sizeof(raw), id);
    add_number(out, SZ_S("{\"v\":1,\"seq\":"), stamp->seq);
    sz_buf_adds(out, SZ_S(",\"time\":\""));
    sz_buf_add(out, time, SZ_AUDIT_TIME);
    sz_buf_adds(out, SZ_S("\",\"event_id\":\""));
    sz_buf_add(out, id, sizeof(id));
    sz_buf_adds(out, SZ_S("\",\"kind\":\""));
    sz_buf_adds(out, sz_cstr(sz_audit_kind_name(e->kind)));
    sz_buf_add(out, "\"", 1);
}

void sz_audit_format(struct sz_buf *out, const struct sz_audit_event *e, const struct sz_audit_stamp *stamp)
{
    bool cut = false;
    add_begin(out, e, stamp);
    if (e->kind == SZ_AUDIT_DECISION)
        add_decision(out, e);
    for (unsigned i = 0; i < SZ_AUDIT_TEXTS; i++) {
        char pseudonym[34];
        struct sz_slice value = e->text[i];
        if (value.p == NULL)
            continue;
        if (i == SZ_AUDIT_SUBJECT && stamp->pseudonyms != NULL) {
            sz_audit_pseudonym(stamp->pseudonyms, 's', value, pseudonym);
            value = sz_slice(pseudonym, sizeof(pseudonym));
        }
        cut |= add_text(out, (enum sz_audit_text)i, value);
    }
    if (e->has_address)
        add_address(out, e, stamp->pseudonyms);
    add_effect(out, e->effect);
    if (e->config != 0)
        sz_buf_printf(out, ",\"config\":\"%016llx\"", (unsigned long long)e->config);
    add_span(out, SZ_S(",\"auth_us\":"), e->auth);
    add_span(out, SZ_S(",\"authz_us\":"), e->authz);
    add_span(out, SZ_S(",\"total_us\":"), e->total);
    sz_buf_adds(out, stamp->extra);
    if (cut)
        sz_buf_adds(out, SZ_S(",\"cut\":true"));
}

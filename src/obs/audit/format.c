/*
 * The line of a record.  Fixed beginning, then the members that apply in a fixed order, then (chain.c) the tail.  Every
 * text has a bound as written, so that a line never grows beyond its own; `"cut":true` marks one where a bound was met.
 *
 * One thread writes the lines of all loops, so a line is put together from parts that are ready: constant text between
 * the values, and as text what the line before said as well (the second, the address).  There is room
 * for the longest line before its first byte.
 */
#include "obs/audit/event.h"

#include "obs/audit/chain.h"
#include "subzero/conf.h"
#include "subzero/crypto.h"
#include "subzero/scan.h"

enum {
    TEXTS = 0
#define SZ_AUDIT_TEXT(id, name, bytes) +sizeof(",\"" name "\":\"\"") - 1 + (bytes)
#include "subzero/tbl/audit.h"
    ,
    OTHERS = 512 /* everything else, every number at its longest */
};
_Static_assert(TEXTS + OTHERS + SZ_AUDIT_TAIL + 1 <= SZ_AUDIT_LINE_MAX, "the longest decision is a line");

struct line {
    char *start, *at;
    bool cut;
    struct sz_audit_places *places;
};

/* ---- parts -------------------------------------------------------------------------------------------------- */

static void put(struct line *line, struct sz_slice s)
{
    memcpy(line->at, s.p, s.n);
    line->at += s.n;
}

static void put_number(struct line *line, struct sz_slice name, uint64_t value)
{
    char digits[20];
    size_t at = sizeof(digits);
    do {
        digits[--at] = (char)('0' + value % 10);
        value /= 10;
    } while (value != 0);
    put(line, name);
    put(line, sz_slice(digits + at, sizeof(digits) - at));
}

static void put_hex64(struct line *line, uint64_t value)
{
    uint8_t bytes[8];
    for (int i = 0; i < 8; i++)
        bytes[i] = (uint8_t)(value >> (56 - 8 * i));
    sz_hex_encode(bytes, sizeof(bytes), line->at);
    line->at += 16;
}

/* A value that searches ask for, between quotes that are there already. */
static void put_value(struct line *line, enum sz_audit_field field, struct sz_slice value)
{
    line->places->at[field] = (uint16_t)(line->at - line->start);
    line->places->n[field] = (uint16_t)value.n;
    put(line, value);
}

/* ---- members ------------------------------------------------------------------------------------------------ */

static void put_time(struct line *line, struct sz_wall time, struct sz_audit_memo *memo)
{
    int64_t second = sz_wall_seconds(time);
    char text[32];
    if (memo->time[0] == '\0' || memo->second != second) {
        sz_wall_format(time, 9, text);
        memcpy(memo->time, text, sizeof(memo->time));
        memo->second = second;
    }
    put(line, sz_slice(memo->time, sizeof(memo->time)));
    unsigned micro = (unsigned)(time.us - second * 1000000);
    for (int i = 5; i >= 0; i--, micro /= 10)
        line->at[i] = (char)('0' + micro % 10);
    line->at += 6;
    put(line, SZ_S("000Z"));
}

static void put_begin(struct line *line, const struct sz_audit_event *e, const struct sz_audit_stamp *stamp)
{
    put_number(line, SZ_S("{\"v\":1,\"seq\":"), stamp->seq);
    put(line, SZ_S(",\"time\":\""));
    put_time(line, e->time, stamp->memo);
    put(line, SZ_S("\",\"event_id\":\""));
    put_hex64(line, stamp->boot);
    put_hex64(line, stamp->seq);
    put(line, SZ_S("\",\"kind\":\""));
    put_value(line, SZ_AUDIT_BY_KIND, sz_cstr(sz_audit_kind_name(e->kind)));
    put(line, SZ_S("\""));
}

static void put_decision(struct line *line, const struct sz_audit_event *e)
{
    put(line, SZ_S(",\"decision\":\""));
    put_value(line, SZ_AUDIT_BY_DECISION, e->allow ? SZ_S("allow") : SZ_S("deny"));
    put(line, SZ_S("\",\"reason\":\""));
    put_value(line, SZ_AUDIT_BY_REASON, sz_cstr(sz_reason_row(e->reason)->name));
    put_number(line, SZ_S("\",\"status\":"), e->status);
}

static struct sz_slice opening(enum sz_audit_text text)
{
    static const struct sz_slice openings[SZ_AUDIT_TEXTS] = {
#define SZ_AUDIT_TEXT(id, name, bytes) [SZ_AUDIT_##id] = {",\"" name "\":\"", sizeof(",\"" name "\":\"") - 1},
#include "subzero/tbl/audit.h"
    };
    return openings[text];
}

/* SZ_AUDIT_FIELDS: nobody searches by it. */
static enum sz_audit_field field_of(enum sz_audit_text text)
{
    static const uint8_t fields[SZ_AUDIT_TEXTS] = {
        [SZ_AUDIT_REQUEST_ID] = 1 + SZ_AUDIT_BY_REQUEST_ID, [SZ_AUDIT_TRACE_ID] = 1 + SZ_AUDIT_BY_TRACE_ID,
        [SZ_AUDIT_ROUTE] = 1 + SZ_AUDIT_BY_ROUTE,           [SZ_AUDIT_SUBJECT] = 1 + SZ_AUDIT_BY_SUBJECT,
        [SZ_AUDIT_CLIENT] = 1 + SZ_AUDIT_BY_CLIENT,
    };
    return fields[text] == 0 ? SZ_AUDIT_FIELDS : (enum sz_audit_field)(fields[text] - 1);
}

static void put_text_value(struct line *line, enum sz_audit_field field, struct sz_slice value)
{
    if (field < SZ_AUDIT_FIELDS)
        put_value(line, field, value);
    else
        put(line, value);
}

/* What has to be escaped, or cut. */
static void put_escaped(struct line *line, enum sz_audit_text which, struct sz_slice value)
{
    static const struct sz_slice ellipsis = {"\xE2\x80\xA6", 3};
    struct sz_buf text = {0};
    sz_buf_json_cut(&text, value, sz_audit_text_max(which));
    struct sz_slice inside = sz_sub(sz_buf_slice(&text), 1, text.n - 2);
    bool marked = inside.n >= ellipsis.n && sz_eq(sz_from(inside, inside.n - ellipsis.n), ellipsis);
    line->cut |= marked && !(value.n >= ellipsis.n && sz_eq(sz_from(value, value.n - ellipsis.n), ellipsis));
    put_text_value(line, field_of(which), inside);
    sz_buf_fini(&text);
}

static void put_text(struct line *line, enum sz_audit_text which, struct sz_slice value)
{
    put(line, opening(which));
    if (value.n <= sz_audit_text_max(which) && sz_scan_json_plain(value))
        put_text_value(line, field_of(which), value);
    else
        put_escaped(line, which, value);
    put(line, SZ_S("\""));
}

void sz_audit_pseudonym(const struct sz_secret *key, char kind, struct sz_slice name, char out[SZ_AUDIT_PSEUDONYM])
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

static void put_texts(struct line *line, const struct sz_audit_event *e, const struct sz_secret *pseudonyms)
{
    for (unsigned i = 0; i < SZ_AUDIT_TEXTS; i++) {
        char pseudonym[SZ_AUDIT_PSEUDONYM];
        struct sz_slice value = e->text[i];
        if (value.p == NULL)
            continue;
        if (i == SZ_AUDIT_SUBJECT && pseudonyms != NULL) {
            sz_audit_pseudonym(pseudonyms, 's', value, pseudonym);
            value = sz_slice(pseudonym, sizeof(pseudonym));
        }
        put_text(line, (enum sz_audit_text)i, value);
    }
}

static void put_address(struct line *line, struct sz_addr address, const struct sz_secret *pseudonyms,
                        struct sz_audit_memo *memo)
{
    if (memo->address_n == 0 || !sz_addr_eq(memo->address, address)) {
        char text[SZ_ADDR_TEXT];
        size_t n = sz_addr_format(address, text);
        memo->address = address;
        memo->address_n = (uint8_t)(pseudonyms != NULL ? SZ_AUDIT_PSEUDONYM : n);
        if (pseudonyms != NULL)
            sz_audit_pseudonym(pseudonyms, 'a', sz_slice(text, n), memo->address_text);
        else
            memcpy(memo->address_text, text, n);
    }
    put(line, SZ_S(",\"address\":\""));
    put_value(line, SZ_AUDIT_BY_ADDRESS, sz_slice(memo->address_text, memo->address_n));
    put(line, SZ_S("\""));
}

static void put_effect(struct line *line, enum sz_audit_effect effect)
{
    static const char *const names[] = {
        [SZ_EFFECT_NONE] = "",           [SZ_EFFECT_CREATED] = "created", [SZ_EFFECT_UNCHANGED] = "unchanged",
        [SZ_EFFECT_DELETED] = "deleted", [SZ_EFFECT_REFUSED] = "refused",
    };
    if (effect == SZ_EFFECT_NONE)
        return;
    put(line, SZ_S(",\"effect\":\""));
    put(line, sz_cstr(names[effect]));
    put(line, SZ_S("\""));
}

static void put_config(struct line *line, uint64_t config)
{
    if (config == 0)
        return;
    put(line, SZ_S(",\"config\":\""));
    put_hex64(line, config);
    put(line, SZ_S("\""));
}

static void put_span(struct line *line, struct sz_slice name, struct sz_span span)
{
    if (span.us > 0)
        put_number(line, name, (uint64_t)span.us);
}

/* ---- the line ----------------------------------------------------------------------------------------------- */

void sz_audit_format(struct sz_buf *out, const struct sz_audit_event *e, const struct sz_audit_stamp *stamp,
                     struct sz_audit_places *places)
{
    size_t from = out->n, most = TEXTS + OTHERS + stamp->extra.n;
    char *start = sz_buf_room(out, most);
    struct line line = {.start = start, .at = start, .places = places};
    *places = (struct sz_audit_places){0};
    put_begin(&line, e, stamp);
    if (e->kind == SZ_AUDIT_DECISION)
        put_decision(&line, e);
    put_texts(&line, e, stamp->pseudonyms);
    if (e->has_address)
        put_address(&line, e->address, stamp->pseudonyms, stamp->memo);
    put_effect(&line, e->effect);
    put_config(&line, e->config);
    put_span(&line, SZ_S(",\"auth_us\":"), e->auth);
    put_span(&line, SZ_S(",\"authz_us\":"), e->authz);
    put_span(&line, SZ_S(",\"total_us\":"), e->total);
    if (stamp->extra.n > 0)
        put(&line, stamp->extra);
    if (line.cut)
        put(&line, SZ_S(",\"cut\":true"));
    out->n = from + (size_t)(line.at - line.start);
    SZ_ASSERT(out->n <= from + most);
}

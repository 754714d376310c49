/*
 * CSV (RFC 4180): fixed columns, every text in quotes.  A cell that begins with = + - @ or a blank that a spreadsheet
 * drops is run by spreadsheets: an apostrophe in front makes it a text.
 */
#include "obs/audit/page.h"
#include "subzero/audit.h"
#include "subzero/crypto.h"

static const char *const numbers[] = {"status", "auth_us", "authz_us", "total_us", "lost", "count"};
static const char *const texts[] = {"address", "effect", "config", "prev", "hash"};

static void add_name(struct sz_buf *out, const char *name)
{
    sz_buf_add(out, ",", 1);
    sz_buf_adds(out, sz_cstr(name));
}

void sz_audit_csv_head(struct sz_buf *out)
{
    sz_buf_adds(out, SZ_S("seq,time,event_id,kind,decision,reason"));
#define SZ_AUDIT_TEXT(id, name, bytes) add_name(out, name);
#include "subzero/tbl/audit.h"
    for (size_t i = 0; i < SZ_COUNT(texts); i++)
        add_name(out, texts[i]);
    for (size_t i = 0; i < SZ_COUNT(numbers); i++)
        add_name(out, numbers[i]);
    sz_buf_add(out, "\r\n", 2);
}

static void add_utf8(struct sz_buf *out, unsigned c)
{
    char b[3];
    if (c < 0x80) {
        b[0] = (char)c;
        sz_buf_add(out, b, 1);
    } else if (c < 0x800) {
        b[0] = (char)(0xC0 | c >> 6);
        b[1] = (char)(0x80 | (c & 63));
        sz_buf_add(out, b, 2);
    } else {
        b[0] = (char)(0xE0 | c >> 12);
        b[1] = (char)(0x80 | (c >> 6 & 63));
        b[2] = (char)(0x80 | (c & 63));
        sz_buf_add(out, b, 3);
    }
}

/* One escape of our own writing: the character, and how many bytes it took. */
static size_t add_escape(struct sz_buf *out, struct sz_slice s)
{
    static const char from[] = "bfnrt", to[] = "\b\f\n\r\t";
    unsigned c = 0;
    if (s.n < 2)
        return s.n;
    const char *known = strchr(from, s.p[1]);
    if (s.p[1] != 'u' || s.n < 6) {
        char plain = known != NULL && s.p[1] != '\0' ? to[known - from] : s.p[1];
        sz_buf_add(out, &plain, 1);
        return 2;
    }
    for (int i = 2; i < 6; i++) {
        int digit = sz_hex_digit(s.p[i]);
        c = c << 4 | (unsigned)(digit < 0 ? 0 : digit);
    }
    add_utf8(out, c);
    return 6;
}

static void unescape(struct sz_buf *out, struct sz_slice s)
{
    while (s.n > 0) {
        size_t n = 1;
        if (s.p[0] == '\\')
            n = add_escape(out, s);
        else
            sz_buf_add(out, s.p, 1);
        s = sz_from(s, n);
    }
}

static bool is_run(struct sz_slice cell)
{
    return cell.n > 0 && strchr("=+-@\t\r\n ", cell.p[0]) != NULL && cell.p[0] != '\0';
}

static void add_cell(struct sz_buf *out, struct sz_slice escaped)
{
    struct sz_buf plain = {0};
    unescape(&plain, escaped);
    sz_buf_add(out, "\"", 1);
    if (is_run(sz_buf_slice(&plain)))
        sz_buf_add(out, "'", 1);
    for (size_t i = 0; i < plain.n; i++) {
        sz_buf_add(out, plain.p + i, 1);
        if (plain.p[i] == '"')
            sz_buf_add(out, "\"", 1);
    }
    sz_buf_add(out, "\"", 1);
    sz_buf_fini(&plain);
}

static void add_text(struct sz_buf *out, struct sz_slice line, struct sz_slice name)
{
    struct sz_slice value;
    sz_buf_add(out, ",", 1);
    if (sz_audit_line_text(line, name, &value))
        add_cell(out, value);
}

void sz_audit_csv_row(struct sz_buf *out, struct sz_slice line)
{
    static const char *const first[] = {"time", "event_id", "kind", "decision", "reason"};
    sz_buf_u64(out, sz_audit_line_number(line, SZ_S("seq")));
    for (size_t i = 0; i < SZ_COUNT(first); i++)
        add_text(out, line, sz_cstr(first[i]));
#define SZ_AUDIT_TEXT(id, name, bytes) add_text(out, line, SZ_S(name));
#include "subzero/tbl/audit.h"
    for (size_t i = 0; i < SZ_COUNT(texts); i++)
        add_text(out, line, sz_cstr(texts[i]));
    for (size_t i = 0; i < SZ_COUNT(numbers); i++) {
        uint64_t value = sz_audit_line_number(line, sz_cstr(numbers[i]));
        sz_buf_add(out, ",", 1);
        if (value != 0)
            sz_buf_u64(out, value);
    }
    sz_buf_add(out, "\r\n", 2);
}

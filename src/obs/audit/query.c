/* Reading a question: see the header. */
#include "obs/audit/query.h"

#include <errno.h>
#include <stdlib.h>

#include "obs/audit/event.h"
#include "subzero/crypto.h"

enum { VALUE_MAX = 4096, CURSOR_BYTES = 18 };
static const struct sz_key128 cursor_key = {"subzero audit cr"}; /* no secret: it tells questions apart */

void sz_audit_query_init(struct sz_audit_query *query)
{
    *query = (struct sz_audit_query){.since = INT64_MIN, .until = INT64_MAX};
    sz_arena_init(&query->arena);
}

void sz_audit_query_fini(struct sz_audit_query *query)
{
    sz_arena_fini(&query->arena);
}

static int wrong(struct sz_text *why, const char *what, struct sz_slice name)
{
    sz_text_set(why, "'%.*s' %s", SZ_FMT(name), what);
    return -EINVAL;
}

/* ---- parameters ------------------------------------------------------------------------------------------------- */

/* As a line has it: escaped, cut where the line cuts. */
static struct sz_slice escape(struct sz_audit_query *query, struct sz_slice value, size_t most)
{
    struct sz_buf text = {0};
    sz_buf_json_cut(&text, value, most);
    struct sz_slice inner = sz_sub(sz_buf_slice(&text), 1, text.n - 2);
    inner = inner.n == 0 ? SZ_S("") : sz_pool_dup(&query->arena.pool, inner);
    sz_buf_fini(&text);
    return inner;
}

static size_t bound_of(enum sz_audit_field field)
{
    struct sz_slice name = sz_audit_field_name(field);
    for (enum sz_audit_text t = 0; t < SZ_AUDIT_TEXTS; t++) {
        if (sz_eq(sz_audit_text_name(t), name))
            return sz_audit_text_max(t);
    }
    return 256;
}

/* With pseudonyms the record holds one: a name that is asked for becomes its own. */
static struct sz_slice pseudonym(struct sz_audit_query *query, enum sz_audit_field field, struct sz_slice value)
{
    bool named = field == SZ_AUDIT_BY_SUBJECT || field == SZ_AUDIT_BY_ADDRESS;
    if (query->pseudonyms == NULL || !named || (value.n == SZ_AUDIT_PSEUDONYM && sz_starts_with(value, SZ_S("p-"))))
        return value;
    char *text = sz_pool_alloc(&query->arena.pool, SZ_AUDIT_PSEUDONYM);
    sz_audit_pseudonym(query->pseudonyms, field == SZ_AUDIT_BY_SUBJECT ? 's' : 'a', value, text);
    return sz_slice(text, SZ_AUDIT_PSEUDONYM);
}

static int set_field(struct sz_audit_query *query, enum sz_audit_field field, struct sz_slice value,
                     struct sz_text *why)
{
    struct sz_slice name = sz_audit_field_name(field);
    if (query->value[field].p != NULL)
        return wrong(why, "is given twice", name);
    if (field == SZ_AUDIT_BY_DECISION && !sz_eq(value, SZ_S("allow")) && !sz_eq(value, SZ_S("deny")))
        return wrong(why, "is allow or deny", name);
    query->value[field] = escape(query, pseudonym(query, field, value), bound_of(field));
    query->needle[field] =
        sz_pool_printf(&query->arena.pool, ",\"%.*s\":\"%.*s\"", SZ_FMT(name), SZ_FMT(query->value[field]));
    return 0;
}

static int set_time(struct sz_audit_query *query, struct sz_slice name, struct sz_slice value, int64_t *out,
                    int64_t unset, struct sz_text *why)
{
    if (*out != unset)
        return wrong(why, "is given twice", name);
    if (!sz_audit_time_parse(value, out))
        return wrong(why, "is a time such as 2026-11-30T23:00:00Z", name);
    query->timed = true;
    return 0;
}

static int set_cursor(struct sz_audit_query *query, struct sz_slice value, struct sz_text *why)
{
    uint8_t bytes[CURSOR_BYTES];
    size_t n = 0;
    if (query->has_cursor)
        return wrong(why, "is given twice", SZ_S("cursor"));
    if (value.n != SZ_AUDIT_CURSOR || sz_b64url_decode(value, bytes, &n) != 0 || n != CURSOR_BYTES || bytes[0] != 1 ||
        bytes[1] > 1)
        return wrong(why, "is no cursor of this journal", SZ_S("cursor"));
    query->has_cursor = true;
    for (int i = 0; i < 8; i++) {
        query->from = query->from << 8 | bytes[2 + i];
        query->told = query->told << 8 | bytes[10 + i];
    }
    return 0;
}

static int set_limit(struct sz_audit_query *query, struct sz_slice value, struct sz_text *why)
{
    uint64_t n = 0;
    if (query->limit != 0)
        return wrong(why, "is given twice", SZ_S("limit"));
    if (sz_parse_u64(value, SZ_AUDIT_LIMIT_MAX, &n) != 0 || n == 0)
        return wrong(why, "is a number from 1 to 1000", SZ_S("limit"));
    query->limit = (uint32_t)n;
    return 0;
}

static int set_word(struct sz_slice name, struct sz_slice value, const char *no, const char *yes, bool *out,
                    struct sz_text *why)
{
    *out = sz_eq(value, sz_cstr(yes));
    if (*out || sz_eq(value, sz_cstr(no)))
        return 0;
    sz_text_set(why, "'%.*s' is %s or %s", SZ_FMT(name), no, yes);
    return -EINVAL;
}

int sz_audit_query_set(struct sz_audit_query *query, struct sz_slice name, struct sz_slice value, struct sz_text *why)
{
    if (value.n > VALUE_MAX || !sz_utf8_valid(value))
        return wrong(why, "has a value that is too long or not UTF-8", name);
    for (enum sz_audit_field f = 0; f < SZ_AUDIT_FIELDS; f++) {
        if (sz_eq(name, sz_audit_field_name(f)))
            return set_field(query, f, value, why);
    }
    if (sz_eq(name, SZ_S("since")))
        return set_time(query, name, value, &query->since, INT64_MIN, why);
    if (sz_eq(name, SZ_S("until")))
        return set_time(query, name, value, &query->until, INT64_MAX, why);
    if (sz_eq(name, SZ_S("limit")))
        return set_limit(query, value, why);
    if (sz_eq(name, SZ_S("cursor")))
        return set_cursor(query, value, why);
    if (sz_eq(name, SZ_S("order")))
        return set_word(name, value, "desc", "asc", &query->ascending, why);
    if (sz_eq(name, SZ_S("format")))
        return set_word(name, value, "jsonl", "csv", &query->csv, why);
    if (!sz_eq(name, SZ_S("q")))
        return wrong(why, "is no parameter of a search", name);
    if (value.n == 0 || query->text.p != NULL)
        return wrong(why, value.n == 0 ? "is empty" : "is given twice", name);
    query->text = escape(query, value, 6 * (size_t)VALUE_MAX);
    return 0;
}

/* ---- a query string ------------------------------------------------------------------------------------------------
 */

static bool decode(struct sz_pool *pool, struct sz_slice in, struct sz_slice *out)
{
    char *text = sz_pool_alloc(pool, in.n + 1);
    size_t n = 0;
    for (size_t i = 0; i < in.n; i++) {
        if (in.p[i] != '%') {
            text[n++] = in.p[i] == '+' ? ' ' : in.p[i];
            continue;
        }
        int high = i + 2 < in.n ? sz_hex_digit(in.p[i + 1]) : -1;
        int low = i + 2 < in.n ? sz_hex_digit(in.p[i + 2]) : -1;
        if (high < 0 || low < 0)
            return false;
        text[n++] = (char)(high << 4 | low);
        i += 2;
    }
    *out = sz_slice(text, n);
    return true;
}

int sz_audit_query_parse(struct sz_audit_query *query, struct sz_slice string, struct sz_text *why)
{
    struct sz_slice rest = string, pair, name, value;
    int rc = 0;
    while (string.n > 0 && rc == 0 && sz_split(&rest, '&', &pair)) {
        ptrdiff_t equals = sz_find_byte(pair, '=');
        if (equals <= 0)
            return wrong(why, "is no parameter with a value", pair);
        if (!decode(&query->arena.pool, sz_sub(pair, 0, (size_t)equals), &name) ||
            !decode(&query->arena.pool, sz_from(pair, (size_t)equals + 1), &value))
            return wrong(why, "is not percent-encoded as it should be", sz_sub(pair, 0, 64));
        rc = sz_audit_query_set(query, name, value, why);
    }
    return rc != 0 ? rc : sz_audit_query_finish(query, why);
}

/* What makes two questions the same one, but for limit, format and cursor. */
static uint64_t identity(const struct sz_audit_query *query)
{
    struct sz_buf bytes = {0};
    for (enum sz_audit_field f = 0; f < SZ_AUDIT_FIELDS; f++)
        sz_key_field(&bytes, (uint8_t)(query->value[f].p != NULL ? f + 1 : 0), query->value[f]);
    sz_key_field(&bytes, 100, query->text);
    sz_key_field(&bytes, 101, sz_slice(&query->since, sizeof(query->since)));
    sz_key_field(&bytes, 102, sz_slice(&query->until, sizeof(query->until)));
    sz_key_field(&bytes, 103, query->ascending ? SZ_S("asc") : SZ_S("desc"));
    uint64_t h = sz_hash64(&cursor_key, sz_buf_slice(&bytes));
    sz_buf_fini(&bytes);
    return h;
}

int sz_audit_query_finish(struct sz_audit_query *query, struct sz_text *why)
{
    if (!query->has_cursor || query->told == identity(query))
        return 0;
    return wrong(why, "belongs to another question: the same filters and order go with it", SZ_S("cursor"));
}

void sz_audit_query_cursor(const struct sz_audit_query *query, uint64_t seq, char out[SZ_AUDIT_CURSOR])
{
    uint64_t told = identity(query);
    uint8_t bytes[CURSOR_BYTES] = {1, query->ascending};
    for (int i = 0; i < 8; i++) {
        bytes[2 + i] = (uint8_t)(seq >> (56 - 8 * i));
        bytes[10 + i] = (uint8_t)(told >> (56 - 8 * i));
    }
    sz_b64url_encode(bytes, sizeof(bytes), out);
}

/* ---- looking
 * ----------------------------------------------------------------------------------------------------------- */

bool sz_audit_query_matches(const struct sz_audit_query *query, struct sz_slice line)
{
    if (line.n <= SZ_AUDIT_TAIL)
        return false;
    struct sz_slice body = sz_sub(line, 0, line.n - SZ_AUDIT_TAIL), time;
    for (unsigned f = 0; f < SZ_AUDIT_FIELDS; f++) {
        if (query->needle[f].p != NULL && memmem(body.p, body.n, query->needle[f].p, query->needle[f].n) == NULL)
            return false;
    }
    if (query->text.p != NULL && memmem(body.p, body.n, query->text.p, query->text.n) == NULL)
        return false;
    uint64_t seq;
    int64_t us;
    return !query->timed || (sz_audit_line_head(line, &seq, &time) && sz_audit_time_parse(time, &us) &&
                             us >= query->since && us < query->until);
}

bool sz_audit_query_may_match(const struct sz_audit_query *query, const struct sz_audit_index *index)
{
    int64_t oldest, newest;
    for (unsigned f = 0; f < SZ_AUDIT_FIELDS; f++) {
        if (query->value[f].p != NULL && !sz_audit_index_may_have(index, (enum sz_audit_field)f, query->value[f]))
            return false;
    }
    return !query->timed ||
           (sz_audit_index_times(index, &oldest, &newest) && newest >= query->since && oldest < query->until);
}

/*
 * traceparent and tracestate stay in the client's headers when exactly one well-formed traceparent
 * came; otherwise both are dropped (plan.c strips neither, so this file does) and a new trace starts, not sampled.
 */
#include "pipeline/trace.h"

static bool is_hex_run(struct sz_slice s, bool *all_zero)
{
    *all_zero = true;
    for (size_t i = 0; i < s.n; i++) {
        char c = s.p[i];
        if (!((c >= '0' && c <= '9') || (c >= 'a' && c <= 'f')))
            return false;
        *all_zero &= c == '0';
    }
    return true;
}

/* version "-" trace-id "-" parent-id "-" flags; version ff is invalid, later ones may carry more fields. */
static bool is_traceparent(struct sz_slice s)
{
    bool zero;
    if (s.n < 55 || s.p[2] != '-' || s.p[35] != '-' || s.p[52] != '-')
        return false;
    bool version0 = s.p[0] == '0' && s.p[1] == '0';
    if (!is_hex_run(sz_sub(s, 0, 2), &zero) || (s.p[0] == 'f' && s.p[1] == 'f') || (version0 && s.n != 55) ||
        (s.n > 55 && s.p[55] != '-'))
        return false;
    if (!is_hex_run(sz_sub(s, 3, 32), &zero) || zero)
        return false;
    if (!is_hex_run(sz_sub(s, 36, 16), &zero) || zero)
        return false;
    return is_hex_run(sz_sub(s, 53, 2), &zero);
}

struct sz_slice sz_trace_id(const struct sz_txn *txn)
{
    unsigned count;
    struct sz_slice given = sz_headers_get(&txn->req.headers, SZ_S("traceparent"), &count);
    return count == 1 && is_traceparent(given) ? sz_sub(given, 3, 32) : SZ_NONE;
}

static void drop(struct sz_headers *headers, struct sz_slice name)
{
    size_t kept = 0;
    for (size_t i = 0; i < headers->n; i++) {
        if (!sz_eq(headers->v[i].name, name))
            headers->v[kept++] = headers->v[i];
    }
    headers->n = kept;
}

void sz_trace_forward(struct sz_txn *txn, struct sz_headers *out)
{
    if (sz_trace_id(txn).p != NULL)
        return;
    drop(out, SZ_S("traceparent"));
    drop(out, SZ_S("tracestate"));
    /* Unpredictability is not needed, uniqueness is: the worker's random seed and its request number. */
    const struct sz_worker *worker = txn->worker;
    uint8_t id[24];
    memcpy(id, worker->id_seed, 8);
    for (int i = 0; i < 8; i++) {
        id[8 + i] = (uint8_t)(worker->request_seq >> (56 - 8 * i));
        id[16 + i] = (uint8_t)(id[i] ^ id[8 + i] ^ 0x5a);
    }
    id[16] |= 1; /* an all-zero parent id is invalid */
    char hex[48], *text = sz_pool_alloc(txn->pool, 55);
    sz_hex_encode(id, sizeof(id), hex);
    memcpy(text, "00-", 3);
    memcpy(text + 3, hex, 32);
    text[35] = '-';
    memcpy(text + 36, hex + 32, 16);
    memcpy(text + 52, "-00", 3);
    sz_headers_add(out, txn->pool, SZ_S("traceparent"), sz_slice(text, 55));
}

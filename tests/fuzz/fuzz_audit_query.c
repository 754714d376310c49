/* The query string of GET /audit: whatever comes is refused with a reason, or is a question that a cursor can go on
 * with. */
#include <stdio.h>

#include "obs/audit/query.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct sz_slice line =
        SZ_S("{\"v\":1,\"seq\":7,\"time\":\"2026-11-30T23:00:00.000000000Z\",\"event_id\":\"x\",\"kind\":\"decision\","
             "\"decision\":"
             "\"deny\",\"subject\":\"alice\",\"prev\":"
             "\"0000000000000000000000000000000000000000000000000000000000000000\",\"hash\":"
             "\"0000000000000000000000000000000000000000000000000000000000000000\"}");
    struct sz_audit_query query, again;
    struct sz_text why = {""};
    char cursor[SZ_AUDIT_CURSOR], text[64];
    sz_audit_query_init(&query);
    if (sz_audit_query_parse(&query, sz_slice(data, size), &why) != 0) {
        SZ_ASSERT(why.s[0] != '\0');
    } else {
        (void)sz_audit_query_matches(&query, line);
        sz_audit_query_cursor(&query, 42, cursor);
        /* The same question with its cursor is accepted. */
        sz_audit_query_init(&again);
        if (!query.has_cursor && size > 0 && size < 2000) {
            struct sz_buf with = {0};
            sz_buf_add(&with, data, size);
            int n = snprintf(text, sizeof(text), "&cursor=%.*s", SZ_AUDIT_CURSOR, cursor);
            sz_buf_add(&with, text, (size_t)n);
            SZ_ASSERT(sz_audit_query_parse(&again, sz_buf_slice(&with), &why) == 0);
            SZ_ASSERT(again.has_cursor && again.from == 42);
            sz_buf_fini(&with);
        }
        sz_audit_query_fini(&again);
    }
    sz_audit_query_fini(&query);
    return 0;
}

/*
 * Threads that record while the writer commits, rotates and removes, and others read pages: for ThreadSanitizer.  Every
 * page is in order and every record is either there or counted.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "obs/audit/journal.h"
#include "obs/audit/page.h"

enum { THREADS = 3, EACH = 8000 };

static struct sz_audit *audit;
static atomic_bool over;

static void *record(void *arg)
{
    char id[32];
    for (int i = 0; i < EACH; i++) {
        struct sz_audit_event e = {.kind = SZ_AUDIT_DECISION,
                                   .allow = i % 3 != 0,
                                   .authenticated = i % 2 == 0,
                                   .reason = i % 3 != 0 ? SZ_REASON_allowed : SZ_REASON_invalid_token,
                                   .has_address = true};
        e.address.b[15] = (uint8_t)i;
        e.text[SZ_AUDIT_REQUEST_ID] = sz_slice(id, (size_t)snprintf(id, sizeof(id), "%d-%d", (int)(intptr_t)arg, i));
        (void)sz_audit_note(audit, &e);
        if (i % 500 == 0)
            sz_audit_flush(audit);
    }
    return NULL;
}

static void *read_pages(void *arg)
{
    while (!atomic_load(&over)) {
        struct sz_audit_view view;
        struct sz_audit_query query;
        struct sz_audit_scan scan;
        struct sz_slice line;
        struct sz_text why;
        uint64_t before = UINT64_MAX;
        sz_audit_query_init(&query);
        SZ_ASSERT(sz_audit_query_set(&query, SZ_S("decision"), SZ_S("deny"), &why) == 0);
        sz_audit_view_take(&view, &audit->shelf);
        sz_audit_scan_init(&scan, &view, &query);
        int rc;
        for (int n = 0; n < 200 && (rc = sz_audit_scan_next(&scan, 1 << 20, &line)) == 1; n++) {
            uint64_t seq;
            struct sz_slice time;
            SZ_ASSERT(sz_audit_line_head(line, &seq, &time) && seq < before);
            before = seq;
        }
        SZ_ASSERT(rc >= 0);
        sz_audit_scan_fini(&scan);
        sz_audit_view_release(&view);
        sz_audit_query_fini(&query);
    }
    return arg;
}

int main(void)
{
    char path[] = "/tmp/subzero-tsan-audit.XXXXXX", command[80];
    pthread_t threads[THREADS], readers[2];
    struct sz_text why;
    SZ_ASSERT(mkdtemp(path) != NULL);
    struct sz_conf_audit conf = {
        .path = sz_cstr(path),
        .durability = SZ_DURABILITY_INTERVAL,
        .sync_interval = SZ_MS(5),
        .rotate_size = 100000,
        .rotate_age = SZ_SEC(86400),
        .retain = {.files = 4, .size = UINT64_MAX / 4, .age = SZ_SEC(86400)},
        .denied = {.files = 4, .size = UINT64_MAX / 4, .age = SZ_SEC(86400)},
        .checkpoint_records = 1000,
        .checkpoint_interval = SZ_SEC(1),
    };
    sz_crypto_init();
    SZ_ASSERT(sz_audit_open(&conf, &audit, &why) == 0);
    for (intptr_t i = 0; i < THREADS; i++)
        SZ_ASSERT(pthread_create(&threads[i], NULL, record, (void *)i) == 0);
    for (int i = 0; i < 2; i++)
        SZ_ASSERT(pthread_create(&readers[i], NULL, read_pages, NULL) == 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    sz_audit_reopen(audit);
    sz_audit_flush(audit);
    atomic_store(&over, true);
    for (int i = 0; i < 2; i++)
        pthread_join(readers[i], NULL);
    sz_audit_close(&audit);
    snprintf(command, sizeof(command), "rm -rf %s", path);
    return system(command) == 0 ? 0 : 1;
}

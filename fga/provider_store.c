/*
 * What blocks: keys to and from the disk, and parsing them.  Jobs of the keeper see nothing of a provider but their
 * own part of it.
 */
#include <errno.h>
#include <stdlib.h>

#include "fga/provider_impl.h"
#include "subzero/log.h"

void sz_provider_free(struct sz_provider *p)
{
    if (p->parse.busy || p->save.busy)
        return; /* when the job is done */
    for (struct sz_provider **at = &p->all->leaving; *at != NULL; at = &(*at)->next) {
        if (*at == p) {
            *at = p->next;
            break;
        }
    }
    sz_buf_fini(&p->parse.document);
    sz_jwks_unref(&p->parse.keys);
    sz_buf_fini(&p->save.document);
    sz_buf_fini(&p->save.newer);
    free((void *)(uintptr_t)p->found.p);
    sz_key_slot_unref(&p->slot);
    sz_http_trust_unref(&p->trust);
    sz_arena_fini(&p->arena);
    free(p);
}

/* ---- parsing ----------------------------------------------------------------------------------------------------- */

static void parse(struct sz_provider *p)
{
    struct sz_jwks *keys = NULL;
    if (sz_jwks_parse(sz_buf_slice(&p->parse.document), p->id, SZ_JWKS_PUBLIC, NULL, &keys, &p->parse.why) != 0)
        return;
    if (keys->n == 0) {
        sz_text_set(&p->parse.why, "the key set holds no usable key");
        sz_jwks_unref(&keys);
    }
    p->parse.keys = keys;
}

static void work_parse(struct sz_keeper_job *job)
{
    parse(SZ_CONTAINER(job, struct sz_provider, parse.job));
}

static void done_parse(struct sz_keeper_job *job)
{
    struct sz_provider *p = SZ_CONTAINER(job, struct sz_provider, parse.job);
    p->parse.busy = false;
    if (p->retired)
        sz_provider_free(p);
    else
        sz_provider_parsed(p);
}

void sz_provider_parse(struct sz_provider *p)
{
    p->parse.busy = true;
    p->parse.from_disk = false;
    p->parse.job.work = work_parse;
    p->parse.job.done = done_parse;
    sz_keeper_post(p->all->keeper, &p->parse.job);
}

/* ---- reading what was saved -------------------------------------------------------------------------------------- */

static bool load(struct sz_provider *p)
{
    struct sz_key_record record = {.issuer = p->issuer, .source = p->source};
    struct sz_buf room = {0};
    p->parse.from_disk = true;
    p->parse.why.s[0] = '\0';
    int rc = sz_key_file_load(p->all->dir, &record, &room, &p->parse.why);
    if (rc == 0) {
        p->parse.document.n = 0;
        sz_buf_adds(&p->parse.document, record.document);
        p->parse.fetched = record.fetched;
        p->parse.lifetime = SZ_SEC(record.lifetime);
        parse(p);
    } else if (rc == -ENOENT) {
        p->parse.why.s[0] = '\0';
    }
    sz_buf_fini(&room);
    return p->parse.keys != NULL;
}

bool sz_provider_load(struct sz_provider *p)
{
    p->parse.from_disk = true;
    return p->all->dir >= 0 && load(p);
}

static void work_load(struct sz_keeper_job *job)
{
    (void)load(SZ_CONTAINER(job, struct sz_provider, parse.job));
}

void sz_provider_load_later(struct sz_provider *p)
{
    p->parse.busy = true;
    p->parse.from_disk = true;
    p->parse.job.work = work_load;
    p->parse.job.done = done_parse;
    sz_keeper_post(p->all->keeper, &p->parse.job);
}

/* ---- saving ------------------------------------------------------------------------------------------------------ */

static void work_save(struct sz_keeper_job *job)
{
    struct sz_provider *p = SZ_CONTAINER(job, struct sz_provider, save.job);
    p->save.record.document = sz_buf_slice(&p->save.document);
    p->save.rc = sz_key_file_save(p->all->dir, &p->save.record, &sz_key_file_system, &p->save.why);
}

static void done_save(struct sz_keeper_job *job);

static void write_now(struct sz_provider *p)
{
    struct sz_buf written = p->save.document;
    p->save.document = p->save.newer;
    p->save.newer = written;
    p->save.record = p->save.newer_record;
    p->save.again = false;
    p->save.busy = true;
    p->save.job.work = work_save;
    p->save.job.done = done_save;
    sz_keeper_post(p->all->keeper, &p->save.job);
}

static void done_save(struct sz_keeper_job *job)
{
    struct sz_provider *p = SZ_CONTAINER(job, struct sz_provider, save.job);
    p->save.busy = false;
    if (p->save.rc != 0)
        sz_log(SZ_LOG_WARN, "issuer", "issuer '%.*s': its keys were not saved: %s", SZ_FMT(p->name), p->save.why.s);
    if (p->retired)
        sz_provider_free(p);
    else if (p->save.again)
        write_now(p);
}

void sz_provider_save(struct sz_provider *p)
{
    if (p->all->dir < 0)
        return;
    p->save.newer.n = 0;
    sz_buf_adds(&p->save.newer, sz_buf_slice(&p->parse.document));
    p->save.newer_record = (struct sz_key_record){.issuer = p->issuer,
                                                  .source = p->source,
                                                  .fetched = p->parse.fetched,
                                                  .lifetime = p->parse.lifetime.us / 1000000};
    p->save.again = true;
    if (!p->save.busy)
        write_now(p);
}

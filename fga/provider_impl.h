/*
 * The inside of providers, shared by fga/provider*.c.
 *
 *   provider.c        life: which providers there are, adopting and retiring them, health
 *   provider_fetch.c  one fetch from its start to its outcome, and when the next is due
 *   provider_store.c  keys to and from the disk, parsing: what the keeper's thread does
 *   provider_meta.c   metadata and freshness: calculators
 *
 *        timer, token ─▶ metadata ─▶ JWK Set ─▶ parsed on the keeper ─┬▶ usable: swapped in, saved
 *                                                                     └▶ not: what was there stays, again soon
 */
#ifndef SZ_FGA_PROVIDER_IMPL_H
#define SZ_FGA_PROVIDER_IMPL_H

#include "fga/issuer.h"
#include "fga/keeper.h"
#include "fga/key_file.h"
#include "subzero/metrics.h"

enum sz_provider_step {
    SZ_PROVIDER_REST,
    SZ_PROVIDER_METADATA, /* OpenID Connect Discovery, or the configured url */
    SZ_PROVIDER_METADATA_OAUTH,
    SZ_PROVIDER_JWKS,
    SZ_PROVIDER_PARSE,
};
enum sz_provider_result { SZ_PROVIDER_OK, SZ_PROVIDER_UNAVAILABLE, SZ_PROVIDER_UNUSABLE, SZ_PROVIDER_RESULTS };

struct sz_provider {
    struct sz_providers *all;
    struct sz_provider *next;
    struct sz_key_slot *slot; /* never NULL */
    struct sz_http_trust *trust;
    /* settings: copies, since configurations come and go */
    struct sz_arena arena;
    uint64_t settings;
    uint16_t id;
    struct sz_slice name, issuer, jwks_uri, metadata; /* metadata: SZ_NONE: the well-known places */
    struct sz_slice source;                           /* what the file on disk is bound to */
    bool insecure_http;
    struct sz_span max_stale, cooldown;
    bool named, retired;

    /* a fetch */
    enum sz_provider_step step;
    struct sz_http_call call;
    struct sz_slice found; /* jwks_uri as the metadata says; heap */
    struct sz_mono found_at;
    struct sz_keys_op *ops;
    struct {
        struct sz_keeper_job job;
        bool busy, from_disk;
        struct sz_buf document;
        struct sz_jwks *keys; /* result; NULL: none */
        int64_t fetched;      /* unix seconds */
        struct sz_span lifetime;
        struct sz_text why;
    } parse;
    struct {
        struct sz_keeper_job job;
        bool busy, again;
        struct sz_buf document, newer; /* being written; came meanwhile, with `again` */
        struct sz_key_record record, newer_record;
        int rc;
        struct sz_text why;
    } save;

    /* outcome */
    bool has_keys;
    struct sz_mono fetched, due; /* due: the next fetch */
    struct sz_timer timer;
    unsigned failures; /* in a row */
    struct sz_text why;
    struct sz_series refreshed[SZ_PROVIDER_RESULTS];
};

struct sz_providers {
    struct sz_loop *loop;
    struct sz_http *http;
    struct sz_keeper *keeper;
    int dir; /* -1: nothing is kept */
    struct sz_provider *first;
    struct sz_provider *leaving; /* retired, their jobs not done yet */
};

/* ---- provider_fetch.c -------------------------------------------------------------------------------------------- */

void sz_provider_start(struct sz_provider *p); /* now, unless one is under way */
void sz_provider_plan(struct sz_provider *p);  /* arms the timer */
void sz_provider_stop(struct sz_provider *p);  /* whoever waits is told -ECANCELED */
/* The keeper has parsed p->parse.document. */
void sz_provider_parsed(struct sz_provider *p);

/* ---- provider_store.c -------------------------------------------------------------------------------------------- */

void sz_provider_parse(struct sz_provider *p); /* p->parse filled in: then sz_provider_parsed */
void sz_provider_save(struct sz_provider *p);  /* p->parse's document has become the current one */
/* Reads what was saved into p->parse and parses it, here and now.  False: nothing usable; said in the log. */
bool sz_provider_load(struct sz_provider *p);
void sz_provider_load_later(struct sz_provider *p); /* the same by the keeper, then sz_provider_parsed */
void sz_provider_free(struct sz_provider *p);

/* ---- provider_meta.c --------------------------------------------------------------------------------------------- */

/* Where an issuer's metadata is: OpenID Connect Discovery 4, RFC 8414 3. */
struct sz_slice sz_metadata_openid(struct sz_slice issuer, struct sz_pool *pool);
struct sz_slice sz_metadata_oauth(struct sz_slice issuer, struct sz_pool *pool);
/* jwks_uri of a metadata document (heap) when it is the issuer's own; -EINVAL: *why. */
int sz_metadata_read(struct sz_slice document, struct sz_slice issuer, bool insecure_http, struct sz_slice *jwks_uri,
                     struct sz_text *why) SZ_MUST_CHECK;
/* How long an answer stays fresh by its fields (RFC 9111 4.2, 5.2.2), within least and most. */
struct sz_span sz_freshness(const struct sz_http_answer *answer, struct sz_wall now, struct sz_span least,
                            struct sz_span most);
/* How long to wait after so many failures in a row: 1, 2, 4 ... 30 s, each a little off. */
struct sz_span sz_provider_backoff(unsigned failures, uint64_t random);

#endif

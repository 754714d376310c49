/*
 * Who is followed.  A store that the next configuration names as well goes on as it is: its copy survives a reload,
 * with the credentials of the new one.
 */
#include "fga/follow.h"

#include <stdlib.h>

#include "subzero/conf.h"

/* ---- what is shared ---------------------------------------------------------------------------------------------- */

void sz_fga_news_unref(struct sz_fga_news **newsp)
{
    struct sz_fga_news *news = *newsp;
    *newsp = NULL;
    if (news == NULL || atomic_fetch_sub_explicit(&news->refs, 1, memory_order_acq_rel) > 1)
        return;
    struct sz_fga_copy *copy = atomic_load(&news->copy);
    sz_fga_copy_free(&copy);
    free(news);
}

static struct sz_fga_news *ref(struct sz_fga_news *news)
{
    atomic_fetch_add_explicit(&news->refs, 1, memory_order_relaxed);
    return news;
}

/* ---- life -------------------------------------------------------------------------------------------------------- */

struct sz_followers *sz_followers_new(struct sz_loop *loop, struct sz_http *http)
{
    struct sz_followers *all = sz_xcalloc(1, sizeof(*all));
    all->loop = loop;
    all->http = http;
    return all;
}

static void end(struct sz_follower *f)
{
    sz_follower_stop(f);
    sz_fga_client_unref(&f->client);
    sz_fga_news_unref(&f->news);
    sz_buf_fini(&f->token);
    free(f);
}

void sz_followers_free(struct sz_followers **allp)
{
    struct sz_followers *all = *allp;
    *allp = NULL;
    if (all == NULL)
        return;
    while (all->first != NULL) {
        struct sz_follower *f = all->first;
        all->first = f->next;
        end(f);
    }
    sz_fga_loads_join(all);
    free(all);
}

struct sz_fga_news *sz_followers_take(struct sz_followers *all, struct sz_fga_client *client, struct sz_span poll,
                                      bool copies)
{
    struct sz_follower *f = all->first;
    while (f != NULL && !(f->settings == client->settings && f->copies == copies))
        f = f->next;
    if (f == NULL) {
        f = sz_xcalloc(1, sizeof(*f));
        f->all = all;
        f->next = all->first;
        all->first = f;
        f->settings = client->settings;
        f->copies = copies;
        f->news = sz_xcalloc(1, sizeof(*f->news));
        f->news->refs = 1;
        f->client = sz_fga_client_ref(client);
        f->poll = poll;
        sz_follower_begin(f);
    } else {
        sz_fga_client_unref(&f->client); /* what is under way has its own reference */
        f->client = sz_fga_client_ref(client);
        f->poll = poll;
    }
    f->named = true;
    return ref(f->news);
}

void sz_followers_adopt(struct sz_followers *all, struct sz_authz *source)
{
    for (struct sz_follower *f = all->first; f != NULL; f = f->next)
        f->named = false;
    if (source != NULL && source->follow != NULL)
        source->follow(source, all);
    for (struct sz_follower **at = &all->first; *at != NULL;) {
        struct sz_follower *f = *at;
        if (f->named) {
            at = &f->next;
            continue;
        }
        *at = f->next;
        end(f);
    }
}

/* ---- health ------------------------------------------------------------------------------------------------------ */

static const char *status(const struct sz_follower *f)
{
    bool heard = atomic_load(&f->news->heard) != 0;
    if (f->failures > 0)
        return heard ? "behind" : "down";
    return heard ? "ok" : "loading";
}

bool sz_followers_health(struct sz_followers *all, struct sz_buf *out)
{
    bool well = true;
    for (struct sz_follower *f = all->first; f != NULL; f = f->next) {
        int64_t heard = atomic_load(&f->news->heard);
        struct sz_fga_copy *copy = atomic_load(&f->news->copy);
        well = well && f->failures == 0;
        sz_buf_printf(out, ",\"fga\":{\"status\":\"%s\",\"mode\":\"%s\",\"applied\":%llu", status(f),
                      f->copies ? "replica" : "remote", (unsigned long long)f->applied);
        if (heard != 0)
            sz_buf_printf(out, ",\"lag_ms\":%lld", (long long)((sz_loop_now(all->loop).us - heard) / 1000));
        if (copy != NULL) {
            struct sz_engine_stats stats;
            sz_engine_stats(copy->engine, &stats);
            sz_buf_printf(out, ",\"tuples\":%zu,\"ignored\":%llu", stats.tuples, (unsigned long long)f->ignored);
        }
        if (f->failures > 0) {
            sz_buf_printf(out, ",\"failures\":%u,\"error\":", f->failures);
            sz_buf_json(out, sz_cstr(f->why.s));
        }
        sz_buf_printf(out, "}");
    }
    return well;
}

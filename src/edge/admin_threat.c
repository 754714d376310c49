/*
 * Looking at /threat: who is suspect and who is blocked.  Writes are in admin_threat_write.c.
 *
 *   GET    /threat                        scores from the monitor level on, and blocks: the first thousand of each
 *   GET    /threat/blocks?limit=&cursor=  all blocks, page by page
 */
#include <stdio.h>

#include "edge/admin_threat.h"
#include "edge/respond.h"
#include "edge/server.h"
#include "edge/thread.h"
#include "pipeline/threat.h"
#include "subzero/log.h"
#include "subzero/threat_store.h"

#define SHOWN_MAX 1000
#define PAGE      100

/* ---- looking ----------------------------------------------------------------------------------------------------- */

struct listing {
    struct sz_buf *out;
    unsigned n, most;
    struct sz_mono now;
    struct sz_wall wall;
};

void sz_threat_write_until(struct sz_buf *out, struct sz_wall until)
{
    char text[32];
    (void)sz_wall_format(until, 0, text);
    sz_buf_printf(out, "\"until\":\"%s\"", text);
}

static void write_suspect(void *arg, const struct sz_threat_key *key, const struct sz_threat_view *view)
{
    struct listing *l = arg;
    char address[SZ_ADDR_TEXT] = "";
    const char *comma = "";
    if (l->n++ >= SHOWN_MAX)
        return;
    if (key->kind == SZ_THREAT_ADDRESS)
        (void)sz_addr_format(key->addr, address);
    sz_buf_printf(l->out, "%s{\"kind\":\"%s\"", l->n > 1 ? "," : "",
                  key->kind == SZ_THREAT_ADDRESS ? "address"
                  : key->kind == SZ_THREAT_TOKEN ? "token"
                                                 : "subject");
    if (address[0] != '\0')
        sz_buf_printf(l->out, ",\"address\":\"%s\"", address);
    sz_buf_printf(l->out, ",\"score\":%.3f,\"level\":\"%s\",\"blocks\":%u,\"signals\":{", (double)view->score,
                  sz_threat_level_name(view->level), view->blocks);
    for (unsigned i = 0; i < SZ_SIGNALS; i++) {
        if (view->parts[i] <= 0)
            continue;
        sz_buf_printf(l->out, "%s\"%s\":%.3f", comma, sz_signal_row((enum sz_signal)i)->name, (double)view->parts[i]);
        comma = ",";
    }
    sz_buf_printf(l->out, "}");
    if (view->blocked_until.us != 0) {
        sz_buf_printf(l->out, ",");
        sz_threat_write_until(l->out, (struct sz_wall){l->wall.us + (view->blocked_until.us - l->now.us)});
    }
    sz_buf_printf(l->out, "}");
}

void sz_threat_write_whom(struct sz_buf *out, const struct sz_threat_record *r)
{
    char address[SZ_ADDR_TEXT];
    if (r->is_subject) {
        sz_buf_printf(out, "\"issuer\":");
        sz_buf_json(out, sz_cstr(r->issuer));
        sz_buf_printf(out, ",\"subject\":");
        sz_buf_json(out, sz_cstr(r->subject));
    } else {
        sz_buf_printf(out, "\"address\":\"%.*s\"", (int)sz_addr_format(r->addr, address), address);
    }
}

static bool write_block(void *arg, const struct sz_threat_record *r)
{
    struct listing *l = arg;
    if (l->n == l->most)
        return false;
    sz_buf_printf(l->out, "%s{\"id\":\"%016llx\",", l->n++ > 0 ? "," : "", (unsigned long long)r->id);
    sz_threat_write_whom(l->out, r);
    sz_buf_printf(l->out, ",\"by\":\"%s\",", r->by_score ? "score" : "hand");
    sz_threat_write_until(l->out, r->until);
    sz_buf_printf(l->out, ",\"reason\":");
    sz_buf_json(l->out, sz_cstr(r->reason));
    sz_buf_printf(l->out, "}");
    return true;
}

/* True: as it should be. */
static bool write_store(struct sz_buf *out, const struct sz_threat_store *store)
{
    struct sz_threat_store_look look;
    sz_threat_store_look(store, &look);
    const char *status = look.deaf ? "cut_off" : look.fault.s[0] != '\0' ? "degraded" : "ok";
    sz_buf_printf(out,
                  "\"status\":\"%s\",\"by_hand\":%zu,\"by_score\":%zu,\"most\":%u,\"shared\":%s,"
                  "\"unpublished\":%zu",
                  status, look.by_hand, look.by_score, SZ_THREAT_RECORDS, look.shared ? "true" : "false",
                  look.unpublished);
    if (look.fault.s[0] != '\0') {
        sz_buf_printf(out, ",\"error\":");
        sz_buf_json(out, sz_cstr(look.fault.s));
    }
    return strcmp(status, "ok") == 0;
}

bool sz_threat_health(const struct sz_server *server, struct sz_buf *out)
{
    sz_buf_printf(out, ",\"blocks\":{");
    bool good = write_store(out, server->threat_store);
    sz_buf_printf(out, "}");
    return good;
}

static void write_suspects(struct sz_admin_call *call, struct listing *l)
{
    const struct sz_conf_threat *conf = &call->server->current->conf->threat;
    struct sz_threat_policy policy = sz_threat_policy(conf);
    if (conf->mode == SZ_THREAT_OFF)
        return;
    for (enum sz_threat_kind kind = SZ_THREAT_ADDRESS; kind <= SZ_THREAT_SUBJECT; kind++) {
        if (kind != SZ_THREAT_NETWORK)
            sz_threat_each(call->server->gate.threat, kind, &policy, policy.monitor, l->now, write_suspect, l);
    }
}

static struct listing listing(struct sz_admin_call *call, struct sz_buf *out, unsigned most)
{
    const struct sz_loop *loop = call->server->service->loop;
    return (struct listing){out, 0, most, sz_loop_now(loop), sz_loop_wall(loop)};
}

void sz_admin_threat(struct sz_admin_call *call)
{
    static const char *const modes[] = {"off", "dry_run", "enforce"};
    const struct sz_conf_threat *conf = &call->server->current->conf->threat;
    struct sz_buf body = {0};
    struct listing l = listing(call, &body, SHOWN_MAX);
    struct sz_threat_stats stats;

    sz_threat_stats(call->server->gate.threat, &stats);
    sz_buf_printf(&body,
                  "{\"mode\":\"%s\",\"entries\":%llu,\"capacity\":%llu,\"bytes\":%llu,\"notes\":%llu,\"dropped\":%llu,"
                  "\"evicted\":%llu,\"store\":{",
                  modes[conf->mode], (unsigned long long)stats.entries, (unsigned long long)stats.capacity,
                  (unsigned long long)stats.bytes, (unsigned long long)stats.notes, (unsigned long long)stats.dropped,
                  (unsigned long long)stats.evicted);
    (void)write_store(&body, call->server->threat_store);
    sz_buf_printf(&body, "},\"suspects\":[");
    write_suspects(call, &l);
    sz_buf_printf(&body, "],\"more\":%u,\"blocks\":[", l.n > SHOWN_MAX ? l.n - SHOWN_MAX : 0);
    l.n = 0;
    size_t next = sz_threat_store_each(call->server->threat_store, 0, write_block, &l);
    sz_buf_printf(&body, "],\"more_blocks\":%s}\n", next == SIZE_MAX ? "false" : "true");
    sz_admin_send(call, 200, "application/json", sz_buf_slice(&body));
    sz_buf_fini(&body);
}

/* ---- all blocks, page by page ------------------------------------------------------------------------------------ */

/* limit=1..1000, cursor=what the page before said; nothing else, none twice. */
static bool read_page(struct sz_slice query, uint64_t *limit, uint64_t *cursor)
{
    struct sz_slice part;
    bool seen[2] = {false, false};
    while (query.n > 0 && sz_split(&query, '&', &part)) {
        bool is_limit = sz_starts_with(part, SZ_S("limit=")), is_cursor = sz_starts_with(part, SZ_S("cursor="));
        if ((!is_limit && !is_cursor) || seen[is_limit])
            return false;
        seen[is_limit] = true;
        if (sz_parse_u64(sz_from(part, is_limit ? 6 : 7), is_limit ? SHOWN_MAX : UINT32_MAX,
                         is_limit ? limit : cursor) != 0 ||
            *limit == 0)
            return false;
    }
    return true;
}

void sz_admin_threat_blocks(struct sz_admin_call *call)
{
    uint64_t limit = PAGE, cursor = 0;
    struct sz_buf body = {0};
    if (!read_page(call->query, &limit, &cursor)) {
        sz_respond_problem(call->req, 400, SZ_REASON_bad_request,
                           "'limit' is 1 to 1000, 'cursor' the 'next_cursor' of the page before");
        return;
    }
    struct listing l = listing(call, &body, (unsigned)limit);
    sz_buf_printf(&body, "{\"blocks\":[");
    size_t next = sz_threat_store_each(call->server->threat_store, (size_t)cursor, write_block, &l);
    if (next == SIZE_MAX)
        sz_buf_printf(&body, "],\"next_cursor\":null}\n");
    else
        sz_buf_printf(&body, "],\"next_cursor\":\"%zu\"}\n", next);
    sz_admin_send(call, 200, "application/json", sz_buf_slice(&body));
    sz_buf_fini(&body);
}

/*
 * Threat scores on a request's way: what a refusal says about the address it came from, what a good token says for it,
 * from how many networks one token comes, and who has to prove more or go.
 *
 * Never judged: a trusted proxy's own address (whoever is behind it would pay), and what the configuration allows.
 * Nothing that only claims to be somebody counts against that somebody: tokens and subjects are reached through
 * verified credentials alone.
 */
#include "pipeline/threat.h"
#include "pipeline/stages.h"
#include "subzero/log.h"
#include "subzero/prefixes.h"
#include "subzero/threat_store.h"

#define LISTED 0.35f /* what a risky list adds: so much earlier the levels begin */

struct sz_threat_policy sz_threat_policy(const struct sz_conf_threat *conf)
{
    return (struct sz_threat_policy){conf->monitor, conf->challenge, conf->block, conf->first, conf->longest};
}

static struct sz_threat_policy policy_of(const struct sz_txn *txn)
{
    struct sz_threat_policy policy = sz_threat_policy(&txn->snapshot->conf->threat);
    if (txn->risky) {
        policy.monitor -= LISTED;
        policy.challenge -= LISTED;
        policy.block -= LISTED;
    }
    return policy;
}

static bool enforced(const struct sz_txn *txn)
{
    return txn->snapshot->conf->threat.mode == SZ_THREAT_ENFORCE;
}

/* ---- counting ---------------------------------------------------------------------------------------------------- */

static void count(struct sz_txn *txn, enum sz_signal signal, enum sz_threat_level level)
{
    bool dry = !enforced(txn) && level > SZ_THREAT_MONITOR;
    unsigned action = dry ? SZ_THREAT_ACTION_DRY_RUN : (unsigned)level;
    _Atomic uint32_t *handle = &txn->worker->gate->threat_series[signal][action];
    uint32_t at = atomic_load_explicit(handle, memory_order_relaxed);
    if (at == 0) {
        const char *values[] = {sz_signal_row(signal)->name, dry ? "dry_run" : sz_threat_level_name(level)};
        at = sz_series(SZ_METRIC_threat_signals, values).at;
        atomic_store_explicit(handle, at, memory_order_relaxed);
    }
    sz_count(txn->worker->index, (struct sz_series){at}, 1);
}

static void tell_of_block(const struct sz_txn *txn, const struct sz_threat_key *key, const struct sz_threat_view *view,
                          struct sz_mono now)
{
    char address[SZ_ADDR_TEXT] = "a token";
    struct sz_text parts = {""};
    if (key->kind == SZ_THREAT_ADDRESS)
        (void)sz_addr_format(key->addr, address);
    for (unsigned i = 0; i < SZ_SIGNALS; i++) {
        if (view->parts[i] > 0)
            sz_text_add(&parts, " %s %.2f", sz_signal_row((enum sz_signal)i)->name, (double)view->parts[i]);
    }
    sz_log(SZ_LOG_WARN, "threat", "%s %s for %lld s:%s", address, enforced(txn) ? "is blocked" : "would be blocked",
           (long long)(sz_between(now, view->blocked_until).us / 1000000), parts.s);
}

/* A dry run blocks nobody, here and elsewhere; a token has no name that another instance would know it by. */
static void list_block(const struct sz_txn *txn, const struct sz_threat_key *key, const struct sz_threat_view *view,
                       struct sz_mono now)
{
    struct sz_threat_store *store = txn->worker->gate->threat_store;
    struct sz_wall until = sz_loop_wall(txn->worker->loop);
    until.us += sz_between(now, view->blocked_until).us;
    if (store != NULL && enforced(txn) && key->kind == SZ_THREAT_ADDRESS)
        sz_threat_store_found(store, key->addr, until);
}

/* Notes one thing and judges what it makes of the key. */
static enum sz_threat_level note(struct sz_txn *txn, struct sz_threat_key key, enum sz_signal signal, uint64_t amount)
{
    struct sz_threat *threat = txn->worker->gate->threat;
    struct sz_threat_policy policy = policy_of(txn);
    struct sz_mono now = sz_loop_now(txn->worker->loop);
    struct sz_threat_view view;
    sz_threat_note(threat, key, signal, amount, now);
    if (sz_threat_judge(threat, key, &policy, now, &view)) {
        tell_of_block(txn, &key, &view, now);
        list_block(txn, &key, &view, now);
    }
    count(txn, signal, view.level);
    return view.level;
}

/* ---- admit ------------------------------------------------------------------------------------------------------- */

/* A trusted proxy's own address, or one the configuration allows. */
static bool is_exempt(const struct sz_txn *txn)
{
    const struct sz_snapshot *s = txn->snapshot;
    uint8_t any;
    if (txn->from.peer_trusted && sz_cidrs_contain(&s->conf->trusted_proxies, txn->from.client))
        return true;
    return s->allowed_ranges != NULL && sz_prefixes_find(s->allowed_ranges, txn->from.client, &any);
}

enum sz_reason sz_threat_admit(struct sz_txn *txn)
{
    const struct sz_snapshot *s = txn->snapshot;
    const struct sz_threat *threat = txn->worker->gate->threat;
    uint8_t list = SZ_LIST_RISKY;
    txn->judged = s->conf->threat.mode != SZ_THREAT_OFF && !is_exempt(txn);
    if (!txn->judged)
        return SZ_REASON_allowed;
    txn->threat_key = sz_threat_address(threat, txn->from.client);
    txn->risky = s->listed_ranges != NULL && sz_prefixes_find(s->listed_ranges, txn->from.client, &list);
    if (txn->risky && list == SZ_LIST_DENY && enforced(txn))
        return SZ_REASON_ip_denied;
    struct sz_threat_policy policy = policy_of(txn);
    txn->threat_level = sz_threat_level(threat, txn->threat_key, &policy, sz_loop_now(txn->worker->loop));
    return txn->threat_level == SZ_THREAT_BLOCK && enforced(txn) ? SZ_REASON_threat_blocked : SZ_REASON_allowed;
}

/* ---- identified -------------------------------------------------------------------------------------------------- */

/* The token says that its user has proven more, or lately (RFC 9470 5). */
static bool stepped_up(const struct sz_txn *txn)
{
    const struct sz_conf_threat *conf = &txn->snapshot->conf->threat;
    struct sz_claim acr = sz_identity_claim(txn->identity, conf->acr_slot);
    struct sz_claim at = sz_identity_claim(txn->identity, conf->auth_time_slot);
    int64_t now = sz_wall_seconds(sz_loop_wall(txn->worker->loop));
    if (acr.type == SZ_CLAIM_STRING && sz_strings_have(&conf->acr_values, acr.text))
        return true;
    return conf->max_age.us > 0 && at.type == SZ_CLAIM_INTEGER && at.integer >= now - conf->max_age.us / 1000000;
}

/*
 * From how many networks one token comes.  Nearly every request is of a token and a network that were seen before: a
 * small table per thread of what was told lately keeps those out of the shared one.  The place is taken from the keyed
 * fingerprint, so nobody can choose it; the epoch makes every pair count anew twice per half-life.
 */
static bool told_lately(struct sz_txn *txn)
{
    struct sz_addr addr = txn->from.client;
    unsigned bytes = sz_addr_is_v4(addr) ? 15 : 6; /* of the /24, of the /48 */
    uint64_t net = 0, epoch = (uint64_t)(sz_loop_now(txn->worker->loop).us / 150000000);
    for (unsigned i = sz_addr_is_v4(addr) ? 12 : 0; i < bytes; i++)
        net = net << 8 | addr.b[i];
    uint64_t pair = (txn->fingerprint.h.w[0] ^ net ^ epoch << 48) * UINT64_C(0x9e3779b97f4a7c15);
    uint32_t *told = &txn->worker->told[pair >> 32 & (SZ_COUNT(txn->worker->told) - 1)];
    bool known = *told == (uint32_t)pair;
    *told = (uint32_t)pair;
    return known;
}

static enum sz_threat_level level_of_token(struct sz_txn *txn)
{
    struct sz_threat *threat = txn->worker->gate->threat;
    struct sz_threat_policy policy = policy_of(txn);
    struct sz_mono now = sz_loop_now(txn->worker->loop);
    if (!told_lately(txn))
        (void)note(txn, sz_threat_token(threat, txn->fingerprint.h), SZ_SIGNAL_replay,
                   sz_threat_network(threat, txn->from.client).hash);
    if (sz_threat_quiet(threat, now))
        return SZ_THREAT_ALLOW;
    enum sz_threat_level token = sz_threat_level(threat, sz_threat_token(threat, txn->fingerprint.h), &policy, now);
    struct sz_slice sub = sz_identity_text(txn->identity, txn->identity->subject);
    const struct sz_conf_issuer *issuer = sz_txn_issuer(txn);
    enum sz_threat_level subject =
        sub.p == NULL || issuer == NULL
            ? SZ_THREAT_ALLOW
            : sz_threat_level(threat, sz_threat_subject(threat, issuer->issuer, sub), &policy, now);
    return token > subject ? token : subject;
}

enum sz_reason sz_threat_identified(struct sz_txn *txn)
{
    if (txn->snapshot->conf->threat.mode == SZ_THREAT_OFF)
        return SZ_REASON_allowed;
    if (txn->judged && txn->token_layer == 3)
        sz_threat_good(txn->worker->gate->threat, txn->threat_key, txn->fingerprint.h.w[0],
                       sz_loop_now(txn->worker->loop));
    enum sz_threat_level level = level_of_token(txn);
    if (level < txn->threat_level)
        level = txn->threat_level;
    if (!enforced(txn))
        return SZ_REASON_allowed;
    if (level == SZ_THREAT_BLOCK)
        return SZ_REASON_threat_blocked;
    return level == SZ_THREAT_CHALLENGE && !stepped_up(txn) ? SZ_REASON_threat_challenge : SZ_REASON_allowed;
}

/* ---- what refusals say ------------------------------------------------------------------------------------------- */

/* Tools that name themselves; those that do not are found by what they do. */
static bool is_attack_tool(struct sz_slice agent)
{
    static const char *const tools[] = {"sqlmap",    "nikto",  "nmap",    "masscan", "zgrab",  "gobuster",
                                        "dirbuster", "ferox",  "wfuzz",   "ffuf",    "hydra/", "nuclei",
                                        "acunetix",  "nessus", "openvas", "arachni", "w3af",   "wpscan",
                                        "whatweb",   "jaeles", "commix",  "zmeu",    "havij",  "qualys"};
    char lower[256];
    size_t n = agent.n < sizeof(lower) ? agent.n : sizeof(lower);
    for (size_t i = 0; i < n; i++)
        lower[i] = agent.p[i] >= 'A' && agent.p[i] <= 'Z' ? (char)(agent.p[i] | 0x20) : agent.p[i];
    for (size_t i = 0; i < SZ_COUNT(tools); i++) {
        if (memmem(lower, n, tools[i], strlen(tools[i])) != NULL)
            return true;
    }
    return false;
}

/* "/wp-admin" of "/wp-admin/setup.php": a client whose release asks for /v2/orders/17 and /v2/orders/18 asks for one
 * thing. */
static uint64_t first_segment(const struct sz_txn *txn)
{
    struct sz_slice path = sz_from(txn->target.path, 1);
    ptrdiff_t slash = sz_find_byte(path, '/');
    return sz_threat_hash(txn->worker->gate->threat, slash < 0 ? path : sz_sub(path, 0, (size_t)slash));
}

static void note_token(struct sz_txn *txn, bool forged)
{
    const struct sz_threat *threat = txn->worker->gate->threat;
    (void)note(txn, txn->threat_key, SZ_SIGNAL_failed_auth, 1);
    if (forged)
        (void)note(txn, txn->threat_key, SZ_SIGNAL_bad_tokens, sz_threat_hash(threat, txn->token));
}

static void note_algorithm(struct sz_txn *txn)
{
    ptrdiff_t dot = sz_find_byte(txn->token, '.');
    struct sz_slice header = dot < 0 ? txn->token : sz_sub(txn->token, 0, (size_t)dot);
    note_token(txn, true);
    (void)note(txn, txn->threat_key, SZ_SIGNAL_algorithms, sz_threat_hash(txn->worker->gate->threat, header));
}

/* False: this refusal says nothing about who asked. */
static bool note_refusal(struct sz_txn *txn, enum sz_reason reason)
{
    switch ((int)reason) {
    case SZ_REASON_bad_request:
    case SZ_REASON_ambiguous_path:
    case SZ_REASON_headers_too_large:
        (void)note(txn, txn->threat_key, SZ_SIGNAL_malformed, 1);
        return true;
    case SZ_REASON_no_route:
        (void)note(txn, txn->threat_key, SZ_SIGNAL_scanning, first_segment(txn));
        return true;
    case SZ_REASON_invalid_token:
    case SZ_REASON_malformed_token:
    case SZ_REASON_wrong_issuer:
        note_token(txn, true);
        return true;
    case SZ_REASON_algorithm_not_allowed:
        note_algorithm(txn);
        return true;
    case SZ_REASON_expired_token:
    case SZ_REASON_revoked_token:
    case SZ_REASON_wrong_audience:
    case SZ_REASON_sender_constrained:
        note_token(txn, false);
        return true;
    case SZ_REASON_missing_token:
    case SZ_REASON_method_not_allowed:
        return true; /* by itself nothing; from an attack tool it is */
    default:
        return false;
    }
}

/* A request that never came to admit: its peer is all that is known. */
static void judge_peer(struct sz_txn *txn)
{
    txn->from =
        (struct sz_client_addr){.client = txn->req.peer,
                                .peer_trusted = sz_cidrs_contain(&txn->snapshot->conf->trusted_proxies, txn->req.peer)};
    (void)sz_threat_admit(txn);
}

void sz_threat_observe(struct sz_txn *txn, enum sz_reason reason)
{
    struct sz_threat *threat = txn->worker->gate->threat;
    if (txn->snapshot->conf->threat.mode == SZ_THREAT_OFF)
        return;
    if (txn->threat_key.hash == 0)
        judge_peer(txn);
    if (!txn->judged || !note_refusal(txn, reason))
        return;
    if (is_attack_tool(sz_headers_get(&txn->req.headers, SZ_S("user-agent"), NULL)))
        (void)note(txn, txn->threat_key, SZ_SIGNAL_automation, 1);
    else if (reason == SZ_REASON_missing_token || reason == SZ_REASON_method_not_allowed)
        return; /* nothing was noted: the network hears of nothing */
    sz_threat_note(threat, sz_threat_network(threat, txn->from.client), SZ_SIGNAL_neighbours, txn->threat_key.hash,
                   sz_loop_now(txn->worker->loop));
}

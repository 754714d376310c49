/*
 * What each stage had before it and what it answered, for a person.  Taken from the transaction as the stages left it:
 * nothing is judged a second time.
 */
#include <stdio.h>

#include "cli/cli.h"
#include "cli/explain.h"
#include "pipeline/limit.h"
#include "pipeline/stages.h"

static bool passed(const struct sz_txn *txn, enum sz_stage stage)
{
    return (txn->passed >> stage & 1) != 0;
}

/* A stage that refused is the first that did not pass; those behind it were not asked. */
static bool reached(const struct sz_txn *txn, enum sz_stage stage)
{
    for (unsigned i = SZ_STAGE_admit; i < stage; i++) {
        if (!passed(txn, (enum sz_stage)i))
            return false;
    }
    return true;
}

static void head(const char *name, struct sz_slice what)
{
    printf("\n%-10s %.*s\n", name, SZ_FMT(what));
}

#define SAY(...) printf("           " __VA_ARGS__)

static void verdict(const struct sz_txn *txn, enum sz_stage stage)
{
    const struct sz_reason_row *row = sz_reason_row(txn->reason);
    if (passed(txn, stage))
        SAY("-> no objection\n");
    else
        SAY("-> refused: %u %s: %s%s%s\n", row->status, row->name, row->title, txn->detail != NULL ? "; " : "",
            txn->detail != NULL ? txn->detail : "");
}

/* ---- stages -------------------------------------------------------------------------------------------------------
 */

static void print_admit(const struct sz_txn *txn)
{
    char address[SZ_ADDR_TEXT];
    const struct sz_conf_route *route = txn->match.route;
    sz_addr_format(txn->from.client, address);
    head("admit", SZ_S("which target, which route, who is the client"));
    SAY("client     %s%s\n", address, txn->from.peer_trusted ? ", by a trusted proxy" : "");
    if (txn->target.path.p != NULL)
        SAY("path       %.*s%s\n", SZ_FMT(txn->target.path), txn->target.was_canonical ? "" : " (canonical form)");
    if (route != NULL)
        SAY("route      %.*s: %.*s%s%.*s%s\n", SZ_FMT(route->id), SZ_FMT(route->match.host),
            route->match.host.p != NULL ? " " : "", SZ_FMT(route->match.path), route->is_public ? ", public" : "");
    if (txn->preflight)
        SAY("-> a CORS preflight, answered here\n");
    else
        verdict(txn, SZ_STAGE_admit);
}

static const char *kind_name(enum sz_credential_kind kind)
{
    switch (kind) {
    case SZ_CREDENTIAL_NONE:
        return "none";
    case SZ_CREDENTIAL_JWT:
        return "a JWT";
    case SZ_CREDENTIAL_OPAQUE:
        return "an opaque token";
    }
    return "";
}

static void print_scopes(const struct sz_txn *txn)
{
    const struct sz_strings *words = &txn->snapshot->conf->vocabulary.scopes;
    SAY("scopes    ");
    for (unsigned bit = 0; bit < words->n; bit++) {
        if (sz_identity_has_scope(txn->identity, bit))
            printf(" %.*s", SZ_FMT(words->v[bit]));
    }
    printf(" (of those that the configuration knows)\n");
}

static void print_text(const char *name, const struct sz_identity *id, struct sz_text_ref ref)
{
    struct sz_slice text = sz_identity_text(id, ref);
    if (text.p != NULL)
        SAY("%-10s %.*s\n", name, SZ_FMT(text));
}

static void print_identify(const struct sz_txn *txn)
{
    const struct sz_identity *id = txn->identity;
    const struct sz_conf_issuer *issuer = sz_txn_issuer(txn);
    head("identify", SZ_S("who does the token say this is, and is that true"));
    SAY("credential %s\n", kind_name(txn->credential));
    if (issuer != NULL)
        SAY("issuer     %.*s\n", SZ_FMT(issuer->name));
    if (id != NULL) {
        print_text("subject", id, id->subject);
        print_text("client", id, id->client);
        print_text("tenant", id, id->tenant);
        print_scopes(txn);
    }
    verdict(txn, SZ_STAGE_identify);
    if (id == NULL && txn->credential == SZ_CREDENTIAL_JWT)
        SAY("   ('subzero token inspect -c FILE' says which claim)\n");
}

static void print_limit(const struct sz_txn *txn)
{
    const struct sz_conf_route *route = txn->match.route;
    head("limit", SZ_S("has this tenant anything left (counted afresh here, without Redis)"));
    for (size_t i = 0; i < route->limits_n; i++)
        SAY("limit      %.*s\n", SZ_FMT(route->limits[i].policy->name));
    verdict(txn, SZ_STAGE_limit);
}

static void print_names(const char *name, struct sz_strings list)
{
    SAY("%-10s", name);
    for (size_t i = 0; i < list.n; i++)
        printf(" %.*s", SZ_FMT(list.v[i]));
    printf("\n");
}

static void print_rules(const struct sz_conf_route *route)
{
    if (route->scope_names.n > 0)
        print_names(route->has_any_scope ? "scopes or" : "scopes", route->scope_names);
    for (size_t i = 0; i < route->claims_n; i++) {
        SAY("claim      %.*s is one of", SZ_FMT(route->claims[i].name));
        for (size_t k = 0; k < route->claims[i].values.n; k++)
            printf(" %.*s", SZ_FMT(route->claims[i].values.v[k]));
        printf("\n");
    }
}

static const char *outcome_name(enum sz_authz_outcome outcome)
{
    switch (outcome) {
    case SZ_AUTHZ_ALLOWED:
        return "allowed";
    case SZ_AUTHZ_DENIED:
        return "denied";
    case SZ_AUTHZ_ERROR:
        return "the question cannot be decided";
    case SZ_AUTHZ_UNAVAILABLE:
        return "could not ask";
    }
    return "";
}

static void print_why(struct sz_slice why)
{
    struct sz_slice line;
    while (sz_split(&why, '\n', &line)) {
        if (line.n > 0)
            SAY("             %.*s\n", SZ_FMT(line));
    }
}

static void print_check(const struct sz_explain_check *c)
{
    const struct sz_check *asked = &c->asked;
    SAY("check      is %.*s %.*s of %.*s?%s\n", SZ_FMT(asked->key.user), SZ_FMT(asked->key.relation),
        SZ_FMT(asked->key.object), asked->consistency == SZ_HIGHER_CONSISTENCY ? " (higher_consistency)" : "");
    if (asked->context.p != NULL)
        SAY("  context    %.*s\n", SZ_FMT(asked->context));
    for (size_t i = 0; i < asked->contextual_n; i++)
        SAY("  tuple      %.*s %.*s %.*s\n", SZ_FMT(asked->contextual[i].user), SZ_FMT(asked->contextual[i].relation),
            SZ_FMT(asked->contextual[i].object));
    if (!c->answered)
        return;
    SAY("  answer     %s", outcome_name(c->answer.outcome));
    if (c->answer.outcome == SZ_AUTHZ_ERROR)
        printf(", %d", c->answer.code);
    printf("%s%s\n", c->answer.message.s[0] != '\0' ? ": " : "", c->answer.message.s);
    print_why(c->why);
}

static void print_authorize(const struct sz_explain *x)
{
    const struct sz_txn *txn = &x->txn;
    const struct sz_conf_route *route = txn->match.route;
    head("authorize", SZ_S("do scopes, claims and relations suffice for this route"));
    print_rules(route);
    if (route->authorize != SZ_AUTHORIZE_NONE && route->checks_n > 1)
        SAY("checks     %s of %zu\n", route->authorize == SZ_AUTHORIZE_ANY ? "any" : "all", route->checks_n);
    for (size_t i = 0; i < x->checks_n; i++)
        print_check(&x->checks[i]);
    if (x->checks_n == 0 && route->checks_n > 0 && !passed(txn, SZ_STAGE_authorize))
        SAY("(no relation was asked)\n");
    verdict(txn, SZ_STAGE_authorize);
}

static int print_decision(const struct sz_txn *txn)
{
    const struct sz_decision *d = &txn->decision;
    const struct sz_reason_row *row = sz_reason_row(d->reason);
    head("decide", d->allow ? SZ_S("ALLOW") : SZ_S("DENY"));
    if (!d->allow)
        SAY("%u %s: %s\n", txn->answer.status, row->name, row->title);
    else if (txn->proxy)
        SAY("upstream   %.*s\n", SZ_FMT(txn->forward.upstream->name));
    else
        SAY("answered with %u\n", txn->answer.status);
    return d->allow ? SZ_EXIT_OK : row->status == 503 ? SZ_EXIT_UNAVAILABLE : SZ_EXIT_NO;
}

int sz_explain_print(struct sz_explain *x)
{
    const struct sz_txn *txn = &x->txn;
    printf("%s %.*s at %.*s\n", x->method, SZ_FMT(txn->target.path), SZ_FMT(x->head.authority));
    print_admit(txn);
    if (!txn->preflight) {
        if (reached(txn, SZ_STAGE_identify))
            print_identify(txn);
        if (reached(txn, SZ_STAGE_limit))
            print_limit(txn);
        if (reached(txn, SZ_STAGE_authorize))
            print_authorize(x);
    }
    return print_decision(txn);
}

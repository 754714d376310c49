/*
 * From what was written to what is used: each build_*.c turns one section of the raw
 * configuration into its part of struct sz_conf, and reports what cannot be right about it.
 */
#ifndef SZ_CONF_BUILD_H
#define SZ_CONF_BUILD_H

#include "conf/loader.h"
#include "conf/node.h"
#include "conf/pattern.h"
#include "conf/raw.h"
#include "subzero/conf.h"

/* The vocabulary while it grows: scopes and claim names in the order in which the file mentions them. */
struct sz_words {
    struct sz_slice *v;
    size_t n, cap, max;
};

struct sz_builder {
    struct sz_loader *l;
    const struct sz_raw_conf *raw;
    struct sz_conf *conf;
    struct sz_words scopes, claims;
    struct sz_pattern *patterns; /* one per route, host and path */
};

/* Index of a word, added when new; -1 when the vocabulary is full. */
int sz_words_add(struct sz_builder *b, struct sz_words *words, struct sz_slice word);
/* Vocabulary slot of a claim, SZ_SLOT_* for the built-in ones; -1 and a mistake when there are too many. */
int sz_claim_slot(struct sz_builder *b, const struct sz_node *at, struct sz_slice name);

void sz_build_listeners(struct sz_builder *b);
/* One listener's keys, and what mode api needs; its address is known. */
void sz_build_api(struct sz_builder *b, const struct sz_raw_listener *raw, struct sz_conf_listener *out);
void sz_build_admin(struct sz_builder *b);
void sz_build_process(struct sz_builder *b); /* workers, user, trusted_proxies, limits, cache, log, assertion */
/* Any section that names a server: everything but the fleet's key. */
void sz_build_redis_server(struct sz_builder *b, const struct sz_raw_redis *raw, struct sz_conf_redis *out);
void sz_build_l2(struct sz_builder *b);
void sz_build_redis(struct sz_builder *b); /* after the process: it counts the workers */
void sz_build_audit(struct sz_builder *b);
void sz_build_tracing(struct sz_builder *b);
void sz_build_fga_listen(struct sz_builder *b);
void sz_build_tls(struct sz_builder *b, const struct sz_raw_tls *raw, struct sz_conf_tls *out);
/* Two that would bind the same port; the wildcard address takes it from all others of its family. */
bool sz_listeners_collide(const struct sz_conf_listener *a, const struct sz_conf_listener *c);
void sz_build_issuers(struct sz_builder *b);
void sz_build_fga(struct sz_builder *b);
/* A url that a provider may be asked at; false after a mistake. */
bool sz_provider_url(struct sz_builder *b, const struct sz_node *at, const char *name, struct sz_slice url,
                     bool insecure_http);
/* One issuer's network part; and what that means for a route. */
void sz_build_provider(struct sz_builder *b, const struct sz_raw_issuer *raw, struct sz_conf_issuer *out);
void sz_check_opaque(struct sz_builder *b, const struct sz_raw_auth *raw, const struct sz_conf_route *route);
void sz_build_threat(struct sz_builder *b);
void sz_build_upstreams(struct sz_builder *b);
void sz_build_rate_limits(struct sz_builder *b);
void sz_build_per_address(struct sz_builder *b);
void sz_build_anonymous(struct sz_builder *b);
void sz_build_routes(struct sz_builder *b);
/* One route's parts. */
void sz_build_auth(struct sz_builder *b, const struct sz_raw_route *raw, struct sz_conf_route *route);
void sz_build_authorize(struct sz_builder *b, const struct sz_raw_route *raw, const struct sz_pattern *pattern,
                        struct sz_conf_route *route);
/* A check's context and contextual tuples, written in the mapping `node`. */
void sz_build_question(struct sz_builder *b, const struct sz_node *node, const struct sz_raw_list *context,
                       const struct sz_raw_list *tuples, const struct sz_pattern *pattern,
                       const struct sz_conf_route *route, struct sz_conf_check *out);
/* "type:..." with a literal type, ids that are ids and stay apart; `name`: user or object. */
void sz_check_entity(struct sz_builder *b, const struct sz_node *at, const char *name, const struct sz_template *t);
void sz_check_relation(struct sz_builder *b, const struct sz_node *at, const struct sz_template *t);
/* Two issuers' subjects are two people. */
void sz_check_whose(struct sz_builder *b, const struct sz_node *at, const struct sz_conf_route *route,
                    const struct sz_template *user);
void sz_build_headers(struct sz_builder *b, const struct sz_raw_route *raw, const struct sz_pattern *pattern,
                      struct sz_conf_route *route);
void sz_build_cors(struct sz_builder *b, const struct sz_raw_route *raw, struct sz_conf_route *route);
void sz_build_route_limits(struct sz_builder *b, const struct sz_raw_route *raw, const struct sz_pattern *pattern,
                           struct sz_conf_route *route);
/* What holds between routes: ids, equal patterns, public over guarded, the router's bound. */
void sz_check_routes(struct sz_builder *b);
/* check_issuers.c: after the routes are built. */
void sz_check_issuers(struct sz_builder *b);

/*
 * "user:{claims.sub}" -> parts.  Unknown variables and path parameters, unclosed braces are mistakes at `at`
 * (false then).
 */
bool sz_template_parse(struct sz_builder *b, const struct sz_node *at, const struct sz_pattern *pattern,
                       struct sz_slice source, struct sz_template *out);
/* The same where {claims.x[]} may stand: one item of a list at a time. */
bool sz_template_parse_each(struct sz_builder *b, const struct sz_node *at, const struct sz_pattern *pattern,
                            struct sz_slice source, struct sz_template *out);
bool sz_template_uses(const struct sz_template *t, enum sz_var var, unsigned slot); /* slot: for CLAIM */

/* "127.0.0.1:8080", "[::1]:8080": true, else a mistake. */
bool sz_parse_listen(struct sz_loader *l, const struct sz_node *at, struct sz_slice s, struct sz_addr *ip,
                     uint16_t *port);

#endif

/*
 * Listeners in mode api: services that hold a key ask, and are answered in JSON.  Their paths exist on these listeners
 * alone: a proxy or decide listener that answered one would let a front proxy take our 200 for a yes.
 *
 *   sz_api_serve ─▶ canonical target ─▶ key ─▶ page ─▶ method, query, type and size of the body ─▶ page->serve
 *                                                                                                     │
 *                                             sz_api_problem, sz_api_reply  ◀── (api_ask.h, later) ───┘
 *
 * A page is a row of the table in api.c.  On the request's own thread.
 */
#ifndef SZ_EDGE_API_H
#define SZ_EDGE_API_H

#include "edge/api_ask.h"

enum sz_api_need {
    SZ_API_KEY, /* one of the listener's keys; where it has none, whoever is on this machine and is no web page */
    SZ_API_OPEN /* anybody: what is served is public, or proves itself (a signed token) */
};

struct sz_api_page {
    const char *method, *path;
    /* Instead of `path`: one that the configuration names. */
    bool (*owns)(const struct sz_conf *conf, struct sz_slice path);
    enum sz_api_need need;
    const char *type; /* content-type of the body; NULL: there is none */
    /* Answers now, or starts something (x->asking) and answers later. */
    void (*serve)(struct sz_exchange *x);
};

void sz_api_serve(struct sz_exchange *x);

/* Refuses the call; `detail` lives as long as the request.  Our reading of its bytes is sure: the connection stays. */
void sz_api_problem(struct sz_exchange *x, enum sz_reason reason, const char *detail);
/* The same for an item that has no answer: why, and when to come again. */
void sz_api_item_problem(struct sz_exchange *x, const struct sz_api_item *item);
/* 200 with this JSON, copied; `reason` is what is recorded: allowed, or why not. */
void sz_api_reply(struct sz_exchange *x, enum sz_reason reason, struct sz_slice json);

/* The pages. */
void sz_api_check(struct sz_exchange *x);       /* api_check.c */
void sz_api_evaluation(struct sz_exchange *x);  /* api_authzen.c */
void sz_api_evaluations(struct sz_exchange *x); /* api_authzen.c */
void sz_api_discovery(struct sz_exchange *x);   /* api_authzen.c */

#endif

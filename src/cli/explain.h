/* The parts of `subzero explain`: explain.c (what is asked), explain_run.c (asking), explain_print.c (what is told). */
#ifndef SZ_CLI_EXPLAIN_H
#define SZ_CLI_EXPLAIN_H

#include "edge/head_check.h"
#include "pipeline/txn.h"

enum { SZ_EXPLAIN_CHECKS = 16 };

/* What one relation check asked, and what came back. */
struct sz_explain_check {
    struct sz_check asked; /* copied */
    struct sz_authz_answer answer;
    bool answered;
    struct sz_slice why; /* the engine's path; SZ_NONE where the model is elsewhere */
};

struct sz_explain {
    const char *file, *method, *url, *token_file, *address;
    struct sz_arena arena;
    struct sz_snapshot *snapshot; /* one reference */
    struct sz_conf_listener listener;
    struct sz_slice token; /* wiped at the end, shown never */
    struct sz_buf bytes;   /* the request's head as it would be on the wire: the token is in it */
    struct sz_head head;
    struct sz_headers fields; /* of --header */
    bool https;
    struct sz_txn txn;
    struct sz_explain_check checks[SZ_EXPLAIN_CHECKS];
    size_t checks_n;
};

/* Runs the stages and prints them: the exit code; -errno and *why: it could not be run. */
int sz_explain_run(struct sz_explain *x, struct sz_text *why);
/* Every stage's inputs and answer on standard output; the command's exit code. */
int sz_explain_print(struct sz_explain *x);

#endif

/*
 * What the `subzero fga` commands do, as functions: files in, text for a person out.  Blocking, not for a loop
 * thread.  Results are the commands' exit codes: 0 yes, 1 no or bad input (the text says what).
 */
#ifndef SUBZERO_FGA_TOOLS_H
#define SUBZERO_FGA_TOOLS_H

#include "subzero/base.h"
#include "subzero/time.h"

struct sz_fga_totals {
    unsigned tests, tests_failed, assertions, assertions_failed;
};
/* A store test (.fga.yaml): every assertion; failures are listed with what was expected and what was found. */
int sz_fga_test_file(const char *path, struct sz_buf *out, struct sz_fga_totals *totals);

/* A model (.fga, .json or fga.mod): every mistake as "file:line:column: kind: message". */
int sz_fga_validate_file(const char *path, struct sz_buf *out);

/* The model in its other form: "json" or "fga". */
int sz_fga_transform_file(const char *path, const char *to, struct sz_buf *out);

struct sz_fga_question {
    const char *model, *tuples; /* files; tuples may be NULL */
    const char *user, *relation, *object;
    const char *context; /* JSON, may be NULL */
    bool explain;        /* also say through which tuples */
};
int sz_fga_check_files(const struct sz_fga_question *q, struct sz_buf *out);

/*
 * Stores in a state_dir whose gateway does not run (the directory is locked): models and tuples into one, or out of it.
 * `out` gets what there is to say, or what is exported.
 */
struct sz_fga_files {
    const char *state_dir;
    const char *store;          /* its id; NULL: the gateway's own */
    const char *model, *tuples; /* import: files; either may be NULL */
    bool export_model;          /* export: the newest model as JSON instead of the tuples as JSON lines */
};
/* wall: when it is written. */
int sz_fga_import(const struct sz_fga_files *files, struct sz_wall (*wall)(void), struct sz_buf *out);
int sz_fga_export(const struct sz_fga_files *files, struct sz_buf *out);

#endif

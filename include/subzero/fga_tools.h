/*
 * What the `subzero fga` commands do, as functions: files in, text for a person out.  Blocking, not for a loop
 * thread.  Results are the commands' exit codes: 0 yes, 1 no or bad input (the text says what).
 */
#ifndef SUBZERO_FGA_TOOLS_H
#define SUBZERO_FGA_TOOLS_H

#include "subzero/base.h"

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

#endif

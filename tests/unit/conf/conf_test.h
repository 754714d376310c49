/* What the configuration's tests share: a valid base, loading a text, looking for a mistake. */
#ifndef CONF_TEST_H
#define CONF_TEST_H

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>

#include "subzero/conf.h"

/* Files that every test may name, made once per test process in a directory of its own. */
const char *conf_dir(void); /* created on first use, removed at exit */
const char *conf_write(const char *name, const char *content, unsigned mode); /* its path; valid until the next call */

/* A configuration without mistakes; its first line is 1 and routes stand last.  `extra` is put before `routes:`. */
char *conf_base(const char *extra, const char *routes);

struct conf_try {
    struct sz_mistakes m;
    struct sz_conf *conf;
};
void conf_try(struct conf_try *t, const char *yaml);
void conf_done(struct conf_try *t);
/* A mistake at line:column (0: any) whose message holds `text`. */
bool conf_has(const struct conf_try *t, unsigned line, unsigned column, const char *text);
/* All messages, for a failing assertion. */
const char *conf_messages(const struct conf_try *t);

#endif

/* Configurations and their mistakes, as the commands show them. */
#ifndef SZ_CLI_MISTAKES_H
#define SZ_CLI_MISTAKES_H

#include <stdio.h>

#include "subzero/conf.h"

/* One line each: file:line:column: message; warnings say so. */
void sz_cli_print_mistakes(const struct sz_mistakes *m, FILE *out);
/* Loads a file ("-": standard input), prints what is wrong with it on standard error.  NULL: it cannot be used. */
struct sz_conf *sz_cli_load(const char *path);

#endif

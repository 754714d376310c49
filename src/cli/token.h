/* The verbs of `subzero token`; argv[0] is the verb. */
#ifndef SZ_CLI_TOKEN_H
#define SZ_CLI_TOKEN_H

int sz_token_mint(int argc, char **argv);
int sz_token_inspect(int argc, char **argv);

#endif

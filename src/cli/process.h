/*
 * What the process gives up: core dumps, the right to gain privileges, and, once everything that needs root is
 * bound and read, root itself.
 */
#ifndef SZ_CLI_PROCESS_H
#define SZ_CLI_PROCESS_H

#include "subzero/base.h"

/* First thing at the start: core size 0, not dumpable (nor traceable by others), no_new_privs.  -errno and *why. */
int sz_process_harden(struct sz_text *why) SZ_MUST_CHECK;
/*
 * Started as root: becomes `user` with its groups, for good.  0: done, or not root; SZ_PROCESS_STILL_ROOT: user is
 * empty.  -errno and *why.
 */
enum { SZ_PROCESS_STILL_ROOT = 1 };
int sz_process_drop(struct sz_slice user, struct sz_text *why) SZ_MUST_CHECK;
/* Raises the soft limit of open files as far as allowed; returns what it is then. */
uint64_t sz_process_raise_files(uint64_t wanted);
/* Last thing: lets the leak checker of a sanitizer build attach to the process again.  Nothing otherwise. */
void sz_process_end(void);

#endif

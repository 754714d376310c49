/*
 * What `serve --demo` and `token mint --demo` agree on: the issuer, and the file in which its key waits
 * (${XDG_RUNTIME_DIR:-/tmp}/subzero-demo-UID/key.jwk).
 */
#ifndef SUBZERO_DEMO_H
#define SUBZERO_DEMO_H

#include "subzero/base.h"

#define SZ_DEMO_ISSUER   "https://demo.subzero.invalid/"
#define SZ_DEMO_AUDIENCE "https://demo.subzero.invalid/documents"
#define SZ_DEMO_CLIENT   "subzero-demo"

enum sz_demo_key { SZ_DEMO_KEY_FIND, SZ_DEMO_KEY_MAKE };

/*
 * The demo issuer's private JWK, appended to *jwk (the caller wipes it).  MAKE creates folder (0700) and file (0600)
 * when they are missing, whole or not at all.  -ENOENT: FIND, and no demo has run; -EPERM: folder or file belong to
 * somebody else or can be read by others (never used, never repaired); other -errno; *why says what to do.  Blocking.
 */
int sz_demo_key_load(enum sz_demo_key what, struct sz_buf *jwk, struct sz_text *why) SZ_MUST_CHECK;

#endif

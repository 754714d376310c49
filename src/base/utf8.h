/* Stepping through UTF-8, for the files of this folder and for whoever must cut or repair text. */
#ifndef SZ_BASE_UTF8_H
#define SZ_BASE_UTF8_H

#include "subzero/base.h"

/* Length (1..4) of the character at the front of s, 0 when s is empty or no valid character starts there. */
size_t sz_utf8_step(struct sz_slice s);
/* Offset of the first byte that is not part of valid UTF-8; s.n when all is valid. */
size_t sz_utf8_prefix(struct sz_slice s);

#endif

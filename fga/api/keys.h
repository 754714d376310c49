/* What a shown key may do. */
#ifndef SZ_FGA_API_KEYS_H
#define SZ_FGA_API_KEYS_H

#include "subzero/fga_api.h"

enum sz_key_right { SZ_KEY_MISSING, SZ_KEY_UNKNOWN, SZ_KEY_READS, SZ_KEY_WRITES };

/* By the Authorization header; *name is the key's, SZ_NONE when it has none.  Constant time in the secrets. */
enum sz_key_right sz_keys_right(const struct sz_fga_keys *keys, struct sz_slice authorization, struct sz_slice *name);

#endif

/*
 * Process-wide numbers for issuers and their keys.  They outlive a configuration: an issuer or a key
 * that is the same after a reload has the same number, so what was cached about it stays good;
 * a number is never given to anything else.  Any thread; short critical sections.
 */
#ifndef SZ_FGA_KEY_REGISTRY_H
#define SZ_FGA_KEY_REGISTRY_H

#include "subzero/base.h"

#define SZ_ISSUERS_MAX 4096 /* different issuers over the life of the process */

/* The number of an issuer, by its name in the configuration and its `iss`.  -ENOSPC: too many in this process. */
int sz_issuer_register(struct sz_slice name, struct sz_slice iss, uint16_t *id) SZ_MUST_CHECK;

/*
 * The number of a key: same issuer and same fingerprint, same number, as long as at least one key set holds it.
 * Each take is undone by one drop.  Never 0.
 */
uint32_t sz_key_take(uint16_t issuer, const uint8_t fingerprint[32]);
void sz_key_drop(uint32_t id);
/* Counts keys that were dropped for the last time: a thread that sees it change forgets what it prepared for keys. */
uint64_t sz_keys_epoch(void);
/* Keys registered now, for tests. */
size_t sz_keys_count(void);

#endif

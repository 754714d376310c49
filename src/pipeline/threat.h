/*
 * What the pipeline tells the threat engine and asks it.  All of it is free of charge where the configuration has no
 * `threat`, and does nothing but count where it says dry_run.
 */
#ifndef SZ_PIPELINE_THREAT_H
#define SZ_PIPELINE_THREAT_H

#include "pipeline/txn.h"

/* admit: the address.  ip_denied, threat_blocked, or allowed; a challenge waits until it is known who asks. */
enum sz_reason sz_threat_admit(struct sz_txn *txn);
/* identify: who it is, whence, and whether a challenge is passed.  threat_blocked, threat_challenge, or allowed. */
enum sz_reason sz_threat_identified(struct sz_txn *txn);
/* decide, and faults before the pipeline: what a refusal says about the address. */
void sz_threat_observe(struct sz_txn *txn, enum sz_reason reason);

/* The policy of the configuration, as the calculator wants it. */
struct sz_threat_policy sz_threat_policy(const struct sz_conf_threat *conf);

#endif

/* The same records to standard output and to syslog.  Copies: what does not take them loses them, and the count says
 * so. */
#ifndef SZ_OBS_AUDIT_ELSEWHERE_H
#define SZ_OBS_AUDIT_ELSEWHERE_H

#include "subzero/conf.h"

struct sz_audit_elsewhere {
    int syslog; /* a datagram socket; -1: none */
    bool to_stdout;
    char prefix[128]; /* of a syslog message behind its time: host, program, process */
};
/* -errno and *why. */
int sz_audit_elsewhere_open(struct sz_audit_elsewhere *elsewhere, const struct sz_conf_audit *conf,
                            struct sz_text *why) SZ_MUST_CHECK;
void sz_audit_elsewhere_close(struct sz_audit_elsewhere *elsewhere);
/* Committed lines, each with its newline; how many were not taken. */
uint64_t sz_audit_elsewhere_put(struct sz_audit_elsewhere *elsewhere, struct sz_slice lines);

#endif

/* /threat of the admin listener: what its two files and /health share. */
#ifndef SZ_EDGE_ADMIN_THREAT_H
#define SZ_EDGE_ADMIN_THREAT_H

#include "edge/admin.h"
#include "subzero/threat_store.h"

/* "address":..., or "issuer":...,"subject":... */
void sz_threat_write_whom(struct sz_buf *out, const struct sz_threat_record *r);
/* "until":"..." */
void sz_threat_write_until(struct sz_buf *out, struct sz_wall until);
/* ,"blocks":{...} for /health.  True: as it should be. */
bool sz_threat_health(const struct sz_server *server, struct sz_buf *out);

#endif

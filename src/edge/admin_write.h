/*
 * A write on the admin listener: its body, its Idempotency-Key, and an answer that may come later, when the client may
 * have left.  The write is carried out all the same, and whoever asks again with the key is told.
 */
#ifndef SZ_EDGE_ADMIN_WRITE_H
#define SZ_EDGE_ADMIN_WRITE_H

#include "edge/admin.h"
#include "subzero/audit.h"
#include "subzero/reason.h"

struct sz_admin_write;

/* NULL: answered already (an old answer, a key that stands for something else).  Else sz_admin_write_end follows, once.
 */
struct sz_admin_write *sz_admin_write_begin(struct sz_admin_call *call);
/* The same for what counts each time that it is carried out: while the first is under way its key is answered 409. */
struct sz_admin_write *sz_admin_write_begin_once(struct sz_admin_call *call);
/*
 * What the journal says of it: action such as "revocation.add", and on what.  Texts are copied; no secret in any.
 * Without it the record names method and path alone.
 */
void sz_admin_write_about(struct sz_admin_write *write, enum sz_audit_kind kind, const char *action,
                          struct sz_slice object, struct sz_slice subject, struct sz_slice detail);
/* JSON, or with 4xx and 5xx a problem document with this reason and detail (sz_admin_write_refuse).  Frees it. */
void sz_admin_write_end(struct sz_admin_write *write, unsigned status, struct sz_slice json);
void sz_admin_write_refuse(struct sz_admin_write *write, unsigned status, enum sz_reason reason, const char *detail);
/* At the end of the process, before the journal's port closes: those that wait for their record wait no longer. */
void sz_admin_writes_end(struct sz_server *server);

#endif

/* What somebody changed over the admin listener goes on record. */
#include "edge/admin.h"
#include "edge/connection.h"
#include "edge/server.h"

void sz_admin_record(struct sz_admin_call *call, const char *action, struct sz_slice object)
{
    struct sz_audit_event e = {.kind = SZ_AUDIT_ADMIN, .has_address = true, .address = sz_conn_of_req(call->req)->peer};
    e.text[SZ_AUDIT_ACTION] = sz_cstr(action);
    e.text[SZ_AUDIT_OBJECT] = object;
    e.text[SZ_AUDIT_RESULT] = SZ_S("ok");
    (void)sz_audit_note(call->server->gate.audit, &e); /* a full queue counts its own losses */
}

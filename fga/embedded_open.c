/* The embedded engine is not in this build yet: a route that asks for a relation is refused at load, never waved through. */
#include "subzero/fga.h"

struct sz_authz *sz_authz_embedded_open(const struct sz_conf_fga *conf, struct sz_text *why)
{
    (void)conf;
    sz_text_set(why, "this build has no relationship engine");
    return NULL;
}

/* The embedded engine over what a configuration brings: a store of its own, which nobody else changes. */
#include "fga/api/hub.h"
#include "subzero/conf.h"
#include "subzero/fga.h"

struct sz_authz *sz_authz_embedded_open(const struct sz_conf_fga *conf, struct sz_fga_hub *hub, struct sz_text *why)
{
    struct sz_fga_seed *seed = sz_fga_seed_read(conf, why);
    if (seed == NULL)
        return NULL;
    struct sz_authz *authz = sz_authz_seed_new(hub, seed, why);
    sz_fga_seed_free(&seed);
    return authz;
}

struct sz_authz *sz_authz_embedded_new(struct sz_slice model_dsl, struct sz_slice tuples_yaml, struct sz_text *why)
{
    struct sz_conf_fga conf = {.on = true, .model_text = model_dsl, .tuples_text = tuples_yaml};
    return sz_authz_embedded_open(&conf, NULL, why);
}

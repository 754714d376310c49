/*
 * Configurations: any text is either refused with a mistake that has a place, or becomes a configuration whose
 * dump reads back to the same one.  Nothing is read but the text (file names in it lead nowhere).
 */
#include <stdlib.h>

#include "subzero/conf.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void reads_back(const struct sz_conf *conf)
{
    struct sz_buf text = {0}, difference = {0};
    struct sz_mistakes m;
    sz_conf_dump(conf, &text);
    if (memmem(text.p, text.n, "\"***\"", 5) != NULL) { /* something was kept back */
        sz_buf_fini(&text);
        return;
    }
    sz_mistakes_init(&m);
    struct sz_conf *again = sz_conf_load_text(sz_buf_slice(&text), "fuzz", &m);
    SZ_ASSERT(again != NULL && again->version == conf->version);
    sz_conf_restart_needed(conf, again, &difference);
    SZ_ASSERT(difference.n == 0);
    sz_conf_free(&again);
    sz_mistakes_fini(&m);
    sz_buf_fini(&difference);
    sz_buf_fini(&text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct sz_mistakes m;
    sz_mistakes_init(&m);
    struct sz_conf *conf = sz_conf_load_text(sz_slice(data, size), "fuzz", &m);
    SZ_ASSERT((conf == NULL) == (m.errors > 0));
    for (size_t i = 1; i < m.n; i++)
        SZ_ASSERT(m.v[i - 1].line <= m.v[i].line && m.v[i].message.n > 0);
    if (conf != NULL)
        reads_back(conf);
    sz_conf_free(&conf);
    sz_mistakes_fini(&m);
    return 0;
}

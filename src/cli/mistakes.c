/* Loading for the commands, and printing what was wrong. */
#include "cli/mistakes.h"

#include <unistd.h>

#define INPUT_MAX (8u * 1024 * 1024)

void sz_cli_print_mistakes(const struct sz_mistakes *m, FILE *out)
{
    for (size_t i = 0; i < m->n; i++) {
        struct sz_buf text = {0};
        sz_mistake_format(&m->v[i], &text);
        fprintf(out, "%.*s\n", SZ_FMT(sz_buf_slice(&text)));
        sz_buf_fini(&text);
    }
}

static struct sz_conf *load_stdin(struct sz_mistakes *m)
{
    struct sz_buf text = {.limit = INPUT_MAX + 1};
    char chunk[16384];
    ssize_t n;
    while ((n = read(STDIN_FILENO, chunk, sizeof(chunk))) > 0 && !text.overflow)
        sz_buf_add(&text, chunk, (size_t)n);
    struct sz_conf *conf = NULL;
    if (n < 0 || text.overflow)
        sz_mistakes_add(m, SZ_S("stdin"), 0, 0, false, n < 0 ? "cannot be read" : "larger than %u bytes", INPUT_MAX);
    else
        conf = sz_conf_load_text(sz_buf_slice(&text), "stdin", m);
    sz_buf_fini(&text);
    return conf;
}

struct sz_conf *sz_cli_load(const char *path)
{
    struct sz_mistakes m;
    sz_mistakes_init(&m);
    struct sz_conf *conf = strcmp(path, "-") == 0 ? load_stdin(&m) : sz_conf_load_file(path, &m);
    sz_cli_print_mistakes(&m, stderr);
    sz_mistakes_fini(&m);
    return conf;
}

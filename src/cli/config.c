/* subzero config: what a configuration comes to, and what can stand in one.  The output is for pipes and files. */
#include <stdio.h>

#include "cli/cli.h"
#include "cli/mistakes.h"
#include "subzero/conf.h"

static void usage(FILE *out)
{
    fputs("usage: subzero config dump -c FILE | schema | reference\n\n"
          "  dump -c FILE   the effective configuration: defaults filled in, variables replaced, secrets left in their "
          "files\n"
          "  schema         JSON Schema of the configuration, for editors\n"
          "  reference      every key with its type, default, range and meaning, as Markdown\n",
          out);
}

static int put(struct sz_buf *text)
{
    bool good = fwrite(text->p, 1, text->n, stdout) == text->n && fflush(stdout) == 0;
    sz_buf_fini(text);
    return good ? SZ_EXIT_OK : SZ_EXIT_NO;
}

static int dump(int argc, char **argv)
{
    struct sz_buf text = {0};
    if (argc != 3 || (strcmp(argv[1], "-c") != 0 && strcmp(argv[1], "--config") != 0)) {
        usage(stderr);
        return SZ_EXIT_USAGE;
    }
    struct sz_conf *conf = sz_cli_load(argv[2]);
    if (conf == NULL)
        return SZ_EXIT_NO;
    sz_conf_dump(conf, &text);
    sz_conf_free(&conf);
    return put(&text);
}

int sz_cmd_config(int argc, char **argv)
{
    struct sz_buf text = {0};
    if ((argc >= 2 && sz_cli_is_help(argv[1])) || (argc >= 3 && sz_cli_is_help(argv[2]))) {
        usage(stdout);
        return SZ_EXIT_OK;
    }
    if (argc >= 2 && strcmp(argv[1], "dump") == 0)
        return dump(argc - 1, argv + 1);
    if (argc == 2 && strcmp(argv[1], "schema") == 0) {
        sz_conf_json_schema(&text);
        return put(&text);
    }
    if (argc == 2 && strcmp(argv[1], "reference") == 0) {
        sz_conf_reference(&text);
        return put(&text);
    }
    usage(stderr);
    return SZ_EXIT_USAGE;
}

/*
 * `subzero fga`: the embedded engine from the command line.
 */
#include <getopt.h>
#include <stdio.h>

#include "cli/cli.h"
#include "subzero/crypto.h"
#include "subzero/fga_tools.h"

static const char usage_text[] =
    "usage: subzero fga test FILE.fga.yaml...\n"
    "       subzero fga validate MODEL...\n"
    "       subzero fga transform --to json|fga MODEL\n"
    "       subzero fga check --model MODEL [--tuples FILE] [--context JSON] USER RELATION OBJECT\n"
    "       subzero fga explain --model MODEL [--tuples FILE] [--context JSON] USER RELATION OBJECT\n"
    "       subzero fga import --state-dir DIR [--store ID] [--model MODEL] [--tuples FILE]\n"
    "       subzero fga export --state-dir DIR [--store ID] [--model]\n"
    "\n"
    "  test       runs store tests and prints what differs\n"
    "  validate   prints every mistake of a model with its line and column\n"
    "  transform  prints a model in its other form\n"
    "  check      says whether the user has the relation with the object\n"
    "  explain    also says why\n"
    "  import     puts a model and tuples into a store of a gateway that does not run\n"
    "  export     prints its tuples as JSON lines, or with --model its newest model as JSON\n"
    "\n"
    "A MODEL is a .fga or .json file, or an fga.mod beside its modules.  Tuples are read from .yaml, .json, .jsonl\n"
    "and .csv files.  Exit code 0: passed, valid, allowed; 1: not; 2: wrong usage.\n";

static int usage(void)
{
    fputs(usage_text, stderr);
    return SZ_EXIT_USAGE;
}

static int print(struct sz_buf *out, int code)
{
    fwrite(out->p != NULL ? out->p : "", 1, out->n, stdout);
    sz_buf_fini(out);
    return code;
}

static int run_test(int argc, char **argv)
{
    struct sz_fga_totals totals = {0};
    int code = SZ_EXIT_OK;
    if (argc < 2)
        return usage();
    for (int i = 1; i < argc; i++) {
        struct sz_buf out = {0};
        if (print(&out, sz_fga_test_file(argv[i], &out, &totals)) != 0)
            code = SZ_EXIT_NO;
    }
    printf("%u tests, %u failed; %u assertions, %u failed\n", totals.tests, totals.tests_failed, totals.assertions,
           totals.assertions_failed);
    return code;
}

static int run_validate(int argc, char **argv)
{
    int code = SZ_EXIT_OK;
    if (argc < 2)
        return usage();
    for (int i = 1; i < argc; i++) {
        struct sz_buf out = {0};
        int invalid = sz_fga_validate_file(argv[i], &out);
        print(&out, 0);
        if (invalid == 0)
            printf("%s: valid\n", argv[i]);
        else
            code = SZ_EXIT_NO;
    }
    return code;
}

static int run_transform(int argc, char **argv)
{
    static const struct option options[] = {{"to", required_argument, NULL, 't'}, {NULL, 0, NULL, 0}};
    const char *to = NULL;
    int c;
    optind = 1;
    while ((c = getopt_long(argc, argv, "t:", options, NULL)) != -1) {
        if (c != 't')
            return usage();
        to = optarg;
    }
    if (to == NULL || optind + 1 != argc || (strcmp(to, "json") != 0 && strcmp(to, "fga") != 0))
        return usage();
    struct sz_buf out = {0};
    int code = sz_fga_transform_file(argv[optind], to, &out);
    if (code == 0)
        return print(&out, code);
    fprintf(stderr, "subzero: %.*s", SZ_FMT(sz_buf_slice(&out)));
    sz_buf_fini(&out);
    return code;
}

static int run_check(int argc, char **argv, bool explain)
{
    static const struct option options[] = {{"model", required_argument, NULL, 'm'},
                                            {"tuples", required_argument, NULL, 't'},
                                            {"context", required_argument, NULL, 'c'},
                                            {NULL, 0, NULL, 0}};
    struct sz_fga_question q = {.explain = explain};
    int c;
    optind = 1;
    while ((c = getopt_long(argc, argv, "m:t:c:", options, NULL)) != -1) {
        switch (c) {
        case 'm':
            q.model = optarg;
            break;
        case 't':
            q.tuples = optarg;
            break;
        case 'c':
            q.context = optarg;
            break;
        default:
            return usage();
        }
    }
    if (q.model == NULL || optind + 3 != argc)
        return usage();
    q.user = argv[optind];
    q.relation = argv[optind + 1];
    q.object = argv[optind + 2];
    struct sz_buf out = {0};
    return print(&out, sz_fga_check_files(&q, &out));
}

/* Both commands; import's --model has a value, export's has none. */
static int run_transfer(int argc, char **argv, bool import)
{
    const struct option options[] = {{"state-dir", required_argument, NULL, 'd'},
                                     {"store", required_argument, NULL, 's'},
                                     {"model", import ? required_argument : no_argument, NULL, 'm'},
                                     {import ? "tuples" : NULL, required_argument, NULL, 't'},
                                     {NULL, 0, NULL, 0}};
    struct sz_fga_files files = {0};
    int c;
    optind = 1;
    while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
        if (c == 'd')
            files.state_dir = optarg;
        else if (c == 's')
            files.store = optarg;
        else if (c == 't')
            files.tuples = optarg;
        else if (c == 'm' && import)
            files.model = optarg;
        else if (c == 'm')
            files.export_model = true;
        else
            return usage();
    }
    if (files.state_dir == NULL || optind != argc || (import && files.model == NULL && files.tuples == NULL))
        return usage();
    sz_crypto_init();
    struct sz_buf out = {0};
    int code = import ? sz_fga_import(&files, sz_wall_read, &out) : sz_fga_export(&files, &out);
    if (code == 0)
        return print(&out, code);
    fprintf(stderr, "subzero: %.*s", SZ_FMT(sz_buf_slice(&out)));
    sz_buf_fini(&out);
    return code;
}

int sz_cmd_fga(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";
    if (sz_cli_is_help(what) || (argc > 2 && sz_cli_is_help(argv[2]))) {
        fputs(usage_text, stdout);
        return SZ_EXIT_OK;
    }
    if (strcmp(what, "test") == 0)
        return run_test(argc - 1, argv + 1);
    if (strcmp(what, "validate") == 0)
        return run_validate(argc - 1, argv + 1);
    if (strcmp(what, "transform") == 0)
        return run_transform(argc - 1, argv + 1);
    if (strcmp(what, "check") == 0 || strcmp(what, "explain") == 0)
        return run_check(argc - 1, argv + 1, what[0] == 'e');
    if (strcmp(what, "import") == 0 || strcmp(what, "export") == 0)
        return run_transfer(argc - 1, argv + 1, what[0] == 'i');
    return usage();
}

/* subzero audit: reads the arguments of its subcommands, which all take the same filters, and runs one. */
#include "cli/audit.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <string.h>

#include "cli/cli.h"
#include "subzero/crypto.h"

static const char usage_text[] =
    "usage: subzero audit query  [FILTERS] [--limit N] [--cursor C] DIR   a page of records, newest first\n"
    "       subzero audit export [FILTERS] [--format jsonl|csv] DIR       all records that match\n"
    "       subzero audit tail   [FILTERS] [-f] [-n N] DIR                the last records, and those that come\n"
    "       subzero audit verify [--key PUB] [--anchor FILE] DIR          finds the first record that was touched\n"
    "       subzero audit stats  DIR                                      counts of everything\n"
    "       subzero audit send   [FILTERS] --to URL --cursor FILE [--token-file F] [--ca-file F] [-f] DIR\n"
    "                                                                     to a collector, as NDJSON, at least once\n"
    "\n"
    "DIR is the journal's directory (audit.path), whether or not a gateway writes it.\n"
    "\n"
    "  --since T, --until T   times such as 2026-11-30T23:00:00Z; since <= time < until\n"
    "  --kind K  --subject S  --client C  --address A  --route R  --decision allow|deny  --reason R\n"
    "  --request-id ID  --trace-id ID      exactly that value\n"
    "  --q TEXT               anywhere in the record as it is written\n"
    "  --order asc|desc       oldest or newest first\n"
    "\n"
    "Exit code: 0, 1 the journal is damaged or was touched, 2 usage, 3 it cannot be read.\n";

struct command {
    const char *name;
    int (*run)(const struct sz_audit_args *args);
    const char *takes; /* letters of its options beyond the filters; NULL: not even those */
};
static const struct command commands[] = {
    {"query", sz_audit_query_command, "lco"}, {"export", sz_audit_export_command, "lcom"},
    {"tail", sz_audit_tail_command, "fn"},    {"verify", sz_audit_verify_command, NULL},
    {"stats", sz_audit_stats_command, NULL},  {"send", sz_audit_send_command, "fctxy"},
};

/* val is the option's letter; filters have those of `params`. */
static const struct option options[] = {
    {"since", 1, NULL, 'A'},   {"until", 1, NULL, 'B'},      {"kind", 1, NULL, 'C'},     {"subject", 1, NULL, 'D'},
    {"client", 1, NULL, 'E'},  {"address", 1, NULL, 'F'},    {"route", 1, NULL, 'G'},    {"decision", 1, NULL, 'H'},
    {"reason", 1, NULL, 'I'},  {"request-id", 1, NULL, 'J'}, {"trace-id", 1, NULL, 'K'}, {"q", 1, NULL, 'L'},
    {"limit", 1, NULL, 'l'},   {"cursor", 1, NULL, 'c'},     {"order", 1, NULL, 'o'},    {"format", 1, NULL, 'm'},
    {"key", 1, NULL, 'k'},     {"anchor", 1, NULL, 'a'},     {"to", 1, NULL, 't'},       {"token-file", 1, NULL, 'x'},
    {"ca-file", 1, NULL, 'y'}, {"help", 0, NULL, 'h'},       {NULL, 0, NULL, 0}};

static const char *param_of(int letter)
{
    static const char *const filters[] = {"since", "until",    "kind",   "subject",    "client",   "address",
                                          "route", "decision", "reason", "request_id", "trace_id", "q"};
    if (letter >= 'A' && letter <= 'L')
        return filters[letter - 'A'];
    return letter == 'l' || letter == 'n' ? "limit"
           : letter == 'c'                ? "cursor"
           : letter == 'o'                ? "order"
           : letter == 'm'                ? "format"
                                          : NULL;
}

static bool takes(const struct command *command, int letter)
{
    if (letter == 'k' || letter == 'a')
        return command->run == sz_audit_verify_command;
    if (command->takes == NULL)
        return false;
    return (letter >= 'A' && letter <= 'L') || strchr(command->takes, letter) != NULL;
}

/* Where the value of an option that is no parameter goes; NULL: it is one. */
static const char **place_of(const struct command *command, int letter, struct sz_audit_args *args)
{
    switch (letter) {
    case 'k':
        return &args->key;
    case 'a':
        return &args->anchor;
    case 't':
        return &args->to;
    case 'x':
        return &args->token;
    case 'y':
        return &args->ca;
    case 'c':
        return command->run == sz_audit_send_command ? &args->cursor : NULL;
    default:
        return NULL;
    }
}

/* False: this command does not take it. */
static bool take(const struct command *command, int letter, const char *value, struct sz_audit_args *args)
{
    if (letter == '?' || !takes(command, letter) || args->n == SZ_AUDIT_PARAMS)
        return false;
    const char **place = place_of(command, letter, args);
    if (letter == 'f')
        args->follow = true;
    else if (place != NULL)
        *place = value;
    else
        args->params[args->n++] = (struct sz_audit_param){param_of(letter), value};
    return true;
}

int sz_audit_fail(const char *command, int rc, const char *why)
{
    fprintf(stderr, "subzero audit %s: %s\n", command, why);
    return rc == -EINVAL ? SZ_EXIT_USAGE : rc == -EBADMSG ? SZ_EXIT_NO : SZ_EXIT_UNAVAILABLE;
}

int sz_audit_put_stdout(void *arg, struct sz_slice bytes)
{
    (void)arg;
    return fwrite(bytes.p, 1, bytes.n, stdout) == bytes.n ? 0 : -EPIPE;
}

static const struct command *find(const char *name)
{
    for (size_t i = 0; name != NULL && i < SZ_COUNT(commands); i++) {
        if (strcmp(commands[i].name, name) == 0)
            return &commands[i];
    }
    return NULL;
}

int sz_cmd_audit(int argc, char **argv)
{
    struct sz_audit_args args = {.n = 0};
    const struct command *command = find(argc > 1 ? argv[1] : NULL);
    if (argc > 1 && sz_cli_is_help(argv[1])) {
        fputs(usage_text, stdout);
        return SZ_EXIT_OK;
    }
    if (command == NULL) {
        fputs(usage_text, stderr);
        return SZ_EXIT_USAGE;
    }
    sz_crypto_init();
    optind = 1;
    for (int c; (c = getopt_long(argc - 1, argv + 1, "fn:h", options, NULL)) != -1;) {
        if (c == 'h') {
            fputs(usage_text, stdout);
            return SZ_EXIT_OK;
        }
        if (!take(command, c, optarg, &args)) {
            fputs(usage_text, stderr);
            return SZ_EXIT_USAGE;
        }
    }
    if (optind + 1 != argc - 1) {
        fputs(usage_text, stderr);
        return SZ_EXIT_USAGE;
    }
    args.path = argv[1 + optind];
    return command->run(&args);
}

/*
 * docs/configuration.md, made from the schema's rows.  A table for each mapping; what cannot be said in
 * a row (how values are written, what holds between keys) stands in the text around them.
 */
#include <inttypes.h>

#include "conf/schema.h"
#include "subzero/conf.h"

static const char head[] =
    "# Configuration\n"
    "\n"
    "<!-- Made by `subzero config reference` from the schema in src/conf/schema.c; a test fails when it is stale. -->\n"
    "\n"
    "One YAML file, read by `subzero serve -c FILE` and checked by `subzero check -c FILE`, which prints every mistake "
    "as\n"
    "`file:line:column: message`. `subzero config dump -c FILE` prints the effective configuration, `subzero config "
    "schema`\n"
    "a JSON Schema for editors. `deploy/examples/subzero.yaml` is a commented example.\n"
    "\n"
    "## How values are written\n"
    "\n"
    "* **Durations** carry a unit: `20ms`, `10s`, `5m`, `1h`, `2d`. **Sizes** too: `kB`, `MB`, `GB` are decimal, "
    "`KiB`, `MiB`,\n"
    "  `GiB` binary. A bare number is a mistake.\n"
    "* `${NAME}` and `${NAME:-default}` inside a value are replaced from the environment; an unset (or empty) variable "
    "without a\n"
    "  default is a mistake. `$${` stands for `${`. The content of a variable is always one value: it can add no key.\n"
    "* Inside `{...}` and `[...]` a value with a brace stands in quotes: `{path: \"/documents/{id}\"}`.\n"
    "* **Secrets** stand in files of their own, named by `*_file` keys: regular, at most 64 KiB, one trailing newline "
    "removed.\n"
    "* Relative paths start at the directory of the configuration file.\n"
    "* Unknown keys, keys written twice, empty values and empty lists are mistakes. So are anchors, aliases and tags.\n"
    "* **Templates** (`authorize`, `set_headers`) hold `{claims.NAME}`, `{path.NAME}`, `{query.NAME}`, "
    "`{header.NAME}`,\n"
    "  `{method}`, `{client.ip}`, `{now}`, `{issuer}`; `{{` and `}}` stand for braces. `{claims.sub}`, "
    "`{claims.client}`,\n"
    "  `{claims.tenant}` and `{claims.iss}` are what the gateway itself found out.\n"
    "  `{header.NAME}` of a credential (`Authorization`, `Cookie`) is a mistake.\n"
    "* `config dump` keeps back header values that `${...}` brought in: it prints `***`, which no load accepts.\n"
    "\n"
    "## Routes\n"
    "\n"
    "The host decides first, then the path, then the method. An exact host goes before `*.host`, the longer one first, "
    "and that\n"
    "before none; where no path of one host matches, the next is asked. Paths are compared segment by segment from the "
    "left: a\n"
    "literal goes before `{x}`, that before a trailing `*`, whatever the order in the\n"
    "file. `{x}` is one segment and never empty; `*` is zero or more, so `/files/*` matches `/files`, `/files/` and "
    "`/files/a/b`.\n"
    "When the most specific pattern has no route for the method the answer is 405, never a less specific route. GET "
    "includes HEAD.\n"
    "Two routes with equal patterns and a common method refuse the start, as does a public pattern that covers a "
    "guarded one\n"
    "(unless it says `covers_guarded: true`). A pattern is written as paths are canonicalised: unreserved characters "
    "plain, other\n"
    "escapes in upper case, no `.`, `..` or `//`.\n";

static const char tail[] =
    "\n"
    "## From the environment\n"
    "\n"
    "Without `-c`, `subzero serve` makes one route for all paths and methods from these variables:\n"
    "\n"
    "| Variable | Meaning |\n"
    "|---|---|\n"
    "| `AUTH0_DOMAIN` | the tenant; the issuer is `https://AUTH0_DOMAIN/`. Required |\n"
    "| `AUTH0_AUDIENCE` | accepted `aud`. Required |\n"
    "| `AUTH0_JWKS_FILE` | file with the tenant's keys; by default they are fetched, from where the tenant's metadata "
    "says |\n"
    "| `STATE_DIR` | as `state_dir` |\n"
    "| `UPSTREAM_URL` | where requests go. Required |\n"
    "| `PORT` | port on all addresses, 8080 by default |\n"
    "| `ADMIN_ADDRESS` | as `admin.address`, 127.0.0.1:9901 by default |\n"
    "| `WORKERS` | as `workers` |\n"
    "| `CACHE_CAPACITY` | as `cache.l1.capacity` |\n"
    "| `REDIS_URL` | as `redis.url`; `CACHE_KEY_FILE` is then required |\n"
    "| `REDIS_MAX_CONNECTIONS` | as `redis.max_connections` |\n"
    "| `CACHE_KEY_FILE` | as `redis.key_file` |\n"
    "| `RATE_LIMIT_REQUESTS` | requests of one subject in a window, 100 by default; 0: no limit |\n"
    "| `RATE_LIMIT_WINDOW` | the window, seconds or with a unit, 60 by default |\n"
    "| `OTEL_EXPORTER_OTLP_ENDPOINT`, `OTEL_EXPORTER_OTLP_TRACES_ENDPOINT` | a collector of traces: `/v1/traces` is "
    "added "
    "to the first, the second is taken as it is. Tracing is off without one of them, and with `OTEL_SDK_DISABLED=true` "
    "or "
    "`OTEL_TRACES_EXPORTER=none` |\n"
    "| `OTEL_SERVICE_NAME`, `OTEL_RESOURCE_ATTRIBUTES`, `OTEL_TRACES_SAMPLER`, `OTEL_TRACES_SAMPLER_ARG`, "
    "`OTEL_EXPORTER_OTLP_HEADERS`, `_TIMEOUT`, `_CERTIFICATE`, `_PROTOCOL` (`http/protobuf` alone; each also as "
    "`OTEL_EXPORTER_OTLP_TRACES_...`) | as OpenTelemetry has them |\n"
    "| `RATE_LIMIT_ON_STORE_FAILURE` | `closed` (by default) or `open` |\n"
    "\n"
    "Variables of parts that do not exist yet (`FGA_*`, `AUTH0_CLIENT_ID` ...) refuse the "
    "start when set.\n";

/* ---- one row ------------------------------------------------------------------------------------- */

static const char *type_name(const struct sz_field *f)
{
    switch (f->type) {
    case SZ_F_BOOL:
        return "true or false";
    case SZ_F_COUNT:
        return "number";
    case SZ_F_SIZE:
        return "size";
    case SZ_F_SPAN:
        return "duration";
    case SZ_F_ENUM:
        return "one of";
    case SZ_F_TEXT:
        return "text";
    case SZ_F_FILE:
        return "file";
    case SZ_F_TEXT_OR_FILE:
        return "file or block of text";
    case SZ_F_SECRET:
        return "secret file";
    case SZ_F_TEXTS:
        return (f->flags & SZ_FIELD_ONE) != 0 ? "one or a list" : "list";
    case SZ_F_TEXT_MAP:
        return "names with a value";
    case SZ_F_TEXTS_MAP:
        return "names with a value or a list";
    case SZ_F_OBJECT:
        return "mapping";
    case SZ_F_LIST:
        return "list of mappings";
    case SZ_F_MAP:
        return "named mappings";
    case SZ_F_LATER:
        break;
    }
    return "";
}

static void range(const struct sz_field *f, struct sz_buf *out)
{
    if (f->type == SZ_F_COUNT || f->type == SZ_F_SIZE || f->type == SZ_F_SPAN) {
        sz_buf_adds(out, SZ_S(", "));
        sz_field_print(f, f->min, out);
        sz_buf_adds(out, SZ_S(" to "));
        sz_field_print(f, f->max, out);
    } else if (f->type == SZ_F_TEXTS || f->type == SZ_F_TEXT_MAP || f->type == SZ_F_TEXTS_MAP || f->type == SZ_F_LIST ||
               f->type == SZ_F_MAP) {
        sz_buf_printf(out, ", up to %" PRIu64, f->max);
    } else if (f->type == SZ_F_ENUM) {
        bool first = true;
        for (const struct sz_choice *c = f->choices; c->name != NULL; c++) {
            if (!c->later)
                sz_buf_printf(out, "%s`%s`", first ? " " : ", ", c->name);
            first = false;
        }
    }
}

static void row(const struct sz_field *f, struct sz_buf *out)
{
    sz_buf_printf(out, "| `%s` | %s", f->name, type_name(f));
    range(f, out);
    if ((f->flags & SZ_FIELD_REQUIRED) != 0)
        sz_buf_adds(out, SZ_S(" | **required**"));
    else if (f->def != NULL)
        sz_buf_printf(out, " | `%s`", f->def);
    else
        sz_buf_adds(out, SZ_S(" | "));
    sz_buf_printf(out, " | %s%s |\n", f->help, (f->flags & SZ_FIELD_RESTART) != 0 ? ". *Needs a restart*" : "");
}

/* ---- one mapping ----------------------------------------------------------------------------------- */

static void later(const struct sz_object *object, struct sz_buf *out)
{
    bool first = true;
    for (const struct sz_field *f = object->fields; f->name != NULL; f++) {
        if (f->type != SZ_F_LATER)
            continue;
        sz_buf_printf(out, "%s`%s`", first ? "\nNot in this version, and refused: " : ", ", f->name);
        first = false;
    }
    if (!first)
        sz_buf_adds(out, SZ_S(".\n"));
}

static void section(const char *path, const struct sz_object *object, struct sz_buf *out)
{
    sz_buf_printf(out, "\n## %s\n\n| Key | Value | Default | Meaning |\n|---|---|---|---|\n", path);
    for (const struct sz_field *f = object->fields; f->name != NULL; f++) {
        if (f->type != SZ_F_LATER)
            row(f, out);
    }
    later(object, out);
    for (const struct sz_field *f = object->fields; f->name != NULL; f++) {
        struct sz_text below;
        if (f->object == NULL)
            continue;
        sz_text_set(&below, "%s%s%s%s", object == &sz_schema ? "" : path, object == &sz_schema ? "" : ".", f->name,
                    f->type == SZ_F_LIST  ? "[]"
                    : f->type == SZ_F_MAP ? ".NAME"
                                          : "");
        section(below.s, f->object, out);
    }
}

void sz_conf_reference(struct sz_buf *out)
{
    sz_buf_adds(out, sz_slice(head, sizeof(head) - 1));
    section("The file", &sz_schema, out);
    sz_buf_adds(out, sz_slice(tail, sizeof(tail) - 1));
}

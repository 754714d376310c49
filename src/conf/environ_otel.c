/*
 * OpenTelemetry's own variables, for a configuration from the environment: the YAML lines that say the same.  They are
 * shared with other programs, so only what names a collector turns traces on, and a value that this gateway cannot
 * follow is a mistake only then.
 */
#include <strings.h>

#include "conf/environ.h"

static const char *either(const char *special, const char *general)
{
    const char *value = sz_environ_get(special);
    return value != NULL ? value : sz_environ_get(general);
}

static void wrong(struct sz_environ *t, const char *name, const char *value, const char *remedy)
{
    sz_mistakes_add(t->m, SZ_S("environment"), 0, 0, false, "%s is '%.100s': %s", name, value, remedy);
}

/* What is meant for all signals gets the path of this one; what is meant for traces is taken as it is. */
static void endpoint(struct sz_environ *t, const char *special, const char *general)
{
    struct sz_text url;
    size_t n = special == NULL ? strlen(general) : 0;
    while (n > 0 && general[n - 1] == '/')
        n--;
    if (special != NULL)
        sz_text_set(&url, "%s", special);
    else
        sz_text_set(&url, "%.*s/v1/traces", (int)n, general);
    sz_environ_line(t, special != NULL ? "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT" : "OTEL_EXPORTER_OTLP_ENDPOINT",
                    "  endpoint: ", url.s, "");
    /* The scheme decides whether the connection is secure; a key is not sent over one that is not. */
    bool plain = strncmp(url.s, "http://", 7) == 0;
    if (plain && either("OTEL_EXPORTER_OTLP_TRACES_HEADERS", "OTEL_EXPORTER_OTLP_HEADERS") == NULL)
        sz_environ_line(t, NULL, "  insecure_http: true", NULL, "");
}

static void headers(struct sz_environ *t)
{
    static const char *const names[] = {"OTEL_EXPORTER_OTLP_TRACES_HEADERS", "OTEL_EXPORTER_OTLP_HEADERS"};
    for (size_t i = 0; i < SZ_COUNT(names); i++) {
        struct sz_text from;
        if (sz_environ_get(names[i]) == NULL)
            continue;
        sz_text_set(&from, "env:%s", names[i]);
        sz_environ_line(t, names[i], "  headers_file: ", from.s, "");
        return;
    }
}

static void protocol(struct sz_environ *t)
{
    const char *value = either("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL");
    if (value != NULL && strcmp(value, "http/protobuf") != 0)
        wrong(t, "OTEL_EXPORTER_OTLP_PROTOCOL", value, "http/protobuf is what this gateway speaks; unset it");
}

static void sampler(struct sz_environ *t)
{
    static const struct {
        const char *name, *sample; /* NULL: the argument's */
        bool parent_based;
    } samplers[] = {
        {"always_on", "all", false},
        {"always_off", "none", false},
        {"traceidratio", NULL, false},
        {"parentbased_always_on", "all", true},
        {"parentbased_always_off", "none", true},
        {"parentbased_traceidratio", NULL, true},
    };
    const char *name = sz_environ_get("OTEL_TRACES_SAMPLER"), *share = sz_environ_get("OTEL_TRACES_SAMPLER_ARG");
    for (size_t i = 0; name != NULL && i < SZ_COUNT(samplers); i++) {
        if (strcmp(samplers[i].name, name) != 0)
            continue;
        const char *sample = samplers[i].sample != NULL ? samplers[i].sample : share != NULL ? share : "all";
        sz_environ_line(t, samplers[i].sample != NULL ? "OTEL_TRACES_SAMPLER" : "OTEL_TRACES_SAMPLER_ARG",
                        "  sample: ", sample, "");
        if (!samplers[i].parent_based)
            sz_environ_line(t, NULL, "  parent_based: false", NULL, "");
        return;
    }
    if (name != NULL)
        wrong(t, "OTEL_TRACES_SAMPLER", name,
              "always_on, always_off, traceidratio, or parentbased_ before one of them");
}

/* Milliseconds. */
static void timeout(struct sz_environ *t)
{
    const char *ms = either("OTEL_EXPORTER_OTLP_TRACES_TIMEOUT", "OTEL_EXPORTER_OTLP_TIMEOUT");
    struct sz_text span;
    if (ms == NULL)
        return;
    sz_text_set(&span, "%sms", ms);
    sz_environ_line(t, "OTEL_EXPORTER_OTLP_TIMEOUT", "  timeout: ", span.s, "");
}

static int hex(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : (c | 32) >= 'a' && (c | 32) <= 'f' ? (c | 32) - 'a' + 10 : -1;
}

static void percent_decode(struct sz_slice s, struct sz_text *out)
{
    size_t n = 0;
    for (size_t i = 0; i < s.n && n + 1 < sizeof(out->s); i++) {
        bool coded = s.p[i] == '%' && i + 2 < s.n && hex(s.p[i + 1]) >= 0 && hex(s.p[i + 2]) >= 0;
        out->s[n++] = coded ? (char)(hex(s.p[i + 1]) << 4 | hex(s.p[i + 2])) : s.p[i];
        i += coded ? 2 : 0;
    }
    out->s[n] = '\0';
}

/* "key=value,key=value", values percent-encoded: the line is written in flow style, quoted by the dump. */
static void resource(struct sz_environ *t)
{
    const char *text = sz_environ_get("OTEL_RESOURCE_ATTRIBUTES");
    struct sz_slice rest = sz_cstr(text != NULL ? text : ""), pair;
    bool begun = false;
    while (rest.n > 0 && sz_split(&rest, ',', &pair)) {
        ptrdiff_t equals = sz_find_byte(pair, '=');
        struct sz_text key, value, before;
        if (equals <= 0) {
            wrong(t, "OTEL_RESOURCE_ATTRIBUTES", text, "key=value pairs between commas");
            return;
        }
        percent_decode(sz_trim(sz_sub(pair, 0, (size_t)equals)), &key);
        percent_decode(sz_trim(sz_from(pair, (size_t)equals + 1)), &value);
        if (value.s[0] == '\0' || (strcmp(key.s, "service.name") == 0 && sz_environ_get("OTEL_SERVICE_NAME") != NULL))
            continue;
        if (strcmp(key.s, "service.name") == 0) {
            sz_environ_line(t, "OTEL_RESOURCE_ATTRIBUTES", "  service_name: ", value.s, "");
            continue;
        }
        t->pairs++;
        sz_text_set(&before, "    \"%s\": ", key.s);
        if (strpbrk(key.s, "\"\\\n") != NULL || t->pairs > SZ_ENVIRON_PAIRS) {
            wrong(t, "OTEL_RESOURCE_ATTRIBUTES", key.s, "at most 16 attributes, their names without quotes");
            return;
        }
        if (!begun)
            sz_environ_line(t, NULL, "  resource:", NULL, "");
        begun = true;
        sz_environ_line(t, "OTEL_RESOURCE_ATTRIBUTES", before.s, value.s, "");
    }
}

static bool is_off(struct sz_environ *t)
{
    const char *disabled = sz_environ_get("OTEL_SDK_DISABLED"), *exporter = sz_environ_get("OTEL_TRACES_EXPORTER");
    if (disabled != NULL && strcasecmp(disabled, "true") == 0)
        return true;
    if (exporter != NULL && strcmp(exporter, "none") == 0)
        return true;
    if (exporter != NULL && strcmp(exporter, "otlp") != 0)
        wrong(t, "OTEL_TRACES_EXPORTER", exporter, "otlp or none");
    return false;
}

void sz_environ_otel(struct sz_environ *t)
{
    const char *special = sz_environ_get("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT");
    const char *general = sz_environ_get("OTEL_EXPORTER_OTLP_ENDPOINT");
    if ((special == NULL && general == NULL) || is_off(t))
        return;
    sz_environ_line(t, NULL, "tracing:", NULL, "");
    endpoint(t, special, general);
    headers(t);
    protocol(t);
    sampler(t);
    timeout(t);
    const char *name = sz_environ_get("OTEL_SERVICE_NAME");
    const char *ca = either("OTEL_EXPORTER_OTLP_TRACES_CERTIFICATE", "OTEL_EXPORTER_OTLP_CERTIFICATE");
    if (name != NULL)
        sz_environ_line(t, "OTEL_SERVICE_NAME", "  service_name: ", name, "");
    if (ca != NULL)
        sz_environ_line(t, "OTEL_EXPORTER_OTLP_CERTIFICATE", "  ca_file: ", ca, "");
    resource(t);
}

/* A configuration from environment variables. */
#include "conf_test.h"

#include "subzero/router.h"

static void good(void)
{
    setenv("AUTH0_DOMAIN", "tenant.auth0.com", 1);
    setenv("AUTH0_AUDIENCE", "https://api.example.com", 1);
    setenv("AUTH0_JWKS_FILE", conf_write("jwks.json", "{\"keys\": []}", 0644), 1);
    setenv("UPSTREAM_URL", "http://127.0.0.1:9000", 1);
}

static void environment(struct conf_try *t)
{
    sz_mistakes_init(&t->m);
    t->conf = sz_conf_load_environment(&t->m);
    cr_assert_eq(t->conf == NULL, t->m.errors > 0);
}

Test(environ, what_is_missing_or_wrong_is_named)
{
    static const struct {
        const char *name, *value, *says;
    } cases[] = {
        {"AUTH0_DOMAIN", NULL, "AUTH0_DOMAIN is not set"},
        {"AUTH0_DOMAIN", "", "AUTH0_DOMAIN is not set"},
        {"AUTH0_DOMAIN", "https://tenant.auth0.com/", "the domain alone"},
        {"AUTH0_AUDIENCE", NULL, "AUTH0_AUDIENCE is not set"},
        {"AUTH0_JWKS_FILE", "/none", "AUTH0_JWKS_FILE: 'jwks_file': cannot read '/none'"},
        {"UPSTREAM_URL", NULL, "UPSTREAM_URL is not set"},
        {"UPSTREAM_URL", "nowhere", "UPSTREAM_URL: 'nowhere' is no upstream url"},
        {"PORT", "http", "PORT: '0.0.0.0:http' is no address"},
        {"PORT", "8080}]\nworkers: 9", "PORT: "},
        {"WORKERS", "some", "WORKERS: 'workers' is 'some'"},
        {"CACHE_CAPACITY", "500001", "CACHE_CAPACITY: 'capacity' is 500001; the most is 500000"},
        {"REDIS_URL", "redis://x", "CACHE_KEY_FILE is not set"},
        {"REDIS_MAX_CONNECTIONS", "8", "REDIS_URL is not set"},
        {"RATE_LIMIT_REQUESTS", "many", "RATE_LIMIT_REQUESTS: 'limit': 'many' is no whole number"},
        {"RATE_LIMIT_WINDOW", "1x", "RATE_LIMIT_WINDOW: 'window': '1x' has an unknown unit"},
        {"RATE_LIMIT_ON_STORE_FAILURE", "no", "RATE_LIMIT_ON_STORE_FAILURE: 'on_store_failure' is 'no'"},
        {"FGA_API_URL", "https://x", "this mode needs 'store_id'"},
        {"FGA_STORE_ID", "01ARZ3NDEKTSV4RRFFQ69G5FAV", "FGA_API_URL is not set"},
        {"AUTH0_CLIENT_SECRET", "x", "AUTH0_CLIENT_SECRET is not available in this version"},
    };
    for (size_t i = 0; i < SZ_COUNT(cases); i++) {
        struct conf_try t;
        good();
        if (cases[i].value == NULL)
            unsetenv(cases[i].name);
        else
            setenv(cases[i].name, cases[i].value, 1);
        environment(&t);
        cr_expect(conf_has(&t, 0, 0, cases[i].says), "%s=%s: %s", cases[i].name, cases[i].value, conf_messages(&t));
        for (size_t k = 0; k < t.m.n; k++)
            cr_expect(t.m.v[k].line == 0 && sz_eq(t.m.v[k].file, SZ_S("environment")));
        conf_done(&t);
        unsetenv(cases[i].name);
    }
}

Test(environ, one_guarded_route_for_everything)
{
    struct conf_try t;
    struct sz_route_match m;
    good();
    setenv("PORT", "3000", 1);
    setenv("WORKERS", "2", 1);
    setenv("CACHE_CAPACITY", "1000", 1);
    environment(&t);
    cr_assert_not_null(t.conf, "%s", conf_messages(&t));
    cr_expect(sz_eq(t.conf->source, SZ_S("environment")));
    cr_expect(sz_eq(t.conf->listeners[0].address, SZ_S("0.0.0.0:3000")));
    cr_expect_eq(t.conf->workers, 2);
    cr_expect_eq(t.conf->cache.capacity, 1000);
    cr_expect(sz_eq(t.conf->issuers[0].issuer, SZ_S("https://tenant.auth0.com/")));
    cr_expect_eq(t.conf->issuers[0].algorithms, 1u << SZ_ALG_RS256);
    cr_expect(sz_eq(t.conf->issuers[0].audiences.v[0], SZ_S("https://api.example.com")));
    cr_expect(sz_router_match(t.conf->router, SZ_S("any"), SZ_S("/any/path"), SZ_S("DELETE"), &m));
    cr_expect(!m.route->is_public && m.route->issuers_n == 1);
    conf_done(&t);
}

Test(environ, a_redis)
{
    struct conf_try t;
    good();
    setenv("WORKERS", "2", 1);
    setenv("REDIS_URL", "redis://me:a\"b%40@redis.example/2", 1);
    setenv("REDIS_MAX_CONNECTIONS", "16", 1);
    setenv("CACHE_KEY_FILE", conf_write("fleet.key", "MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE=\n", 0600), 1);
    environment(&t);
    cr_assert_not_null(t.conf, "%s", conf_messages(&t));
    const struct sz_conf_redis *r = &t.conf->redis;
    cr_expect(r->on && r->max_connections == 16 && r->database == 2 && r->key.value.n == 32);
    cr_expect(sz_eq(r->password.value, SZ_S("a\"b@")) && sz_eq(r->shown, SZ_S("redis://redis.example:6379")));
    conf_done(&t);
    setenv("REDIS_MAX_CONNECTIONS", "1", 1);
    environment(&t);
    cr_expect(conf_has(&t, 0, 0, "REDIS_MAX_CONNECTIONS: fewer 'max_connections' (1) than workers (2)"), "%s",
              conf_messages(&t));
    conf_done(&t);
}

Test(environ, keys_are_discovered_where_no_file_has_them)
{
    struct conf_try t;
    good();
    environment(&t);
    cr_assert_not_null(t.conf, "%s", conf_messages(&t));
    cr_expect(!sz_issuer_fetches(&t.conf->issuers[0]));
    conf_done(&t);
    unsetenv("AUTH0_JWKS_FILE");
    setenv("STATE_DIR", "/var/lib/subzero", 1);
    environment(&t);
    cr_assert_not_null(t.conf, "%s", conf_messages(&t));
    cr_expect(t.conf->issuers[0].discover && t.conf->issuers[0].discovery.p == NULL);
    cr_expect(sz_eq(t.conf->state_dir, SZ_S("/var/lib/subzero")));
    conf_done(&t);
}

/* What a variable holds is a value, ${...} and quotes included. */
Test(environ, values_are_not_expanded_again)
{
    struct conf_try t;
    good();
    setenv("SZ_SECRET", "secret", 1);
    setenv("AUTH0_AUDIENCE", "a\"${SZ_SECRET}", 1);
    environment(&t);
    cr_assert_not_null(t.conf, "%s", conf_messages(&t));
    cr_expect(sz_eq(t.conf->issuers[0].audiences.v[0], SZ_S("a\"${SZ_SECRET}")));
    conf_done(&t);
}

Test(environ, a_remote_store_with_its_secret)
{
    struct conf_try t;
    good();
    setenv("FGA_API_URL", "https://api.us1.fga.dev/", 1);
    setenv("FGA_STORE_ID", "01ARZ3NDEKTSV4RRFFQ69G5FAV", 1);
    setenv("FGA_MODEL_ID", "01ARZ3NDEKTSV4RRFFQ69G5FAW", 1);
    setenv("FGA_CLIENT_ID", "gateway", 1);
    setenv("FGA_CLIENT_SECRET", "${HOME}", 1);
    setenv("FGA_API_TOKEN_ISSUER", "auth.fga.dev", 1);
    setenv("FGA_RELATION", "viewer", 1);
    setenv("FGA_OBJECT", "api:all", 1);
    environment(&t);
    cr_assert_not_null(t.conf, "%s", conf_messages(&t));
    const struct sz_conf_fga_remote *remote = &t.conf->fga.remote;
    cr_expect_eq(t.conf->fga.mode, SZ_FGA_REMOTE);
    cr_expect(sz_eq(remote->api_url, SZ_S("https://api.us1.fga.dev")));
    cr_expect(sz_eq(remote->token_url, SZ_S("https://auth.fga.dev/oauth/token")));
    cr_expect(sz_eq(remote->audience, SZ_S("https://api.us1.fga.dev/")));
    cr_expect(sz_eq(remote->client_secret.value, SZ_S("${HOME}")), "a value, as it is");
    cr_expect_eq(t.conf->routes[0].checks_n, 1);
    conf_done(&t);
}

/* ---- OpenTelemetry's variables -------------------------------------------------------------------------------------
 */

Test(environ, traces_are_off_until_a_collector_is_named)
{
    struct conf_try t;
    good();
    setenv("OTEL_SERVICE_NAME", "edge", 1);
    setenv("OTEL_TRACES_SAMPLER", "nonsense", 1);
    environment(&t);
    cr_assert_not_null(t.conf);
    cr_expect_not(t.conf->tracing.on);
    conf_done(&t);
    setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:4318", 1);
    setenv("OTEL_SDK_DISABLED", "true", 1);
    environment(&t);
    cr_assert_not_null(t.conf);
    cr_expect_not(t.conf->tracing.on);
    conf_done(&t);
}

Test(environ, opentelemetrys_variables)
{
    struct conf_try t;
    good();
    setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "https://collector.example:4318/base/", 1);
    setenv("OTEL_EXPORTER_OTLP_HEADERS", "x-api-key=s3cret%20key,x-other=1", 1);
    setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "2500", 1);
    setenv("OTEL_SERVICE_NAME", "edge", 1);
    setenv("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment=pro%64,service.name=no, k = v", 1);
    setenv("OTEL_TRACES_SAMPLER", "traceidratio", 1);
    setenv("OTEL_TRACES_SAMPLER_ARG", "0.25", 1);
    environment(&t);
    cr_assert_not_null(t.conf, "%s", conf_messages(&t));
    const struct sz_conf_tracing *c = &t.conf->tracing;
    cr_expect(c->on && sz_eq(c->endpoint, SZ_S("https://collector.example:4318/base/v1/traces")));
    cr_expect(sz_eq(c->service_name, SZ_S("edge")));
    cr_expect(c->sample == UINT64_C(1) << 61 && !c->parent_based);
    cr_expect_eq(c->timeout.us, 2500000);
    cr_assert_eq(c->headers_n, 2);
    cr_expect(sz_eq(c->headers[0].name, SZ_S("x-api-key")) && sz_eq(c->headers[0].value, SZ_S("s3cret key")));
    cr_assert_eq(c->resource_n, 2);
    cr_expect(sz_eq(c->resource[0].value, SZ_S("prod")) && sz_eq(c->resource[1].name, SZ_S("k")));
    struct sz_buf dump = {0};
    sz_conf_dump(t.conf, &dump);
    cr_expect_null(memmem(dump.p, dump.n, "s3cret", 6));
    sz_buf_fini(&dump);
    conf_done(&t);
}

Test(environ, a_traces_endpoint_is_taken_as_it_is)
{
    struct conf_try t;
    good();
    setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "https://other", 1);
    setenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://collector:4318/x", 1); /* its scheme says how */
    environment(&t);
    cr_assert_not_null(t.conf, "%s", conf_messages(&t));
    cr_expect(sz_eq(t.conf->tracing.endpoint, SZ_S("http://collector:4318/x")));
    cr_expect(t.conf->tracing.insecure_http && t.conf->tracing.parent_based);
    conf_done(&t);
}

Test(environ, what_opentelemetry_allows_and_we_do_not)
{
    static const struct {
        const char *name, *value, *says;
    } cases[] = {
        {"OTEL_EXPORTER_OTLP_PROTOCOL", "grpc", "http/protobuf is what"},
        {"OTEL_TRACES_EXPORTER", "zipkin", "otlp or none"},
        {"OTEL_TRACES_SAMPLER", "jaeger_remote", "OTEL_TRACES_SAMPLER is 'jaeger_remote'"},
        {"OTEL_TRACES_SAMPLER_ARG", "7", "OTEL_TRACES_SAMPLER_ARG: 'sample' is '7'"},
        {"OTEL_RESOURCE_ATTRIBUTES", "nonsense", "key=value pairs"},
        {"OTEL_EXPORTER_OTLP_HEADERS", "x-key=s3cret", "is not https"},
        {"OTEL_EXPORTER_OTLP_HEADERS", "content-length=0", "entry 1"},
        {"OTEL_EXPORTER_OTLP_HEADERS", "x=%0d%0aHost: a", "entry 1"},
        {"OTEL_EXPORTER_OTLP_TIMEOUT", "soon", "'timeout'"},
    };
    for (size_t i = 0; i < SZ_COUNT(cases); i++) {
        struct conf_try t;
        good();
        setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://collector:4318", 1);
        setenv("OTEL_TRACES_SAMPLER", "parentbased_traceidratio", 1);
        setenv(cases[i].name, cases[i].value, 1);
        environment(&t);
        cr_expect(conf_has(&t, 0, 0, cases[i].says), "%s=%s: %s", cases[i].name, cases[i].value, conf_messages(&t));
        cr_expect_null(strstr(conf_messages(&t), "s3cret"));
        conf_done(&t);
        unsetenv(cases[i].name);
    }
}

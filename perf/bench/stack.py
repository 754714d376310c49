"""Everything a full gateway asks: a provider that introspects, Redis, an FGA server, an upstream; and the configuration for it.

The supporting servers are on the generator's CPU, the gateway on the other.
"""

import contextlib

from perf.bench import procs, provider
from perf.bench.cells import fga, p6

GATEWAY = """\
listen:
  - {{address: 127.0.0.1:{port}, mode: decide, dialect: nginx}}
admin: {{address: 127.0.0.1:{admin}}}
workers: {workers}
trusted_proxies: [127.0.0.1/32]
log: {{access: off}}
cache: {{l1: {{capacity: {capacity}, ttl: 10m, ttl_opaque: {ttl}}}, l2: {{ttl: {l2}}}, decisions: {{capacity: {decisions}, ttl: 10m, negative_ttl: 10m}}}}
{more}issuers:
  idp:
    issuer: {url}
    audiences: [api]
    introspection: {{endpoint: "{url}/introspect", client_id: gateway, client_secret_file: {scratch}/provider-secret{retries}}}
upstreams:
  documents: {{urls: ["http://127.0.0.1:9"]}}
routes:
  - id: documents.read
    match: {{methods: [GET], path: "/documents/{{id}}"}}
    auth: {{issuers: [idp]}}
{rules}    upstream: documents
"""
REDIS = "redis: {{url: redis://127.0.0.1:{port}, key_file: {key}, timeout: 1s}}\n"
LIMIT = "rate_limits: {wide: {algorithm: token_bucket, capacity: 100000000, refill: 100000000/1s, on_store_failure: open, emergency: 1000000/1s}}\n"
THREAT = "threat: {mode: enforce}\n"
RULE = '    authorize: {user: "user:{claims.sub}", relation: viewer, object: "document:{path.id}"}\n'


def redis_server(bench, log="redis.log"):
    port = procs.free_port()
    argv = ["redis-server", "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--maxmemory-policy", "noeviction"]
    return procs.Server("redis", argv, port, bench.path(log), procs.cpus()[1])


class Fga(procs.Server):
    """Our own engine behind OpenFGA's HTTP API; users user-0 to user-9 may view all documents of cells/fga."""

    def __init__(self, bench):
        ports = {"data": procs.free_port(), "admin": procs.free_port(), "port": procs.free_port()}
        path = bench.write("fga.yaml", p6.GATEWAY.format(**ports))
        super().__init__("fga", [f"{bench.build}/subzero", "serve", "-c", path], ports["port"], bench.path("fga.log"), procs.cpus()[1])

    def __enter__(self):
        super().__enter__()
        self.store, self.model = fga.fill(self.port)
        return self


class Stack:
    """A context manager; yaml() afterwards.  parts: any of "redis", "limit", "threat", "fga" (remote)."""

    def __init__(self, bench, parts):
        self.bench, self.parts = bench, parts
        self.running = contextlib.ExitStack()
        self.redis = self.fga = self.provider = None

    def __enter__(self):
        with contextlib.ExitStack() as starting:
            self.provider = starting.enter_context(provider.Provider(self.bench, procs.cpus()[1]))
            if "redis" in self.parts:
                self.redis = starting.enter_context(redis_server(self.bench))
            if "fga" in self.parts:
                self.fga = starting.enter_context(Fga(self.bench))
            self.running = starting.pop_all()
        return self

    def __exit__(self, *_):
        self.running.close()

    def yaml(self, port, admin, workers=1, capacity=50000, ttl="10m", l2="5m", decisions=100000, more="", retries=""):
        if self.redis:
            more += REDIS.format(port=self.redis.port, key=self.bench.write("fleet.key", self.bench.run(self.bench.gateway, "key", "new")))
        if self.fga:
            more += f'fga: {{mode: remote, api_url: "http://127.0.0.1:{self.fga.port}", store_id: {self.fga.store}, model_id: {self.fga.model}}}\n'
        more += (LIMIT if "limit" in self.parts else "") + (THREAT if "threat" in self.parts else "")
        rules = (RULE if self.fga or "rule" in self.parts else "") + ("    rate_limit: wide\n" if "limit" in self.parts else "")
        return GATEWAY.format(port=port, admin=admin, workers=workers, capacity=capacity, ttl=ttl, l2=l2, decisions=decisions, more=more,
                              rules=rules, url=self.provider.url, scratch=self.bench.scratch, retries=retries)

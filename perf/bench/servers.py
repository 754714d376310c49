"""The programs on both sides: the gateway with its keys and tokens, bare h2o, nginx."""

import json
import os
import subprocess

from perf.bench import procs

ISSUER, AUDIENCE, SCOPE = "https://bench.example/", "https://api.bench.example", "read:documents"
PUBLIC_JWK = ("kty", "kid", "alg", "use", "n", "e", "crv", "x", "y")


class Bench:
    """Where one run happens: a scratch folder and the build that is measured."""

    def __init__(self, root, build, scratch, say):
        self.root, self.build, self.scratch, self.say = root, build, scratch, say
        self.gateway = os.path.join(build, "subzero")

    def path(self, name):
        return os.path.join(self.scratch, name)

    def write(self, name, text):
        with open(self.path(name), "w", encoding="utf-8") as f:
            f.write(text)
        return self.path(name)

    def run(self, *argv):
        done = subprocess.run(argv, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise RuntimeError(f"{' '.join(argv[:4])} ... exited {done.returncode}: {done.stderr.strip()}")
        return done.stdout

    def issuer(self, alg="RS256"):
        """A key, its public set, and a function that makes tokens."""
        key = self.write("key.jwk", self.run(self.gateway, "key", "new", "--jwk", alg))
        with open(key, encoding="utf-8") as f:
            jwk = json.load(f)
        self.write("jwks.json", json.dumps({"keys": [{k: jwk[k] for k in PUBLIC_JWK if k in jwk}]}))

        def mint(subject):
            return self.run(self.gateway, "token", "mint", "--key", key, "--alg", alg, "--iss", ISSUER, "--aud", AUDIENCE,
                            "--sub", subject, "--scope", SCOPE, "--ttl", "6h").strip()
        return mint

    def tokens(self, n, alg="RS256"):
        mint = self.issuer(alg)
        return [mint(f"user-{i}") for i in range(n)]

    def fresh_tokens(self, n, prefix, alg="RS256"):
        """Many of them in one go, after issuer(alg)."""
        out = self.run(os.path.join(self.build, "perf", "mint_tokens"), self.path("key.jwk"), alg, str(n), ISSUER, AUDIENCE,
                       SCOPE, prefix).split()
        if len(set(out)) != n:
            raise RuntimeError(f"{len(set(out))} different tokens, not {n}")
        return out

    def subzero(self, configuration, port, cpu=procs.cpus()[0]):
        """On the servers' CPU; cpu=None: wherever it likes, for more than one worker."""
        path = self.write("subzero.yaml", configuration)
        self.run(self.gateway, "check", "-c", path)
        return procs.Server("subzero", [self.gateway, "serve", "-c", path], port, self.path("subzero.log"), cpu)

    def bare(self, name, *args, cpu=None):
        """bare_h2o with one thread; the port comes first."""
        port = procs.free_port()
        argv = [os.path.join(self.build, "perf", "bare_h2o"), str(port), "1", *map(str, args)]
        return procs.Server(name, argv, port, self.path(name + ".log"), procs.cpus()[0] if cpu is None else cpu)

    def upstream(self, size=128):
        """A small body over keep-alive, on the generator's CPU: it is not what is measured."""
        return self.bare("upstream", "hello", size, cpu=procs.cpus()[1])

    def nginx_proxy(self, upstream_port):
        port = procs.free_port()
        path = self.write("nginx.conf", NGINX.format(port=port, upstream=upstream_port, scratch=self.scratch))
        return procs.Server("nginx", ["nginx", "-e", "/dev/null", "-c", path], port, self.path("nginx.log"), procs.cpus()[0])


NGINX = """\
daemon off;
user root;
worker_processes 1;
pid {scratch}/nginx.pid;
error_log /dev/null;
events {{ worker_connections 4096; }}
http {{
  access_log off;
  client_body_temp_path {scratch}/nginx-body;
  proxy_temp_path {scratch}/nginx-proxy;
  fastcgi_temp_path {scratch}/nginx-fastcgi;
  uwsgi_temp_path {scratch}/nginx-uwsgi;
  scgi_temp_path {scratch}/nginx-scgi;
  keepalive_requests 1000000000;
  large_client_header_buffers 4 16k;
  upstream up {{
    server 127.0.0.1:{upstream};
    keepalive 128;
    keepalive_requests 1000000000;
  }}
  server {{
    listen 127.0.0.1:{port} backlog=4096;
    location / {{
      proxy_pass http://up;
      proxy_http_version 1.1;
      proxy_set_header Connection "";
      proxy_set_header Host $http_host;
    }}
  }}
}}
"""

# What every configuration here has in common; {listen}, {routes} and {more} differ.
GATEWAY = """\
listen:
{listen}
admin: {{address: 127.0.0.1:{admin}}}
workers: 1
trusted_proxies: [127.0.0.1/32]
log: {{access: off}}
{more}issuers:
  bench:
    issuer: {issuer}
    audiences: ["{audience}"]
    algorithms: [{alg}]
    jwks_file: {scratch}/jwks.json
upstreams:
  documents:
    urls: ["http://127.0.0.1:{upstream}"]
routes:
  - id: documents.read
    match: {{methods: [GET], path: "/documents/{{id}}"}}
    auth: {{issuers: [bench], scopes: ["{scope}"]}}
    upstream: documents
"""


def gateway_yaml(bench, listen, admin, upstream, more="", alg="RS256"):
    return GATEWAY.format(listen=listen, admin=admin, upstream=upstream, more=more, issuer=ISSUER, audience=AUDIENCE,
                          scope=SCOPE, alg=alg, scratch=bench.scratch)

"""What a version leaves behind: state_dir, the audit journal, Redis' data.  tests/deploy/state/VERSION holds it for each
released version, so that later ones are tried on it.

At a release, once: /usr/bin/python3 tests/deploy/kept.py VERSION      (and commit the folder)

The keys in it are for nothing else.
"""
import json
import os
import shutil
import subprocess
import sys
import tempfile

import kit

FOLDER = kit.path("tests/deploy/state")
ISSUER = "https://kept.example/"
CONFIG = """
listen: [{{address: "127.0.0.1:{port}"}}]
admin: {{address: "127.0.0.1:{admin}"}}
workers: 1
state_dir: {folder}/state
audit: {{path: {folder}/audit}}
issuers: {{kept: {{issuer: "{issuer}", audiences: [api], algorithms: [ES256], jwks_file: {folder}/jwks.json}}}}
redis: {{url: "redis://127.0.0.1:{redis}", key_file: {folder}/fleet-key, timeout: 1s}}
fga: {{listen: "127.0.0.1:{fga}"}}
upstreams: {{up: {{urls: ["http://127.0.0.1:{upstream}"]}}}}
routes:
  - {{id: open, match: {{path: "/open/*"}}, auth: {{issuers: [kept]}}, upstream: up}}
  - id: documents
    match: {{path: "/documents/{{id}}"}}
    auth: {{issuers: [kept]}}
    authorize: {{user: "user:{{claims.sub}}", relation: can_view, object: "document:{{path.id}}"}}
    upstream: up
"""


class Kept:
    """A gateway and a Redis over a folder of such data; ended by leaving the context."""

    def __init__(self, folder):
        self.folder = folder
        self.port, self.admin, self.redis, self.fga, self.upstream = (kit.free_port() for _ in range(5))
        self.processes = []
        for name in ("state", "audit"):
            os.makedirs(self.path(name), exist_ok=True)
        for where, _, files in os.walk(folder):       # git keeps no modes
            os.chmod(where, 0o700)
            for name in files:
                os.chmod(os.path.join(where, name), 0o600)
        with open(self.path("subzero.yaml"), "w", encoding="utf-8") as f:
            f.write(CONFIG.format(port=self.port, admin=self.admin, redis=self.redis, fga=self.fga, issuer=ISSUER,
                                  upstream=self.upstream, folder=folder))

    def path(self, name):
        return os.path.join(self.folder, name)

    def start(self, *command):
        with open(self.path(os.path.basename(command[0]) + ".log"), "ab") as log:
            self.processes.append(subprocess.Popen(command, stdout=log, stderr=log, stdin=subprocess.DEVNULL))
        return self.processes[-1]

    def serve(self):
        """The gateway, once it is ready; None when it has refused to start."""
        gateway = self.start(kit.BINARY, "serve", "-c", self.path("subzero.yaml"))
        kit.wait_for("the gateway", lambda: gateway.poll() is not None or kit.ask(self.admin, "/readyz")[0] == 200)
        return gateway if gateway.poll() is None else None

    def end(self, process):
        process.terminate()
        if process.wait(60) < 0:
            raise AssertionError(f"{process.args[0]} ended by a signal")
        self.processes.remove(process)

    def __enter__(self):
        self.start("redis-server", "--port", str(self.redis), "--dir", self.folder, "--dbfilename", "redis.rdb",
                   "--save", "", "--maxmemory-policy", "noeviction")
        self.start(os.path.join(kit.PERF, "fake_upstream"), "--port", str(self.upstream))
        kit.wait_for("Redis", lambda: "PONG" in kit.run("redis-cli", "-p", str(self.redis), "ping").stdout)
        return self

    def __exit__(self, *_):
        for process in reversed(self.processes):
            process.terminate()
        for process in reversed(self.processes):
            try:
                process.wait(30)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def get(self, target, key="signing.jwk", **claims):
        """The status for a fresh token with these claims."""
        options = [o for name, value in claims.items() for o in ("--claim", f"{name}={json.dumps(value)}")]
        token = kit.run(kit.BINARY, "token", "mint", "--key", self.path(key), "--iss", ISSUER, "--aud", "api", *options)
        return kit.ask(self.port, target, headers={"Authorization": "Bearer " + token.stdout.strip()})[0]

    def write(self, name, text):
        with open(self.path(name), "w", encoding="utf-8") as f:
            f.write(text)


def make(kept):
    """Fills an empty folder as a gateway's life does."""
    public = []
    for name in ("signing.jwk", "retired.jwk"):
        kept.write(name, kit.run(kit.BINARY, "key", "new", "--jwk", "ES256").stdout)
        key = json.loads(kit.read(kept.path(name)))
        public.append({member: value for member, value in key.items() if member != "d"})
    kept.write("jwks.json", json.dumps({"keys": public}))
    kept.write("fleet-key", kit.run(kit.BINARY, "key", "new").stdout)
    with kept:
        gateway = kept.serve()

        def fga(target, body):
            status, _, answer = kit.ask(kept.fga, target, "POST", {"Content-Type": "application/json"}, body)
            if status not in (200, 201):
                raise AssertionError(f"{target}: {status} {answer}")
        store = "/stores/00000000000000000000000000"
        fga(f"{store}/authorization-models",
            kit.run(kit.BINARY, "fga", "transform", "--to", "json", "deploy/examples/documents.fga").stdout)
        fga(f"{store}/write", json.dumps({"writes": {"tuple_keys": [
            {"user": "user:alice", "relation": "viewer", "object": "document:roadmap"},
            {"user": "user:carol", "relation": "member", "object": "group:engineering"},
            {"user": "group:engineering#member", "relation": "viewer", "object": "folder:specs"},
            {"user": "folder:specs", "relation": "parent", "object": "document:api"}]}}))
        for kind, value in (("--jti", "stolen"), ("--sid", "left"), ("--kid", public[1]["kid"])):
            result = kit.run(kit.BINARY, "revoke", kind, value, "--issuer", "kept", "--admin", f"127.0.0.1:{kept.admin}")
            if result.returncode != 0:
                raise AssertionError(result.stdout)
        kept.get("/open/a", sub="alice")
        kept.get("/documents/roadmap", sub="bob")
        kept.end(gateway)
        kit.run("redis-cli", "-p", str(kept.redis), "save")


def main(version):
    with tempfile.TemporaryDirectory() as folder:
        make(Kept(folder))
        into = os.path.join(FOLDER, version)
        os.makedirs(into)
        for name in ("signing.jwk", "retired.jwk", "jwks.json", "fleet-key", "redis.rdb"):
            shutil.copy(os.path.join(folder, name), into)
        for name in ("state", "audit"):
            shutil.copytree(os.path.join(folder, name), os.path.join(into, name),
                            ignore=shutil.ignore_patterns("*lock", "*.idx"))   # made again


if __name__ == "__main__":
    main(sys.argv[1])

"""A real Prometheus scrapes a gateway under load: what it collects, by the rules and the dashboard that are deployed."""
import json
import os
import subprocess
import tempfile
import threading
import unittest
import urllib.parse

import kit
import test_dashboard

CONFIG = """
listen: [{{address: "127.0.0.1:{port}"}}]
admin: {{address: "127.0.0.1:{admin}"}}
workers: 2
issuers:
  provider: {{issuer: "http://127.0.0.1:{provider}", audiences: [api], algorithms: [ES256], discovery: auto}}
redis: {{url: "redis://127.0.0.1:{redis}", key_file: {folder}/key}}
fga: {{model: {root}/deploy/examples/documents.fga, tuples: {root}/deploy/examples/documents-tuples.yaml}}
rate_limits: {{few: {{algorithm: token_bucket, capacity: 5, refill: 0/1s, on_store_failure: closed}}}}
threat: {{mode: dry_run}}
audit: {{path: {folder}/audit}}
upstreams: {{up: {{urls: ["http://127.0.0.1:{upstream}"]}}}}
routes:
  - {{id: hello, match: {{path: "/public/*"}}, public: true, upstream: up}}
  - id: documents
    match: {{path: "/documents/{{id}}"}}
    auth: {{issuers: [provider]}}
    authorize: {{user: "user:{{claims.sub}}", relation: can_view, object: "document:{{path.id}}"}}
    upstream: up
  - {{id: limited, match: {{path: /limited}}, auth: {{issuers: [provider]}}, rate_limit: few, upstream: up}}
"""
# What only other configurations have: TLS, several instances, a remote store.
ELSEWHERE = {"subzero_certificate_expiry_timestamp_seconds", "subzero_revocation_propagation_seconds_bucket"}


class Prometheus(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        kit.needs("prometheus", "promtool", "redis-server", kit.BINARY, os.path.join(kit.PERF, "fake_provider"))
        folder = cls.enterClassContext(tempfile.TemporaryDirectory())
        cls.folder = folder
        cls.port, cls.admin, provider, redis, upstream, cls.prometheus = (kit.free_port() for _ in range(6))
        cls.provider = provider
        cls.write("key", kit.run(kit.BINARY, "key", "new").stdout)
        cls.write("subzero.yaml", CONFIG.format(port=cls.port, admin=cls.admin, provider=provider, redis=redis,
                                                upstream=upstream, folder=folder, root=kit.ROOT))
        # The scrape configuration as it is deployed, faster and at these ports.
        text = kit.read("deploy/prometheus/prometheus.yml").replace("gateway:9901", f"127.0.0.1:{cls.admin}")
        text = text.replace(": 5s", ": 2s").replace("recording.yml", kit.path("deploy/prometheus/recording.yml"))
        cls.write("prometheus.yml", text.replace("alerts.yml", kit.path("deploy/prometheus/alerts.yml")))
        cls.start("redis-server", "--port", str(redis), "--save", "", "--dir", folder, "--maxmemory-policy", "noeviction")
        cls.start(os.path.join(kit.PERF, "fake_provider"), "--port", str(provider), "--quiet")
        cls.start(os.path.join(kit.PERF, "fake_upstream"), "--port", str(upstream))
        kit.wait_for("the provider", lambda: kit.ask(provider, "/jwks")[0] == 200)
        cls.start(kit.BINARY, "serve", "-c", os.path.join(folder, "subzero.yaml"))
        kit.wait_for("the gateway", lambda: kit.ask(cls.admin, "/readyz")[0] == 200)
        cls.start("prometheus", f"--config.file={folder}/prometheus.yml", f"--storage.tsdb.path={folder}/tsdb",
                  f"--web.listen-address=127.0.0.1:{cls.prometheus}")
        kit.wait_for("Prometheus", lambda: kit.ask(cls.prometheus, "/-/ready")[0] == 200)

    @classmethod
    def write(cls, name, text):
        with open(os.path.join(cls.folder, name), "w", encoding="utf-8") as f:
            f.write(text)
        os.chmod(f.name, 0o600)

    @classmethod
    def start(cls, *command):
        log = cls.enterClassContext(open(os.path.join(cls.folder, os.path.basename(command[0]) + ".log"), "wb"))
        process = subprocess.Popen(command, stdout=log, stderr=log, stdin=subprocess.DEVNULL)

        def end():
            process.terminate()
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        kit.at_end(cls, end)

    def data(self, target, **query):
        answer = kit.ask(self.prometheus, f"/api/v1/{target}?{urllib.parse.urlencode(query)}")[2]
        return json.loads(answer)["data"]

    def value(self, expression):
        found = self.data("query", query=expression)["result"]
        return float(found[0]["value"][1]) if found else None

    def load(self):
        """From four clients at once; how many requests."""
        tokens = [json.loads(kit.ask(self.provider, "/control/token", "POST", body=json.dumps({"sub": s}))[2])["token"]
                  for s in ("alice", "bob")]

        def client():
            for i in range(100):
                for target in ("/public/a", "/documents/roadmap", "/limited"):
                    headers = {} if target == "/public/a" else {"Authorization": f"Bearer {tokens[i % 2]}"}
                    kit.ask(self.port, target, headers=headers)
        clients = [threading.Thread(target=client) for _ in range(4)]
        for thread in clients:
            thread.start()
        for thread in clients:
            thread.join()
        return 4 * 100 * 3

    def test_what_it_collects_is_what_happened(self):
        kit.wait_for("the first scrape", lambda: self.value("sum(subzero_requests_total)") is not None
                     or self.value('up{job="subzero"}') == 1)
        sent = self.load()
        kit.wait_for("all requests seen", lambda: self.value("sum(subzero_requests_total)") == sent, 20)
        self.assertEqual(self.value('sum(subzero_requests_total{route="documents", decision="allow"})'), 200)
        self.assertEqual(self.value('sum(subzero_requests_total{route="documents", reason="not_permitted"})'), 200)
        # Five for each of the two; a Redis that answers late on a busy machine may have spent one for nobody.
        self.assertIn(self.value('sum(subzero_requests_total{route="limited", decision="allow"})'), range(1, 11))
        self.assertGreaterEqual(self.value('sum_over_time(up{job="subzero"}[5m])'), 2)
        groups = kit.wait_for("rules evaluated", lambda: [g for g in self.data("rules")["groups"] if all(
            rule["health"] == "ok" for rule in g["rules"])], 20)
        self.assertEqual({alert["labels"]["alertname"] for alert in self.data("alerts")["alerts"]
                          if alert["state"] == "firing"}, set())
        self.assertGreater(sum(len(g["rules"]) for g in groups), 10)
        kit.wait_for("a ratio of hits", lambda: (self.value("job:subzero_token_hits:ratio_rate5m") or 0) > 0.9, 20)
        self.assertLess(self.value("job:subzero_decision_seconds:p95_5m"), 10)

        for title, expression in test_dashboard.expressions():
            with self.subTest(title):
                self.assertEqual(json.loads(kit.ask(self.prometheus, "/api/v1/query?" + urllib.parse.urlencode(
                    {"query": expression}))[2])["status"], "success")
                for name, _ in kit.SELECTOR.findall(expression):
                    if name not in ELSEWHERE and not name.startswith("subzero_errors"):
                        self.assertIsNotNone(self.value(f"count({name})"), f"{name} was never scraped")

    def test_promtool_finds_nothing_to_say(self):
        text = kit.ask(self.admin, "/metrics")[2]
        result = kit.run("promtool", "check", "metrics", stdin=text)
        self.assertEqual((result.returncode, result.stdout), (0, ""))

"""The slow side of opaque tokens: the fake provider as a program, told what to do, and a gateway that asks it."""

import http.client
import json
import os
import urllib.request

from perf.bench import procs

CLIENT_SECRET = "s3cret+/:%"  # of tests/fake/provider.h


class Provider(procs.Server):
    def __init__(self, bench, cpu=None):
        port = procs.free_port()
        argv = [os.path.join(bench.build, "perf", "fake_provider"), "--port", str(port), "--quiet"]
        super().__init__("fake_provider", argv, port, bench.path("provider.log"), cpu)
        self.url = f"http://127.0.0.1:{port}"
        bench.write("provider-secret", CLIENT_SECRET)

    def control(self, verb, body=None):
        data = json.dumps(body).encode() if body is not None else None
        with urllib.request.urlopen(f"{self.url}/control/{verb}", data, 10) as answer:
            return json.load(answer)

    def calls(self):
        return self.control("calls")["introspect"]

    def slow(self, milliseconds):
        self.control("script", {"endpoint": "introspect", "latency_ms": milliseconds})

    def wobbly(self, least_ms, most_ms, one_in):
        """Answers take anything between the two; one in so many is a 503."""
        self.control("script", {"endpoint": "introspect", "fault": "status" if one_in else "well", "status": 503,
                                "latency_ms": least_ms, "latency_to_ms": most_ms, "one_in": one_in})

    def token(self, subject, ttl=3600):
        return self.control("token", {"format": "opaque", "sub": subject, "ttl": ttl})["token"]

    def tokens(self, n, prefix):
        return self.tokens_of([f"{prefix}-{i}" for i in range(n)])

    def tokens_of(self, subjects):
        """One each, over a kept connection: some scenarios want thousands."""
        connection, out = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10), []
        for subject in subjects:
            connection.request("POST", "/control/token", json.dumps({"format": "opaque", "sub": subject, "ttl": 7200}))
            out.append(json.load(connection.getresponse())["token"])
        connection.close()
        return out


GATEWAY = """\
listen:
  - {{address: 127.0.0.1:{port}, mode: decide, dialect: nginx}}
admin: {{address: 127.0.0.1:{admin}}}
workers: {workers}
trusted_proxies: [127.0.0.1/32]
log: {{access: off}}
cache: {{l1: {{ttl_opaque: {ttl}}}}}
issuers:
  idp:
    issuer: {url}
    audiences: [api]
    introspection: {{endpoint: "{url}/introspect", client_id: gateway, client_secret_file: {scratch}/provider-secret}}
upstreams:
  documents: {{urls: ["http://127.0.0.1:9"]}}
routes:
  - id: documents.read
    match: {{methods: [GET], path: "/documents/{{id}}"}}
    auth: {{issuers: [idp]}}
    upstream: documents
"""


def gateway_yaml(bench, provider, port, workers, ttl):
    return GATEWAY.format(port=port, admin=procs.free_port(), workers=workers, ttl=ttl, url=provider.url, scratch=bench.scratch)

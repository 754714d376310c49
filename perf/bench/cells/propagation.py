"""How fast a revocation is everywhere: two instances and one Redis, revoked at one, refused at the other.

From just before POST /revocations is sent to one instance until the other one's answer 401 has come, which is asked again
without a pause and has the token in its cache.  So it includes the call itself, Redis, the announcement, and one request;
what the first instance's 201 takes is beside it.  Left out: whatever a network between the hosts adds.
"""

import http.client
import json
import time

from perf.bench import procs, servers, stats
from perf.bench.cells import l2

NAME = "PROPAGATION"
TITLE = "a revocation at one instance, refused at another: two instances, one Redis"
SMOKE = True
BARS = [
    {"figure": "max_ms", "bar": 100, "beyond": None, "better": "lower", "what": "ms, the longest of all"},
    {"figure": "p99_ms", "bar": 100, "beyond": None, "better": "lower", "what": "ms, 99 of 100"},
    {"figure": "unheard", "bar": 0, "beyond": None, "exact": True, "better": "lower", "what": "revocations that the other one heard of in another way than by an announcement"},
]
GUARDS = [{"figure": "max_ms", "bar": 2000, "better": "lower", "what": "ms, the longest of all"},
          {"figure": "unheard", "bar": 50, "better": "lower", "what": "not by an announcement"}]
COUNT, COUNT_SMOKE = 1000, 50
LIMIT = 10.0  # seconds: then it is no measurement
MORE = "state_dir: {state}\ncache: {{l1: {{ttl: 10m}}}}\nredis: {{url: redis://127.0.0.1:{port}, key_file: {key}, timeout: 1s}}\n"
HEARD = "subzero_revocation_propagation_seconds_count"


def body(turn, token, subject):
    """What is asked for, by turns: the token itself, and its subject."""
    if turn % 2 == 0:
        return json.dumps({"kind": "token", "value": token})
    return json.dumps({"kind": "subject", "issuer": "bench", "value": subject})


class Instance:
    """Two connections that stay open: to its decide listener and to its admin listener."""

    def __init__(self, port, admin):
        self.data = http.client.HTTPConnection("127.0.0.1", port, timeout=LIMIT)
        self.admin = http.client.HTTPConnection("127.0.0.1", admin, timeout=LIMIT)

    def status_of(self, token):
        self.data.request("GET", "/auth", headers={"X-Original-URI": "/documents/roadmap", "X-Original-Method": "GET",
                                                   "Authorization": f"Bearer {token}"})
        answer = self.data.getresponse()
        answer.read()
        return answer.status

    def post(self, text):
        self.admin.request("POST", "/revocations", body=text, headers={"Content-Type": "application/json"})

    def posted(self):
        answer = self.admin.getresponse()
        answer.read()
        return answer.status


def one(here, there, token, text):
    """(ms until the other refuses, ms of the call); None: the token was not let in before, or the call was not answered well."""
    if there.status_of(token) != 200 or there.status_of(token) != 200:
        return None
    begun = time.perf_counter()
    here.post(text)
    while there.status_of(token) != 401:
        if time.perf_counter() - begun > LIMIT:
            return None
    refused = time.perf_counter()
    if here.posted() != 201:
        return None
    return (refused - begun) * 1e3, (time.perf_counter() - begun) * 1e3


def figures(samples, heard):
    """Of (refused, answered) in ms; `heard`: how many of them the other instance says that it heard announced."""
    refused = stats.distribution([sample[0] for sample in samples])
    answered = stats.distribution([sample[1] for sample in samples])
    n = len(samples)
    values = {f"{name}_ms": refused[name] for name in ("p50", "p95", "p99", "max")}
    values |= {"call_p50_ms": answered["p50"], "call_p99_ms": answered["p99"], "unheard": n - heard}
    return {name: {"median": value, "min": value, "max": value, "n": n} for name, value in values.items() if value is not None}


def wait_well(admin):
    end = time.monotonic() + LIMIT
    while time.monotonic() < end:
        connection = http.client.HTTPConnection("127.0.0.1", admin, timeout=LIMIT)
        connection.request("GET", "/health")
        if b'"revocations":{"status":"ok"' in connection.getresponse().read():
            return
        time.sleep(0.05)
    raise RuntimeError("revocations are not heard within 10 s")


def run(bench, options):
    count = COUNT_SMOKE if options.smoke else COUNT
    key = bench.write("fleet.key", bench.run(bench.gateway, "key", "new"))
    bench.issuer("ES256")
    tokens = bench.fresh_tokens(count, "somebody", "ES256")
    samples = []
    with l2.redis_server(bench) as redis:
        ports = [(procs.free_port(), procs.free_port()) for _ in range(2)]
        texts = [servers.gateway_yaml(bench, f"  - {{address: 127.0.0.1:{port}, mode: decide, dialect: nginx}}", admin, 9,
                                      MORE.format(state=bench.path(f"state-{i}"), port=redis.port, key=key), "ES256")
                 for i, (port, admin) in enumerate(ports)]
        with bench.subzero(texts[0], ports[0][0]), bench.subzero(texts[1], ports[1][0]):
            for _, admin in ports:
                wait_well(admin)
            here, there = Instance(*ports[0]), Instance(*ports[1])
            for i, token in enumerate(tokens):
                samples.append(one(here, there, token, body(i, token, f"somebody-{i}")))
            heard = int(l2.metric(ports[1][1], HEARD))
    good = [sample for sample in samples if sample is not None]
    if not good:
        raise RuntimeError("nothing that was revoked was refused")
    return {
        "workload": {"revocations": count, "kinds": ["token", "subject"], "instances": 2, "algorithm": "ES256",
                     "generator": "one thread: the call, then requests one after the other",
                     "placement": "both instances on one CPU, redis-server on the other"},
        "configuration": servers.GATEWAY + MORE,
        "figures": figures(good, heard),
        "pairs": [{"refused_ms": round(refused, 3), "answered_ms": round(answered, 3)} for refused, answered in good],
        "failures": len(samples) - len(good),
    }

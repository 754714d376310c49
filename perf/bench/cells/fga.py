"""Relation checks around the engine: by wire beside the bare HTTP call, in the cache, in the process without it (micro_fga).

Where OpenFGA is (script/peers openfga), also a guarded route over HTTP in front of it, documents below five folders: 95 % of
the questions were asked before, with the decision cache and without it.
"""

import json
import os
import subprocess
import urllib.request

from perf.bench import load, procs, servers, stats

NAME = "FGA"
TITLE = "relation checks: a remote store, the decision cache, a route over HTTP"
BARS = [
    {"figure": "remote_of_call", "bar": 1.3, "beyond": None, "better": "lower", "what": "p50 of a remote check / the bare HTTP call"},
]
CALLS, TOKENS, HOT, COLD, EVERY = 2000, 10, 190, 1000, 20
RULE = '    authorize: {user: "user:{claims.sub}", relation: viewer, object: "document:{path.id}"}\n'
MODE = """\
cache: {{decisions: {{capacity: {capacity}, ttl: 2s}}}}
fga: {{mode: remote, api_url: "http://127.0.0.1:{port}", store_id: {store}, model_id: {model}}}
"""


def micro(bench, repetitions):
    argv = [os.path.join(bench.build, "perf", "micro_fga"), str(repetitions), str(CALLS)]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"micro_fga exited {done.returncode}: {done.stderr.strip()[-500:]}")
    return json.loads(done.stdout)


# ---- the store ----

def direct(*types):
    return {"directly_related_user_types": [dict(zip(("type", "relation"), one.split("#"))) for one in types]}


def from_parent():
    inherited = {"tupleToUserset": {"tupleset": {"relation": "parent"}, "computedUserset": {"relation": "viewer"}}}
    return {"parent": {"this": {}}, "viewer": {"union": {"child": [{"this": {}}, inherited]}}}


MODEL = {"schema_version": "1.1", "type_definitions": [
    {"type": "user"},
    {"type": "group", "relations": {"member": {"this": {}}}, "metadata": {"relations": {"member": direct("user")}}},
    {"type": "folder", "relations": from_parent(),
     "metadata": {"relations": {"parent": direct("folder"), "viewer": direct("user", "group#member")}}},
    {"type": "document", "relations": from_parent(),
     "metadata": {"relations": {"parent": direct("folder"), "viewer": direct("user")}}},
]}


def tuples():
    """Five folders above each document; the group of all users may view the topmost."""
    rows = [(f"folder:{level}", "parent", f"folder:{level + 1}") for level in range(1, 5)]
    rows.append(("group:all#member", "viewer", "folder:1"))
    rows += [(f"user:user-{i}", "member", "group:all") for i in range(TOKENS)]
    rows += [("folder:5", "parent", f"document:{i}") for i in range(HOT + COLD)]
    return [{"user": user, "relation": relation, "object": thing} for user, relation, thing in rows]


def tell(port, path, body):
    request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", json.dumps(body).encode(), {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=30) as answer:
        return json.load(answer)


def fill(port):
    store = tell(port, "/stores", {"name": "bench"})["id"]
    model = tell(port, f"/stores/{store}/authorization-models", MODEL)["authorization_model_id"]
    rows = tuples()
    for at in range(0, len(rows), 100):
        tell(port, f"/stores/{store}/write", {"writes": {"tuple_keys": rows[at:at + 100]}})
    return store, model


def openfga():
    peers = os.environ.get("SUBZERO_PEERS", os.path.expanduser("~/.cache/subzero/peers"))
    program = os.path.join(peers, "openfga")
    return program if os.access(program, os.X_OK) else None


# ---- the route ----

def questions(tokens):
    """One in twenty is about a document that comes back a thousand such questions later."""
    out = []
    for i in range(COLD * EVERY):
        document = HOT + i // EVERY if i % EVERY == 0 else i * 7 % HOT
        out.append(load.decision(tokens[i % TOKENS]).replace(b"/documents/roadmap", b"/documents/%d" % document))
    return out


def gateway(bench, port, more):
    yaml = servers.gateway_yaml(bench, f"  - {{address: 127.0.0.1:{port}, mode: decide, dialect: nginx}}", procs.free_port(), 9, more)
    return bench.subzero(yaml.replace("    upstream: documents\n", RULE + "    upstream: documents\n"), port)


def route(bench, options, program):
    port, grpc, on_port, off_port = (procs.free_port() for _ in range(4))
    requests = questions(bench.tokens(TOKENS))
    load.write_requests(bench.path("requests"), requests)
    argv = [program, "run", "--datastore-engine=memory", "--http-addr", f"127.0.0.1:{port}", "--grpc-addr", f"127.0.0.1:{grpc}",
            "--playground-enabled=false", "--metrics-enabled=false", "--log-level=none"]
    with procs.Server("openfga", argv, port, bench.path("openfga.log")):
        store, model = fill(port)
        more = {name: MODE.format(capacity=capacity, port=port, store=store, model=model) for name, capacity in (("on", 100000), ("off", 0))}
        with gateway(bench, on_port, more["on"]) as on, gateway(bench, off_port, more["off"]) as off:
            for name, server in {"on": on, "off": off}.items():
                for request in requests[:40]:
                    status, answer = load.once(server.port, request)
                    if status != 200:
                        raise RuntimeError(f"{name} does not allow: {answer!r}")
            return load.pairs({"on": on, "off": off}, bench.path("requests"), options, bench)


def run(bench, options):
    figures = micro(bench, max(options.pairs, 5))
    program, good, bad = openfga(), [], []
    if program is None:
        bench.say("  no openfga here (script/peers openfga): no route over HTTP")
    else:
        good, bad = route(bench, options, program)
        figures.update(load.figures(good, "on", "off", "no_cache"))
        for side in ("on", "off"):
            figures[f"{side}_p95_us"] = stats.summary(pair[side]["p95_us"] for pair in good)
    return {
        "workload": {"calls": CALLS, "tokens": TOKENS, "asked_before": 1 - 1 / EVERY, "levels": 5, "store": "OpenFGA in memory",
                     "connections": options.connections, "seconds": options.seconds, "threads": 1, "generator": "wrk -t1"},
        "configuration": servers.GATEWAY + MODE + RULE,
        "figures": figures,
        "pairs": good + bad,
        "failures": len(bad),
    }

"""The same checks over the same HTTP API: the gateway's engine and OpenFGA, both in memory, each on the servers' CPU."""

import http.client
import json
import os

from perf.bench import load, procs, stats

NAME = "P6"
TITLE = "checks over OpenFGA's HTTP API: CPU per check, OpenFGA in memory / ours"
BARS = [
    {"figure": "direct_cpu_ratio", "bar": 10, "beyond": 15, "better": "higher", "what": "direct: OpenFGA's CPU per check / ours"},
    {"figure": "nested_cpu_ratio", "bar": 20, "beyond": 30, "better": "higher",
     "what": "through 5 nested groups: OpenFGA's CPU per check / ours"},
]
USERS, DEPTH = 200, 5
GATEWAY = """\
listen: [{{address: 127.0.0.1:{data}}}]
admin: {{address: 127.0.0.1:{admin}}}
workers: 1
log: {{access: off}}
fga: {{listen: 127.0.0.1:{port}}}
upstreams: {{up: {{urls: ["http://127.0.0.1:9"]}}}}
routes: [{{id: nothing, match: {{path: /nothing}}, public: true, upstream: up}}]
"""
MEMBER = {"directly_related_user_types": [{"type": "user"}, {"type": "group", "relation": "member"}]}
MODEL = {"schema_version": "1.1", "type_definitions": [
    {"type": "user"},
    {"type": "group", "relations": {"member": {"this": {}}}, "metadata": {"relations": {"member": MEMBER}}},
    {"type": "document", "relations": {"viewer": {"this": {}}}, "metadata": {"relations": {"viewer": MEMBER}}}]}


def tuples():
    """Each user sees a document of its own, and through five groups another one."""
    for i in range(USERS):
        yield {"user": f"user:{i}", "relation": "viewer", "object": f"document:direct-{i}"}
        yield {"user": f"user:{i}", "relation": "member", "object": f"group:{i}-{DEPTH}"}
        for level in range(DEPTH, 1, -1):
            yield {"user": f"group:{i}-{level}#member", "relation": "member", "object": f"group:{i}-{level - 1}"}
        yield {"user": f"group:{i}-1#member", "relation": "viewer", "object": f"document:nested-{i}"}


def post(port, path, body):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    connection.request("POST", path, json.dumps(body), {"content-type": "application/json"})
    response = connection.getresponse()
    answer = json.loads(response.read() or b"{}")
    connection.close()
    if response.status not in (200, 201):
        raise RuntimeError(f"{path}: {response.status} {answer}")
    return answer


def check(port, store, model, user, document):
    body = json.dumps({"authorization_model_id": model,
                       "tuple_key": {"user": user, "relation": "viewer", "object": document}})
    lines = [f"POST /stores/{store}/check HTTP/1.1", f"Host: 127.0.0.1:{port}", "Content-Type: application/json",
             f"Content-Length: {len(body)}"]
    return ("\r\n".join(lines) + "\r\n\r\n" + body).encode()


def prepare(bench, name, port):
    """A store with model and tuples; the files of checks, each of which is allowed."""
    store = post(port, "/stores", {"name": "benchmark"})["id"]
    model = post(port, f"/stores/{store}/authorization-models", MODEL)["authorization_model_id"]
    everything = list(tuples())
    for at in range(0, len(everything), 40):
        post(port, f"/stores/{store}/write", {"authorization_model_id": model, "writes": {"tuple_keys": everything[at:at + 40]}})
    files = {}
    for kind in ("direct", "nested"):
        requests = [check(port, store, model, f"user:{i}", f"document:{kind}-{i}") for i in range(USERS)]
        for request, allowed in ((requests[0], b'"allowed":true'),
                                 (check(port, store, model, "user:0", f"document:{kind}-1"), b'"allowed":false')):
            status, answer = load.once(port, request)
            if status != 200 or allowed not in answer.replace(b" ", b""):
                raise RuntimeError(f"{name}, {kind}: {answer!r}")
        files[kind] = bench.path(f"requests-{name}-{kind}")
        load.write_requests(files[kind], requests)
    return files


def openfga(bench):
    peers = os.environ.get("SUBZERO_PEERS") or os.path.expanduser("~/.cache/subzero/peers")
    program = os.path.join(peers, "openfga")
    if not os.access(program, os.X_OK):
        raise RuntimeError(f"{program} is not there; script/peers openfga builds it")
    port, grpc = procs.free_port(), procs.free_port()
    argv = [program, "run", "--datastore-engine", "memory", "--http-addr", f"127.0.0.1:{port}", "--grpc-addr",
            f"127.0.0.1:{grpc}", "--playground-enabled=false", "--metrics-enabled=false", "--log-level", "none"]
    return procs.Server("openfga", argv, port, bench.path("openfga.log"), procs.cpus()[0])


def compare(kind, servers, files, options, bench):
    """Interleaved, as load.pairs does it, each server with requests of its own."""
    good, bad = [], []
    for name, server in servers.items():
        load.measure(server, files[name][kind], 1, options.connections)
    turn = 0
    while len(good) < options.pairs and turn < 2 * options.pairs:
        pair = {name: load.measure(servers[name], files[name][kind], options.seconds, options.connections)
                for name in stats.order(list(servers), turn)}
        turn += 1
        (bad if load.failed(pair) else good).append(dict(pair, kind=kind))
        bench.say(f"  {kind} {turn}: " + "  ".join(f"{name} {pair[name]['cpu_us']:.2f} us, {pair[name]['rps']:,.0f}/s"
                                                  for name in servers))
    return good, bad


def run(bench, options):
    ports = {"data": procs.free_port(), "admin": procs.free_port(), "port": procs.free_port()}
    figures, pairs, failures = {}, [], 0
    with bench.subzero(GATEWAY.format(**ports), ports["port"]) as ours, openfga(bench) as theirs:
        servers = {"subzero": ours, "openfga": theirs}
        files = {name: prepare(bench, name, server.port) for name, server in servers.items()}
        for kind in ("direct", "nested"):
            good, bad = compare(kind, servers, files, options, bench)
            for key, figure in load.figures(good, "subzero", "openfga").items():
                figures[f"{kind}_{key}"] = figure
            pairs += good + bad
            failures += len(bad)
    return {
        "workload": {"users": USERS, "depth": DEPTH, "connections": options.connections, "seconds": options.seconds,
                     "generator": "wrk -t1", "placement": "servers on one CPU, generator on the other"},
        "configuration": GATEWAY,
        "figures": figures,
        "pairs": pairs,
        "failures": failures,
    }

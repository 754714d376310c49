"""A decision on an L1 hit, the whole HTTP exchange, against a bare h2o handler."""

from perf.bench import load, procs, servers

NAME = "P1"
TITLE = "decision on an L1 hit, against a bare h2o handler of the same build and thread count"
SMOKE = True
BARS = [{"figure": "cpu_ratio", "bar": 0.85, "beyond": 0.95, "better": "higher", "what": "bare h2o's CPU per request / ours"}]
TOKENS = 300


def run(bench, options):
    port, admin = procs.free_port(), procs.free_port()
    tokens = bench.tokens(TOKENS)
    listen = f"  - {{address: 127.0.0.1:{port}, mode: decide, dialect: nginx}}"
    configuration = servers.gateway_yaml(bench, listen, admin, 9)
    requests = [load.decision(token) for token in tokens]
    load.write_requests(bench.path("requests"), requests)
    with bench.subzero(configuration, port) as ours, bench.bare("bare", "hello", 0) as bare:
        status, answer = load.once(port, requests[0])
        if status != 200 or b"user-0" not in answer:
            raise RuntimeError(f"the gateway does not allow what it should: {answer!r}")
        if load.once(port, requests[0].replace(b"Bearer ", b"Bearer x"))[0] != 401:
            raise RuntimeError("the gateway allows a broken token")
        good, bad = load.pairs({"subzero": ours, "bare": bare}, bench.path("requests"), options, bench)
    return {
        "workload": {"tokens": TOKENS, "algorithm": "RS256", "connections": options.connections, "seconds": options.seconds,
                     "threads": 1, "generator": "wrk -t1", "placement": "servers and generator on a CPU each"},
        "configuration": servers.GATEWAY,
        "figures": load.figures(good, "subzero", "bare"),
        "pairs": good + bad,
        "failures": len(bad),
    }

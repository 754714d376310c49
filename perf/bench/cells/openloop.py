"""Latency at fixed rates, counted from when a request was due, so that a stall is charged to all who waited for it.

Two loads on one worker: decisions on L1 hits, and ES256 tokens verified anew each time.  Capacity is what wrk gets beforehand;
then 25, 50 and 75 % of it, and for the second load four times as much as there is (the generator could not send that many
hits).  Left out: rates at which the generator did not keep its schedule, which are counted as failed.
"""

from perf.bench import load, openloop, procs, servers, stats

NAME = "OPENLOOP"
TITLE = "latency at 25, 50 and 75 % of capacity and at four times capacity, from when a request was due"
SMOKE, SECONDS = True, 5
SHARES = {"hit": (25, 50, 75), "verify": (25, 50, 75, 400)}
BARS = [
    {"figure": "verify_400_goodput", "bar": 0.7, "beyond": 0.9, "better": "higher", "what": "answered 200 at four times capacity / capacity"},
    {"figure": "hit_50_p99_us", "bar": 10000, "beyond": 1000, "better": "lower", "what": "us p99 of L1 hits at half of capacity"},
    {"figure": "wrong", "bar": 0, "beyond": None, "better": "lower", "exact": True, "what": "answers that were neither 200 nor a refusal for overload"},
]
GUARDS = [BARS[2], {"figure": "verify_400_goodput", "bar": 0.7 / 20, "beyond": None, "better": "higher", "what": BARS[0]["what"]}]
TOKENS = 300


def gateway(bench, kind):
    port = procs.free_port()
    listen = f"  - {{address: 127.0.0.1:{port}, mode: decide, dialect: nginx}}"
    more = "cache: {l1: {ttl: 1ms}}\n" if kind == "verify" else ""
    return bench.subzero(servers.gateway_yaml(bench, listen, procs.free_port(), 9, more, "ES256"), port)


def wrong(statuses):
    """nginx hears 403 where a client would hear 429 or 503."""
    return sum(n for status, n in statuses.items() if status not in ("200", "403"))


def one_kind(bench, options, kind):
    out = []
    with gateway(bench, kind) as server:
        if load.once(server.port, bench.first)[0] != 200:
            raise RuntimeError("the gateway does not allow what it should")
        capacity = max(load.measure(server, bench.path("requests"), 1 if options.smoke else 2, options.connections)["rps"] for _ in range(2))
        for share in SHARES[kind] if not options.smoke else SHARES[kind][-2:]:
            used = server.cpu_ns()
            seen = openloop.run(bench, server.port, bench.path("requests"), capacity * share / 100, options.connections if share < 100 else 500, options.seconds)
            seen |= {"kind": kind, "share": share, "capacity": capacity, "cpu_percent": (server.cpu_ns() - used) / options.seconds / 1e7}
            out.append(seen)
            bench.say(f"  {kind} {share:3} % of {capacity:,.0f}/s: ms " + "  ".join(f"{name} {ms:.2f}" for name, ms in openloop.curve(seen)) +
                      f"  {seen['statuses']} lost {seen['lost']}{'' if seen['held'] or share > 100 else '  NOT HELD'}")
    return out


def run(bench, options):
    tokens = bench.tokens(TOKENS, "ES256")
    requests = [load.decision(token) for token in tokens]
    bench.first = requests[0]
    load.write_requests(bench.path("requests"), requests)
    turns = 1 if options.smoke else 2
    runs = [seen for _ in range(turns) for kind in SHARES for seen in one_kind(bench, options, kind)]
    kept = [seen for seen in runs if seen["held"] or seen["share"] > 100]
    figures, series = {}, {}
    for kind, shares in SHARES.items():
        for share in shares:
            these = [seen for seen in kept if (seen["kind"], seen["share"]) == (kind, share)]
            for key in ("p50_us", "p95_us", "p99_us", "p999_us", "max_us", "cpu_percent"):
                figures[f"{kind}_{share}_{key}"] = stats.summary(seen[key] for seen in these)
            if share > 100:
                figures[f"{kind}_{share}_goodput"] = stats.summary(seen["good_per_s"] / seen["capacity"] for seen in these)
            if these:
                series[f"{kind}_{share}"] = openloop.curve(these[-1])
        figures[f"{kind}_capacity"] = stats.summary(seen["capacity"] for seen in runs if seen["kind"] == kind)
    figures["wrong"] = stats.summary([sum(wrong(seen["statuses"]) for seen in runs)])
    return {
        "workload": {"tokens": TOKENS, "algorithm": "ES256", "shares": {k: list(v) for k, v in SHARES.items()}, "connections": options.connections,
                     "connections_overload": 500, "seconds": options.seconds, "turns": turns, "threads": 1},
        "configuration": servers.GATEWAY, "figures": figures, "series": series, "pairs": runs, "failures": len(runs) - len(kept),
    }

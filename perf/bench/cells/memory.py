"""Resident memory with 10,000, 50,000, 100,000 and 500,000 tokens known: each was sent once, and as many were found again.

The tokens are EdDSA, which is quick to make; what L1 keeps of a token does not depend on its algorithm.  Left out: connections (P8),
and decisions, of which an entry takes 26 bytes.
"""

from perf.bench import burst, load, metrics, procs, servers, stats

NAME = "MEMORY"
TITLE = "resident memory with 10,000, 50,000, 100,000 and 500,000 tokens known"
BARS = [{"figure": f"resident_{n}_mb", "bar": bar, "beyond": None, "better": "lower", "what": f"MB with {n:,} tokens"}
        for n, bar in ((10000, 150), (50000, 400), (100000, 750), (500000, 3500))]
SAMPLE, AT_A_TIME = 5000, 50000


def once(bench, n, capacity):
    port, admin = procs.free_port(), procs.free_port()
    listen = f"  - {{address: 127.0.0.1:{port}, mode: decide, dialect: nginx}}"
    text = servers.gateway_yaml(bench, listen, admin, 9, f"cache: {{l1: {{capacity: {capacity}, ttl: 1h}}}}\n", "EdDSA")
    with bench.subzero(text, port) as gateway, burst.Client(port, 64) as client:
        start = procs.memory_kb(gateway.pid) / 1000
        sample = []
        for at in range(0, n, AT_A_TIME):
            requests = [load.decision(token) for token in bench.fresh_tokens(min(AT_A_TIME, n - at), f"full-{n}-{at}", "EdDSA")]
            if not burst.whole(client.run(requests, 600)):
                raise RuntimeError("not all tokens were allowed")
            sample += requests[:: max(1, n // SAMPLE)]
        resident, before = procs.memory_kb(gateway.pid) / 1000, metrics.scrape(admin)
        client.run(sample)
        known = metrics.hits(metrics.delta(before, metrics.scrape(admin)))["l1"]
    bench.say(f"  {n:7,} tokens: {resident:.1f} MB, {start:.1f} at the start; {100 * known:.1f} % of a sample found again")
    return {"tokens": n, "capacity": capacity, "resident_mb": resident, "start_mb": start, "kept": known}


def run(bench, options):
    bench.issuer("EdDSA")
    runs = [once(bench, n, n) for n in (10000, 50000, 100000, 500000)]
    return {
        "workload": {"tokens": [one["tokens"] for one in runs], "capacity": "as many", "threads": 1}, "configuration": servers.GATEWAY,
        "figures": {f"resident_{one['tokens']}_mb": stats.summary([one["resident_mb"]]) for one in runs} |
                   {"kept_percent": stats.summary([100 * runs[-1]["kept"]]), "start_mb": stats.summary([one["start_mb"] for one in runs])},
        "series": {"resident_mb": [[one["tokens"], one["resident_mb"]] for one in runs]}, "pairs": runs, "failures": 0,
    }

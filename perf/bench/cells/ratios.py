"""What remembering is worth: an L1 hit against libjwt, a cached relation check against an uncached one, a known token against
asking the provider each time.

libjwt is measured in a process of its own and checks the signature alone; beside it stands the whole exchange of an L1 hit, the
kernel's part included.  The provider takes 50 to 150 ms, as in scenario 2; fifty requests are under way at once.  The check's other
side is a remote store on this machine, the nearest there can be.
"""

import json
import os
import subprocess

from perf.bench import burst, load, procs, servers, stack, stats

NAME = "RATIOS"
TITLE = "an L1 hit against libjwt, a cached check against a remote one, a known token against asking the provider each time"
BARS = [
    {"figure": "hit_of_libjwt", "bar": 7.2, "beyond": None, "better": "higher", "what": "libjwt's CPU for the signature / the whole exchange of an L1 hit"},
    {"figure": "check_cached", "bar": 25.2, "beyond": None, "better": "higher", "what": "p50 of a remote check / of a cached one"},
    {"figure": "provider_p50", "bar": 18.6, "beyond": None, "better": "higher", "what": "p50, asking the provider each time / cached"},
    {"figure": "provider_p95", "bar": 2.5, "beyond": None, "better": "higher", "what": "p95, the same"},
    {"figure": "cached_mean_ms", "bar": 8.4, "beyond": None, "better": "lower", "what": "ms, mean with caching"},
]
REQUESTS, AT_ONCE = 1000, 50


def program(bench, *args):
    done = subprocess.run([os.path.join(bench.build, "perf", args[0]), *map(str, args[1:])], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{args[0]} exited {done.returncode}: {done.stderr.strip()[-300:]}")
    return json.loads(done.stdout)


def hit(bench, options):
    """(CPU of an L1 hit's exchange in µs, libjwt's), by turns."""
    tokens = bench.tokens(300)
    private, public = bench.path("private.pem"), bench.path("public.pem")
    bench.run("openssl", "genrsa", "-out", private, "2048")
    bench.run("openssl", "rsa", "-in", private, "-pubout", "-out", public)
    load.write_requests(bench.path("requests"), [load.decision(token) for token in tokens])
    port = procs.free_port()
    pairs = []
    with bench.subzero(servers.gateway_yaml(bench, f"  - {{address: 127.0.0.1:{port}, mode: decide, dialect: nginx}}", procs.free_port(), 9), port) as server:
        for _ in range(options.pairs):
            ours = load.measure(server, bench.path("requests"), 1, options.connections)
            pairs.append({"hit_us": ours["cpu_us"], "libjwt_us": program(bench, "micro_libjwt", 5, 200, private, public)["median"]})
    return pairs


def latencies(bench, port, tokens):
    """One kept connection for each of AT_ONCE, in turn: the whole distribution, in ms."""
    with burst.Client(port, AT_ONCE) as client:
        run = client.run([load.decision(token) for token in tokens])
        if not burst.whole(run):
            raise RuntimeError(f"not all answered 200: {run['statuses']}")
        return client.times_ms


def asked(bench, turns):
    """The same tokens: known, and with every cache off."""
    out = []
    with stack.Stack(bench, set()) as around:
        tokens = around.provider.tokens(REQUESTS, "ratio")
        around.provider.wobbly(50, 150, 0)
        known, anew = procs.free_port(), procs.free_port()
        with bench.subzero(around.yaml(known, procs.free_port()), known), bench.subzero(around.yaml(anew, procs.free_port(), ttl="1ms"), anew):
            latencies(bench, known, tokens)
            for _ in range(turns):
                out.append({"cached": latencies(bench, known, tokens), "asked": latencies(bench, anew, tokens)})
    return out


def run(bench, options):
    hits, checks, turns = hit(bench, options), program(bench, "micro_fga", max(options.pairs, 5), 2000), asked(bench, 3)
    spread = [{side: dict(stats.distribution(turn[side]), mean=sum(turn[side]) / len(turn[side])) for side in turn} for turn in turns]
    figures = {
        "hit_of_libjwt": stats.summary(pair["libjwt_us"] / pair["hit_us"] for pair in hits),
        "libjwt_us": stats.summary(pair["libjwt_us"] for pair in hits),
        "hit_us": stats.summary(pair["hit_us"] for pair in hits),
        "check_cached": stats.summary([checks["remote_p50_us"]["median"] * 1e3 / checks["hit_ns"]["median"]]),
        "provider_p50": stats.summary(one["asked"]["p50"] / one["cached"]["p50"] for one in spread),
        "provider_p95": stats.summary(one["asked"]["p95"] / one["cached"]["p95"] for one in spread),
        "cached_mean_ms": stats.summary(one["cached"]["mean"] for one in spread),
        "asked_mean_ms": stats.summary(one["asked"]["mean"] for one in spread),
    }
    return {
        "workload": {"tokens": REQUESTS, "at_once": AT_ONCE, "provider_ms": [50, 150], "connections": options.connections, "threads": 1},
        "configuration": servers.GATEWAY + stack.GATEWAY, "figures": figures, "pairs": [hits, checks, spread], "failures": 0,
    }

"""Identical misses at once, at a gateway with two workers: how often the provider is asked, by its own count."""

from perf.bench import burst, load, procs, provider, stats

NAME = "P4"
TITLE = "100 concurrent identical misses, two workers, provider 50 ms: calls at the provider"
SMOKE = True
BARS = [
    {"figure": "calls_most", "bar": 1, "beyond": None, "exact": True, "better": "lower", "what": "most calls of any burst"},
    {"figure": "calls_fewest", "bar": 1, "beyond": None, "exact": True, "better": "higher", "what": "fewest calls of any burst"},
    {"figure": "unanswered", "bar": 0, "beyond": None, "exact": True, "better": "lower", "what": "requests not answered 200, of all bursts"},
    {"figure": "workers", "bar": 2, "beyond": None, "better": "higher", "what": "workers that had requests"},
]
# Which worker the kernel gives a connection to is its own affair: CI holds the counts alone.
GUARDS = [bar for bar in BARS if bar.get("exact")]
AT_ONCE, LATENCY_MS, WORKERS = 100, 50, 2
TICK_NS = 50_000  # what a thread without requests may use in a burst's time, for its timers


def busy(before, after):
    """How many of the gateway's workers had requests in between."""
    return sum(1 for thread, (name, ns) in after.items()
               if name.startswith("worker-") and ns - before.get(thread, (name, 0))[1] > TICK_NS)


def one(side, gateway, client):
    token = side.token("many")
    asked, threads = side.calls(), procs.threads(gateway.pid)
    run = client.run([load.decision(token)] * AT_ONCE)
    return dict(run, calls=side.calls() - asked, workers=busy(threads, procs.threads(gateway.pid)))


def run(bench, options):
    port = procs.free_port()
    runs = []
    with provider.Provider(bench) as side:
        configuration = provider.gateway_yaml(bench, side, port, WORKERS, "1s")
        side.slow(LATENCY_MS)
        with bench.subzero(configuration, port, None) as gateway, burst.Client(port, AT_ONCE) as client:
            for turn in range(max(3 * options.pairs, 20)):
                runs.append(one(side, gateway, client))
            bench.say(f"  {len(runs)} bursts: calls " + " ".join(str(values["calls"]) for values in runs))
    bad = sum(not burst.whole(values) for values in runs)
    return {
        "workload": {"at_once": AT_ONCE, "latency_ms": LATENCY_MS, "workers": WORKERS, "bursts": len(runs)},
        "configuration": provider.GATEWAY,
        "figures": figures(runs),
        "pairs": runs,
        "failures": bad,
    }


def figures(runs):
    """The worst burst decides, not the median: one call too many is a fault, not noise.  No burst is left out."""
    return {
        "calls_most": stats.summary([max(values["calls"] for values in runs)]),
        "calls_fewest": stats.summary([min(values["calls"] for values in runs)]),
        "unanswered": stats.summary([sum(values["requests"] - values["good"] for values in runs)]),
        "calls": stats.summary(values["calls"] for values in runs),
        "workers": stats.summary(values["workers"] for values in runs),
        "wall_ms": stats.summary(values["seconds"] * 1e3 for values in runs),
        "worst_ms": stats.summary(values["worst_ms"] for values in runs if values["worst_ms"] is not None),
    }

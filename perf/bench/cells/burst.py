"""Different opaque tokens at once, one worker, a slow provider: whether they are asked about side by side."""

from perf.bench import burst, load, procs, provider, stats

NAME = "BURST"
TITLE = "100 different opaque tokens at once, one worker, provider 50 ms: all answered"
SMOKE = True
BARS = [
    {"figure": "wall_ms", "bar": 100, "beyond": None, "better": "lower", "what": "ms from the first byte to the last answer"},
    {"figure": "unanswered", "bar": 0, "beyond": None, "exact": True, "better": "lower", "what": "requests not answered 200, of all bursts"},
]
AT_ONCE, LATENCY_MS = 100, 50


def run(bench, options):
    port = procs.free_port()
    runs = []
    with provider.Provider(bench, procs.cpus()[1]) as side:
        configuration = provider.gateway_yaml(bench, side, port, 1, "1s")
        side.slow(LATENCY_MS)
        with bench.subzero(configuration, port) as gateway, burst.Client(port, AT_ONCE) as client:
            for turn in range(max(2 * options.pairs, 10)):
                requests = [load.decision(token) for token in side.tokens(AT_ONCE, f"burst-{turn}")]
                asked, cpu = side.calls(), gateway.cpu_ns()
                values = client.run(requests)
                runs.append(dict(values, cpu_us=(gateway.cpu_ns() - cpu) / 1e3 / AT_ONCE, calls=side.calls() - asked))
                bench.say(f"  burst {turn + 1}: {values['seconds'] * 1e3:.1f} ms, {runs[-1]['calls']} calls, {values['statuses']}")
    return {
        "workload": {"at_once": AT_ONCE, "latency_ms": LATENCY_MS, "workers": 1, "bursts": len(runs)},
        "configuration": provider.GATEWAY,
        "figures": figures(runs),
        "pairs": runs,
        "failures": sum(not burst.whole(values) for values in runs),
    }


def figures(runs):
    """Wall times of bursts that were answered as a whole; the first one, whose connections are new, stands beside."""
    good = [values for values in runs if burst.whole(values)]
    return {
        "wall_ms": stats.summary(values["seconds"] * 1e3 for values in good),
        "first_ms": stats.summary(values["seconds"] * 1e3 for values in runs[:1] if burst.whole(values)),
        "median_ms": stats.summary(values["median_ms"] for values in good),
        "cpu_us": stats.summary(values["cpu_us"] for values in good),
        "unanswered": stats.summary([sum(values["requests"] - values["good"] for values in runs)]),
    }

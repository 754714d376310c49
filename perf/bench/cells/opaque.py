"""Introspections through the gateway, whole HTTP exchange, against libcurl alone asking the same kind of question.

Each repetition asks for tokens never seen before, then for the same ones again while they are cached: the difference is
what an introspection costs.  micro_http, run in between on the same CPU, has what libcurl alone costs, and the client.
"""

import json
import os
import subprocess

from perf.bench import burst, load, procs, provider, stats

NAME = "OPAQUE"
TITLE = "introspection through the gateway, against libcurl alone and the client alone"
SMOKE = True
BARS = [
    {"figure": "cpu_of_bare", "bar": 2.0, "beyond": None, "better": "lower",
     "what": "CPU beyond a cached hit / libcurl alone, one at a time"},
]
TOKENS, CONNECTIONS, CALLS = 1000, 64, 2000


def micro(bench):
    """CPU of one call, in microseconds: bare libcurl, the client one at a time, 64 at a time."""
    argv = [os.path.join(bench.build, "perf", "micro_http"), "1", str(CALLS)]
    out = subprocess.run(procs.pinned(procs.cpus()[0], argv), capture_output=True, text=True, check=False)
    if out.returncode != 0:
        raise RuntimeError(f"micro_http exited {out.returncode}: {out.stderr.strip()[-500:]}")
    return parse(out.stdout)


def parse(output):
    found = json.loads(output)
    return {"bare_us": found["bare"]["cpu_us"], "client_one_us": found["one"]["cpu_us"], "client_many_us": found["many"]["cpu_us"],
            "bare_per_s": found["bare"]["calls_per_s"], "client_many_per_s": found["many"]["calls_per_s"]}


def one(bench, side, gateway, client, turn):
    requests = [load.decision(token) for token in side.tokens(TOKENS, f"opaque-{turn}")]
    passes, asked = {}, [side.calls()]
    for name in ("miss", "hit"):
        before = gateway.cpu_ns()
        passes[name] = client.run(requests)
        passes[name]["cpu_us"] = (gateway.cpu_ns() - before) / 1e3 / TOKENS
        asked.append(side.calls())
    return dict(passes, calls=[asked[1] - asked[0], asked[2] - asked[1]], micro=micro(bench))


def good(values):
    """As many calls as tokens, then none: otherwise it is not what it is called."""
    return burst.whole(values["miss"]) and burst.whole(values["hit"]) and values["calls"] == [TOKENS, 0]


def run(bench, options):
    port = procs.free_port()
    runs = []
    with provider.Provider(bench, procs.cpus()[1]) as side:
        configuration = provider.gateway_yaml(bench, side, port, 1, "60s")
        with bench.subzero(configuration, port) as gateway, burst.Client(port, CONNECTIONS) as client:
            one(bench, side, gateway, client, "warm")
            for turn in range(options.pairs):
                runs.append(one(bench, side, gateway, client, turn))
                values = runs[-1]
                bench.say(f"  run {turn + 1}{'' if good(values) else ' FAILED'}: miss {values['miss']['cpu_us']:.1f} us, hit "
                          f"{values['hit']['cpu_us']:.1f} us, {TOKENS / values['miss']['seconds']:,.0f}/s, calls {values['calls']}, "
                          f"libcurl {values['micro']['bare_us']:.1f} us")
    kept = [values for values in runs if good(values)]
    return {
        "workload": {"tokens": TOKENS, "connections": CONNECTIONS, "threads": 1, "micro_calls": CALLS,
                     "placement": "gateway and micro_http on one CPU, provider and generator on the other"},
        "configuration": provider.GATEWAY,
        "figures": figures(kept),
        "pairs": runs,
        "failures": len(runs) - len(kept),
    }


def figures(kept):
    beyond = [values["miss"]["cpu_us"] - values["hit"]["cpu_us"] for values in kept]
    out = {name: stats.summary(values["micro"][name] for values in kept)
           for name in ("bare_us", "client_one_us", "client_many_us", "bare_per_s", "client_many_per_s")}
    for name in ("miss", "hit"):
        out[f"{name}_us"] = stats.summary(values[name]["cpu_us"] for values in kept)
        out[f"{name}_per_s"] = stats.summary(values[name]["requests"] / values[name]["seconds"] for values in kept)
    out["beyond_us"] = stats.summary(beyond)
    out["cpu_of_bare"] = stats.summary(us / values["micro"]["bare_us"] for us, values in zip(beyond, kept))
    out["cpu_of_client"] = stats.summary(us / values["micro"]["client_many_us"] for us, values in zip(beyond, kept))
    return out

"""A token never seen before, whole HTTP exchange in decide mode, against its bare signature check.

Each repetition sends new tokens, then the same ones again: the difference of the two passes is what a new token costs
beyond a cached hit.  The generator spins: asleep, it would be woken by nearly every answer of the slow pass and by few
of the fast one, at the gateway's expense.  The bare check is measured by micro_jwt on the same CPU, between the repetitions.
"""

import json
import os
import subprocess

from perf.bench import burst, load, procs, servers, stats

NAME = "P11"
TITLE = "a token never seen before, whole exchange, against the bare signature check"
ALGORITHMS = {"RS256": 1.6, "ES256": 1.3}
BARS = [
    {"figure": f"{alg.lower()}_of_bare", "bar": bar, "beyond": None, "better": "lower",
     "what": f"{alg}: CPU beyond a cached hit / bare check"} for alg, bar in ALGORITHMS.items()
]
TOKENS, CONNECTIONS = 4000, 64


def micro(bench):
    """Bare check and verification within the process, in microseconds, by algorithm."""
    argv = [os.path.join(bench.build, "perf", "micro_jwt"), "1"]
    out = subprocess.run(procs.pinned(procs.cpus()[0], argv), capture_output=True, text=True, check=False)
    if out.returncode != 0:
        raise RuntimeError(f"micro_jwt exited {out.returncode}: {out.stderr.strip()[-500:]}")
    return parse(out.stdout)


def parse(output):
    found = json.loads(output)
    return {alg: {"bare_us": found[alg]["bare_ns"] / 1e3, "full_us": found[alg]["full_ns"] / 1e3} for alg in ALGORITHMS}


def one(gateway, client, tokens):
    requests = [load.decision(token) for token in tokens]
    passes = {}
    for name in ("new", "hit"):
        before = gateway.cpu_ns()
        passes[name] = client.run(requests, spin=True)
        passes[name]["cpu_us"] = (gateway.cpu_ns() - before) / 1e3 / len(tokens)
    return passes


def measure(bench, options, alg):
    bench.issuer(alg)
    minted = [bench.fresh_tokens(TOKENS, f"turn-{turn}", alg) for turn in range(options.pairs + 1)]
    port, admin = procs.free_port(), procs.free_port()
    listen = f"  - {{address: 127.0.0.1:{port}, mode: decide, dialect: nginx}}"
    # Hits must be hits: nothing expires between the passes.
    configuration = servers.gateway_yaml(bench, listen, admin, 9, CACHE, alg)
    runs = []
    with bench.subzero(configuration, port) as gateway, burst.Client(port, CONNECTIONS) as client:
        one(gateway, client, minted[options.pairs])
        for turn in range(options.pairs):
            bare = [micro(bench)]
            passes = one(gateway, client, minted[turn])
            bare.append(micro(bench))
            values = dict(passes, micro={key: sum(m[alg][key] for m in bare) / 2 for key in ("bare_us", "full_us")})
            runs.append(values)
            bench.say(f"  {alg} run {turn + 1}{'' if good(values) else ' FAILED'}: new {values['new']['cpu_us']:.1f} us, hit "
                      f"{values['hit']['cpu_us']:.1f} us, bare check {values['micro']['bare_us']:.1f} us")
    return runs


CACHE = "cache: {l1: {ttl: 10m}}\n"


def good(values):
    return burst.whole(values["new"]) and burst.whole(values["hit"])


def run(bench, options):
    runs = {alg: measure(bench, options, alg) for alg in ALGORITHMS}
    kept = {alg: [values for values in of if good(values)] for alg, of in runs.items()}
    return {
        "workload": {"tokens": TOKENS, "connections": CONNECTIONS, "threads": 1, "algorithms": list(ALGORITHMS),
                     "placement": "gateway and micro_jwt on one CPU, spinning generator on the other"},
        "configuration": servers.GATEWAY + CACHE,
        "figures": {name: figure for alg in ALGORITHMS for name, figure in figures(alg.lower(), kept[alg]).items()},
        "pairs": runs,
        "failures": sum(len(runs[alg]) - len(kept[alg]) for alg in ALGORITHMS),
    }


def figures(alg, kept):
    beyond = [values["new"]["cpu_us"] - values["hit"]["cpu_us"] for values in kept]
    return {
        f"{alg}_new_us": stats.summary(values["new"]["cpu_us"] for values in kept),
        f"{alg}_hit_us": stats.summary(values["hit"]["cpu_us"] for values in kept),
        f"{alg}_beyond_us": stats.summary(beyond),
        f"{alg}_bare_us": stats.summary(values["micro"]["bare_us"] for values in kept),
        f"{alg}_inside_us": stats.summary(values["micro"]["full_us"] for values in kept),
        f"{alg}_of_bare": stats.summary(us / values["micro"]["bare_us"] for us, values in zip(beyond, kept)),
    }

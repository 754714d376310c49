"""Cached decisions at a fixed rate, alone and beside relation checks that run 100 ms each on another route of the same gateway.

Gateway and long checks share one CPU, which the checks alone could fill; the generator has the other to itself.  In each round,
in changing order: the good requests alone, and with as many long checks under way as there are clients for them.
"""

import json
import os
import subprocess
import threading
import time

from perf.bench import load, procs, servers, stats

NAME = "LONG"
TITLE = "cached decisions beside checks of 100 ms on another route, one CPU for both"
BARS = [
    {"figure": "p50_ratio", "bar": 1.15, "beyond": 1.05, "better": "lower", "what": "p50 beside long checks / alone"},
    {"figure": "cpu_ratio", "bar": 1.15, "beyond": 1.05, "better": "lower", "what": "the worker's CPU per request, beside / alone"},
    {"figure": "p99_ratio", "bar": 2.0, "beyond": 1.5, "better": "lower", "what": "p99 beside long checks / alone"},
    {"figure": "refused", "bar": 0, "beyond": None, "better": "lower", "what": "cached requests refused or lost, all rounds"},
]
TOKENS, RATE, CONNECTIONS, LONG_CLIENTS, TARGET_MS = 300, 5000, 50, 2, 100
WIDTHS = range(80, 161, 10)
MODEL = """\
model
  schema 1.1
type user
type group
  relations
    define banned: [user]
    define member: [user, group#member] but not banned
"""
FGA = """\
cache: {{decisions: {{capacity: 0}}}}
fga: {{mode: embedded, model: {model}, tuples: {tuples}}}
"""
ROUTE = """\
  - id: groups.read
    match: {{methods: [GET], path: "/groups/{{id}}"}}
    auth: {{issuers: [bench], scopes: ["{scope}"]}}
    authorize: {{user: "user:{{claims.sub}}", relation: member, object: "group:{{path.id}}"}}
    upstream: documents
"""


def graph(width):
    """Three layers of groups below one, each a member of all of the layer above it: width^3 ways to find that nobody is there."""
    for layer in range(3):
        for above in range(width if layer else 1):
            for below in range(width):
                yield f"group:{width}-{layer + 1}-{below}#member", f"group:{width}-{layer}-{above}"


def tuples(bench):
    path = bench.path("tuples.jsonl")
    with open(path, "w", encoding="utf-8") as f:
        rows = [row for width in WIDTHS for row in graph(width)] + [(f"user:user-{i}", "group:elsewhere") for i in range(TOKENS)]
        for user, group in rows:
            f.write(json.dumps({"user": user, "relation": "member", "object": group}) + "\n")
    return path


def ask_long(port, token, width):
    """Milliseconds that a denial of a long check took."""
    request = load.decision(token).replace(b"/documents/roadmap", b"/groups/%d-0-0" % width)
    begun = time.monotonic()
    status, answer = load.once(port, request)
    if status != 403 or b"not_permitted" not in answer:
        raise RuntimeError(f"a long check is not denied: {answer!r}")
    return (time.monotonic() - begun) * 1e3


def nearest(port, token):
    """The width whose check takes about 100 ms on this machine."""
    took = {width: min(ask_long(port, token, width) for _ in range(3)) for width in WIDTHS}
    return min(took, key=lambda width: abs(took[width] - TARGET_MS)), took


class Long:
    """Clients that ask one long check after the other, on the generator's CPU (they do next to nothing)."""

    def __init__(self, port, token, width):
        self.args, self.took, self.stop = (port, token, width), [], threading.Event()
        self.threads = [threading.Thread(target=self.ask) for _ in range(LONG_CLIENTS)]

    def ask(self):
        while not self.stop.is_set():
            self.took.append(ask_long(*self.args))

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self.stop.set()
        for thread in self.threads:
            thread.join()


def generator(bench, port, seconds):
    argv = [os.path.join(bench.build, "perf", "open_loop"), str(seconds), str(port), bench.path("requests"), str(RATE), str(CONNECTIONS)]
    out = subprocess.run(procs.pinned(procs.cpus()[1], argv), capture_output=True, text=True, check=False)
    if out.returncode != 0:
        raise RuntimeError(f"open_loop exited {out.returncode}: {out.stderr.strip()[-500:]}")
    return json.loads(out.stdout)["good"]


def loops_ns(server):
    """CPU of all threads that are none of the pool's."""
    return sum(ns for name, ns in procs.threads(server.pid).values() if not name.startswith("fga"))


def measure(bench, server, options):
    before, all_before = loops_ns(server), server.cpu_ns()
    good = generator(bench, server.port, options.seconds)
    used, everything = loops_ns(server) - before, server.cpu_ns() - all_before
    return dict(good, cpu_us=used / 1e3 / max(good["answered"], 1), pool_percent=(everything - used) / options.seconds / 1e7)


def one_round(bench, server, options, turn, token, width):
    values = {}
    for side in stats.order(["alone", "beside"], turn):
        if side == "alone":
            values[side] = measure(bench, server, options)
            continue
        with Long(server.port, token, width) as long:
            values[side] = measure(bench, server, options)
        values[side]["long_ms"] = stats.summary(long.took)
    return values


def refused(good):
    return good["due"] - good["statuses"].get("200", 0)


def held(values):
    return all(good["overrun"] == 0 and good["lag_worst_us"] < 1000000 for good in values.values())


def run(bench, options):
    port = procs.free_port()
    tokens = bench.tokens(TOKENS)
    requests = [load.decision(token) for token in tokens]
    load.write_requests(bench.path("requests"), requests)
    more = FGA.format(model=bench.write("model.fga", MODEL), tuples=tuples(bench))
    listen = f"  - {{address: 127.0.0.1:{port}, mode: decide, dialect: nginx}}"
    configuration = servers.gateway_yaml(bench, listen, procs.free_port(), 9, more) + ROUTE.format(scope=servers.SCOPE)
    with bench.subzero(configuration, port) as server:
        if load.once(port, requests[0])[0] != 200:
            raise RuntimeError("the gateway does not allow what it should")
        width, took = nearest(port, tokens[0])
        bench.say(f"  a check of {width}^3 ways: {took[width]:.0f} ms alone")
        generator(bench, port, 1)
        kept, runs = [], []
        while len(kept) < options.pairs and len(runs) < 2 * options.pairs:
            values = one_round(bench, server, options, len(runs), tokens[0], width)
            runs.append(values)
            kept += [values] if held(values) else []
            alone, beside = values["alone"], values["beside"]
            bench.say(f"  round {len(runs)}{'' if held(values) else ' FAILED'}: p50 {alone['p50_us']} and {beside['p50_us']} us, p99 "
                      f"{alone['p99_us']} and {beside['p99_us']} us, cpu {alone['cpu_us']:.1f} and {beside['cpu_us']:.1f} us; the pool "
                      f"{beside['pool_percent']:.0f}% of a CPU")
    return {
        "workload": {"tokens": TOKENS, "algorithm": "RS256", "per_s": RATE, "connections": CONNECTIONS, "seconds": options.seconds,
                     "long_clients": LONG_CLIENTS, "ways": width ** 3, "placement": "the gateway on one CPU, the generator on the other"},
        "configuration": servers.GATEWAY + FGA + ROUTE,
        "figures": figures(kept, took[width]),
        "pairs": runs,
        "failures": len(runs) - len(kept),
    }


def figures(kept, long_ms):
    out = {"long_alone_ms": stats.summary([long_ms])}
    for key in ("p50_us", "p99_us", "p999_us", "cpu_us"):
        for side in ("alone", "beside"):
            out[f"{side}_{key}"] = stats.summary(values[side][key] for values in kept)
        out[f"{key[:-3]}_ratio"] = stats.summary(values["beside"][key] / max(values["alone"][key], 1e-9) for values in kept)
    out["long_beside_ms"] = stats.summary(values["beside"]["long_ms"]["median"] for values in kept)
    out["pool_percent"] = stats.summary(values["beside"]["pool_percent"] for values in kept)
    out["refused"] = stats.summary([sum(refused(good) for values in kept for good in values.values())] if kept else [])
    return out

"""Cached requests beside floods of forged tokens, and beside the same floods at another process: paired, at fixed rates.

In each round, in changing order: the good requests alone; with a flood at the same gateway; with it at a second gateway on the
same CPU, which is what the machine charges for that much work and its clients.  Three floods: moderate, as much as one CPU
can nearly refuse, and more than that.  The generator has the other CPU to itself; latencies count from when a request was due.
"""

import json
import os
import subprocess

from perf.bench import load, procs, servers, stats

NAME = "FLOOD"
TITLE = "p99 of cached requests beside forged tokens from 1,000 addresses, against the same without the flood"
BARS = [
    {"figure": "p99_ratio", "bar": 2.0, "beyond": 1.5, "better": "lower", "what": "p99 beside 6,000 forged/s / alone"},
    {"figure": "fast_p99_ratio", "bar": 2.0, "beyond": 1.5, "better": "lower", "what": "p99 beside 12,000 forged/s / alone"},
    {"figure": "good_refused", "bar": 0, "beyond": None, "exact": True, "better": "lower", "what": "cached requests refused or lost, all rounds"},
]
TOKENS, ADDRESSES = 300, 1000
GOOD_RATE, GOOD_CONNECTIONS = 2000, 50
FLOODS = {"": 6000, "fast_": 12000, "over_": 24000}  # forged tokens a second
BAD_TURNS = 50  # requests until a connection of the flood is opened anew
# Figure's prefix, side: where the flood goes.  More than a CPU can do, at another process, measures the scheduler alone.
SIDES = [("", "here"), ("", "elsewhere"), ("fast_", "here"), ("fast_", "elsewhere"), ("over_", "here")]


def generator(bench, seconds, good, flood=None, rate=0):
    argv = [os.path.join(bench.build, "perf", "open_loop"), str(seconds), str(good), bench.path("requests"), str(GOOD_RATE),
            str(GOOD_CONNECTIONS)]
    if flood:
        argv += [str(flood), bench.path("forged"), str(rate), str(ADDRESSES), str(BAD_TURNS)]
    out = subprocess.run(procs.pinned(procs.cpus()[1], argv), capture_output=True, text=True, check=False)
    if out.returncode != 0:
        raise RuntimeError(f"open_loop exited {out.returncode}: {out.stderr.strip()[-500:]}")
    return json.loads(out.stdout)


def measure(bench, seconds, good, flood=None, rate=0):
    """One side: the generator's figures, and the CPU that the gateway under test took."""
    before = good.cpu_ns()
    run = generator(bench, seconds, good.port, flood.port if flood else None, rate)
    run["cpu_percent"] = (good.cpu_ns() - before) / seconds / 1e7
    return run


def held(run):
    """Whether the generator kept its rate for the good ones, and could send the flood: what it did not is no measurement."""
    good, flood = run["good"], run.get("flood")
    return good["overrun"] == 0 and good["lag_worst_us"] < 1000000 and (flood is None or flood["overrun"] == 0)


def refused(run):
    good = run["good"]
    return good["due"] - good["statuses"].get("200", 0)


def forged_refused(run):
    """The flood is answered 401 or, beyond what the queue holds, 503 (to nginx: 403); anything else would be a hole."""
    return set(run["flood"]["statuses"]) <= {"401", "403"}


def one_round(bench, ours, other, options, turn):
    values = {}
    for side in stats.order(["alone", *SIDES], turn):
        if side == "alone":
            values["alone"] = measure(bench, options.seconds, ours)
        else:
            flood, where = side
            values[flood + where] = measure(bench, options.seconds, ours, ours if where == "here" else other, FLOODS[flood])
    return values


def is_good(values):
    return all(held(run) and ("flood" not in run or forged_refused(run)) for run in values.values())


def configuration(bench, port):
    listen = f"  - {{address: 127.0.0.1:{port}, mode: decide, dialect: nginx}}"
    text = servers.gateway_yaml(bench, listen, procs.free_port(), 9)
    # The flood's connections come from 1,000 addresses of the proxy in front, for 1,000 clients behind it.
    return text.replace("trusted_proxies: [127.0.0.1/32]", "trusted_proxies: [127.0.0.0/8]")


def run(bench, options):
    tokens = bench.tokens(TOKENS)
    requests = [load.decision(token) for token in tokens]
    load.write_requests(bench.path("requests"), requests)
    load.write_requests(bench.path("forged"), [requests[0].replace(b"192.0.2.7", b"2001:db8:0:0000::1")])
    ports = procs.free_port(), procs.free_port()
    with bench.subzero(configuration(bench, ports[0]), ports[0]) as ours, bench.subzero(configuration(bench, ports[1]), ports[1]) as other:
        if load.once(ours.port, requests[0])[0] != 200:
            raise RuntimeError("the gateway does not allow what it should")
        for server in (ours, other):
            generator(bench, 1, server.port)
        kept, runs = [], []
        while len(kept) < options.pairs and len(runs) < 2 * options.pairs:
            values = one_round(bench, ours, other, options, len(runs))
            runs.append(values)
            kept += [values] if is_good(values) else []
            bench.say(f"  round {len(runs)}{'' if is_good(values) else ' FAILED'}: p99 us " + "  ".join(
                f"{name} {values[name]['good']['p99_us']}" for name in sorted(values)) + f", cpu {values['fast_here']['cpu_percent']:.0f}%")
    return {
        "workload": {"tokens": TOKENS, "algorithm": "RS256", "good_per_s": GOOD_RATE, "good_connections": GOOD_CONNECTIONS,
                     "forged_per_s": list(FLOODS.values()), "addresses": ADDRESSES, "requests_per_connection": BAD_TURNS,
                     "seconds": options.seconds, "threads": 1,
                     "scheduler": {0: "other", 1: "fifo", 2: "rr"}.get(os.sched_getscheduler(0), "?"),
                     "placement": "both gateways on one CPU, the generator on the other"},
        "configuration": servers.GATEWAY,
        "figures": figures(kept),
        "pairs": runs,
        "failures": len(runs) - len(kept),
    }


def figures(kept):
    def ratio(percentile, a, b):
        return stats.summary(values[a]["good"][percentile] / max(values[b]["good"][percentile], 1) for values in kept)

    out = {}
    for percentile in ("p50_us", "p99_us", "p999_us"):
        short = percentile[:-3]
        for name in ("alone", *(flood + where for flood, where in SIDES)):
            out[f"{name}_{percentile}"] = stats.summary(values[name]["good"][percentile] for values in kept)
        for flood, where in SIDES:
            suffix = "" if where == "here" else "_elsewhere"
            out[f"{flood}{short}_ratio{suffix}"] = ratio(percentile, flood + where, "alone")
    for flood in FLOODS:
        here = [values[flood + "here"] for values in kept]
        out[f"{flood}forged_per_s"] = stats.summary(run["flood"]["per_s"] for run in here)
        out[f"{flood}shed"] = stats.summary(run["flood"]["statuses"].get("403", 0) / max(run["flood"]["answered"], 1) for run in here)
        out[f"{flood}cpu_percent"] = stats.summary(run["cpu_percent"] for run in here)
    out["good_refused"] = stats.summary([sum(refused(run) for values in kept for run in values.values())] if kept else [])
    return out

"""The limiter alone through Redis (B4 bucket, B5 window), the script bare (B6), the breaker tripped beforehand (B7), and Redis dead
under a policy that is open (B8) or closed (B9), on a port that refuses and on a server that is stopped.

Nothing is refilled and each 100 operations have a fresh key; that all were admitted is asserted for B4 to B6.  B8 and B9 have no
warm-up: the first failures count, and no operation may take longer than redis.timeout and 5 ms.
"""

from perf.bench import procs, stats
from perf.bench.cells import p5

NAME = "B4TO9"
TITLE = "The limiter alone (B4, B5), the bare script (B6), tripped (B7), Redis dead, open (B8) and closed (B9)"
SMOKE = True
AT_ONCE, RUNS, REPETITIONS, TIMEOUT_MS = (1, 8, 64), 3, 3, 20
ASKED = {"b4": ("limiter", "bucket"), "b5": ("limiter", "window"), "b6": ("bare", "bucket"), "b7": ("tripped", "bucket")}
DEAD = {"b8": "open", "b9": "closed"}
BARS = [{"figure": f"{cell}_{how}_c{c}_max_ms", "bar": TIMEOUT_MS + 5, "beyond": None, "better": "lower",
         "what": f"ms, longest of 500 {policy} with Redis {how}, {c} at once"}
        for cell, policy in DEAD.items() for how in ("refused", "stopped") for c in AT_ONCE]
BARS += [{"figure": f"{cell}_c{c}_of_b6", "bar": 0.9 if c == 1 else 0.93, "beyond": 1.0, "better": "higher",
          "what": f"the limiter, bucket, {c} at once: of the bare script's ops/s"} for cell in ("b4",) for c in AT_ONCE]


def check_dead(cell, how, c, run):
    """Counts per reason are those of the table: docs/rate-limits.md."""
    reasons = run["reasons"]
    allowed = sum(n for reason, n in reasons.items() if reason.startswith("allow "))
    if cell == "b9":
        failed = reasons.get("deny fail_closed", 0)
        good = allowed == 0 and (failed == 5 if c == 1 else 1 <= failed <= 5 + c - 1)
        good = good and set(reasons) <= {"deny fail_closed", "deny circuit_open"}
    else:  # one a second: a run takes less than that, but a second may begin
        good = 1 <= allowed <= 2 and set(reasons) <= {"allow redis_timeout", "allow redis_connection_error", "allow circuit_open",
                                                      "deny emergency_local_limit"}
    if not good or sum(reasons.values()) != run["operations"]:
        raise RuntimeError(f"{cell}, {how}, {c} at once: {reasons}")


def one_round(bench, port, pid, turn):
    out = []
    for c in AT_ONCE:
        got = {cell: p5.once(bench, *ASKED[cell], c, procs.free_port() if cell == "b7" else port, pid if cell != "b7" else None)
               for cell in stats.order(list(ASKED), turn)}
        if set(got["b7"]["reasons"]) != {"deny circuit_open"}:
            raise RuntimeError(f"b7: {got['b7']['reasons']}")
        for cell, policy in DEAD.items():
            got[f"{cell}_refused"] = p5.once(bench, policy, "bucket", c, procs.free_port())
            got[f"{cell}_stopped"] = p5.once(bench, policy, "bucket", c, port, pid)
            for how in ("refused", "stopped"):
                check_dead(cell, how, c, got[f"{cell}_{how}"])
        out.append({"c": c, "cells": got})
    return out


def figures(rounds):
    out = {}
    for c in AT_ONCE:
        these = [round_["cells"] for round_ in rounds if round_["c"] == c]
        for cell in these[0]:
            for key in ("ops_s", "p50_us", "p95_us", "p99_us", "cpu_us", "redis_cpu_us"):
                if key in these[0][cell]:
                    out[f"{cell}_c{c}_{key}"] = stats.summary(cells[cell][key] for cells in these)
            if cell[:2] in DEAD:
                out[f"{cell}_c{c}_max_ms"] = stats.summary(cells[cell]["max_us"] / 1e3 for cells in these)
        out[f"b4_c{c}_of_b6"] = stats.summary(stats.ratios(these, "b4", "b6", "ops_s", False))
    return out


def run(bench, options):
    runs, repetitions = (1, 1) if options.smoke else (RUNS, REPETITIONS)
    rounds = []
    for number in range(runs):
        with p5.redis(bench) as (port, pid):
            for repetition in range(repetitions):
                rounds += [dict(round_, run=number, repetition=repetition) for round_ in one_round(bench, port, pid, repetition + number)]
                bench.say(f"  {number + 1}.{repetition + 1}  " + "  ".join(
                    f"{cell} c={round_['c']} {round_['cells'][cell]['ops_s']:,.0f}/s" for round_ in rounds[-3:] for cell in ("b4", "b6")))
    return {
        "workload": {"program": "micro_limit", "operations": p5.OPERATIONS, "runs": runs, "repetitions": repetitions, "at_once": AT_ONCE,
                     "fresh_key_every": 100, "refill": 0, "maxmemory_policy": "noeviction", "timeout_ms": TIMEOUT_MS, "warm_up": "none in B8 and B9"},
        "configuration": "",
        "figures": figures(rounds),
        "pairs": rounds,
        "failures": 0,
    }

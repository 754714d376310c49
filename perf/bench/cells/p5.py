"""The limiter through Redis beside the same script called bare by the same client (micro_limit), and a Redis that is dead.

Nothing is refilled and each 100 operations have a fresh key: every operation is admitted and writes, which is asserted.  The two sides of
a pair run one after the other; the bars are on their ratio.
"""

import contextlib
import json
import os
import subprocess
import time

from perf.bench import procs, stats

NAME = "P5"
TITLE = "Limiter through Redis over the bare script, ops/s; and Redis dead, open and closed"
SMOKE = True
KINDS, AT_ONCE = ("bucket", "window"), (1, 8, 64)
BARS = [{"figure": f"{kind}_c{c}", "bar": 0.90 if c == 1 else 0.93, "beyond": 1.0, "better": "higher",
         "what": f"{kind}, {c} at once: of the bare script's ops/s"} for kind in KINDS for c in AT_ONCE]
BARS += [{"figure": f"{policy}_{how}_max_ms", "bar": 25, "beyond": None, "better": "lower", "what": f"ms, longest of {policy} with Redis {how}"}
         for policy in ("closed", "open") for how in ("refused", "stopped")]
OPERATIONS = {"limiter": 5000, "bare": 10000, "tripped": 50000, "closed": 500, "open": 500}
TICK = 1 / os.sysconf("SC_CLK_TCK")


@contextlib.contextmanager
def redis(bench):
    port = procs.free_port()
    with open(bench.path("redis.log"), "w", encoding="utf-8") as log:
        server = subprocess.Popen(["redis-server", "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--maxmemory-policy", "noeviction"],
                                  stdout=log, stderr=log)
        try:
            time.sleep(0.3)
            yield port, server.pid
        finally:
            server.terminate()
            server.wait()


def ticks(pid):
    with open(f"/proc/{pid}/stat", encoding="ascii") as stat:
        fields = stat.read().rpartition(")")[2].split()
    return int(fields[11]) + int(fields[12])


def once(bench, what, kind, at_once, port, pid=None, operations=None):
    operations = operations or OPERATIONS[what]
    before = ticks(pid) if pid and what in ("limiter", "bare") else None
    argv = [os.path.join(bench.build, "perf", "micro_limit"), what, kind, str(at_once), str(operations), str(port)]
    done = subprocess.run(argv + ([str(pid)] if pid and before is None else []), capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(argv)} exited {done.returncode}: {done.stderr.strip()[-300:]}")
    values = json.loads(done.stdout)
    values["kind"] = kind
    if before is not None:
        used = ticks(pid) - before
        values["redis_cpu_us"] = used * TICK * 1e6 / operations
        values["redis_cpu_reliable"] = used >= 100
        if values["reasons"] != {"allow allowed": operations}:
            raise RuntimeError(f"not every operation was admitted: {values['reasons']}")
    return values


def asked(bench, port, pid, turns, runs):
    """Both sides next to each other, the first one changing."""
    for turn in range(turns):
        for kind in KINDS:
            for at_once in AT_ONCE:
                pair = {what: once(bench, what, kind, at_once, port, pid) for what in stats.order(["limiter", "bare"], turn)}
                pair["figure"] = f"{kind}_c{at_once}"
                runs.append(pair)


def dead(bench, port, pid, turns, runs):
    for _ in range(turns):
        for policy in ("closed", "open"):
            runs.append({"dead": once(bench, policy, "bucket", 1, procs.free_port()), "how": "refused", "policy": policy})
            runs.append({"dead": once(bench, policy, "bucket", 1, port, pid), "how": "stopped", "policy": policy})
        runs.append({"dead": once(bench, "tripped", "bucket", 1, procs.free_port()), "how": "tripped", "policy": "closed"})


def figures(runs):
    out = {}
    pairs = [run for run in runs if "figure" in run]
    for name in sorted({pair["figure"] for pair in pairs}):
        these = [pair for pair in pairs if pair["figure"] == name]
        out[name] = stats.summary(stats.ratios(these, "limiter", "bare", "ops_s", False))
        for side in ("limiter", "bare"):
            out[f"{name}_{side}_ops_s"] = stats.summary(pair[side]["ops_s"] for pair in these)
            for key in ("p50_us", "p95_us", "p99_us", "cpu_us", "redis_cpu_us"):
                out[f"{name}_{side}_{key}"] = stats.summary(pair[side][key] for pair in these)
    for policy, how in [("closed", "refused"), ("closed", "stopped"), ("open", "refused"), ("open", "stopped")]:
        these = [run["dead"] for run in runs if run.get("how") == how and run["policy"] == policy]
        out[f"{policy}_{how}_max_ms"] = stats.summary(run["max_us"] / 1e3 for run in these)
        out[f"{policy}_{how}_p99_us"] = stats.summary(run["p99_us"] for run in these)
    out["tripped_p50_us"] = stats.summary(run["dead"]["p50_us"] for run in runs if run.get("how") == "tripped")
    out["tripped_ops_s"] = stats.summary(run["dead"]["ops_s"] for run in runs if run.get("how") == "tripped")
    return out


def check_reasons(runs):
    """The table of what happens without a store, counted: five failures and no more, one request of the emergency bucket."""
    for run in runs:
        reasons = run["dead"]["reasons"] if run.get("how") in ("refused", "stopped") else None
        if reasons is None:
            continue
        failed = reasons.get("deny fail_closed", 0) if run["policy"] == "closed" else 5
        passed = sum(n for reason, n in reasons.items() if reason.startswith("allow "))
        if failed != 5 or passed > (0 if run["policy"] == "closed" else 2):  # a second begins now and then
            raise RuntimeError(f"{run['policy']}, {run['how']}: {reasons}")


def run(bench, options):
    turns = 1 if options.smoke else max(3 * ((options.pairs + 2) // 3), 3)
    runs = []
    with redis(bench) as (port, pid):
        asked(bench, port, pid, turns, runs)
        dead(bench, port, pid, turns, runs)
    check_reasons(runs)
    return {
        "workload": {"program": "micro_limit", "operations": OPERATIONS, "turns": turns, "fresh_key_every": 100, "refill": 0,
                     "maxmemory_policy": "noeviction", "timeout_ms": 20},
        "configuration": "",
        "figures": figures(runs),
        "pairs": runs,
        "failures": 0,
    }

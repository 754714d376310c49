"""open_loop as a generator: requests at a fixed rate, whatever the server does; latencies from when each was due."""

import json
import os
import subprocess

from perf.bench import procs, stats

LEVELS = (("p50", 50), ("p90", 90), ("p95", 95), ("p99", 99), ("p999", 99.9))


def run(bench, port, requests_file, rate, connections, seconds):
    """{"due", "answered", "statuses", "lost", "p50_us" ... "max_us", "held"}: held when the generator kept its rate."""
    argv = [os.path.join(bench.build, "perf", "open_loop"), str(seconds), str(port), requests_file, str(int(rate)), str(connections)]
    done = subprocess.run(procs.pinned(procs.cpus()[1], argv), capture_output=True, text=True, check=False, timeout=seconds + 60)
    if done.returncode != 0:
        raise RuntimeError(f"open_loop exited {done.returncode}: {done.stderr.strip()[-500:]}")
    return judged(json.loads(done.stdout)["good"], seconds)


def judged(seen, seconds):
    n = seen["answered"]
    over = seen["lost"] + seen["overrun"]
    taken = seconds + (2 if over else 0)  # an overloaded run is waited for two seconds longer
    out = {"due": seen["due"], "answered": n, "statuses": seen["statuses"], "lost": over, "max_us": seen["max_us"],
           "good_per_s": seen["statuses"].get("200", 0) / taken, "lag_worst_us": seen["lag_worst_us"]}
    out |= {f"{name}_us": stats.enough(seen.get(f"{name}_us"), p, n) for name, p in LEVELS}
    return dict(out, held=seen["overrun"] == 0 and seen["lag_worst_us"] < 100000)


def curve(seen):
    """The distribution as a series."""
    return [[name, seen[f"{name}_us"] / 1e3] for name, _ in LEVELS if seen.get(f"{name}_us") is not None] + [["max", seen["max_us"] / 1e3]]

"""The L1 look-up itself: build/release/perf/micro_l1 measures within one process and prints its figures as JSON."""

import json
import os
import subprocess

NAME = "P3"
TITLE = "L1 look-up hit, key already hashed, table larger than the CPU cache"
BARS = [
    {"figure": "hit_cold_500000", "bar": 80, "beyond": 40, "better": "lower", "what": "ns per hit, random order over 500,000 entries"},
    {"figure": "memory_50000_mb", "bar": 26, "beyond": 13.6, "better": "lower", "what": "MB at 50,000 entries"},
    {"figure": "two_threads_500000", "bar": 1.8, "beyond": None, "better": "higher", "what": "two threads over one"},
]


def parse(output):
    figures = {}
    for figure in json.loads(output)["figures"]:
        figures[figure["name"]] = {key: figure[key] for key in ("median", "min", "max", "n")}
        if figure["name"].startswith("memory_"):
            figures[figure["name"] + "_mb"] = {key: figure[key] / 1e6 for key in ("median", "min", "max")} | {"n": figure["n"]}
    return figures


def run(bench, options):
    repetitions = max(2 * options.pairs + 1, 15)
    done = subprocess.run([os.path.join(bench.build, "perf", "micro_l1"), str(repetitions)], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"micro_l1 exited {done.returncode}: {done.stderr.strip()[-500:]}")
    return {
        "workload": {"program": "micro_l1", "repetitions": repetitions},
        "configuration": "",
        "figures": parse(done.stdout),
        "pairs": [],
        "failures": 0,
    }

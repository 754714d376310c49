"""The L1 look-up itself: build/release/perf/micro_l1 run several times, each line of its output `name value`."""

import os
import subprocess

from perf.bench import stats

NAME = "P3"
TITLE = "L1 look-up hit, key already hashed, table larger than the CPU cache"
BARS = [
    {"figure": "hit_ns", "bar": 80, "beyond": 40, "better": "lower", "what": "ns per hit"},
    {"figure": "memory_mb", "bar": 26, "beyond": 13.6, "better": "lower", "what": "MB at 50,000 entries"},
    {"figure": "two_threads", "bar": 1.8, "beyond": None, "better": "higher", "what": "two threads over one"},
]


def parse(output):
    """`name value` lines; anything else is for people."""
    out = {}
    for line in output.splitlines():
        words = line.split()
        if len(words) == 2:
            try:
                out[words[0]] = float(words[1])
            except ValueError:
                pass
    return out


def run(bench, options):
    program = os.path.join(bench.build, "perf", "micro_l1")
    runs, failures = [], 0
    for turn in range(options.pairs):
        done = subprocess.run([program], capture_output=True, text=True, check=False)
        values = parse(done.stdout)
        if done.returncode != 0 or not all(bar["figure"] in values for bar in BARS):
            failures += 1
            bench.say(f"  run {turn + 1} FAILED: {done.stderr.strip()[-500:]}")
            continue
        runs.append(values)
        bench.say(f"  run {turn + 1}: " + "  ".join(f"{k} {stats.human(v)}" for k, v in values.items()))
    names = sorted({name for values in runs for name in values})
    return {
        "workload": {"program": "micro_l1", "runs": options.pairs},
        "configuration": "",
        "figures": {name: stats.summary(values[name] for values in runs if name in values) for name in names},
        "pairs": runs,
        "failures": failures,
    }

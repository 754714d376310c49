"""Rate limits in the process: a bucket, a window, an address before authentication (micro_limit local)."""

import json
import os
import subprocess

NAME = "LIMITS"
TITLE = "A local limit and the address pre-check, each one call"
SMOKE = True
BARS = [
    {"figure": "bucket_hot", "bar": 100, "beyond": None, "better": "lower", "what": "ns per token bucket"},
    {"figure": "window_hot", "bar": 100, "beyond": None, "better": "lower", "what": "ns per sliding window"},
    {"figure": "address_v4", "bar": 100, "beyond": None, "better": "lower", "what": "ns per IPv4 address"},
]


def run(bench, options):
    repetitions = max(2 * options.pairs + 1, 15)
    done = subprocess.run([os.path.join(bench.build, "perf", "micro_limit"), "local", str(repetitions)], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"micro_limit exited {done.returncode}: {done.stderr.strip()[-500:]}")
    figures = json.loads(done.stdout)["figures"]
    return {
        "workload": {"program": "micro_limit local", "repetitions": repetitions},
        "configuration": "",
        "figures": {figure["name"]: {key: figure[key] for key in ("median", "min", "max", "n")} for figure in figures},
        "pairs": [],
        "failures": 0,
    }

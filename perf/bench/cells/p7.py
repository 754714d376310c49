"""What a command costs while its breaker is open: build/release/perf/micro_redis measures within one process."""

import json
import os
import subprocess

NAME = "P7"
TITLE = "Redis dead and its breaker open: what a command that is not asked adds"
BARS = [
    {"figure": "open_added_us", "bar": 1, "beyond": None, "better": "lower", "what": "us per command, beside an empty call"},
]


def run(bench, options):
    repetitions = max(40 * options.pairs + 1, 201)
    done = subprocess.run([os.path.join(bench.build, "perf", "micro_redis"), str(repetitions)], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"micro_redis exited {done.returncode}: {done.stderr.strip()[-500:]}")
    figures = {figure["name"]: {key: figure[key] for key in ("median", "min", "max", "n")} for figure in json.loads(done.stdout)["figures"]}
    return {
        "workload": {"program": "micro_redis", "repetitions": repetitions, "call": "sz_redis_start answers SZ_REDIS_OPEN"},
        "configuration": "",
        "figures": figures,
        "pairs": [],
        "failures": 0,
    }

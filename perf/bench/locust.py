"""locust as a generator of paced load, on the generator's CPU."""

import json
import os
import subprocess

from perf.bench import procs, stats

FILE = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "load", "locustfile.py")


def plan(bench, hot, cold, cold_share, think_s):
    """hot, cold: tokens with the path that is asked about: [(token, "/documents/7")]."""
    def headers(rows):
        return [{"Authorization": f"Bearer {token}", "X-Original-URI": uri, "X-Original-Method": "GET", "X-Forwarded-For": "192.0.2.7"}
                for token, uri in rows]

    return bench.write("plan.json", json.dumps({"hot": headers(hot), "cold": headers(cold), "cold_share": cold_share, "think_s": think_s,
                                                "path": "/auth"}))


def run(bench, port, path, users, spawn_rate, seconds):
    """{"requests", "failures": {cause: n}, "seconds", "latencies_ms": distribution}; every user has a connection of its own."""
    out = bench.path("locust.json")
    argv = ["locust", "-f", FILE, "--headless", "--users", str(users), "--spawn-rate", str(spawn_rate), "--run-time", f"{seconds}s",
            "--host", f"http://127.0.0.1:{port}", "--only-summary", "--exit-code-on-error", "0", "--stop-timeout", "30"]
    env = dict(os.environ, BENCH_PLAN=path, BENCH_OUT=out, LOCUST_SKIP_MONKEY_PATCH="")
    done = subprocess.run(procs.pinned(procs.cpus()[1], argv), capture_output=True, text=True, check=False, env=env, timeout=seconds + 300)
    if done.returncode != 0 or not os.path.exists(out):
        raise RuntimeError(f"locust exited {done.returncode}: {(done.stdout + done.stderr)[-800:]}")
    with open(out, encoding="utf-8") as f:
        return judged(json.load(f))


def judged(seen):
    good, bad = seen["latencies_us"], seen["failures"]
    spread = stats.distribution(good)
    return {"requests": len(good) + sum(bad.values()), "failures": bad, "seconds": seen["seconds"], "cold_used": seen["cold_used"],
            "latencies_ms": {name: value / 1000 if value is not None and name != "n" else value for name, value in spread.items()}}

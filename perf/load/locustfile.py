"""Users with think time, for locust: most ask with what is known already, some with what is new.

    locust -f perf/load/locustfile.py --headless --users 1000 --spawn-rate 50 --run-time 10m --host http://127.0.0.1:8081

BENCH_PLAN names a JSON file {"hot": [headers], "cold": [headers], "cold_share": 0.2, "think_s": 3.3, "path": "/auth"}; each
cold one is used once, in turn.  BENCH_OUT names the file for what was seen: locust's own table rounds to milliseconds.
"""

import json
import os
import random
import time

from locust import FastHttpUser, between, events, task

with open(os.environ["BENCH_PLAN"], encoding="utf-8") as plan_file:
    PLAN = json.load(plan_file)
SEEN = {"latencies_us": [], "failures": {}, "started": time.time()}
COLD = {"at": 0}


def headers():
    if PLAN["cold"] and random.random() < PLAN["cold_share"]:
        COLD["at"] += 1
        return PLAN["cold"][(COLD["at"] - 1) % len(PLAN["cold"])]
    return random.choice(PLAN["hot"])


class Caller(FastHttpUser):
    wait_time = between(PLAN["think_s"] * 0.5, PLAN["think_s"] * 1.5)
    connection_timeout = network_timeout = 30.0

    @task
    def decide(self):
        start = time.perf_counter()
        response = self.client.get(PLAN["path"], headers=headers(), name="decide")
        took = time.perf_counter() - start
        if response.status_code == 200:
            SEEN["latencies_us"].append(int(took * 1e6))
        else:
            cause = f"status {response.status_code}" if response.status_code else type(response.error).__name__
            SEEN["failures"][cause] = SEEN["failures"].get(cause, 0) + 1


@events.quitting.add_listener
def on_quitting(**_):
    with open(os.environ["BENCH_OUT"], "w", encoding="utf-8") as out:
        json.dump(dict(SEEN, seconds=time.time() - SEEN["started"], cold_used=COLD["at"]), out)

"""A dead Redis whose breaker is open: the call itself in one process (micro_redis), and a limited route over HTTP beside it."""

import json
import os
import subprocess

from perf.bench import load, procs, servers

NAME = "P7"
TITLE = "Redis dead and its breaker open: what a command that is not asked adds"
SMOKE = True
BARS = [
    {"figure": "open_added_us", "bar": 1, "beyond": None, "better": "lower", "what": "us per command, beside an empty call"},
]
LIMITED = """\
rate_limits:
  wide: {{algorithm: token_bucket, capacity: 1000000, refill: 1000000/1s, on_store_failure: open, emergency: 1000000/1s}}
{redis}"""
DEAD = "redis: {{url: redis://127.0.0.1:{port}, key_file: {key}, breaker: {{open: 3600s}}}}\n"


def micro(bench, repetitions):
    done = subprocess.run([os.path.join(bench.build, "perf", "micro_redis"), str(repetitions)], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"micro_redis exited {done.returncode}: {done.stderr.strip()[-500:]}")
    figures = json.loads(done.stdout)["figures"]
    return {figure["name"]: {key: figure[key] for key in ("median", "min", "max", "n")} for figure in figures}


def gateway(bench, port, upstream, redis):
    yaml = servers.gateway_yaml(bench, f"  - {{address: 127.0.0.1:{port}}}", procs.free_port(), upstream, LIMITED.format(redis=redis))
    return bench.subzero(yaml.replace("    upstream: documents\n", "    upstream: documents\n    rate_limit: wide\n"), port)


def run(bench, options):
    repetitions = max(40 * options.pairs + 1, 201)
    figures = micro(bench, repetitions)
    tokens = bench.tokens(100)
    requests = [load.get("/documents/roadmap", {"Authorization": f"Bearer {token}"}) for token in tokens]
    load.write_requests(bench.path("requests"), requests)
    key = bench.write("fleet.key", bench.run(bench.gateway, "key", "new"))
    dead_port, local_port = procs.free_port(), procs.free_port()
    with bench.upstream() as upstream, \
            gateway(bench, dead_port, upstream.port, DEAD.format(port=procs.free_port(), key=key)) as dead, \
            gateway(bench, local_port, upstream.port, "") as local:
        for name, server in {"dead": dead, "local": local}.items():
            for request in requests[:20]:
                status, answer = load.once(server.port, request)
                if status != 200:
                    raise RuntimeError(f"{name} does not allow: {answer!r}")
        good, bad = load.pairs({"dead": dead, "local": local}, bench.path("requests"), options, bench)
    figures.update(load.figures(good, "dead", "local", "local"))
    return {
        "workload": {"program": "micro_redis", "repetitions": repetitions, "call": "sz_redis_start answers SZ_REDIS_OPEN",
                     "http": "the same policy: Redis dead under an emergency limit, and without Redis", "connections": options.connections,
                     "seconds": options.seconds, "threads": 1, "generator": "wrk -t1"},
        "configuration": servers.GATEWAY + LIMITED + DEAD,
        "figures": figures,
        "pairs": good + bad,
        "failures": len(bad),
    }

"""1, 2, 4 and 8 threads of one gateway, and as many instances: CPU per request, and what that makes of more cores.

This machine has fewer cores than threads here, so the verdict is by CPU: N threads on N cores do N times the work of one as far as
a request costs no more CPU; scale = N x CPU of one / CPU of N.  Clients share the cores.  The costs of the layers, from the
same run, are a model: a request costs the sum of its layers' shares times their costs.  It predicts the mixed run and, with the
CPU that Redis takes, at which size a fleet has used up one Redis.  Left out: memory bandwidth and caches of more cores.
"""

import concurrent.futures
import contextlib
import subprocess

from perf.bench import load, metrics, procs, servers, stack, stats

NAME = "SCALING"
TITLE = "1, 2, 4, 8 threads and instances by CPU per request; costs of the layers and what they predict"
COUNTS = (1, 2, 4, 8)
BARS = [
    {"figure": "threads_2", "bar": 1.9, "beyond": None, "better": "higher", "what": "two threads over one"},
    {"figure": "instances_8_percent", "bar": 98.75, "beyond": None, "better": "higher", "what": "% of eight times one instance, by CPU"},
    {"figure": "instance_rps", "bar": 10000, "beyond": None, "better": "higher", "what": "decisions/s, one instance on one core (eight: 79,000)"},
    {"figure": "four_cores_rps", "bar": 15000, "beyond": None, "better": "higher", "what": "decisions/s on four cores, by CPU"},
    {"figure": "model_error_percent", "bar": 25, "beyond": 10, "better": "lower", "what": "% between the mixed run's cost and the model's"},
]
EVERYWHERE = "0-%d" % (max(procs.cpus()) if procs.cpus() else 0)


def decide(bench, workers):
    """A gateway wherever it likes, with so many threads."""
    port = procs.free_port()
    text = servers.gateway_yaml(bench, f"  - {{address: 127.0.0.1:{port}, mode: decide, dialect: nginx}}", procs.free_port(), 9)
    return bench.subzero(text.replace("workers: 1", f"workers: {workers}"), port, None)


def loaded(bench, gateways, options, threads=1):
    """CPU per request of all of them together; each thread has as many connections, as it would have on a core of its own."""
    used = [gateway.cpu_ns() for gateway in gateways]
    with concurrent.futures.ThreadPoolExecutor(len(gateways)) as pool:
        runs = list(pool.map(lambda gateway: load.wrk(gateway.port, bench.path("requests"), options.seconds, options.connections * threads, EVERYWHERE), gateways))
    errors = sum(sum(run["errors"].values()) for run in runs)
    spent = sum(gateway.cpu_ns() - before for gateway, before in zip(gateways, used))
    return {"cpu_us": spent / 1e3 / max(1, sum(run["requests"] for run in runs)), "errors": errors,
            "rps": sum(run["requests"] / run["seconds"] for run in runs)}


def scaled(bench, options):
    load.write_requests(bench.path("requests"), [load.decision(token) for token in bench.tokens(300)])
    turns = []
    with contextlib.ExitStack() as running:
        threads = {n: [running.enter_context(decide(bench, n))] for n in COUNTS}
        instances = {n: threads[1] if n == 1 else [running.enter_context(decide(bench, 1)) for _ in range(n)] for n in COUNTS}
        for turn in range(options.pairs):
            now = {}
            for n in stats.order(list(COUNTS), turn):
                now[f"threads_{n}"] = loaded(bench, threads[n], options, n)
                now[f"instances_{n}"] = loaded(bench, instances[n], options) if n > 1 else now["threads_1"]
            turns.append(now)
            bench.say(f"  turn {turn + 1}: " + "  ".join(f"{name} {one['cpu_us']:.2f} us" for name, one in now.items()))
    return turns


def redis_cpu(server):
    return procs.cpu_ns(server.pid)


def layers(bench, options):
    """µs of the gateway's CPU a request that each layer answers, Redis's own for one that it answers, and a mixed run."""
    out = []
    with stack.Stack(bench, {"redis"}) as around:
        tokens = around.provider.tokens(600, "layer")
        load.write_requests(bench.path("requests"), [load.decision(token) for token in tokens])
        sides = {"l1": {}, "l2": {"ttl": "1ms"}, "l3": {"ttl": "1ms", "l2": "0s"}, "mixed": {"ttl": "25ms"}}
        with contextlib.ExitStack() as running:
            admins, gateways = {}, {}
            for name, how in sides.items():
                port, admins[name] = procs.free_port(), procs.free_port()
                gateways[name] = running.enter_context(bench.subzero(around.yaml(port, admins[name], **how), port))
                load.wrk(port, bench.path("requests"), 1, options.connections, procs.cpus()[1])
            for _ in range(options.pairs):
                now = {}
                for name, gateway in gateways.items():
                    before, redis = metrics.scrape(admins[name]), redis_cpu(around.redis)
                    run = load.measure(gateway, bench.path("requests"), options.seconds, options.connections)
                    now[name] = {"cpu_us": run["cpu_us"], "rps": run["rps"], "errors": sum(run["errors"].values()),
                                 "redis_us": (redis_cpu(around.redis) - redis) / 1e3 / max(1, run["requests"]),
                                 "hits": metrics.hits(metrics.delta(before, metrics.scrape(admins[name])))}
                out.append(now)
                bench.say("  layers: " + "  ".join(f"{name} {one['cpu_us']:.2f} us, {one['hits'] and {k: round(v, 3) for k, v in one['hits'].items()}}"
                                                   for name, one in now.items()))
    return out


def unmixed(measured, shares, cheaper):
    """The cost of one layer's request, when some were answered by a cheaper one."""
    own = 1 - sum(shares[name] for name in cheaper)
    return (measured - sum(shares[name] * cost for name, cost in cheaper.items())) / own if own > 0.2 else None


def model(turn):
    l1 = turn["l1"]["cpu_us"]
    l2 = unmixed(turn["l2"]["cpu_us"], turn["l2"]["hits"], {"l1": l1})
    l3 = unmixed(turn["l3"]["cpu_us"], turn["l3"]["hits"], {"l1": l1})
    if l2 is None or l3 is None:
        return None
    shares = turn["mixed"]["hits"]
    predicted = shares["l1"] * l1 + shares["l2"] * l2 + shares["l3"] * l3
    usual = 0.88 * l1 + 0.10 * l2 + 0.02 * l3
    redis = turn["l2"]["redis_us"] / max(0.01, 1 - turn["l2"]["hits"]["l1"])
    return {"cost_l1_us": l1, "cost_l2_us": l2, "cost_l3_us": l3, "redis_us": redis, "mixed_us": turn["mixed"]["cpu_us"], "predicted_us": predicted,
            "model_error_percent": abs(predicted / turn["mixed"]["cpu_us"] - 1) * 100, "core_rps": 1e6 / usual,
            "redis_full_rps": 1e6 / redis / 0.12 if redis else None, "cores_to_fill_redis": 1e6 / redis / 0.12 / (1e6 / usual) if redis else None}


def run(bench, options):
    turns, costs = scaled(bench, options), layers(bench, options)
    good = [turn for turn in turns if not any(one["errors"] for one in turn.values())]
    models = [one for one in map(model, costs) if one]
    figures = {}
    for n in COUNTS:
        for kind in ("threads", "instances"):
            figures[f"{kind}_{n}"] = stats.summary(n * turn["threads_1"]["cpu_us"] / turn[f"{kind}_{n}"]["cpu_us"] for turn in good)
            figures[f"{kind}_{n}_cpu_us"] = stats.summary(turn[f"{kind}_{n}"]["cpu_us"] for turn in good)
            figures[f"{kind}_{n}_rps_by_cpu"] = stats.summary(n * 1e6 / turn[f"{kind}_{n}"]["cpu_us"] for turn in good)
    figures["instances_8_percent"] = stats.summary(100 * turn["threads_1"]["cpu_us"] / turn["instances_8"]["cpu_us"] for turn in good)
    figures["instance_rps"], figures["four_cores_rps"] = figures["threads_1_rps_by_cpu"], figures["threads_4_rps_by_cpu"]
    for name in models[0] if models else ():
        figures[name] = stats.summary(one[name] for one in models)
    series = {kind: [[n, figures[f"{kind}_{n}"]["median"]] for n in COUNTS if figures[f"{kind}_{n}"]] for kind in ("threads", "instances")}
    return {
        "workload": {"tokens": 300, "algorithm": "RS256", "connections": options.connections, "seconds": options.seconds, "counts": list(COUNTS),
                     "placement": "gateways and clients share all cores"},
        "configuration": servers.GATEWAY + stack.GATEWAY, "figures": figures, "series": dict(series, ideal=[[n, n] for n in COUNTS]),
        "pairs": [turns, costs], "failures": len(turns) - len(good),
    }

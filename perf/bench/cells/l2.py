"""A fact from Redis: an L2 hit against a bare h2o handler that asks Redis once, against an L1 hit, and, for JWTs, against
checking the signature again.

Every request is an L2 hit because L1 keeps facts for a millisecond and the tokens take turns; the counters of the gateway
say whether that was so.
"""

import contextlib
import urllib.request

from perf.bench import load, procs, servers, stats

NAME = "L2"
TITLE = "an L2 hit, whole exchange, against a bare h2o handler plus one GET; and against verifying the JWT anew"
SMOKE = True
BARS = [{"figure": "rps_ratio_vs_bare", "bar": 0.8, "beyond": None, "better": "higher", "what": "ours / bare h2o plus GET, requests/s"}]
TOKENS = 300
ALGORITHMS = ("RS256", "PS256", "ES256", "EdDSA")
SHORT = "cache: {{l1: {{ttl: 1ms}}{l2}}}\n"
REDIS = "redis: {{url: redis://127.0.0.1:{port}, key_file: {key}, timeout: 1s}}\n"


def gateway(bench, port, admin, more, alg):
    listen = f"  - {{address: 127.0.0.1:{port}, mode: decide, dialect: nginx}}"
    return bench.subzero(servers.gateway_yaml(bench, listen, admin, 9, more, alg), port)


def metric(admin, name):
    with urllib.request.urlopen(f"http://127.0.0.1:{admin}/metrics", timeout=5) as answer:
        for line in answer.read().decode().splitlines():
            if line.startswith(name + " "):
                return float(line.split()[1])
    return 0.0


def layers(admin):
    return {layer: {what: metric(admin, f'subzero_cache_{what}_total{{layer="{layer}",kind="token"}}')
                    for what in ("requests", "hits")} for layer in ("l1", "l2")}


def redis_server(bench):
    port = procs.free_port()
    argv = ["redis-server", "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--daemonize", "no"]
    return procs.Server("redis", argv, port, bench.path("redis.log"), procs.cpus()[1])


def one_algorithm(bench, options, alg, redis_port, key):
    """(good, bad, layers of the L2 side) for: l2, verify; and for the first algorithm l1 and bare as well."""
    tokens = bench.tokens(TOKENS, alg)
    load.write_requests(bench.path("requests"), [load.decision(token) for token in tokens])
    admin, more = procs.free_port(), REDIS.format(port=redis_port, key=key)
    with contextlib.ExitStack() as running:
        sides = {}  # each started before the next one's configuration is written: they share the file
        sides["l2"] = running.enter_context(gateway(bench, procs.free_port(), admin, more + SHORT.format(l2=", l2: {jwt: true}"), alg))
        sides["verify"] = running.enter_context(gateway(bench, procs.free_port(), procs.free_port(), SHORT.format(l2=""), alg))
        if alg == ALGORITHMS[0]:
            sides["l1"] = running.enter_context(gateway(bench, procs.free_port(), procs.free_port(), "", alg))
            sides["bare"] = running.enter_context(bare(bench, redis_port))
        good, bad = load.pairs(sides, bench.path("requests"), options, bench)
        return good, bad, layers(admin)


def bare(bench, redis_port):
    port = procs.free_port()
    bench.run("redis-cli", "-p", str(redis_port), "SET", "bare", "x" * 300)
    return procs.Server("bare_redis", [f"{bench.build}/perf/bare_redis", str(port), str(redis_port), "bare"], port,
                        bench.path("bare.log"), procs.cpus()[0])


def run(bench, options):
    key = bench.write("fleet.key", bench.run(bench.gateway, "key", "new"))
    figures, kept, failures, seen = {}, [], 0, {}
    with redis_server(bench) as redis:
        for alg in ALGORITHMS[:1] if options.smoke else ALGORITHMS:
            bench.say(f"  {alg}")
            good, bad, seen[alg] = one_algorithm(bench, options, alg, redis.port, key)
            kept += [dict(pair, algorithm=alg) for pair in good + bad]
            failures += len(bad)
            figures.update(compared(good, alg))
            if alg == ALGORITHMS[0]:
                figures.update(load.figures(good, "l2", "bare", "bare"))
                figures["added_p50_us_over_l1"] = stats.summary(pair["l2"]["p50_us"] - pair["l1"]["p50_us"] for pair in good)
    return {
        "workload": {"tokens": TOKENS, "connections": options.connections, "seconds": options.seconds, "threads": 1,
                     "generator": "wrk -t1", "placement": "gateways on one CPU, redis-server and wrk on the other", "layers": seen},
        "configuration": servers.GATEWAY + SHORT + REDIS,
        "figures": figures,
        "pairs": kept,
        "failures": failures,
    }


def compared(good, alg):
    """Above 1: Redis costs more than the signature."""
    name = alg.lower()
    return {f"{name}_l2_cpu_of_verify": stats.summary(pair["l2"]["cpu_us"] / pair["verify"]["cpu_us"] for pair in good),
            f"{name}_l2_cpu_us": stats.summary(pair["l2"]["cpu_us"] for pair in good),
            f"{name}_verify_cpu_us": stats.summary(pair["verify"]["cpu_us"] for pair in good),
            f"{name}_l2_p50_us": stats.summary(pair["l2"]["p50_us"] for pair in good),
            f"{name}_verify_p50_us": stats.summary(pair["verify"]["p50_us"] for pair in good)}

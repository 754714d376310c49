"""A guarded route over HTTP: a bare handler (B1), a token bucket (B2) and a sliding window (B3) in Redis; B2 and B3 beside a
bare handler that has Redis run the very script for each request and judges nothing.

All sides are asked the same bytes: about a public route whose policy counts by path, where each 100 requests have a path of
their own.  The policies admit 100 and nothing comes back, so all are admitted and each one writes.  That it was so is asserted:
no answer but 200, and of the keys that had their hundred not one has another to give.
"""

import contextlib
import os
import subprocess
import urllib.request

from perf.bench import judge, load, procs, servers, stats

NAME = "B1TO3"
TITLE = "A limited route over HTTP (B1-B3), over a handler that calls the same script bare"
SMOKE = True
AT_ONCE, PER_KEY, LEAST, RUNS, REPETITIONS = (1, 8, 64), 100, 2000, 3, 3
SIDES = {"b1": "bare h2o", "b2": "guarded, token bucket", "b3": "guarded, sliding window", "bare_bucket": "h2o and the bucket's script",
         "bare_window": "h2o and the window's script"}
RATIOS = {"b2": "bare_bucket", "b3": "bare_window"}
BARS = [{"figure": f"{side}_c{c}_of_bare", "bar": 0.8, "beyond": None, "better": "higher",
         "what": f"{SIDES[side]}, {c} at once: of the ops/s of {SIDES[bare]}"} for side, bare in RATIOS.items() for c in AT_ONCE]
AT_ONCE_SMOKE = (8,)
GUARDS = [judge.guard(bar) for bar in BARS if any(bar["figure"].endswith(f"_c{c}_of_bare") for c in AT_ONCE_SMOKE)]
RELIABLE_NS = 100 * 10**9 // os.sysconf("SC_CLK_TCK")  # a hundred ticks of CPU
LUA = os.path.join(os.path.dirname(load.LUA), "fresh_keys.lua")
LIMITED = """\
redis: {{url: redis://127.0.0.1:{redis}, key_file: {key}, timeout: 1s}}
rate_limits:
  bucket: {{algorithm: token_bucket, capacity: 100, refill: 0/1s, key: "{{path.id}}", on_store_failure: closed}}
  window: {{algorithm: sliding_window, limit: 100, window: 1d, key: "{{path.id}}", on_store_failure: closed}}
"""
ROUTE = """\
  - id: limited
    match: {{methods: [GET], path: "/documents/{{id}}"}}
    public: true
    rate_limit: {policy}
    upstream: documents
"""


def configuration(bench, policy, port, admin, redis, key):
    text = servers.gateway_yaml(bench, f"  - {{address: 127.0.0.1:{port}, mode: decide, dialect: nginx}}", admin, 9,
                                LIMITED.format(redis=redis, key=key))
    return text[:text.index("  - id: documents.read")] + ROUTE.format(policy=policy)


def redis_server(bench):
    port = procs.free_port()
    argv = ["redis-server", "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--maxmemory-policy", "noeviction"]
    return procs.Server("redis", argv, port, bench.path("redis.log"), procs.cpus()[1])


def reasons(admin):
    """Counts of subzero_ratelimit_decisions_total by (decision, reason)."""
    out = {}
    with urllib.request.urlopen(f"http://127.0.0.1:{admin}/metrics", timeout=5) as answer:
        for line in answer.read().decode().splitlines():
            if line.startswith("subzero_ratelimit_decisions_total{"):
                labels, _, value = line.partition("} ")
                fields = dict(pair.split("=", 1) for pair in labels.split("{", 1)[1].split(","))
                out[f"{fields['decision']} {fields['reason']}".replace('"', "")] = float(value)
    return out


def ask(key):
    return load.get("/auth", {"X-Original-URI": f"/documents/{key}", "X-Original-Method": "GET", "X-Forwarded-For": "192.0.2.7"})


def spent(side, server, salt, sent):
    """Keys that had their hundred have nothing left: nothing was admitted that did not count."""
    if side == "b1":
        return
    whole = sent // PER_KEY - 1
    # Key 0 has had ninety-nine: wrk calls request() once for itself, before it connects.
    for n in sorted({1, whole // 2, whole - 1} & set(range(1, whole))):
        status, answer = load.once(server.port, ask(f"{salt}-{n}"))
        if status not in (429, 403):  # nginx's dialect says 403 for it
            raise RuntimeError(f"{side}: a key that had its {PER_KEY} admits one more: {answer!r}")


def measure(side, server, redis, admin, at_once, seconds, salt):
    before, redis_before = server.cpu_ns(), redis.cpu_ns()
    counted = reasons(admin) if admin else {}
    argv = ["wrk", "-t1", f"-c{at_once}", f"-d{seconds}s", "-s", LUA, f"http://127.0.0.1:{server.port}/"]
    done = subprocess.run(procs.pinned(procs.cpus()[1], argv), capture_output=True, text=True, check=False,
                          env=dict(os.environ, BENCH_SALT=salt))
    run = load.parse(done.stdout + done.stderr)
    used, redis_used, n = server.cpu_ns() - before, redis.cpu_ns() - redis_before, run["requests"]
    if n < LEAST or any(run["errors"].values()):
        raise RuntimeError(f"{side}, {at_once} at once: {run}")
    spent(side, server, salt, run["sent"])
    after = reasons(admin) if admin else {}
    new = {reason: after[reason] - counted.get(reason, 0) for reason in after}
    if new.get("deny rate_limited", 0) > 3 or any(count for reason, count in new.items() if reason not in ("allow allowed", "deny rate_limited")):
        raise RuntimeError(f"{side}, {at_once} at once, three were to be denied and nothing fail: {new}")
    return {"ops_s": n / run["seconds"], "requests": n, "p50_us": run["p50_us"], "p95_us": run["p95_us"], "p99_us": run["p99_us"],
            "max_us": run["max_us"], "cpu_us": used / 1000 / n, "cpu_reliable": used >= RELIABLE_NS,
            "redis_cpu_us": redis_used / 1000 / n, "redis_cpu_reliable": redis_used >= RELIABLE_NS, "reasons": new}


@contextlib.contextmanager
def sides(bench, redis, key):
    """Each started before the next one's configuration is written: they share the file."""
    with contextlib.ExitStack() as running:
        out, admins = {}, {}
        out["b1"] = running.enter_context(bench.bare("b1", "hello", 0))
        for side, policy in (("b2", "bucket"), ("b3", "window")):
            port, admins[side] = procs.free_port(), procs.free_port()
            text = configuration(bench, policy, port, admins[side], redis.port, key)
            out[side] = running.enter_context(bench.subzero(text, port))
        for side in RATIOS.values():
            port = procs.free_port()
            argv = [os.path.join(bench.build, "perf", "bare_redis"), str(port), str(redis.port), "script:" + side.split("_")[1]]
            out[side] = running.enter_context(procs.Server(side, argv, port, bench.path(side + ".log"), procs.cpus()[0]))
        yield out, admins


def figures(rounds):
    out = {}
    for c in sorted({round_["c"] for round_ in rounds}):
        these = [round_["sides"] for round_ in rounds if round_["c"] == c]
        for side in SIDES:
            for key in ("ops_s", "p50_us", "p95_us", "p99_us", "cpu_us", "redis_cpu_us"):
                out[f"{side}_c{c}_{key}"] = stats.summary(sides_[side][key] for sides_ in these)
        for side, bare in RATIOS.items():
            out[f"{side}_c{c}_of_bare"] = stats.summary(stats.ratios(these, side, bare, "ops_s", False))
            out[f"{side}_c{c}_of_b1"] = stats.summary(stats.ratios(these, side, "b1", "ops_s", False))
    return out


def run(bench, options):
    rounds, seconds = [], 1  # thousands of requests, and fifteen sides a repetition
    runs, repetitions = (1, 1) if options.smoke else (RUNS, REPETITIONS)
    key = bench.write("fleet.key", bench.run(bench.gateway, "key", "new"))
    bench.issuer()
    for number in range(runs):
        with redis_server(bench) as redis, sides(bench, redis, key) as (running, admins):
            for repetition in range(repetitions):
                for c in AT_ONCE_SMOKE if options.smoke else AT_ONCE:
                    got = {}
                    for side in stats.order(list(SIDES), repetition + number):
                        salt = f"{number}-{repetition}-{c}-{side}"
                        got[side] = measure(side, running[side], redis, admins.get(side), c, seconds, salt)
                    rounds.append({"run": number, "repetition": repetition, "c": c, "sides": got})
                    bench.say(f"  {number + 1}.{repetition + 1} c={c:2}  " + "  ".join(f"{side} {got[side]['ops_s']:,.0f}/s" for side in SIDES))
    return {
        "workload": {"generator": "wrk -t1 -s fresh_keys.lua", "seconds": seconds, "runs": runs, "repetitions": repetitions, "least": LEAST,
                     "at_once": AT_ONCE, "fresh_key_every": PER_KEY, "refill": 0, "maxmemory_policy": "noeviction"},
        "configuration": servers.GATEWAY + LIMITED + ROUTE,
        "figures": figures(rounds),
        "pairs": rounds,
        "failures": 0,
    }

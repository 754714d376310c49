"""script/bench compare A B: two gateways, commits or builds, under the same load; whether a difference is more than the spread.

At least 25 attempts a side, in alternating order, each with a process of its own.  An attempt that fails is counted by its
cause and is no sample.  A row is "within noise" when the medians differ by less than the wider of both spreads (the middle
half of the samples).  The control row is a bare server that neither side can touch, measured in each side's turn: where
it is not within noise, the machine moved, and nothing else on the page counts.
"""

import collections
import contextlib
import os
import statistics
import subprocess

from perf.bench import conditions, load, metrics, procs, servers, stack, stats
from perf.bench.cells import fga

ATTEMPTS = 25
UNITS = {"cpu_us": "µs of CPU a request", "rps": "requests/s", "p50_us": "µs p50", "p95_us": "µs p95", "p99_us": "µs p99", "max_us": "µs, longest"}


class Refused(Exception):
    """The two sides cannot be compared: why."""


# ---- the sides ----

def build_commit(root, commit, say):
    """The release build of a commit, in a work tree of its own under build/compare; kept for the next time."""
    resolved = subprocess.run(["git", "-C", root, "rev-parse", "--verify", commit + "^{commit}"], capture_output=True, text=True, check=False)
    if resolved.returncode != 0:
        raise Refused(f"{commit} is neither a folder with a build nor a commit")
    tree = os.path.join(root, "build", "compare", resolved.stdout.strip()[:12])
    if not os.path.isdir(tree):
        quiet(["git", "-C", root, "worktree", "add", "--detach", tree, resolved.stdout.strip()])
    say(f"building {commit} in {os.path.relpath(tree, root)}")
    folder = os.path.join(tree, "build", "release")
    if not os.path.isdir(folder):
        quiet(["cmake", "--preset", "release"], tree)
    quiet(["cmake", "--build", folder, "--target", "subzero"], tree)
    return folder


def quiet(argv, folder=None):
    done = subprocess.run(argv, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise Refused(f"{' '.join(argv)} failed:\n{(done.stdout + done.stderr)[-1500:]}")


class Side:
    def __init__(self, root, name, say):
        self.name = name
        self.build = os.path.abspath(name) if os.path.isfile(os.path.join(name, "subzero")) else build_commit(root, name, say)
        self.binary = os.path.join(self.build, "subzero")
        self.known = conditions.build(source_of(self.build) or root, self.binary)


def source_of(build):
    """The tree that a build folder was configured for."""
    try:
        with open(os.path.join(build, "CMakeCache.txt"), encoding="utf-8") as f:
            return next((line.strip().partition("=")[2] for line in f if line.startswith("CMAKE_HOME_DIRECTORY:")), None)
    except FileNotFoundError:
        return None


def same_conditions(known):
    """known: side to conditions.  Refuses what was, or would be, measured under different ones."""
    (a, one), (b, two) = known.items()
    if one["fingerprint"] == two["fingerprint"]:
        return
    differing = [f"{group}.{key}: {one.get(group, {}).get(key)!r} / {two.get(group, {}).get(key)!r}" for group in ("machine", "toolchain", "libraries", "peers")
                 for key in sorted(set(one.get(group, {})) | set(two.get(group, {}))) if one.get(group, {}).get(key) != two.get(group, {}).get(key)]
    differing += [key for key in ("workload", "configuration") if one[key] != two[key]]
    raise Refused(f"{a} and {b} have different conditions, so their figures say nothing about each other: {'; '.join(differing)}")


# ---- workloads ----

class Hit:
    """Decisions on L1 hits: P1's load."""

    name, tokens, configuration = "hit", 300, servers.GATEWAY

    def __init__(self, bench):
        self.bench = bench

    def __enter__(self):
        self.requests = [load.decision(token) for token in self.bench.tokens(self.tokens)]
        return self

    def __exit__(self, *_):
        pass

    def yaml(self, port, admin):
        return servers.gateway_yaml(self.bench, f"  - {{address: 127.0.0.1:{port}, mode: decide, dialect: nginx}}", admin, 9)

    def counts(self):
        return {}


class Full(Hit):
    """Nothing is cached: each request asks the provider, Redis for its limit and a remote FGA server."""

    name, tokens, configuration = "full", 600, stack.GATEWAY  # in turn: each one's millisecond in L1 is over when it comes again

    def __enter__(self):
        self.stack = stack.Stack(self.bench, {"redis", "limit", "fga"}).__enter__()
        tokens = [self.stack.provider.token(f"user-{i % fga.TOKENS}") for i in range(self.tokens)]
        self.requests = [load.decision(token).replace(b"/documents/roadmap", b"/documents/%d" % (i * 7 % fga.HOT)) for i, token in enumerate(tokens)]
        return self

    def __exit__(self, *_):
        self.stack.__exit__()

    def yaml(self, port, admin):
        return self.stack.yaml(port, admin, ttl="1ms", l2="0s", decisions=0)

    def counts(self):
        """What Redis and the provider say themselves."""
        text = subprocess.run(["redis-cli", "-p", str(self.stack.redis.port), "info", "stats"], capture_output=True, text=True, check=True).stdout
        info = dict(line.strip().split(":", 1) for line in text.splitlines() if ":" in line)
        return {"redis_commands": int(info["total_commands_processed"]), "redis_bytes": int(info["total_net_input_bytes"]) +
                int(info["total_net_output_bytes"]), "provider_calls": self.stack.provider.calls()}


WORKLOADS = {workload.name: workload for workload in (Hit, Full)}


# ---- attempts ----

def attempt(bench, workload, binary, options):
    """One process of one side, warmed, measured; raises RuntimeError, whose first words are the cause, where it fails."""
    port, admin = procs.free_port(), procs.free_port()
    path = bench.write("subzero.yaml", workload.yaml(port, admin))
    with contextlib.ExitStack() as running:
        try:
            server = running.enter_context(procs.Server("subzero", [binary, "serve", "-c", path], port, bench.path("subzero.log"), procs.cpus()[0]))
        except RuntimeError as error:
            raise RuntimeError("did not start") from error
        for request in workload.requests[:5]:
            status, _ = load.once(port, request)
            if status != 200:
                raise RuntimeError(f"answered {status} before the load")
        load.wrk(port, bench.path("requests"), 1, options.connections, procs.cpus()[1])
        before, counted = metrics.scrape(admin), workload.counts()
        run = load.measure(server, bench.path("requests"), options.seconds, options.connections)
        seen = metrics.delta(before, metrics.scrape(admin))
        counted = {name: value - counted[name] for name, value in workload.counts().items()}
    return sample(run, seen, counted, workload)


def sample(run, seen, counted, workload):
    bad = {cause: n for cause, n in run["errors"].items() if n}
    if bad or not run["requests"]:
        raise RuntimeError("errors under load: " + (", ".join(sorted(bad)) or "no answer"))
    n = run["requests"]
    out = {key: run[key] for key in UNITS if run.get(key) is not None}
    out |= {f"calls_{name}": value for name, value in metrics.calls(seen, n).items()}
    out |= {f"counted_{name}": value / n for name, value in counted.items()}
    out["wire_in"] = sum(map(len, workload.requests)) / len(workload.requests)
    out["wire_out"] = run["bytes"] / n
    return out | {f"stage_{name}": value for name, value in (metrics.stages(seen) or {}).items()}


def run_attempts(names, work, control, attempts, say):
    """work(side) and control() give a sample or raise RuntimeError; {side: [sample or {"failed": cause}]}, control likewise."""
    got, held = {name: [] for name in names}, {name: [] for name in names}
    for turn in range(attempts):
        for name in stats.order(names, turn):
            for into, act in ((got, lambda side=name: work(side)), (held, control)):
                try:
                    into[name].append(act())
                except (RuntimeError, OSError, subprocess.SubprocessError) as error:
                    into[name].append({"failed": str(error).splitlines()[0] if str(error) else type(error).__name__})
        say(f"  {turn + 1} of {attempts}: " + "  ".join(
            f"{name} {got[name][-1].get('failed') or '%.2f us' % got[name][-1]['cpu_us']}" for name in names))
    return got, held


# ---- rows ----

def middle(values):
    """The middle half: from the 25th to the 75th percentile."""
    values = sorted(values)
    return stats.percentile(values, 25), stats.percentile(values, 75)


def row(what, a, b):
    """a, b: samples.  change in percent of a's median; None where a side has too few for a spread."""
    if len(a) < 3 or len(b) < 3:
        return {"what": what, "verdict": "too few samples", "a": stats.summary(a), "b": stats.summary(b)}
    one, two = statistics.median(a), statistics.median(b)
    spreads = middle(a), middle(b)
    wide = max(high - low for low, high in spreads)
    verdict = "within noise" if abs(two - one) <= wide else "higher" if two > one else "lower"
    return {"what": what, "a": dict(stats.summary(a), middle=spreads[0]), "b": dict(stats.summary(b), middle=spreads[1]),
            "change": (two - one) / one * 100 if one else None, "verdict": verdict}


LABELS = dict(UNITS, calls_redis="calls to Redis a request", calls_provider="calls to the provider a request", calls_fga="calls to FGA a request",
              counted_redis_commands="commands a request, by Redis's own count, those within scripts too", counted_redis_bytes="bytes between gateway and Redis a request",
              counted_provider_calls="calls a request, by the provider's own count", wire_in="bytes from the client a request",
              wire_out="bytes to the client a request", stage_identify="µs until the identity is known", stage_authorize="µs of relation checks",
              stage_unclaimed="µs: time no stage claims", stage_total="µs, whole exchange in the gateway")


def rows(names, got, held):
    a, b = ([value for value in got[name] if "failed" not in value] for name in names)
    out = [row(label, [v[key] for v in a if key in v], [v[key] for v in b if key in v]) for key, label in LABELS.items()
           if any(key in v for v in a + b)]
    control = [[v["cpu_us"] for v in held[name] if "failed" not in v] for name in names]
    return out + [dict(row("control: µs of CPU a request of a bare server, which the change cannot touch", *control), control=True)]


def failures(attempts):
    return dict(collections.Counter(value["failed"] for value in attempts if "failed" in value))


def shown(names, got, table, say):
    for name in names:
        good = sum("failed" not in value for value in got[name])
        causes = ", ".join(f"{n} {cause}" for cause, n in failures(got[name]).items())
        say(f"{name}: {good} of {len(got[name])}{'; failed: ' + causes if causes else ''}")
    for line in table:
        def side(values):
            if not values:
                return "-"
            half = " [%s .. %s]" % tuple(map(stats.human, values["middle"])) if "middle" in values else ""
            return stats.human(values["median"]) + half
        change = f"{line['change']:+.1f} %" if line.get("change") is not None else ""
        say(f"  {line['what']:68} {side(line['a']):28} {side(line['b']):28} {change:>9}  {line['verdict']}")
    control = table[-1]
    if control["verdict"] != "within noise":
        say("The control moved: the machine changed under the run, and nothing above counts.")


def run(root, sides, bench, workload_name, options, say):
    """The result, for the store; its figures are the rows."""
    names = [side.name for side in sides]
    if options.attempts < ATTEMPTS:
        raise Refused(f"--attempts {options.attempts}: a comparison has at least {ATTEMPTS} a side")
    if names[0] == names[1]:
        raise Refused("both sides are the same")
    workload = WORKLOADS[workload_name](bench)
    said = {"workload": {"name": workload_name, "tokens": workload.tokens, "connections": options.connections, "seconds": options.seconds,
                         "attempts": options.attempts, "threads": 1}, "configuration": workload.configuration}
    known = {side.name: conditions.conditions(side.build, **said) for side in sides}
    same_conditions(known)
    binaries = {side.name: side.binary for side in sides}
    with workload, bench.bare("control", "hello", 0) as bare:
        load.write_requests(bench.path("requests"), workload.requests)
        got, held = run_attempts(names, lambda name: attempt(bench, workload, binaries[name], options),
                                 lambda: load.measure(bare, bench.path("requests"), 1, options.connections), options.attempts, say)
    table = rows(names, got, held)
    shown(names, got, table, say)
    return {"benchmark": "COMPARE", "title": f"{names[0]} against {names[1]}: {workload_name}", "conditions": known[names[0]],
            "build": dict(sides[1].known, dirty=any(side.known["dirty"] for side in sides)), "sides": {side.name: side.known for side in sides},
            "rows": table, "figures": {}, "attempts": got, "control": held, "failures": sum(sum(failures(got[name]).values()) for name in names)}

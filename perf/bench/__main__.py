"""script/bench's other half: argument parsing, one run from start to file, the table."""

import argparse
import os
import sys
import tempfile
import time

from perf.bench import compare, conditions, judge, publish, servers, smoke, stats, store
from perf.bench.cells import ALL

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.path.join(ROOT, "build", "release")


def say(text=""):
    print(text, flush=True)


def measure(cell, options, build=BUILD):
    """One run of a cell in a scratch folder of its own."""
    say(f"{cell.NAME}: {cell.TITLE}")
    if options.seconds is None:
        options = argparse.Namespace(**dict(vars(options), seconds=getattr(cell, "SECONDS", 3)))
    with tempfile.TemporaryDirectory(prefix="subzero-bench.") as scratch:
        os.chmod(scratch, 0o755)
        own = getattr(cell, "smoke", None)  # a module of that name may have been imported there
        work = own if options.smoke and callable(own) else cell.run
        return work(servers.Bench(ROOT, build, scratch, say), options)


def run_smoke(cells, options):
    short = smoke.options(options)
    return smoke.run_all(cells, lambda cell: measure(cell, short), say, guard_line)


def guard_line(bar):
    sign = ">=" if bar["better"] == "higher" else "<="
    return f"{bar['verdict']:9} {bar['what']} (guard {sign} {stats.human(bar['bar'])})"


def run(cell, options):
    busy = os.getloadavg()[0]
    measured = measure(cell, options)
    result = {
        "benchmark": cell.NAME,
        "title": cell.TITLE,
        "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "conditions": conditions.conditions(BUILD, measured.pop("workload"), measured.pop("configuration")),
        "build": conditions.build(ROOT, os.path.join(BUILD, "subzero")),
        "load_before": busy,
        "bars": judge.judged(cell.BARS, measured["figures"]),
        **measured,
    }
    show(result)
    say(f"  kept: {os.path.relpath(store.save(result), ROOT)}{' (the tree is dirty: a candidate)' if result['build']['dirty'] else ''}")
    return judge.passes(result["bars"])


def show(result):
    for name, figure in sorted(result["figures"].items()):
        if figure:
            say(f"  {name:24} {stats.human(figure['median']):>10}   ({stats.human(figure['min'])} .. {stats.human(figure['max'])})")
    if result["failures"]:
        say(f"  FAILED runs: {result['failures']}")
    for bar in result["bars"]:
        say("  " + line(bar, result))


def line(bar, result):
    figure = result["figures"].get(bar["figure"])
    sign = ">=" if bar["better"] == "higher" else "<="
    beyond = f", beyond {sign} {stats.human(bar['beyond'])}" if bar.get("beyond") is not None else ""
    value = stats.human(figure["median"]) if figure else "-"
    return f"{bar['verdict']:9} {bar['what']}: {value} (bar {sign} {stats.human(bar['bar'])}{beyond})"


def row(name, bar, figure, of):
    """One line of the table."""
    sign = ">=" if bar["better"] == "higher" else "<="
    beyond = f" ({stats.human(bar['beyond'])})" if bar.get("beyond") is not None else ""
    value = f"{stats.human(figure['median'])} ({stats.human(figure['min'])} .. {stats.human(figure['max'])})" if figure else "-"
    return f"{name:12} {bar['verdict']:12} {value:32} {sign} {stats.human(bar['bar']) + beyond:16} {bar['what']:70.70}  {of}"


def table(folder=store.RESULTS):
    """Every bar of every cell, judged by today's bars and not by those that the run knew."""
    newest = store.latest(folder)
    verdicts = []
    for name, cell in ALL.items():
        result = newest.get(name, {"figures": {}, "file": "", "failures": 0})
        of = result["file"] + (f"  {result['failures']} failed runs" if result["failures"] else "")
        # A neighbour at work is said, since it widens every spread.
        of += f"  busy machine, load {result['load_before']:.1f}" if result.get("load_before", 0) > 2 else ""
        for bar in judge.judged(cell.BARS, result["figures"]):
            say(row(name, bar, result["figures"].get(bar["figure"]), of).rstrip())
            verdicts.append(bar["verdict"])
    say("\n" + ", ".join(f"{verdicts.count(verdict)} {verdict}" for verdict in (judge.BEYOND, judge.MET, judge.MISSED, judge.UNKNOWN)))
    return all(verdict in (judge.BEYOND, judge.MET) for verdict in verdicts)


def published(check):
    """Renders docs/performance.md, or says what is not as it would be rendered."""
    try:
        if check:
            stale = [os.path.relpath(path, ROOT) for path in publish.stale(ROOT)]
            say(f"not as perf/published.json says: {', '.join(stale)}; run script/bench publish" if stale else "docs and perf/published.json agree")
            return 1 if stale else 0
        publish.write(ROOT, say)
        for text in publish.newer(ROOT):
            say(f"a newer result is there: {text}")
        for text in publish.suggested(ROOT):
            say(f"not published yet: {text}")
    except (publish.Fault, KeyError, ValueError) as fault:
        say(f"cannot publish: {fault}")
        return 1
    return 0


def compared(names, options):
    """compare A B: sides are folders with a build, commits, or two kept results."""
    if len(names) != 2:
        say("script/bench compare A B: two commits, two folders with a build, or two files of perf/results")
        return 2
    try:
        if all(name.endswith(".json") for name in names):
            return results_compared(names)
        sides = [compare.Side(ROOT, name, say) for name in names]
        with tempfile.TemporaryDirectory(prefix="subzero-bench.") as scratch:
            os.chmod(scratch, 0o755)
            bench = servers.Bench(ROOT, BUILD, scratch, say)
            result = compare.run(ROOT, sides, bench, options.workload, options, say)
    except compare.Refused as why:
        say(f"refused: {why}")
        return 1
    result["time"] = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    say(f"kept: {os.path.relpath(store.save(result), ROOT)}{' (a dirty tree: a candidate, never published)' if result['build']['dirty'] else ''}")
    return 0


def results_compared(names):
    results = [store.read(name) for name in names]
    compare.same_conditions({name: result["conditions"] for name, result in zip(names, results)})
    for key in sorted(set(results[0]["figures"]) & set(results[1]["figures"])):
        a, b = (result["figures"][key] for result in results)
        if a and b:
            apart = a["max"] < b["min"] or b["max"] < a["min"]
            say(f"{key:32} {stats.human(a['median']):>10} {stats.human(b['median']):>10}  {'apart' if apart else 'within noise'}")
    return 0


def main(argv):
    parser = argparse.ArgumentParser(prog="script/bench", description="Runs benchmarks and judges their results.")
    parser.add_argument("names", nargs="*", metavar="NAME", help="a benchmark, 'all', 'list', 'smoke' (what CI runs), 'publish' (renders the docs), or 'compare A B'")
    parser.add_argument("--table", action="store_true", help="bars and verdicts from the latest results; exit 1 when one is missed")
    parser.add_argument("--candidates", action="store_true", help="with --table: the results of dirty trees instead")
    parser.add_argument("--pairs", type=int, default=7, help="good pairs wanted (at least 5 for a verdict that counts)")
    parser.add_argument("--seconds", type=int, help="length of one side's run (3 or the cell's own; of an attempt of compare 1)")
    parser.add_argument("--users", type=int, help="of a scenario, in place of its own number")
    parser.add_argument("--spawn-rate", type=int, help="users a second that a scenario starts")
    parser.add_argument("--connections", type=int, default=64)
    parser.add_argument("--smoke", action="store_true", help="once through and short, held by CI's wide guards; keeps nothing")
    parser.add_argument("--check", action="store_true", help="with publish: changes nothing, exit 1 when the docs differ")
    parser.add_argument("--profile", action="store_true", help="afterwards, where the gateway's CPU time goes (P1, P2)")
    parser.add_argument("--attempts", type=int, default=compare.ATTEMPTS, help="with compare: attempts a side, 25 at least")
    parser.add_argument("--workload", choices=list(compare.WORKLOADS), default="hit", help="with compare: L1 hits, or nothing cached and everything asked")
    options = parser.parse_args(argv)
    if options.names[:1] == ["compare"]:
        options.seconds = options.seconds or 1
        return compared(options.names[1:], options)
    if options.table:
        return 0 if table(os.path.join(store.RESULTS, store.CANDIDATE) if options.candidates else store.RESULTS) else 1
    if not options.names or options.names == ["list"]:
        for name, cell in ALL.items():
            say(f"{name}  {cell.TITLE}")
        return 0
    if options.names == ["publish"]:
        return published(options.check)
    if options.names == ["smoke"]:
        return 0 if run_smoke([cell for cell in ALL.values() if getattr(cell, "SMOKE", False)], options) else 1
    names = list(ALL) if options.names == ["all"] else [name.upper() for name in options.names]
    unknown = [name for name in names if name not in ALL]
    if unknown:
        parser.error(f"no benchmark {', '.join(unknown)}; there are {', '.join(ALL)}")
    if options.smoke:
        return 0 if run_smoke([ALL[name] for name in names], options) else 1
    results = [run(ALL[name], options) for name in names]
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

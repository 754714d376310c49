"""The audit journal: handing over, reading beside the writer, rotating; and a decision with it against one without."""

import json
import os
import subprocess

from perf.bench import load, procs, servers

NAME = "AUDIT"
TITLE = "the audit journal: 50 MiB in five files of 1,024-byte records"
OPERATIONS = ("page", "correlation", "missing", "search", "search_text", "export", "page_jsonl", "page_csv")
BARS = [
    {"figure": "rps_ratio", "bar": 0.93, "beyond": None, "better": "higher", "what": "decisions/s with all recorded / without a journal"},
    {"figure": "lost", "bar": 0, "beyond": None, "exact": True, "better": "lower", "what": "records lost meanwhile"},
    {"figure": "handover", "bar": 500, "beyond": None, "better": "lower", "what": "ns on the loop to hand a record over"},
    {"figure": "page_50", "bar": 1000, "beyond": None, "better": "lower", "what": "us, first page"},
    {"figure": "correlation_50", "bar": 1000, "beyond": None, "better": "lower", "what": "us, page of one trace"},
    {"figure": "search_50", "bar": 5000, "beyond": None, "better": "lower", "what": "us, whole-history search that finds nothing, by filters"},
    {"figure": "search_text_50", "bar": 60000, "beyond": None, "better": "lower", "what": "us, the same without them"},
    {"figure": "export_50", "bar": 150000, "beyond": None, "better": "lower", "what": "us, full export"},
    {"figure": "page_jsonl_50", "bar": 2000, "beyond": None, "better": "lower", "what": "us, page as JSONL"},
    {"figure": "page_csv_50", "bar": 2000, "beyond": None, "better": "lower", "what": "us, page as CSV"},
    {"figure": "export_peak_kb", "bar": 4096, "beyond": None, "better": "lower", "what": "kB of memory that a full export adds to a page's"},
    {"figure": "rotate_ratio", "bar": 2, "beyond": None, "better": "lower", "what": "an append that rotates / a plain durable one"},
]


def figure(measured):
    return {key: measured[key] for key in ("median", "min", "max", "n")}


def micro(bench, *args):
    done = subprocess.run([os.path.join(bench.build, "perf", "micro_audit"), *map(str, args)], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"micro_audit {args} exited {done.returncode}: {done.stderr.strip()[-500:]}")
    return json.loads(done.stdout)


def offline(bench, repetitions):
    figures, kept = {}, []
    for mib in (1, 50):
        directory = bench.path(f"journal-{mib}")
        micro(bench, "fixture", directory, mib)
        for operation in OPERATIONS:
            measured = micro(bench, operation, directory, repetitions)
            figures[f"{operation}_{mib}"] = figure(measured)
            kept.append(dict(measured, mib=mib))
    by_name = {(m["operation"], m["mib"]): m for m in kept}
    peak = by_name["export", 50]["peak_kb"] - by_name["page", 50]["peak_kb"]
    figures["export_peak_kb"] = {"median": peak, "min": peak, "max": peak, "n": 1}
    for operation in ("handover", "append", "rotate"):
        measured = micro(bench, operation, bench.path(f"journal-{operation}"), repetitions)
        figures[operation] = figure(measured)
        kept.append(measured)
    ratio = figures["rotate"]["median"] / figures["append"]["median"]
    figures["rotate_ratio"] = {"median": ratio, "min": ratio, "max": ratio, "n": 1}
    return figures, kept


def lost(admin):
    answer = load.once(admin, b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")[1].decode()
    for line in answer.splitlines():
        if line.startswith("subzero_audit_lost_total "):
            return int(float(line.split()[1]))
    return 0


def decisions(bench, options):
    """In turn, each wherever it likes: the journal's thread is meant to have a CPU beside the worker's."""
    tokens = bench.tokens(300)
    requests = [load.decision(token) for token in tokens]
    load.write_requests(bench.path("requests"), requests)
    ports = [procs.free_port() for _ in range(4)]
    texts = []
    for port, admin in ((ports[0], ports[1]), (ports[2], ports[3])):
        listen = f"  - {{address: 127.0.0.1:{port}, mode: decide, dialect: nginx}}"
        texts.append(servers.gateway_yaml(bench, listen, admin, 9))
    texts[0] += f"audit: {{path: {bench.path('journal')}, allowed: all, durability: interval}}\n"
    with bench.subzero(texts[0], ports[0], None) as ours, bench.subzero(texts[1], ports[2], None) as plain:
        good, bad = load.pairs({"audit": ours, "plain": plain}, bench.path("requests"), options, bench)
        figures = load.figures(good, "audit", "plain")
        n = lost(ports[1])
    figures["lost"] = {"median": n, "min": n, "max": n, "n": 1}
    return figures, good + bad, len(bad)


def run(bench, options):
    repetitions = max(2 * options.pairs + 1, 15)
    figures, kept = offline(bench, repetitions)
    online, pairs, failures = decisions(bench, options)
    return {
        "workload": {"programs": "micro_audit, wrk", "repetitions": repetitions, "connections": options.connections,
                     "seconds": options.seconds, "operations": kept},
        "configuration": servers.GATEWAY + "audit: {allowed: all, durability: interval}",
        "figures": figures | online,
        "pairs": pairs,
        "failures": failures,
    }

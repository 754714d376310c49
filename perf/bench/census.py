"""What a gateway holds, counted from outside: afterwards there must be as much of everything as before."""

import os
import subprocess

from perf.bench import metrics, procs

GAUGES = {"in_progress": "subzero_requests_in_progress", "redis_connections": "subzero_redis_connections", "audit_queue": "subzero_audit_queue"}
FDS = {"sockets": "socket:", "files": "/", "other_descriptors": ""}


def descriptors(pid):
    """Descriptors by kind: connections that were forgotten are sockets, also those to a pool."""
    out = dict.fromkeys(FDS, 0)
    for entry in os.listdir(f"/proc/{pid}/fd"):
        try:
            target = os.readlink(f"/proc/{pid}/fd/{entry}")
        except OSError:
            continue
        out[next(kind for kind, prefix in FDS.items() if target.startswith(prefix))] += 1
    return out


def redis_keys(port):
    """How many keys there are, leases apart."""
    text = subprocess.run(["redis-cli", "-p", str(port), "--scan"], capture_output=True, text=True, check=True).stdout.split()
    leases = sum(":lease:" in key or ":ls:" in key for key in text)
    return {"redis_keys": len(text) - leases, "leases": leases}


def temporary(folders):
    """Files that are written and renamed, bodies that h2o puts aside."""
    return sum(name.startswith("h2o.b.") or name.endswith((".tmp", ".new")) for folder in folders if os.path.isdir(folder)
               for name in os.listdir(folder))


def take(pid, admin, redis_port=None, folders=("/tmp",)):
    seen = metrics.scrape(admin)
    out = {"threads": len(os.listdir(f"/proc/{pid}/task")), "resident_kb": procs.exact_kb(pid)[0], "temporary_files": temporary(folders)}
    out |= descriptors(pid) | {name: int(seen.get(series, 0)) for name, series in GAUGES.items()}
    # Flights have no count of their own: one that nobody ended keeps its requests in progress and its socket open.
    return out | (redis_keys(redis_port) if redis_port else {})


def differing(before, after, memory_kb):
    """What is not as it was: {name: (before, after)}; resident memory may have grown by memory_kb."""
    return {name: (before[name], after[name]) for name in before
            if (after[name] - before[name] > memory_kb if name == "resident_kb" else after[name] != before[name])}


def extremes(taken):
    return {name: [min(one[name] for one in taken), max(one[name] for one in taken)] for name in taken[0]}

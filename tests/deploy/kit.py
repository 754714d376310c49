"""Shared by the tests of this folder: the tree, the binaries, the table of metrics, ports, HTTP.

Run by script/test deploy, or by hand: /usr/bin/python3 -m unittest discover -s tests/deploy [-k NAME]
"""
import atexit
import functools
import http.client
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
import unittest

import yaml

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BINARY = os.path.join(ROOT, "build/release/subzero")
PERF = os.path.join(ROOT, "build/release/perf")


def path(*names):
    return os.path.join(ROOT, *names)


def read(*names):
    with open(path(*names), encoding="utf-8") as f:
        return f.read()


def load(*names):
    return yaml.safe_load(read(*names))


def run(*command, env=None, cwd=ROOT, limit=120, stdin=None):
    """What it printed, both streams; the exit status is .returncode."""
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=cwd, input=stdin,
                          stdin=subprocess.DEVNULL if stdin is None else None, timeout=limit,
                          env=dict(os.environ, **(env or {})), check=False)


def needs(*programs):
    for program in programs:
        if shutil.which(program) is None and not os.path.exists(program):
            raise unittest.SkipTest(f"{program} is not here")


@functools.lru_cache(maxsize=None)
def metrics():
    """Name of each metric of the gateway: (kind, labels), by the table and by what writes its own lines."""
    found = {}
    table = re.sub(r"/\*.*?\*/", "", read("include/subzero/tbl/metrics.h"), flags=re.S)
    for macro, body in re.findall(r"^SZ_([A-Z]+)\((.*?)\)$", table, flags=re.S | re.M):
        texts = re.findall(r'"((?:[^"\\]|\\.)*)"', body)
        kind = body.split(",")[1].strip() if macro == "COLLECTED" else macro.lower()
        if len(texts) >= 2:
            found[texts[0]] = (kind, set(filter(None, texts[1].split(","))))
    return found


def series(name):
    """The metric that a name in an expression belongs to: a histogram has three."""
    known = metrics()
    base = re.sub(r"_(bucket|sum|count)$", "", name)
    if name in known and known[name][0] != "histogram":
        return name
    return base if base != name and known.get(base, ("",))[0] == "histogram" else None


SELECTOR = re.compile(r"(?<![:\w])((?:subzero|process)_[a-z0-9_]+)(\{[^}]*\})?")
OURS_BY_PROMETHEUS = {"job", "instance", "le"}


def mistakes_of(expression):
    """Metrics and labels of an expression that the gateway does not have."""
    wrong, labels = [], set(OURS_BY_PROMETHEUS)
    for name, matchers in SELECTOR.findall(expression):
        metric = series(name)
        if metric is None:
            wrong.append(f"no metric {name}")
            continue
        labels |= metrics()[metric][1]
        for label in re.findall(r"([a-z_]+)\s*(?:=~|!~|!=|=)", matchers or ""):
            if label not in metrics()[metric][1] | OURS_BY_PROMETHEUS:
                wrong.append(f"{name} has no label {label}")
    for group in re.findall(r"\b(?:by|on|without)\s*\(([^)]*)\)", expression):
        for label in filter(None, (part.strip() for part in group.split(","))):
            if SELECTOR.search(expression) and label not in labels:
                wrong.append(f"{label} is a label of nothing in {expression!r}")
    return wrong


def at_end(test, cleanup):
    """When the class is done, or the run is ended from outside: nothing that a test has started stays."""
    once = functools.lru_cache(maxsize=None)(cleanup)
    test.addClassCleanup(once)
    atexit.register(once)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def ask(port, target="/", method="GET", headers=None, body=None, limit=10):
    """(status, headers, body); status 0 when nobody answers."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=limit)
    try:
        connection.request(method, target, body=body, headers=headers or {})
        answer = connection.getresponse()
        return answer.status, dict((k.lower(), v) for k, v in answer.getheaders()), answer.read().decode("utf-8", "replace")
    except (OSError, http.client.HTTPException):
        return 0, {}, ""
    finally:
        connection.close()


def wait_for(what, condition, limit=30, every=0.1):
    end = time.monotonic() + limit
    while time.monotonic() < end:
        result = condition()
        if result:
            return result
        time.sleep(every)
    raise AssertionError(f"{what}: not within {limit} s")

"""Memory: after the start and one request, with 5,000 keep-alive connections, and how many connections it holds."""

import resource
import select
import socket
import time

from perf.bench import load, procs, servers, stats

NAME = "P8"
TITLE = "resident memory after the start and one request; with 5,000 keep-alive connections; connections held"
SMOKE = True
BARS = [
    {"figure": "start_mb", "bar": 20, "beyond": 12, "better": "lower", "what": "MB after the start and one request"},
    {"figure": "connections_mb", "bar": 80, "beyond": 40, "better": "lower", "what": "MB with 5,000 connections"},
    {"figure": "held", "bar": 16000, "beyond": None, "better": "higher", "what": "connections held"},
]
FEW, MANY = 5000, 16000
MORE = """\
limits: {max_connections: 18000, connections_per_address: 18000, idle_timeout: 10m}
"""


def exchange(sock, request):
    """One request on a kept connection; True when it was answered 200 and the connection stays."""
    try:
        sock.sendall(request)
        answer = b""
        while b"\r\n\r\n" not in answer:
            chunk = sock.recv(4096)
            if not chunk:
                return False
            answer += chunk
        return answer.startswith(b"HTTP/1.1 200")
    except OSError:
        return False


def grow(held, port, request, wanted):
    """Opens connections until `wanted` are held, each with one answered request; stops at the first that fails."""
    while len(held) < wanted:
        try:
            sock = socket.create_connection(("127.0.0.1", port), 5)
        except OSError:
            return
        if not exchange(sock, request):
            sock.close()
            return
        held.append(sock)


def alive(held):
    """Those that the other side has not closed: a closed one is readable."""
    poll = select.poll()
    for sock in held:
        poll.register(sock, select.POLLIN | select.POLLHUP)
    return len(held) - len(poll.poll(0))


def once(bench, requests):
    port, admin = procs.free_port(), procs.free_port()
    with bench.upstream(0) as upstream:
        configuration = servers.gateway_yaml(bench, f"  - {{address: 127.0.0.1:{port}}}", admin, upstream.port, MORE)
        with bench.subzero(configuration, port) as server:
            status, answer = load.once(port, requests[0])
            if status != 200:
                raise RuntimeError(f"the gateway does not allow what it should: {answer!r}")
            time.sleep(0.5)
            out = {"start_mb": procs.memory_kb(server.pid) / 1000, "start_anonymous_mb": procs.memory_kb(server.pid, "RssAnon") / 1000}
            held = []
            try:
                grow(held, port, requests[0], FEW)
                out["few"] = alive(held)
                out["connections_mb"] = procs.memory_kb(server.pid) / 1000
                grow(held, port, requests[0], MANY)
                out["held"] = alive(held)
                out["held_mb"] = procs.memory_kb(server.pid) / 1000
            finally:
                for sock in held:
                    sock.close()
    return out


def run(bench, options):
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    requests = [load.get("/documents/roadmap", {"Authorization": f"Bearer {bench.tokens(1)[0]}"})]
    runs, failures = [], 0
    for turn in range(min(options.pairs, 3)):
        values = once(bench, requests)
        good = values["few"] == FEW
        failures += not good
        bench.say(f"  run {turn + 1}{'' if good else ' FAILED'}: " + "  ".join(f"{k} {stats.human(v)}" for k, v in values.items()))
        if good:
            runs.append(values)
    names = sorted({name for values in runs for name in values})
    return {
        "workload": {"few": FEW, "many": MANY, "descriptors": hard, "request": "one proxied request on each connection"},
        "configuration": servers.GATEWAY + MORE,
        "figures": {name: stats.summary(values[name] for values in runs) for name in names},
        "pairs": runs,
        "failures": failures,
    }

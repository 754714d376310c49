"""/health and /metrics of a gateway with much to tell: 100 upstreams, 1,000 routes; each on a new connection."""

import contextlib
import json
import socket
import time

from perf.bench import load, procs, servers, stats

HEALTH = b"GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
METRICS = HEALTH.replace(b"/health", b"/metrics")
UPSTREAMS, ROUTES, CONNECTIONS = 100, 1000, 30


def yaml(bench, port, admin, upstreams, routes, upstream_port=9):
    text = servers.gateway_yaml(bench, f"  - {{address: 127.0.0.1:{port}}}", admin, upstream_port)
    head, tail = text.split("routes:\n")
    more = "".join(f'  up{i}: {{urls: ["http://127.0.0.1:{upstream_port}"]}}\n' for i in range(upstreams - 1))
    rules = "".join(f'  - {{id: route.{i}, match: {{path: "/r{i}/{{x}}"}}, public: true, upstream: documents}}\n' for i in range(routes - 1))
    return head + more + "routes:\n" + tail + rules


def ask(port, request):
    """(milliseconds from before the connection to the end of the answer, body)."""
    start = time.perf_counter()
    with socket.create_connection(("127.0.0.1", port), 10) as s:
        s.sendall(request)
        parts = []
        while chunk := s.recv(1 << 16):
            parts.append(chunk)
    took = (time.perf_counter() - start) * 1e3
    head, _, body = b"".join(parts).partition(b"\r\n\r\n")
    if b" 200 " not in head.split(b"\r\n")[0]:
        raise RuntimeError(f"answered {head[:200]!r}")
    return took, body


class Health:
    NAME, SMOKE = "HEALTH", True
    TITLE = "30 new connections to /health of a gateway with 100 upstreams"
    BARS = [
        {"figure": "p95_ms", "bar": 2, "beyond": None, "better": "lower", "what": "ms p95, connection included"},
        {"figure": "upstreams_named", "bar": UPSTREAMS, "beyond": None, "better": "higher", "exact": True, "what": "upstreams in the answer that has fewest"},
    ]

    def run(self, bench, options):
        bench.issuer()
        port, admin = procs.free_port(), procs.free_port()
        times, named = [], []
        with bench.subzero(yaml(bench, port, admin, UPSTREAMS, 1), port):
            with procs.staying_on(procs.cpus()[1]):
                for _ in range(options.pairs):
                    answers = [ask(admin, HEALTH) for _ in range(CONNECTIONS)]
                    times.append(stats.distribution(took for took, _ in answers))
                    named += [self.named(json.loads(body)) for _, body in answers]
        figures = {f"{name}_ms": stats.summary(run[name] for run in times) for name in ("p50", "p95", "max")}
        return {"workload": {"connections": CONNECTIONS, "upstreams": UPSTREAMS, "rounds": options.pairs}, "configuration": servers.GATEWAY,
                "figures": dict(figures, upstreams_named=stats.summary([min(named)])), "pairs": times, "failures": 0}

    @staticmethod
    def named(answer):
        """How many upstreams it names."""
        return len(answer["upstreams"]["urls"])


class Scrape:
    NAME, SMOKE = "SCRAPE", True
    TITLE = "a scrape of /metrics with 1,000 routes that all had requests, and what it does to decisions beside it"
    BARS = [
        {"figure": "p95_ms", "bar": 50, "beyond": None, "better": "lower", "what": "ms p95 a scrape"},
        {"figure": "routes_named", "bar": ROUTES, "beyond": None, "better": "higher", "exact": True, "what": "routes in the exposition"},
    ]

    def run(self, bench, options):
        token = bench.tokens(1)[0]
        port, admin = procs.free_port(), procs.free_port()
        rounds = []
        with contextlib.ExitStack() as running:
            upstream = running.enter_context(bench.upstream(16))
            gateway = running.enter_context(bench.subzero(yaml(bench, port, admin, 1, ROUTES, upstream.port), port))
            load.write_requests(bench.path("requests"), [load.get(f"/r{i}/x", {}) for i in range(ROUTES - 1)] +
                                [load.get("/documents/roadmap", {"Authorization": f"Bearer {token}"})])
            load.wrk(port, bench.path("requests"), 1, options.connections, procs.cpus()[1])
            for _ in range(options.pairs):
                used, times, body = gateway.cpu_ns(), [], b""
                for _ in range(CONNECTIONS):
                    took, body = ask(admin, METRICS)
                    times.append(took)
                rounds.append(dict(stats.distribution(times), cpu_us=(gateway.cpu_ns() - used) / 1e3 / CONNECTIONS, kilobytes=len(body) / 1e3,
                                   routes=len({line.split(b'route="')[1].split(b'"')[0] for line in body.splitlines()
                                               if line.startswith(b"subzero_requests_total{")} - {b"none"})))
        figures = {f"{name}_ms": stats.summary(one[name] for one in rounds) for name in ("p50", "p95", "max")}
        figures |= {"cpu_us": stats.summary(one["cpu_us"] for one in rounds), "kilobytes": stats.summary(one["kilobytes"] for one in rounds),
                    "routes_named": stats.summary([min(one["routes"] for one in rounds)])}
        return {"workload": {"routes": ROUTES, "scrapes": CONNECTIONS, "rounds": options.pairs}, "configuration": servers.GATEWAY,
                "figures": figures, "pairs": rounds, "failures": 0}


CELLS = [Health(), Scrape()]

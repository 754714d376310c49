"""Proxying a small response on an L1 hit, all checks on, against unguarded proxies: h2o's own and nginx."""

from perf.bench import load, procs, servers

NAME = "P2"
TITLE = "proxying a small response on an L1 hit, against h2o's own proxy and nginx proxy_pass"
BARS = [
    {"figure": "cpu_ratio_vs_h2o", "bar": 1.0, "beyond": 1.2, "better": "higher", "what": "h2o proxy's CPU per request / ours"},
    {"figure": "cpu_ratio_vs_nginx", "bar": 0.85, "beyond": 1.0, "better": "higher", "what": "nginx's CPU per request / ours"},
]
TOKENS = 300
BODY = 128


def run(bench, options):
    port, admin = procs.free_port(), procs.free_port()
    tokens = bench.tokens(TOKENS)
    requests = [load.get("/documents/roadmap", {"Authorization": f"Bearer {token}"}) for token in tokens]
    load.write_requests(bench.path("requests"), requests)
    with bench.upstream(BODY) as upstream:
        configuration = servers.gateway_yaml(bench, f"  - {{address: 127.0.0.1:{port}}}", admin, upstream.port)
        with bench.subzero(configuration, port) as ours, bench.bare("h2o", "proxy", "127.0.0.1", upstream.port) as h2o, \
                bench.nginx_proxy(upstream.port) as nginx:
            sides = {"subzero": ours, "h2o": h2o, "nginx": nginx}
            for name, server in sides.items():
                status, answer = load.once(server.port, requests[0])
                if status != 200 or not answer.endswith(b"x" * BODY):
                    raise RuntimeError(f"{name} does not proxy: {answer!r}")
            if load.once(port, requests[0].replace(b"Bearer ", b"Bearer x"))[0] != 401:
                raise RuntimeError("the gateway allows a broken token")
            good, bad = load.pairs(sides, bench.path("requests"), options, bench)
    figures = load.figures(good, "subzero", "h2o", "h2o")
    figures.update(load.figures(good, "subzero", "nginx", "nginx"))
    return {
        "workload": {"tokens": TOKENS, "algorithm": "RS256", "connections": options.connections, "seconds": options.seconds,
                     "threads": 1, "body": BODY, "generator": "wrk -t1", "upstream": "bare h2o on the generator's CPU",
                     "placement": "proxies on one CPU, one at a time; generator and upstream on the other"},
        "configuration": servers.GATEWAY + servers.NGINX,
        "figures": figures,
        "pairs": good + bad,
        "failures": len(bad),
    }

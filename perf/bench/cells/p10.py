"""The same RS256 tokens at what users run today: HAProxy's jwt_verify, oauth2-proxy's auth endpoint, nginx with auth_request.

Ours answers decisions beside the first two, and proxies beside nginx, whose auth_request asks a plain backend that says yes
to all: the least that any forward-auth behind nginx costs.  Of nginx its own CPU counts, the backend's does not.  heimdall and
Oathkeeper take part where they are on PATH.  All have a token's check to do, except that ours remembers it: 300 tokens in turn.
"""

import contextlib
import shutil

from perf.bench import load, peers, procs, servers, smoke

NAME = "P10"
TITLE = "the same RS256 tokens: HAProxy's jwt_verify, oauth2-proxy, nginx auth_request with a plain backend, CPU per request"
SMOKE = True
BARS = [
    {"figure": "cpu_ratio_vs_haproxy", "bar": 2, "beyond": 3, "better": "higher", "what": "HAProxy jwt_verify's CPU per request / ours"},
    {"figure": "cpu_ratio_vs_oauth2_proxy", "bar": 10, "beyond": 16, "better": "higher", "what": "oauth2-proxy's CPU per request / ours"},
    {"figure": "cpu_ratio_vs_nginx", "bar": 1.5, "beyond": 2.5, "better": "higher", "what": "nginx auth_request's CPU per request / ours, proxying"},
]
GUARDS = [{"figure": bar["figure"], "bar": bar["bar"] / 20, "beyond": None, "better": "higher", "what": bar["what"]}
          for bar in BARS if "oauth2" not in bar["figure"]]
TOKENS, BODY = 300, 128


def decision_path(token, path):
    return load.get(path, {"Authorization": f"Bearer {token}", "X-Original-URI": "/documents/roadmap", "X-Original-Method": "GET",
                           "X-Forwarded-Method": "GET", "X-Forwarded-Uri": "/documents/roadmap", "X-Forwarded-Host": "127.0.0.1",
                           "X-Forwarded-Proto": "http", "X-Forwarded-For": "192.0.2.7"})


def deciders(bench, running, jwks_url):
    """Name to (server, path that it is asked at)."""
    port = procs.free_port()
    yaml = servers.gateway_yaml(bench, f"  - {{address: 127.0.0.1:{port}, mode: decide, dialect: nginx}}", procs.free_port(), 9)
    sides = {"subzero": (bench.subzero(yaml, port), "/auth"), "haproxy": (peers.haproxy(bench), "/documents/roadmap")}
    oauth2_proxy = peers.go_program("oauth2-proxy")
    if oauth2_proxy:
        sides["oauth2_proxy"] = (peers.oauth2_proxy(bench, oauth2_proxy, jwks_url), "/oauth2/auth")
    else:
        bench.say("  no oauth2-proxy here (script/peers oauth2-proxy)")
    for name, start, path in (("heimdall", peers.heimdall, "/documents/roadmap"), ("oathkeeper", peers.oathkeeper, "/decisions/documents/roadmap")):
        if shutil.which(name):
            sides[name] = (start(bench, shutil.which(name), jwks_url), path)
    return {name: (running.enter_context(server), path) for name, (server, path) in sides.items()}


def proxies(bench, running):
    upstream = running.enter_context(bench.upstream(BODY))
    plain = running.enter_context(bench.bare("plain", "hello", 0, cpu=procs.cpus()[1]))
    port = procs.free_port()
    yaml = servers.gateway_yaml(bench, f"  - {{address: 127.0.0.1:{port}}}", procs.free_port(), upstream.port)
    return {"proxying": (running.enter_context(bench.subzero(yaml, port)), "/documents/roadmap"),
            "nginx": (running.enter_context(peers.nginx_auth_request(bench, upstream.port, plain.port)), "/documents/roadmap")}


def checked(name, server, request, allows_all):
    """It lets the good token in and a broken one not."""
    status, answer = load.once(server.port, request)
    if not 200 <= status < 300:
        raise RuntimeError(f"{name} does not allow what it should: {answer[:300]!r}")
    if not allows_all and load.once(server.port, request.replace(b"Bearer ey", b"Bearer ex"))[0] < 400:
        raise RuntimeError(f"{name} allows a broken token")


def run(bench, options):
    if not shutil.which("haproxy"):
        raise smoke.Skip("no haproxy here")
    tokens = bench.tokens(TOKENS)
    figures, pairs, failures, versions = {}, [], 0, []
    with peers.key_server(bench) as jwks_url:
        for ours, start in (("subzero", lambda running: deciders(bench, running, jwks_url)), ("proxying", lambda running: proxies(bench, running))):
            with contextlib.ExitStack() as running:
                sides = start(running)
                files = {}
                for name, (server, path) in sides.items():
                    requests = [decision_path(token, path) for token in tokens]
                    checked(name, server, requests[0], name == "nginx")
                    files[name] = bench.path(f"requests-{name}")
                    load.write_requests(files[name], requests)
                good, bad = load.pairs({name: server for name, (server, _) in sides.items()}, files, options, bench)
            for name in sides:
                if name != ours:
                    figures |= load.figures(good, ours, name, name)
                    versions.append(name)
            pairs, failures = pairs + good + bad, failures + len(bad)
    return {
        "workload": {"tokens": TOKENS, "algorithm": "RS256", "connections": options.connections, "seconds": options.seconds, "threads": 1,
                     "opponents": sorted(versions), "body": BODY, "generator": "wrk -t1",
                     "placement": "servers on one CPU, one at a time; generator, upstream and plain backend on the other"},
        "configuration": servers.GATEWAY + "".join(map(peers.configuration, ("haproxy/haproxy.cfg", "nginx/auth_request.conf"))),
        "figures": figures,
        "pairs": pairs,
        "failures": failures,
    }

"""Something dies, or changes, or is slow, in the middle of 1,000 known requests a second: whom it hurts and for how long.

Redis killed (limits through it, open under an emergency limit), the provider refusing connections, its keys rotated, an upstream
of another route slow with 64 requests waiting for it.  Known tokens are answered throughout; latencies from when a request was
due.  Left out: what new tokens meet meanwhile, which the integration tests hold to the letter.
"""

import concurrent.futures
import contextlib
import threading

from perf.bench import load, openloop, procs, provider, stack, stats

NAME = "OUTAGE"
TITLE = "Redis killed, provider gone, keys rotated, an upstream slow: 1,000 known requests a second beside it"
SMOKE, SECONDS = True, 6
KINDS = ("calm", "redis", "provider", "rotated", "upstream")
RATE, CONNECTIONS = 1000, 50
BARS = [{"figure": f"{kind}_not_allowed", "bar": 0, "beyond": None, "better": "lower", "exact": True, "what": f"known requests not answered 200: {kind}"}
        for kind in KINDS]
BARS += [{"figure": f"{kind}_max_ms", "bar": 100, "beyond": 25, "better": "lower", "what": f"ms, longest: {kind}"} for kind in KINDS]
JWT = """\
listen:
  - {{address: 127.0.0.1:{port}}}
admin: {{address: 127.0.0.1:{admin}}}
workers: 1
log: {{access: off}}
issuers:
  idp: {{issuer: {url}, audiences: [api], algorithms: [RS256, ES256, EdDSA], jwks_uri: "{url}/jwks"}}
upstreams:
  documents: {{urls: ["http://127.0.0.1:{upstream}"]}}
  slow: {{urls: ["{url}"]}}
routes:
  - {{id: documents, match: {{methods: [GET], path: "/documents/{{id}}"}}, auth: {{issuers: [idp]}}, upstream: documents}}
  - {{id: slow, match: {{path: /slow}}, public: true, upstream: slow}}
"""


def known_load(bench, port, options, event):
    """The load, with event() a third into it."""
    timer = threading.Timer(options.seconds / 3, event)
    timer.start()
    try:
        return openloop.run(bench, port, bench.path("requests"), RATE, CONNECTIONS, options.seconds)
    finally:
        timer.join()


def opaque(bench, options, kind):
    """Decisions by tokens that the provider said yes to, limited through Redis."""
    port, admin = procs.free_port(), procs.free_port()
    with stack.Stack(bench, {"redis", "limit"}) as around, bench.subzero(around.yaml(port, admin).replace("timeout: 1s", "timeout: 20ms"), port):
        requests = [load.decision(token) for token in around.provider.tokens(100, "known")]
        load.write_requests(bench.path("requests"), requests)
        for request in requests:
            if load.once(port, request)[0] != 200:
                raise RuntimeError("the gateway does not allow what it should")
        events = {"calm": lambda: None, "redis": around.redis.process.kill, "provider": lambda: around.provider.control("down", {"ms": options.seconds * 1000})}
        return known_load(bench, port, options, events[kind])


def jwt(bench, options, kind):
    """Proxied requests by JWTs of a provider whose keys are fetched."""
    port, admin = procs.free_port(), procs.free_port()
    with contextlib.ExitStack() as running:
        side = running.enter_context(provider.Provider(bench, procs.cpus()[1]))
        upstream = running.enter_context(bench.upstream())
        running.enter_context(bench.subzero(JWT.format(port=port, admin=admin, url=side.url, upstream=upstream.port), port))

        def requests(prefix):
            tokens = [side.control("token", {"format": "jwt", "sub": f"{prefix}-{i}", "ttl": 3600, "claims": {"aud": "api"}})["token"] for i in range(100)]
            return [load.get("/documents/roadmap", {"Authorization": f"Bearer {token}"}) for token in tokens]

        known = requests("before")
        load.write_requests(bench.path("requests"), known)
        for request in known:
            status, answer = load.once(port, request)
            if status != 200:
                raise RuntimeError(f"the gateway does not allow what it should: {answer[:300]!r}")
        if kind == "rotated":
            seen = known_load(bench, port, options, lambda: side.control("rotate", {"keep": True}))
            seen["new_keys_allowed"] = sum(load.once(port, request)[0] == 200 for request in requests("after"))
            return seen
        side.control("script", {"endpoint": "other", "latency_ms": 3000})
        load.write_requests(bench.path("slow"), [load.get("/slow", {})])
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            waiting = pool.submit(load.wrk, port, bench.path("slow"), options.seconds, 64, procs.cpus()[1])
            seen = known_load(bench, port, options, lambda: None)
            waiting.result()
        return seen


def run(bench, options):
    runs = []
    for kind in KINDS:
        seen = (jwt if kind in ("rotated", "upstream") else opaque)(bench, options, kind)
        seen |= {"kind": kind, "not_allowed": seen["due"] - seen["statuses"].get("200", 0)}
        runs.append(seen)
        bench.say(f"  {kind:8} ms " + "  ".join(f"{name} {ms:.2f}" for name, ms in openloop.curve(seen)) + f"  {seen['statuses']} lost {seen['lost']}")
    figures = {}
    for seen in runs:
        figures[f"{seen['kind']}_not_allowed"] = stats.summary([seen["not_allowed"]])
        for key in ("p50", "p99", "max"):
            figures[f"{seen['kind']}_{key}_ms"] = stats.summary([seen[f"{key}_us"] / 1e3 if seen[f"{key}_us"] is not None else None])
        if "new_keys_allowed" in seen:
            figures["new_keys_allowed"] = stats.summary([seen["new_keys_allowed"]])
    return {
        "workload": {"rate": RATE, "connections": CONNECTIONS, "seconds": options.seconds, "tokens": 100, "threads": 1},
        "configuration": stack.GATEWAY + JWT, "figures": figures, "series": {seen["kind"]: openloop.curve(seen) for seen in runs}, "pairs": runs, "failures": 0,
    }

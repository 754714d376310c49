"""The five scenarios of the figures that Subzero started from: paced users by locust, then the same requests unpaced by wrk.

A paced run's rate is its users' think time, so its latencies count; the rate of the unpaced run is the gateway's and its
generator's.  In 2 and 4 the provider takes 50 to 150 ms and fails one call in a hundred, which the gateway's retries hide.
`--seconds 600 --users 1000 --spawn-rate 50` is the full length, `--users 10000 --spawn-rate 100 --seconds 1800` the stress.
Left out: TLS, a network between the parties, more than one worker.
"""

import contextlib

from perf.bench import load, locust, metrics, procs, stack, stats, watch
from perf.bench.cells import fga

SPARE = 1000  # tokens that nobody asked about before a run: more than its users take


class Scenario:
    """One of them, in CI two that have most parts; start: what it has to beat (requests/s, p50, p95, p99, longest in ms)."""

    SECONDS = 60

    def __init__(self, number, title, start, parts=(), users=1000, cold=0.0, warm_elsewhere=0.0, provider=(0, 0, 0), rps=300.0, unpaced_connections=64,
                 relations=False, more=()):
        self.NAME, self.TITLE, self.SMOKE = f"SCENARIO{number}", title, number in (2, 4)
        self.parts, self.users, self.cold, self.elsewhere, self.provider = set(parts), users, cold, warm_elsewhere, provider
        self.rps, self.unpaced_connections, self.relations = rps, unpaced_connections, relations
        self.BARS = [{"figure": "success_percent", "bar": 100, "beyond": None, "better": "higher", "exact": True, "what": "% answered as they should be, paced"},
                     {"figure": "unpaced_success_percent", "bar": 100, "beyond": None, "better": "higher", "exact": True, "what": "% unpaced"}]
        self.BARS += [{"figure": f"{name}_ms", "bar": bar, "beyond": None, "better": "lower", "what": f"ms {name}, paced"}
                      for name, bar in zip(("p50", "p95", "p99", "max"), start[1:]) if bar]
        self.BARS += [{"figure": "unpaced_rps", "bar": start[0], "beyond": None, "better": "higher", "what": "requests/s, unpaced"}, *more]
        # A short run has too few samples for the tail; CI holds what it has.
        self.GUARDS = [dict(bar, bar=bar["bar"] * 20, beyond=None) if bar["figure"] == "p50_ms" else bar for bar in self.BARS
                       if bar.get("exact") or bar["figure"] == "p50_ms"]

    # ---- what is asked ----

    def uri(self, i, cold=False):
        if not self.relations:
            return "/documents/roadmap" if "fga" not in self.parts else f"/documents/{i * 7 % fga.HOT}"
        return f"/documents/{fga.HOT + i % fga.COLD}" if cold else f"/documents/{i * 7 % fga.HOT}"

    def rows(self, side, n, prefix, cold=False):
        """Tokens of the ten users the store knows; in scenario 3 the same tokens ask about new documents instead."""
        if cold and self.relations:
            return [(self.hot_rows[i % len(self.hot_rows)][0], self.uri(i, True)) for i in range(n)]
        tokens = side.tokens_of([f"user-{i % fga.TOKENS}" if "fga" in self.parts else f"{prefix}-{i}" for i in range(n)])
        return [(token, self.uri(i)) for i, token in enumerate(tokens)]

    def requests(self, hot, cold, n):
        """For wrk: cold ones evenly among the hot."""
        out, taken = [], 0
        for i in range(n):
            new = cold and int((i + 1) * self.cold) > int(i * self.cold) and taken < len(cold)
            token, uri = cold[taken] if new else hot[i % len(hot)]
            taken += bool(new)
            out.append(load.decision(token).replace(b"/documents/roadmap", uri.encode()))
        return out

    # ---- the run ----

    def run(self, bench, options):
        users = options.users or (50 if options.smoke else self.users)
        seconds = 5 if options.smoke else options.seconds
        rate = options.spawn_rate or (50 if users <= 1000 else 250)
        rps = self.rps * (0.5 if options.smoke else 1)
        rounds = {}
        with stack.Stack(bench, self.parts) as around, contextlib.ExitStack() as running:
            port, admin = procs.free_port(), procs.free_port()
            self.hot_rows = hot = self.rows(around.provider, 300, "hot")
            wanted = int(rps * seconds * self.cold * 1.5) + 50 if self.cold else 0
            cold = self.rows(around.provider, min(wanted + (200 if options.smoke else 20 * SPARE), 60000), "cold", True) if self.cold else []
            if self.elsewhere and not self.relations:
                self.known_elsewhere(bench, around, cold)
            text = around.yaml(port, admin, more="limits: {max_connections: 20000, connections_per_address: 20000, idle_timeout: 10m}\n")
            gateway = running.enter_context(bench.subzero(text, port))
            self.warm(port, hot)
            around.provider.wobbly(*self.provider)
            with watch.Watch(gateway.pid) as seen:
                paced, known = self.paced(bench, gateway, admin, hot, cold[:wanted], users, rate, seconds, users / rps)
            rounds["unpaced"] = self.unpaced(bench, gateway, admin, hot, cold[wanted:], options)
            rounds |= {"paced": paced, "hits": known}
        return self.result(rounds, seen, users, rate, seconds, options)

    def warm(self, port, hot):
        for token, uri in {(token, self.uri(i)) for i in range(fga.HOT) for token in [row[0] for row in hot[:fga.TOKENS]]} if self.relations else hot:
            status, answer = load.once(port, load.decision(token).replace(b"/documents/roadmap", uri.encode()))
            if status != 200:
                raise RuntimeError(f"the gateway does not allow what it should: {answer[:300]!r}")

    def known_elsewhere(self, bench, around, cold):
        """Another instance of the fleet saw some of them before: they are in Redis."""
        port = procs.free_port()
        share = self.elsewhere / self.cold
        with bench.subzero(around.yaml(port, procs.free_port()), port):
            for i, (token, uri) in enumerate(cold):
                if int((i + 1) * share) > int(i * share):
                    load.once(port, load.decision(token).replace(b"/documents/roadmap", uri.encode()))

    def paced(self, bench, gateway, admin, hot, cold, users, rate, seconds, think_s):
        before, used = metrics.scrape(admin), gateway.cpu_ns()
        path = locust.plan(bench, hot, cold, self.cold, think_s)
        run = locust.run(bench, gateway.port, path, users, rate, seconds)
        seen = metrics.delta(before, metrics.scrape(admin))
        cpu = (gateway.cpu_ns() - used) / run["seconds"] / 1e7
        bench.say(f"  paced: {run['requests']} requests in {run['seconds']:.0f} s, ms {run['latencies_ms']}, failures {run['failures']}, CPU {cpu:.1f} %")
        return dict(run, cpu_percent=cpu), {"token": metrics.hits(seen), "decision": metrics.hits(seen, "decision")}

    def unpaced(self, bench, gateway, admin, hot, cold, options):
        load.write_requests(bench.path("requests"), self.requests(hot, cold, int(len(cold) / self.cold) if cold else len(hot)))
        before = metrics.scrape(admin)
        run = load.measure(gateway, bench.path("requests"), 2 if options.smoke else max(5, options.seconds // 6), self.unpaced_connections)
        seen = metrics.delta(before, metrics.scrape(admin))
        bench.say(f"  unpaced: {run['rps']:,.0f}/s, p50 {run['p50_us']} us, longest {run['max_us']}, {run['cpu_us']:.1f} us of CPU, errors {run['errors']}")
        return dict(run, hits=metrics.hits(seen))

    def result(self, rounds, seen, users, rate, seconds, options):
        paced, unpaced = rounds["paced"], rounds["unpaced"]
        bad, lost = sum(paced["failures"].values()), sum(unpaced["errors"].values())
        values = {"requests": paced["requests"], "rps": paced["requests"] / paced["seconds"], "success_percent": 100 * (1 - bad / max(1, paced["requests"])),
                  "unpaced_success_percent": 100 * (1 - lost / max(1, unpaced["requests"] + lost)), "cpu_percent": paced["cpu_percent"],
                  "unpaced_rps": unpaced["rps"], "unpaced_p50_ms": unpaced["p50_us"] / 1e3, "unpaced_cpu_us": unpaced["cpu_us"]}
        values |= {f"{name}_ms": paced["latencies_ms"][name] for name in ("p50", "p95", "p99", "max")}
        values |= {f"{kind}_{layer}_percent": 100 * share for kind, shares in rounds["hits"].items() for layer, share in (shares or {}).items()}
        if seen.samples:
            late = [sample[1] for sample in seen.samples[len(seen.samples) // 2:]]
            values |= {"resident_mb": max(sample[1] for sample in seen.samples), "resident_drift_mb": late[-1] - late[0]}
        return {
            "workload": {"users": users, "spawn_rate": rate, "seconds": seconds, "think_s": users / self.rps, "cold_share": self.cold,
                         "known_elsewhere": self.elsewhere, "provider_ms_and_one_in": self.provider, "parts": sorted(self.parts), "workers": 1,
                         "unpaced_connections": self.unpaced_connections, "generators": "locust, then wrk -t1"},
            "configuration": stack.GATEWAY,
            "figures": {name: stats.summary([value]) for name, value in values.items()},
            "series": {"resident_mb": seen.series(1), "cpu_percent": seen.series(2), "descriptors": seen.series(3)},
            "pairs": [rounds], "failures": 0,
        }


CELLS = [
    Scenario(1, "cached authentication, 1,000 users, all known", (300.87, 2.1, 4.3, 6.8, 12.4)),
    Scenario(2, "80 % known, 20 % asked of a provider of 50 to 150 ms that fails 1 %", (261.40, 5.2, 156.3, 223.8, 456.2), {"redis"}, cold=0.2,
             provider=(50, 150, 100), rps=261.4, unpaced_connections=256),
    Scenario(3, "relationships, five levels deep, 95 % of the questions asked before", (409.37, 1.8, 3.2, 12.4, 45.7), {"fga"}, cold=0.05, rps=409.4,
             relations=True),
    Scenario(4, "all of it: provider, relations, limits in Redis, threat; 90 % known", (237.20, 8.4, 168.2, 287.5, 521.3),
             {"redis", "limit", "threat", "fga"}, cold=0.1, warm_elsewhere=0.08, provider=(50, 150, 100), rps=237.2, unpaced_connections=256),
    Scenario(5, "5,000 connections, an hour by --seconds 3600", (238.45, 0, 0, 0, 0), users=5000, rps=238.45, unpaced_connections=5000, more=(
        {"figure": "cpu_percent", "bar": 65, "beyond": None, "better": "lower", "what": "% of a CPU, paced"},
        {"figure": "resident_mb", "bar": 1400, "beyond": None, "better": "lower", "what": "MB resident at most"},
        {"figure": "resident_drift_mb", "bar": 1, "beyond": None, "better": "lower", "what": "MB that memory grew over the second half"})),
]

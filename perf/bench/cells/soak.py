"""The same life over and over: a token minted, allowed, denied, revoked, refused, its connection closed; then a census.

100 lives one after the other, then 20 batches of four at once.  Counted before, every ten lives and at the end; at the end
everything that can be counted is as it was: descriptors by kind (pools included), threads, requests in progress, connections
to Redis, the audit queue, temporary files, Redis keys and leases; resident memory has stopped growing.
"""

import concurrent.futures
import contextlib
import http.client
import json
import time

from perf.bench import census, procs, stack, stats

NAME = "SOAK"
TITLE = "a token minted, allowed, denied, revoked, refused, closed: 100 in turn, 20 batches of four; what is left over"
SMOKE = True
SECONDS = 40
BARS = [
    {"figure": "failed_lives", "bar": 0, "beyond": None, "better": "lower", "exact": True, "what": "lives that did not go as they should"},
    {"figure": "left_over", "bar": 0, "beyond": None, "better": "lower", "exact": True, "what": "kinds of things of which there are more or fewer at the end"},
    {"figure": "late_growth_kb", "bar": 256, "beyond": None, "better": "lower", "what": "KiB of memory more at the end than after half of the lives"},
]
SEQUENCE, BATCHES, AT_ONCE, TTL = 100, 20, 4, 4
# What is kept on purpose is kept for a short time, so that the census need not wait for it.
# Small tables, since a large one is touched page by page for hours: growth that is left is no table's.
MORE = "revocation: {{capacity: 1000}}\naudit: {{path: {journal}, allowed: all}}\nstate_dir: {state}\nhttp: {{idle: 2s}}\n"


class Life:
    """One client; each step is checked, and the first that goes wrong is said."""

    def __init__(self, around, port, admin, i):
        self.around, self.port, self.admin, self.i = around, port, admin, i

    def ask(self, connection, token, document):
        connection.request("GET", "/auth", headers={"Authorization": f"Bearer {token}", "X-Original-URI": f"/documents/{document}",
                                                    "X-Original-Method": "GET", "X-Forwarded-For": "192.0.2.7"})
        answer = connection.getresponse()
        answer.read()
        return answer.status

    def revoke(self, token):
        connection = http.client.HTTPConnection("127.0.0.1", self.admin, timeout=20)
        with contextlib.closing(connection):
            connection.request("POST", "/revocations", json.dumps({"kind": "token", "value": token}), {"Content-Type": "application/json"})
            answer = connection.getresponse()
            answer.read()
            return answer.status

    def live(self):
        """None, or what went wrong."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
        with contextlib.closing(connection):
            token = self.around.provider.token(f"user-{self.i % stack.fga.TOKENS}", TTL)
            steps = (("allowed", 200, lambda: self.ask(connection, token, self.i % stack.fga.HOT)),
                     ("denied", 403, lambda: self.ask(connection, token, "nobodys")),
                     ("revoked", 201, lambda: self.revoke(token)),
                     ("refused", 401, lambda: self.ask(connection, token, self.i % stack.fga.HOT)))
            for name, wanted, step in steps:
                got = step()
                if got != wanted:
                    return f"{name}: {got}"
        return None


def lives(around, gateway, admin, numbers):
    """All of them at once; what went wrong."""
    def live(i):
        try:
            return Life(around, gateway.port, admin, i).live()
        except (OSError, http.client.HTTPException) as error:
            return f"{type(error).__name__}: {error}"

    with concurrent.futures.ThreadPoolExecutor(len(numbers)) as pool:
        return [why for why in pool.map(live, numbers) if why]


def settled(take, before, limit):
    """The census once it is as before, or after `limit` seconds what there is: pools close what is idle, facts expire."""
    end = time.monotonic() + limit
    while True:
        now = take()
        if not census.differing(before, now, 1 << 30) or time.monotonic() > end:
            return now
        time.sleep(0.5)


def run(bench, options):
    sequence, batches = (10, 2) if options.smoke else (SEQUENCE * max(1, options.seconds // SECONDS), BATCHES * max(1, options.seconds // SECONDS))
    failed, taken = [], []
    with stack.Stack(bench, {"redis", "limit", "fga"}) as around:
        port, admin = procs.free_port(), procs.free_port()
        more = MORE.format(journal=bench.path("journal"), state=bench.path("state"))
        text = around.yaml(port, admin, ttl="1s", l2="3s", capacity=256, decisions=256, more=more)
        with bench.subzero(text.replace("decisions: {", "negative: {capacity: 256}, decisions: {"), port) as gateway:
            def take():
                return census.take(gateway.pid, admin, around.redis.port, ("/tmp", bench.path("state"), bench.path("journal")))

            for _ in range(2 if options.smoke else 10):  # tables and pools touch their memory as they are first used
                warm = lives(around, gateway, admin, range(AT_ONCE))
                if warm:
                    raise RuntimeError(f"a life does not go as it should: {warm[0]}")
            time.sleep(TTL + 4)  # facts and pooled connections go
            before = take()
            for i in range(sequence):
                failed += lives(around, gateway, admin, [i])
                if i % 10 == 9:
                    taken.append(take())
            for batch in range(batches):
                failed += lives(around, gateway, admin, range(batch * AT_ONCE, (batch + 1) * AT_ONCE))
                taken.append(take())
            after = settled(take, before, TTL + 60)
    return result(bench, before, taken, after, failed, sequence, batches)


def result(bench, before, taken, after, failed, sequence, batches):
    left = census.differing(before, after, 1 << 30)
    bench.say(f"  {sequence} lives and {batches} batches of {AT_ONCE}; failed: {failed[:5] or 'none'}")
    bench.say(f"  before {before}\n  after  {after}")
    figures = {"failed_lives": len(failed), "left_over": len(left), "resident_growth_kb": after["resident_kb"] - before["resident_kb"],
               "late_growth_kb": after["resident_kb"] - taken[len(taken) // 2]["resident_kb"]}
    return {
        "workload": {"sequence": sequence, "batches": batches, "at_once": AT_ONCE, "token_ttl_s": TTL, "workers": 1},
        "configuration": stack.GATEWAY + MORE,
        "figures": {name: stats.summary([value]) for name, value in figures.items()},
        "series": {name: [[i, one[name]] for i, one in enumerate(taken)] for name in ("resident_kb", "sockets")},
        "pairs": [{"before": before, "after": after, "extremes": census.extremes(taken), "left_over": left, "failed": failed}],
        "failures": 0,
    }

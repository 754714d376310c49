import types
import unittest

from perf.bench import locust, metrics
from perf.bench.cells import ALL, scenarios


class Locust(unittest.TestCase):
    def test_what_was_seen_is_said_without_a_tail_that_it_does_not_carry(self):
        run = locust.judged({"latencies_us": [1000] * 40, "failures": {"status 503": 2}, "seconds": 10, "cold_used": 3})
        self.assertEqual((run["requests"], run["failures"]), (42, {"status 503": 2}))
        self.assertEqual(run["latencies_ms"], {"n": 40, "p50": 1.0, "p95": 1.0, "p99": None, "max": 1.0})


class Mix(unittest.TestCase):
    def test_cold_ones_are_spread_evenly_and_each_is_used_once(self):
        one = scenarios.CELLS[1]
        hot, cold = [("h", "/documents/roadmap")], [(f"c{i}", "/documents/roadmap") for i in range(20)]
        requests = one.requests(hot, cold, 100)
        taken = [request for request in requests if b"Bearer c" in request]
        self.assertEqual((len(taken), len(set(taken))), (20, 20))
        self.assertEqual(sum(b"Bearer c" in request for request in requests[:50]), 10)

    def test_any_failure_misses_the_bar(self):
        one = scenarios.CELLS[0]
        paced = {"requests": 1000, "failures": {"status 503": 1}, "seconds": 10, "cpu_percent": 1, "latencies_ms": {"p50": 1, "p95": 1, "p99": 1, "max": 1}}
        unpaced = {"requests": 10, "errors": {"status": 0}, "rps": 1, "p50_us": 1, "cpu_us": 1}
        seen = types.SimpleNamespace(samples=[], series=lambda _: [])
        measured = one.result({"paced": paced, "unpaced": unpaced, "hits": {"token": None, "decision": None}}, seen, 1, 1, 10, None)
        self.assertLess(measured["figures"]["success_percent"]["median"], 100)
        self.assertEqual(measured["figures"]["unpaced_success_percent"]["median"], 100)

    def test_all_five_are_cells(self):
        self.assertLessEqual({f"SCENARIO{n}" for n in range(1, 6)}, set(ALL))


class Hits(unittest.TestCase):
    def test_shares_of_the_layers(self):
        seen = {'subzero_cache_requests_total{layer="l1",kind="token"}': 100, 'subzero_cache_hits_total{layer="l1",kind="token"}': 88,
                'subzero_cache_hits_total{layer="l2",kind="token"}': 10}
        shares = metrics.hits(seen)
        self.assertAlmostEqual(shares["l3"], 0.02)
        self.assertIsNone(metrics.hits({}))

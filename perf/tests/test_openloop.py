import unittest

from perf.bench import openloop
from perf.bench.cells import openloop as cell
from perf.bench.cells import outage, scaling

SEEN = {"due": 2000, "answered": 2000, "statuses": {"200": 2000}, "lost": 0, "overrun": 0, "lag_worst_us": 10, "p50_us": 1, "p90_us": 2, "p95_us": 3,
        "p99_us": 4, "p999_us": 5, "max_us": 6}


class Judged(unittest.TestCase):
    def test_what_the_generator_did_not_send_is_no_measurement(self):
        self.assertTrue(openloop.judged(SEEN, 1)["held"])
        self.assertFalse(openloop.judged(dict(SEEN, lag_worst_us=200000), 1)["held"])
        self.assertFalse(openloop.judged(dict(SEEN, overrun=1), 1)["held"])

    def test_an_overloaded_run_does_not_count_its_drain_as_rate(self):
        self.assertEqual(openloop.judged(SEEN, 2)["good_per_s"], 1000)
        self.assertEqual(openloop.judged(dict(SEEN, lost=5), 2)["good_per_s"], 500)

    def test_the_tail_needs_samples(self):
        few = openloop.judged(dict(SEEN, answered=500), 1)
        self.assertIsNone(few["p99_us"])
        self.assertEqual([name for name, _ in openloop.curve(few)], ["p50", "p90", "p95", "max"])

    def test_only_refusals_for_overload_are_no_fault(self):
        self.assertEqual(cell.wrong({"200": 5, "403": 3, "401": 2, "500": 1}), 3)

    def test_every_outage_has_an_exact_bar(self):
        self.assertEqual({bar["figure"] for bar in outage.BARS if bar.get("exact")}, {f"{kind}_not_allowed" for kind in outage.KINDS})


class Model(unittest.TestCase):
    def test_costs_are_told_apart_and_predict_a_mix(self):
        def one(cpu, l1, l2, l3, redis=1.0):
            return {"cpu_us": cpu, "hits": {"l1": l1, "l2": l2, "l3": l3}, "redis_us": redis}

        turn = {"l1": one(10, 1, 0, 0), "l2": one(18, 0.2, 0.8, 0), "l3": one(50, 0, 0, 1), "mixed": one(15, 0.5, 0.5, 0)}
        found = scaling.model(turn)
        self.assertAlmostEqual(found["cost_l2_us"], 20)
        self.assertAlmostEqual(found["predicted_us"], 15)
        self.assertAlmostEqual(found["model_error_percent"], 0)

    def test_a_layer_that_hardly_answered_has_no_cost(self):
        self.assertIsNone(scaling.unmixed(10, {"l1": 0.9}, {"l1": 10}))

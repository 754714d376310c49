import unittest

from perf.bench import judge
from perf.bench.cells import flood


def side(p99, good=200, statuses=None, lag=5, cpu=50):
    run = {"good": {"due": good, "statuses": {"200": good}, "overrun": 0, "lag_worst_us": lag, "p50_us": 50, "p99_us": p99, "p999_us": p99},
           "cpu_percent": cpu}
    if statuses is not None:
        run["flood"] = {"statuses": statuses, "overrun": 0, "answered": sum(statuses.values()), "per_s": 6000.0}
    return run


def one(here=150, **more):
    values = {"alone": side(100), **{f + w: side(here, statuses={"401": 300, "403": 100}) for f, w in flood.SIDES}}
    values.update(more)
    return values


class Flood(unittest.TestCase):
    def verdicts(self, rounds):
        return [bar["verdict"] for bar in judge.judged(flood.BARS, flood.figures(rounds))]

    def test_bars_follow_from_the_rounds(self):
        self.assertEqual(self.verdicts([one()] * 5), [judge.BEYOND, judge.BEYOND, judge.MET])
        self.assertEqual(self.verdicts([one(here=201)] * 5)[:2], [judge.MISSED, judge.MISSED])

    def test_one_refused_request_misses_the_bar(self):
        bad = side(100, statuses={"401": 1})
        bad["good"]["statuses"] = {"200": 199, "403": 1}
        self.assertEqual(self.verdicts([one(), one(fast_here=bad)])[2], judge.MISSED)

    def test_a_forged_token_that_passes_fails_the_round(self):
        self.assertTrue(flood.is_good(one()))
        self.assertFalse(flood.is_good(one(here=150, over_here=side(100, statuses={"200": 1}))))

    def test_a_generator_that_was_late_is_no_measurement(self):
        self.assertFalse(flood.is_good(one(alone=side(100, lag=2000000))))

    def test_no_round_no_verdict(self):
        self.assertFalse(judge.passes(judge.judged(flood.BARS, flood.figures([]))))


if __name__ == "__main__":
    unittest.main()

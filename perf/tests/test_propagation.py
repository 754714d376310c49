import json
import unittest

from perf.bench import judge, smoke
from perf.bench.cells import ALL, propagation


class Speaker:
    """An instance that lets a token in so often, and answers a revocation with this status."""

    def __init__(self, good=2, status=201):
        self.good, self.status, self.asked = good, status, 0

    def status_of(self, _token):
        self.asked += 1
        return 200 if self.asked <= self.good else 401

    def post(self, text):
        self.text = text

    def posted(self):
        return self.status


def thousand(longest):
    return [(1.0, 2.0)] * 990 + [(5.0, 6.0)] * 9 + [(longest, longest)]


class Propagation(unittest.TestCase):
    def verdicts(self, samples, heard):
        return [bar["verdict"] for bar in judge.judged(propagation.BARS, propagation.figures(samples, heard))]

    def test_it_is_found(self):
        self.assertIs(ALL["PROPAGATION"], propagation)

    def test_the_longest_decides(self):
        self.assertEqual(self.verdicts(thousand(99.0), 1000), [judge.MET] * 3)
        self.assertEqual(self.verdicts(thousand(101.0), 1000), [judge.MISSED, judge.MET, judge.MET])

    def test_what_was_not_announced_is_said(self):
        self.assertEqual(self.verdicts(thousand(9.0), 999)[2], judge.MISSED)

    def test_no_percentile_without_enough_samples(self):
        few = propagation.figures([(1.0, 1.0)] * 50, 50)
        self.assertIn("p95_ms", few)
        self.assertNotIn("p99_ms", few)
        verdicts = smoke.verdicts(propagation, {"figures": few})
        self.assertTrue(judge.passes(verdicts))

    def test_kinds_take_turns(self):
        self.assertEqual(json.loads(propagation.body(0, "t", "s"))["kind"], "token")
        self.assertEqual(json.loads(propagation.body(1, "t", "s")), {"kind": "subject", "issuer": "bench", "value": "s"})

    def test_one_that_was_refused_before_is_no_sample(self):
        self.assertIsNone(propagation.one(Speaker(), Speaker(good=1), "t", "{}"))

    def test_one_that_is_not_safe_is_no_sample(self):
        self.assertIsNone(propagation.one(Speaker(status=503), Speaker(), "t", "{}"))
        refused, answered = propagation.one(Speaker(), Speaker(good=5), "t", "{}")
        self.assertLessEqual(refused, answered)

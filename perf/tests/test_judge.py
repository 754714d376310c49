import unittest

from perf.bench import judge

HIGHER = {"figure": "r", "bar": 0.85, "beyond": 0.95, "better": "higher"}
LOWER = {"figure": "mb", "bar": 20, "beyond": None, "better": "lower"}


def figure(value):
    return {"median": value, "min": value, "max": value, "n": 1}


class Verdict(unittest.TestCase):
    def test_bounds_belong_to_the_better_side(self):
        for value, expected in ((0.849, judge.MISSED), (0.85, judge.MET), (0.949, judge.MET), (0.95, judge.BEYOND)):
            self.assertEqual(judge.verdict(HIGHER, {"r": figure(value)}), expected)
        for value, expected in ((20.1, judge.MISSED), (20, judge.MET), (1, judge.MET)):
            self.assertEqual(judge.verdict(LOWER, {"mb": figure(value)}), expected)

    def test_a_missing_figure_never_passes(self):
        for figures in ({}, {"r": None}):
            bars = judge.judged([HIGHER], figures)
            self.assertEqual(bars[0]["verdict"], judge.UNKNOWN)
            self.assertFalse(judge.passes(bars))

    def test_one_missed_bar_fails_all(self):
        bars = judge.judged([HIGHER, LOWER], {"r": figure(1), "mb": figure(21)})
        self.assertFalse(judge.passes(bars))

import types
import unittest

from perf.bench import cells, judge, smoke

LOWER = {"figure": "ms", "bar": 5, "beyond": 2, "better": "lower", "what": "ms"}
HIGHER = {"figure": "ratio", "bar": 0.8, "beyond": None, "better": "higher", "what": "ratio"}
EXACT = {"figure": "calls", "bar": 1, "beyond": None, "better": "lower", "exact": True, "what": "calls"}


def figure(value):
    return {"median": value, "min": value, "max": value, "n": 1}


def cell(name, bars, **more):
    return types.SimpleNamespace(NAME=name, TITLE=name, BARS=bars, **more)


def run(*pairs):
    said = []

    def measure(one):
        value = dict(pairs_by_name)[one.NAME]
        if isinstance(value, Exception):
            raise value
        return {"figures": value}

    pairs_by_name = [(one.NAME, value) for one, value in pairs]
    return smoke.run_all([one for one, _ in pairs], measure, said.append, lambda bar: bar["verdict"]), said


class Guards(unittest.TestCase):
    def test_times_are_twenty_times_as_wide_and_counts_as_they_are(self):
        self.assertEqual([bar["bar"] for bar in judge.guards(cell("A", [LOWER, HIGHER, EXACT]))], [100, 0.04, 1])

    def test_a_cell_may_have_its_own(self):
        self.assertEqual(judge.guards(cell("A", [LOWER], GUARDS=[EXACT])), [EXACT])

    def test_no_cell_holds_ci_to_a_time_that_is_less_wide(self):
        for one in cells.ALL.values():
            bars = {bar["figure"]: bar for bar in one.BARS}
            for held in judge.guards(one):
                if held.get("exact") or held["figure"] not in bars:
                    continue
                widest = judge.guard(bars[held["figure"]])["bar"]
                (self.assertLessEqual if held["better"] == "higher" else self.assertGreaterEqual)(held["bar"], widest, one.NAME)

    def test_what_is_said_of_every_cell(self):
        for one in cells.ALL.values():
            self.assertRegex(one.NAME, "^[A-Z][A-Z0-9]*$")
            for bar in one.BARS:
                self.assertLessEqual({"figure", "bar", "better", "what"}, set(bar), one.NAME)


class Run(unittest.TestCase):
    def test_within_the_guards(self):
        good, said = run((cell("A", [LOWER, EXACT]), {"ms": figure(99), "calls": figure(1)}))
        self.assertTrue(good)
        self.assertEqual(said[-1], "1 passed, 0 failed, 0 skipped")

    def test_a_broken_guard_a_missing_figure_and_an_error_fail_and_hide_nothing(self):
        for value in ({"ms": figure(101), "calls": figure(1)}, {"ms": figure(1), "calls": figure(2)}, {"calls": figure(1)}, RuntimeError("x")):
            good, said = run((cell("A", [LOWER, EXACT]), value), (cell("B", [EXACT]), {"calls": figure(1)}))
            self.assertFalse(good)
            self.assertEqual(said[-1], "1 passed, 1 failed, 0 skipped")

    def test_what_cannot_run_here_is_skipped_with_a_word(self):
        good, said = run((cell("A", [EXACT]), smoke.Skip("no openfga")))
        self.assertTrue(good)
        self.assertIn("A  skipped: no openfga", said)
        self.assertEqual(said[-1], "0 passed, 0 failed, 1 skipped")

import unittest

from perf.bench import stats


class Summary(unittest.TestCase):
    def test_nothing_is_no_figure(self):
        self.assertIsNone(stats.summary([]))

    def test_median_and_spread(self):
        self.assertEqual(stats.summary([3, 1, 2]), {"median": 2, "min": 1, "max": 3, "n": 3})
        self.assertEqual(stats.summary(iter([1, 2]))["median"], 1.5)


class Ratios(unittest.TestCase):
    pairs = [{"a": {"cpu": 2.0, "rps": 10}, "b": {"cpu": 1.0, "rps": 20}}, {"a": {"cpu": 0, "rps": 0}, "b": {"cpu": 1, "rps": 1}}]

    def test_above_one_is_better_for_us(self):
        self.assertEqual(stats.ratios(self.pairs, "a", "b", "cpu", True), [0.5])
        self.assertEqual(stats.ratios(self.pairs, "a", "b", "rps", False), [0.5])

    def test_a_pair_without_a_value_gives_no_ratio(self):
        self.assertEqual(len(stats.ratios(self.pairs, "b", "a", "cpu", True)), 1)


class Order(unittest.TestCase):
    def test_everybody_goes_first_in_turn(self):
        self.assertEqual([stats.order(["a", "b", "c"], i)[0] for i in range(4)], ["a", "b", "c", "a"])
        self.assertEqual(sorted(stats.order(["a", "b", "c"], 2)), ["a", "b", "c"])


class Human(unittest.TestCase):
    def test_forms(self):
        self.assertEqual([stats.human(v) for v in (None, 16000, 0.85, 12345.6, 1.0)], ["-", "16,000", "0.85", "12,346", "1"])


if __name__ == "__main__":
    unittest.main()


class Percentiles(unittest.TestCase):
    def test_nearest_rank(self):
        values = list(range(1, 101))
        self.assertEqual([stats.percentile(values, p) for p in (1, 50, 95)], [1, 50, 95])
        self.assertEqual(stats.percentile([7], 50), 7)
        self.assertEqual(stats.percentile(list(range(1, 2001)), 99), 1980)

    def test_too_few_samples_have_no_tail(self):
        self.assertIsNone(stats.percentile(list(range(29)), 95))
        self.assertIsNotNone(stats.percentile(list(range(30)), 95))
        self.assertIsNone(stats.percentile(list(range(999)), 99))
        self.assertIsNone(stats.percentile(list(range(999)), 99.9))
        self.assertIsNone(stats.percentile([], 50))
        self.assertEqual((stats.enough(5, 95, 29), stats.enough(5, 95, 30), stats.enough(5, 99, 999)), (None, 5, None))

    def test_the_maximum_and_n_are_always_said(self):
        self.assertEqual(stats.distribution([3, 1, 2]), {"n": 3, "p50": 2, "p95": None, "p99": None, "max": 3})
        self.assertEqual(stats.summary([None, 2, None])["n"], 1)

import contextlib
import io
import json
import os
import tempfile
import unittest
from unittest import mock

from perf.bench import __main__ as main
from perf.bench import publish, store, svg
from perf.bench.cells import ALL

DOC = "# x\n<!-- published: {0} -->\nold\n<!-- end -->\n"
BLOCKS = ("worst", "figures", "leaves-out", "plots", "not-measured", "rejected")
EMPTY = {"figures": [], "tables": [], "plots": [], "not_measured": [], "rejected": []}


def read(path):
    with open(path, "rb") as f:
        return f.read()


def figure(value, low=None, high=None, n=7):
    return {"median": value, "min": value if low is None else low, "max": value if high is None else high, "n": n}


class Tree(unittest.TestCase):
    """A tree with a page, results and a published.json of its own."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = folder.name
        for name in ("docs", "perf/results"):
            os.makedirs(os.path.join(self.root, name))
        self.write("docs/performance.md", "".join(DOC.format(block) for block in BLOCKS))
        self.result("p1-20260101T000000Z.json", {"cpu_ratio": figure(0.8, 0.7, 0.9)})
        self.result("p8-20260101T000000Z.json", {"start_mb": figure(10), "connections_mb": figure(160), "held": figure(16000)})
        self.said = dict(EMPTY)

    def write(self, path, text):
        with open(os.path.join(self.root, path), "w", encoding="utf-8") as f:
            f.write(text)

    def result(self, name, figures, dirty=False, **more):
        self.write("perf/results/" + name, json.dumps(dict({"build": {"dirty": dirty}, "figures": figures}, **more)))

    def publish(self, **said):
        self.write("perf/published.json", json.dumps(dict(EMPTY, **said)))
        return publish.rendered(self.root)[os.path.join(self.root, "docs/performance.md")]


class Figures(Tree):
    P1 = {"cell": "P1", "artifact": "p1-20260101T000000Z.json", "leaves_out": "TLS"}
    P8 = {"cell": "P8", "artifact": "p8-20260101T000000Z.json"}

    def test_figure_bar_verdict_and_artifact(self):
        text = self.publish(figures=[self.P1])
        self.assertIn("| P1 | bare h2o's CPU per request / ours | 0.8 (0.7 to 0.9, n 7) | ≥ 0.85; beyond ≥ 0.95 | **missed** | "
                      "[p1](../perf/results/p1-20260101T000000Z.json) |", text)
        self.assertIn("* **P1**: TLS", text)

    def test_the_worst_is_the_one_farthest_below_its_bar(self):
        text = self.publish(figures=[self.P1, self.P8])
        self.assertIn("**The worst figure: P8, MB with 5,000 connections", text)
        self.assertIn("Bars missed: 2 of 4 (P1, P8).", text)
        self.assertLess(text.index("The worst figure"), text.index("| P1 |"))

    def test_what_has_no_artifact_is_weaker_evidence(self):
        text = self.publish(figures=[{"cell": "P2", "what": "proxying", "figure": "1.1", "weaker": "a run that was not kept"}])
        self.assertIn("| P2 | proxying | 1.1 | | *weaker evidence* | a run that was not kept |", text)

    def test_what_is_not_published_is_said_to_be_not_measured(self):
        text = self.publish(figures=[self.P1])
        self.assertNotIn("* **P1**: bare", text)
        self.assertIn(f"* **P9**: {ALL['P9'].TITLE}.", text)

    def test_an_artifact_that_is_absent_or_a_candidate_is_refused(self):
        self.result("p2-20260101T000000Z.json", {}, dirty=True)
        for name, why in (("p1-20250101T000000Z.json", "not there"), ("p2-20260101T000000Z.json", "candidate")):
            with self.assertRaisesRegex(publish.Fault, why):
                self.publish(figures=[{"cell": "P1", "artifact": name}])

    def test_a_figure_that_the_artifact_lacks_is_refused(self):
        with self.assertRaisesRegex(publish.Fault, "no figure nothing"):
            self.publish(figures=[dict(self.P1, beside=[{"figure": "nothing", "what": "x"}])])

    def test_a_table_is_filled(self):
        self.write("docs/performance.md", "".join(DOC.format(block) for block in (*BLOCKS, "mine")))
        text = self.publish(tables=[{"name": "mine", "artifact": "p1-20260101T000000Z.json", "columns": ["a", "b"],
                                     "rows": [["x", "{cpu_ratio} and {cpu_ratio:spread}, {cpu_ratio:n}"]]}])
        self.assertIn("| x | 0.8 and 0.8 (0.7 to 0.9, n 7), 7 |", text)

    def test_blocks_must_match(self):
        with self.assertRaisesRegex(publish.Fault, "no block 'mine'"):
            self.publish(tables=[{"name": "mine", "artifact": "p1-20260101T000000Z.json", "columns": [], "rows": []}])
        self.write("docs/performance.md", DOC.format("yours"))
        with self.assertRaisesRegex(publish.Fault, "'yours'"):
            self.publish()


class Stale(Tree):
    PLOT = {"file": "perf-x.svg", "title": "X", "y": "s", "caption": "c.",
            "items": [{"label": "a", "artifact": "p1-20260101T000000Z.json", "figure": "cpu_ratio"}]}

    def test_any_difference_and_any_stray_plot_is_found(self):
        self.publish(plots=[self.PLOT])
        page, plot = os.path.join(self.root, "docs/performance.md"), os.path.join(self.root, "docs/img/perf-x.svg")
        self.assertEqual(publish.stale(self.root), [page, plot])
        publish.write(self.root, lambda _: None)
        self.assertEqual(publish.stale(self.root), [])
        self.result("p1-20260101T000000Z.json", {"cpu_ratio": figure(0.9)})
        self.assertEqual(publish.stale(self.root), [plot])
        publish.write(self.root, lambda _: None)
        self.write("docs/img/perf-stray.svg", "x")
        self.assertEqual(publish.stale(self.root), [os.path.join(self.root, "docs/img/perf-stray.svg")])

    def test_a_later_result_is_named_and_nothing_is_edited(self):
        self.publish(figures=[Figures.P1])
        self.result("p1-20260102T000000Z.json", {})
        self.assertEqual(publish.newer(self.root), ["p1-20260101T000000Z.json -> p1-20260102T000000Z.json"])

    def test_what_has_a_result_and_is_not_published_is_suggested_and_not_written(self):
        self.publish(figures=[Figures.P1])
        self.result("openloop-20260101T000000Z.json", {}, benchmark="OPENLOOP")
        for name in ("p1", "p8"):
            self.result(f"{name}-20260101T000000Z.json", {}, benchmark=name.upper())
        before = read(os.path.join(self.root, "perf/published.json"))
        suggested = publish.suggested(self.root)
        self.assertEqual(len(suggested), 2)
        self.assertTrue(any('"OPENLOOP"' in text and "did not keep its schedule" in text for text in suggested))
        self.assertEqual(read(os.path.join(self.root, "perf/published.json")), before)

    def test_series_are_drawn(self):
        self.result("soak-20260101T000000Z.json", {}, series={"rss": [[0, 1], [1, 2]]})
        line = {"file": "perf-l.svg", "title": "L", "x": "s", "y": "MB", "caption": "c.",
                "series": [{"label": "rss", "artifact": "soak-20260101T000000Z.json", "key": "rss"}]}
        self.publish(plots=[line])
        self.assertIn("<polyline", publish.rendered(self.root)[os.path.join(self.root, "docs/img/perf-l.svg")])
        with self.assertRaisesRegex(publish.Fault, "no series cpu"):
            self.publish(plots=[dict(line, series=[dict(line["series"][0], key="cpu")])])


class Svg(unittest.TestCase):
    def test_same_data_same_bytes_and_text_is_escaped(self):
        one = svg.bars("a < b", "s", [("x & y", 1, 0.5, 2)])
        self.assertEqual(one, svg.bars("a < b", "s", [("x & y", 1, 0.5, 2)]))
        self.assertIn("a &lt; b", one)
        self.assertIn("x &amp; y", one)

    def test_extremes(self):
        svg.bars("one", "s", [("zero", 0, 0, 0)])
        svg.lines("log", "x", "y", [("a", [("p50", 1), ("p99", 1000)])], True)
        svg.lines("point", "x", "y", [("a", [(5, 5)])])
        with self.assertRaises(ValueError):
            svg.lines("nothing", "x", "y", [("a", [])])


class Table(unittest.TestCase):
    def test_every_bar_has_a_line_and_what_was_not_measured_fails(self):
        with tempfile.TemporaryDirectory() as folder:
            store.save({"benchmark": "P1", "build": {"dirty": False}, "figures": {"cpu_ratio": figure(0.9)}, "failures": 1, "load_before": 9}, folder)
            out = io.StringIO()
            with contextlib.redirect_stdout(out):
                self.assertFalse(main.table(folder))
        lines = out.getvalue().splitlines()
        self.assertEqual(len([line for line in lines if line and not line.startswith(("0 ", "1 "))]), sum(len(cell.BARS) for cell in ALL.values()))
        self.assertRegex(lines[0], r"^P1 +met +0\.9 \(.*1 failed runs  busy machine, load 9\.0$")
        self.assertIn("not measured", lines[1])

    def test_candidates_are_kept_apart(self):
        with tempfile.TemporaryDirectory() as folder:
            store.save({"benchmark": "P1", "build": {"dirty": True}}, folder)
            self.assertEqual(store.latest(folder), {})
            self.assertEqual(list(store.latest(os.path.join(folder, store.CANDIDATE))), ["P1"])


class Hands(unittest.TestCase):
    def test_no_benchmark_writes_what_is_published(self):
        """A run of any cell through the front door leaves published.json and the page alone."""
        cell = mock.Mock(NAME="P1", TITLE="x", BARS=[], smoke=None)
        cell.run.return_value = {"workload": {}, "configuration": "", "figures": {}, "pairs": [], "failures": 0}
        paths = [os.path.join(main.ROOT, path) for path in ("perf/published.json", "docs/performance.md")]
        before = [read(path) for path in paths]
        with mock.patch.dict(main.ALL, {"P1": cell}), mock.patch.object(store, "save", return_value="/x"), contextlib.redirect_stdout(io.StringIO()):
            main.main(["P1"])
        self.assertEqual([read(path) for path in paths], before)

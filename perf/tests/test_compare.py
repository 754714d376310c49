import argparse
import contextlib
import copy
import io
import json
import os
import subprocess
import tempfile
import types
import unittest
from unittest import mock

from perf.bench import __main__ as main
from perf.bench import compare, metrics

KNOWN = {"machine": {"kernel": "6.1"}, "toolchain": {"gcc": "12"}, "libraries": {"openssl": "3"}, "workload": {"c": 64}, "configuration": "a",
         "fingerprint": "1"}


def samples(*values):
    return [{"cpu_us": value, "rps": 1e6 / value} for value in values]


def flat(value, n=25):
    return samples(*[value] * n)


class Rows(unittest.TestCase):
    def test_a_change_smaller_than_the_spread_is_noise(self):
        wide = [10 + i / 5 for i in range(25)]
        self.assertEqual(compare.row("x", wide, [v + 1 for v in wide])["verdict"], "within noise")
        self.assertEqual(compare.row("x", wide, [v + 3 for v in wide])["verdict"], "higher")
        self.assertEqual(compare.row("x", wide, [v - 3 for v in wide])["verdict"], "lower")

    def test_the_wider_spread_of_both_decides(self):
        self.assertEqual(compare.row("x", [10.0] * 25, [8 + i / 5 for i in range(25)])["verdict"], "within noise")

    def test_both_spreads_and_the_change_are_said(self):
        line = compare.row("x", [10.0, 10.0, 11.0, 12.0], [20.0, 20.0, 22.0, 24.0])
        self.assertEqual((line["a"]["middle"], line["b"]["middle"]), ((10.0, 11.0), (20.0, 22.0)))
        self.assertAlmostEqual(line["change"], 100)

    def test_too_few_samples_are_no_verdict(self):
        self.assertEqual(compare.row("x", [1, 2], [1, 2, 3])["verdict"], "too few samples")

    def test_the_control_is_the_last_row(self):
        table = compare.rows(("a", "b"), {"a": flat(10), "b": flat(20)}, {"a": flat(5), "b": flat(5)})
        self.assertTrue(table[-1]["control"])
        self.assertEqual(table[-1]["verdict"], "within noise")
        self.assertEqual(table[0]["verdict"], "higher")

    def test_a_control_that_moved_is_said(self):
        got, said = {"a": flat(10), "b": flat(20)}, []
        compare.shown(("a", "b"), got, compare.rows(("a", "b"), got, {"a": flat(5), "b": flat(9)}), said.append)
        self.assertIn("The control moved", said[-1])


class Attempts(unittest.TestCase):
    def test_alternating_order_and_failures_by_cause(self):
        asked = []

        def work(name):
            asked.append(name)
            if name == "b" and len(asked) in (2, 3):
                raise RuntimeError("did not start\nmore")
            return samples(10)[0]

        got, held = compare.run_attempts(("a", "b"), work, lambda: samples(5)[0], 25, lambda _: None)
        self.assertEqual(asked[:6], ["a", "b", "b", "a", "a", "b"])
        self.assertEqual(compare.failures(got["b"]), {"did not start": 2})
        self.assertEqual({name: len(values) for name, values in held.items()}, {"a": 25, "b": 25})
        said = []
        compare.shown(("a", "b"), got, compare.rows(("a", "b"), got, held), said.append)
        self.assertEqual(said[:2], ["a: 25 of 25", "b: 23 of 25; failed: 2 did not start"])

    def test_an_attempt_with_errors_is_no_sample(self):
        run = {"requests": 10, "bytes": 100, "cpu_us": 1, "errors": {"status": 1, "read": 0}}
        with self.assertRaisesRegex(RuntimeError, "errors under load: status"):
            compare.sample(run, {}, {}, types.SimpleNamespace(requests=[b"x"]))
        with self.assertRaisesRegex(RuntimeError, "no answer"):
            compare.sample(dict(run, requests=0, errors={}), {}, {}, types.SimpleNamespace(requests=[b"x"]))

    def test_calls_bytes_and_the_time_no_stage_claims(self):
        seen = metrics.parse("# HELP x\n"
                             'subzero_dependency_duration_seconds_count{dependency="redis"} 20\n'
                             'subzero_dependency_duration_seconds_count{dependency="issuer:idp"} 10\n'
                             'subzero_dependency_duration_seconds_count{dependency="upstream:x"} 99\n'
                             'subzero_request_duration_seconds_sum{handler="auth"} 0.0001\n'
                             'subzero_request_duration_seconds_sum{handler="authz"} 0.0002\n'
                             'subzero_request_duration_seconds_sum{handler="decide"} 0.0005\n'
                             'subzero_request_duration_seconds_count{handler="decide"} 10\n')
        run = {"requests": 10, "bytes": 1000, "cpu_us": 1, "errors": {}}
        got = compare.sample(run, seen, {"redis_commands": 30}, types.SimpleNamespace(requests=[b"xx", b"xxxx"]))
        self.assertEqual((got["calls_redis"], got["calls_provider"], got["calls_fga"], got["counted_redis_commands"]), (2, 1, 0, 3))
        self.assertEqual((got["wire_in"], got["wire_out"]), (3, 100))
        self.assertAlmostEqual(got["stage_unclaimed"], 20)
        self.assertAlmostEqual(got["stage_total"], 50)


class Refusals(unittest.TestCase):
    def test_different_conditions_are_refused_and_named(self):
        other = copy.deepcopy(KNOWN)
        other["fingerprint"], other["machine"]["kernel"] = "2", "6.2"
        compare.same_conditions({"a": KNOWN, "b": dict(KNOWN)})
        with self.assertRaisesRegex(compare.Refused, "machine.kernel: '6.1' / '6.2'"):
            compare.same_conditions({"a": KNOWN, "b": other})

    def test_kept_results_are_compared_under_equal_conditions_alone(self):
        with tempfile.TemporaryDirectory() as folder:
            paths = []
            for n in (1, 2):
                paths.append(os.path.join(folder, f"p1-{n}.json"))
                with open(paths[-1], "w", encoding="utf-8") as f:
                    json.dump({"conditions": dict(KNOWN, fingerprint=str(n)), "figures": {}}, f)
            with contextlib.redirect_stdout(io.StringIO()) as out:
                self.assertEqual(main.main(["compare", *paths]), 1)
        self.assertIn("refused: ", out.getvalue())

    def test_fewer_than_25_attempts_are_refused(self):
        sides = [types.SimpleNamespace(name=name) for name in "ab"]
        with self.assertRaisesRegex(compare.Refused, "at least 25"):
            compare.run("/", sides, None, "hit", argparse.Namespace(attempts=24), None)
        with self.assertRaisesRegex(compare.Refused, "the same"):
            compare.run("/", sides[:1] * 2, None, "hit", argparse.Namespace(attempts=25), None)

    def test_what_is_neither_a_build_nor_a_commit(self):
        with self.assertRaisesRegex(compare.Refused, "neither"):
            compare.Side(main.ROOT, "no-such-commit", lambda _: None)


class Tree(unittest.TestCase):
    def test_a_build_of_a_dirty_tree_is_known_as_such(self):
        with tempfile.TemporaryDirectory() as root:
            build = os.path.join(root, "build")
            os.makedirs(build)
            for path, text in (("CMakeCache.txt", f"CMAKE_HOME_DIRECTORY:INTERNAL={root}\n"), ("subzero", "x")):
                with open(os.path.join(build, path), "w", encoding="utf-8") as f:
                    f.write(text)
            with open(os.path.join(root, ".gitignore"), "w", encoding="utf-8") as f:
                f.write("/build\n")
            git = ["git", "-C", root, "-c", "user.name=t", "-c", "user.email=t@example.invalid"]
            for more in (["init", "-q"], ["add", "."], ["commit", "-qm", "x"]):
                subprocess.run(git + more, check=True)
            self.assertFalse(compare.Side(main.ROOT, build, None).known["dirty"])
            with open(os.path.join(root, "new.c"), "w", encoding="utf-8") as f:
                f.write("x")
            self.assertTrue(compare.Side(main.ROOT, build, None).known["dirty"])

    def test_a_result_of_a_dirty_side_is_a_candidate(self):
        sides = [types.SimpleNamespace(name=name, build="/x", binary="/x", known={"dirty": name == "b"}) for name in "ab"]
        workload = mock.MagicMock(tokens=1, configuration="", requests=[b"x"])
        with mock.patch.dict(compare.WORKLOADS, {"hit": lambda bench: workload}), \
                mock.patch.object(compare, "attempt", return_value=samples(10)[0]), mock.patch.object(compare.load, "measure", return_value=samples(5)[0]), \
                mock.patch.object(compare.conditions, "conditions", return_value=KNOWN), mock.patch.object(compare.load, "write_requests"):
            result = compare.run("/", sides, mock.MagicMock(), "hit", argparse.Namespace(attempts=25, connections=64, seconds=1), lambda _: None)
        self.assertTrue(result["build"]["dirty"])
        self.assertEqual(result["failures"], 0)

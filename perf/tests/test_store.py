import json
import os
import tempfile
import unittest

from perf.bench import conditions, store


class Store(unittest.TestCase):
    def test_the_newest_result_of_each_benchmark(self):
        with tempfile.TemporaryDirectory() as folder:
            for name, n in (("p1-20260101T000000Z.json", 1), ("p1-20261231T235959Z.json", 2), ("p2-20260101T000000Z.json", 3)):
                with open(os.path.join(folder, name), "w", encoding="utf-8") as f:
                    json.dump({"benchmark": name[:2].upper(), "n": n}, f)
            with open(os.path.join(folder, "notes.txt"), "w", encoding="utf-8") as f:
                f.write("not a result")
            found = store.latest(folder)
        self.assertEqual({k: v["n"] for k, v in found.items()}, {"P1": 2, "P2": 3})

    def test_no_folder_no_results(self):
        self.assertEqual(store.latest("/nonexistent"), {})

    def test_saved_results_are_found_again(self):
        with tempfile.TemporaryDirectory() as folder:
            store.save({"benchmark": "P3", "x": 1}, folder)
            self.assertEqual(store.latest(folder)["P3"]["x"], 1)


class Conditions(unittest.TestCase):
    def test_the_fingerprint_follows_workload_and_configuration(self):
        one = conditions.conditions("/nonexistent", {"c": 64}, "a")
        self.assertEqual(one["fingerprint"], conditions.conditions("/nonexistent", {"c": 64}, "a")["fingerprint"])
        self.assertNotEqual(one["fingerprint"], conditions.conditions("/nonexistent", {"c": 65}, "a")["fingerprint"])
        self.assertNotEqual(one["fingerprint"], conditions.conditions("/nonexistent", {"c": 64}, "b")["fingerprint"])

    def test_an_absent_tool_is_said(self):
        self.assertEqual(conditions.first_line(["/nonexistent/tool"]), "absent")

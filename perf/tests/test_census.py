import os
import socket
import tempfile
import unittest

from perf.bench import census


class Census(unittest.TestCase):
    def test_a_forgotten_socket_is_found(self):
        before = census.descriptors(os.getpid())
        with socket.socket():
            during = census.descriptors(os.getpid())
        self.assertEqual(during["sockets"], before["sockets"] + 1)
        self.assertEqual(census.descriptors(os.getpid()), before)

    def test_files_that_were_put_aside(self):
        with tempfile.TemporaryDirectory() as folder:
            for name in ("h2o.b.abc", "state.tmp", "journal.jsonl"):
                with open(os.path.join(folder, name), "w", encoding="ascii"):
                    pass
            self.assertEqual(census.temporary([folder, "/nonexistent"]), 2)

    def test_more_and_fewer_are_both_a_difference_memory_has_a_bound(self):
        before = {"sockets": 7, "resident_kb": 1000}
        self.assertEqual(census.differing(before, {"sockets": 6, "resident_kb": 1500}, 512), {"sockets": (7, 6)})
        self.assertEqual(census.differing(before, {"sockets": 7, "resident_kb": 1513}, 512), {"resident_kb": (1000, 1513)})

    def test_extremes_are_kept(self):
        self.assertEqual(census.extremes([{"a": 1}, {"a": 5}, {"a": 3}]), {"a": [1, 5]})

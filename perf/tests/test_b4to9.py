import unittest

from perf.bench.cells import b1to3, b4to9


def run(reasons):
    return {"reasons": reasons, "operations": sum(reasons.values())}


class Rows(unittest.TestCase):
    """What counts as the table of docs/rate-limits.md, and what does not."""

    def test_closed(self):
        b4to9.check_dead("b9", "refused", 1, run({"deny fail_closed": 5, "deny circuit_open": 495}))
        b4to9.check_dead("b9", "stopped", 64, run({"deny fail_closed": 68, "deny circuit_open": 432}))
        for c, reasons in ((1, {"deny fail_closed": 6, "deny circuit_open": 494}), (1, {"deny fail_closed": 4, "deny circuit_open": 496}),
                           (8, {"deny fail_closed": 13, "deny circuit_open": 487}), (1, {"deny fail_closed": 5, "allow circuit_open": 495})):
            with self.assertRaises(RuntimeError):
                b4to9.check_dead("b9", "refused", c, run(reasons))

    def test_open(self):
        b4to9.check_dead("b8", "refused", 1, run({"allow redis_connection_error": 1, "deny emergency_local_limit": 499}))
        for reasons in ({"allow redis_timeout": 3, "deny emergency_local_limit": 497}, {"deny emergency_local_limit": 500},
                        {"allow redis_timeout": 1, "deny rate_limited": 499}):
            with self.assertRaises(RuntimeError):
                b4to9.check_dead("b8", "stopped", 1, run(reasons))

    def test_every_bar_has_its_figure(self):
        cells = {name: {"ops_s": 1, "max_us": 1} for name in ("b4", "b5", "b6", "b7", "b8_refused", "b8_stopped", "b9_refused", "b9_stopped")}
        figures = b4to9.figures([{"c": c, "cells": cells} for c in b4to9.AT_ONCE])
        self.assertEqual([bar["figure"] for bar in b4to9.BARS if bar["figure"] not in figures], [])
        sides = {name: dict.fromkeys(("ops_s", "p50_us", "p95_us", "p99_us", "cpu_us", "redis_cpu_us"), 1) for name in b1to3.SIDES}
        figures = b1to3.figures([{"c": c, "sides": sides} for c in b1to3.AT_ONCE])
        self.assertEqual([bar["figure"] for bar in b1to3.BARS if bar["figure"] not in figures], [])


if __name__ == "__main__":
    unittest.main()

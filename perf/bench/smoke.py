"""What CI runs: the cells that say SMOKE, once through and short, held by guards: exact where a figure is a count or a bound,
twenty times as wide as the bar where it is a time.  Nothing is kept: such a run is no measurement.
"""

import argparse
import time

from perf.bench import judge


class Skip(Exception):
    """Raised by a cell that cannot run here, with what is missing."""


def options(given=None):
    """Those of a smoke run, whatever the command line said."""
    short = dict(pairs=1, seconds=1, connections=64, smoke=True, profile=False, users=None, spawn_rate=None)
    return argparse.Namespace(**dict(vars(given) if given else {}, **short))


def verdicts(cell, measured):
    return judge.judged(judge.guards(cell), measured["figures"])


def run_all(cells, measure, say, line):
    """measure(cell) -> measured.  True when no guard was broken; the last line is for script/test."""
    passed, failed, skipped, began = 0, [], 0, time.monotonic()
    for cell in cells:
        start = time.monotonic()
        try:
            bars = verdicts(cell, measure(cell))
            broken = [bar for bar in bars if bar["verdict"] != judge.MET]
        except Skip as why:
            skipped += 1
            say(f"{cell.NAME}  skipped: {why}")
            continue
        except Exception as error:  # one cell that fails must not hide the others
            bars, broken = [], [str(error)]
            say(f"{cell.NAME}  {type(error).__name__}: {error}")
        for bar in bars:
            say("    " + line(bar))
        say(f"{cell.NAME}  {'FAILED' if broken else 'ok'}, {time.monotonic() - start:.1f} s")
        passed, failed = passed + (not broken), failed + ([cell.NAME] if broken else [])
    say(f"smoke took {time.monotonic() - began:.0f} s{'; failed: ' + ', '.join(failed) if failed else ''}")
    say(f"{passed} passed, {len(failed)} failed, {skipped} skipped")
    return not failed

"""Results on disk: one JSON file for each run, named by benchmark and time, never changed afterwards.

What a dirty tree yields is a candidate: kept in a folder of its own that git does not see, and never published.
"""

import json
import os
import re
import time

CANDIDATE = "candidate"
RESULTS = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "results")
NAME = re.compile(r"^(?P<name>[a-z0-9]+)-(?P<time>\d{8}T\d{6}Z)\.json$")


def save(result, folder=RESULTS):
    if result.get("build", {}).get("dirty"):
        folder = os.path.join(folder, CANDIDATE)
    os.makedirs(folder, exist_ok=True)
    stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
    path = os.path.join(folder, f"{result['benchmark'].lower()}-{stamp}.json")
    with open(path, "w", encoding="utf-8") as f:
        json.dump(result, f, indent=1, sort_keys=True)
        f.write("\n")
    return path


def latest(folder=RESULTS):
    """Benchmark to its newest result."""
    newest = {}
    for entry in sorted(os.listdir(folder)) if os.path.isdir(folder) else []:
        match = NAME.match(entry)
        if match:
            newest[match["name"]] = os.path.join(folder, entry)
    out = {}
    for path in newest.values():
        with open(path, encoding="utf-8") as f:
            result = json.load(f)
        out[result["benchmark"]] = dict(result, file=os.path.basename(path))
    return out


def read(path):
    """A result by its path, or by its name in the folder of results."""
    if not os.path.exists(path):
        path = os.path.join(RESULTS, path)
    with open(path, encoding="utf-8") as f:
        return json.load(f)

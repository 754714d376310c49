"""One file for each benchmark: NAME, TITLE, BARS and run(bench, options) -> measured; perf/README.md says it in full.

A file may have CELLS instead, objects of that shape: a family of them.  measured is {"workload", "configuration", "figures", "pairs", "failures"}; figures map a name to a summary.  A file here is
found by itself: there is no list to add it to.
"""

import importlib
import pkgutil
import re


def order(name):
    """P1 before P2 before P11, and those before all that have no number."""
    match = re.fullmatch(r"([A-Z]+?)(\d+)", name)
    numbered = match is not None and match[1] == "P"
    return (not numbered, match[1] if match else name, int(match[2]) if match else 0)


def found():
    modules = [importlib.import_module(f"{__name__}.{entry.name}") for entry in pkgutil.iter_modules(__path__)]
    cells = [cell for module in modules for cell in getattr(module, "CELLS", [module])]
    return sorted((cell for cell in cells if hasattr(cell, "NAME")), key=lambda cell: order(cell.NAME))


ALL = {cell.NAME: cell for cell in found()}

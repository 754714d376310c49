"""One file for each benchmark: NAME, TITLE, BARS and run(bench, options) -> measured.

measured is {"workload", "configuration", "figures", "pairs", "failures"}; figures map a name to a summary.
"""

from perf.bench.cells import audit, burst, fga, flood, l2, limits, opaque, p1, p11, p2, p3, p4, p5, p6, p7, p8, p9

ALL = {cell.NAME: cell for cell in (p1, p2, p3, p4, p5, p6, p7, p8, p9, p11, burst, opaque, flood, audit, l2, limits, fga)}

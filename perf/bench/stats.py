"""Medians, spreads, ratios of pairs, percentiles."""

import math
import statistics

ENOUGH = {95: 30, 99: 1000}  # samples below which a percentile is not said


def summary(values):
    """Median and spread; None for an empty list, so that a figure without a value cannot look like one."""
    values = [value for value in values if value is not None]
    if not values:
        return None
    return {"median": statistics.median(values), "min": min(values), "max": max(values), "n": len(values)}


def ratios(pairs, ours, theirs, key, smaller_is_better):
    """One ratio for each pair, above 1 where ours is better.  Both sides of a pair ran next to each other."""
    out = []
    for pair in pairs:
        a, b = pair[ours][key], pair[theirs][key]
        if a > 0 and b > 0:
            out.append(b / a if smaller_is_better else a / b)
    return out


def order(sides, turn):
    """Who goes first changes with every pair: what runs second finds a warmer or a slower machine."""
    shift = turn % len(sides)
    return sides[shift:] + sides[:shift]


def human(value):
    """A figure for people: three significant digits, no exponent."""
    if value is None:
        return "-"
    if isinstance(value, int) or abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.3g}"


def percentile(values, p):
    """The smallest of the sorted values that at least p % of them do not exceed (nearest rank); None where they are too few."""
    if len(values) < max(1, next((n for least, n in sorted(ENOUGH.items(), reverse=True) if p >= least), 1)):
        return None
    return values[max(0, math.ceil(p / 100 * len(values)) - 1)]


def enough(value, p, n):
    """A percentile that a generator computed from n samples, or None where they are too few for it."""
    return value if n >= next((least for at, least in sorted(ENOUGH.items(), reverse=True) if p >= at), 1) else None


def distribution(values):
    """What is said of latencies: the centre, the percentiles that the samples carry, the maximum and how many there are."""
    values = sorted(values)
    out = {"n": len(values), "p50": percentile(values, 50), "p95": percentile(values, 95), "p99": percentile(values, 99)}
    return dict(out, max=values[-1] if values else None)

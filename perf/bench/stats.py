"""Medians, spreads, ratios of pairs."""

import statistics


def summary(values):
    """Median and spread; None for an empty list, so that a figure without a value cannot look like one."""
    values = list(values)
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

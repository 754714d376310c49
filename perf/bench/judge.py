"""Bars and verdicts.

A bar is {"figure": name, "bar": x, "beyond": y or None, "better": "higher" | "lower"}; the figure's median decides.
"""

BEYOND, MET, MISSED, UNKNOWN = "beyond", "met", "MISSED", "not measured"


def reaches(value, limit, better):
    return value >= limit if better == "higher" else value <= limit


def verdict(bar, figures):
    figure = figures.get(bar["figure"])
    if figure is None:
        return UNKNOWN
    value = figure["median"]
    if bar.get("beyond") is not None and reaches(value, bar["beyond"], bar["better"]):
        return BEYOND
    return MET if reaches(value, bar["bar"], bar["better"]) else MISSED


def judged(bars, figures):
    return [dict(bar, verdict=verdict(bar, figures)) for bar in bars]


def passes(bars):
    return all(bar["verdict"] in (MET, BEYOND) for bar in bars)


# ---- smoke ----

WIDER = 20  # a guard of CI is this much wider than the bar, at least: it finds what broke, not what is slow


def guard(bar):
    """The bar as CI holds it: what is exact as it stands, what is a time or a rate WIDER times as wide."""
    if bar.get("exact"):
        return dict(bar, beyond=None)
    return dict(bar, beyond=None, bar=bar["bar"] / WIDER if bar["better"] == "higher" else bar["bar"] * WIDER)


def guards(cell):
    """GUARDS where a cell has its own, else made of its BARS."""
    return list(getattr(cell, "GUARDS", None) or [guard(bar) for bar in cell.BARS])

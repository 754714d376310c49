"""Bars and verdicts.

A bar is {"figure": name, "bar": x, "beyond": y or None, "better": "higher" | "lower"}; the figure's median decides.
"""

BEYOND, MET, MISSED, UNKNOWN = "beyond", "met", "MISSED", "no figure"


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

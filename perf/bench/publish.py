"""docs/performance.md and its plots, rendered from perf/published.json and the artifacts that it names, and from nothing else.

published.json is edited by hand: which artifact stands for which figure is a decision, so no benchmark writes it.  What is
between `<!-- published: NAME -->` and `<!-- end -->` in the document is rendered; the rest is prose, without figures of its own.
"""

import json
import os
import re
import sys

from perf.bench import judge, stats, store, svg
from perf.bench.cells import ALL

BLOCK = re.compile(r"(<!-- published: (?P<name>[a-z0-9-]+) -->\n).*?(<!-- end -->\n)", re.S)
WEAKER = "*weaker evidence*"


class Fault(Exception):
    """What is published cannot be shown: where and why."""


class Published:
    def __init__(self, root):
        self.root = root
        self.results = os.path.join(root, "perf", "results")
        with open(os.path.join(root, "perf", "published.json"), encoding="utf-8") as f:
            self.said = json.load(f)
        self.read = {}

    def artifact(self, name):
        if name not in self.read:
            try:
                with open(os.path.join(self.results, name), encoding="utf-8") as f:
                    self.read[name] = json.load(f)
            except FileNotFoundError as error:
                raise Fault(f"published.json names perf/results/{name}, which is not there") from error
            if self.read[name]["build"]["dirty"]:
                raise Fault(f"perf/results/{name} was taken from a dirty tree: a candidate, never published")
        return self.read[name]

    def figure(self, name, key):
        figure = self.artifact(name)["figures"].get(key)
        if figure is None:
            raise Fault(f"perf/results/{name} has no figure {key}")
        return figure

    def fill(self, text, name):
        """{key} is the figure's median, {key:spread} with minimum and maximum, {key:n} how many samples."""
        def value(match):
            key, _, how = match[1].partition(":")
            figure = self.figure(name, key)
            return {"": stats.human(figure["median"]), "spread": spread(figure), "n": str(figure["n"])}[how]
        return re.sub(r"\{([a-z0-9_]+(?::[a-z]+)?)\}", value, text)


def spread(figure):
    if figure["n"] == 1:
        return f"{stats.human(figure['median'])}"
    return f"{stats.human(figure['median'])} ({stats.human(figure['min'])} to {stats.human(figure['max'])}, n {figure['n']})"


def wanted(bar):
    sign = "≥" if bar["better"] == "higher" else "≤"
    beyond = f"; beyond {sign} {stats.human(bar['beyond'])}" if bar.get("beyond") is not None else ""
    return f"{sign} {stats.human(bar['bar'])}{beyond}"


def margin(bar, median):
    """Above 1: better than the bar, by that factor.  A bound of nothing is met or missed by everything."""
    good, bad = (median, bar["bar"]) if bar["better"] == "higher" else (bar["bar"], median)
    if bad == 0:
        return float("inf")
    return good / bad


def judged(published):
    """(entry, bar, figure) of every bar that a published artifact has a figure for."""
    out = []
    for entry in published.said["figures"]:
        if entry["cell"] not in ALL:
            raise Fault(f"published.json: there is no cell {entry['cell']}")
        for bar in ALL[entry["cell"]].BARS if "artifact" in entry else []:
            if published.artifact(entry["artifact"])["figures"].get(bar["figure"]) is not None:
                out.append((entry, bar, published.figure(entry["artifact"], bar["figure"])))
    return out


# ---- blocks ----

def link(name):
    return f"[{name.rsplit('-', 1)[0]}](../perf/results/{name})"


def worst(published):
    rows = [row for row in judged(published) if row[1]["bar"] != 0]
    if not rows:
        return [f"Nothing is published with an artifact: all below is {WEAKER}."]
    entry, bar, figure = min(rows, key=lambda row: margin(row[1], row[2]["median"]))
    verdict = judge.verdict(bar, {bar["figure"]: figure})
    missed = [row for row in judged(published) if judge.verdict(row[1], {row[1]["figure"]: row[2]}) == judge.MISSED]
    names = ", ".join(dict.fromkeys(row[0]["cell"] for row in missed))
    return [f"**The worst figure: {entry['cell']}, {bar['what']}: {spread(figure)}, bar {wanted(bar)}, {verdict.lower()}** "
            f"({link(entry['artifact'])}). Bars missed: {len(missed)} of {len(judged(published))}{f' ({names})' if missed else ''}."]


def figures(published):
    out = ["| | What | Figure | Bar | Verdict | Artifact |", "|---|---|---|---|---|---|"]
    rows = {id(row[1]): row for row in judged(published)}
    for entry in published.said["figures"]:
        if "artifact" not in entry:
            out.append(f"| {entry['cell']} | {entry['what']} | {entry['figure']} | | {WEAKER} | {entry['weaker']} |")
            continue
        for bar in ALL[entry["cell"]].BARS:
            if id(bar) in rows and rows[id(bar)][0] is entry:
                figure = rows[id(bar)][2]
                verdict = judge.verdict(bar, {bar["figure"]: figure})
                shown = f"**{verdict.lower()}**" if verdict == judge.MISSED else verdict
                out.append(f"| {entry['cell']} | {bar['what']} | {spread(figure)} | {wanted(bar)} | {shown} | {link(entry['artifact'])} |")
        for more in entry.get("beside", []):
            out.append(f"| {entry['cell']} | {more['what']} | {spread(published.figure(entry['artifact'], more['figure']))} | | | {link(entry['artifact'])} |")
    return out


def leaves_out(published):
    return [f"* **{entry['cell']}**: {entry['leaves_out']}" for entry in published.said["figures"] if entry.get("leaves_out")]


def table(published, said):
    out = []
    if said.get("intro"):
        out += [published.fill(said["intro"], said["artifact"]), ""]
    out += ["| " + " | ".join(said["columns"]) + " |", "|" + "---|" * len(said["columns"])]
    out += ["| " + " | ".join(published.fill(cell, said["artifact"]) for cell in row) + " |" for row in said["rows"]]
    out += ["", f"Artifact: {link(said['artifact'])}."]
    if said.get("note"):
        out += ["", published.fill(said["note"], said["artifact"])]
    return out


def not_measured(published):
    """Bars that nothing published has a figure for, by cell, and what published.json adds by hand."""
    shown = {(row[0]["cell"], row[1]["figure"]) for row in judged(published)}
    out = []
    for name, cell in ALL.items():
        absent = [bar["what"] for bar in cell.BARS if (name, bar["figure"]) not in shown]
        if absent:
            what = "; ".join(absent) if len(absent) < len(cell.BARS) or len(absent) < 3 else cell.TITLE
            out.append(f"* **{name}**: {what}.")
    return out + [f"* {text}" for text in published.said["not_measured"]]


def rejected(published):
    out = ["| What was tried | What it did | Evidence |", "|---|---|---|"]
    for entry in published.said["rejected"]:
        evidence = link(entry["artifact"]) if "artifact" in entry else WEAKER + (f": {entry['weaker']}" if entry.get("weaker") else "")
        figure = published.fill(entry["figure"], entry["artifact"]) if "artifact" in entry else entry["figure"]
        out.append(f"| {entry['what']} | {figure} | {evidence} |")
    return out


def plots(published):
    out = []
    for plot in published.said["plots"]:
        out += [f"![{plot['title']}](img/{plot['file']})", "", f"{plot['caption']} Artifacts: {', '.join(map(link, sources(plot)))}.", ""]
    return out[:-1]


def sources(plot):
    return list(dict.fromkeys(item["artifact"] for item in plot.get("items", []) + plot.get("series", [])))


def drawn(published, plot):
    if "items" in plot:
        rows = [(item["label"], published.figure(item["artifact"], item["figure"])) for item in plot["items"]]
        return svg.bars(plot["title"], plot["y"], [(label, f["median"], f["min"], f["max"]) for label, f in rows], plot.get("log", False))
    series = []
    for item in plot["series"]:
        points = published.artifact(item["artifact"]).get("series", {}).get(item["key"])
        if not points:
            raise Fault(f"perf/results/{item['artifact']} has no series {item['key']}")
        series.append((item["label"], [tuple(point) for point in points]))
    return svg.lines(plot["title"], plot["x"], plot["y"], series, plot.get("log", False))


# ---- the whole ----

def rendered(root):
    """{path: text} of everything that is generated."""
    published = Published(root)
    blocks = {"worst": worst, "figures": figures, "leaves-out": leaves_out, "not-measured": not_measured, "rejected": rejected, "plots": plots}
    tables = {said["name"]: said for said in published.said["tables"]}
    used = set()

    def fill(match):
        name = match["name"]
        used.add(name)
        if name in blocks:
            lines = blocks[name](published)
        elif name in tables:
            lines = table(published, tables[name])
        else:
            raise Fault(f"docs/performance.md has a block '{name}' that published.json does not know")
        return match[1] + "\n".join(lines) + "\n" + match[3]

    path = os.path.join(root, "docs", "performance.md")
    with open(path, encoding="utf-8") as f:
        text = BLOCK.sub(fill, f.read())
    for name in [*blocks, *tables]:
        if name not in used:
            raise Fault(f"docs/performance.md has no block '{name}'")
    out = {path: text}
    for plot in published.said["plots"]:
        out[os.path.join(root, "docs", "img", plot["file"])] = drawn(published, plot)
    return out


def stale(root):
    """Paths of what is not as it would be rendered, stray plots among them."""
    wanted_files = rendered(root)
    out = [path for path, text in wanted_files.items() if not same(path, text)]
    folder = os.path.join(root, "docs", "img")
    strays = [os.path.join(folder, name) for name in (os.listdir(folder) if os.path.isdir(folder) else []) if name.startswith("perf-")]
    return out + [path for path in strays if path not in wanted_files]


def same(path, text):
    try:
        with open(path, encoding="utf-8") as f:
            return f.read() == text
    except FileNotFoundError:
        return False


def write(root, say):
    for path, text in rendered(root).items():
        if not same(path, text):
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "w", encoding="utf-8") as f:
                f.write(text)
            say(f"wrote {os.path.relpath(path, root)}")


def newer(root):
    """Lines that say which published artifacts have a later result beside them: what to edit, by hand."""
    published = Published(root)
    text = json.dumps(published.said)
    out = []
    for name in sorted(set(re.findall(r"[a-z0-9]+-\d{8}T\d{6}Z\.json", text))):
        cell = name.rsplit("-", 1)[0]
        later = [entry for entry in sorted(os.listdir(published.results)) if entry.rsplit("-", 1)[0] == cell and entry > name]
        if later:
            out.append(f"{name} -> {later[-1]}")
    return out


def left_out(cell):
    """What the cell's own description says after "Left out:"."""
    text = " ".join((cell.__doc__ or "").split()) or " ".join((sys.modules[type(cell).__module__].__doc__ or "").split())
    found = re.search(r"Left out: (.+?)\.(?:$| [A-Z`])", text)
    return found[1][0].upper() + found[1][1:] + "." if found else "say what"


def suggested(root):
    """Entries for cells that have a result and are not published, to be copied by hand and judged first."""
    published = Published(root)
    there = {entry["cell"] for entry in published.said["figures"]}
    return [json.dumps({"cell": name, "artifact": result["file"], "leaves_out": left_out(ALL[name])}, ensure_ascii=False)
            for name, result in store.latest(published.results).items() if name in ALL and name not in there]

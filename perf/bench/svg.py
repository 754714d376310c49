"""Plots as SVG, by hand: bars with their spread, and lines.  The same data give the same bytes, so that CI can compare."""

import html
import math

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 760, 360, 70, 150, 40, 50
COLOURS = ("#2f6db5", "#c8553d", "#3c8d5a", "#8a5fb0", "#b98a1e", "#4d4d4d")


def number(value):
    """A label: three significant digits, thousands as k and M."""
    for limit, sign in ((1e6, "M"), (1e3, "k")):
        if abs(value) >= limit:
            return f"{value / limit:.3g}{sign}"
    return f"{value:.3g}"


def ticks(low, high, logarithmic):
    if logarithmic:
        return [10.0 ** e for e in range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)]
    span = (high - low) or 1
    step = 10 ** math.floor(math.log10(span / 4))
    step = next(step * m for m in (1, 2, 5, 10) if span / (step * m) <= 6)
    first = math.floor(low / step)
    return [round((first + i) * step, 10) for i in range(math.ceil(high / step) - first + 1)]


class Plot:
    def __init__(self, title, y_label, values, logarithmic=False):
        positive = [value for value in values if value is not None and (value > 0 or not logarithmic)]
        if not positive:
            raise ValueError(f"nothing to plot: {title}")
        self.log = logarithmic
        self.ticks = ticks(min(positive) if logarithmic else min(0, *positive, 0), max(positive), logarithmic)
        self.out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" font-size="12">',
                    f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>']
        self.text(LEFT, 22, title, size=14, weight="bold")
        self.text(14, (TOP + HEIGHT - BOTTOM) / 2, y_label, anchor="middle", rotate=True)
        for tick in self.ticks:
            y = self.y(tick)
            self.out.append(f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}" stroke="#dddddd"/>')
            self.text(LEFT - 6, y + 4, number(tick), anchor="end")

    def y(self, value):
        low, high = self.ticks[0], self.ticks[-1]
        if self.log:
            part = (math.log10(max(value, low)) - math.log10(low)) / ((math.log10(high) - math.log10(low)) or 1)
        else:
            part = (value - low) / ((high - low) or 1)
        return HEIGHT - BOTTOM - part * (HEIGHT - BOTTOM - TOP)

    def text(self, x, y, text, size=12, anchor="start", weight="normal", rotate=False, colour="#222222"):
        turn = f' transform="rotate(-90 {x:.1f} {y:.1f})"' if rotate else ""
        self.out.append(f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" text-anchor="{anchor}" font-weight="{weight}" '
                        f'fill="{colour}"{turn}>{html.escape(str(text))}</text>')

    def done(self):
        return "\n".join([*self.out, "</svg>", ""])


def bars(title, y_label, items, logarithmic=False):
    """items: (label, median, min, max)."""
    plot = Plot(title, y_label, [value for item in items for value in item[1:]], logarithmic)
    slot = (WIDTH - LEFT - RIGHT) / len(items)
    floor = HEIGHT - BOTTOM
    for i, (label, median, low, high) in enumerate(items):
        x, width, y = LEFT + slot * (i + 0.2), slot * 0.6, plot.y(median)
        plot.out.append(f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{floor - y:.1f}" fill="{COLOURS[0]}"/>')
        middle = x + width / 2
        plot.out.append(f'<line x1="{middle:.1f}" x2="{middle:.1f}" y1="{plot.y(low):.1f}" y2="{plot.y(high):.1f}" stroke="#222222"/>')
        plot.text(middle + 4, y - 4, number(median))
        plot.text(middle, floor + 18, label, anchor="middle", size=11)
    return plot.done()


def lines(title, x_label, y_label, series, logarithmic=False):
    """series: (label, [(x, y)]); x may be names, which then stand at equal distances in the order of the first series."""
    plot = Plot(title, y_label, [y for _, points in series for _, y in points], logarithmic)
    names = None
    if any(isinstance(x, str) for _, points in series for x, _ in points):
        names = list(dict.fromkeys(x for _, points in series for x, _ in points))
    xs = [names.index(x) if names else x for _, points in series for x, _ in points]
    low, high = min(xs), max(xs)

    def at(x):
        place = names.index(x) if names else x
        return LEFT + (place - low) / ((high - low) or 1) * (WIDTH - LEFT - RIGHT)

    for x in names or ticks(low, high, False):
        if names or low <= x <= high:
            plot.text(at(x), HEIGHT - BOTTOM + 18, x if names else number(x), anchor="middle", size=11)
    plot.text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 10, x_label, anchor="middle")
    for i, (label, points) in enumerate(series):
        colour = COLOURS[i % len(COLOURS)]
        path = " ".join(f"{at(x):.1f},{plot.y(y):.1f}" for x, y in points)
        plot.out.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
        plot.text(WIDTH - RIGHT + 10, TOP + 16 * (i + 1), label, colour=colour)
    return plot.done()

# SPDX-License-Identifier: Apache-2.0
"""The figure: time against size for each collective, and a map of the ratios, as plain SVG."""
import math
from xml.sax.saxutils import escape

from harness import report, settings
from harness.cells import size_text

WIDTH, MARGIN = 1240, 36
COLUMNS, PANEL_HEIGHT, GAP = 3, 290, 34
INK, FAINT, GRID = "#1f2430", "#5c6470", "#e4e7ec"

# Colour, dashes and marker: any one of the three is enough to tell the lines apart.
STYLES = {"tutti": ("#c2185b", "", "circle"), "window": ("#c2185b", "6 4", "hollow"),
          "openmpi": ("#1768ac", "", "square"), "mpich": ("#d97706", "", "triangle"),
          "gloo": ("#2e7d32", "", "diamond"), "bare": ("#8a919c", "2 3", "none")}


class Canvas:
    def __init__(self):
        self.parts = []

    def add(self, text):
        self.parts.append(text)

    def text(self, x, y, words, size=12, colour=INK, anchor="start", weight="normal"):
        self.add(f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" fill="{colour}" '
                 f'text-anchor="{anchor}" font-weight="{weight}">{escape(words)}</text>')

    def line(self, x1, y1, x2, y2, colour=GRID, width=1):
        self.add(f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" '
                 f'stroke="{colour}" stroke-width="{width}"/>')

    def rectangle(self, x, y, width, height, fill, radius=0):
        self.add(f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" '
                 f'rx="{radius}" fill="{fill}"/>')

    def curve(self, points, library):
        colour, dashes, _ = STYLES[library]
        width = 2.6 if library in settings.OURS else 1.7
        dash = f' stroke-dasharray="{dashes}"' if dashes else ""
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        self.add(f'<polyline points="{path}" fill="none" stroke="{colour}" '
                 f'stroke-width="{width}" stroke-linejoin="round"{dash}/>')
        for x, y in points:
            self.marker(x, y, library)

    def marker(self, x, y, library):
        colour, _, shape = STYLES[library]
        if shape == "none":
            return
        if shape in ("circle", "hollow"):
            fill = colour if shape == "circle" else "#ffffff"
            self.add(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.4" fill="{fill}" '
                     f'stroke="{colour}" stroke-width="1.4"/>')
            return
        corners = {"square": ((-3, -3), (3, -3), (3, 3), (-3, 3)),
                   "triangle": ((0, -4), (3.8, 3), (-3.8, 3)),
                   "diamond": ((0, -4.4), (4, 0), (0, 4.4), (-4, 0))}[shape]
        path = " ".join(f"{x + dx:.1f},{y + dy:.1f}" for dx, dy in corners)
        self.add(f'<polygon points="{path}" fill="{colour}"/>')


def time_text(microseconds):
    for unit, scale in (("s", 1e6), ("ms", 1e3), ("µs", 1), ("ns", 1e-3)):
        if microseconds >= scale * 0.999 or unit == "ns":
            return f"{microseconds / scale:.3g} {unit}"
    return ""


def short_size(size):
    return size_text(size).replace("iB", "").replace(" B", "").replace(" ", "")


class Axes:
    """A panel with both scales logarithmic."""

    def __init__(self, left, top, width, sizes, times):
        self.left, self.top = left + 52, top + 30
        self.width, self.height = width - 52, PANEL_HEIGHT - 30 - 34
        self.sizes = sizes
        self.low = math.log2(min(sizes))
        self.high = max(math.log2(max(sizes)), self.low + 1)
        # A little room above and below, and whole panels of at least one decade.
        self.bottom_log = math.log10(min(times)) - 0.12
        self.top_log = max(math.log10(max(times)) + 0.12, self.bottom_log + 1)

    def x(self, size):
        return self.left + self.width * (math.log2(size) - self.low) / (self.high - self.low)

    def y(self, microseconds):
        share = (math.log10(microseconds) - self.bottom_log) / (self.top_log - self.bottom_log)
        return self.top + self.height * (1 - share)

    def draw(self, canvas):
        for decade in range(math.ceil(self.bottom_log), math.floor(self.top_log) + 1):
            y = self.y(10.0 ** decade)
            canvas.line(self.left, y, self.left + self.width, y)
            canvas.text(self.left - 7, y + 4, time_text(10.0 ** decade), 11, FAINT, "end")
        last = -math.inf
        for size in self.sizes:
            x = self.x(size)
            canvas.line(x, self.top, x, self.top + self.height)
            if x - last >= 30:
                canvas.text(x, self.top + self.height + 16, short_size(size), 11, FAINT, "middle")
                last = x
        canvas.line(self.left, self.top + self.height, self.left + self.width,
                    self.top + self.height, FAINT)


def curves_panel(canvas, results, transport, collective, left, top, width):
    cells = report.cells_of(results, transport, collective)
    series = {}
    for library in report.libraries_of(results, transport):
        points = [(cell["bytes"], best[1]) for cell in cells
                  if (best := report.best_of(cell, library)) is not None]
        if points:
            series[library] = points
    canvas.text(left, top + 14, collective, 14, weight="bold")
    if not series:
        canvas.text(left, top + 40, "nothing measured", 12, FAINT)
        return
    axes = Axes(left, top, width, [cell["bytes"] for cell in cells],
                [time for points in series.values() for _, time in points])
    axes.draw(canvas)
    # Ours last, on top of the others.
    for library in sorted(series, key=lambda name: name in settings.OURS):
        canvas.curve([(axes.x(size), axes.y(time)) for size, time in series[library]], library)


def barrier_strip(canvas, results, transport, left, top, width):
    """A barrier has no size: one bar per library. Returns the strip's height."""
    cell = report.cells_of(results, transport, "barrier")[0]
    bars = [(library, best[1]) for library in report.libraries_of(results, transport)
            if library != "window" and (best := report.best_of(cell, library)) is not None]
    canvas.text(left, top + 14, "barrier", 14, weight="bold")
    longest = max((time for _, time in bars), default=1)
    for i, (library, time) in enumerate(bars):
        y = top + 28 + i * 24
        length = max(2.0, (width - 180) * time / longest)
        canvas.text(left, y + 13, settings.LIBRARIES[library], 12)
        canvas.rectangle(left + 90, y + 2, length, 15, STYLES[library][0], 2)
        canvas.text(left + 98 + length, y + 13, f"{report.number(time)} µs", 12, FAINT)
    return 28 + len(bars) * 24 + 26


def ratio_colour(ratio):
    """Green where we are faster, red where slower; full colour at twice or half."""
    strength = min(abs(math.log2(max(ratio, 1e-6))), 1.0)
    full = (46, 158, 91) if ratio <= 1 else (222, 92, 76)
    mixed = (round(255 + (part - 255) * (0.12 + 0.7 * strength)) for part in full)
    return "#" + "".join(f"{part:02x}" for part in mixed)


def ratio_map(canvas, results, transport, library, left, top, width):
    """A table of our time over the best peer's. Returns its height."""
    rows = [name for name in report.collectives(results, transport)]
    sizes = sorted({cell["bytes"] for cell in results["cells"]
                    if cell["transport"] == transport and cell["collective"] != "barrier"}) or [0]
    label, row_height = 120, 30
    column = (width - label) / len(sizes)
    canvas.text(left, top + 14, f"{settings.LIBRARIES[library]}"
                f"{' (ordinary memory)' if library == 'tutti' else ''}: time / best peer's", 14,
                weight="bold")
    for i, size in enumerate(sizes):
        canvas.text(left + label + column * (i + 0.5), top + 38, short_size(size) if size else "",
                    11, FAINT, "middle")
    for k, collective in enumerate(rows):
        y = top + 46 + k * row_height
        canvas.text(left, y + 19, collective, 12)
        for cell in report.cells_of(results, transport, collective):
            ratio = cell["ratios"].get(library)
            if ratio is None:
                continue
            i = sizes.index(cell["bytes"]) if collective != "barrier" else 0
            canvas.rectangle(left + label + column * i + 1, y + 1, column - 2, row_height - 2,
                             ratio_colour(ratio), 3)
            canvas.text(left + label + column * (i + 0.5), y + 19, f"{ratio:.2f}", 12, INK,
                        "middle")
    return 46 + len(rows) * row_height


def legend(canvas, results, transport, top):
    x = MARGIN
    for library in report.libraries_of(results, transport):
        canvas.curve([(x, top), (x + 34, top)], library)
        name = settings.LIBRARIES[library]
        name += ", best setting" if library in settings.PEERS else ""
        canvas.text(x + 42, top + 4, name, 12)
        x += 42 + 7.0 * len(name) + 30


def section(canvas, results, transport, top):
    """All of one transport. Returns where it ends."""
    titles = {"shm": "One host, shared memory", "tcp": "TCP over the loopback"}
    canvas.text(MARGIN, top + 20, titles[transport], 18, weight="bold")
    canvas.text(MARGIN, top + 40, "time of one operation against size in bytes, "
                "back to back; lower is better", 12, FAINT)
    legend(canvas, results, transport, top + 62)
    top += 90
    panel = (WIDTH - 2 * MARGIN - (COLUMNS - 1) * GAP) / COLUMNS
    names = report.collectives(results, transport)
    curves = [name for name in names if name != "barrier"]
    for i, collective in enumerate(curves):
        curves_panel(canvas, results, transport, collective,
                     MARGIN + (i % COLUMNS) * (panel + GAP),
                     top + (i // COLUMNS) * (PANEL_HEIGHT + 14), panel)
    top += math.ceil(len(curves) / COLUMNS) * (PANEL_HEIGHT + 14)
    if "barrier" in names:
        top += barrier_strip(canvas, results, transport, MARGIN, top, 2 * panel + GAP)
    ours = [library for library in settings.OURS
            if any(library in cell["ratios"] for cell in results["cells"]
                   if cell["transport"] == transport)]
    half = (WIDTH - 2 * MARGIN - GAP) / 2
    heights = [ratio_map(canvas, results, transport, library, MARGIN + i * (half + GAP), top, half)
               for i, library in enumerate(ours)]
    return top + max(heights, default=0) + 50


def draw(results):
    canvas = Canvas()
    names = {"shm": "shared memory", "tcp": "TCP"}
    transports = report.transports(results)
    canvas.text(MARGIN, 40, f"Tutti and its peers, {results['options']['ranks']} ranks", 22,
                weight="bold")
    y = 64
    for line in report.heading(results):
        canvas.text(MARGIN, y, line, 12, FAINT)
        y += 17
    y += 18
    for transport in transports:
        y = section(canvas, results, transport, y)
    about = "Tutti and its peers over " + " and ".join(names[name] for name in transports)
    head = (f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{y:.0f}" '
            f'viewBox="0 0 {WIDTH} {y:.0f}" role="img" aria-label="{about}" '
            'font-family="Helvetica, Arial, DejaVu Sans, sans-serif">'
            f'<rect width="{WIDTH}" height="{y:.0f}" fill="#ffffff"/>')
    return "\n".join([head, *canvas.parts, "</svg>\n"])

# SPDX-License-Identifier: Apache-2.0
"""Draws plain SVG: lines, texts, and axes with two logarithmic scales."""
import math
from xml.sax.saxutils import escape

from harness import settings
from harness.parts import size_text

WIDTH, MARGIN = 1240, 36
INK, FAINT, GRID = "#1f2430", "#5c6470", "#e4e7ec"

# Color, dashes and marker: any one of the three is enough to tell the lines apart.
STYLES = {"tutti": ("#c2185b", "", "circle"), "window": ("#c2185b", "6 4", "hollow"),
          "openmpi": ("#1768ac", "", "square"), "mpich": ("#d97706", "", "triangle"),
          "gloo": ("#2e7d32", "", "diamond"), "bare": ("#8a919c", "2 3", "none"),
          "limit": ("#1f2430", "", "none"), "moved": ("#1f2430", "2 3", "none"),
          "bfloat16": ("#1768ac", "", "square"), "bfloat16-window": ("#1768ac", "6 4", "square"),
          "float16": ("#d97706", "", "triangle"), "float16-window": ("#d97706", "6 4", "triangle")}


class Canvas:
    def __init__(self):
        self.parts = []

    def add(self, text):
        self.parts.append(text)

    def text(self, x, y, words, size=12, color=INK, anchor="start", weight="normal"):
        self.add(f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" fill="{color}" '
                 f'text-anchor="{anchor}" font-weight="{weight}">{escape(words)}</text>')

    def line(self, x1, y1, x2, y2, color=GRID, width=1):
        self.add(f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" '
                 f'stroke="{color}" stroke-width="{width}"/>')

    def rectangle(self, x, y, width, height, fill, radius=0):
        self.add(f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" '
                 f'rx="{radius}" fill="{fill}"/>')

    def curve(self, points, library):
        color, dashes, _ = STYLES[library]
        width = 2.6 if library in settings.OURS else 1.7
        dash = f' stroke-dasharray="{dashes}"' if dashes else ""
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        self.add(f'<polyline points="{path}" fill="none" stroke="{color}" '
                 f'stroke-width="{width}" stroke-linejoin="round"{dash}/>')
        for x, y in points:
            self.marker(x, y, library)

    def marker(self, x, y, library):
        color, _, shape = STYLES[library]
        if shape == "none":
            return
        if shape in ("circle", "hollow"):
            fill = color if shape == "circle" else "#ffffff"
            self.add(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.4" fill="{fill}" '
                     f'stroke="{color}" stroke-width="1.4"/>')
            return
        corners = {"square": ((-3, -3), (3, -3), (3, 3), (-3, 3)),
                   "triangle": ((0, -4), (3.8, 3), (-3.8, 3)),
                   "diamond": ((0, -4.4), (4, 0), (0, 4.4), (-4, 0))}[shape]
        path = " ".join(f"{x + dx:.1f},{y + dy:.1f}" for dx, dy in corners)
        self.add(f'<polygon points="{path}" fill="{color}"/>')


def time_text(microseconds):
    for unit, scale in (("s", 1e6), ("ms", 1e3), ("µs", 1), ("ns", 1e-3)):
        if microseconds >= scale * 0.999 or unit == "ns":
            return f"{microseconds / scale:.3g} {unit}"
    return ""


def short_size(size):
    return size_text(size).replace("iB", "").replace(" B", "").replace(" ", "")


class Axes:
    """A panel of time against size."""

    def __init__(self, left, top, width, height, sizes, times):
        self.left, self.top = left + 52, top + 30
        self.width, self.height = width - 52, height - 30 - 34
        self.sizes = sizes
        self.low = math.log2(min(sizes))
        self.high = max(math.log2(max(sizes)), self.low + 1)
        # Leave a little room above and below, and show at least one decade.
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


def document(canvas, height, about, width=WIDTH):
    """The text of the whole file. The picture is `height` pixels high, and `about` describes it."""
    head = (f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height:.0f}" '
            f'viewBox="0 0 {width} {height:.0f}" role="img" aria-label="{escape(about)}" '
            'font-family="Helvetica, Arial, DejaVu Sans, sans-serif">'
            f'<rect width="{width}" height="{height:.0f}" fill="#ffffff"/>')
    return "\n".join([head, *canvas.parts, "</svg>\n"])

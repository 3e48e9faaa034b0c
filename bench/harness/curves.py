# SPDX-License-Identifier: Apache-2.0
"""Draws the figure of a part: time against size for each collective, with all libraries and the
limit."""
import math

from harness import figures, report, settings
from harness.parts import describe
from harness.plot import (FAINT, INK, MARGIN, STYLES, WIDTH, Axes, Canvas, document)

COLUMNS, PANEL_HEIGHT, GAP = 3, 290, 34


def name_of(results, library):
    if results["transport"] == "types" and library in ("tutti", "window"):
        return "float32" if library == "tutti" else "float32, tuttiMemAlloc"
    return settings.LIBRARIES[library] + (", best setting" if library in settings.PEERS else "")


def time_of(results, cell, library):
    if library == "limit":
        return figures.limit(results, cell)
    best = figures.best_of(cell, (library,), figures.judged(results))
    return best and best[1]


def series_of(results, collective):
    """{library: [(size, time)]}. The limit is first, so that it is drawn below all others, and
    Tutti is last."""
    libraries = sorted(figures.libraries_of(results),
                       key=lambda name: (name != "limit", name in settings.OURS))
    series = {library: [(cell["bytes"], time) for cell in figures.cells_of(results, collective)
                        if (time := time_of(results, cell, library)) is not None]
              for library in libraries}
    return {library: points for library, points in series.items() if points}


def shade(canvas, axes, points):
    """Shade the area below the limit, which no library can reach."""
    path = " ".join(f"{axes.x(size):.1f},{axes.y(time):.1f}" for size, time in points)
    floor = axes.top + axes.height
    canvas.add(f'<polygon points="{axes.x(points[0][0]):.1f},{floor:.1f} {path} '
               f'{axes.x(points[-1][0]):.1f},{floor:.1f}" fill="#eceef2"/>')


def panel(canvas, results, collective, left, top, width):
    series = series_of(results, collective)
    canvas.text(left, top + 14, collective, 14, weight="bold")
    if not series:
        canvas.text(left, top + 40, "nothing measured", 12, FAINT)
        return
    axes = Axes(left, top, width, PANEL_HEIGHT,
                sorted({size for points in series.values() for size, _ in points}),
                [time for points in series.values() for _, time in points])
    if len(series.get("limit", ())) > 1:
        shade(canvas, axes, series["limit"])
    axes.draw(canvas)
    for library, points in series.items():
        canvas.curve([(axes.x(size), axes.y(time)) for size, time in points], library)


def barrier_bars(canvas, results, left, top, width):
    """Draw one bar for each library, because a barrier has no size."""
    cell = figures.cells_of(results, "barrier")[0]
    bars = [(library, time) for library in figures.libraries_of(results)
            if library != "window" and (time := time_of(results, cell, library)) is not None]
    canvas.text(left, top + 14, "barrier", 14, weight="bold")
    longest = max((time for _, time in bars), default=1)
    step = min(34.0, (PANEL_HEIGHT - 60) / max(len(bars), 1))
    for i, (library, time) in enumerate(bars):
        y = top + 36 + i * step
        length = max(2.0, (width - 170) * time / longest)
        canvas.text(left, y + 13, settings.LIBRARIES[library], 12)
        canvas.rectangle(left + 80, y + 2, length, 15, STYLES[library][0], 2)
        canvas.text(left + 88 + length, y + 13, f"{report.number(time)} µs", 12, FAINT)


def legend(canvas, results, top):
    x = MARGIN
    for library in figures.libraries_of(results):
        canvas.curve([(x, top), (x + 34, top)], library)
        name = name_of(results, library)
        canvas.text(x + 42, top + 4, name, 12)
        x += 42 + 6.6 * len(name) + 26


def draw(results):
    canvas = Canvas()
    title = describe(results["transport"], results["ranks"])
    canvas.text(MARGIN, 40, title, 22, weight="bold")
    y = 64
    timing = report.TIMING_WORDS[figures.judged(results)]
    about = f"time of one operation against size in bytes, {timing}; lower is better"
    if "limit" in figures.libraries_of(results):
        about += "; gray: faster than the bytes can be moved" if results["transport"] == "shm" \
            else "; gray: faster than plain sockets"
    for line in report.heading(results) + [about]:
        canvas.text(MARGIN, y, line, 12, INK if line == about else FAINT)
        y += 17
    legend(canvas, results, y + 12)
    y += 40
    width = (WIDTH - 2 * MARGIN - (COLUMNS - 1) * GAP) / COLUMNS
    # The bars of the barrier take one place among the panels.
    names = figures.collectives_of(results)
    for i, collective in enumerate(names):
        left = MARGIN + (i % COLUMNS) * (width + GAP)
        top = y + (i // COLUMNS) * (PANEL_HEIGHT + 14)
        if collective == "barrier":
            barrier_bars(canvas, results, left, top, width)
        else:
            panel(canvas, results, collective, left, top, width)
    y += math.ceil(len(names) / COLUMNS) * (PANEL_HEIGHT + 14)
    return document(canvas, y + 10, "Time against size, " + title)

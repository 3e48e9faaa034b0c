# SPDX-License-Identifier: Apache-2.0
"""Draws the map of a part, with a row for each collective and a column for each size. A square has
Tutti's time divided by the best peer's and by the limit, and says whether the cell meets its
targets."""
import math

from harness import figures, report, settings, targets
from harness.parts import describe
from harness.plot import FAINT, INK, MARGIN, WIDTH, Canvas, document, short_size

LABEL, ROW, GAP = 112, 44, 34
MET, MISSED = "#1b7a43", "#b3261e"


def color(ratio):
    """Green if Tutti is faster, red if it is slower. The color is full at a ratio of two or a
    half."""
    strength = min(abs(math.log2(max(ratio, 1e-6))), 1.0)
    full = (46, 158, 91) if ratio <= 1 else (222, 92, 76)
    mixed = (round(255 + (part - 255) * (0.12 + 0.6 * strength)) for part in full)
    return "#" + "".join(f"{part:02x}" for part in mixed)


def mark(canvas, x, y, met):
    """Draw a tick or a cross around (x, y)."""
    path = f"M{x - 4:.1f},{y:.1f} l3,3.4 l5,-7" if met else \
        f"M{x - 3.2:.1f},{y - 3.2:.1f} l6.4,6.4 m0,-6.4 l-6.4,6.4"
    canvas.add(f'<path d="{path}" fill="none" stroke="{MET if met else MISSED}" '
               'stroke-width="2" stroke-linecap="round" stroke-linejoin="round"/>')


def square(canvas, results, cell, library, parts, left, top, width):
    ratio = figures.main_ratio(results, cell, library, figures.judged(results))
    if ratio is None:
        return
    canvas.rectangle(left + 1, top + 1, width - 2, ROW - 2, color(ratio), 3)
    limit = figures.limit_ratio(results, cell, library)
    canvas.text(left + width / 2, top + (19 if limit else 27), report.ratio_text(ratio), 13, INK,
                "middle", "bold")
    if limit:
        canvas.text(left + width / 2, top + 35, f"{report.number(limit)}× limit"
                    if width > 70 else f"{limit:.1f}× l.", 10, INK, "middle")
    verdicts = [one for one in targets.judge(results, cell, parts) if one[0].library == library]
    if verdicts:
        mark(canvas, left + width - 11, top + 11, all(map(targets.is_met, verdicts)))


def title_of(results, library):
    if results["transport"] == "types":
        return settings.LIBRARIES[library].replace(", ", " in memory of ") + ": time / float32's"
    where = "memory of tuttiMemAlloc" if library == "window" else "ordinary memory"
    return f"Tutti, {where}: time / best peer's"


def panel(canvas, results, library, parts, left, top, width):
    """Returns its height."""
    rows = figures.collectives_of(results)
    sizes = sorted({cell["bytes"] for cell in results["cells"] if cell["collective"] != "barrier"})
    column = (width - LABEL) / max(len(sizes), 1)
    canvas.text(left, top + 14, title_of(results, library), 14, weight="bold")
    for i, size in enumerate(sizes):
        canvas.text(left + LABEL + column * (i + 0.5), top + 38, short_size(size), 11, FAINT,
                    "middle")
    for k, collective in enumerate(rows):
        y = top + 46 + k * ROW
        canvas.text(left, y + ROW / 2 + 4, collective, 12)
        for cell in figures.cells_of(results, collective):
            i = sizes.index(cell["bytes"]) if collective != "barrier" else 0
            square(canvas, results, cell, library, parts, left + LABEL + column * i, y, column)
    return 46 + len(rows) * ROW


def draw(results, parts):
    canvas = Canvas()
    title = describe(results["transport"], results["ranks"])
    canvas.text(MARGIN, 40, title + ": ratios", 22, weight="bold")
    y = 64
    timing = report.TIMING_WORDS[figures.judged(results)]
    about = (f"{timing}; below 1: ours is faster. Tick, cross: the cell meets its targets or does "
             "not")
    for line in report.heading(results) + [about]:
        canvas.text(MARGIN, y, line, 12, INK if line == about else FAINT)
        y += 17
    y += 12
    ours = [name for name in figures.libraries_of(results) if name in settings.OURS]
    if results["transport"] == "types":
        ours = [name for name in ours if name not in figures.reference_of(results)[0]]
    sizes = len({cell["bytes"] for cell in results["cells"]})
    across = 2 if len(ours) > 1 and sizes <= 7 else 1
    width = (WIDTH - 2 * MARGIN - (across - 1) * GAP) / across
    if across == 1:
        width = min(width, LABEL + 110 * sizes)
    for first in range(0, len(ours), across):
        heights = [panel(canvas, results, library, parts, MARGIN + i * (width + GAP), y, width)
                   for i, library in enumerate(ours[first:first + across])]
        y += max(heights, default=0) + 30
    return document(canvas, y + 6, "Ratios, " + title)

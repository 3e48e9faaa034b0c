# SPDX-License-Identifier: Apache-2.0
"""Reports the comparison of the tuner's candidates, as a table and as a map."""
import math

from harness.parts import size_text
from harness.choices import GOOD
from harness.plot import FAINT, INK, MARGIN, WIDTH, Canvas, document, short_size
from harness.report import number

LABEL, ROW = 104, 26
TITLES = {"shm": "One host, shared memory", "tcp": "TCP over the loopback"}
WHO = {"default": "by default", "tuned": "after tuttiCommTune"}


def busy(results):
    machine = results["machine"]
    return machine["load_before"] > machine["cpus"] / 4


def heading(results):
    machine, options = results["machine"], results["options"]
    return [f"{machine['cpu']}, {machine['cpus']} CPUs, Linux {machine['kernel']}",
            f"{machine['date']}, load {machine['load_before']:.2f} before, "
            f"{machine['load_after']:.2f} after",
            f"float32, calls back to back between barriers, medians of rounds in turns, "
            f"{options['cell_ms']} ms per cell; tuttiCommTune had {options['tune_ms'] / 1000:g} s "
            "for each rank",
            "The machine was busy with other things: take no figure from this run." if busy(results)
            else "The machine was quiet before."]


def distinct(cells, key):
    return list(dict.fromkeys(cell[key] for cell in cells))


def share(cells, who):
    return sum(cell[who]["ratio"] <= GOOD for cell in cells) / len(cells)


def summary(cells):
    """The shares of cells with a good choice: for all cells, and by transport, ranks and
    collective."""
    lines = [f"Cells where the choice is within {100 * (GOOD - 1):.0f} % of the fastest candidate",
             "", f"{'':26s}{'default':>9s}{'tuned':>9s}{'cells':>8s}"]
    groups = [("all", cells)]
    for key in ("transport", "ranks", "collective"):
        for value in distinct(cells, key):
            name = f"{value} ranks" if key == "ranks" else value
            groups.append((f"  {name}", [cell for cell in cells if cell[key] == value]))
    for name, group in groups:
        lines.append(f"{name:26s}{100 * share(group, 'default'):>7.0f} %"
                     f"{100 * share(group, 'tuned'):>7.0f} %{len(group):>8d}")
    return lines


def table(cells):
    columns = ["collective", "size", "fastest", "us", "default", "ratio", "tuned", "ratio"]
    rows = []
    for cell in cells:
        row = [cell["collective"], size_text(cell["bytes"]), cell["best"]["name"],
               number(cell["best"]["us"])]
        for who in WHO:
            one = cell[who]
            mark = " *" if one["ratio"] > GOOD else "  "
            row += [one["name"], f"{one['ratio']:.2f}{mark}"]
        rows.append(row)
    widths = [max(len(row[i]) for row in [columns, *rows]) for i in range(len(columns))]
    right = (1, 3, 5, 7)
    lines = ["  ".join(word.rjust(width) if i in right else word.ljust(width)
                       for i, (word, width) in enumerate(zip(row, widths))).rstrip()
             for row in [columns, ["-" * width for width in widths], *rows]]
    return lines


def as_text(results):
    cells = results["cells"]
    lines = heading(results) + [""] + summary(cells)
    for transport in distinct(cells, "transport"):
        for ranks in distinct(cells, "ranks"):
            lines += ["", f"== {transport}, {ranks} ranks: time of the choice / time of the fastest "
                      f"candidate (*: above {GOOD}) ==", ""]
            lines += table([cell for cell in cells
                            if cell["transport"] == transport and cell["ranks"] == ranks])
    return "\n".join(lines) + "\n"


# ---- the map ----


def color(ratio):
    """Pale green if the choice is good. Otherwise from yellow to full red at three times the
    fastest."""
    if ratio <= GOOD:
        return "#d5ecd9"
    strength = min(math.log(ratio / GOOD) / math.log(3 / GOOD), 1.0)
    low, high = (252, 228, 150), (205, 62, 58)
    return "#" + "".join(f"{round(a + (b - a) * strength):02x}" for a, b in zip(low, high))


def panel(canvas, cells, who, left, top, width):
    """Draw a row for each collective, and a column for each size within each number of ranks.
    Returns the height."""
    rows, ranks = distinct(cells, "collective"), distinct(cells, "ranks")
    sizes = distinct(cells, "bytes")
    gap = 6
    column = (width - LABEL - gap * len(ranks)) / (len(ranks) * len(sizes))
    canvas.text(left, top + 12, f"{WHO[who]}: {100 * share(cells, who):.0f} % of the cells within "
                f"{100 * (GOOD - 1):.0f} %", 14, weight="bold")
    for k, count in enumerate(ranks):
        x = left + LABEL + k * (len(sizes) * column + gap)
        canvas.text(x + len(sizes) * column / 2, top + 34, f"{count} ranks", 11, FAINT, "middle")
        for i, size in enumerate(sizes):
            canvas.text(x + (i + 0.5) * column, top + 48, short_size(size), 8, FAINT, "middle")
    for cell in cells:
        k, i = ranks.index(cell["ranks"]), sizes.index(cell["bytes"])
        x = left + LABEL + k * (len(sizes) * column + gap) + i * column
        y = top + 54 + rows.index(cell["collective"]) * ROW
        ratio = cell[who]["ratio"]
        canvas.rectangle(x + 0.5, y + 0.5, column - 1, ROW - 1, color(ratio), 2)
        if ratio > GOOD:
            canvas.text(x + column / 2, y + ROW / 2 + 3, f"{ratio:.1f}" if ratio < 9.95
                        else f"{ratio:.0f}", 9, INK, "middle")
    for k, name in enumerate(rows):
        canvas.text(left, top + 54 + k * ROW + ROW / 2 + 4, name, 12)
    return 54 + len(rows) * ROW


def draw(results):
    canvas, cells = Canvas(), results["cells"]
    title = "How far the choice is from the fastest candidate"
    canvas.text(MARGIN, 40, title, 22, weight="bold")
    y = 64
    for line in heading(results) + ["green: within the limit; else the choice's time over the "
                                    "fastest candidate's. Columns: sizes in bytes."]:
        canvas.text(MARGIN, y, line, 12, FAINT)
        y += 17
    y += 22
    half = (WIDTH - 2 * MARGIN - 28) / 2
    for transport in distinct(cells, "transport"):
        canvas.text(MARGIN, y, TITLES[transport], 18, weight="bold")
        mine = [cell for cell in cells if cell["transport"] == transport]
        heights = [panel(canvas, mine, who, MARGIN + k * (half + 28), y + 14, half)
                   for k, who in enumerate(WHO)]
        y += 14 + max(heights) + 40
    return document(canvas, y, title)

# SPDX-License-Identifier: Apache-2.0
"""Draws the picture of bench/pytorch: how many times faster than Gloo each call is, by size."""
import json
import math

from harness.plot import FAINT, INK, MARGIN, WIDTH, Canvas, document, short_size, time_text

LABEL, ROW, GAP = 150, 30, 34


def color(times):
    """Green if Tutti is faster, with full color at 64 times. Red if it is slower, with full color at half."""
    if times >= 1:
        full, strength = (46, 158, 91), min(math.log2(times) / 6, 1)
    else:
        full, strength = (222, 92, 76), min(-math.log2(times), 1)
    return "#" + "".join(f"{round(255 + (part - 255) * (0.08 + 0.72 * strength)):02x}" for part in full)


def times_text(times):
    return f"{times:.0f}×" if times >= 10 else f"{times:.1f}×"


def panel(canvas, rows, title, left, top, width):
    """Returns its height."""
    calls = list(dict.fromkeys(row["collective"] for row in rows if row["bytes"] > 0))
    sizes = sorted({row["bytes"] for row in rows if row["bytes"] > 0})
    column = (width - LABEL) / len(sizes)
    canvas.text(left, top + 14, title, 14, weight="bold")
    for i, size in enumerate(sizes):
        canvas.text(left + LABEL + column * (i + 0.5), top + 36, short_size(size), 11, FAINT, "middle")
    for k, call in enumerate(calls):
        y = top + 44 + k * ROW
        canvas.text(left, y + ROW / 2 + 4, call, 12)
        for row in rows:
            if row["collective"] != call:
                continue
            x, times = left + LABEL + column * sizes.index(row["bytes"]), row["gloo_us"] / row["tutti_us"]
            canvas.rectangle(x + 1, y + 1, column - 2, ROW - 2, color(times), 3)
            canvas.text(x + column / 2, y + ROW / 2 + 4, times_text(times), 12, INK, "middle", "bold")
    y = top + 44 + len(calls) * ROW + 16
    for row in rows:
        if row["bytes"] == 0:
            canvas.text(left, y, f"{row['collective']}: {times_text(row['gloo_us'] / row['tutti_us'])} "
                        f"({time_text(row['tutti_us'])}, Gloo {time_text(row['gloo_us'])})", 12)
            y += 17
    return y - top


def draw(results):
    canvas = Canvas()
    canvas.text(MARGIN, 40, "torch.distributed on CPU tensors: how many times faster than Gloo", 22,
                weight="bold")
    about = (f"{results['processor']}, {results['cpus']} CPUs, PyTorch {results['torch']}, {results['date']}; "
             "time of Gloo over time of Tutti, both in one run, by bytes of the whole vector")
    canvas.text(MARGIN, 64, about, 12, FAINT)
    rows, top = results["rows"], 90
    width = (WIDTH - 2 * MARGIN - GAP) / 2
    for ranks in dict.fromkeys(row["ranks"] for row in rows):
        heights = []
        for i, type_name in enumerate(dict.fromkeys(row["type"] for row in rows)):
            mine = [row for row in rows if row["ranks"] == ranks and row["type"] == type_name]
            heights.append(panel(canvas, mine, f"{ranks} ranks, {type_name}",
                                 MARGIN + i * (width + GAP), top, width))
        top += max(heights) + 24
    return document(canvas, top, "How many times faster than Gloo, call by size")


def write(figures, picture):
    """Draw a file of figures. Returns 1, without drawing, if the machine was busy."""
    with open(figures, encoding="utf-8") as file:
        results = json.load(file)
    if results["load_before"] > 0.5:
        print(f"{figures}: the machine was busy (load {results['load_before']:.2f}); not drawn")
        return 1
    with open(picture, "w", encoding="utf-8") as file:
        file.write(draw(results))
    return 0

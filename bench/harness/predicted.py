# SPDX-License-Identifier: Apache-2.0
"""Compares predictions with measurements, as a table and as a picture with one point for each."""
import math

from harness import plot
from harness.parts import size_text

LARGE = 64 << 10
QUIET = 1.0
COLORS = {"allreduce": "#c2185b", "allgather": "#1768ac", "reduce_scatter": "#d97706",
           "broadcast": "#2e7d32", "alltoall": "#6a4c93"}
PANEL, GAP = 520, 70


def miss(cell):
    """The factor by which the prediction is too high or too low, minus 1. 0 is a perfect
    prediction."""
    ratio = cell["predicted_s"] / cell["measured_s"]
    return max(ratio, 1 / ratio) - 1


def mean_miss(cells):
    """The geometric mean of the factors, minus 1. None if there are no cells."""
    if not cells:
        return None
    return math.exp(sum(math.log1p(miss(cell)) for cell in cells) / len(cells)) - 1


def parts(results):
    return sorted({(cell["transport"], cell["ranks"]) for cell in results["cells"]})


def of_part(results, transport, ranks=None):
    return [cell for cell in results["cells"] if cell["transport"] == transport and
            ranks in (None, cell["ranks"])]


def large(cells):
    return [cell for cell in cells if cell["bytes"] > LARGE]


def percent(value):
    return "-" if value is None else f"{100 * value:.1f} %"


def heading(results):
    about, options = results["machine"], results["options"]
    quiet = "quiet" if about["load_before"] < QUIET else "not quiet: figures are disturbed"
    return [f"{about['cpu']}, {about['cpus']} cores, Linux {about['kernel']}; {about['date']}",
            f"load before: {about['load_before']:.2f} ({quiet}); medians of {options['rounds']} "
            f"runs of {options['iterations']} iterations; {results['seconds']:.0f} s in all"]


def summary(results):
    lines = []
    for transport in sorted({part[0] for part in parts(results)}):
        cells = of_part(results, transport)
        lines.append(f"{transport}: above 64 KiB missed by {percent(mean_miss(large(cells)))} "
                     f"(geometric mean), all sizes by {percent(mean_miss(cells))}")
        for _, ranks in (part for part in parts(results) if part[0] == transport):
            cells = of_part(results, transport, ranks)
            own = [cell for cell in cells if cell["by"] == "choice"]
            lines.append(f"  {ranks} ranks: {percent(mean_miss(large(cells)))}; of what the "
                         f"library chooses {percent(mean_miss(large(own)))}")
    return lines


def label(cell):
    given = ",".join(f"{name}={value}" for name, value in cell["options"].items())
    return cell["algorithm"] + (f"[{given}]" if given else "")


def table(results):
    lines = ["Predicted by tutti-sim, measured by the perf programs", *heading(results), "",
             *summary(results)]
    for transport, ranks in parts(results):
        lines += ["", f"{transport}, {ranks} ranks ('*': the library's own choice)",
                  f"{'COLLECTIVE':15} {'ALGORITHM':34} {'SIZE':>8} {'PREDICTED':>11} "
                  f"{'MEASURED':>11} {'ERROR':>8}"]
        for cell in of_part(results, transport, ranks):
            star = "* " if cell["by"] == "choice" else "  "
            error = cell["predicted_s"] / cell["measured_s"] - 1
            lines.append(f"{cell['collective']:15} {star + label(cell):34} "
                         f"{size_text(cell['bytes']):>8} {cell['predicted_s'] * 1e6:8.1f} us "
                         f"{cell['measured_s'] * 1e6:8.1f} us {100 * error:+6.0f} %")
    for topo in results["machines"]:
        lines += ["", f"The machine, {topo['transport']}, {topo['ranks']} ranks:",
                  *("  " + line for line in topo["text"].splitlines())]
    return "\n".join(lines) + "\n"


def panel(canvas, results, transport, left, top):
    cells = of_part(results, transport)
    times = [cell[key] * 1e6 for cell in cells for key in ("predicted_s", "measured_s")]
    low, high = math.floor(math.log10(min(times))), math.ceil(math.log10(max(times)))

    def at(microseconds):
        return (math.log10(microseconds) - low) / (high - low) * PANEL

    canvas.text(left, top - 26, transport, 16, weight="bold")
    canvas.text(left, top - 8, f"above 64 KiB missed by {percent(mean_miss(large(cells)))}", 12,
                plot.FAINT)
    for decade in range(low, high + 1):
        x = at(10.0 ** decade)
        canvas.line(left + x, top, left + x, top + PANEL)
        canvas.line(left, top + PANEL - x, left + PANEL, top + PANEL - x)
        canvas.text(left + x, top + PANEL + 16, plot.time_text(10.0 ** decade), 11, plot.FAINT,
                    "middle")
        canvas.text(left - 6, top + PANEL - x + 4, plot.time_text(10.0 ** decade), 11, plot.FAINT,
                    "end")
    canvas.line(left, top + PANEL, left + PANEL, top, plot.FAINT, 1.4)
    for cell in cells:
        x, y = left + at(cell["measured_s"] * 1e6), top + PANEL - at(cell["predicted_s"] * 1e6)
        color = COLORS[cell["collective"]]
        fill = color if cell["by"] == "choice" else "#ffffff"
        canvas.add(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{3.6 if cell["ranks"] == 2 else 5}" '
                   f'fill="{fill}" stroke="{color}" stroke-width="1.4"/>')


def draw(results):
    canvas, transports = plot.Canvas(), sorted({part[0] for part in parts(results)})
    width = 2 * GAP + len(transports) * PANEL + (len(transports) - 1) * GAP
    canvas.text(GAP, 40, "Predicted against measured time", 20, weight="bold")
    for i, line in enumerate(heading(results)):
        canvas.text(GAP, 62 + 17 * i, line, 12, plot.FAINT)
    for i, (name, color) in enumerate(COLORS.items()):
        canvas.rectangle(GAP + 130 * i, 104, 11, 11, color, 3)
        canvas.text(GAP + 17 + 130 * i, 114, name, 12)
    canvas.text(GAP, 136, "filled: the library's choice; small: 2 ranks, large: more; on the line: "
                "right", 12, plot.FAINT)
    for i, transport in enumerate(transports):
        panel(canvas, results, transport, GAP + i * (PANEL + GAP), 190)
    height = 190 + PANEL + 40
    return plot.document(canvas, height, "Predicted against measured", width)

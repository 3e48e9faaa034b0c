# SPDX-License-Identifier: Apache-2.0
"""Writes the results as tables, and the targets that they meet."""
import json
import math
import statistics

from harness import figures, settings, targets
from harness.parts import describe, size_text

SHORT = {"tutti": "heap", "window": "window", "bfloat16-window": "bf16 window",
         "float16-window": "f16 window", "bfloat16": "bf16 heap", "float16": "f16 heap"}
TIMING_WORDS = {"sync": "started together, until the last rank is done",
                "stream": "back to back"}


def write_json(results, path):
    with open(path, "w", encoding="utf-8") as file:
        json.dump(results, file, indent=1)
        file.write("\n")


def read_json(path):
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def number(value):
    """The value with three significant digits, without an exponent."""
    if value is None:
        return "-"
    if value >= 100:
        return f"{value:.0f}"
    return f"{value:.{max(0, 2 - math.floor(math.log10(max(value, 1e-3))))}f}"


def ratio_text(ratio):
    return "-" if ratio is None else f"{ratio:.2f}"


def heading(results):
    machine, options = results["machine"], results["options"]
    caches = ", ".join(f"{level} {size}" for level, size in machine["caches"].items())
    versions = ", ".join(f"{settings.LIBRARIES[name]} {version}"
                         for name, version in results["versions"].items())
    lines = [f"{machine['cpu']}, {machine['cpus']} CPUs ({caches}), Linux {machine['kernel']}",
             f"{machine['date']}, load {machine['load_before']:.2f} before, "
             f"{machine.get('load_after', math.nan):.2f} after; {versions}",
             f"{describe(results['transport'], results['ranks'])}, {options['rounds']} rounds of "
             f"{options['slice_ms']:g} ms slices, medians"]
    if machine["load_before"] > machine["cpus"] / 4:
        lines.append("The machine was busy with other things: take no figure from this run.")
    if not results.get("complete", True):
        lines.append("Interrupted: not all cells were measured.")
    return lines


def columns_of(results, timing):
    """[(title, function of a cell that returns its entry)] for the columns of one table."""
    libraries = figures.libraries_of(results)
    ours = [name for name in libraries if name in settings.OURS]
    others, who = figures.reference_of(results)

    def time_of(library):
        return lambda cell: number((figures.best_of(cell, (library,), timing) or (0, None))[1])

    def ratio_of(library):
        return lambda cell: ratio_text(figures.main_ratio(results, cell, library, timing))

    def limit_of(library):
        return lambda cell: ratio_text(figures.limit_ratio(results, cell, library))

    def name_of_best(cell):
        return (figures.best_of(cell, others, timing) or ("-",))[0]

    narrow = results["transport"] == "types"
    columns = [("float32 heap" if narrow and name == "tutti" else
                "float32 window" if narrow and name == "window" else
                SHORT.get(name, settings.LIBRARIES[name]), time_of(name))
               for name in libraries if name != "limit"]
    columns += [] if narrow else [(who, name_of_best)]
    columns += [(f"{SHORT[name]} / {'f32' if narrow else 'best'}", ratio_of(name)) for name in ours
                if not narrow or name not in others]
    if timing == figures.judged(results) and "limit" in libraries:
        columns += [("limit", lambda cell: number(figures.limit(results, cell)))]
        columns += [(f"{SHORT.get(name, name)} x limit", limit_of(name))
                    for name in (*ours, "peer")]
    return columns


def table(results, timing):
    columns = columns_of(results, timing)
    titles = ["collective", "size"] + [title for title, _ in columns]
    rows = []
    for collective in figures.collectives_of(results):
        for cell in figures.cells_of(results, collective):
            size = "" if collective == "barrier" else size_text(cell["bytes"])
            rows.append([collective, size] + [words(cell) for _, words in columns])
    widths = [max(len(row[i]) for row in [titles, *rows]) for i in range(len(titles))]
    left = [i for i, title in enumerate(titles) if title in ("collective", "best peer")]
    lines = []
    for i, row in enumerate([titles, *rows]):
        if i > 1 and rows[i - 1][0] != rows[i - 2][0]:
            lines.append("")
        lines.append("  ".join(word.ljust(width) if k in left else word.rjust(width)
                               for k, (word, width) in enumerate(zip(row, widths))).rstrip())
        if i == 0:
            lines.append("  ".join("-" * width for width in widths))
    return lines


def cells_text(parts):
    lines = ["Times in us; ours / theirs: below 1, ours is faster."]
    for results in parts:
        lines += ["", "", f"==== {results['part']} ====", "", *heading(results)]
        for timing in sorted(figures.measured(results),
                             key=lambda one: one != figures.judged(results)):
            lines += ["", f"-- {results['part']}, {TIMING_WORDS[timing]} --", "",
                      *table(results, timing)]
        for name, error in results.get("absent", {}).items():
            lines += ["", f"ABSENT: {name}: {error.splitlines()[0]}"]
        for one in results["failures"]:
            lines += ["", f"LOST: {one['contender']} in {one['collective']} of "
                      f"{size_text(one['bytes'])}: {one['error']}"]
    return "\n".join(lines) + "\n"


def targets_text(parts):
    """For each part and target: the number of cells that meet it, and the cells that do not."""
    lines, met_cells, all_cells = [], 0, 0
    for results in parts:
        cells = [(cell, targets.judge(results, cell, parts)) for cell in results["cells"]]
        judged = [(cell, verdicts) for cell, verdicts in cells if verdicts]
        met = sum(all(map(targets.is_met, verdicts)) for _, verdicts in judged)
        met_cells, all_cells = met_cells + met, all_cells + len(judged)
        lines += ["", f"{results['part']}, {TIMING_WORDS[figures.judged(results)]}: {met} of "
                  f"{len(judged)} cells meet all of their targets"]
        for target in targets.targets_of(results):
            found = [(cell, figure) for cell, verdicts in judged
                     for one, figure in verdicts if one is target]
            if not found:
                continue
            missed = [(cell, figure) for cell, figure in found if figure > target.bound]
            mean = statistics.geometric_mean(figure for _, figure in found)
            lines.append(f"  {target.words():36s} {range_text(target):16s} "
                         f"{len(found) - len(missed):2d} of {len(found):2d} met, mean {mean:.2f}")
            lines += [f"      missed: {cell_name(cell)} {figure:.2f}" for cell, figure in missed]
    return "\n".join([f"Targets: {met_cells} of {all_cells} cells meet all that they have.",
                      *lines]) + "\n"


def cell_name(cell):
    return cell["collective"] + ("" if cell["collective"] == "barrier" else
                                 " " + size_text(cell["bytes"]))


def range_text(target):
    if target.high == math.inf:
        return f"from {size_text(target.low)}"
    return f"up to {size_text(target.high)}" if target.low == 0 else \
        f"{size_text(target.low)} to {size_text(target.high)}"

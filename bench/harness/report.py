# SPDX-License-Identifier: Apache-2.0
"""Results as JSON, and as tables to read."""
import json
import math
import statistics

from harness import settings
from harness.cells import size_text

RANGES = (("up to 64 KiB", 0, 64 << 10), ("between", (64 << 10) + 1, (1 << 20) - 1),
          ("from 1 MiB", 1 << 20, math.inf))


def write_json(results, path):
    with open(path, "w", encoding="utf-8") as file:
        json.dump(results, file, indent=1)
        file.write("\n")


def read_json(path):
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def best_of(cell, library):
    """(name, time in us) of the library's best setting in the cell, or None."""
    times = [(one["median_us"], name) for name, one in cell["times"].items()
             if one["library"] == library]
    return min(times)[::-1] if times else None


def transports(results):
    return list(dict.fromkeys(cell["transport"] for cell in results["cells"]))


def collectives(results, transport):
    return list(dict.fromkeys(cell["collective"] for cell in results["cells"]
                              if cell["transport"] == transport))


def cells_of(results, transport, collective):
    return [cell for cell in results["cells"]
            if cell["transport"] == transport and cell["collective"] == collective]


def libraries_of(results, transport):
    """Those with a time in any cell, in the order of their colours."""
    seen = {one["library"] for cell in results["cells"] if cell["transport"] == transport
            for one in cell["times"].values()}
    return [library for library in settings.LIBRARIES if library in seen]


def number(value):
    """Three digits that count, never in powers of ten."""
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
             f"{machine.get('load_after', math.nan):.2f} after",
             versions,
             f"{options['ranks']} ranks, float32, {options['rounds']} rounds of "
             f"{options['slice_ms']:g} ms slices, back to back, medians"]
    if machine["load_before"] > machine["cpus"] / 4:
        lines.append("The machine was busy with other things: take no figure from this run.")
    return lines


def table(results, transport):
    libraries = libraries_of(results, transport)
    ours = [library for library in settings.OURS if library in libraries]
    columns = ["collective", "size"] + ["window" if name == "window" else settings.LIBRARIES[name]
                                        for name in libraries]
    columns += ["best peer"] + [f"{'heap' if name == 'tutti' else 'window'} / best"
                                for name in ours]
    has_bare = "bare" in libraries
    columns += ["heap / bare"] if has_bare else []
    rows = []
    for collective in collectives(results, transport):
        for cell in cells_of(results, transport, collective):
            times = [best_of(cell, library) for library in libraries]
            size = "" if collective == "barrier" else size_text(cell["bytes"])
            rows.append([collective, size] + [number(one[1] if one else None) for one in times] +
                        [cell["best_peer"] or "-"] +
                        [ratio_text(cell["ratios"].get(name)) for name in ours] +
                        ([ratio_text(cell["ratios_bare"].get("tutti"))] if has_bare else []))
    widths = [max(len(row[i]) for row in [columns, *rows]) for i in range(len(columns))]
    text_columns = (0, columns.index("best peer"))
    lines = []
    for i, row in enumerate([columns, *rows]):
        if i > 1 and rows[i - 1][0] != rows[i - 2][0]:
            lines.append("")
        lines.append("  ".join(word.ljust(width) if k in text_columns else word.rjust(width)
                               for k, (word, width) in enumerate(zip(row, widths))).rstrip())
        if i == 0:
            lines.append("  ".join("-" * width for width in widths))
    return lines


def summary(results, transport):
    """Per collective and range of sizes: the geometric mean of the ratios, and the worst."""
    lines = []
    for library in settings.OURS:
        for collective in collectives(results, transport):
            parts = []
            for title, low, high in RANGES:
                ratios = [cell["ratios"][library]
                          for cell in cells_of(results, transport, collective)
                          if low <= cell["bytes"] <= high and library in cell["ratios"]]
                if ratios:
                    mean = statistics.geometric_mean(ratios)
                    title = "" if collective == "barrier" else title + " "
                    parts.append(f"{title}{mean:.2f} (worst {max(ratios):.2f})")
            if parts:
                lines.append(f"  {settings.LIBRARIES[library]:22s} {collective:15s}"
                             f"{', '.join(parts)}")
    return lines


def as_text(results):
    lines = heading(results)
    for transport in transports(results):
        lines += ["", f"== {transport}: times in us, and our time / the best peer's "
                  "(below 1: ours is faster) ==", ""]
        lines += table(results, transport)
        ratios = summary(results, transport)
        if ratios:
            lines += ["", "Ratios in short: geometric mean (worst)", "", *ratios]
    for one in results["failures"]:
        lines += ["", f"LOST: {one['contender']} over {one['transport']} in {one['collective']} of "
                  f"{size_text(one['bytes'])}: {one['error']}"]
    return "\n".join(lines) + "\n"

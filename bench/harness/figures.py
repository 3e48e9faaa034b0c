# SPDX-License-Identifier: Apache-2.0
"""Computes the best settings, the limit, and Tutti's ratios to them from the times of a cell, round
by round."""
import statistics

from harness import settings
from harness.parts import LINE_BYTES, is_crowded

# In these a rank that has sent its data continues. So with calls back to back, ranks need not wait
# for others.
ROOTED = ("broadcast", "reduce")


def measured(results):
    """The timings that the cells have."""
    return {timing for cell in results["cells"] for one in cell["times"].values()
            for timing in one if timing != "library"}


def judged(results):
    """The timing that counts: sync if every rank has a CPU, and stream otherwise. If only the other
    timing was measured, it is that one."""
    wanted, known = "stream" if is_crowded(results) else "sync", measured(results)
    return wanted if wanted in known or not known else known.pop()


def best_of(cell, libraries, timing):
    """(name, time in us) of the best setting of these libraries in the cell, or None if they have
    none."""
    times = [(one[timing]["median_us"], name) for name, one in cell["times"].items()
             if one["library"] in libraries and timing in one]
    return min(times)[::-1] if times else None


def median(rounds):
    return statistics.median(one for one in rounds if one is not None)


def ratio_of_rounds(ours_us, theirs_us):
    """The median of the ratios of all rounds that both have. With fewer than two such rounds it is
    the ratio of the medians."""
    pairs = [ours / theirs for ours, theirs in zip(ours_us, theirs_us) if ours and theirs]
    return statistics.median(pairs) if len(pairs) > 1 else median(ours_us) / median(theirs_us)


def ratio(cell, library, rounds_us, timing):
    """The time of Tutti's `library` divided by the times of other rounds, or None."""
    best = best_of(cell, (library,), timing)
    if best is None or not rounds_us:
        return None
    return ratio_of_rounds(cell["times"][best[0]][timing]["rounds_us"], rounds_us)


def ratio_to(cell, library, others, timing):
    """The time of Tutti's `library` divided by that of the best setting of `others`, or None."""
    best = best_of(cell, others, timing)
    return best and ratio(cell, library, cell["times"][best[0]][timing]["rounds_us"], timing)


def switches(results):
    """How often a CPU has to switch to another rank, at least, until each of its ranks has run
    once."""
    cpus = results["machine"]["cpus"]
    return (results["ranks"] + cpus - 1) // cpus - 1


def limit_rounds(results, cell):
    """The limit of the cell in each round, in us. The list is empty if the limit was not
    measured."""
    timing = judged(results) if results["transport"] == "tcp" else "sync"
    times = {name: one[timing] for name, one in cell["times"].items() if one["library"] == "limit"}
    line = times.pop("limit:line", None)
    best = min(times.values(), key=lambda one: one["median_us"], default=None)
    if line is None:
        return best["rounds_us"] if best else []
    if best is None and cell["bytes"] > LINE_BYTES:
        return []
    rounds = line["rounds_us"]
    if best is not None:
        least_us = line["median_us"]
        rounds = [one and max(one, least_us) for one in best["rounds_us"]]
    if is_crowded(results) and cell["collective"] not in ROOTED:
        switching_us = switches(results) * (results["switch_us"] or 0.0)
        return [one and one + switching_us for one in rounds]
    return rounds


def limit(results, cell):
    rounds = limit_rounds(results, cell)
    return median(rounds) if rounds else None


def limit_ratio(results, cell, library):
    """The time of a library's best setting divided by the limit, or None. "peer" is the best of all
    peers."""
    libraries = settings.PEERS if library == "peer" else (library,)
    best = best_of(cell, libraries, judged(results))
    rounds = limit_rounds(results, cell)
    if best is None or not rounds:
        return None
    return ratio_of_rounds(cell["times"][best[0]][judged(results)]["rounds_us"], rounds)


def libraries_of(results):
    """The libraries with a time in any cell, in the order of settings.LIBRARIES."""
    seen = {one["library"] for cell in results["cells"] for one in cell["times"].values()}
    return [library for library in settings.LIBRARIES if library in seen]


def collectives_of(results):
    return list(dict.fromkeys(cell["collective"] for cell in results["cells"]))


def cells_of(results, collective):
    return sorted((cell for cell in results["cells"] if cell["collective"] == collective),
                  key=lambda cell: cell["bytes"])


def reference_of(results):
    """The libraries with which Tutti is compared: (libraries, in words)."""
    if results["transport"] == "types":
        return ("tutti", "window"), "float32"
    return settings.PEERS, "best peer"


def main_ratio(results, cell, library, timing):
    """Tutti's time divided by the best peer's. For a narrow type it is divided by the time of
    float32 in the same memory."""
    if results["transport"] == "types":
        other = "window" if library.endswith("window") else "tutti"
        return None if library == other else ratio_to(cell, library, (other,), timing)
    return ratio_to(cell, library, settings.PEERS, timing)


def in_short(results, cell):
    """The times of a cell in one line."""
    timing = judged(results)
    words = [f"{library} {best[1]:.4g}" for library in libraries_of(results)
             if (best := best_of(cell, (library,), timing)) and library != "limit"]
    least = limit(results, cell)
    words += [f"limit {least:.4g}"] if least else []
    return ", ".join(words) + " us"

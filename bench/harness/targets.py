# SPDX-License-Identifier: Apache-2.0
"""The targets of Tutti, and the cells that reach them."""
import math

from harness import figures
from harness.parts import is_crowded

KIB, MIB = 1 << 10, 1 << 20
SUMS = ("allreduce", "reduce_scatter", "reduce")


class Target:
    """A bound on the ratio of `library` to `to`, for cells of `low` to `high` bytes. `only` and
    `but` name the collectives to which it applies or does not apply."""

    def __init__(self, library, to, bound, low, high, only=None, but=()):
        self.library, self.to, self.bound = library, to, bound
        self.low, self.high, self.only, self.but = low, high, only, but

    def applies(self, cell):
        return (self.low <= cell["bytes"] <= self.high and cell["collective"] not in self.but and
                (self.only is None or cell["collective"] in self.only))

    def words(self):
        who = {"tutti": "heap", "window": "window"}.get(self.library, self.library)
        what = {"peer": "x best peer", "limit": "x limit", "mpi": "x best MPI", "gloo": "x Gloo",
                "crowd": "x its share of the CPUs", "float32": "x float32"}[self.to]
        return f"{who} <= {self.bound:.3g} {what}"


# A barrier counts as the smallest size.
TWO_RANKS = (
    Target("window", "limit", 1.5, 0, 64), Target("window", "peer", 0.8, 0, 64),
    Target("window", "limit", 2.5, 4 * KIB, 64 * KIB),
    Target("window", "peer", 0.7, KIB, 64 * KIB),
    Target("window", "limit", 1.15, MIB, math.inf),
    Target("window", "peer", 0.6, MIB, math.inf, only=("allreduce",)),
    Target("tutti", "peer", 0.9, 0, 64 * KIB),
    Target("tutti", "peer", 0.75, MIB, math.inf, only=SUMS),
    Target("tutti", "peer", 1.0, MIB, math.inf, but=SUMS),
)
CROWDED = tuple(
    Target(library, to, bound, low, high) for library in ("tutti", "window")
    for to, bound, low, high in (("peer", 0.7, 0, 64 * KIB), ("crowd", 3.0, 0, 64 * KIB),
                                 ("peer", 0.7, MIB, math.inf))
) + (Target("window", "limit", 1.3, MIB, math.inf),)
SOCKETS = (
    Target("tutti", "mpi", 0.9, 0, 64), Target("tutti", "gloo", 0.4, 0, 64),
    Target("tutti", "peer", 1 / 1.2, MIB, math.inf),
    Target("tutti", "limit", 1 / 0.85, MIB, math.inf),
)
NARROW = tuple(Target(name + window, "float32", bound, low, high)
               for name in ("bfloat16", "float16") for window in ("", "-window")
               for bound, low, high in ((1.3, 0, 64 * KIB), (1.1, MIB, math.inf)))


def targets_of(results):
    if results["transport"] == "shm":
        return CROWDED if is_crowded(results) else TWO_RANKS
    return SOCKETS if results["transport"] == "tcp" else NARROW


def crowd_ratio(results, cell, library, parts):
    """Tutti's time divided by its share of the CPUs: (ranks / CPUs) x the time with as many ranks
    as CPUs, plus the switches that cannot be avoided. None if no part of the same run has that
    time."""
    cpus = results["machine"]["cpus"]
    for part in parts:
        if (part["transport"], part["ranks"], part["run"]) != \
           (results["transport"], cpus, results["run"]):
            continue
        for other in part["cells"]:
            if (other["collective"], other["bytes"]) == (cell["collective"], cell["bytes"]):
                alone = figures.best_of(other, (library,), "stream")
                own = figures.best_of(cell, (library,), "stream")
                if alone and own:
                    switching = figures.switches(results) * (results["switch_us"] or 0.0)
                    return own[1] / (results["ranks"] / cpus * alone[1] + switching)
    return None


def value(target, results, cell, parts):
    timing = figures.judged(results)
    if target.to == "limit":
        return figures.limit_ratio(results, cell, target.library)
    if target.to == "crowd":
        return crowd_ratio(results, cell, target.library, parts)
    others = {"mpi": ("openmpi", "mpich"), "gloo": ("gloo",)}.get(target.to)
    if others is None:
        return figures.main_ratio(results, cell, target.library, timing)
    return figures.ratio_to(cell, target.library, others, timing)


def judge(results, cell, parts):
    """[(target, figure of Tutti)] for all targets of the cell that could be measured."""
    found = [(target, value(target, results, cell, parts)) for target in targets_of(results)
             if target.applies(cell)]
    return [(target, figure) for target, figure in found if figure is not None]


def is_met(verdict):
    target, figure = verdict
    return figure <= target.bound

# SPDX-License-Identifier: Apache-2.0
"""Determines the distance of the CPUs while the libraries take turns.

The host of a virtual machine moves its CPUs, within tenths of a second. At times they are on one
chiplet, where a cache line takes 60 ns from one to the other and both share one path to the memory.
At other times they are on two chiplets, where a line takes 280 ns and there are two paths. Times at
different distances cannot be compared. So the figures of a cell are from rounds at one distance. A
distance is given as the time of a cache line, in us."""
import bisect
import math

from harness import team

# A reading is the median of so many exchanges of a line. It takes a millisecond.
LINES = 100
# The time within which the drivers must answer.
SECONDS = 10
# Two times of a line are the same distance if their ratio is at most this.
ALIKE = 1.5
# A distance is where the most times of a line are within this factor of each other.
CROWD = 1.1
# Each contender should have ENOUGH rounds at the cell's distance. For this it may get MORE_TURNS
# more turns.
ENOUGH, MORE_TURNS = 3, 4


class Meter:
    """Reads the distance between slices. A distance is None if it cannot be determined."""

    def __init__(self, roster):
        self.roster = roster
        self.last = self.read()

    def read(self):
        for entry in self.roster.entries:
            if entry.contender.driver == "limit" and entry.variant == "line":
                try:
                    answers = entry.team.ask(
                        f"sync barrier {entry.type} 4 {entry.memory} {LINES}", SECONDS)
                    return max(float(answer.split()[1]) for answer in answers) / 1000
                except (team.Lost, IndexError, ValueError):
                    return None
        return None

    def since_last(self):
        """The distance since the last call, or None if it has changed meanwhile."""
        before, self.last = self.last, self.read()
        return math.sqrt(before * self.last) if are_alike(before, self.last) else None


def are_alike(one, other):
    return None not in (one, other) and max(one, other) <= ALIKE * min(one, other)


def choose(rows):
    """The distance at which the list with the fewest rounds has the most rounds."""
    seen = [one["distance"] for row in rows for one in row if one and one["distance"] is not None]
    return max(seen, key=lambda distance: (min(count(row, distance) for row in rows),
                                           sum(count(row, distance) for row in rows)), default=None)


def count(row, distance):
    """The number of rounds at that distance."""
    return sum(one is not None and are_alike(one["distance"], distance) for one in row)


def at(row, distance):
    """The rounds at that distance, with None for the others. If there is none at that distance, all
    rounds."""
    if count(row, distance) == 0:
        return row
    return [one if one and are_alike(one["distance"], distance) else None for one in row]


def group(lines):
    """Divide times of a line into groups of one distance each. Returns the indices of each group,
    the nearest distance first."""
    order = sorted(range(len(lines)), key=lines.__getitem__)
    groups = []
    while order:
        values = [lines[i] for i in order]
        peak = max(values, key=lambda line: bisect.bisect(values, line * CROWD) -
                   bisect.bisect(values, line / CROWD))
        groups.append([i for i in order if are_alike(lines[i], peak)])
        order = [i for i in order if not are_alike(lines[i], peak)]
    return sorted(groups, key=lambda indices: lines[indices[0]])

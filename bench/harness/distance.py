# SPDX-License-Identifier: Apache-2.0
"""How far the CPUs are from each other while the libraries take turns.

The CPUs of a virtual machine are moved about by its host, within tenths of a second: they sit now on
one chiplet, where a cache line takes 60 ns from one to the other and both share one way to the
memory, now on two, where it takes 280 ns and there are two ways. Who was measured here and who there
cannot be compared, so a cell's figures are of rounds of one distance."""
import bisect
import math

from harness import team

# One line each way, this often: a millisecond.
LINES = 100
SECONDS = 10
# Two times of a line that differ by no more are the same distance.
ALIKE = 1.5
# Where lines crowd so closely, there is a distance.
CROWD = 1.1
# Of each contender so many rounds are wanted at the cell's distance, for which there may be so many
# turns more.
ENOUGH, MORE_TURNS = 3, 4


class Meter:
    """Reads the distance between slices; None if it cannot be determined."""

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
        """The distance that was before and is now; None if it has changed meanwhile."""
        before, self.last = self.last, self.read()
        return math.sqrt(before * self.last) if are_alike(before, self.last) else None


def are_alike(one, other):
    return None not in (one, other) and max(one, other) <= ALIKE * min(one, other)


def choose(rows):
    """Of lists of rounds the distance at which the poorest of them has the most."""
    seen = [one["distance"] for row in rows for one in row if one and one["distance"] is not None]
    return max(seen, key=lambda distance: (min(count(row, distance) for row in rows),
                                           sum(count(row, distance) for row in rows)), default=None)


def count(row, distance):
    return sum(one is not None and are_alike(one["distance"], distance) for one in row)


def at(row, distance):
    """The rounds at that distance, with None for the others; all, if there is none."""
    if count(row, distance) == 0:
        return row
    return [one if one and are_alike(one["distance"], distance) else None for one in row]


def group(lines):
    """The distances that are among so many times of a line: for each the indices of those that are
    alike, the nearest first."""
    order = sorted(range(len(lines)), key=lines.__getitem__)
    groups = []
    while order:
        values = [lines[i] for i in order]
        peak = max(values, key=lambda line: bisect.bisect(values, line * CROWD) -
                   bisect.bisect(values, line / CROWD))
        groups.append([i for i in order if are_alike(lines[i], peak)])
        order = [i for i in order if not are_alike(lines[i], peak)]
    return sorted(groups, key=lambda indices: lines[indices[0]])

# SPDX-License-Identifier: Apache-2.0
"""Shows how far a run is, and how long it will take: one line on a terminal that the next one
replaces, or else a line for each cell."""
import sys
import time

from harness import figures
from harness.parts import size_text, weight

# The assumed time of one unit of weight (parts.weight), until a cell has been measured.
SECONDS = 0.35


class Progress:
    def __init__(self, parts):
        self.left = sum(weight(part, cell) for part in parts for cell in part.agenda())
        self.count = sum(len(part.agenda()) for part in parts)
        self.done, self.spent = 0, 0.0
        self.start = time.monotonic()
        self.is_terminal = sys.stderr.isatty()

    def skip(self, part, cells):
        """These cells have results already."""
        self.left -= sum(weight(part, (cell["collective"], cell["bytes"])) for cell in cells)
        self.done += len(cells)

    def note(self, words):
        if self.is_terminal:
            print("\r" + " " * 118 + "\r", end="", file=sys.stderr)
        print(words, file=sys.stderr)

    def remaining(self):
        seconds = time.monotonic() - self.start
        each = seconds / self.spent if self.spent > 0 else SECONDS
        minutes, seconds = divmod(int(each * self.left + 0.5), 60)
        return f"{minutes}:{seconds:02d}"

    def cell(self, part, cell, results):
        self.left -= weight(part, cell)
        self.spent += weight(part, cell)
        self.done += 1
        size = "" if cell[0] == "barrier" else " " + size_text(cell[1])
        line = (f"[{self.done}/{self.count}, {self.remaining()} left] {part.name} {cell[0]}{size}: "
                f"{figures.in_short(results, results['cells'][-1])}")
        if self.is_terminal:
            print(f"\r{line:118.118s}", end="", file=sys.stderr, flush=True)
        else:
            print(line, file=sys.stderr)

    def close(self):
        if self.is_terminal:
            print(file=sys.stderr)

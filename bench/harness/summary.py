# SPDX-License-Identifier: Apache-2.0
"""Writes the table in README.md: all-reduce between two ranks in a few sizes, by Tutti and by the
peers."""
from harness import figures
from harness.parts import size_text
from harness.report import number

SIZES = [8, 4 << 10, 64 << 10, 1 << 20, 16 << 20, 64 << 20]
# For each column: title, part, the libraries of which the fastest counts, and whether it is Tutti.
COLUMNS = [("Tutti, shared memory", "shm2", ("tutti",), True),
           ("from `tuttiMemAlloc`", "shm2", ("window",), True),
           ("Open MPI", "shm2", ("openmpi",), False),
           ("MPICH", "shm2", ("mpich",), False),
           ("Tutti, TCP loopback", "tcp2", ("tutti",), True),
           ("Open MPI", "tcp2", ("openmpi",), False),
           ("Gloo", "tcp2", ("gloo",), False)]


def cell_of(part, size):
    return next((cell for cell in part["cells"]
                 if cell["collective"] == "allreduce" and cell["bytes"] == size), None)


def time_us(part, size, libraries):
    cell = cell_of(part, size) if part else None
    best = cell and figures.best_of(cell, libraries, "stream")
    return best[1] if best else None


def row(parts, size):
    """A row of the table. A time of Tutti is bold if no peer of the same part is faster."""
    words = [size_text(size)]
    times = [time_us(parts.get(part), size, libraries) for _, part, libraries, _ in COLUMNS]
    for (_, part, _, is_ours), time in zip(COLUMNS, times):
        others = [other for (_, their_part, _, theirs), other in zip(COLUMNS, times)
                  if their_part == part and not theirs and other is not None]
        leads = is_ours and time is not None and all(time <= other for other in others)
        words.append(f"**{number(time)}**" if leads else number(time))
    return "| " + " | ".join(words) + " |"


def summary_text(results):
    """The table as Markdown. The first line says when and where it was measured. Lines are not
    wrapped, so that a test can compare them with README.md."""
    parts = {one["part"]: one for one in results}
    machine = parts["shm2"]["machine"]
    lines = [f"All-reduce, 2 ranks, float32, back to back, microseconds per operation; "
             f"{machine['cpu']}, {machine['cpus']} CPUs, {machine['date'][:10]}; "
             "each peer at its best setting:", "",
             "| size | " + " | ".join(title for title, *_ in COLUMNS) + " |",
             "|---:|" + "---:|" * len(COLUMNS)]
    return "\n".join(lines + [row(parts, size) for size in SIZES]) + "\n"

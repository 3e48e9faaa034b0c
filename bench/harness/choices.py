# SPDX-License-Identifier: Apache-2.0
"""Measures the tuner's candidates. The ranks of each setup (a transport and a number of ranks) are
started once, and measure all cells by themselves (drivers/choices.c). Rank 0 writes a line for each
cell."""
import json
import os
import select
import signal
import statistics
import subprocess
import sys
import time

from harness import settings
from harness.parts import size_text

COLLECTIVES = ("allreduce", "reduce", "broadcast", "allgather", "reduce_scatter", "alltoall",
               "gather", "scatter", "scan", "exclusive_scan")
# A choice is good if it takes at most so many times as long as the fastest candidate.
GOOD = 1.15
# A cell that takes longer than this counts as hanging. For the first cell the time of tuttiCommTune
# is added.
PATIENCE_SECONDS = 120

ENVIRONMENT = {"shm": {}, "tcp": {"TUTTI_TRANSPORTS": "self,tcp"}}


class Failure(Exception):
    pass


class Progress:
    """Shows progress: one line on a terminal that the next one replaces, or else one line for each
    setup."""

    def __init__(self, total):
        self.total, self.done, self.start = total, 0, time.monotonic()
        self.is_terminal = sys.stderr.isatty()

    def setup(self, transport, ranks):
        if not self.is_terminal:
            print(f"{transport}, {ranks} ranks", file=sys.stderr)

    def cell(self, cell):
        self.done += 1
        left = (time.monotonic() - self.start) / self.done * (self.total - self.done)
        if self.is_terminal:
            line = (f"[{self.done}/{self.total}, {left:4.0f} s left] {cell['transport']} "
                    f"{cell['ranks']:2d} ranks {cell['collective']} {size_text(cell['bytes'])}: "
                    f"{cell['best']['name']}")
            print(f"\r{line:100.100s}", end="", file=sys.stderr, flush=True)

    def end(self):
        if self.is_terminal:
            print(f"\r{'':100s}\r", end="", file=sys.stderr, flush=True)


def ratio_to_best(one, finalists):
    """The time of `one` divided by that of the fastest. The least of many equal medians would be
    too low by chance. So the fastest is determined in every other round, and compared in the
    remaining rounds."""
    ratios = []
    for half in (0, 1):
        best = min(finalists, key=lambda other: statistics.median(other["rounds_us"][half::2]))
        if one["schedule"] == best["schedule"]:
            ratios.append(1.0)
        else:
            ratios.append(statistics.median(one["rounds_us"][1 - half::2]) /
                          statistics.median(best["rounds_us"][1 - half::2]))
    return max(1.0, statistics.geometric_mean(ratios))


def judge(raw, transport, ranks, collective, size):
    """The results of a cell: the fastest candidate, and the two choices. Candidates with the same
    schedules were measured as one, so the ratio is 1 if the fastest was chosen."""
    raced = [one for one in raw["candidates"] if one["rounds_us"]]
    for one in raced:
        one["us"] = statistics.median(one["rounds_us"])
    rounds = max(len(one["rounds_us"]) for one in raced)
    finalists = [one for one in raced if len(one["rounds_us"]) == rounds]
    best = min(finalists, key=lambda one: one["us"])
    cell = {"transport": transport, "ranks": ranks, "collective": collective, "bytes": size,
            "best": {"name": best["name"], "us": best["us"]}, "rounds": rounds,
            "candidates": [[one["name"], one["us"], len(one["rounds_us"])] for one in raced]}
    for who in ("default", "tuned"):
        one = raw["candidates"][raw[who]]
        is_best = one["schedule"] == best["schedule"]
        cell[who] = {"name": one["name"], "us": one["us"], "by": raw[who + "_by"],
                     "ratio": 1.0 if is_best else ratio_to_best(one, finalists)}
    return cell


class Setup:
    """The ranks of one setup."""

    def __init__(self, chosen, driver, workdir, transport, ranks):
        self.what = f"{transport}, {ranks} ranks"
        directory = os.path.join(workdir, f"{transport}.{ranks}")
        os.makedirs(directory)
        # The driver names the algorithms, so variables of the caller must not.
        environment = {name: value for name, value in os.environ.items()
                       if not name.startswith("TUTTI_")}
        environment.update(ENVIRONMENT[transport], GLIBC_TUNABLES=settings.HEAP)
        self.errors = open(os.path.join(directory, "errors"), "w+", encoding="utf-8")
        self.processes = [subprocess.Popen(
            [driver, f"file:{directory}/store", str(rank), str(ranks), str(chosen.tune_ms * ranks),
             str(chosen.cell_ms), ",".join(chosen.collectives), ",".join(map(str, chosen.sizes))],
            env=environment, stdin=subprocess.DEVNULL, stderr=self.errors, start_new_session=True,
            stdout=subprocess.PIPE if rank == 0 else subprocess.DEVNULL)
            for rank in range(ranks)]

    def fail(self, what):
        self.errors.seek(0)
        raise Failure(f"{self.what}: {what}: {self.errors.read().strip()[-2000:] or 'no message'}")

    def lines(self, first_seconds):
        """The output of rank 0, line by line."""
        fd, text, patience = self.processes[0].stdout.fileno(), b"", first_seconds
        while True:
            if not select.select([fd], [], [], patience)[0]:
                self.fail(f"nothing happened for {patience:.0f} s")
            piece = os.read(fd, 1 << 16)
            if not piece:
                return
            *whole, text = (text + piece).split(b"\n")
            yield from whole
            patience = PATIENCE_SECONDS

    def wait(self):
        """Wait for the end of all ranks. Raises Failure if one has failed."""
        try:
            if any(process.wait(timeout=20) != 0 for process in self.processes):
                self.fail("a rank failed")
        except subprocess.TimeoutExpired:
            self.fail("a rank did not end")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for process in self.processes:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        self.processes[0].stdout.close()
        self.errors.close()


def measure_all(chosen, driver, workdir):
    agenda = [(collective, size) for collective in chosen.collectives for size in chosen.sizes]
    progress = Progress(len(agenda) * len(chosen.ranks) * len(chosen.transports))
    cells = []

    for transport in chosen.transports:
        for ranks in chosen.ranks:
            progress.setup(transport, ranks)
            with Setup(chosen, driver, workdir, transport, ranks) as setup:
                lines = setup.lines(chosen.tune_ms * ranks / 1000 + PATIENCE_SECONDS)
                for (collective, size), line in zip(agenda, lines):
                    cells.append(judge(json.loads(line), transport, ranks, collective, size))
                    progress.cell(cells[-1])
                setup.wait()
    progress.end()
    if progress.done != progress.total:
        raise Failure(f"{progress.done} of {progress.total} cells were measured")
    return cells

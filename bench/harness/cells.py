# SPDX-License-Identifier: Apache-2.0
"""The measuring itself: one cell after the other, the libraries taking turns within each."""
import math
import statistics
import sys
import time

from harness import settings, team

COLLECTIVES = ("allreduce", "allgather", "reduce_scatter", "broadcast", "alltoall", "sendrecv",
               "barrier")

# A sample is at least this long, so that the clock and short bursts of one rank do not matter.
SAMPLE_US = 150.0
ANSWER_SECONDS = 30
UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


def parse_sizes(text):
    sizes = []
    for word in text.split(","):
        number, unit = (word[:-1], word[-1].upper()) if word[-1:].isalpha() else (word, "")
        if not number.isdigit() or unit not in UNITS or int(number) * UNITS[unit] < 4:
            raise ValueError(f"{word!r} is no size: write 8, 64K or 16M; at least 4 bytes")
        sizes.append(int(number) * UNITS[unit])
    return sorted(set(sizes))


def parse_names(what, text, known):
    names = text.split(",")
    for name in names:
        if name not in known:
            raise ValueError(f"{name!r} is no {what}; known: {', '.join(known)}")
    return [name for name in known if name in names]


class Track:
    """What one entry has shown in one cell."""

    def __init__(self, entry):
        self.entry, self.estimate_us, self.rounds = entry, None, []

    def run(self, cell, nblocks, nops):
        collective, size = cell
        answers = self.entry.team.ask(
            f"run {collective} {size} {self.entry.memory} {nblocks} {nops}", ANSWER_SECONDS)
        figures = []
        for answer in answers:
            words = answer.split()
            if words[:1] != ["time"] or len(words) != 5:
                raise team.Lost(f"answered {answer!r} to run")
            figures.append([float(word) / 1000 for word in words[1:]])
        # An operation is over when the last rank has it: the slowest rank counts.
        slowest = max(figures)
        self.estimate_us = min(self.estimate_us or math.inf, max(slowest[0], 0.001))
        return dict(zip(("median", "min", "p90", "mean"), slowest))

    def slice(self, cell, slice_ms):
        nops = max(1, math.ceil(SAMPLE_US / self.estimate_us))
        nblocks = int(slice_ms * 1000 / (nops * self.estimate_us))
        self.rounds.append(self.run(cell, min(max(nblocks, 3), 2000), nops))


def check(entry, cell):
    """True if the entry has the collective and computes it rightly; raises if it is wrong."""
    if entry.contender.max_bytes is not None and cell[1] > entry.contender.max_bytes:
        return False
    answers = entry.team.ask(f"check {cell[0]} {cell[1]} {entry.memory}", ANSWER_SECONDS)
    if all(answer == "none" for answer in answers):
        return False
    for answer in answers:
        if answer != "right":
            raise team.Lost(answer)
    return True


def measure(roster, cell, chosen, fail):
    """Returns the tracks of the entries that went through all rounds."""
    tracks = []

    def attempt(entry, action):
        if entry not in roster.entries:
            return False
        try:
            return action() is not False
        except team.Lost as error:
            fail(entry, error)
            roster.drop(entry.team)
            return False

    for entry in list(roster.entries):
        track = Track(entry)
        if attempt(entry, lambda: check(entry, cell)) and \
           attempt(entry, lambda: track.run(cell, 1, 1)) and \
           attempt(entry, lambda: track.run(cell, 3, max(1, int(SAMPLE_US / track.estimate_us)))):
            tracks.append(track)
    for turn in range(chosen.rounds):
        first = turn % len(tracks) if tracks else 0
        for track in tracks[first:] + tracks[:first]:
            attempt(track.entry, lambda: track.slice(cell, chosen.slice_ms))
    return [track for track in tracks if len(track.rounds) == chosen.rounds]


def ratios_to(times, other):
    """{our library: our time / the other's}, the median of the ratios within each round."""
    if other not in times:
        return {}
    return {one["library"]: statistics.median(ours / theirs for ours, theirs in
                                              zip(one["rounds_us"], times[other]["rounds_us"]))
            for one in times.values() if one["library"] in settings.OURS}


def summarise(tracks):
    """The times of all entries, the best peer, and our ratios to it, taken round by round."""
    times = {}
    for track in tracks:
        rounds = [one["median"] for one in track.rounds]
        times[track.entry.name] = {
            "library": track.entry.library, "median_us": statistics.median(rounds),
            "mean_us": statistics.median(one["mean"] for one in track.rounds),
            "p90_us": statistics.median(one["p90"] for one in track.rounds),
            "min_us": min(one["min"] for one in track.rounds), "rounds_us": rounds}
    peers = [name for name, time_of in times.items() if time_of["library"] in settings.PEERS]
    best = min(peers, key=lambda name: times[name]["median_us"], default=None)
    return {"times": times, "best_peer": best, "ratios": ratios_to(times, best),
            "ratios_bare": ratios_to(times, "bare")}


def size_text(size):
    for unit, name in ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")):
        if size >= unit and size % unit == 0:
            return f"{size // unit} {name}"
    return f"{size} B"


def progress(start, index, count, transport, cell, summary):
    left = (time.monotonic() - start) / (index + 1) * (count - index - 1)
    line = f"[{index + 1}/{count}, {left:4.0f} s left] {transport} {cell[0]:14s} "
    line += f"{'' if cell[0] == 'barrier' else size_text(cell[1]):>8s}  "
    by_library = {}
    for one in summary["times"].values():
        known = by_library.get(one["library"], math.inf)
        by_library[one["library"]] = min(known, one["median_us"])
    line += "  ".join(f"{name} {value:.4g}" for name, value in by_library.items())
    if "tutti" in summary["ratios"]:
        line += f" us, ratio {summary['ratios']['tutti']:.2f}"
    print(line, file=sys.stderr)


def measure_all(roster, transport, chosen, results):
    agenda = [(collective, size) for collective in chosen.collectives
            for size in (chosen.sizes if collective != "barrier" else [4])]
    start = time.monotonic()

    for index, cell in enumerate(agenda):
        def fail(entry, error, cell=cell):
            print(f"{entry.name} is lost in {cell[0]} of {size_text(cell[1])}: {error}",
                  file=sys.stderr)
            results["failures"].append({"transport": transport, "library": entry.contender.library,
                                        "contender": entry.name, "collective": cell[0],
                                        "bytes": cell[1], "error": str(error)})

        summary = summarise(measure(roster, cell, chosen, fail))
        results["cells"].append({"transport": transport, "collective": cell[0],
                                 "bytes": 0 if cell[0] == "barrier" else cell[1], **summary})
        progress(start, index, len(agenda), transport, cell, summary)

# SPDX-License-Identifier: Apache-2.0
"""Measures the cells one after the other. Within a cell the libraries take turns."""
import math
import statistics

from harness import distance, settings, team
from harness.parts import LINE_BYTES, size_text

# stream: operations back to back. sync: all ranks start an operation together.
TIMINGS = ("stream", "sync")

# A sample of stream is at least this long, so that reading the clock and short bursts of one rank
# do not matter.
SAMPLE_US = 150.0
# The time between two operations of sync.
PAUSE_US = 6.0
SYNC_OPS_MAX = 4000
# If an operation takes at least this long, one operation is enough to estimate its time.
LONG_US = 2000.0
ANSWER_SECONDS = 30

# After the first round a setting continues if, in either timing, it takes at most BEHIND times as
# long as the best setting of its library, and its library at most HOPELESS times as long as the
# best peer.
BEHIND, HOPELESS = 1.5, 5.0


class Track:
    """The results of one entry in one cell."""

    def __init__(self, entry, cell, timings):
        self.entry, self.command = entry, f"{cell[0]} {entry.type} {max(cell[1], 4)} {entry.memory}"
        # The limit does not synchronize its processes, so operations back to back would drift
        # apart.
        self.timings = [timing for timing in timings
                        if timing == "sync" or entry.contender.driver != "limit"]
        self.estimates = dict.fromkeys(self.timings, math.inf)
        self.rounds = {timing: [] for timing in self.timings}

    def run(self, timing, numbers):
        answers = self.entry.team.ask(f"{timing} {self.command} {numbers}", ANSWER_SECONDS)
        figures = []
        for answer in answers:
            words = answer.split()
            if words[:1] != ["time"] or len(words) != 5:
                raise team.Lost(f"answered {answer!r} to {timing}")
            figures.append([float(word) / 1000 for word in words[1:]])
        # An operation is complete when the last rank has finished it, so the slowest rank counts.
        slowest = max(figures)
        self.estimates[timing] = min(self.estimates[timing], max(slowest[0], 0.001))
        return dict(zip(("median", "min", "p90", "mean"), slowest))

    def prime(self):
        """Run a few operations, to estimate how long one takes."""
        if "stream" in self.timings:
            self.run("stream", "1 1")
            if self.estimates["stream"] < LONG_US:
                self.run("stream", f"2 {max(1, int(SAMPLE_US / self.estimates['stream']))}")
            elif "sync" in self.timings:
                self.estimates["sync"] = self.estimates["stream"]
                return
        if "sync" in self.timings:
            self.run("sync", "2")

    def slice(self, slice_ms, meter):
        for timing in self.timings:
            estimate = self.estimates[timing]
            if timing == "stream":
                nops = max(1, math.ceil(SAMPLE_US / estimate))
                nblocks = int(slice_ms * 1000 / (nops * estimate))
                numbers = f"{min(max(nblocks, 1), 2000)} {nops}"
            else:
                nops = int(slice_ms * 500 / (estimate + PAUSE_US))
                numbers = f"{min(max(nops, 1), SYNC_OPS_MAX)}"
            figures = self.run(timing, numbers)
            self.rounds[timing].append({**figures, "distance": meter.since_last()})

    def skip(self):
        for rounds in self.rounds.values():
            rounds.append(None)

    def lacks(self, place):
        return any(distance.count(rounds, place) < distance.ENOUGH
                   for rounds in self.rounds.values())

    def was_at(self, place):
        return all(distance.count(rounds, place) > 0 for rounds in self.rounds.values())

    def first(self, timing):
        return self.rounds[timing][0]["median"] if self.rounds.get(timing) else math.inf

    def result(self, place):
        figures = {"library": self.entry.library}
        for timing, rounds in self.rounds.items():
            rounds = distance.at(rounds, place)
            valid = [one for one in rounds if one is not None]
            figures[timing] = {
                "median_us": statistics.median(one["median"] for one in valid),
                "p90_us": statistics.median(one["p90"] for one in valid),
                "min_us": min(one["min"] for one in valid),
                "rounds_us": [one and one["median"] for one in rounds]}
        return figures


def check(entry, cell):
    """True if the entry has the collective and its result is right. Raises Lost if the result is
    wrong."""
    if entry.contender.max_bytes is not None and cell[1] > entry.contender.max_bytes:
        return False
    if entry.contender.driver == "limit":
        # The variant "line" has no result to check. Up to a line it is the only variant that is
        # measured.
        is_tiny = cell[0] == "barrier" or cell[1] <= LINE_BYTES
        if is_tiny or entry.variant == "line":
            return entry.variant == "line"
    answers = entry.team.ask(f"check {cell[0]} {entry.type} {max(cell[1], 4)} {entry.memory}",
                             ANSWER_SECONDS)
    if all(answer == "none" for answer in answers):
        return False
    for answer in answers:
        if answer != "right":
            raise team.Lost(answer)
    return True


def goes_on(track, tracks):
    """True if a track is measured further after the first round."""
    library = track.entry.library
    if library == "limit":
        moves = [one for one in tracks if one.entry.library == library and
                 one.entry.variant != "line"]
        return track not in moves or any(
            track.first(timing) <= BEHIND * min(one.first(timing) for one in moves)
            for timing in track.timings)
    if library not in settings.PEERS:
        return True
    for timing in track.timings:
        peers = [one for one in tracks if one.entry.library in settings.PEERS]
        own = min(one.first(timing) for one in peers if one.entry.library == library)
        best = min(one.first(timing) for one in peers)
        if track.first(timing) <= BEHIND * own and own <= HOPELESS * best:
            return True
    return False


def measure(roster, cell, chosen, fail):
    """Returns the tracks of the entries that were not lost, and the distance of the CPUs in most of
    their rounds."""
    def attempt(entry, action):
        if entry not in roster.entries:
            return False
        try:
            return action() is not False
        except team.Lost as error:
            fail(entry, error)
            roster.drop(entry.team)
            return False

    tracks = []
    for entry in list(roster.entries):
        track = Track(entry, cell, chosen.timings)
        if track.timings and attempt(entry, lambda: check(entry, cell)) and \
           attempt(entry, track.prime):
            tracks.append(track)
    kept, running, place = list(tracks), list(tracks), None
    meter = distance.Meter(roster)
    for turn in range(chosen.rounds + distance.MORE_TURNS):
        first = turn % len(running) if running else 0
        for track in running[first:] + running[:first]:
            if turn >= chosen.rounds and not track.lacks(place):
                track.skip()
            elif not attempt(track.entry, lambda: track.slice(chosen.slice_ms, meter)):
                running.remove(track)
                kept.remove(track)
        if turn == 0:
            running = [track for track in running if goes_on(track, running)]
        if turn >= chosen.rounds - 1:
            place = distance.choose([rounds for track in running
                                     for rounds in track.rounds.values()])
            if place is None or not any(track.lacks(place) for track in running):
                break
    # An entry that was dropped early may have been measured only at another distance, so it must
    # not be the best.
    there = {track.entry.library for track in kept if track.was_at(place)}
    return [track for track in kept
            if track.was_at(place) or track.entry.library not in there], place


def measure_all(roster, part, chosen, results, progress, save):
    """Measure all cells of the part that `results` does not have yet."""
    known = {(cell["collective"], cell["bytes"]) for cell in results["cells"]}
    for cell in part.agenda():
        if cell in known:
            continue

        def fail(entry, error, cell=cell):
            progress.note(f"{entry.name} is lost in {cell[0]} of {size_text(cell[1])}: {error}")
            results["failures"].append({"library": entry.contender.library,
                                        "contender": entry.name, "collective": cell[0],
                                        "bytes": cell[1], "error": str(error)})

        tracks, place = measure(roster, cell, chosen, fail)
        times = {track.entry.name: track.result(place) for track in tracks}
        results["cells"].append({"collective": cell[0], "bytes": cell[1], "line_us": place,
                                 "times": times})
        save()
        progress.cell(part, cell, results)


def switch_us(roster):
    """The time in which a CPU switches from one waiting rank to another, or None if it was not
    measured."""
    for one in roster.teams:
        if one.contender.driver == "limit":
            answers = one.ask("switch", ANSWER_SECONDS)
            return statistics.median(float(answer.split()[1]) for answer in answers) / 1000
    return None

# SPDX-License-Identifier: Apache-2.0
"""Starts contenders. The ranks of one contender are a team. They are started once for a part, and
carry out commands that come through pipes (drivers/driver.c)."""
import os
import select
import signal
import subprocess
import sys
import time

from harness import machine, settings

START_SECONDS = 90
# A contender that fails in a cell is started again for the next cell, but at most so many times.
LOSSES_MAX = 3
# The size of the file that drivers/sync.c maps.
START_LINE_BYTES = 4 << 20


class Failure(Exception):
    """The whole comparison cannot continue."""


class Lost(Exception):
    """A team has ended, hung or given a wrong answer. The comparison continues without it."""


class Team:
    def __init__(self, contender, part, binaries, workdir):
        self.contender = contender
        self.directory = os.path.join(workdir, contender.name + "." + str(time.monotonic_ns()))
        self.processes, self.commands, self.answers = [], [], []
        self.pending, self.version = {}, ""
        os.makedirs(self.directory)
        with open(os.path.join(self.directory, "start"), "wb") as start:
            start.truncate(START_LINE_BYTES)
        self.errors = open(os.path.join(self.directory, "errors"), "w+", encoding="utf-8")
        for rank in range(contender.processes(part.ranks)):
            # This process opens both ends of each pipe, so that neither side waits for the other's
            # open.
            self.commands.append(self.pipe(f"command.{rank}"))
            self.answers.append(self.pipe(f"answer.{rank}"))
        crowded = contender.processes(part.ranks) > machine.cpus()
        kinds = {memory.split(":")[0] for memory in contender.memories}
        environment = dict(os.environ, **contender.environment, GLIBC_TUNABLES=settings.HEAP,
                           BENCH_PIN="1" if contender.pin and not crowded else "0",
                           BENCH_CROWDED="1" if crowded else "0",
                           BENCH_HEAP="1" if "heap" in kinds else "0",
                           BENCH_OWN="1" if "own" in kinds else "0",
                           BENCH_ARENA=str(part.arena_bytes()))
        for command in settings.commands(contender, binaries[contender.driver], self.directory,
                                         part.ranks):
            self.processes.append(subprocess.Popen(
                command, env=environment, cwd=self.directory, stdin=subprocess.DEVNULL,
                stdout=self.errors, stderr=self.errors, start_new_session=True))

    def pipe(self, name):
        path = os.path.join(self.directory, name)
        os.mkfifo(path)
        return os.open(path, os.O_RDWR | os.O_CLOEXEC)

    def last_words(self):
        """The last lines that the team has written to stdout and stderr."""
        self.errors.flush()
        self.errors.seek(0)
        lines = [line.strip() for line in self.errors.read().splitlines() if line.strip()]
        return "; ".join(lines[-4:]) or "it said nothing"

    def wait_ready(self):
        answers = self.collect(START_SECONDS)
        if any(not answer.startswith("ready") for answer in answers):
            raise Lost(f"answered {answers[0]!r} instead of ready")
        self.version = answers[0].removeprefix("ready").strip()

    def ask(self, line, seconds):
        """Send `line` to all ranks and return their answers."""
        for command in self.commands:
            os.write(command, (line + "\n").encode())
        return self.collect(seconds)

    def collect(self, seconds):
        deadline = time.monotonic() + seconds
        texts = {fd: b"" for fd in self.answers}
        while any(not text.endswith(b"\n") for text in texts.values()):
            open_fds = [fd for fd, text in texts.items() if not text.endswith(b"\n")]
            ready, _, _ = select.select(open_fds, [], [], 0.5)
            for fd in ready:
                texts[fd] += os.read(fd, 4096)
            if ready:
                continue
            if any(process.poll() is not None for process in self.processes):
                raise Lost(f"ended: {self.last_words()}")
            if time.monotonic() > deadline:
                raise Lost(f"gave no answer for {seconds:.0f} s")
        return [texts[fd].decode().strip() for fd in self.answers]

    def end(self, kill=False):
        if not kill:
            try:
                for command in self.commands:
                    os.write(command, b"quit\n")
                for process in self.processes:
                    process.wait(timeout=10)
            except (subprocess.TimeoutExpired, OSError):
                pass
        for process in self.processes:
            # This is done after a good end as well, because a launcher may have left ranks running.
            try:
                os.killpg(process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            process.wait()
        for fd in self.commands + self.answers:
            os.close(fd)
        self.errors.close()


class Entry:
    """A team with one kind of memory and one type. Its times are one column of the raw results."""

    def __init__(self, team, memory, element):
        self.team, self.memory, self.type, self.contender = team, memory, element, team.contender
        kind, _, self.variant = memory.partition(":")
        is_window = kind == "own" and "heap" in team.contender.memories
        window = "-window" if is_window else ""
        if element != "float32":
            self.library = element + window
        else:
            self.library = "window" if is_window else team.contender.library
        self.name = (team.contender.name + window +
                     (f"-{element}" if element != "float32" else "") +
                     (f":{self.variant}" if self.variant else ""))


class Roster:
    """All teams of one part."""

    def __init__(self, contenders, part, binaries, workdir):
        self.team_arguments = (part, binaries, workdir)
        self.teams, self.entries, self.losses, self.absent = [], [], {}, {}
        try:
            for contender in contenders:
                try:
                    self.start(contender)
                except Failure as error:
                    if contender.library == "tutti":
                        raise
                    self.absent[contender.name] = str(error)
                    print(f"{error}\n{contender.name} is left out", file=sys.stderr)
        except BaseException:
            self.__exit__()
            raise

    def start(self, contender):
        team = Team(contender, *self.team_arguments)
        try:
            team.wait_ready()
        except BaseException as error:
            words = team.last_words()
            team.end(kill=True)
            if not isinstance(error, Lost):
                raise
            raise Failure(f"{contender.name} did not start: {error}\n{words}") from error
        self.teams.append(team)
        self.entries += [Entry(team, memory, element) for memory in contender.memories
                         for element in contender.types]

    def versions(self):
        return {team.contender.library: team.version for team in self.teams if team.version}

    def drop(self, team):
        team.end(kill=True)
        self.teams.remove(team)
        self.entries = [entry for entry in self.entries if entry.team is not team]
        name = team.contender.name
        self.losses[name] = self.losses.get(name, 0) + 1
        if self.losses[name] == LOSSES_MAX:
            print(f"{name} is left out from here on", file=sys.stderr)
            return
        try:
            self.start(team.contender)
        except Failure as error:
            print(f"{error}\n{name} is left out from here on", file=sys.stderr)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for team in self.teams:
            team.end()
        self.teams = []

# SPDX-License-Identifier: Apache-2.0
"""Steps with time limits. Each step has a limit of its own, and at most the time that is left of
the whole. If a step fails, the others still run."""
import os
import signal
import subprocess
import time

TAIL_LINES = 15


class Failure(Exception):
    """A step has failed. The text is the reason, in a line."""


class TooSlow(Failure):
    """A step was ended because its time was over."""


class LeftOut(Exception):
    """A step cannot be taken here. The text is the reason."""


class Steps:
    """Runs steps, prints what happens, and keeps a record of them."""

    def __init__(self, seconds, log_path, environment):
        self.begun = time.monotonic()
        self.deadline = self.begun + seconds
        self.step_deadline = self.deadline
        self.log = open(log_path, "w", encoding="utf-8")  # pylint: disable=consider-using-with
        self.environment = dict(os.environ, **environment)
        self.record = []

    def elapsed(self):
        return time.monotonic() - self.begun

    def say(self, text):
        print(f"[{self.elapsed():5.0f} s] {text}", flush=True)
        print(f"== {text}", file=self.log, flush=True)

    def take(self, name, limit_seconds, function):
        """Take a step. Returns the result of `function`, or None if it fails."""
        begun = time.monotonic()
        self.step_deadline = min(self.deadline, begun + limit_seconds)
        result, outcome, why = None, "ok", ""
        self.say(name)
        try:
            if begun >= self.deadline:
                raise LeftOut("no time is left")
            result = function()
        except LeftOut as reason:
            outcome, why = "left out", str(reason)
        except TooSlow as reason:
            outcome, why = "too slow", str(reason)
        except Failure as reason:
            outcome, why = "failed", str(reason)
        except (OSError, ValueError, KeyError) as reason:
            outcome, why = "failed", f"{type(reason).__name__}: {reason}"
        seconds = time.monotonic() - begun
        self.record.append({"step": name, "outcome": outcome, "seconds": round(seconds, 1),
                            "why": why})
        if outcome != "ok":
            self.say(f"{name}: {outcome}: {why}")
        return result

    def is_good(self, *names):
        """True if all steps of these names were taken and succeeded."""
        outcomes = {entry["step"]: entry["outcome"] for entry in self.record}
        return all(outcomes.get(name) == "ok" for name in names)

    def named(self, *outcomes):
        """The names of the steps with one of these outcomes."""
        return [entry["step"] for entry in self.record if entry["outcome"] in outcomes]

    def left(self):
        """Seconds that are left of the present step."""
        return self.step_deadline - time.monotonic()

    def run(self, *command, limit_seconds=None, environment=None, directory=None):
        """Run a command within the step's time. Returns its output; raises Failure."""
        left = self.left()
        if left <= 0:
            raise TooSlow("no time is left")
        if limit_seconds is not None:
            left = min(left, limit_seconds)
        text = " ".join(map(str, command))
        print(f"$ {text}", file=self.log, flush=True)
        # The command gets a session of its own, so that all processes that it starts can be ended
        # with it.
        with subprocess.Popen([str(word) for word in command], stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, errors="replace",
                              env=dict(self.environment, **(environment or {})), cwd=directory,
                              start_new_session=True) as process:
            try:
                output, _ = process.communicate(timeout=left)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                output, _ = process.communicate()
                self.log.write(output)
                raise TooSlow(f"\"{text}\" took longer than {left:.0f} s") from None
        self.log.write(output)
        self.log.flush()
        if process.returncode != 0:
            for line in output.splitlines()[-TAIL_LINES:]:
                print(f"          | {line}", flush=True)
            last = (output.strip().splitlines() or [""])[-1]
            raise Failure(f"\"{text}\" ended with code {process.returncode}: {last}")
        return output

# SPDX-License-Identifier: Apache-2.0
"""Runs tutti-sim, and formats its results."""
import json
import os
import subprocess

UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


class Failure(Exception):
    """tutti-sim is missing, or it failed."""


def find(build):
    """The path of tutti-sim in a build directory."""
    path = os.path.join(build, "tools", "tutti-sim")
    if not os.access(path, os.X_OK):
        raise Failure(f"{path} does not exist: build it with cmake --preset release && "
                      "cmake --build build/release --target tutti-sim, or give another build by "
                      "--build")
    return path


def play(program, collective, machine, ranks, sizes, *more):
    """The cases of one run, as tutti-sim's JSON has them. `sizes` as for --size."""
    command = [program, collective, "--topo", machine, "--ranks", str(ranks), "--json", *more]
    if sizes:
        command += ["--size", sizes]
    # Variables that the caller has set for other programs do not apply to this machine.
    environment = {name: value for name, value in os.environ.items()
                   if not name.startswith("TUTTI_")}
    answer = subprocess.run(command, capture_output=True, text=True, env=environment)
    if answer.returncode != 0:
        raise Failure(f"{' '.join(command)}: {answer.stderr.strip()}")
    return json.loads(answer.stdout)["cases"]


def size_bytes(text):
    unit = text[-1] if text[-1].isalpha() else ""
    return int(text.removesuffix(unit)) * UNITS[unit]


def size_text(size):
    for unit in ("", "K", "M", "G"):
        if size < 1024 or unit == "G":
            return f"{size:.0f} {unit}iB" if unit else f"{size:.0f} B"
        size /= 1024
    return ""


def time_text(seconds):
    for unit, scale in (("s", 1), ("ms", 1e-3), ("us", 1e-6)):
        if seconds >= scale or unit == "us":
            return f"{seconds / scale:.3g} {unit}"
    return ""


def choice_text(case):
    options = ",".join(f"{name}={value}" for name, value in case["options"].items())
    return case["algorithm"] + (f"[{options}]" if options else "")


def table(heads, rows):
    """A table as text. A column whose head begins with '>' is aligned to the right."""
    widths = [max(len(row[i]) for row in [[head.lstrip(">") for head in heads], *rows])
              for i in range(len(heads))]
    lines = []
    for row in [[head.lstrip(">") for head in heads], *rows]:
        cells = [cell.rjust(width) if head.startswith(">") else cell.ljust(width)
                 for cell, width, head in zip(row, widths, heads)]
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines) + "\n"

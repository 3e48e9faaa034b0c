# SPDX-License-Identifier: Apache-2.0
"""Stores the results of a run in a directory: run.json with the options, and one file for each
part. The file of a part is written again after each cell, so that an interrupted run can
continue."""
import json
import os
import time

KEPT_OPTIONS = ("collectives", "sizes", "ranks", "transports", "timings", "rounds", "slice_ms",
                "keep", "all_settings", "quick", "build")


class Failure(Exception):
    pass


def rounded(value):
    """The value with five significant digits, which is more than the clock's precision."""
    if isinstance(value, float):
        return float(f"{value:.5g}")
    if isinstance(value, dict):
        return {key: rounded(one) for key, one in value.items()}
    return [rounded(one) for one in value] if isinstance(value, list) else value


def part_as_json(results):
    """The results of a part as JSON, with one line for each cell."""
    head = {key: value for key, value in results.items() if key != "cells"}
    lines = [json.dumps(rounded(cell), separators=(",", ":")) for cell in results["cells"]]
    text = json.dumps(head, indent=1).rstrip("}").rstrip()
    return text + ',\n "cells": [\n' + ",\n".join(lines) + "\n]}\n"


def write_text(path, text):
    """Write a file in one step, so that no reader sees a part of it."""
    with open(path + ".new", "w", encoding="utf-8") as file:
        file.write(text)
    os.replace(path + ".new", path)


class Run:
    def __init__(self, directory):
        self.directory, self.number = directory, None

    def path(self, name):
        return os.path.join(self.directory, name)

    def read(self, name):
        try:
            with open(self.path(name), encoding="utf-8") as file:
                return json.load(file)
        except FileNotFoundError:
            return None
        except ValueError as error:
            raise Failure(f"{self.path(name)} cannot be read: {error}") from error

    def begin(self, chosen):
        self.number = time.strftime("%Y%m%dT%H%M%S")
        os.makedirs(self.directory, exist_ok=True)
        options = {name: getattr(chosen, name) for name in KEPT_OPTIONS}
        write_text(self.path("run.json"),
                   json.dumps({"run": self.number, "options": options}, indent=1) + "\n")

    def resume(self, chosen):
        """Continue the last run, with its options."""
        known = self.read("run.json")
        if known is None:
            raise Failure(f"there is no run in {self.directory} that could continue; start one "
                          "without --resume")
        self.number = known["run"]
        for name in KEPT_OPTIONS:
            setattr(chosen, name, known["options"][name])

    def part(self, part, fresh):
        """The results that this run already has of the part, or `fresh`."""
        known = self.read(part.name + ".json")
        if known is not None and known["run"] == self.number:
            return known
        return {"part": part.name, "run": self.number, "transport": part.transport,
                "ranks": part.ranks, **fresh}

    def save(self, results):
        write_text(self.path(results["part"] + ".json"), part_as_json(results))

    def parts(self):
        """The results of all parts in the directory, of any run, in the order in which they are
        measured."""
        order = ("shm", "tcp", "types")
        names = [name for name in os.listdir(self.directory)
                 if name.endswith(".json") and name.startswith(order)]
        found = [self.read(name) for name in names]
        if not found:
            raise Failure(f"there are no results in {self.directory}")
        return sorted(found, key=lambda one: (order.index(one["transport"]), one["ranks"]))

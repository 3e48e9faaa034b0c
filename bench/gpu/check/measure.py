# SPDX-License-Identifier: Apache-2.0
"""Runs the programs on the GPU, and keeps their results. Every function adds to `results`."""
import glob
import importlib.util
import json
import os
import re
import shutil
import tempfile
from dataclasses import dataclass

from .steps import Failure, LeftOut

RANKS = 8
# Options of the trials, whose times are not used.
SMALL = ["-b", "8", "-c", "1"]


@dataclass
class Sizes:
    """The options of the programs, which say how much is measured."""
    kernels: list    # options of gpu_kernels_bench for reductions
    copies: list     # options of gpu_kernels_bench for copies
    small: list      # options of all_reduce_perf for small calls
    large: dict      # iterations of all_reduce_perf, by size
    waits: list      # options of all_reduce_perf for calls that are waited for
    graph: list      # options of all_reduce_perf for graphs
    trial: list      # options of every perf program in the trials
    trial_ranks: int # their ranks
    nccl: tuple      # largest size in bytes, factor between sizes
    sanitized: str   # largest size under compute-sanitizer


REAL = Sizes(kernels=[], copies=["--min", "64M", "--max", "1G"],
             small=["-b", "8", "-e", "16M", "-f", "8", "-n", "20", "-w", "5"],
             large={"64M": 40, "128M": 40, "256M": 30, "512M": 20, "1G": 20},
             waits=["-b", "8", "-e", "32K", "-f", "8", "-n", "100", "-w", "10", "-z", "2"],
             graph=["-b", "8", "-e", "32K", "-f", "8", "-n", "20", "--graph", "20"],
             trial=["-e", "1M", "-f", "32", "-n", "2"], trial_ranks=4, nccl=(1 << 30, 8), sanitized="64K")
TINY = Sizes(kernels=["--max", "4K", "--rounds", "2", "--sample-us", "0"],
             copies=["--max", "4K", "--rounds", "2", "--sample-us", "0"],
             small=["-b", "8", "-e", "512", "-f", "64", "-n", "1"],
             large={"8K": 2, "16K": 2},
             waits=["-b", "8", "-n", "2", "-z", "2"], graph=["-b", "8", "-n", "1", "--graph", "2"],
             trial=["-e", "512", "-f", "64", "-n", "1"], trial_ranks=2, nccl=(64, 8), sanitized="1K")


class Measuring:
    """`build` is the directory of a build. `ranks` is the number of ranks of the all-reduces."""

    def __init__(self, steps, build, sizes, ranks, results):
        self.steps, self.build, self.sizes = steps, build, sizes
        self.ranks, self.results = ranks, results

    def program(self, *parts):
        path = os.path.join(self.build, *parts)
        if not os.path.exists(path):
            raise Failure(f"{path} was not built")
        return path

    # ---- right or not ----

    def smoke(self):
        """All-reduces of more and more ranks on one GPU, each with a short limit. The later steps
        use the largest number of ranks that ends, so that none of them hangs for long."""
        works, reason = 0, None
        for ranks in sorted({2, min(self.ranks, 4), self.ranks}):
            try:
                self.steps.run(self.program("perf", "all_reduce_perf"), "--device", "gpu:0", "-t",
                               ranks, "-s", "1", "-b", "8", "-e", "8", "-n", "2", "-w", "1", "-c",
                               "1", limit_seconds=15)
                works = ranks
            except Failure as failure:
                reason = f"{ranks} ranks on a GPU: {failure}"
                break
        if works > 0:
            self.ranks = self.results["ranks"] = works
        if reason is not None:
            raise Failure(reason)
        self.steps.say(f"{works} ranks share the GPU")

    def tests(self):
        # The tests run one after the other, so that each has the GPU for itself.
        output = self.steps.run("ctest", "--test-dir", self.build, "-L", "^gpu$", "--timeout", "60",
                                "--output-on-failure", "--no-tests=error")
        found = re.search(r"\d+% tests passed.*", output)
        self.results["tests"] = found.group(0) if found else ""
        self.steps.say(self.results["tests"])

    def trials(self):
        """Every program on threads of one process, and one of them on two processes."""
        programs = sorted(glob.glob(os.path.join(self.build, "perf", "*_perf")))
        wrong = []
        for program in programs:
            try:
                self.steps.run(program, "--device", "gpu", "-s", "1", *SMALL, *self.sizes.trial,
                               "-t", min(self.ranks, self.sizes.trial_ranks), limit_seconds=30)
            except Failure as reason:
                wrong.append(os.path.basename(program))
                self.steps.say(str(reason))
                if self.steps.left() <= 0:
                    raise
        self.steps.run(self.program("perf", "all_reduce_perf"), "--device", "gpu", "--ranks", "2",
                       *SMALL, *self.sizes.trial, "-t", "1", limit_seconds=30)
        if wrong:
            raise Failure(f"{len(wrong)} of {len(programs)} programs: {', '.join(wrong)}")
        self.steps.say(f"{len(programs)} programs are right")

    def sanitizer(self, tool):
        program = shutil.which("compute-sanitizer") or "/usr/local/cuda/bin/compute-sanitizer"
        if not os.path.exists(program):
            raise LeftOut("there is no compute-sanitizer")
        command = [program, "--tool", tool, "--error-exitcode", "9"]
        self.steps.run(*command, self.program("bench", "gpu", "gpu_kernels_bench"), "--only",
                       "reduce", "--max", self.sizes.sanitized, "--factor", "64", "--rounds", "1",
                       "--sample-us", "0")
        self.steps.run(*command, self.program("perf", "all_reduce_perf"), "--device", "gpu:0", "-t",
                       "2", *SMALL, "-n", "2", "-e", self.sizes.sanitized, "-f", "64",
                       "--out-of-place")

    # ---- figures ----

    def lines(self, *command, environment=None):
        """Run a program that appends JSON lines to the file that is its last argument."""
        with tempfile.TemporaryDirectory(prefix="tutti-gpu-") as folder:
            path = os.path.join(folder, "lines")
            try:
                self.steps.run(*command, path, environment=environment)
            finally:
                found = []
                if os.path.exists(path):
                    with open(path, encoding="utf-8") as file:
                        # The last line is not complete if the time was over while it was written.
                        found = [json.loads(line) for line in file if line.endswith("}\n")]
                for line in found:
                    self.results.setdefault(line.pop("what"), []).append(line)

    def kernels(self, *arguments):
        self.lines(self.program("bench", "gpu", "gpu_kernels_bench"), *arguments, "--json")

    def empty(self):
        self.kernels("--only", "load")
        self.kernels("--only", "empty", "--threads", self.ranks)

    def reductions(self):
        self.kernels("--only", "reduce", *self.sizes.kernels)

    def perf(self, name, *arguments):
        with tempfile.TemporaryDirectory(prefix="tutti-gpu-") as folder:
            path = os.path.join(folder, "json")
            self.steps.run(self.program("perf", "all_reduce_perf"), "--device", "gpu:0", "-t",
                           self.ranks, "--out-of-place", "-c", "1", *arguments, "-J", path)
            with open(path, encoding="utf-8") as file:
                rows = json.load(file)["results"]
        self.results.setdefault(name, []).extend(
            {"bytes": row["size"], "us": row["out_of_place"]["time_us"],
             "wrong": row["out_of_place"]["wrong"]} for row in rows)

    def small(self):
        self.perf("all_reduce", "-s", "1", *self.sizes.small)

    def large(self):
        """Measure large all-reduces. Copies are measured before and after, so that the limit is
        from the same minutes. Each size is a program run of its own, so that the results of earlier
        sizes are kept if time runs out."""
        self.kernels("--only", "copy", *self.sizes.copies)
        for size, iterations in self.sizes.large.items():
            self.perf("all_reduce", "-s", "1", "-b", size, "-n", iterations, "-w", "2")
        self.kernels("--only", "copy", *self.sizes.copies)

    def waits(self):
        self.perf("all_reduce_waited_for", "-s", "1", *self.sizes.waits)
        self.perf("all_reduce_no_stream", *self.sizes.waits)

    def graph(self):
        self.perf("all_reduce_graph", *self.sizes.graph)

    def nccl(self, library=None):
        library = library or find_nccl()
        if library is None:
            raise LeftOut("there is no NCCL: neither PyTorch's nor on the linker's path")
        most, factor = self.sizes.nccl
        environment = {"NCCL_MULTI_RANK_GPU_ENABLE": "1"}
        reasons = []
        # Try fewer ranks until NCCL lets them share a GPU.
        for ranks in sorted({self.ranks, min(self.ranks, 4), 2, 1}, reverse=True):
            try:
                self.lines(self.program("bench", "gpu", "nccl_peer"), library, ranks, most, factor,
                           environment=environment)
                break
            except Failure as reason:
                reasons.append(f"{ranks} ranks: {reason}")
        self.results["nccl_refused"] = reasons
        if reasons:
            raise Failure(reasons[-1] if "nccl" not in self.results else
                          f"not with {reasons[0]}")


def find_nccl():
    """The path of PyTorch's NCCL, or of one in the usual places; None if there is none."""
    spec = importlib.util.find_spec("nvidia")
    for folder in (spec.submodule_search_locations if spec else []):
        for path in sorted(glob.glob(os.path.join(folder, "nccl", "lib", "libnccl.so.2"))):
            return path
    found = glob.glob("/usr/lib/*/libnccl.so.2") + glob.glob("/usr/local/*/lib*/libnccl.so.2")
    return found[0] if found else None

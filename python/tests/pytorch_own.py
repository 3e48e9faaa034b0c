# SPDX-License-Identifier: Apache-2.0
"""Runs PyTorch's own tests of a CPU backend, over Tutti or over Gloo.

By default these are the tests that PyTorch installs (torch.testing._internal.distributed.distributed_test). With
--rpc they are the tests of RPC that form a process group, and with --file those of a file of PyTorch's source.
There are WORLD_SIZE ranks (4 by default). The program writes how each test ended. scripts/pytorch-tests runs it
for both backends and makes the table.
"""
from __future__ import annotations

import argparse
import importlib
import importlib.util
import inspect
import json
import multiprocessing
import os
import re
import sys
import tempfile
import time
import unittest
from types import ModuleType
from typing import Any, Iterator, List, Tuple

NAME = "torch.testing._internal.distributed.distributed_test"


class SameAsOthers(str):
    """The backend's name. PyTorch skips many tests unless the name is "gloo" or "mpi", because only these two of
    its own backends can do on CPUs what the tests need. This name is equal to both."""

    def __eq__(self, other: object) -> bool:
        return str.__eq__(self, other) or other in ("gloo", "mpi")

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash("gloo")


def load_tests(backend: str) -> ModuleType:
    """Import the module of tests, which reads its settings from the environment at that moment."""
    os.environ["BACKEND"] = backend
    spec = importlib.util.find_spec(NAME)
    assert spec is not None and spec.origin is not None
    with open(spec.origin, encoding="utf-8") as file:
        source = file.read()
    line = 'BACKEND = os.environ["BACKEND"]'
    assert source.count(line) == 1, f"{spec.origin} reads its backend in another way"
    module = importlib.util.module_from_spec(spec)
    module.__dict__["SameAsOthers"] = SameAsOthers
    sys.modules[NAME] = module
    from torch.testing._internal.common_distributed import DistTestCases

    DistTestCases.backend_feature["plugin"].add("tutti")  # the backends that are not PyTorch's own
    if backend == "tutti":
        source = source.replace(line, 'BACKEND = SameAsOthers(os.environ["BACKEND"])')
    exec(compile(source, spec.origin, "exec", dont_inherit=True), module.__dict__)
    return module


def take_place_of_gloo() -> None:
    """Process groups that ask for Gloo, by name or by default, get Tutti."""
    import torch.distributed.distributed_c10d as c10d

    make_group = c10d._new_process_group_helper

    def make_group_with_tutti(size: int, rank: int, ranks: list, backend: Any, *others: Any, **named: Any) -> Any:
        asked = str(backend or "undefined")
        backend = "cpu:tutti" if asked == "undefined" else asked.replace("gloo", "tutti")
        return make_group(size, rank, ranks, backend, *others, **named)

    c10d._new_process_group_helper = make_group_with_tutti


def start_ranks_by_fork() -> None:
    """Start ranks by fork. Started in another way, each would import PyTorch again, which takes seconds."""
    from torch.testing._internal.common_distributed import MultiProcessTestCase

    def start(self: MultiProcessTestCase) -> None:
        self._start_processes(multiprocessing.get_context("fork").Process)

    MultiProcessTestCase._spawn_processes = start  # type: ignore[method-assign]


def make_suite(backend: str) -> unittest.TestSuite:
    module = load_tests(backend)

    class OverBackend(module.TestDistBackend, module.DistributedTest._DistTestBase):  # type: ignore[misc]
        def setUp(self) -> None:
            super().setUp()
            self._spawn_processes()

    return unittest.defaultTestLoader.loadTestsFromTestCase(OverBackend)


def forms_a_process_group(test: unittest.TestCase) -> bool:
    method = inspect.unwrap(getattr(test, test._testMethodName))
    return "Ddp" in type(test).__name__ or "init_process_group" in inspect.getsource(method)


def make_suite_of_rpc(backend: str) -> unittest.TestSuite:
    """The tests of RPC and distributed autograd that form a process group. They ask for Gloo's."""
    from torch.testing._internal.distributed import rpc_utils
    from torch.testing._internal.distributed.rpc.tensorpipe_rpc_agent_test_fixture import TensorPipeRpcAgentTestFixture

    if backend == "tutti":
        take_place_of_gloo()
    classes = rpc_utils.generate_tests("", TensorPipeRpcAgentTestFixture, rpc_utils.GENERIC_TESTS, __name__)
    tests = [test for kind in classes.values() for test in unittest.defaultTestLoader.loadTestsFromTestCase(kind)]
    return unittest.TestSuite(filter(forms_a_process_group, tests))


def make_suite_of_file(backend: str, path: str) -> unittest.TestSuite:
    folder, name = os.path.split(os.path.abspath(path))
    sys.path.insert(0, folder)
    if backend == "tutti":
        take_place_of_gloo()
    os.environ["BACKEND"] = "gloo"
    return unittest.defaultTestLoader.loadTestsFromModule(importlib.import_module(name.removesuffix(".py")))


def flatten(suite: unittest.TestSuite) -> Iterator[unittest.TestCase]:
    for test in suite:
        if isinstance(test, unittest.TestSuite):
            yield from flatten(test)
        else:
            yield test


class Results(unittest.TestResult):
    """Keeps (name, end, text), and shows progress."""

    def __init__(self, count: int) -> None:
        super().__init__()
        self.count, self.ended = count, []  # type: Tuple[int, List[Tuple[str, str, str, float]]]

    def startTest(self, test: unittest.TestCase) -> None:
        super().startTest(test)
        self.begun = time.monotonic()

    def note(self, test: unittest.TestCase, end: str, text: str = "") -> None:
        name = ".".join(test.id().split(".")[-2:])
        self.ended.append((name, end, text, time.monotonic() - self.begun))
        print(f"[{len(self.ended)}/{self.count}] {end:7} {name} {self.ended[-1][3]:.1f} s", flush=True)

    def addSuccess(self, test: unittest.TestCase) -> None:
        self.note(test, "passed")

    def addFailure(self, test: unittest.TestCase, err: tuple) -> None:
        self.note(test, "failed", self._exc_info_to_string(err, test))

    addError = addFailure

    def addSkip(self, test: unittest.TestCase, reason: str) -> None:
        self.note(test, "skipped", reason)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("backend", choices=("tutti", "gloo"))
    parser.add_argument("results", help="a file for them, JSON")
    parser.add_argument("--pattern", default="", help="only tests whose name it matches, a regular expression")
    parser.add_argument("--rpc", action="store_true", help="the tests of RPC that form a process group")
    parser.add_argument("--file", help="a file of tests, from PyTorch's source; by default distributed_test")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="tutti-test-") as scratch:
        os.environ.setdefault("WORLD_SIZE", "4")
        os.environ["TEMP_DIR"] = os.environ["TMPDIR"] = tempfile.tempdir = scratch
        import torch

        torch.set_num_threads(1)
        start_ranks_by_fork()
        suite = make_suite_of_file(options.backend, options.file) if options.file else \
            make_suite_of_rpc(options.backend) if options.rpc else make_suite(options.backend)
        tests = [test for test in flatten(suite) if re.search(options.pattern, test.id())]
        results = Results(len(tests))
        unittest.TestSuite(tests).run(results)
    with open(options.results, "w", encoding="utf-8") as file:
        json.dump({"backend": options.backend, "torch": torch.__version__, "ranks": int(os.environ["WORLD_SIZE"]),
                   "tests": results.ended}, file, indent=1)
    return 0


if __name__ == "__main__":
    sys.exit(main())

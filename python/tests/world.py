# SPDX-License-Identifier: Apache-2.0
"""Ranks as processes that many tests share, because importing PyTorch takes seconds.

A test sends a function of its module to all ranks. The ranks run the function with their process group.
The test gets the values that the ranks have returned, or fails with the exception of a rank.
"""
from __future__ import annotations

import importlib
import multiprocessing
import os
import sys
import tempfile
import traceback
from datetime import timedelta
from typing import Any, List, Optional

LIMIT_S = 120


def _serve(pipe: Any, rank: int, size: int, path: str, backend: str, environment: dict) -> None:
    os.environ.update(environment)
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    import torch
    import torch.distributed as dist

    torch.set_num_threads(1)
    if backend:
        dist.init_process_group(backend, init_method=f"file://{path}", rank=rank, world_size=size,
                                timeout=timedelta(seconds=60))
    pipe.send(("ready", None))
    while True:
        order = pipe.recv()
        if order is None:
            break
        module, name, arguments = order
        try:
            answer = getattr(importlib.import_module(module), name)(rank, size, *arguments)
            pipe.send(("done", answer))
        except BaseException as error:  # noqa: BLE001 - the test shows it
            pipe.send(("failed", f"{error!r}\n{traceback.format_exc()}"))
    if backend and dist.is_initialized():
        dist.destroy_process_group()
    pipe.send(("left", None))


class World:
    """`size` ranks with a process group of `backend`. With "" they have no process group."""

    def __init__(self, size: int, backend: str = "tutti", **environment: str) -> None:
        context = multiprocessing.get_context("spawn")
        self.size = size
        self._directory = tempfile.TemporaryDirectory(prefix="tutti-test-")
        path = os.path.join(self._directory.name, "store")
        self.processes, self._pipes = [], []
        for rank in range(size):
            ours, theirs = context.Pipe()
            process = context.Process(target=_serve, args=(theirs, rank, size, path, backend, environment),
                                      daemon=True)
            process.start()
            theirs.close()
            self.processes.append(process)
            self._pipes.append(ours)
        for rank in range(size):
            self._receive(rank)

    def _receive(self, rank: int) -> Any:
        if not self._pipes[rank].poll(LIMIT_S):
            raise AssertionError(f"rank {rank} has not answered within {LIMIT_S} s")
        return self._pipes[rank].recv()

    def run(self, function: Any, *arguments: Any, ranks: Optional[List[int]] = None) -> List[Any]:
        """The result of each rank."""
        asked = list(range(self.size)) if ranks is None else ranks
        for rank in asked:
            self._pipes[rank].send((function.__module__.split(".")[-1], function.__name__, arguments))
        answers = [self._receive(rank) for rank in asked]
        failures = [f"rank {rank}: {text}" for rank, (word, text) in zip(asked, answers) if word == "failed"]
        assert not failures, "\n".join(failures)
        return [answer for _, answer in answers]

    def close(self) -> None:
        for rank, process in enumerate(self.processes):
            if process.is_alive():
                try:
                    self._pipes[rank].send(None)
                except OSError:
                    pass
        for process in self.processes:
            process.join(20)
            if process.is_alive():
                process.kill()
        self._directory.cleanup()

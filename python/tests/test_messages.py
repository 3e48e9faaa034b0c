# SPDX-License-Identifier: Apache-2.0
"""Tests sends and receives of torch.distributed."""
from __future__ import annotations

import time
from datetime import timedelta
from typing import Callable

import pytest
import torch
import torch.distributed as dist

COUNTS = [0, 1, 5, 5000, 300001]


def around(rank: int, size: int) -> None:
    next_rank, before = (rank + 1) % size, (rank - 1) % size
    for count in COUNTS:
        received = torch.empty(count)
        work = dist.isend(torch.full((count,), float(rank)), next_rank)
        assert dist.recv(received, before) == before
        work.wait()
        assert torch.equal(received, torch.full((count,), float(before)))


def test_a_ring(world):
    world.run(around)


def by_tags(rank: int, size: int) -> None:
    tags = [3, 0, 7, 1000000]
    if rank == 0:
        pending = [dist.isend(torch.tensor([float(tag)]), size - 1, tag=tag) for tag in tags]
    else:
        pending = []
    if rank == size - 1:
        for tag in reversed(tags):
            received = torch.empty(1)
            dist.recv(received, 0, tag=tag)
            assert received.item() == tag
    for work in pending:
        work.wait()


def test_tags(world):
    world.run(by_tags)


def from_any(rank: int, size: int) -> None:
    if rank == 0:
        seen = []
        for _ in range(3 * (size - 1)):
            received = torch.empty(2)
            sender = dist.recv(received)
            assert received[0].item() == sender
            seen.append(sender)
        assert sorted(seen) == sorted(list(range(1, size)) * 3)
        for other in range(1, size):
            dist.send(torch.ones(1), other)
    else:
        for i in range(3):
            dist.send(torch.tensor([float(rank), float(i)]), 0)
        dist.recv(torch.empty(1), 0)


def test_from_any_source(world):
    world.run(from_any)


def batch(rank: int, size: int) -> None:
    received = [torch.empty(1000) for _ in range(size)]
    ops = []
    for other in range(size):
        if other != rank:
            ops.append(dist.P2POp(dist.isend, torch.full((1000,), float(rank)), other))
            ops.append(dist.P2POp(dist.irecv, received[other], other))
    for work in dist.batch_isend_irecv(ops):
        work.wait()
    for other in range(size):
        assert other == rank or torch.equal(received[other], torch.full((1000,), float(other)))


def test_batch(world):
    world.run(batch)


def beside_collectives(rank: int, size: int) -> None:
    received, total = torch.empty(200000), torch.ones(10)
    pending = dist.irecv(received, (rank - 1) % size)
    for _ in range(5):
        dist.all_reduce(total)
    assert not pending.is_completed()
    dist.barrier()
    sent = dist.isend(torch.full((200000,), float(rank)), (rank + 1) % size)
    pending.wait()
    sent.wait()
    assert pending.is_completed() and pending.is_success()
    assert torch.equal(received, torch.full((200000,), float((rank - 1) % size)))


def test_a_receive_waits_beside_collectives(world):
    world.run(beside_collectives)


def strided(rank: int, size: int) -> None:
    table = torch.full((4, 6), float(rank))
    work = dist.isend(table[:, 1], (rank + 1) % size)
    received = torch.zeros(4, 6)
    dist.recv(received[:, 3], (rank - 1) % size)
    work.wait()
    wanted = torch.zeros(4, 6)
    wanted[:, 3] = float((rank - 1) % size)
    assert torch.equal(received, wanted)


def test_tensors_that_are_not_contiguous(world):
    world.run(strided)


def types(rank: int, size: int) -> None:
    for dtype in (torch.bool, torch.int16, torch.complex64, torch.bfloat16, torch.float8_e4m3fn):
        sent = torch.ones(9, dtype=torch.float32).to(dtype)
        received = torch.zeros(9, dtype=torch.float32).to(dtype)
        work = dist.isend(sent, (rank + 1) % size)
        dist.recv(received, (rank - 1) % size)
        work.wait()
        assert torch.equal(received.to(torch.complex64), sent.to(torch.complex64))


def test_types(world):
    world.run(types)


def to_itself(rank: int, size: int) -> None:
    # A group of its own, so that the receive which no send matches does not wait long.
    group = dist.new_group(backend="tutti", timeout=timedelta(seconds=2))
    sent, received = torch.ones(4), torch.zeros(4)
    send, receive = dist.P2POp(dist.isend, sent, rank, group), dist.P2POp(dist.irecv, received, rank, group)
    for work in dist.batch_isend_irecv([send, receive]):
        work.wait()
    assert torch.equal(received, sent)
    works = [dist.irecv(received.zero_(), rank, group=group), dist.isend(sent, rank, group=group)]
    for work in works:
        work.wait()
    assert torch.equal(received, sent)
    with pytest.raises(ValueError, match="Invalid destination rank"):
        dist.send(sent, rank, group=group)
    with pytest.raises(dist.DistBackendError, match="Timed out"):
        dist.recv(received, rank, group=group)


def test_messages_to_oneself(pair):
    pair.run(to_itself)


def batch_after_a_failed_one(rank: int, size: int) -> None:
    sent, received = torch.ones(4), torch.zeros(4)
    with pytest.raises(RuntimeError):
        dist.batch_isend_irecv([dist.P2POp(dist.irecv, torch.zeros(1).expand(4), (rank + 1) % size)])
    for work in dist.batch_isend_irecv([dist.P2POp(dist.isend, sent, (rank + 1) % size),
                                        dist.P2POp(dist.irecv, received, (rank - 1) % size)]):
        work.wait()
    assert torch.equal(received, sent)


def test_a_batch_after_one_that_failed_is_whole(pair):
    pair.run(batch_after_a_failed_one)


def into_expanded(rank: int, size: int) -> None:
    one = torch.zeros(1)
    with pytest.raises(RuntimeError, match="more than one element of the written-to tensor"):
        dist.irecv(one.expand(4), (rank - 1) % size)
    work = dist.isend(torch.full((1,), float(rank)).expand(4), (rank + 1) % size)
    received = torch.zeros(4)
    dist.recv(received, (rank - 1) % size)
    work.wait()
    assert one.item() == 0 and torch.equal(received, torch.full((4,), float((rank - 1) % size)))


def test_an_expanded_tensor_is_sent_but_not_received_into(world):
    world.run(into_expanded)


def compute_until(is_there: Callable[[], bool]) -> None:
    """Compute in Python without a pause until the condition holds."""
    limit = time.monotonic() + 30
    while not is_there():
        assert time.monotonic() < limit, "nothing has come"


def without_wait(rank: int, size: int) -> None:
    total, received = torch.ones(300000), torch.zeros(300000)
    told = []
    dist.barrier()
    if rank == 0:
        time.sleep(0.3)  # the others' calls begin before those of this rank
    reduction = dist.all_reduce(total, async_op=True)
    reduction.get_future().then(lambda _: told.append(True))
    receipt = dist.irecv(received, (rank - 1) % size)
    sending = dist.isend(torch.full((300000,), float(rank + 1)), (rank + 1) % size)
    # Neither wait() nor is_completed(), which could do the work themselves.
    compute_until(lambda: told and total[-1].item() == size)
    compute_until(lambda: received[-1].item() == (rank - 1) % size + 1)
    assert (total == size).all() and (received == (rank - 1) % size + 1).all()
    for work in (reduction, receipt, sending):
        work.wait()


def test_operations_progress_while_python_computes(world):
    world.run(without_wait)


def idle(rank: int, size: int) -> None:
    late = size - 1
    for how in ("no wait", "wait", "a call that blocks"):
        total, received = torch.ones(1000), torch.zeros(1000)
        dist.barrier()
        if rank == late:
            time.sleep(1.5)
        began, used = time.monotonic(), time.process_time()  # of all threads of this process
        works = [dist.irecv(received, (rank - 1) % size)]
        if how == "a call that blocks":
            dist.all_reduce(total)
        else:
            works.append(dist.all_reduce(total, async_op=True))
        if how == "wait":
            works[-1].wait()
        elif how == "no wait" and rank != late:
            time.sleep(1.2)
        used, passed = time.process_time() - used, time.monotonic() - began
        assert rank == late or (passed > 1 and used < passed / 2), f"{how}: {used} s of a core in {passed} s"
        works.append(dist.isend(torch.full((1000,), float(rank)), (rank + 1) % size))
        for work in works:
            work.wait()
        assert (total == size).all() and (received == (rank - 1) % size).all()


def test_ranks_that_wait_do_not_keep_a_core_busy(world):
    world.run(idle)

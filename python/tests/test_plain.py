# SPDX-License-Identifier: Apache-2.0
"""Tests the module without PyTorch, on arrays of NumPy and others. Ranks are threads."""
from __future__ import annotations

import array
import gc
import threading
from typing import Any, Callable, List

import numpy
import pytest
import tutti

SIZES = [1, 2, 3, 5]


def run(size: int, body: Callable[[tutti.Communicator], Any], **config: Any) -> List[Any]:
    """The results of `body` for each rank. Each rank is a thread with a communicator."""
    unique_id = tutti.get_unique_id()
    answers: List[Any] = [None] * size
    failures: List[BaseException] = []

    def be(rank: int) -> None:
        try:
            with tutti.Communicator.init_rank(size, unique_id, rank, **config) as comm:
                answers[rank] = body(comm)
        except BaseException as error:  # noqa: BLE001 - raised below
            failures.append(error)

    threads = [threading.Thread(target=be, args=(rank,)) for rank in range(size)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]
    return answers


@pytest.mark.parametrize("size", SIZES)
def test_collectives(size: int) -> None:
    def body(comm: tutti.Communicator) -> None:
        rank, total = comm.rank, size * (size - 1) / 2
        mine = numpy.full(6, rank, numpy.float32)
        assert (comm.all_reduce(mine.copy()) == total).all()
        assert (comm.all_reduce(mine, numpy.empty_like(mine), "max") == size - 1).all()
        assert (comm.broadcast(mine.copy(), root=size - 1) == size - 1).all()
        gathered = comm.all_gather(mine, numpy.empty(6 * size, numpy.float32))
        assert (gathered == numpy.repeat(numpy.arange(size), 6)).all()
        part = comm.reduce_scatter(gathered, numpy.empty(6, numpy.float32))
        assert (part == rank * size).all()
        crossed = comm.all_to_all(gathered, numpy.empty_like(gathered))
        assert (crossed == rank).all()
        counts = list(range(1, size + 1))
        uneven = comm.all_gather_v(numpy.full(rank + 1, rank), numpy.empty(sum(counts), int), counts)
        assert (uneven == numpy.repeat(numpy.arange(size), counts)).all()
        part = comm.reduce_scatter_v(uneven, numpy.empty(rank + 1, int), counts, op="avg")
        assert (part == rank).all()
        recv = comm.all_to_all_v(numpy.full(sum(counts), rank), counts,
                                 numpy.empty(size * (rank + 1), int), [rank + 1] * size)
        assert (recv == numpy.repeat(numpy.arange(size), rank + 1)).all()
        whole = comm.gather(mine, numpy.empty(6 * size, numpy.float32) if rank == 0 else None)
        assert rank != 0 or (whole == gathered).all()
        assert (comm.scatter(gathered if rank == 0 else None, numpy.empty(6, numpy.float32)) == rank).all()
        places = [2 * (size - 1 - other) for other in range(size)]  # from behind, with gaps
        pieces = [min(other, 2) for other in range(size)]
        spread = numpy.full(2 * size, -1)
        whole = comm.gather_v(numpy.full(pieces[rank], rank), spread if rank == size - 1 else None,
                              pieces if rank == size - 1 else None, places, root=size - 1)
        for other in range(size if rank == size - 1 else 0):
            at = places[other]
            assert (whole[at:at + pieces[other]] == other).all() and (whole[at + pieces[other]:at + 2] == -1).all()
        part = comm.scatter_v(uneven if rank == 0 else None, numpy.empty(rank + 1, int), counts)
        assert (part == rank).all()
        result = comm.reduce(mine, numpy.empty_like(mine), "sum", root=size - 1)
        assert rank != size - 1 or (result == total).all()
        below = rank * (rank - 1) / 2
        assert (comm.scan(mine.copy()) == below + rank).all()
        assert (comm.scan(mine, numpy.empty_like(mine), "min") == 0).all()
        before = comm.exclusive_scan(mine, numpy.full_like(mine, -1))
        assert (before == (below if rank > 0 else -1)).all()
        assert (comm.exclusive_scan(mine.copy(), op="max") == max(rank - 1, 0)).all()
        with comm.pre_mul_sum(numpy.array([2.0], numpy.float32)) as op:
            assert (comm.all_reduce(mine.copy(), op=op) == 2 * total).all()
            assert (comm.scan(mine.copy(), op=op) == 2 * (below + rank)).all()
        comm.barrier()

    run(size, body)


@pytest.mark.parametrize("size", SIZES)
def test_bits_and_truth(size: int) -> None:
    def body(comm: tutti.Communicator) -> None:
        for kind in (numpy.int16, numpy.uint16, numpy.int64):
            bit = numpy.full(3, 1 << comm.rank, kind)
            assert (comm.all_reduce(bit.copy(), op="bor") == (1 << size) - 1).all()
            assert (comm.all_reduce(bit.copy(), op="bxor") == (1 << size) - 1).all()
            assert (comm.all_reduce(bit.copy(), op="band") == (1 if size == 1 else 0)).all()
            assert (comm.all_reduce(bit.copy(), op="land") == 1).all()
            assert (comm.all_reduce(bit.copy(), op="lxor") == size % 2).all()
            assert (comm.all_reduce(numpy.zeros(3, kind), op="lor") == 0).all()
        mine = numpy.array([True, comm.rank == 0, False])
        assert comm.all_reduce(mine.copy()).tolist() == [True, True, False]
        assert comm.all_reduce(mine.copy(), op="prod").tolist() == [True, size == 1, False]
        with pytest.raises(tutti.InvalidArgument, match="not defined for datatype 14"):
            comm.all_reduce(mine.copy(), op="avg")
        with pytest.raises(tutti.InvalidArgument, match="not defined for datatype 7"):
            comm.all_reduce(numpy.ones(3, numpy.float32), op="bxor")
        assert (comm.all_reduce(numpy.ones(3, numpy.float32)) == size).all()

    run(size, body)


@pytest.mark.parametrize("size", SIZES)
def test_messages_groups_and_streams(size: int) -> None:
    def body(comm: tutti.Communicator) -> None:
        rank, received = comm.rank, numpy.empty(3)
        with tutti.group():
            comm.send(numpy.full(3, float(rank)), (rank + 1) % size)
            comm.recv(received, (rank - 1) % size)
        assert (received == (rank - 1) % size).all()
        with comm.mailbox() as box:
            sent = [box.send(numpy.array([rank, tag]), (rank + 1) % size, tag) for tag in range(4)]
            for tag in reversed(range(4)):
                message = numpy.empty(2, int)
                assert box.recv(message, tag=tag).wait() == ((rank - 1) % size, tag)
                assert list(message) == [(rank - 1) % size, tag]
            for request in sent:
                request.wait()
            late = box.recv(numpy.empty(1), tag=77)
            assert not late.test() and late.wait(10) is None
            late.cancel()
            with pytest.raises(tutti.InvalidUsage, match="canceled"):
                late.wait()
            comm.barrier()
        with tutti.HostStream() as stream:
            sums = [comm.all_reduce(numpy.ones(1000), stream=stream) for _ in range(10)]
            stream.synchronize()
            assert stream.query() and all((one == size).all() for one in sums)
        child = comm.split(rank % 2, -rank)
        assert child is not None and child.size == (size + 1 - rank % 2) // 2
        child.destroy()
        assert comm.split(None) is None

    run(size, body)


def test_arrays_live_as_long_as_they_are_needed() -> None:
    def body(comm: tutti.Communicator) -> None:
        rank, size, received = comm.rank, comm.size, [numpy.empty(1000) for _ in range(8)]
        with tutti.group():
            for turn, target in enumerate(received):
                comm.send(numpy.full(1000, 10.0 * turn + rank), (rank + 1) % size)
                comm.recv(target, (rank - 1) % size)
            gc.collect()
            others = [numpy.full(1000, -1.0) for _ in range(20)]  # where freed memory would be
        for turn, target in enumerate(received):
            assert (target == 10 * turn + (rank - 1) % size).all()
        assert all((other == -1).all() for other in others)
        box = comm.mailbox()
        for tag in range(4):  # larger than messages that are sent at once; no wait
            box.send(numpy.full(50000, float(tag)), (rank + 1) % size, tag)
        gc.collect()
        others = [numpy.full(50000, -1.0) for _ in range(8)]
        comm.barrier()
        for tag in reversed(range(4)):
            target = numpy.empty(50000)
            assert box.recv(target, tag=tag).wait() == ((rank - 1) % size, tag)
            assert (target == tag).all()
        box.recv(numpy.empty(5), tag=99)  # taken back
        comm.barrier()
        box.destroy()
        assert all((other == -1).all() for other in others)

    run(3, body)


def test_queries() -> None:
    def body(comm: tutti.Communicator) -> None:
        place = comm.get_rank_info(comm.rank)
        assert (comm.size, comm.name, comm.host_count) == (3, "three", 1)
        assert (place.host, place.local_rank, place.local_count) == (0, comm.rank, 3)
        assert place.host_name and place.pid > 0
        comm.set_timeout(5000)

    run(3, body, name="three")
    assert tutti.get_version_string().startswith("0.1.0")


class OnlyDLPack:
    """An array with the interface that arrays of other libraries share."""

    def __init__(self, inner: numpy.ndarray) -> None:
        self.inner = inner

    def __dlpack__(self, **arguments: Any) -> Any:
        return self.inner.__dlpack__(**arguments)

    def __dlpack_device__(self) -> Any:
        return self.inner.__dlpack_device__()


def test_kinds_of_arrays() -> None:
    def body(comm: tutti.Communicator) -> None:
        inner = numpy.ones(4, numpy.int64)
        comm.all_reduce(OnlyDLPack(inner))
        assert (inner == 2).all()
        plain = array.array("d", [1, 2, 3])
        comm.all_reduce(plain)
        assert list(plain) == [2, 4, 6]
        raw = bytearray(b"\x01\x02")
        comm.all_reduce(raw)
        assert raw == b"\x02\x04"
        lent = tutti.empty((100, 3), "float64")
        assert lent.shape == (100, 3) and (lent == 0).all()
        lent += 1
        assert (comm.all_reduce(lent) == 2).all()
        comm.all_reduce(numpy.empty(0))

    run(2, body)
    gc.collect()


def test_mistakes_are_refused() -> None:
    def body(comm: tutti.Communicator) -> None:
        with pytest.raises(ValueError, match="not contiguous"):
            comm.all_reduce(numpy.ones((4, 4))[:, 1])
        with pytest.raises(TypeError, match="cannot be communicated"):
            comm.all_reduce(numpy.ones(2, numpy.complex64))
        with pytest.raises(TypeError, match="is no array"):
            comm.all_reduce("text")
        with pytest.raises(TypeError, match="is no array"):
            comm.all_reduce(5)
        with pytest.raises(tutti.InvalidArgument, match="op 'add' is unknown"):
            comm.all_reduce(numpy.ones(2), op="add")
        with pytest.raises(tutti.InvalidArgument, match="send has 2 elements, recv 3"):
            comm.all_reduce(numpy.ones(2), numpy.ones(3))
        with pytest.raises(tutti.InvalidArgument, match="op tuttiAvg on rank"):
            comm.scan(numpy.ones(2), op="avg")
        with pytest.raises(tutti.InvalidArgument, match="different types"):
            comm.all_reduce(numpy.ones(2), numpy.ones(2, numpy.float32))
        with pytest.raises(tutti.InvalidArgument, match="it needs 2 times"):
            comm.all_gather(numpy.ones(2), numpy.ones(3))
        with pytest.raises(tutti.InvalidArgument, match="must have 2 entries"):
            comm.all_gather_v(numpy.ones(2), numpy.ones(4), [2])
        with pytest.raises(tutti.InvalidArgument, match="the blocks need 7"):
            comm.all_to_all_v(numpy.ones(4), [2, 2], numpy.ones(4), [2, 2], recv_displs=[0, 5])
        with pytest.raises(tutti.InvalidArgument, match="negative"):
            comm.all_gather_v(numpy.ones(2), numpy.ones(4), [2, -2])
        with pytest.raises(tutti.InvalidArgument, match="recv or counts are missing on rank"):
            comm.gather_v(numpy.ones(2), numpy.ones(4), root=comm.rank)
        with pytest.raises(tutti.InvalidArgument, match="must have 2 entries"):
            comm.scatter_v(numpy.ones(2), numpy.ones(1), [1], root=comm.rank)
        with pytest.raises(tutti.InvalidArgument, match="sends itself 2 elements and receives 1"):
            comm.gather_v(numpy.ones(2), numpy.ones(4), [1, 1], root=comm.rank)
        with pytest.raises(tutti.InvalidArgument, match="peer 9 is not a rank"):
            comm.send(numpy.ones(2), 9)
        with tutti.group():
            for call in (lambda: comm.split(0), lambda: tutti.Communicator.init_all(2)):
                with pytest.raises(tutti.InvalidUsage, match="inside a group; call it outside"):
                    call()
            with pytest.raises(tutti.InvalidUsage, match="inside a group"):
                comm.mailbox()
        fixed = numpy.ones(2)
        fixed.flags.writeable = False
        with pytest.raises((tutti.InvalidArgument, ValueError), match="read-only"):
            comm.all_reduce(fixed)
        assert comm.all_reduce(numpy.ones(1))[0] == 2

    run(2, body)
    with pytest.raises(tutti.InvalidArgument, match="an id has 128 bytes"):
        tutti.Communicator.init_rank(2, b"short", 0)


def test_ranks_that_differ_are_named() -> None:
    def body(comm: tutti.Communicator) -> None:
        with pytest.raises(tutti.InvalidUsage, match="rank"):
            comm.all_reduce(numpy.ones(2 + comm.rank))
            comm.all_reduce(numpy.ones(2))

    run(2, body, timeout_ms=10000)


def test_a_deadline_is_a_timeout() -> None:
    def body(comm: tutti.Communicator) -> None:
        if comm.rank == 0:
            with pytest.raises(tutti.Timeout, match="has waited 300 ms for rank 1"):
                comm.all_reduce(numpy.ones(2))

    def late(comm: tutti.Communicator) -> None:
        comm.set_timeout(300)
        body(comm)
        done.wait(30) if comm.rank == 1 else done.set()

    done = threading.Event()
    run(2, late)

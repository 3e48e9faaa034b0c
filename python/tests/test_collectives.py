# SPDX-License-Identifier: Apache-2.0
"""Tests every collective of torch.distributed on tensors against its definition."""
from __future__ import annotations

import subprocess
import sys
import time

import pytest
import torch
import torch.distributed as dist
from torch.distributed import ReduceOp

TYPES = [torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.float16, torch.bfloat16,
         torch.float32, torch.float64]
SIZES = [0, 1, 7, 1000, 70001]


def values(rank: int, count: int, dtype: torch.dtype) -> torch.Tensor:
    """Small whole numbers: exact in every type."""
    return ((torch.arange(count) * 3 + rank * 5) % 7 + 1).to(dtype)


def equal(a: torch.Tensor, b: torch.Tensor) -> None:
    assert a.dtype == b.dtype and a.shape == b.shape and torch.equal(a, b), f"{a} is not {b}"


# ---- all-reduce ------------------------------------------------------------------------------------


def reduced(size: int, count: int, dtype: torch.dtype, op: ReduceOp) -> torch.Tensor:
    result = values(0, count, dtype)
    for rank in range(1, size):
        other = values(rank, count, dtype)
        if op == ReduceOp.PRODUCT:
            result = result * other
        elif op == ReduceOp.MIN:
            result = torch.minimum(result, other)
        elif op == ReduceOp.MAX:
            result = torch.maximum(result, other)
        elif op == ReduceOp.BAND:
            result = result & other
        elif op == ReduceOp.BOR:
            result = result | other
        elif op == ReduceOp.BXOR:
            result = result ^ other
        else:
            result = result + other
    if op == ReduceOp.AVG and dtype.is_floating_point:
        result = (result.double() / size).to(dtype)
    return result


def all_reduce(rank: int, size: int) -> None:
    for dtype in TYPES:
        ops = [ReduceOp.SUM, ReduceOp.MIN, ReduceOp.MAX, ReduceOp.PRODUCT]
        if not dtype.is_floating_point:
            ops += [ReduceOp.BAND, ReduceOp.BOR, ReduceOp.BXOR]
        for op in ops:
            for count in SIZES:
                tensor = values(rank, count, dtype)
                dist.all_reduce(tensor, op=op)
                equal(tensor, reduced(size, count, dtype, op))
    tensor = values(rank, 100, torch.float64)
    dist.all_reduce(tensor, op=ReduceOp.AVG)
    torch.testing.assert_close(tensor, reduced(size, 100, torch.float64, ReduceOp.AVG))


def test_all_reduce(world):
    world.run(all_reduce)


def logical(rank: int, size: int) -> None:
    mine = torch.tensor([False, True, rank == 0, rank != 0])
    for op, wanted in ((ReduceOp.SUM, [False, True, True, size > 1]),
                       (ReduceOp.MAX, [False, True, True, size > 1]),
                       (ReduceOp.PRODUCT, [False, True, size == 1, False]),
                       (ReduceOp.MIN, [False, True, size == 1, False]),
                       (ReduceOp.BAND, [False, True, size == 1, False]),
                       (ReduceOp.BOR, [False, True, True, size > 1]),
                       (ReduceOp.BXOR, [False, size % 2 == 1, True, size % 2 == 0])):
        tensor = mine.clone()
        dist.all_reduce(tensor, op=op)
        equal(tensor, torch.tensor(wanted))


def test_bool_is_logical(world):
    world.run(logical)


def bitwise(rank: int, size: int) -> None:
    for dtype in (torch.uint8, torch.int16, torch.int64):
        for op in (ReduceOp.BAND, ReduceOp.BOR, ReduceOp.BXOR):
            wanted = reduced(size, 3 * size, dtype, op)
            mine, part = values(rank, 3 * size, dtype), torch.empty(3, dtype=dtype)
            dist.reduce_scatter_tensor(part, mine, op=op)
            equal(part, wanted[3 * rank:3 * rank + 3])
            dist.reduce(mine, dst=size - 1, op=op)
            if rank == size - 1:
                equal(mine, wanted)
    for dtype in (torch.uint16, torch.uint32, torch.uint64):
        for op, wanted in ((ReduceOp.SUM, sum(range(size))), (ReduceOp.MAX, size - 1),
                           (ReduceOp.BOR, 3 if size > 2 else 1)):
            tensor = torch.full((5,), rank).to(dtype)
            dist.all_reduce(tensor, op=op)
            equal(tensor, torch.full((5,), wanted).to(dtype))


def test_bitwise_operations_and_unsigned_types(world):
    world.run(bitwise)


def complex_numbers(rank: int, size: int) -> None:
    tensor = torch.full((3,), complex(rank, -1), dtype=torch.complex64)
    dist.all_reduce(tensor)
    equal(tensor, torch.full((3,), complex(size * (size - 1) / 2, -size), dtype=torch.complex64))
    gathered = [torch.empty(2, dtype=torch.complex128) for _ in range(size)]
    dist.all_gather(gathered, torch.full((2,), complex(rank, 2), dtype=torch.complex128))
    for other in range(size):
        equal(gathered[other], torch.full((2,), complex(other, 2), dtype=torch.complex128))


def complex_numbers_of_16_bit_parts(rank: int, size: int) -> None:
    mine = torch.full((2 * size,), complex(rank, -1), dtype=torch.complex64).to(torch.complex32)
    wanted = torch.full((2 * size,), complex(size * (size - 1) / 2, -size), dtype=torch.complex64)
    tensor, part, of_root = mine.clone(), mine[:2].clone(), mine.clone()
    dist.all_reduce(tensor)
    dist.reduce_scatter_tensor(part, mine)
    dist.reduce(of_root, dst=0)
    for result in (tensor, part, *([of_root] if rank == 0 else [])):
        equal(result.to(torch.complex64), wanted[:result.numel()])


def test_complex(world):
    world.run(complex_numbers)
    world.run(complex_numbers_of_16_bit_parts)


def premultiplied(rank: int, size: int) -> None:
    tensor = torch.ones(5)
    op = dist._make_nccl_premul_sum(0.5 * (rank + 1))
    dist.all_reduce(tensor, op=op)
    equal(tensor, torch.full((5,), 0.25 * size * (size + 1)))


def test_premultiplied_sum(world):
    world.run(premultiplied)


def strided(rank: int, size: int) -> None:
    whole = values(rank, 60, torch.float32).reshape(10, 6)
    column, transposed = whole.clone()[:, 2], whole.clone().t()
    wanted = reduced(size, 60, torch.float32, ReduceOp.SUM).reshape(10, 6)
    dist.all_reduce(column)
    equal(column, wanted[:, 2])
    dist.all_reduce(transposed)
    equal(transposed, wanted.t())
    base = whole.clone()
    dist.broadcast(base[:, ::2], src=size - 1)
    last = values(size - 1, 60, torch.float32).reshape(10, 6)
    equal(base[:, ::2], last[:, ::2])
    equal(base[:, 1::2], whole[:, 1::2])
    output = torch.empty(6 * size, 10).t()
    dist.all_gather_into_tensor(output, whole.t().contiguous().t())
    assert output.numel() == size * 60


def test_tensors_that_are_not_contiguous(world):
    world.run(strided)


def into_expanded(rank: int, size: int) -> None:
    last, one, four = size - 1, torch.zeros(1), torch.ones(4)
    bad, bad_all, bits = one.expand(4), one.expand(4 * size), one.int().expand(4)
    bad_list, good_list = [torch.zeros(4) for _ in range(last)] + [bad], [four.clone() for _ in range(size)]
    for is_async in (False, True):
        calls = {
            "all_reduce": lambda: dist.all_reduce(bad, async_op=is_async),
            "all_reduce of bits": lambda: dist.all_reduce(bits, op=ReduceOp.BOR, async_op=is_async),
            "all_reduce_coalesced": lambda: dist.all_reduce_coalesced([four, bad], async_op=is_async),
            "all_gather": lambda: dist.all_gather(bad_list, four, async_op=is_async),
            "all_gather_into_tensor": lambda: dist.all_gather_into_tensor(bad_all, four, async_op=is_async),
            "reduce_scatter": lambda: dist.reduce_scatter(bad, good_list, async_op=is_async),
            "reduce_scatter_tensor": lambda: dist.reduce_scatter_tensor(bad, torch.ones(4 * size), async_op=is_async),
            "all_to_all": lambda: dist.all_to_all(bad_list, good_list, async_op=is_async),
            "all_to_all_single": lambda: dist.all_to_all_single(bad_all, torch.ones(4 * size), async_op=is_async),
            "scatter": lambda: dist.scatter(bad, good_list if rank == 0 else None, 0, async_op=is_async),
        }
        if rank == last:  # elsewhere the tensor is only read
            calls["reduce"] = lambda: dist.reduce(bad, last, async_op=is_async)
            calls["gather"] = lambda: dist.gather(four, bad_list, last, async_op=is_async)
        else:
            calls["broadcast"] = lambda: dist.broadcast(bad, last, async_op=is_async)
        for name, call in calls.items():
            with pytest.raises(RuntimeError, match="more than one element of the written-to tensor"):
                call()  # an async call, too: the error is not that of its wait()
                raise AssertionError(f"{name}: no exception")
    equal(one, torch.zeros(1))
    equal(four, torch.ones(4))
    # None of these calls has begun, so the ranks still agree on the next one.
    received = torch.zeros(4)
    dist.broadcast(torch.ones(1).expand(4) if rank == last else received, last)
    equal(received, torch.zeros(4) if rank == last else torch.ones(4))
    dist.reduce(received.fill_(1) if rank == last else torch.ones(1).expand(4), last)
    equal(received, torch.full((4,), float(size) if rank == last else 1.0))
    dist.all_gather(good_list, torch.full((1,), float(rank)).expand(4))
    for other in range(size):
        equal(good_list[other], torch.full((4,), float(other)))


def test_expanded_tensors_are_refused_as_results_before_the_call(world):
    world.run(into_expanded)


def sparse(rank: int, size: int) -> None:
    tensor = torch.sparse_coo_tensor([[rank, 5]], [1.0, rank], (8,))
    dist.all_reduce(tensor)
    wanted = torch.zeros(8)
    wanted[:size] += 1
    wanted[5] += size * (size - 1) / 2
    equal(tensor.to_dense(), wanted)


def test_sparse(world):
    world.run(sparse)


# ---- the other collectives ---------------------------------------------------------------------------


def moves(rank: int, size: int) -> None:
    for dtype in [*TYPES, torch.bool]:
        for count in SIZES:
            mine = values(rank, count, dtype)
            all_of_them = [values(other, count, dtype) for other in range(size)]
            flat = torch.cat(all_of_them)

            tensor = mine.clone()
            dist.broadcast(tensor, src=size - 1)
            equal(tensor, all_of_them[size - 1])

            outputs = [torch.empty_like(mine) for _ in range(size)]
            dist.all_gather(outputs, mine)
            equal(torch.cat(outputs), flat)

            output = torch.empty_like(flat)
            dist.all_gather_into_tensor(output, mine)
            equal(output, flat)

            root = count % size
            outputs = [torch.empty_like(mine) for _ in range(size)] if rank == root else None
            dist.gather(mine, outputs, dst=root)
            if rank == root:
                equal(torch.cat(outputs), flat)

            if hasattr(dist, "gather_single"):  # since PyTorch 2.15
                output = torch.empty_like(flat) if rank == root else None
                dist.gather_single(mine, output, dst=root)
                assert rank != root or torch.equal(output, flat)

            output = torch.empty_like(mine)
            dist.scatter(output, all_of_them if rank == root else None, src=root)
            equal(output, mine)

            output = torch.empty_like(flat)
            dist.all_to_all_single(output, mine.repeat(size))
            equal(output, flat)


def test_what_only_moves(world):
    world.run(moves)


def reductions_with_parts(rank: int, size: int) -> None:
    for dtype in TYPES:
        for count in (1, 6, 5003):
            wanted = reduced(size, count * size, dtype, ReduceOp.SUM).chunk(size)[rank]
            mine = values(rank, count * size, dtype)
            output = torch.empty(count, dtype=dtype)
            dist.reduce_scatter_tensor(output, mine)
            equal(output, wanted)
            output = torch.empty(count, dtype=dtype)
            dist.reduce_scatter(output, list(mine.chunk(size)))
            equal(output, wanted)
            tensor = values(rank, count, dtype)
            dist.reduce(tensor, dst=size - 1)
            if rank == size - 1:
                equal(tensor, reduced(size, count, dtype, ReduceOp.SUM))
            else:
                equal(tensor, values(rank, count, dtype))
    output = torch.empty(3, dtype=torch.int32)
    dist.reduce_scatter_tensor(output, values(rank, 3 * size, torch.int32), op=ReduceOp.BOR)
    equal(output, reduced(size, 3 * size, torch.int32, ReduceOp.BOR).chunk(size)[rank])


def test_reductions_with_parts(world):
    world.run(reductions_with_parts)


def uneven(rank: int, size: int) -> None:
    # Rank i sends j + 1 rows to rank j, each with i.
    inputs = [torch.full((other + 1, 2), float(rank)) for other in range(size)]
    outputs = [torch.empty(rank + 1, 2) for _ in range(size)]
    dist.all_to_all(outputs, inputs)
    for other in range(size):
        equal(outputs[other], torch.full((rank + 1, 2), float(other)))

    output = torch.empty(size * (rank + 1), 2)
    dist.all_to_all_single(output, torch.cat(inputs), [rank + 1] * size, [other + 1 for other in range(size)])
    equal(output, torch.cat(outputs))

    gathered = [torch.empty(other + 1) for other in range(size)]
    dist.all_gather(gathered, torch.full((rank + 1,), float(rank)))
    for other in range(size):
        equal(gathered[other], torch.full((other + 1,), float(other)))

    parts = [torch.full((other + 2,), float(rank)) for other in range(size)]
    output = torch.empty(rank + 2)
    dist.reduce_scatter(output, parts)
    equal(output, torch.full((rank + 2,), size * (size - 1) / 2))


def test_uneven_splits(world):
    world.run(uneven)


def objects(rank: int, size: int) -> None:
    gathered = [None] * size
    dist.all_gather_object(gathered, {"rank": rank, "text": "x" * rank * 1000})
    assert [thing["rank"] for thing in gathered] == list(range(size))
    box = [("from", rank)] if rank == 0 else [None]
    dist.broadcast_object_list(box, src=0)
    assert box == [("from", 0)]
    taken = [None]
    dist.scatter_object_list(taken, [f"for {other}" for other in range(size)] if rank == 0 else None, src=0)
    assert taken == [f"for {rank}"]
    gathered = [None] * size if rank == 0 else None
    dist.gather_object(rank * rank, gathered, dst=0)
    assert rank != 0 or gathered == [other * other for other in range(size)]
    if rank == 0:
        dist.send_object_list(["hello", 5], dst=size - 1)
    elif rank == size - 1:
        box = [None, None]
        assert dist.recv_object_list(box, src=0) == 0
        assert box == ["hello", 5]


def test_objects(world):
    world.run(objects)


def coalesced(rank: int, size: int) -> None:
    tensors = [values(rank, count, torch.float32) for count in (3, 100, 5)]
    dist.all_reduce_coalesced(tensors)
    for tensor, count in zip(tensors, (3, 100, 5)):
        equal(tensor, reduced(size, count, torch.float32, ReduceOp.SUM))
    tensors = [values(rank, 40, torch.float32) for _ in range(3)]
    with dist._coalescing_manager(async_ops=True) as works:
        for tensor in tensors:
            dist.all_reduce(tensor)
    works.wait()
    outputs = [torch.empty(4 * size) for _ in range(3)]
    with dist._coalescing_manager():
        for output in outputs:
            dist.all_gather_into_tensor(output, torch.full((4,), float(rank)))
    scattered = [torch.empty(2) for _ in range(3)]
    with dist._coalescing_manager():
        for output in scattered:
            dist.reduce_scatter_tensor(output, torch.ones(2 * size))
    for tensor, output, part in zip(tensors, outputs, scattered):
        equal(tensor, reduced(size, 40, torch.float32, ReduceOp.SUM))
        equal(output, torch.arange(size).repeat_interleave(4).float())
        equal(part, torch.full((2,), float(size)))


def test_coalesced(world):
    world.run(coalesced)


# ---- works -------------------------------------------------------------------------------------------


def works(rank: int, size: int) -> None:
    tensors = [values(rank, 1000 * (i + 1), torch.float32) for i in range(20)]
    pending = [dist.all_reduce(tensor, async_op=True) for tensor in tensors]
    last = torch.full((2,), float(rank))
    dist.all_reduce(last)  # waits for all that came before it
    equal(last, torch.full((2,), size * (size - 1) / 2))
    for i, work in enumerate(reversed(pending)):
        assert work.wait()
        assert work.is_completed() and work.is_success()
        count = 1000 * (20 - i)
        equal(tensors[19 - i], reduced(size, count, torch.float32, ReduceOp.SUM))
    tensor = torch.ones(3)
    future = dist.all_reduce(tensor, async_op=True).get_future().then(lambda f: f.value()[0] * 2)
    equal(future.wait(), torch.full((3,), 2.0 * size))
    work = dist.barrier(async_op=True)
    work.wait()

    def sum_again(done: torch.futures.Future) -> torch.Tensor:
        # As communication hooks of DDP do: a callback that itself communicates, and waits.
        dist.all_reduce(done.value()[0])
        return dist.all_reduce(done.value()[0], async_op=True).get_future().wait()[0]

    future = dist.all_reduce(torch.ones(3), async_op=True).get_future().then(sum_again)
    equal(future.wait(), torch.full((3,), float(size) ** 3))


def test_works_and_futures(world):
    world.run(works)


def futures_after_wait(rank: int, size: int) -> None:
    """DDP reads the value of a work's future after wait(), whether it asks for the future before or after."""
    incomplete = 0
    for i in range(400):
        work = dist.all_reduce(torch.ones(5000), async_op=True)
        early = work.get_future() if i % 2 else None
        time.sleep(i % 8 * 2e-5)  # sometimes the queue's thread is in the middle of the call
        if i % 4 < 2:
            work.wait()
        else:
            while not work.is_completed():
                pass
        incomplete += early is not None and not early.done() or not work.get_future().done()
    assert incomplete == 0
    equal(work.get_future().value()[0], torch.full((5000,), float(size)))


def test_futures_are_complete_after_wait(world):
    world.run(futures_after_wait)


def progress_alone(rank: int, size: int) -> None:
    """No thread waits for these calls or asks for their state. Some are large, and some come after a pause."""
    for count, pause in ((2, 0.1), (2, 0), (2, 0.001), (2, 0.1), (1 << 20, 0), (2, 0)):
        time.sleep(pause)
        tensors = [torch.ones(count) for _ in range(3)]
        pending = [dist.all_reduce(tensor, async_op=True) for tensor in tensors]
        until = time.monotonic() + 30
        # All elements: large calls write theirs in any order.
        while not all((tensor == size).all() for tensor in tensors) and time.monotonic() < until:
            time.sleep(1e-4)
        for tensor in tensors:
            equal(tensor, torch.full((count,), float(size)))
        assert all(work.wait() for work in pending)


def test_calls_make_progress_while_nobody_waits(world):
    world.run(progress_alone)


def functional(rank: int, size: int) -> None:
    import torch.distributed._functional_collectives as funcol

    group, each = dist.group.WORLD, list(range(size))
    mine, total = torch.full((2,), float(rank)), size * (size - 1) / 2
    equal(funcol.all_reduce(torch.ones(4), "sum", group) + 0, torch.full((4,), float(size)))
    equal(funcol.all_reduce(mine, "max", group) + 0, torch.full((2,), size - 1.0))
    equal(funcol.broadcast(mine, size - 1, group) + 0, torch.full((2,), size - 1.0))
    equal(funcol.all_gather_tensor(mine, 0, group) + 0, torch.tensor(each).repeat_interleave(2).float())
    equal(funcol.all_gather_tensor(mine.reshape(2, 1), 1, group) + 0, torch.tensor(each).float().expand(2, size) + 0)
    equal(funcol.reduce_scatter_tensor(mine.repeat(size), "sum", 0, group) + 0, torch.full((2,), total))
    equal(funcol.permute_tensor(mine, each[1:] + [0], group) + 0, torch.full((2,), float((rank - 1) % size)))
    equal(funcol.all_to_all_single(torch.arange(size) + rank, [1] * size, [1] * size, group) + 0,
          torch.arange(size) + rank)
    equal(funcol.all_to_all_single(torch.full((total_rows(size),), rank), [rank + 1] * size,
                                   [other + 1 for other in each], group) + 0,
          torch.tensor(each).repeat_interleave(rank + 1))
    for results, wanted in (
            (funcol.all_reduce_coalesced([mine, torch.ones(3)], "sum", group), [total, float(size)]),
            (funcol.reduce_scatter_tensor_coalesced([mine.repeat(size), torch.ones(3 * size)], "sum", [0, 0], group),
             [total, float(size)])):
        for result, value, count in zip(results, wanted, (2, 3)):
            equal(result + 0, torch.full((count,), value))
    tensors = [mine, torch.full((3,), float(rank))]
    for result, count in zip(funcol.all_gather_into_tensor_coalesced(tensors, group), (2, 3)):
        equal(result + 0, torch.tensor(each).repeat_interleave(count).float())


def total_rows(size: int) -> int:
    return size * (size + 1) // 2


def with_gradients(rank: int, size: int) -> None:
    import torch.distributed._functional_collectives as funcol

    tensor = torch.ones(size, requires_grad=True)
    parts = funcol.all_to_all_single_autograd(tensor * rank, [1] * size, [1] * size, dist.group.WORLD)
    (parts * (rank + 1)).sum().backward()
    equal(tensor.grad, torch.arange(1.0, size + 1) * rank)


def test_functional_collectives(world):
    world.run(functional)
    world.run(with_gradients)


def compiled(rank: int, size: int, backend: str) -> None:
    import torch.distributed._functional_collectives as funcol

    def compute(tensor: torch.Tensor) -> torch.Tensor:
        total = funcol.all_reduce(tensor * 2, "sum", dist.group.WORLD)
        rows = funcol.all_gather_tensor(total + rank, 0, dist.group.WORLD)
        return funcol.reduce_scatter_tensor(rows, "sum", 0, dist.group.WORLD).sin()

    def compute_in_place(tensor: torch.Tensor) -> torch.Tensor:
        total, rows = tensor * 2, tensor.new_empty(size * tensor.numel())
        dist.all_reduce(total)
        dist.all_gather_into_tensor(rows, total + rank)
        return rows.sin()

    tensor = torch.arange(6.0) + rank
    for function in (compute, compute_in_place):
        fast = torch.compile(function, backend=backend, fullgraph=True)
        torch.testing.assert_close(fast(tensor), function(tensor))
    torch._dynamo.reset()


@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
def test_compiled_collectives(pair, backend):
    pair.run(compiled, backend)


def operator(rank: int, size: int) -> None:
    import tutti.torch

    def double(tensor: torch.Tensor) -> torch.Tensor:
        result = tensor * 2
        tutti.torch.all_reduce_(result)
        return result + 1

    for dtype in (torch.float32, torch.bfloat16, torch.int16):
        equal(double(torch.full((300,), rank, dtype=dtype)),
              torch.full((300,), size * (size - 1) + 1, dtype=dtype))
    compiled = torch.compile(double, backend="aot_eager", fullgraph=True)
    equal(compiled(torch.full((300,), float(rank))), torch.full((300,), size * (size - 1) + 1.0))


def test_the_operator(world):
    world.run(operator)


def test_tutti_may_be_imported_before_torch():
    subprocess.run([sys.executable, "-c", "import tutti.torch, torch"], check=True, timeout=120)


def test_a_pytorch_without_torch_distributed_can_be_imported():
    program = """
import torch, torch.distributed, tutti._autoload
torch.distributed.is_available = lambda: False
tutti._autoload.register()
"""
    subprocess.run([sys.executable, "-c", program], check=True, timeout=120)


def mistakes(rank: int, size: int) -> None:
    with pytest.raises(ValueError, match="all_gather_into_tensor: .* need an output of"):
        dist.all_gather_into_tensor(torch.empty(size + 1), torch.empty(1))
    with pytest.raises(RuntimeError, match="bitwise operations need integers"):
        dist.all_reduce(torch.ones(2), op=ReduceOp.BAND)
    with pytest.raises(RuntimeError, match="cannot use ReduceOp.AVG with bool"):
        dist.all_reduce(torch.ones(2, dtype=torch.bool), op=ReduceOp.AVG)
    with pytest.raises((ValueError, RuntimeError)):
        dist.all_to_all_single(torch.empty(3), torch.empty(3), [3] + [0] * (size - 1), [5] + [0] * (size - 1))
    with pytest.raises(ValueError, match=f"the output for rank {rank} has 2 elements, .* 3"):
        dist.all_gather([torch.empty(2) for _ in range(size)], torch.empty(3))
    backend = dist.group.WORLD._get_backend(torch.device("cpu"))
    with pytest.raises(ValueError, match=f"the output for rank {rank} has 2 elements, .* 300"):
        backend.allgather_coalesced([[torch.empty(2)] for _ in range(size)], [torch.empty(300)])
    if rank == 0:
        with pytest.raises(ValueError, match="of the list has 2 elements, the single tensor 3"):
            dist.gather(torch.empty(3), [torch.empty(2) for _ in range(size)])
    dist.barrier()


def test_mistakes_cost_nothing(world):
    world.run(mistakes)

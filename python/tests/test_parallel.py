# SPDX-License-Identifier: Apache-2.0
"""Tests the features that PyTorch builds on process groups: device meshes, DTensor, FSDP, tensor and pipeline
parallelism, checkpoints.

PyTorch's own tests of them are in its source only, they are not installed. Each function here runs with four
ranks over Gloo and over Tutti, and has the same results. DTensor's numbers are whole, so that sums are exact.
"""
from __future__ import annotations

from typing import Any, Iterator, List, Tuple

import pytest
import torch
import torch.distributed as dist
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.tensor import DTensor, Partial, Replicate, Shard, distribute_tensor
from world import World


@pytest.fixture(scope="module")
def worlds() -> Iterator[Tuple[World, World]]:
    made = World(4, "gloo"), World(4, "tutti")
    yield made
    for world in made:
        world.close()


def compare(worlds: Tuple[World, World], function: Any, *arguments: Any) -> None:
    gloo, tutti = (world.run(function, *arguments) for world in worlds)
    for rank, (theirs, ours) in enumerate(zip(gloo, tutti)):
        torch.testing.assert_close(ours, theirs, msg=lambda text, rank=rank: f"rank {rank}: {text}")


def whole(*sizes: int) -> torch.Tensor:
    count = torch.Size(sizes).numel()
    return (torch.arange(count) * 7 % 11).float().reshape(sizes)


# ---- device meshes -----------------------------------------------------------------------------------


def meshes(rank: int, size: int) -> List[Any]:
    grid = init_device_mesh("cpu", (2, 2), mesh_dim_names=("rows", "columns"))
    results: List[Any] = [list(grid.get_coordinate()), grid["rows"].get_local_rank(), grid.get_local_rank("columns")]
    flat = grid._flatten("all")
    by_hand = DeviceMesh("cpu", torch.tensor([[3, 1], [2, 0]]), mesh_dim_names=("a", "b"))
    of_group = DeviceMesh.from_group(grid.get_group("columns"), "cpu")
    cube = init_device_mesh("cpu", (2, 1, 2), mesh_dim_names=("x", "y", "z"))
    groups = [grid.get_group(0), grid.get_group("columns"), flat.get_group(), by_hand.get_group("a"),
              of_group.get_group(),
              cube["x", "z"]._flatten().get_group(), cube.get_group("y"), *cube["y", "z"].get_all_groups()]
    for group in groups:
        gathered = torch.empty(group.size(), dtype=torch.int64)
        dist.all_gather_into_tensor(gathered, torch.tensor([rank]), group=group)
        results.append(gathered)
    return results


def test_device_meshes(worlds):
    compare(worlds, meshes)


# ---- DTensor -----------------------------------------------------------------------------------------


def redistributed(rank: int, size: int) -> List[torch.Tensor]:
    line = init_device_mesh("cpu", (size,))
    grid = init_device_mesh("cpu", (2, size // 2))
    results = []
    for sizes in ((8, 12), (5, 3), (1, 7), (0, 4)):  # also dimensions that are shorter than the mesh
        tensor = whole(*sizes)
        layouts = [Shard(0), Shard(1), Replicate()]
        for before in layouts:
            placed = distribute_tensor(tensor, line, [before])
            for after in layouts:
                moved = placed.redistribute(line, [after])
                results += [moved.to_local(), moved.full_tensor()]
        partial = DTensor.from_local(tensor + rank, line, [Partial()])
        for after in layouts:
            results.append(partial.redistribute(line, [after]).to_local())
        for op in ("avg", "max", "min"):
            results.append(DTensor.from_local(tensor * 4 + rank, line, [Partial(op)]).full_tensor())
        for before in ([Shard(0), Shard(1)], [Shard(0), Shard(0)], [Replicate(), Shard(1)]):
            placed = distribute_tensor(tensor, grid, before)
            for after in ([Shard(1), Shard(0)], [Replicate(), Replicate()]):
                results.append(placed.redistribute(grid, after).to_local())
    return results


def computed(rank: int, size: int) -> List[torch.Tensor]:
    line = init_device_mesh("cpu", (size,))
    a, b = whole(8, 6), whole(6, 10)
    results = []
    for left, right in ((Shard(0), Replicate()), (Shard(1), Shard(0)), (Replicate(), Shard(1))):
        x = distribute_tensor(a, line, [left]).requires_grad_()
        y = distribute_tensor(b, line, [right]).requires_grad_()
        product = x @ y
        (product * 2).sum().backward()
        results += [product.full_tensor().detach(), x.grad.full_tensor(), y.grad.full_tensor()]
    rows = distribute_tensor(a, line, [Shard(0)])
    results += [rows.sum(0).full_tensor(), rows.mean().full_tensor(), rows.amax(0).full_tensor(),
                torch.softmax(rows, 0).full_tensor(), rows.argmax().full_tensor(), rows[3].full_tensor(),
                torch.cat([rows, rows]).full_tensor(), rows.t().reshape(-1).full_tensor()]
    table = distribute_tensor(whole(11, 4), line, [Shard(0)])
    results.append(torch.nn.functional.embedding(distribute_tensor(torch.tensor([0, 8, 3, 5]), line, [Replicate()]),
                                                 table).full_tensor())
    return results


@pytest.mark.parametrize("function", [redistributed, computed])
def test_dtensor(worlds, function):
    compare(worlds, function)


# ---- FSDP --------------------------------------------------------------------------------------------


def make_model() -> torch.nn.Module:
    torch.manual_seed(3)
    return torch.nn.Sequential(torch.nn.Linear(5, 7), torch.nn.ReLU(), torch.nn.Linear(7, 3, bias=False))


def steps(model: torch.nn.Module, rank: int, count: int = 3) -> List[torch.Tensor]:
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.05, foreach=False)
    losses = []
    for step in range(count):
        torch.manual_seed(10 * step + rank)
        loss = model(torch.randn(6, 5)).square().mean()
        loss.backward()
        norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        losses += [loss.detach(), norm.full_tensor() if isinstance(norm, DTensor) else norm]
        optimizer.step()
        optimizer.zero_grad()
    return losses


def fully_sharded(rank: int, size: int, is_hybrid: bool, precision: str) -> List[torch.Tensor]:
    from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard

    mesh = init_device_mesh("cpu", (2, size // 2) if is_hybrid else (size,),
                            mesh_dim_names=("replicate", "shard") if is_hybrid else ("shard",))
    policy = MixedPrecisionPolicy() if precision == "float32" else \
        MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
    model = make_model()
    for layer in (model[0], model[2], model):
        fully_shard(layer, mesh=mesh, mp_policy=policy)
    results = steps(model, rank)
    return results + [parameter.full_tensor().detach() for parameter in model.parameters()]


@pytest.mark.parametrize("is_hybrid", [False, True])
@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_fsdp2(worlds, is_hybrid, precision):
    compare(worlds, fully_sharded, is_hybrid, precision)


def sharded_by_fsdp1(rank: int, size: int, strategy: str) -> List[Any]:
    from torch.distributed.fsdp import FullyShardedDataParallel, ShardingStrategy, StateDictType

    mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("replicate", "shard")) if "HYBRID" in strategy else None
    model = FullyShardedDataParallel(make_model(), device_id=torch.device("cpu"), device_mesh=mesh,
                                     sharding_strategy=ShardingStrategy[strategy], use_orig_params=True)
    optimizer, losses = torch.optim.SGD(model.parameters(), lr=0.1), []
    for step in range(3):
        torch.manual_seed(10 * step + rank)
        loss = model(torch.randn(6, 5)).square().mean()
        loss.backward()
        losses.append(loss.detach())
        optimizer.step()
        optimizer.zero_grad()
    with FullyShardedDataParallel.state_dict_type(model, StateDictType.FULL_STATE_DICT):
        return [losses, dict(model.state_dict())]


@pytest.mark.parametrize("strategy", ["FULL_SHARD", "SHARD_GRAD_OP", "NO_SHARD", "HYBRID_SHARD"])
def test_fsdp1(worlds, strategy):
    compare(worlds, sharded_by_fsdp1, strategy)


# ---- tensor and pipeline parallelism -----------------------------------------------------------------


def tensor_parallel(rank: int, size: int) -> List[torch.Tensor]:
    from torch.distributed.tensor.parallel import (ColwiseParallel, RowwiseParallel, SequenceParallel, loss_parallel,
                                                   parallelize_module)

    torch.manual_seed(5)
    mesh = init_device_mesh("cpu", (size,))
    model = torch.nn.Sequential(torch.nn.Embedding(16, 8), torch.nn.LayerNorm(8), torch.nn.Linear(8, 12),
                                torch.nn.ReLU(), torch.nn.Linear(12, 8), torch.nn.Linear(8, 16))
    parallelize_module(model, mesh, {
        "0": RowwiseParallel(input_layouts=Replicate(), output_layouts=Shard(1)), "1": SequenceParallel(),
        "2": ColwiseParallel(input_layouts=Shard(1)), "4": RowwiseParallel(output_layouts=Replicate()),
        "5": ColwiseParallel(output_layouts=Shard(-1), use_local_output=False)})
    tokens = torch.arange(16).reshape(2, 8) % 13
    with loss_parallel():
        loss = torch.nn.functional.cross_entropy(model(tokens).flatten(0, 1), tokens.flatten())
        loss.backward()
    return [loss.full_tensor().detach()] + [parameter.grad.full_tensor() for parameter in model.parameters()]


def test_tensor_parallel(worlds):
    compare(worlds, tensor_parallel)


def pipelined(rank: int, size: int, schedule: str) -> List[torch.Tensor]:
    from torch.distributed.pipelining import PipelineStage
    from torch.distributed.pipelining.schedules import PipelineScheduleMulti, get_schedule_class

    kind = get_schedule_class(schedule)
    per_rank = 2 if issubclass(kind, PipelineScheduleMulti) else 1
    is_v = schedule in ("ZBVZeroBubble", "DualPipeV")
    mine = [rank, 2 * size - 1 - rank] if is_v else [rank + size * turn for turn in range(per_rank)]
    stages, layers = [], []
    for index in mine:
        torch.manual_seed(index)
        layers.append(torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Tanh()))
        stages.append(PipelineStage(layers[-1], index, per_rank * size, torch.device("cpu")))
    losses: List[torch.Tensor] = []
    run = kind(stages if per_rank > 1 else stages[0], 8, loss_fn=torch.nn.functional.mse_loss)
    torch.manual_seed(100)
    inputs, targets = torch.randn(16, 4), torch.randn(16, 4)
    has_last = per_rank * size - 1 in mine
    for _ in range(2):
        run.step(*((inputs,) if rank == 0 else ()), **({"target": targets, "losses": losses} if has_last else {}))
    return [loss.detach() for loss in losses] + [parameter.grad for layer in layers for parameter in layer.parameters()]


@pytest.mark.parametrize("schedule", ["GPipe", "1F1B", "Interleaved1F1B", "InterleavedZeroBubble", "ZBVZeroBubble"])
def test_pipelines(worlds, schedule):
    compare(worlds, pipelined, schedule)


# ---- checkpoints -------------------------------------------------------------------------------------


def checkpointed(rank: int, size: int, folder: str, is_async: bool) -> List[Any]:
    import torch.distributed.checkpoint as checkpoint
    from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict
    from torch.distributed.fsdp import fully_shard

    folder = f"{folder}/{dist.get_backend()}"
    model = fully_shard(make_model(), mesh=init_device_mesh("cpu", (size,)))
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.05)
    model(torch.ones(2, 5)).sum().backward()
    optimizer.step()
    weights, state = get_state_dict(model, optimizer)
    kept = {"model": weights, "optimizer": state, "step": 7, "rank": torch.tensor([rank])}
    if is_async:
        checkpoint.async_save(kept, checkpoint_id=folder).result()
    else:
        checkpoint.save(kept, checkpoint_id=folder)
    dist.barrier()

    # Into another division of the weights.
    grid = init_device_mesh("cpu", (2, size // 2), mesh_dim_names=("replicate", "shard"))
    other = fully_shard(make_model(), mesh=grid)
    optimizer = torch.optim.AdamW(other.parameters(), lr=0.05)
    for parameter in other.parameters():
        parameter.grad = torch.zeros_like(parameter)
    optimizer.step()
    weights, state = get_state_dict(other, optimizer)
    loaded = {"model": weights, "optimizer": state, "step": 0}
    checkpoint.load(loaded, checkpoint_id=folder)
    set_state_dict(other, optimizer, model_state_dict=loaded["model"], optim_state_dict=loaded["optimizer"])
    for ours, theirs in zip(model.parameters(), other.parameters()):
        assert torch.equal(ours.full_tensor(), theirs.full_tensor())
    moments = [state["exp_avg"].full_tensor() for state in optimizer.state.values()]
    return [loaded["step"], moments, [parameter.full_tensor().detach() for parameter in other.parameters()]]


@pytest.mark.parametrize("is_async", [False, True])
def test_checkpoints(worlds, tmp_path, is_async):
    compare(worlds, checkpointed, str(tmp_path), is_async)

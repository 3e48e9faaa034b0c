#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tensor parallel training with parallelize_module, without and with sequence parallelism.

    torchrun --nproc-per-node 4 examples/pytorch/tensor_parallel.py [--backend gloo]

Each rank has some of the attention's heads and some columns of the feed-forward layers, and the ranks add
their outputs (all-reduce). With sequence parallelism each rank also keeps only its part of the sequence
between the layers: the ranks gather the sequence before a layer (all-gather), and add and divide the outputs
after it (reduce-scatter). All ranks train on the same text. The losses are compared with those of the
unsplit model.
"""
from __future__ import annotations

from typing import Any, Dict, List

from common import check_falls, check_same, loss_of, make_batch, make_model, make_optimizer, make_parser
from common import make_text, process_group, say, train_whole
from torch import nn
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.tensor import Replicate, Shard
from torch.distributed.tensor.parallel import ColwiseParallel, PrepareModuleInput, PrepareModuleOutput
from torch.distributed.tensor.parallel import RowwiseParallel, SequenceParallel, parallelize_module


def plan_of_block(sequence: bool) -> Dict[str, Any]:
    """How the parts of a layer are split."""
    plan: Dict[str, Any] = {f"attention.{name}": ColwiseParallel() for name in ("query", "key", "value")}
    plan["feed_forward.up"] = ColwiseParallel()
    outside = Shard(1) if sequence else Replicate()
    for name in ("attention.out", "feed_forward.down"):
        plan[name] = RowwiseParallel(output_layouts=outside)
    if sequence:
        plan["norm1"], plan["norm2"] = SequenceParallel(), SequenceParallel()
        for name in ("attention", "feed_forward"):
            plan[name] = PrepareModuleInput(input_layouts=Shard(1), desired_input_layouts=Replicate())
    return plan


def split(model: nn.Sequential, mesh: DeviceMesh, sequence: bool, plan: Dict[str, Any]) -> nn.Module:
    """Split the layers by a plan, and split the head. With sequence parallelism also split the output of the
    embedding."""
    embedding, *blocks, head = model
    for block in blocks:
        parallelize_module(block, mesh, plan)
    if sequence:
        parallelize_module(embedding, mesh, PrepareModuleOutput(output_layouts=Replicate(),
                                                                desired_output_layouts=Shard(1)))
        parallelize_module(head, mesh, {
            "norm": SequenceParallel(),
            "out": ColwiseParallel(input_layouts=Shard(1), output_layouts=Replicate()),
        })
    else:
        parallelize_module(head, mesh, {"out": ColwiseParallel(output_layouts=Replicate())})
    return model


def train(mesh: DeviceMesh, steps: int, sequence: bool) -> List[float]:
    model = split(make_model(), mesh, sequence, plan_of_block(sequence))
    optimizer = make_optimizer(model)
    text, losses = make_text(), []
    for step in range(steps):
        inputs, targets = make_batch(text, seed=step)
        optimizer.zero_grad()
        loss = loss_of(model(inputs), targets)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def main() -> None:
    options = make_parser(__doc__).parse_args()
    with process_group(options.backend) as (_, size):
        mesh = init_device_mesh("cpu", (size,), mesh_dim_names=("tensor",))
        expected = train_whole(options.steps, batches=1)
        for sequence in (False, True):
            say("tensor and sequence parallel:" if sequence else "tensor parallel:")
            losses = train(mesh, options.steps, sequence)
            check_falls(losses)
            check_same(losses, expected, "the unsplit model")


if __name__ == "__main__":
    main()

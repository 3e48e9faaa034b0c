#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Five kinds of parallelism at once, on a mesh of 2 x 2 x 2 ranks.

    torchrun --nproc-per-node 8 examples/pytorch/mesh_5d.py [--backend gloo]

Each dimension of the mesh divides the ranks into halves:

- Data parallelism: each half has a text of its own.
- Pipeline parallelism: each half has half of the layers.
- Tensor parallelism: each half has half of the heads and columns.

Two more kinds share these dimensions:

- Sequence parallelism: between layers, the ranks of a tensor group divide the sequence.
- Expert parallelism: the ranks of a data group have one expert each.

The losses are compared with those of one process that has the whole model and both texts.
"""
from __future__ import annotations

from typing import Any, Dict, List

import torch
import torch.distributed as dist
from common import check, check_falls, check_same, loss_of, make_batch, make_optimizer, make_parser
from common import make_text, process_group, say
from expert_parallel import make_model_of_experts
from expert_parallel import train as train_whole
from tensor_parallel import plan_of_block, split
from torch import nn
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.pipelining import PipelineStage, Schedule1F1B
from torch.distributed.tensor import DTensor, Replicate, Shard
from torch.distributed.tensor.parallel import PrepareModuleInputOutput, RowwiseParallel

PIECES = 4


def plan_of_experts() -> Dict[str, Any]:
    """As for other layers. But the router must see whole vectors of all positions, on all tensor ranks."""
    plan = plan_of_block(sequence=True)
    plan["feed_forward.experts.0.up"] = plan.pop("feed_forward.up")
    plan["feed_forward.experts.0.down"] = RowwiseParallel()
    del plan["feed_forward.down"]
    plan["feed_forward"] = PrepareModuleInputOutput(
        input_layouts=Shard(1), desired_input_layouts=Replicate(), use_local_input=True,
        output_layouts=Replicate(), desired_output_layouts=Shard(1))
    return plan


def make_part(mesh: DeviceMesh) -> nn.Module:
    """The layers, the experts, the heads and the columns of this rank."""
    layers = make_model_of_experts(mesh["data"].size())
    for block in layers[1:-1]:
        block.feed_forward.split(mesh.get_group("data"))
    split(layers, mesh["tensor"], sequence=True, plan=plan_of_experts())
    number, count = mesh.get_local_rank("pipeline"), mesh["pipeline"].size()
    return layers[number * len(layers) // count:(number + 1) * len(layers) // count]


def average_gradients(part: nn.Module, group: dist.ProcessGroup) -> None:
    """Average over the ranks that have other texts."""
    for name, weight in part.named_parameters():
        gradient = weight.grad.to_local() if isinstance(weight.grad, DTensor) else weight.grad
        # An expert has the tokens of all texts, and thus the sum of their gradients already.
        if ".experts." not in name:
            dist.all_reduce(gradient, group=group)
        gradient /= group.size()


def train(mesh: DeviceMesh, steps: int) -> List[float]:
    """The losses, which only the last ranks of pipelines know."""
    part, number, count = make_part(mesh), mesh.get_local_rank("pipeline"), mesh["pipeline"].size()
    stage = PipelineStage(part, number, count, torch.device("cpu"), group=mesh.get_group("pipeline"))
    schedule = Schedule1F1B(stage, PIECES, loss_fn=loss_of)
    optimizer, data = make_optimizer(part), mesh.get_group("data")
    text, losses = make_text(), []
    for step in range(steps):
        inputs, targets = make_batch(text, step * data.size() + data.rank())
        optimizer.zero_grad()
        if number < count - 1:
            schedule.step(inputs)
        else:
            of_pieces: List[torch.Tensor] = []
            schedule.step(target=targets, losses=of_pieces)
            loss = torch.stack(of_pieces).mean().detach()
            dist.all_reduce(loss, group=data)
            losses.append(loss.item() / data.size())
        average_gradients(part, data)
        optimizer.step()
    return losses


def main() -> None:
    options = make_parser(__doc__, steps=20).parse_args()
    with process_group(options.backend) as (_, size):
        check(size == 8, "start this with 8 ranks")
        mesh = init_device_mesh("cpu", (2, 2, 2), mesh_dim_names=("data", "pipeline", "tensor"))
        everywhere = [train(mesh, options.steps)]
        dist.broadcast_object_list(everywhere, src=size - 1)
        expected = train_whole(make_model_of_experts(2), [0, 1], 2, options.steps)
        say("2 x 2 x 2 ranks: data and expert, pipeline, tensor and sequence parallel")
        check_falls(everywhere[0])
        check_same(everywhere[0], expected, "the unsplit model")


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Fully sharded data parallel training: torch.distributed.fsdp.fully_shard.

    torchrun --nproc-per-node 4 examples/pytorch/fsdp2.py [--backend gloo]

Each rank keeps only its part of each weight, of the gradient and of the optimizer's state. The ranks gather
the weights of a layer (all-gather) before they compute it, and add and divide the gradients afterwards
(reduce-scatter). The losses are compared with those of one process that has the whole model.
"""
from __future__ import annotations

from typing import List, Tuple

from common import average, check, check_falls, check_same, loss_of, make_batch, make_model, make_optimizer
from common import make_parser, make_text, process_group, say, train_whole
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard


def shard(size: int) -> Tuple[nn.Module, int, int]:
    """The sharded model, its number of weights, and how many of them this rank keeps."""
    model = make_model()
    mesh = init_device_mesh("cpu", (size,))
    total = sum(weight.numel() for weight in model.parameters())
    # Each layer is gathered by itself; what belongs to none is gathered with the model.
    for layer in model:
        fully_shard(layer, mesh=mesh)
    fully_shard(model, mesh=mesh)
    kept = sum(weight.to_local().numel() for weight in model.parameters())
    return model, total, kept


def train(rank: int, size: int, steps: int) -> List[float]:
    model, total, kept = shard(size)
    say(f"rank 0 keeps {kept} of {total} weights")
    check(kept < 1.1 * total / size, "this rank keeps more than its part")
    optimizer = make_optimizer(model)
    text, losses = make_text(), []
    for step in range(steps):
        inputs, targets = make_batch(text, seed=step * size + rank)
        optimizer.zero_grad()
        loss = loss_of(model(inputs), targets)
        loss.backward()
        optimizer.step()
        losses.append(average(loss))
    return losses


def main() -> None:
    options = make_parser(__doc__).parse_args()
    with process_group(options.backend) as (rank, size):
        losses = train(rank, size, options.steps)
        check_falls(losses)
        check_same(losses, train_whole(options.steps, batches=size), "the unsharded model")


if __name__ == "__main__":
    main()

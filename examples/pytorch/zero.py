#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""An optimizer whose state is divided among the ranks: ZeroRedundancyOptimizer.

    torchrun --nproc-per-node 4 examples/pytorch/zero.py [--backend gloo]

DistributedDataParallel averages the gradients. Each rank keeps the optimizer's state for its part of the
weights only. It updates this part, and broadcasts it to the others. The losses are compared with those of one
process that has the whole model and the whole state.
"""
from __future__ import annotations

from typing import List

import torch
import torch.distributed as dist
from common import average, check, check_falls, check_same, loss_of, make_batch, make_model, make_parser
from common import make_text, process_group, say, train_whole
from torch.distributed.optim import ZeroRedundancyOptimizer
from torch.nn.parallel import DistributedDataParallel


def train(rank: int, size: int, steps: int) -> List[float]:
    model = DistributedDataParallel(make_model())
    optimizer = ZeroRedundancyOptimizer(model.parameters(), torch.optim.SGD, lr=0.1, momentum=0.9)
    text, losses = make_text(), []
    for step in range(steps):
        inputs, targets = make_batch(text, seed=step * size + rank)
        optimizer.zero_grad()
        loss = loss_of(model(inputs), targets)
        loss.backward()
        optimizer.step()
        losses.append(average(loss))

    momenta = sum(state["momentum_buffer"].numel() for state in optimizer.optim.state.values())
    total = sum(weight.numel() for weight in model.parameters())
    say(f"rank 0 keeps the momentum of {momenta} of {total} weights")
    check(momenta < total, "this rank keeps the whole state")
    everywhere = torch.tensor(momenta)
    dist.all_reduce(everywhere)
    check(everywhere.item() == total, "the parts of the state are not the whole")
    # A checkpoint: rank 0 collects the state of all ranks.
    optimizer.consolidate_state_dict(to=0)
    if rank == 0:
        check(len(optimizer.state_dict()["state"]) == len(list(model.parameters())), "a state is missing")
    return losses


def main() -> None:
    options = make_parser(__doc__).parse_args()
    with process_group(options.backend) as (rank, size):
        losses = train(rank, size, options.steps)
        check_falls(losses)
        check_same(losses, train_whole(options.steps, batches=size), "the undivided optimizer")


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Data parallel training with DistributedDataParallel.

    torchrun --nproc-per-node 4 examples/pytorch/ddp.py [--backend gloo] [--losses FILE]

Each rank has the whole model and trains it on text of its own. The ranks average their gradients while the
backward pass computes the next ones.

With 2 ranks the losses of Tutti are those of Gloo, bit for bit. With 4 ranks they agree to about 7 digits,
because rounding depends on the order of a sum: Tutti adds the gradients of these ranks in the order of the
ranks, and Gloo begins each part of a tensor with another rank.
"""
from __future__ import annotations

import json
from pathlib import Path
from typing import List

import torch
import torch.distributed as dist
from common import average, check, check_falls, loss_of, make_batch, make_model, make_optimizer
from common import make_parser, make_text, process_group, say
from torch.nn.parallel import DistributedDataParallel


def train(rank: int, size: int, steps: int) -> List[float]:
    # Small buckets, so that several all-reduces are under way at once.
    model = DistributedDataParallel(make_model(), bucket_cap_mb=0.1)
    optimizer = make_optimizer(model)
    text, losses = make_text(), []
    for step in range(steps):
        inputs, targets = make_batch(text, seed=step * size + rank)
        optimizer.zero_grad()
        loss = loss_of(model(inputs), targets)
        loss.backward()
        optimizer.step()
        losses.append(average(loss))
        if step % 10 == 0 or step == steps - 1:
            say(f"step {step:3}  loss {losses[-1]:.4f}")
    weights = torch.cat([weight.detach().flatten() for weight in model.parameters()])
    of_rank_0 = weights.clone()
    dist.broadcast(of_rank_0, 0)
    check(torch.equal(weights, of_rank_0), "the weights differ from those of rank 0")
    return losses


def main() -> None:
    parser = make_parser(__doc__, steps=60)
    parser.add_argument("--losses", type=Path, help="a file for the losses, as JSON")
    options = parser.parse_args()
    with process_group(options.backend) as (rank, size):
        losses = train(rank, size, options.steps)
        check_falls(losses)
        if options.losses and rank == 0:
            options.losses.write_text(json.dumps(losses), encoding="utf-8")


if __name__ == "__main__":
    main()

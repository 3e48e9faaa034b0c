#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Pipeline parallel training with torch.distributed.pipelining.

    torchrun --nproc-per-node 4 examples/pytorch/pipeline.py [--backend gloo] [--schedule gpipe]

Each rank has some layers of the model. A batch is divided into pieces. The pieces pass from rank to rank, and
their gradients pass back, by send and receive. The losses are compared with those of the unsplit model.
"""
from __future__ import annotations

from typing import List

import torch
import torch.distributed as dist
from common import check, check_falls, check_same, loss_of, make_batch, make_model, make_optimizer
from common import make_parser, make_text, process_group, say, train_whole
from torch.distributed.pipelining import PipelineStage, Schedule1F1B, ScheduleGPipe

SCHEDULES = {"1f1b": Schedule1F1B, "gpipe": ScheduleGPipe}
PIECES = 8


def train(rank: int, size: int, steps: int, schedule_name: str) -> List[float]:
    """The losses, which only the last rank knows."""
    layers = make_model()
    # The layers of this rank, of which the first and the last are the embedding and the head.
    begin, end = rank * len(layers) // size, (rank + 1) * len(layers) // size
    part = layers[begin:end]
    stage = PipelineStage(part, rank, size, torch.device("cpu"))
    schedule = SCHEDULES[schedule_name](stage, PIECES, loss_fn=loss_of)
    optimizer = make_optimizer(part)
    text, losses = make_text(), []
    for step in range(steps):
        inputs, targets = make_batch(text, seed=step, count=PIECES)
        optimizer.zero_grad()
        if rank == 0:
            schedule.step(inputs)
        elif rank < size - 1:
            schedule.step()
        else:
            of_pieces: List[torch.Tensor] = []
            schedule.step(target=targets, losses=of_pieces)
            losses.append(torch.stack(of_pieces).mean().item())
        optimizer.step()
    return losses


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("--schedule", choices=sorted(SCHEDULES), default="1f1b")
    options = parser.parse_args()
    with process_group(options.backend) as (rank, size):
        check(size <= len(make_model()), "there are fewer layers than ranks")
        everywhere = [train(rank, size, options.steps, options.schedule)]
        dist.broadcast_object_list(everywhere, src=size - 1)
        losses = everywhere[0]
        say(f"{size} stages, {PIECES} pieces, schedule {options.schedule}")
        check_falls(losses)
        check_same(losses, train_whole(options.steps, batches=1), "the unsplit model")


if __name__ == "__main__":
    main()

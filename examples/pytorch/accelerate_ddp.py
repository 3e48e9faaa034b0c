#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Data parallel training with Accelerate.

    pip install accelerate
    torchrun --nproc-per-node 2 examples/pytorch/accelerate_ddp.py [--backend gloo]

Accelerate 1.15 forms process groups on CPUs only with Gloo and MPI, and refuses other names. But it uses a
process group that exists already, so the program forms one first. The losses are compared with those of one
process that trains on the text of all ranks.
"""
from __future__ import annotations

import torch
import torch.distributed as dist
from accelerate import Accelerator
from common import check, check_falls, check_same, loss_of, make_batch, make_model, make_optimizer
from common import make_parser, make_text, process_group, train_whole


def main() -> None:
    options = make_parser(__doc__).parse_args()
    with process_group(options.backend) as (rank, size):
        accelerator = Accelerator(cpu=True)
        check(accelerator.num_processes == size, "Accelerate has not taken the process group")
        check(dist.get_backend() == options.backend, f"Accelerate has used {dist.get_backend()}")
        model = make_model()
        model, optimizer = accelerator.prepare(model, make_optimizer(model))
        check(isinstance(model, torch.nn.parallel.DistributedDataParallel), "the model is not parallel")
        text, losses = make_text(), []
        for step in range(options.steps):
            inputs, targets = make_batch(text, seed=step * size + rank)
            optimizer.zero_grad()
            loss = loss_of(model(inputs), targets)
            accelerator.backward(loss)
            optimizer.step()
            losses.append(accelerator.reduce(loss.detach(), "mean").item())
        everywhere = accelerator.gather(torch.tensor([losses[-1]]))
        check(bool((everywhere == losses[-1]).all()), "the ranks have different losses")
        check_falls(losses)
        check_same(losses, train_whole(options.steps, batches=size), "the training in one process")


if __name__ == "__main__":
    main()

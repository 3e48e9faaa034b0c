#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A training that survives the death of a rank, by checkpoints and torchrun's restarts.

    torchrun --standalone --nproc-per-node 2 --max-restarts 1 examples/pytorch/elastic.py [--backend gloo]

Rank 0 writes a checkpoint every few steps. In the first start of the program the last rank kills itself with
SIGKILL. torchrun then ends the other ranks and starts all of them again, and these continue from the
checkpoint. The losses are compared with those of a training in one process without interruption.

With --backend gloo and PyTorch 2.15 this needs torchrun's --standalone or --rdzv-backend c10d. With torchrun's
default rendezvous, Gloo's process group of the second start finds keys of the first one in the store.
"""
from __future__ import annotations

import os
import signal
import tempfile
from pathlib import Path
from typing import Any, Dict, List

import torch
from common import average, check, check_falls, check_same, loss_of, make_batch, make_model, make_optimizer
from common import make_parser, make_text, process_group, say, train_whole
from torch.nn.parallel import DistributedDataParallel

EVERY = 5


def save(state: Dict[str, Any], file: Path) -> None:
    """Replace the checkpoint at once, so that there is a whole one at all times."""
    new = file.with_suffix(".new")
    torch.save(state, new)
    os.replace(new, file)


def train(rank: int, size: int, steps: int, file: Path) -> List[float]:
    life = int(os.environ["TORCHELASTIC_RESTART_COUNT"])
    model = DistributedDataParallel(make_model())
    optimizer = make_optimizer(model)
    losses: List[float] = []
    if file.exists():
        state = torch.load(file)
        model.module.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        losses = state["losses"]
    say(f"life {life} begins with step {len(losses)}")
    check(life == 0 or len(losses) == steps // 2 // EVERY * EVERY, "this is not the newest checkpoint")
    text = make_text()
    for step in range(len(losses), steps):
        inputs, targets = make_batch(text, seed=step * size + rank)
        optimizer.zero_grad()
        loss = loss_of(model(inputs), targets)
        loss.backward()
        if life == 0 and step == steps // 2 and rank == size - 1:
            print(f"rank {rank} kills itself in step {step}", flush=True)
            os.kill(os.getpid(), signal.SIGKILL)
        optimizer.step()
        losses.append(average(loss))
        if rank == 0 and len(losses) % EVERY == 0:
            save({"model": model.module.state_dict(), "optimizer": optimizer.state_dict(), "losses": losses},
                 file)
    check(life == 1, "no rank has died")
    return losses


def main() -> None:
    parser = make_parser(__doc__)
    # The parent is torchrun, which stays while its ranks come and go.
    default = Path(tempfile.gettempdir()) / f"elastic-{os.getppid()}.checkpoint"
    parser.add_argument("--checkpoint", type=Path, default=default, help="its file, removed at the end")
    options = parser.parse_args()
    with process_group(options.backend) as (rank, size):
        losses = train(rank, size, options.steps, options.checkpoint)
        check_falls(losses)
        check_same(losses, train_whole(options.steps, batches=size), "the training without a death")
        if rank == 0:
            options.checkpoint.unlink()


if __name__ == "__main__":
    main()

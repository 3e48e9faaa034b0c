#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Data parallel training with Lightning.

    pip install lightning
    torchrun --nproc-per-node 2 examples/pytorch/lightning_ddp.py [--backend gloo]

Lightning's strategy DDPStrategy takes the name of the backend. Under torchrun Lightning starts no processes
of its own. The losses are compared with those of one process that trains on the text of all ranks.
"""
from __future__ import annotations

import logging
import os
import warnings
from typing import List, Tuple

import torch
import torch.distributed as dist
from common import average, check, check_falls, check_same, loss_of, make_batch, make_model, make_optimizer
from common import make_parser, make_text, train_whole
from lightning.pytorch import LightningModule, Trainer
from lightning.pytorch.strategies import DDPStrategy
from torch import Tensor
from torch.utils.data import DataLoader


class Model(LightningModule):
    def __init__(self) -> None:
        super().__init__()
        self.model = make_model()
        self.losses: List[float] = []

    def training_step(self, batch: Tuple[Tensor, Tensor], _: int) -> Tensor:
        inputs, targets = batch
        loss = loss_of(self.model(inputs), targets)
        self.losses.append(average(loss))
        return loss

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return make_optimizer(self)


def main() -> None:
    options = make_parser(__doc__).parse_args()
    torch.set_num_threads(1)
    logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
    warnings.filterwarnings("ignore", module="lightning")
    rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    text = make_text()
    batches = [make_batch(text, seed=step * size + rank) for step in range(options.steps)]

    trainer = Trainer(accelerator="cpu", devices=int(os.environ["LOCAL_WORLD_SIZE"]),
                      num_nodes=int(os.environ["GROUP_WORLD_SIZE"]),
                      strategy=DDPStrategy(process_group_backend=options.backend), max_epochs=1,
                      use_distributed_sampler=False, logger=False, enable_checkpointing=False,
                      enable_progress_bar=False, enable_model_summary=False)
    model = Model()
    trainer.fit(model, DataLoader(batches, batch_size=None))

    check(dist.get_backend() == options.backend, f"Lightning has used {dist.get_backend()}")
    check_falls(model.losses)
    check_same(model.losses, train_whole(options.steps, batches=size), "the training in one process")


if __name__ == "__main__":
    main()

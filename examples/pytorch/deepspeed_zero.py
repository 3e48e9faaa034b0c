#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""DeepSpeed's ZeRO, stages 1 to 3.

    pip install deepspeed
    torchrun --nproc-per-node 2 examples/pytorch/deepspeed_zero.py [--backend gloo] [--stages 1,2,3]

The ranks divide the state of the optimizer (stage 1), the gradients as well (stage 2), and the weights as well
(stage 3). deepspeed.init_distributed takes the name of the backend. The losses are compared with those of one
process that has the whole model and state, and trains on the text of all ranks.
"""
from __future__ import annotations

import os
from typing import List

os.environ.setdefault("DS_ACCELERATOR", "cpu")

import deepspeed
import torch
import torch.distributed as dist
from common import average, check, check_falls, check_same, loss_of, make_batch, make_model, make_optimizer
from common import make_parser, make_text, say, train_whole


def train(stage: int, steps: int) -> List[float]:
    rank, size = dist.get_rank(), dist.get_world_size()
    model = make_model()
    config = {
        "train_micro_batch_size_per_gpu": 8,
        "zero_optimization": {"stage": stage},
        "zero_allow_untested_optimizer": True,
        "gradient_clipping": 0.0,
    }
    engine, _, _, _ = deepspeed.initialize(model=model, optimizer=make_optimizer(model), config=config)
    text, losses = make_text(), []
    for step in range(steps):
        inputs, targets = make_batch(text, seed=step * size + rank)
        loss = loss_of(engine(inputs), targets)
        engine.backward(loss)
        engine.step()
        losses.append(average(loss))
    engine.destroy()
    return losses


def main() -> None:
    parser = make_parser(__doc__, steps=20)
    parser.add_argument("--stages", default="1,2,3")
    options = parser.parse_args()
    torch.set_num_threads(1)
    deepspeed.logger.setLevel("ERROR")
    # Without this, DeepSpeed compiles an all-reduce of its own. That takes a minute and serves only inference.
    deepspeed.ops.__compatible_ops__["deepspeed_shm_comm"] = False
    deepspeed.init_distributed(dist_backend=options.backend)
    check(dist.get_backend() == options.backend, f"DeepSpeed has used {dist.get_backend()}")
    expected = train_whole(options.steps, batches=dist.get_world_size())
    for stage in map(int, options.stages.split(",")):
        say(f"stage {stage}:")
        losses = train(stage, options.steps)
        check_falls(losses)
        check_same(losses, expected, "the training in one process")
    deepspeed.comm.destroy_process_group()


if __name__ == "__main__":
    main()

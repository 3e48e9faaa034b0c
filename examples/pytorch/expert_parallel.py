#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Expert parallel training: a mixture of experts whose tokens travel by all_to_all_single.

    torchrun --nproc-per-node 4 examples/pytorch/expert_parallel.py [--backend gloo]

Each rank has one expert of each layer and a text of its own. A router chooses the expert of each token, so
that the ranks send parts of different sizes, and learn these sizes from a first exchange. The gradients
travel back the same way. The losses are compared with those of one process that has all experts.
"""
from __future__ import annotations

from typing import Any, List, Optional, Tuple

import torch
import torch.distributed as dist
from common import FeedForward, average, check, check_falls, check_same, loss_of, make_batch, make_model
from common import make_optimizer, make_parser, make_text, process_group, say
from torch import Tensor, nn


class Exchange(torch.autograd.Function):
    """Send each rank its part of the rows; the gradients of the rows that arrive travel back."""

    @staticmethod
    def forward(ctx: Any, rows: Tensor, sent: List[int], received: List[int],
                group: Optional[dist.ProcessGroup]) -> Tensor:
        ctx.sent, ctx.received, ctx.group = sent, received, group
        arrived = rows.new_empty(sum(received), rows.shape[1])
        dist.all_to_all_single(arrived, rows.contiguous(), received, sent, group=group)
        return arrived

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tuple[Tensor, None, None, None]:
        return Exchange.apply(gradient, ctx.received, ctx.sent, ctx.group), None, None, None


class Experts(nn.Module):
    """A feed-forward layer with several experts. All are here until `split` leaves each rank its own."""

    def __init__(self, width: int, count: int) -> None:
        super().__init__()
        self.count, self.is_split, self.group = count, False, None
        self.router = nn.Linear(width, count)
        self.experts = nn.ModuleList(FeedForward(width) for _ in range(count))

    def split(self, group: Optional[dist.ProcessGroup] = None) -> None:
        self.is_split, self.group = True, group
        self.experts = nn.ModuleList([self.experts[dist.get_rank(group)]])

    def forward(self, x: Tensor) -> Tensor:
        rows = x.flatten(0, 1)
        likelihood, choice = self.router(rows).softmax(-1).max(-1)
        order, counts = choice.argsort(stable=True), choice.bincount(minlength=self.count)
        results = (self._ask_ranks if self.is_split else self._ask_all)(rows[order], counts)
        results = torch.empty_like(results).index_copy(0, order, results)
        return (likelihood.unsqueeze(-1) * results).view_as(x)

    def _ask_all(self, rows: Tensor, counts: Tensor) -> Tensor:
        parts = rows.split(counts.tolist())
        return torch.cat([expert(part) for expert, part in zip(self.experts, parts)])

    def _ask_ranks(self, rows: Tensor, counts: Tensor) -> Tensor:
        counts_here = torch.empty_like(counts)
        dist.all_to_all_single(counts_here, counts, group=self.group)
        sent, received = counts.tolist(), counts_here.tolist()
        arrived = Exchange.apply(rows, sent, received, self.group)
        return Exchange.apply(self.experts[0](arrived), received, sent, self.group)


def make_model_of_experts(count: int) -> nn.Sequential:
    model = make_model()
    for block in model[1:-1]:
        block.feed_forward = Experts(block.norm2.normalized_shape[0], count)
    return model


def train(model: nn.Module, batches: List[int], total: int, steps: int) -> List[float]:
    """Train on some of `total` batches in each step; the other ranks, if any, train on the others."""
    optimizer = make_optimizer(model)
    text, losses = make_text(), []
    for step in range(steps):
        pieces = [make_batch(text, step * total + number) for number in batches]
        inputs, targets = (torch.cat(parts) for parts in zip(*pieces))
        optimizer.zero_grad()
        loss = loss_of(model(inputs), targets)
        loss.backward()
        if len(batches) < total:
            for name, weight in model.named_parameters():
                # An expert has the tokens of all ranks, and thus the sum of their gradients already.
                if ".experts." not in name:
                    dist.all_reduce(weight.grad)
                weight.grad /= total
        optimizer.step()
        losses.append(average(loss))
    return losses


def main() -> None:
    options = make_parser(__doc__).parse_args()
    with process_group(options.backend) as (rank, size):
        check(size > 1, "start this with 2 ranks or more")
        expected = train(make_model_of_experts(size), list(range(size)), size, options.steps)
        model = make_model_of_experts(size)
        for block in model[1:-1]:
            block.feed_forward.split()
        losses = train(model, [rank], size, options.steps)
        say(f"{size} experts per layer, one on each rank")
        check_falls(losses)
        check_same(losses, expected, "the unsplit layers")


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""An asynchronous parameter server, by send and receive from any rank.

    torchrun --nproc-per-node 4 examples/pytorch/parameter_server.py [--backend gloo]

Rank 0 keeps the weights. The other ranks compute gradients and send them. Rank 0 receives from whichever
rank comes first, updates the weights and sends them back to that rank, so that no rank waits for another.
The order of the updates, and thus the last digits of the loss, differ from run to run.
"""
from __future__ import annotations

from typing import List

import torch
import torch.distributed as dist
from common import check, check_falls, loss_of, make_batch, make_model, make_parser, make_text
from common import process_group, say
from torch.nn.utils import parameters_to_vector, vector_to_parameters

SERVER = 0


def serve(updates: int, size: int) -> List[float]:
    """Take the updates of all workers; returns their losses in the order of arrival."""
    model = make_model()
    # Gradients of weights that are no longer the newest and momentum make a training unstable.
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    weights = list(model.parameters())
    # A message holds the gradients and, as its last element, the loss.
    message = torch.empty(sum(weight.numel() for weight in weights) + 1)
    losses, of_ranks = [], [0] * size
    for _ in range(updates):
        worker = dist.recv(message)
        of_ranks[worker] += 1
        losses.append(message[-1].item())
        gradients = message[:-1].split([weight.numel() for weight in weights])
        for weight, gradient in zip(weights, gradients):
            weight.grad = gradient.view_as(weight).clone()
        optimizer.step()
        dist.send(parameters_to_vector(weights).detach(), worker)
    say(f"updates of ranks 1 to {size - 1}: {of_ranks[1:]}")
    check(of_ranks == [0] + [updates // (size - 1)] * (size - 1), "updates are missing")
    return losses


def work(rank: int, size: int, steps: int) -> None:
    model = make_model()
    weights = list(model.parameters())
    newest = parameters_to_vector(weights).detach()
    text = make_text()
    for step in range(steps):
        inputs, targets = make_batch(text, seed=step * size + rank)
        model.zero_grad()
        loss = loss_of(model(inputs), targets)
        loss.backward()
        gradients = parameters_to_vector(weight.grad for weight in weights)
        dist.send(torch.cat([gradients, loss.detach().view(1)]), SERVER)
        dist.recv(newest, SERVER)
        vector_to_parameters(newest, weights)


def main() -> None:
    options = make_parser(__doc__).parse_args()
    with process_group(options.backend) as (rank, size):
        check(size > 1, "start this with 2 ranks or more")
        if rank == SERVER:
            losses = torch.tensor(serve(options.steps * (size - 1), size))
            check_falls(losses.view(-1, size - 1).mean(1).tolist())
        else:
            work(rank, size, options.steps)
        dist.barrier()


if __name__ == "__main__":
    main()

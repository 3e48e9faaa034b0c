# SPDX-License-Identifier: Apache-2.0
"""The parts that the examples share: the process group, a generated text, and a small transformer."""
from __future__ import annotations

import argparse
import random
from contextlib import contextmanager
from datetime import timedelta
from typing import Iterator, List, Optional, Tuple

import torch
import torch.distributed as dist
from torch import Tensor, nn

CHARACTERS = " .abcdefghijklmnopqrstuvwxyz"
NUMBERS = ("zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen "
           "sixteen seventeen eighteen").split()


def make_parser(description: Optional[str], steps: int = 30) -> argparse.ArgumentParser:
    """A parser with the options that all examples have."""
    parser = argparse.ArgumentParser(description=description,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--backend", default="tutti", help="of torch.distributed: tutti (default) or gloo")
    parser.add_argument("--steps", type=int, default=steps, help=f"number of training steps (default {steps})")
    return parser


@contextmanager
def process_group(backend: str) -> Iterator[Tuple[int, int]]:
    """Form the group of all ranks that torchrun has started; yields this rank and the number of ranks."""
    torch.set_num_threads(1)
    torch.manual_seed(1)
    dist.init_process_group(backend, timeout=timedelta(seconds=60))
    yield dist.get_rank(), dist.get_world_size()
    dist.destroy_process_group()


def say(text: str) -> None:
    """Print a line, on rank 0 only."""
    if dist.get_rank() == 0:
        print(text, flush=True)


def check(holds: bool, text: str) -> None:
    """End this rank with an error unless a result is as it should be."""
    if not holds:
        raise SystemExit(f"rank {dist.get_rank()}: {text}")


def check_falls(losses: List[float]) -> None:
    """End this rank with an error unless the loss has fallen by a fifth."""
    say(f"loss {losses[0]:.4f} in the first step, {losses[-1]:.4f} in the last of {len(losses)}")
    check(losses[-1] < 0.8 * losses[0], "the loss has not fallen")


def make_text(sentences: int = 2000) -> Tensor:
    """Sentences such as "four plus three is seven.", as indices into CHARACTERS."""
    source = random.Random(1)
    pairs = [(source.randrange(10), source.randrange(10)) for _ in range(sentences)]
    text = " ".join(f"{NUMBERS[a]} plus {NUMBERS[b]} is {NUMBERS[a + b]}." for a, b in pairs)
    return torch.tensor([CHARACTERS.index(character) for character in text])


def make_batch(text: Tensor, seed: int, count: int = 8, length: int = 32) -> Tuple[Tensor, Tensor]:
    """`count` pieces of the text, and the character that follows each of their characters."""
    generator = torch.Generator().manual_seed(seed)
    starts = torch.randint(len(text) - length, (count, 1), generator=generator)
    positions = starts + torch.arange(length)
    return text[positions], text[positions + 1]


class Embedding(nn.Module):
    """Vectors for characters and for their positions."""

    def __init__(self, width: int, length: int = 64) -> None:
        super().__init__()
        self.characters = nn.Embedding(len(CHARACTERS), width)
        self.positions = nn.Embedding(length, width)

    def forward(self, text: Tensor) -> Tensor:
        return self.characters(text) + self.positions(torch.arange(text.shape[1]))


class Attention(nn.Module):
    """Causal attention. The number of heads follows from the width of the projections, so a rank may have only
    some of the heads."""

    def __init__(self, width: int, head_width: int) -> None:
        super().__init__()
        self.head_width = head_width
        self.query, self.key, self.value, self.out = (nn.Linear(width, width) for _ in range(4))

    def forward(self, x: Tensor) -> Tensor:
        heads = [part(x).unflatten(-1, (-1, self.head_width)).transpose(1, 2)
                 for part in (self.query, self.key, self.value)]
        mixed = nn.functional.scaled_dot_product_attention(*heads, is_causal=True)
        return self.out(mixed.transpose(1, 2).flatten(2))


class FeedForward(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: Tensor) -> Tensor:
        return self.down(nn.functional.gelu(self.up(x)))


class Block(nn.Module):
    """One layer of a transformer."""

    def __init__(self, width: int, head_width: int = 16) -> None:
        super().__init__()
        self.norm1, self.attention = nn.LayerNorm(width), Attention(width, head_width)
        self.norm2, self.feed_forward = nn.LayerNorm(width), FeedForward(width)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attention(self.norm1(x))
        return x + self.feed_forward(self.norm2(x))


class Head(nn.Module):
    """From vectors to the likelihood of each character."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm, self.out = nn.LayerNorm(width), nn.Linear(width, len(CHARACTERS))

    def forward(self, x: Tensor) -> Tensor:
        return self.out(self.norm(x))


def make_model(width: int = 64, layers: int = 2) -> nn.Sequential:
    """A character transformer, with the same weights on each rank."""
    torch.manual_seed(1)
    return nn.Sequential(Embedding(width), *(Block(width) for _ in range(layers)), Head(width))


def make_optimizer(model: nn.Module) -> torch.optim.Optimizer:
    return torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)


def loss_of(output: Tensor, targets: Tensor) -> Tensor:
    return nn.functional.cross_entropy(output.flatten(0, 1), targets.flatten())


def train_whole(steps: int, batches: int) -> List[float]:
    """The losses of the unsplit model, which one rank trains on `batches` batches in each step."""
    model, text, losses = make_model(), make_text(), []
    optimizer = make_optimizer(model)
    for step in range(steps):
        pieces = [make_batch(text, step * batches + number) for number in range(batches)]
        inputs, targets = (torch.cat(parts) for parts in zip(*pieces))
        optimizer.zero_grad()
        loss = loss_of(model(inputs), targets)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def check_same(losses: List[float], expected: List[float], name: str) -> None:
    """End this rank with an error unless two trainings have the same losses, apart from rounding."""
    worst = max(abs(one / other - 1) for one, other in zip(losses, expected))
    say(f"largest difference from {name}: {worst:.1e} of the loss")
    check(len(losses) == len(expected) and worst < 1e-4, f"the losses are not those of {name}")


def average(value: Tensor) -> float:
    """The average over all ranks."""
    total = value.detach().clone()
    dist.all_reduce(total)
    return total.item() / dist.get_world_size()

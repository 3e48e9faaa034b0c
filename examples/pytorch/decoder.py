#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures the time of a token in tensor parallel inference on CPUs, with Gloo and with Tutti, in one run.

    torchrun --nproc-per-node 2 examples/pytorch/decoder.py [--layers 8] [--width 512] [--tokens 32]

The model is a decoder in bfloat16 with a cache of keys and values. Each rank has some heads of the attention
and some columns of the feed-forward layers, so a token takes two all-reduces per layer. Both backends are
process groups of the same ranks, and take turns. Figures are those of rank 0. The time in all-reduces includes
the wait for the slowest rank. The program says so if the machine is busy.

The program checks that both backends give the same tokens. With 4 ranks the backends add in different orders,
so rounding differs. The weights are random, but after each token one next token is by far the likeliest, so
rounding does not change the choice.
"""
from __future__ import annotations

import os

LOAD = os.getloadavg()[0]

import argparse
import statistics
import time
from dataclasses import dataclass
from typing import Dict, List, Tuple

import torch
import torch.distributed as dist
from common import check, process_group, say
from torch import Tensor
from torch.nn.functional import gelu, layer_norm, linear, scaled_dot_product_attention

BACKENDS = ("gloo", "tutti")
VOCABULARY, HEAD_WIDTH = 1024, 64


@dataclass
class Generated:
    tokens: List[int]
    scores: Tensor  # of the tokens that may follow the last one
    times: List[float]  # seconds of each token
    reducing: List[float]  # the part of these seconds that the all-reduces have taken


class Decoder:
    """This rank's part of the weights. All ranks draw the same whole weights and keep their slices."""

    def __init__(self, rank: int, size: int, layers: int, width: int) -> None:
        generator = torch.Generator().manual_seed(1)

        def draw(rows: int, columns: int) -> Tensor:
            return torch.randn(rows, columns, generator=generator).mul(columns ** -0.5).bfloat16()

        # The embedding is large compared with what the layers add to it. So the head can recognize the token,
        # and gives the highest score to one other token.
        self.embedding = draw(VOCABULARY, width) * 4 * width ** 0.5
        self.head = self.embedding[torch.randperm(VOCABULARY, generator=generator)] / (4 * width ** 0.5)
        self.layers: List[Tuple[Tensor, ...]] = []
        for _ in range(layers):
            columns = [draw(width, width).chunk(size)[rank] for _ in range(3)] + [
                draw(4 * width, width).chunk(size)[rank]]
            rows = [draw(width, width).chunk(size, 1)[rank], draw(width, 4 * width).chunk(size, 1)[rank]]
            self.layers.append(tuple(weight.contiguous() for weight in columns + rows))
        self.reducing_s = 0.0

    def reduce(self, x: Tensor, group: dist.ProcessGroup) -> Tensor:
        begun = time.perf_counter()
        dist.all_reduce(x, group=group)
        self.reducing_s += time.perf_counter() - begun
        return x

    def step(self, token: int, cache: List[Tuple[Tensor, Tensor]], group: dist.ProcessGroup) -> Tensor:
        """The score of each next token; adds this token's keys and values to the cache."""
        x = self.embedding[token].unsqueeze(0)
        shape = x.shape[-1:]
        for number, (query, key, value, up, out, down) in enumerate(self.layers):
            normed = layer_norm(x, shape)
            q, k, v = (linear(normed, weight).view(-1, 1, HEAD_WIDTH) for weight in (query, key, value))
            if number < len(cache):
                k, v = (torch.cat([old, new], 1) for old, new in zip(cache[number], (k, v)))
                cache[number] = (k, v)
            else:
                cache.append((k, v))
            mixed = scaled_dot_product_attention(q, k, v).view(1, -1)
            x = x + self.reduce(linear(mixed, out), group)
            x = x + self.reduce(linear(gelu(linear(layer_norm(x, shape), up)), down), group)
        return linear(layer_norm(x, shape), self.head)[0]

    def generate(self, count: int, group: dist.ProcessGroup) -> Generated:
        cache: List[Tuple[Tensor, Tensor]] = []
        made = Generated([1], torch.empty(0), [], [])
        for _ in range(count):
            begun, self.reducing_s = time.perf_counter(), 0.0
            made.scores = self.step(made.tokens[-1], cache, group)
            made.tokens.append(int(made.scores.argmax()))
            made.times.append(time.perf_counter() - begun)
            made.reducing.append(self.reducing_s)
        return made


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, number in (("layers", 8), ("width", 512), ("tokens", 32), ("rounds", 5)):
        parser.add_argument(f"--{name}", type=int, default=number, help=f"default {number}")
    options = parser.parse_args()
    with process_group("gloo") as (rank, size), torch.inference_mode():
        check(options.width % (size * HEAD_WIDTH) == 0, f"a head is {HEAD_WIDTH} wide and of one rank")
        cpus = len(os.sched_getaffinity(0))
        if LOAD > 0.5 or size > cpus:
            say(f"load {LOAD:.2f} before the start, {size} ranks, {cpus} CPUs: take no figure from this run")
        groups = {backend: dist.new_group(backend=backend) for backend in BACKENDS}
        decoder = Decoder(rank, size, options.layers, options.width)
        times: Dict[str, List[float]] = {backend: [] for backend in BACKENDS}
        reducing: Dict[str, List[float]] = {backend: [] for backend in BACKENDS}
        for number in range(options.rounds + 1):
            made = {}
            for backend in BACKENDS:
                dist.barrier()
                made[backend] = decoder.generate(options.tokens, groups[backend])
                if number > 0:  # The first round warms up.
                    times[backend] += made[backend].times
                    reducing[backend] += made[backend].reducing
            tokens = made["tutti"].tokens
            check(tokens == made["gloo"].tokens, f"the tokens differ: {tokens}, {made['gloo'].tokens}")
            difference = (made["tutti"].scores - made["gloo"].scores).abs().max().item()
            check(difference < 0.02 * made["gloo"].scores.max().item(), f"a score differs by {difference}")
        check(len(set(tokens)) > options.tokens // 4, "the tokens are all alike")
        say(f"{size} ranks, {options.layers} layers, width {options.width}, "
            f"{2 * options.layers} all-reduces of {2 * options.width} bytes per token, load {LOAD:.2f}")
        say(f"{'':6} {'median ms':>10} {'90% ms':>8} {'all-reduce':>11}")
        for backend in BACKENDS:
            median, last = statistics.median(times[backend]), statistics.quantiles(times[backend], n=10)[-1]
            share = sum(reducing[backend]) / sum(times[backend])
            say(f"{backend:6} {median * 1e3:10.2f} {last * 1e3:8.2f} {share:11.0%}")


if __name__ == "__main__":
    main()

# SPDX-License-Identifier: Apache-2.0
"""The parts of a run. A part has one transport and one number of ranks. It consists of cells, each
of which is a collective at one size."""
from harness import machine

USUAL = ("allreduce", "reduce_scatter", "allgather", "reduce", "broadcast", "alltoall", "scan",
         "exclusive_scan", "sendrecv", "barrier")
COLLECTIVES = USUAL + ("gatherv", "scatterv")
TRANSPORTS = ("shm", "tcp", "types")
RANKS = {"shm": (2, 4, 8), "tcp": (2, 4), "types": (2,)}
QUICK = "8,64K,4M"
UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}

# Up to this size the limit is the time of a cache line.
LINE_BYTES = 64


def parse_sizes(text):
    sizes = []
    for word in text.split(","):
        number, unit = (word[:-1], word[-1].upper()) if word[-1:].isalpha() else (word, "")
        if not number.isdigit() or unit not in UNITS or int(number) * UNITS[unit] < 4:
            raise ValueError(f"{word!r} is no size: write 8, 64K or 16M; at least 4 bytes")
        sizes.append(int(number) * UNITS[unit])
    return sorted(set(sizes))


def parse_names(what, text, known):
    names = text.split(",")
    for name in names:
        if name not in known:
            raise ValueError(f"{name!r} is no {what}; known: {', '.join(known)}")
    return [name for name in known if name in names]


def parse_ranks(text):
    words = text.split(",")
    if not all(word.isdigit() and 2 <= int(word) <= 64 for word in words):
        raise ValueError(f"{text!r} are no numbers of ranks: write 2 or 2,4,8; 2 to 64")
    return sorted({int(word) for word in words})


def size_text(size):
    for unit, name in ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")):
        if size >= unit and size % unit == 0:
            return f"{size // unit} {name}"
    return f"{size} B"


def default_sizes(transport, ranks):
    if transport == "shm" and ranks <= machine.cpus():
        return "8,1K,4K,64K,256K,1M,16M,64M,256M"
    if ranks <= machine.cpus():
        return "8,4K,64K,1M,16M,64M"
    return "8,4K,64K,1M,16M"


class Part:
    def __init__(self, transport, ranks, collectives, sizes):
        self.transport, self.ranks = transport, ranks
        self.name = f"{transport}{ranks}"
        self.collectives, self.sizes = collectives, sizes

    def agenda(self):
        return [(collective, size) for collective in self.collectives
                for size in (self.sizes if collective != "barrier" else [0])]

    def arena_bytes(self):
        """The bytes of each buffer: room for the largest operation, and more than the caches
        hold."""
        largest = max(self.sizes)
        return 2 << 20 if largest < 65536 else max(64 << 20, (largest + 69631) // 4096 * 4096)

    def fit(self, contenders):
        """Remove the sizes for which the memory of this machine is too small, and return them."""
        left_out = []
        buffers = sum(2 * self.ranks * len({memory.split(":")[0] for memory in one.memories})
                      for one in contenders)
        while len(self.sizes) > 1 and buffers * self.arena_bytes() > 0.8 * machine.free_bytes():
            left_out.append(self.sizes.pop())
        return left_out


def plan(chosen):
    """The parts that the options ask for."""
    parts = []
    for transport in chosen.transports:
        for ranks in chosen.ranks or RANKS[transport]:
            collectives = [name for name in chosen.collectives
                           if transport != "types" or name == "allreduce"]
            text = chosen.sizes or (QUICK if chosen.quick else default_sizes(transport, ranks))
            if collectives:
                parts.append(Part(transport, ranks, collectives, parse_sizes(text)))
    return parts


def weight(part, cell):
    """Approximately how long a cell takes, in an arbitrary unit."""
    contenders = {"shm": 8, "tcp": 12, "types": 5}[part.transport]
    return contenders * (1 + part.ranks * cell[1] / (64 << 20))


def describe(transport, ranks):
    over = {"shm": "shared memory", "tcp": "TCP over the loopback",
            "types": "shared memory, narrow types beside float32"}[transport]
    return f"{ranks} ranks, {over}"


def is_crowded(results):
    """True if there were more ranks than CPUs on the machine that was measured."""
    return results["ranks"] > results["machine"]["cpus"]

# SPDX-License-Identifier: Apache-2.0
"""Computes the causality order of PTX's memory model for small executions.

Source: NVIDIA, "PTX ISA", section "Memory Consistency Model": morally strong operations, observation
order, release and acquire patterns, synchronizes-with, and causality order. Proxies are left out,
because the kernels use none. An execution says which write each strong read takes its value from.

An operation is a tuple (kind, location, semantics, scope). Kinds:

    W, R    a write or read; without semantics it is weak
    A       an atomic addition, which reads and writes
    F       a fence
    B       a barrier of the block; the location is its number
"""

from dataclasses import dataclass, field

SYNCHRONIZING = ("relaxed", "acquire", "release", "acq_rel")


@dataclass(frozen=True)
class Operation:
    """One operation of a thread."""

    index: int
    kind: str
    location: str
    semantics: str
    scope: str
    gpu: int
    block: int

    @property
    def writes(self):
        return self.kind in "WA"

    @property
    def reads(self):
        return self.kind in "RA"

    @property
    def is_strong(self):
        return self.kind in "FA" or self.semantics in SYNCHRONIZING

    def includes(self, other):
        """True if the thread of the other operation is in the scope of this one."""
        if self.scope == "sys":
            return True
        if self.scope == "gpu":
            return self.gpu == other.gpu
        return self.scope == "cta" and (self.gpu, self.block) == (other.gpu, other.block)


@dataclass
class Execution:
    """Threads with their operations, and the writes that reads take their values from."""

    operations: list = field(default_factory=list)
    program_order: set = field(default_factory=set)
    reads_from: set = field(default_factory=set)

    def thread(self, gpu, block, *operations):
        """Adds a thread. Returns the numbers of its operations."""
        numbers = []
        for given in operations:
            kind, location, semantics, scope = (tuple(given) + (None,) * 3)[:4]
            index = len(self.operations)
            self.operations.append(
                Operation(index, kind, location, semantics, scope, gpu, block))
            self.program_order |= {(earlier, index) for earlier in numbers}
            numbers.append(index)
        return numbers

    def read_from(self, write, read):
        """Says that `read` takes its value from `write`."""
        self.reads_from.add((write, read))

    # ---- relations -------------------------------------------------------------------------

    def is_morally_strong(self, a, b):
        """True if the two are in one thread, or both are strong and in each other's scope."""
        if (a, b) in self.program_order or (b, a) in self.program_order:
            return True
        one, other = self.operations[a], self.operations[b]
        return (one.is_strong and other.is_strong and one.includes(other) and other.includes(one))

    def observation_order(self):
        """Pairs of a write and a read that observes it, also through atomics in between."""
        order = {(w, r) for w, r in self.reads_from if self.is_morally_strong(w, r)}
        while True:
            longer = {(first, last) for first, middle in order
                      if self.operations[middle].kind == "A"
                      for write, last in order if write == middle} - order
            if not longer:
                return order
            order |= longer

    def release_patterns(self):
        """Pairs of the operation that begins a release pattern, and the write that ends it."""
        patterns = {(o.index, o.index) for o in self.operations
                    if o.writes and o.semantics in ("release", "acq_rel")}
        for a, b in self.program_order:
            first, last = self.operations[a], self.operations[b]
            if not (last.writes and last.is_strong):
                continue
            releases = first.writes and first.semantics in ("release", "acq_rel")
            if first.kind == "F" or (releases and first.location == last.location):
                patterns.add((a, b))
        return patterns

    def acquire_patterns(self):
        """Pairs of the read that begins an acquire pattern, and the operation that ends it."""
        patterns = {(o.index, o.index) for o in self.operations
                    if o.reads and o.semantics in ("acquire", "acq_rel")}
        for a, b in self.program_order:
            first, last = self.operations[a], self.operations[b]
            if first.reads and first.is_strong and last.kind == "F":
                patterns.add((a, b))
        return patterns

    def synchronizes(self, observed):
        """Pairs of operations of which the first synchronizes with the second."""
        pairs = {(begin, end) for begin, write in self.release_patterns()
                 for read, end in self.acquire_patterns()
                 if (write, read) in observed and self.is_morally_strong(begin, end)}
        barriers = [o for o in self.operations if o.kind == "B"]
        pairs |= {(a.index, b.index) for a in barriers for b in barriers
                  if a is not b and (a.gpu, a.block, a.location) == (b.gpu, b.block, b.location)}
        return pairs

    def causality_order(self):
        """Pairs of operations of which the first happens before the second."""
        observed = self.observation_order()
        base = self.program_order | self.synchronizes(observed)
        while True:
            longer = {(a, d) for a, b in base for c, d in base if b == c and a != d} - base
            if not longer:
                break
            base |= longer
        return base | {(a, d) for a, b in observed for c, d in base if b == c}

    def orders(self, a, b):
        """True if operation `a` happens before operation `b` in every such execution."""
        return (a, b) in self.causality_order()

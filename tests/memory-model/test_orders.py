# SPDX-License-Identifier: Apache-2.0
"""Proves, in PTX's memory model, the orders that kernels rely on (src/device/cuda).

Each test writes down the operations of one pattern as platform.cuh has them, and checks that the
access to the data is ordered. Mutants with a weaker operation, or with a barrier less, must not be.
Another test reads platform.cuh, so that the operations here are those of the code."""

import pathlib
import re
import sys
import unittest

from causality import Execution

PLATFORM = pathlib.Path(__file__).parents[2] / "src/device/cuda/platform.cuh"

RELEASE = ("release", "sys")
ACQUIRE = ("acquire", "sys")
FENCE = (("F", None, "acq_rel", "sys"),)


def slot(release=RELEASE, acquire=ACQUIRE, fills_behind_barrier=True, reads_behind_barrier=True):
    """fifo.cuh: worker threads fill a slot, and one thread releases `tail`. On another GPU one
    thread acquires it, and other threads of its block read the slot."""
    x = Execution()
    before = (("B", 1),) if fills_behind_barrier else ()
    behind = (("B", 2),) if reads_behind_barrier else ()
    fill = x.thread(0, 0, ("W", "data"), *before)
    passes = x.thread(0, 0, *before, ("W", "tail", *release))
    polls = x.thread(1, 7, ("R", "tail", *acquire), *behind)
    read = x.thread(1, 7, *behind, ("R", "data"))
    x.read_from(passes[-1], polls[0])
    return x, fill[0], read[-1]


def credit(release=RELEASE, acquire=ACQUIRE):
    """fifo.cuh: a slot is read, given back by `head`, and filled anew by other threads."""
    x = Execution()
    read = x.thread(1, 0, ("R", "data"), ("B", 1))
    gives = x.thread(1, 0, ("B", 1), ("W", "head", *release))
    polls = x.thread(0, 0, ("R", "head", *acquire), ("B", 2))
    fill = x.thread(0, 0, ("B", 2), ("W", "data"))
    x.read_from(gives[-1], polls[0])
    return x, read[0], fill[-1]


def signal(fence=FENCE, add="acq_rel", release=RELEASE, acquire=ACQUIRE):
    """core.cuh, gpu_signal and gpu_await: the last block to arrive signals to another GPU."""
    x = Execution()
    store = x.thread(0, 0, ("W", "data"), ("B", 1))
    early = x.thread(0, 0, ("B", 1), *fence, ("A", "arrivals", add, "gpu"))
    late = x.thread(0, 1, *fence, ("A", "arrivals", add, "gpu"), ("B", 2))
    gives = x.thread(0, 1, ("B", 2), ("W", "counter", *release))
    polls = x.thread(1, 0, ("R", "counter", *acquire), ("B", 3))
    load = x.thread(1, 0, ("B", 3), ("R", "data"))
    x.read_from(early[-1], late[len(fence)])
    x.read_from(gives[-1], polls[0])
    return x, store[0], load[-1]


def meeting(fence=FENCE, add="acq_rel", wait=ACQUIRE):
    """core.cuh, gpu_meet: what one block stores before a meeting of the grid, another loads."""
    x = Execution()
    store = x.thread(0, 0, ("W", "data"), ("B", 1))
    early = x.thread(0, 0, ("B", 1), *fence, ("A", "arrivals", add, "gpu"))
    late = x.thread(0, 1, *fence, ("A", "arrivals", add, "gpu"), ("R", "arrivals", *wait), ("B", 2))
    load = x.thread(0, 1, ("B", 2), ("R", "data"))
    x.read_from(early[-1], late[len(fence) + 1])
    return x, store[0], load[-1]


def meeting_through_a_third(fence=FENCE):
    """The same, if the last arrival that is seen is that of a third block."""
    x = Execution()
    store = x.thread(0, 0, ("W", "data"), ("B", 1))
    first = x.thread(0, 0, ("B", 1), *fence, ("A", "arrivals", "acq_rel", "gpu"))
    second = x.thread(0, 1, *fence, ("A", "arrivals", "acq_rel", "gpu"))
    polls = x.thread(0, 2, ("R", "arrivals", *ACQUIRE), ("B", 3))
    load = x.thread(0, 2, ("B", 3), ("R", "data"))
    x.read_from(first[-1], second[-1])
    x.read_from(second[-1], polls[0])
    return x, store[0], load[-1]


def line_in_two_elements():
    """An LL word, if its data and its flag were elements of their own."""
    x = Execution()
    data = x.thread(0, 0, ("W", "data", "relaxed", "sys"))
    flag = x.thread(0, 0, ("W", "flag", "relaxed", "sys"))
    sees = x.thread(1, 0, ("R", "flag", "relaxed", "sys"))
    load = x.thread(1, 0, ("R", "data", "relaxed", "sys"))
    x.read_from(flag[0], sees[0])
    return x, data[0], load[0]


def greeting(fence=()):
    """ll.cuh: a rank reads the lines of an epoch, and then greets. A peer that has seen the greeting
    writes the lines anew. Kernels of the two epochs are different launches, at whose ends the
    hardware completes all accesses; PTX itself promises nothing without fences."""
    x = Execution()
    read = x.thread(1, 0, ("R", "line", "relaxed", "sys"), *fence,
                    ("W", "greeting", "relaxed", "sys"))
    write = x.thread(0, 0, ("R", "greeting", "relaxed", "sys"), *fence,
                     ("W", "line", "relaxed", "sys"))
    x.read_from(read[-1], write[0])
    return x, read[0], write[-1]


class Orders(unittest.TestCase):
    """What is ordered, and what must not be."""

    def expect(self, pattern, is_ordered):
        execution, before, after = pattern
        self.assertEqual(execution.orders(before, after), is_ordered)

    def test_the_patterns_of_the_kernels_are_ordered(self):
        for pattern in (slot(), credit(), signal(), meeting(), meeting_through_a_third()):
            self.expect(pattern, True)

    def test_atomics_order_without_the_fence_too(self):
        self.expect(signal(fence=()), True)
        self.expect(meeting(fence=()), True)

    def test_the_fence_orders_with_relaxed_atomics_too(self):
        self.expect(signal(add="relaxed"), False)  # nothing follows the atomic but a barrier
        self.expect(meeting(add="relaxed", wait=ACQUIRE), True)

    def test_mutants_are_not_ordered(self):
        mutants = {
            "slot: relaxed store": slot(release=("relaxed", "sys")),
            "slot: release within the GPU": slot(release=("release", "gpu")),
            "slot: relaxed load": slot(acquire=("relaxed", "sys")),
            "slot: no barrier before the release": slot(fills_behind_barrier=False),
            "slot: no barrier behind the acquire": slot(reads_behind_barrier=False),
            "credit: relaxed store": credit(release=("relaxed", "sys")),
            "credit: relaxed load": credit(acquire=("relaxed", "sys")),
            "signal: relaxed atomic without a fence": signal(fence=(), add="relaxed"),
            "signal: release within the GPU": signal(release=("release", "gpu")),
            "signal: relaxed load": signal(acquire=("relaxed", "sys")),
            "meeting: nothing but relaxed": meeting(fence=(), add="relaxed",
                                                    wait=("relaxed", "sys")),
        }
        for name, mutant in mutants.items():
            with self.subTest(name):
                self.expect(mutant, False)

    def test_what_ptx_does_not_promise(self):
        self.expect(line_in_two_elements(), False)  # so data and flag are one element
        self.expect(greeting(), False)
        self.expect(greeting(FENCE), True)


class Platform(unittest.TestCase):
    """The operations of platform.cuh are those that the patterns use."""

    def test_operations_are_those_of_the_code(self):
        text = PLATFORM.read_text()
        for function, instruction in {
                "gpu_load_acquire": "ld.acquire.sys.global.u64",
                "gpu_store_release": "st.release.sys.global.u64",
                "gpu_load_relaxed": "ld.relaxed.sys.global.u64",
                "gpu_store_relaxed": "st.relaxed.sys.global.u64",
                "gpu_load_flagged": "ld.relaxed.sys.global.v2.b64",
                "gpu_store_flagged": "st.relaxed.sys.global.v2.b64",
                "gpu_fence": "fence.acq_rel.sys",
                "gpu_add": "atom.add.acq_rel.gpu.global.u64",
        }.items():
            with self.subTest(function):
                body = re.search(function + r"\([^)]*\)\s*\{.*?asm volatile\(\"([^ ;]+)", text,
                                 re.S)
                self.assertIsNotNone(body)
                self.assertEqual(body.group(1), instruction)


if __name__ == "__main__":
    sys.exit(unittest.main())

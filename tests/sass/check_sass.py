# SPDX-License-Identifier: Apache-2.0
"""Checks the machine code of the kernels for what their source relies on.

    check_sass.py LISTING       of one architecture, by nvdisasm -c

The compiler may undo by itself what the source wants: loads that are issued together, fences that
are no stronger than needed, accesses that bypass the first-level cache. This program reads the
listing and fails if one of these is missing."""

import re
import sys
from collections import Counter

FUNCTION = re.compile(r"\.type\s+(\S+),@function")
INSTRUCTION = re.compile(r"/\*[0-9a-f]{4,}\*/\s+(?:\{\s*)?(?:@!?U?P\d+\s+)?([A-Z][A-Z0-9_.]*)")
# Instructions at which all loads before must have been issued, because the code looks at their
# results or leaves.
ENDS = ("BRA", "ISETP", "BSYNC", "BAR", "VOTE", "WARPSYNC", "CALL", "RET", "EXIT")


def read_functions(path):
    """Returns the operation codes of each function, in order. A label is "LABEL"."""
    functions, current = {}, None
    with open(path, encoding="utf-8", errors="replace") as listing:
        for line in listing:
            begins = FUNCTION.search(line)
            if begins:
                current = functions.setdefault(begins.group(1), [])
                continue
            found = INSTRUCTION.search(line)
            if found and current is not None:
                current.append(found.group(1))
            elif line.startswith(".L_") and current is not None:
                current.append("LABEL")
    return functions


def longest_run(codes, wanted):
    """Returns the most instructions of a kind that follow one another without an end between."""
    longest = run = 0
    for code in codes:
        if code == wanted:
            run += 1
            longest = max(longest, run)
        elif code == "LABEL" or code.startswith(ENDS):
            run = 0
    return longest


def count_followed(codes, wanted, after, within):
    """Counts the instructions of a kind that another kind follows soon."""
    return sum(1 for i, code in enumerate(codes)
               if code.startswith(wanted)
               and any(next_code.startswith(after) for next_code in codes[i + 1:i + 1 + within]))


class Check:
    """Collects what is wrong."""

    def __init__(self, functions):
        self.functions = functions
        self.failures = []

    def codes_of(self, kernel):
        """Returns the codes of a kernel and of its functions, which the compiler copies to it."""
        codes = []
        for name, own in self.functions.items():
            if name == kernel or name.startswith("$" + kernel + "$"):
                codes += own
        return codes

    def expect(self, holds, what):
        print(("ok    " if holds else "FAILED ") + what)
        if not holds:
            self.failures.append(what)

    def loads_in_flight(self, kernel, wanted, least, what):
        run = longest_run(self.codes_of(kernel), wanted)
        self.expect(run >= least, f"{kernel}: {what}: {run} loads are issued together, "
                                  f"at least {least}")

    def orders(self):
        codes = [code for own in self.functions.values() for code in own]
        kinds = Counter(codes)
        releases = sum(n for code, n in kinds.items() if code.startswith("MEMBAR.ALL.SYS"))
        strongest = sum(n for code, n in kinds.items() if code.startswith("MEMBAR.SC"))
        # An acquire is a strong load, after which the first-level cache is dropped.
        acquires = count_followed(codes, "LDG.E.64.STRONG.SYS", "CCTL.IVALL", 12)
        self.expect(strongest == 0, f"{strongest} fences are sequentially consistent, none is "
                                    "wanted")
        self.expect(releases > 0, f"{releases} fences order stores for other GPUs")
        self.expect(acquires > 0, f"{acquires} loads drop the first-level cache, as acquires do")
        self.expect(kinds["STG.E.128.STRONG.SYS"] > 0,
                    f"{kinds['STG.E.128.STRONG.SYS']} words with flags are stored whole")
        self.expect(not any(code.startswith(("STG.E.STRONG", "LDG.E.STRONG")) for code in kinds),
                    "no word with a flag is accessed in halves of 4 bytes")


def main(path):
    check = Check(read_functions(path))
    check.loads_in_flight("tutti_kernel_work_small", "LDG.E.128.STRONG.SYS", 4, "lines with flags")
    check.loads_in_flight("tutti_kernel_work_direct", "LDG.E.NA.128", 8, "sums of two sources")
    check.loads_in_flight("tutti_kernel_reduce", "LDG.E.NA.128", 8, "sums of two sources")
    check.loads_in_flight("tutti_kernel_group", "LDG.E.NA.128", 8, "steps of schedules")
    check.orders()
    if check.failures:
        print(f"{len(check.failures)} failed")
    return 1 if check.failures else 0


if __name__ == "__main__":
    if len(sys.argv) != 2:
        print(__doc__)
        sys.exit(2)
    sys.exit(main(sys.argv[1]))

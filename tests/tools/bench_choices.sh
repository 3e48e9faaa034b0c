#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs the driver of bench/choices on two ranks, with little time. Rank 0 must print one line of JSON for
# each collective and size, in which every live candidate was timed.
#
#     tests/tools/bench_choices.sh DRIVER
set -eu
folder=$(mktemp -d "${TMPDIR:-/tmp}/tutti-test-XXXXXX")
trap 'rm -rf "$folder"' EXIT
"$1" "file:$folder/store" 1 2 50 20 allreduce,broadcast 64,65536 >"$folder/1" &
"$1" "file:$folder/store" 0 2 50 20 allreduce,broadcast 64,65536 >"$folder/0"
wait $!
python3 - "$folder/0" <<'END'
import json
import sys

lines = [json.loads(line) for line in open(sys.argv[1], encoding="utf-8")]
assert len(lines) == 4, f"{len(lines)} lines instead of 4"
for line in lines:
    timed = [candidate for candidate in line["candidates"] if candidate["rounds_us"]]
    assert timed and all(time > 0 for candidate in timed for time in candidate["rounds_us"]), line
END

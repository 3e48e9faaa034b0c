#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The README's figures: its table is the one that bench/compare wrote, and nothing that it shows or
# links to comes from a run on a busy machine.
#
#     check_figures.sh SOURCE_DIRECTORY
set -eu

cd "$1"
results=bench/results/latest
failed=0

# Every line of the table stands in the README.
while IFS= read -r line; do
    grep -qxF -- "$line" README.md || {
        echo "README.md lacks this line of $results/summary.md: $line" >&2
        failed=1
    }
done <"$results/summary.md"

# The table's parts, and whatever else of our results the README shows or links to.
linked=$(grep -o '(bench/results/[^)#]*' README.md | tr -d '(')
[ -n "$linked" ] || {
    echo "README.md shows no result" >&2
    failed=1
}
for file in $results/shm2.svg $results/tcp2.svg $linked; do
    if ! [ -f "$file" ]; then
        echo "$file is not there" >&2
        failed=1
    elif grep -q "take no figure from this run" "$file"; then
        echo "$file was measured on a busy machine" >&2
        failed=1
    fi
done
exit $failed

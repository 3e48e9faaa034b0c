#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The reference of the API is made without a warning, and has all functions of the header.
#
#     check_reference.sh SOURCE_DIR C_COMPILER
set -eu
source=$1 cc=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

code=0
"$source/docs/reference/build" "$work/reference" || code=$?
[ "$code" -eq 0 ] || exit "$code"

# The compiler's own reading of the header, as in check_symbols.
"$cc" -E -P "$source/include/tutti.h" | tr '\n' ' ' | tr ';' '\n' |
    sed -n 's/.*visibility("default").*[ *]\(tutti[A-Za-z0-9]*\) *(.*/\1/p' >"$work/functions"
[ "$(wc -l <"$work/functions")" -gt 30 ] || { echo "no declarations found in tutti.h"; exit 1; }

missing=0
while read -r function; do
    page=$work/reference/man/man3/$function.3
    if ! grep -q "$function.* (.*)" "$page" 2>/dev/null; then
        echo "there is no manual page with a prototype of $function"
        missing=$((missing + 1))
    fi
    if ! grep -q "memItemRight.*>$function</a>" "$work/reference/html/tutti_8h.html"; then
        echo "$function is not in the HTML"
        missing=$((missing + 1))
    fi
done <"$work/functions"
[ "$missing" -eq 0 ] || exit 1

# A function without a comment must be noticed.
mkdir -p "$work/bad/include" "$work/bad/docs"
cp -r "$source/docs/reference" "$work/bad/docs/"
{ cat "$source/include/tutti.h"; echo "#define UNDOCUMENTED"; } |
    sed 's/^\/\* Store the number of this rank in .*\*\/$//' >"$work/bad/include/tutti.h"
if "$work/bad/docs/reference/build" "$work/again" 2>"$work/said" >/dev/null; then
    echo "a function without a comment was not noticed"
    exit 1
fi
grep -q "tuttiCommUserRank.*is not documented" "$work/said" || { cat "$work/said"; exit 1; }
echo "$(wc -l <"$work/functions") functions, each with a manual page and in the HTML"

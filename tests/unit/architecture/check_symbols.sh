#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What libtutti.so exports is what tutti.h declares, no more and no less.
#
#     check_symbols.sh SOURCE_DIR LIBRARY NM C_COMPILER
set -eu
source=$1 library=$2 nm=$3 cc=$4
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# The compiler's own reading of the header: functions marked for export, without comments and macros.
"$cc" -E -P "$source/include/tutti.h" | tr '\n' ' ' | tr ';' '\n' |
    sed -n 's/.*visibility("default").*[ *]\(tutti[A-Za-z0-9]*\) *(.*/\1/p' | sort >"$work/declared"
"$nm" -D --defined-only "$library" | awk '$2 != "A" { sub(/@.*/, "", $3); print $3 }' |
    sort >"$work/exported"

[ "$(wc -l <"$work/declared")" -gt 30 ] || { echo "no declarations found in tutti.h"; exit 1; }
[ -z "$(uniq -d "$work/declared")" ] || { echo "declared twice: $(uniq -d "$work/declared")"; exit 1; }
if ! diff "$work/declared" "$work/exported" >"$work/differences"; then
    sed -n -e 's/^< /declared but not exported: /p' -e 's/^> /exported but not declared: /p' \
        "$work/differences"
    exit 1
fi
echo "$(wc -l <"$work/declared") functions declared and exported"

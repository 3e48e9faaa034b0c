#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What libtutti.so exports is what tutti.h declares, no more and no less. It asks the loader for no
# library that it does not use.
#
#     check_symbols.sh SOURCE_DIR LIBRARY NM C_COMPILER
set -eu
source=$1 library=$2 nm=$3 cc=$4
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export LC_ALL=C

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

# The file that the loader takes for a needed library.
found_at()
{
    awk -v name="$1" '{
        base = $1
        sub(/.*\//, "", base)
        for (i = 1; base == name && i <= NF; i++)
            if (substr($i, 1, 1) == "/") {
                print $i
                exit
            }
    }' "$work/loaded"
}

readelf -d "$library" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' >"$work/needed"
[ -s "$work/needed" ] || { echo "no needed libraries found"; exit 1; }
ldd "$library" >"$work/loaded"
"$nm" -D --undefined-only "$library" | awk '{ sub(/@.*/, "", $NF); print $NF }' | sort -u >"$work/imported"
while read -r name; do
    "$nm" -D --defined-only "$(found_at "$name")" | awk '{ sub(/@.*/, "", $3); print $3 }' | sort -u \
        >"$work/offered"
    comm -12 "$work/imported" "$work/offered" | grep -q . ||
        { echo "needed, but no symbol is imported from it: $name"; exit 1; }
done <"$work/needed"
echo "$(wc -l <"$work/needed") libraries needed, symbols imported from each"

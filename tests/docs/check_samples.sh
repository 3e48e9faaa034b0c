#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The commands that the pages show with their output print that output today. A line of three dots stands
# for any lines.
#
#     check_samples.sh SOURCE_DIRECTORY TOOLS_DIRECTORY PAGE...
#
# Commands whose output depends on the machine, on time or on a file of the reader's are left out.
set -eu

source=$1
PATH=$2:$PATH
shift 2
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
for name in $(env | sed -n 's/^\(TUTTI_[A-Z0-9_]*\)=.*/\1/p'); do
    unset "$name"
done
TUTTI_DEBUG=error
export PATH TUTTI_DEBUG

# Each command of a page in N.command, what the page shows for it in N.shown.
split()
{
    awk -v folder="$folder" '
        /^```/ { is_inside = !is_inside; name = ""; next }
        is_inside && /^\$ / {
            name = sprintf("%s/%03d", folder, ++count)
            print substr($0, 3) > (name ".command")
            printf "" > (name ".shown")
            next
        }
        name != "" { print > (name ".shown") }' "$1"
}

# Compares the lines of the second file in order. Three dots in the first represent any number of them. Spaces at the
# ends of lines and empty lines at the end do not count.
is_alike()
{
    awk -v shown="$1" '
        { sub(/ +$/, "") }
        FILENAME == shown { want[++nwant] = $0; next }
        { got[++ngot] = $0 }
        END {
            while (nwant > 0 && want[nwant] == "") nwant--
            while (ngot > 0 && got[ngot] == "") ngot--
            at = 1
            for (i = 1; i <= ngot; i++)
                if (want[at] == "..." && at < nwant && got[i] == want[at + 1]) at += 2
                else if (want[at] != "..." && (at > nwant || got[i] != want[at++])) {
                    print "line " i ": " got[i]
                    exit 1
                }
            if (want[at] == "...") at++
            if (at > nwant) exit 0
            print "missing: " want[at]
            exit 1
        }' "$1" "$2"
}

failed=0
ran=0
for page in "$@"; do
    rm -f "$folder"/*
    split "$source/$page"
    for command in "$folder"/*.command; do
        [ -e "$command" ] || continue
        words=$(cat "$command")
        case $words in
        *tutti-info* | "tutti-sched build "* | *.txt*) continue ;;
        tutti-*) ;;
        *) continue ;;
        esac
        (cd "$folder" && eval "$words") >"$folder/printed" 2>&1 || true
        ran=$((ran + 1))
        if ! is_alike "${command%.command}.shown" "$folder/printed" >"$folder/difference"; then
            echo "$page: $words: $(cat "$folder/difference")" >&2
            failed=1
        fi
    done
done
[ "$ran" -gt 0 ] || failed=1
echo "$ran commands"
exit "$failed"

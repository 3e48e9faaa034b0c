#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Each acquire, release and full fence names its partner: a comment within four lines before it, on
# its line or on the next one says what it pairs with, or begins with "acquire:" or "release:". A
# comment also covers operations that follow one another. All atomic operations are those of
# base/atomic.h.
#
#     check_atomics.sh SOURCE_DIR
set -u
cd "$1" || exit 1

# Prints "file:line:text" for each operation without such a comment, then the number of operations.
nameless()
{
    awk '
    function is_named(i,    at) {
        for (at = i - 4; at <= i + 1; at++)
            if (at in comment)
                return 1
        return (i - 1 in named) || (i - 2 in named)
    }
    function finish(    i) {
        for (i = 1; i <= nlines; i++) {
            if (!(i in operation))
                continue
            if (is_named(i))
                named[i] = 1
            else
                print name ":" i ":" operation[i]
        }
        split("", operation); split("", comment); split("", named)
    }
    FNR == 1 { finish(); name = FILENAME }
    {
        nlines = FNR
        code = $0
        sub(/^ *(\/\*|\*).*/, "", code)
        if (code ~ /tutti_(load_acquire|store_release|fetch_add|exchange|compare_exchange|fence_full) *\(/) {
            operation[FNR] = $0
            count++
        }
        if ($0 ~ /(acquire|release)(, all)?: |[Pp]airs? with/)
            comment[FNR] = 1
    }
    END { finish(); print count + 0 }' "$@"
}

# The check itself must notice an operation without a comment, and accept those that have one.
sample=$(mktemp) || exit 1
trap 'rm -f "$sample"' EXIT
cat >"$sample" <<'END'
    /* release, all: pairs with f */
    tutti_store_release(p, 1);
    for (int i = 0; i < n; i++)
        tutti_store_release(p + i, 1);



    tutti_load_acquire(p);
END
if [ "$(nameless "$sample")" != "$sample:8:    tutti_load_acquire(p);
3" ]; then
    echo "an operation without a partner was not noticed"
    exit 1
fi

# No name of a file has blanks.
files=$(find src -name '*.[ch]' ! -path src/base/atomic.h | sort)
report=$(nameless $files)
count=$(echo "$report" | tail -n 1)
found=$(echo "$report" | sed '$d')
if [ -n "$found" ]; then
    echo "name the partner of each of these in a comment:"
    echo "$found"
fi
bare=$(grep -n '__atomic_[a-z]*_n\|__atomic_thread_fence\|__sync_\|stdatomic' $files)
if [ -n "$bare" ]; then
    echo "use the operations of base/atomic.h:"
    echo "$bare"
fi
echo "$count atomic operations"
[ -z "$found$bare" ] && [ "$count" -gt 100 ]

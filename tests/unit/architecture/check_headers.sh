#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Every header compiles alone; the public one also as strict C99 and as C++11.
#
#     check_headers.sh SOURCE_DIR C_COMPILER C++_COMPILER [FLAG OF INTERNAL HEADERS...]
set -u
source=$1 cc=$2 cxx=$3
shift 3
failed=0

# A translation unit that is nothing but the header, and one declaration, for ISO C wants one.
compiles()
{
    language=$1 header=$2
    shift 2
    printf '#include "%s"\nextern int not_empty;\n' "$header" |
        "$@" -x "$language" -fsyntax-only -
}

expect()
{
    if ! compiles "$@"; then
        echo "$2 does not compile alone: $3 $4"
        failed=$((failed + 1))
    fi
}

# The check itself must notice a header that leans on another's includes.
broken=$(mktemp) || exit 1
echo 'size_t leans_on_stddef(void);' >"$broken"
if compiles c "$broken" "$cc" -std=c99 2>/dev/null; then
    echo "a header that needs another was not noticed"
    failed=$((failed + 1))
fi
rm -f "$broken"

public=$source/include/tutti.h
expect c "$public" "$cc" -std=c99 -pedantic -Wall -Wextra -Wstrict-prototypes -Werror
expect c++ "$public" "$cxx" -std=c++11 -pedantic -Wall -Wextra -Werror

# Tables and templates are included with their macros defined, and say so at the top.
stands_alone()
{
    ! sed 20q "$1" | grep -qiE 'no (include )?guard'
}

checked=0
for header in $(cd "$source/src" && find . -name '*.h' | sed 's,^\./,,' | sort); do
    stands_alone "$source/src/$header" || continue
    expect c "$header" "$cc" -std=gnu11 -Wall -Wextra -Werror -Wno-unused-function -D_GNU_SOURCE \
        -I"$source/src" -I"$source/include" "$@"
    checked=$((checked + 1))
done
for header in $(cd "$source/model" && find . -name '*.h' | sed 's,^\./,,' | sort); do
    expect c "$header" "$cc" -std=gnu11 -Wall -Wextra -Werror -Wno-unused-function -D_GNU_SOURCE \
        -I"$source/model" -I"$source/src" -I"$source/include" "$@"
    checked=$((checked + 1))
done
for header in $(cd "$source/tools" && find . -mindepth 2 -name '*.h' | sed 's,^\./,,' | sort); do
    expect c "$header" "$cc" -std=gnu11 -Wall -Wextra -Werror -Wno-unused-function -D_GNU_SOURCE \
        -I"$source/tools" -I"$source/model" -I"$source/src" -I"$source/include" "$@"
    checked=$((checked + 1))
done
echo "$checked internal headers, $failed failures"
[ "$failed" -eq 0 ] && [ "$checked" -gt 10 ]

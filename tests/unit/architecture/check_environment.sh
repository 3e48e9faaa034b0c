#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The environment is read in one place: by the library and the tools in base/param.c, by the
# measuring programs in perf/environment.c. So no variable is missing in the table of parameters.
#
#     check_environment.sh SOURCE_DIR
set -u
cd "$1" || exit 1

# Lines of the files that call getenv, as "file:line:text".
readers()
{
    grep -n -E '(^|[^_[:alnum:]])(secure_)?getenv *\(' "$@" /dev/null
}

# The check itself must notice a call.
sample=$(mktemp) || exit 1
trap 'rm -f "$sample"' EXIT
printf 'int main(void)\n{\n    return getenv("TUTTI_DEBUG") != 0;\n}\n' >"$sample"
if ! readers "$sample" | grep -q "^$sample:3:"; then
    echo "a call of getenv was not noticed"
    exit 1
fi

# hwloc's own variables are changed for a moment, and restored.
found=$(find src tools perf examples -name '*.[ch]' ! -path src/base/param.c \
    ! -path perf/environment.c ! -name detect_hwloc.c -exec grep -l getenv {} + |
    while read -r file; do readers "$file"; done)
ours=$(readers src/base/param.c perf/environment.c | wc -l)
if [ -n "$found" ]; then
    echo "read the environment by tutti_param_given, tutti_variable_given or perf_environment:"
    echo "$found"
    exit 1
fi
echo "$ours calls of getenv in the two places that may have them"
[ "$ours" -eq 2 ]

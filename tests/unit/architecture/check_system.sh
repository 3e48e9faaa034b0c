#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Time, pauses and randomness reach these rooms through base/system.h alone: none of their files asks
# the system itself.
#
#     check_system.sh SOURCE_DIRECTORY
set -eu

cd "$1/src"
calls='(clock_gettime|gettimeofday|nanosleep|usleep|sleep|time|rand|random|getrandom|randombytes_[a-z]+)\('

# A search that finds nothing anywhere would find nothing wrong.
grep -qE "\\b$calls" base/clock.h
grep -qE "\\b$calls" base/system.c

if grep -rnE "\\b$calls" bootstrap transport executor/host queue mail comm; then
    echo "these lines ask the system, and not base/system.h" >&2
    exit 1
fi

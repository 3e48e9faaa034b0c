# SPDX-License-Identifier: Apache-2.0
# The two commands of a fresh clone, with all their set-up: `make perf` and `make test`. The build
# proper is CMake's; see CMakePresets.json.
JOBS := $(shell nproc 2>/dev/null || echo 2)
PERF := --ranks 4 -b 8 -e 64M -f 4 -c 1

.PHONY: perf test nightly asan tsan docs setup clean

# All-reduce from 8 bytes to 64 MiB between four processes.
perf: build-release
	build/release/perf/all_reduce_perf $(PERF)

# Everything, as a developer builds it: debug, with assertions.
test: build-dev
	ctest --test-dir build/dev --output-on-failure -j$(JOBS) -LE nightly

# Every algorithm proved for up to 256 ranks, and some for 4096. Takes long.
nightly: build-nightly
	ctest --preset nightly -j$(JOBS)

# Without what only computes for long: the same code runs in shorter tests.
asan: build-asan
	ctest --test-dir build/asan --output-on-failure -j$(JOBS) -LE nightly \
	    -E "test_mutants|test_16384_ranks|\.524288|test_gpu_copies\.(sizes|streams|graphs)"

# The slow tests and those between two hosts would take too long here; checker and simulator have
# one thread. Processes share nothing that is watched, and arithmetic has no threads: their rows of
# collectives on the CPU are left out.
tsan: build-tsan
	ctest --test-dir build/tsan --output-on-failure -j$(JOBS) \
	    -LE "slow|network|schedule|simulator|tools|nightly" \
	    -E "test_collectives\.(.*\.processes|operations|types\.mixed)"

# Print docs/environment.md anew.
docs: build-dev
	cmake --build build/dev --target docs

setup:
	@sh scripts/setup

.PHONY: build-release build-ci build-dev build-nightly build-asan build-tsan
build-release build-ci build-dev build-nightly build-asan build-tsan: build-%: setup
	cmake --preset $*
	cmake --build build/$* -j $(JOBS)

clean:
	rm -rf build

# SPDX-License-Identifier: Apache-2.0
# The commands of a fresh clone, with all their set-up: `make perf`, `make test`, `make install`. The
# build proper is CMake's; see CMakePresets.json.
JOBS := $(shell nproc 2>/dev/null || echo 2)
# Many tests wait, for a deadline or for one slow rank: one more than there are CPUs keeps these busy.
TESTS := $(shell expr $(JOBS) + 1)
PERF := --ranks 4 -b 8 -e 64M -f 2 -c 1
PREFIX ?= /usr/local

.PHONY: perf install test nightly asan tsan test-pytorch test-pytorch-older docs reference setup clean

# All-reduce from 8 bytes to 64 MiB between four processes.
perf: setup
	cmake --preset release
	cmake --build build/release -j $(JOBS) --target tutti-perf
	build/release/perf/all_reduce_perf $(PERF)

# Library, header and programs below PREFIX, or below DESTDIR/PREFIX for another system.
install: setup
	cmake --preset release
	cmake --build build/release -j $(JOBS) --target tutti-installable
	DESTDIR="$(DESTDIR)" cmake --install build/release --prefix "$(PREFIX)"

# Everything, as a developer builds it: debug, with assertions.
test: build-dev
	ctest --test-dir build/dev --output-on-failure -j$(TESTS) -LE nightly

# All rows of all tests: every algorithm proved for up to 256 ranks and some for 4096, whole matrices,
# and the sanitizers over all that they can run. Takes hours.
nightly: build-nightly build-asan build-tsan
	ctest --test-dir build/nightly --output-on-failure -j$(TESTS)
	ctest --test-dir build/asan --output-on-failure -j$(TESTS)
	ctest --test-dir build/tsan --output-on-failure -j$(TESTS) -LE "network|schedule|simulator"

# Rows whose code other rows run under a sanitizer, too: all transports together, and TCP that encrypts.
SHARED_ROWS := test_(groups|mailbox)\.(cma.shm|tcp)$$

# Without what only computes for long: the same code runs in shorter tests.
ASAN_WITHOUT := test_mutants|test_(4096|16384)_ranks|test_algorithms\.(mixed|threads|.*\.524288)
ASAN_WITHOUT := $(ASAN_WITHOUT)|test_collectives\.sizes\..*=[^o]|test_gpu_collectives\.sizes
ASAN_WITHOUT := $(ASAN_WITHOUT)|test_gpu_copies\.(sizes|streams|graphs)|$(SHARED_ROWS)
asan: build-asan
	ctest --test-dir build/asan --output-on-failure -j$(TESTS) -LE nightly -E "$(ASAN_WITHOUT)"

# Where threads meet. Checker, simulator and arithmetic have one thread; processes share nothing that
# is watched; addresses and programs have no threads of their own.
TSAN_WITHOUT := test_(collectives|gpu_collectives|gpu_algorithms|gpu_copies)\..*processes|test_two_jobs
TSAN_WITHOUT := $(TSAN_WITHOUT)|test_collectives\..*(ipv6|mixed\.(shm|cma|tcp\.(ipv4|TUTTI_S)))
TSAN_WITHOUT := $(TSAN_WITHOUT)|bench_gpu|perf_gpu|gpu_check|test_kernel_arithmetic
TSAN_WITHOUT := $(TSAN_WITHOUT)|test_(costs|cost_functions|cpu_reduce|fuse_random)$$|$(SHARED_ROWS)
tsan: build-tsan
	ctest --test-dir build/tsan --output-on-failure -j$(TESTS) \
	    -LE "slow|network|schedule|simulator|tools|topology|arithmetic|nightly" -E "$(TSAN_WITHOUT)"

# The Python package with the newest PyTorch, which is installed below build/ the first time.
test-pytorch:
	@sh scripts/setup python3-dev python3-venv
	scripts/test-pytorch

# The same with two older releases of PyTorch.
test-pytorch-older:
	@sh scripts/setup python3-dev python3-venv
	scripts/test-pytorch torch==2.14.1
	scripts/test-pytorch torch==2.13.0

# Print docs/environment.md anew.
docs: build-dev
	cmake --build build/dev --target docs

# HTML and manual pages of the C API, in build/reference. Needs doxygen.
reference:
	@docs/reference/build build/reference

setup:
	@sh scripts/setup

.PHONY: build-release build-ci build-dev build-nightly build-asan build-tsan
build-release build-ci build-dev build-nightly build-asan build-tsan: build-%: setup
	cmake --preset $*
	cmake --build build/$* -j $(JOBS)

clean:
	rm -rf build
